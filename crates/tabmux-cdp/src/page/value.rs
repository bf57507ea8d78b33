//! What a script gave, as JSON. Chromium writes values with their types (V8's deep serialisation), so that plain data, dates, maps, sets
//! and regular expressions are told in the answer itself; of what has a form of its own (errors, elements, typed arrays, `toJSON`)
//! the page writes the JSON, which is one round trip more. Not always: a page that goes elsewhere meanwhile is not asked again.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::protocol::runtime::SerializationOptions;

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
    if (value instanceof Storage) return { ...value };
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

/// With their types, and of elements only themselves.
pub(super) fn with_types() -> SerializationOptions {
    SerializationOptions {
        serialization: "deep".into(),
        additional_parameters: Some(serde_json::json!({ "maxNodeDepth": 0 })),
        ..SerializationOptions::default()
    }
}

/// A value as JSON has it. `None`: only the page can write it.
pub(super) fn plain(kind: &str, value: Option<Value>) -> Option<Value> {
    Some(match (kind, value) {
        ("null" | "undefined" | "function" | "symbol", _) => Value::Null,
        ("string" | "boolean", Some(value)) => value,
        ("number", Some(number @ Value::Number(_))) => number,
        // `NaN`, `-0` and the like, of which JSON knows only zero.
        ("number", Some(Value::String(text))) => {
            if text == "-0" {
                0.into()
            } else {
                Value::Null
            }
        }
        ("bigint", Some(Value::String(digits))) => format!("{digits}n").into(),
        ("date", Some(Value::String(text))) => {
            if text == "Invalid Date" {
                Value::Null
            } else {
                text.into()
            }
        }
        ("regexp", Some(Value::Object(parts))) => {
            format!("/{}/{}", parts.get("pattern")?.as_str()?, parts.get("flags").and_then(Value::as_str).unwrap_or_default()).into()
        }
        ("array" | "set", Some(Value::Array(members))) => members.into_iter().map(typed).collect::<Option<_>>()?,
        ("map", Some(Value::Array(entries))) => entries.into_iter().map(entry).collect::<Option<_>>()?,
        ("object", Some(Value::Array(members))) => Value::Object(object(members)?),
        _ => return None,
    })
}

fn typed(written: Value) -> Option<Value> {
    let Value::Object(mut written) = written else { return None };
    plain(written.get("type")?.as_str()?.to_owned().as_str(), written.remove("value"))
}

/// The key and the value of a map's entry, of which a text stands there as it is.
fn entry(written: Value) -> Option<Value> {
    let Value::Array(both) = written else { return None };
    both.into_iter().map(|one| if one.is_string() { Some(one) } else { typed(one) }).collect()
}

fn object(members: Vec<Value>) -> Option<Map<String, Value>> {
    let mut object = Map::new();
    for member in members {
        let Value::Array(member) = member else { return None };
        let [Value::String(name), written] = <[Value; 2]>::try_from(member).ok()? else { return None };
        match written.get("type")?.as_str()? {
            // It says itself what it is.
            "function" if name == "toJSON" => return None,
            "undefined" | "function" | "symbol" => {}
            _ => drop(object.insert(name, typed(written)?)),
        }
    }
    Some(object)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_json_knows_is_taken_from_the_answer_and_the_rest_is_the_pages() {
        let told = |written: Value| typed(written);
        assert_eq!(
            told(json!({ "type": "array", "value": [{ "type": "number", "value": 1 }, { "type": "undefined" }] })),
            Some(json!([1, null]))
        );
        let members = json!([["a", { "type": "date", "value": "1970-01-01T00:00:00.000Z" }], ["b", { "type": "undefined" }], ["c", { "type": "function" }]]);
        assert_eq!(told(json!({ "type": "object", "value": members })), Some(json!({ "a": "1970-01-01T00:00:00.000Z" })));
        let map = json!({ "type": "map", "value": [["k", { "type": "bigint", "value": "10" }], [{ "type": "number", "value": 2 }, { "type": "null" }]] });
        assert_eq!(told(map), Some(json!([["k", "10n"], [2, null]])));
        assert_eq!(told(json!({ "type": "regexp", "value": { "pattern": "x", "flags": "g" } })), Some(json!("/x/g")));
        assert_eq!(told(json!({ "type": "number", "value": "-0" })), Some(json!(0)));
        let page = [
            json!({ "type": "error" }),
            json!({ "type": "object", "weakLocalObjectReference": 1 }),
            json!({ "type": "object", "value": [["toJSON", { "type": "function" }]] }),
            json!({ "type": "array", "value": [{ "type": "typedarray" }] }),
        ];
        for written in page {
            assert_eq!(told(written.clone()), None, "{written}");
        }
    }
}
