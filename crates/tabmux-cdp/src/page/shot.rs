//! A page as a picture or on paper: two round trips, one for the place and one for the picture.

use std::time::Duration;

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::Deserialize;
use serde_json::Value;
use tabmux_driver::{Area, DriverError, Image, ImageFormat, Orientation, Result, Shot};

use super::CdpPage;
use crate::protocol::page::{CaptureScreenshot, PrintToPDF, Viewport};

/// The longest side Chromium can draw at once; beyond it the picture repeats itself.
const MAX_DRAWN: f64 = 16_384.0;

/// How long the picture of a document that gave way to another may still take.
const GRACE: Duration = Duration::from_millis(250);

/// A page drawn smaller than this cannot be read; what does not fit then is cut off.
const LEAST_SCALE: f64 = 0.5;

/// Where the area is in the document, in CSS pixels, and how many dots of the screen make one of them.
const PLACE: &str = "(area) => {
  const screen = { ratio: devicePixelRatio };
  // A document that was emptied has nothing beyond what is in view.
  const whole = document.scrollingElement ?? document.documentElement;
  if (area === 'view' || (area === 'page' && whole === null)) {
    const { pageLeft, pageTop, width, height, scale } = visualViewport;
    return { ...screen, x: pageLeft, y: pageTop, width, height, scale };
  }
  if (area === 'page') {
    const { scrollWidth, scrollHeight } = whole;
    return { ...screen, x: 0, y: 0, width: scrollWidth, height: scrollHeight };
  }
  return null;
}";

#[derive(Clone, Copy, Debug, Deserialize)]
pub(super) struct Place {
    ratio: f64,
    /// How large the screen shows it: less than 1 where a page for a desk is on a small screen.
    #[serde(default = "whole")]
    scale: f64,
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

fn whole() -> f64 {
    1.0
}

/// How much of a place is drawn, and how large, in the pixels of the screen that shows it.
#[derive(Debug, PartialEq)]
struct Drawn {
    width: f64,
    height: f64,
    /// Dots per pixel.
    dots: f64,
}

impl Place {
    /// Pixels of the screen for one of the page. What is shown larger is drawn as it is.
    fn shrunk(&self) -> f64 {
        self.scale.min(1.0)
    }
}

impl CdpPage {
    /// Chromium never answers a capture whose document gives way to another while it is taken. So a page that went elsewhere is asked again;
    /// whichever picture comes first is the one.
    pub(super) async fn picture(&self, shot: &Shot) -> Result<Image> {
        let mut progress = self.state.watch();
        let mut asked = FuturesUnordered::new();
        loop {
            let commits = progress.borrow_and_update().commits;
            asked.push(self.capture(shot));
            let replaced = async {
                // Its end is for the capture to tell.
                if progress.wait_for(|now| now.commits > commits).await.is_err() {
                    std::future::pending::<()>().await;
                }
                tokio::time::sleep(GRACE).await;
            };
            tokio::select! {
                biased;
                Some(picture) = asked.next() => match picture {
                    Err(DriverError::Navigated) => {}
                    picture => return picture,
                },
                () = replaced => {}
            }
        }
    }

    async fn capture(&self, shot: &Shot) -> Result<Image> {
        let place = self.place(&shot.area).await?;
        let allowed = shot.max_side.map_or(MAX_DRAWN, |side| f64::from(side).min(MAX_DRAWN));
        let drawn = drawn(&place, allowed);
        let (format, quality) = match shot.format {
            ImageFormat::Png => ("png", None),
            ImageFormat::Jpeg { quality } => ("jpeg", Some(i64::from(quality.min(100)))),
        };
        let shrunk = place.shrunk();
        let (width, height, scale) = (drawn.width / shrunk, drawn.height / shrunk, drawn.dots * shrunk / place.ratio);
        let clip = Viewport { x: place.x, y: place.y, width, height, scale };
        let capture = CaptureScreenshot {
            format: Some(format.into()),
            quality,
            clip: Some(clip),
            capture_beyond_viewport: Some(shot.area != Area::Viewport),
            optimize_for_speed: Some(true),
            ..CaptureScreenshot::default()
        };
        let base64 = self.call(&capture).await?.data;
        let side = |length: f64| (length * drawn.dots).round().clamp(1.0, allowed) as u32;
        let pixels = |length: f64| length.round().max(1.0) as u32;
        Ok(Image {
            base64,
            format: shot.format,
            width: side(drawn.width),
            height: side(drawn.height),
            shown: (pixels(drawn.width), pixels(drawn.height)),
            whole: (pixels(place.width * shrunk), pixels(place.height * shrunk)),
        })
    }

    async fn place(&self, area: &Area) -> Result<Place> {
        let area = match area {
            Area::Viewport => "view",
            Area::FullPage => "page",
            Area::Element(selector) => return self.box_of(selector).await,
        };
        let found = self.plain_value(format!("({PLACE})({})", Value::from(area))).await?;
        serde_json::from_value(found).map_err(|_| unseen())
    }

    pub(super) async fn print(&self, orientation: Orientation) -> Result<String> {
        let print =
            PrintToPDF { landscape: Some(orientation == Orientation::Landscape), print_background: Some(true), ..PrintToPDF::default() };
        Ok(self.call(&print).await?.data)
    }
}

pub(super) fn unseen() -> DriverError {
    DriverError::Unsupported("This page cannot be pictured.".into())
}

/// As large as the screen draws it, where that fits; else smaller; and where it could not be read then, only its beginning.
fn drawn(place: &Place, allowed: f64) -> Drawn {
    let (width, height) = (place.width * place.shrunk(), place.height * place.shrunk());
    let longest = width.max(height).max(1.0);
    let dots = (allowed / longest).clamp(LEAST_SCALE, place.ratio.max(LEAST_SCALE));
    let most = (allowed / dots).floor().max(1.0);
    Drawn { width: width.clamp(1.0, most), height: height.clamp(1.0, most), dots }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_drawn_readable_or_cut() {
        let of = |width, height, ratio, allowed| drawn(&Place { ratio, scale: 1.0, x: 0.0, y: 0.0, width, height }, allowed);
        assert_eq!(of(1280.0, 720.0, 1.0, 1568.0), Drawn { width: 1280.0, height: 720.0, dots: 1.0 });
        assert_eq!(of(400.0, 300.0, 2.0, 1568.0), Drawn { width: 400.0, height: 300.0, dots: 2.0 });
        assert_eq!(of(1568.0, 784.0, 2.0, 1568.0), Drawn { width: 1568.0, height: 784.0, dots: 1.0 });
        assert_eq!(of(1280.0, 3136.0, 1.0, 1568.0), Drawn { width: 1280.0, height: 3136.0, dots: 0.5 });
        assert_eq!(of(1280.0, 20_000.0, 2.0, 1568.0), Drawn { width: 1280.0, height: 3136.0, dots: 0.5 });
        assert_eq!(of(0.0, 0.0, 1.0, 100.0), Drawn { width: 1.0, height: 1.0, dots: 1.0 });
        let small = |scale, allowed| drawn(&Place { ratio: 2.0, scale, x: 0.0, y: 0.0, width: 1600.0, height: 3200.0 }, allowed);
        assert_eq!(small(0.25, MAX_DRAWN), Drawn { width: 400.0, height: 800.0, dots: 2.0 }, "as on the screen");
        assert_eq!(small(0.25, 1200.0), Drawn { width: 400.0, height: 800.0, dots: 1.5 });
        assert_eq!(small(3.0, MAX_DRAWN), Drawn { width: 1600.0, height: 3200.0, dots: 2.0 });
    }
}
