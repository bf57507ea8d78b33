// Areas of image maps: they have no box of their own, only a place on the picture that uses their map.

function imageOf(area) {
  const map = area.closest("map");
  const uses = (image) => image.useMap === `#${map.name}` || image.useMap === `#${map.id}`;
  return map === null ? null : ([...area.getRootNode().querySelectorAll("[usemap]")].find(uses) ?? null);
}

const isSeenArea = (area) => {
  const image = imageOf(area);
  return image !== null && isSeen(image) && areaBoxes(area).length > 0;
};

// Boxes that lie in its shape, in its window.
function areaBoxes(area) {
  const image = imageOf(area);
  if (image === null) return [];
  return boxesInShape(area, image).map(({ left, top, right, bottom }) => {
    const [from, to] = [aroundFrame(image, { x: left, y: top }), aroundFrame(image, { x: right, y: bottom })];
    return { left: from.x, top: from.y, right: to.x, bottom: to.y };
  });
}

function boxesInShape({ shape, coords }, image) {
  const numbers = coords.split(/[\s,;]+/).map(Number.parseFloat).filter(Number.isFinite);
  const [a, b, c, d] = numbers;
  switch (shape.toLowerCase()) {
    case "default":
      return [{ left: 0, top: 0, right: image.clientWidth, bottom: image.clientHeight }];
    case "circle": case "circ":
      return c > 0 ? [{ left: a - c / 2, top: b - c / 2, right: a + c / 2, bottom: b + c / 2 }] : [];
    case "poly": case "polygon":
      return boxesInPolygon(numbers);
    default:
      return numbers.length < 4 ? [] : [{ left: Math.min(a, c), top: Math.min(b, d), right: Math.max(a, c), bottom: Math.max(b, d) }];
  }
}

// Flat boxes from edge to edge, at some heights: the middle of a polygon may be outside of it.
function boxesInPolygon(numbers) {
  const corners = Array.from({ length: numbers.length >> 1 }, (_, at) => ({ x: numbers[2 * at], y: numbers[2 * at + 1] }));
  const heights = corners.map(({ y }) => y);
  const [top, bottom] = [Math.min(...heights), Math.max(...heights)];
  return [0.5, 0.25, 0.75, 0.1, 0.9].flatMap((part) => {
    const y = top + (bottom - top) * part;
    const edges = corners.map((corner, at) => [corner, corners[(at + 1) % corners.length]]).filter(([from, to]) => from.y > y !== to.y > y);
    const crossed = edges.map(([from, to]) => from.x + ((y - from.y) * (to.x - from.x)) / (to.y - from.y)).sort((one, other) => one - other);
    return Array.from({ length: crossed.length >> 1 }, (_, at) => ({ left: crossed[2 * at], right: crossed[2 * at + 1], top: y - 0.5, bottom: y + 0.5 }));
  });
}
