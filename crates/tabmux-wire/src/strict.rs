//! JSON from a stranger, read strictly: UTF-8, bounded depth, no key twice. serde_json alone would let the
//! last of two equal keys win silently, and a caller would never learn which one counted.

use serde::de::{self, Deserialize, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use tabmux_core::{Code, Fault};

/// Reads one JSON value. The fault says what was wrong and where.
pub fn parse(bytes: &[u8]) -> Result<Value, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let message = format!("The message is not UTF-8: byte {} is wrong.", error.valid_up_to());
        Fault::new(Code::BadArgument, message, "Send UTF-8 encoded JSON.")
    })?;
    serde_json::from_str::<Strict>(text).map(|strict| strict.0).map_err(|error| {
        Fault::new(Code::BadArgument, format!("The message is not valid JSON: {error}."), "Send one JSON object per message.")
    })
}

/// Refuses a field that `what` does not have: a caller that misspelt one would never learn that it did not count.
pub fn only_fields(object: &Value, known: &[&str], what: &str) -> Result<(), Fault> {
    let stranger = object.as_object().and_then(|object| object.keys().find(|key| !known.contains(&key.as_str())));
    let Some(stranger) = stranger else { return Ok(()) };
    let shown: String = stranger.chars().take(100).collect();
    let message = format!("{what} has an unknown field {shown:?}.");
    Err(Fault::new(Code::BadArgument, message, format!("Its fields are: {}.", known.join(", "))))
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(StrictVisitor).map(Strict)
    }
}

struct StrictSeed;

impl<'de> DeserializeSeed<'de> for StrictSeed {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(StrictVisitor)
    }
}

struct StrictVisitor;

impl<'de> Visitor<'de> for StrictVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(StrictSeed)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = access.next_key::<String>()? {
            let value = access.next_value_seed(StrictSeed)?;
            if map.contains_key(&key) {
                return Err(de::Error::custom(format_args!("the key {key:?} stands twice in one object")));
            }
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_json_reads_as_it_is() {
        let text = r#"{"a":[1,-2,3.5,"x",null,true],"b":{"c":{}}}"#;
        assert_eq!(parse(text.as_bytes()).unwrap(), serde_json::from_str::<Value>(text).unwrap());
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_at_any_depth() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"x":[{"a":1,"b":0,"a":1}]}"#] {
            let fault = parse(text.as_bytes()).unwrap_err();
            assert_eq!(fault.code, Code::BadArgument);
            assert!(fault.message.contains("\"a\" stands twice"), "{fault}");
        }
    }

    #[test]
    fn a_field_that_there_is_not_is_named_with_those_there_are() {
        let frame = serde_json::json!({ "id": 1, "tpye": 2 });
        assert_eq!(only_fields(&frame, &["id", "tpye"], "PING"), Ok(()));
        let fault = only_fields(&frame, &["id", "type"], "PING").unwrap_err();
        assert_eq!(fault.to_string(), "[bad_argument] PING has an unknown field \"tpye\". Its fields are: id, type.");
    }

    #[test]
    fn hostile_depth_and_broken_utf8_are_refused_without_harm() {
        let deep = "[".repeat(100_000);
        assert!(parse(deep.as_bytes()).unwrap_err().message.contains("recursion limit"));
        assert!(parse(b"{\"a\":\"\xff\"}").unwrap_err().message.contains("byte 6"));
    }
}
