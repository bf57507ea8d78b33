//! What a script gave, as JSON that the page writes. V8's deep serialisation would tell plain data without asking again, but it ends the
//! renderer, and whatever the page held, at the first getter that throws or is given up.

use serde::Deserialize;

/// The longest JSON that the page writes.
pub(super) const MAX_JSON: usize = 8 << 20;

/// What `WRITE` is called in a stack.
pub(super) const WRITER: &str = "toldAsJson";

/// Writes `this` as JSON, or what it gives when it is called: as `JSON.stringify`, but for what that makes an empty object of.
pub(super) const WRITE: &str = r#"async function toldAsJson(call, most) {
  const given = await (call ? this() : this);
  const told = (value) => {
    if (typeof value === "bigint") return `${value}n`;
    if (typeof value !== "object" || value === null) return value;
    if (value instanceof Error || value instanceof DOMException) return { name: value.name, message: value.message, at: String(value.stack ?? "").split("\n").find((line) => /^\s+at /.test(line))?.trim() };
    if (value instanceof Map) return [...value];
    if (value instanceof Set || value instanceof NodeList || value instanceof HTMLCollection) return [...value];
    if (value instanceof RegExp) return String(value);
    if (ArrayBuffer.isView(value) && !(value instanceof DataView)) return Array.from(value);
    if (value instanceof Element) return value.cloneNode(false).outerHTML;
    if (value instanceof Node) return value.nodeValue ?? value.nodeName;
    if (typeof value.toJSON === "function" || Object.keys(value).length > 0 || Array.isArray(value)) return value;
    const inner = typeof value.valueOf === "function" ? value.valueOf() : value;
    if (typeof inner !== "object") return told(inner);
    const kind = Object.prototype.toString.call(value);
    if (kind === "[object Object]") return value;
    return typeof value[Symbol.iterator] === "function" ? [...value] : kind;
  };
  try {
    const odd = typeof given === "number" && (!Number.isFinite(given) || Object.is(given, -0));
    const whole = odd ? (given === 0 ? "-0" : String(given)) : told(given);
    const json = JSON.stringify(whole, function (key, value) {
      // Old libraries give lists a `toJSON` of another kind.
      if (Array.isArray(this[key])) return this[key];
      return key === "" ? value : value === this[key] ? told(value) : value;
    }) ?? "null";
    return json.length > most ? { length: json.length } : { json };
  } catch (error) {
    const problem = String(error);
    return { problem: problem.includes("call stack") ? "it is nested too deeply" : problem };
  }
}"#;

/// What `WRITE` answers.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Written {
    Json(String),
    /// Too long to be told.
    Length(u64),
    /// Why it cannot be written.
    Problem(String),
}
