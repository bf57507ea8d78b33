//! One frame of the seeds' protocols, and its id. The id is the peer's: it comes back exactly as it was written (S1.46), also where
//! this program could not hold it, as a number of thirty digits.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use tabmux_core::{Code, Fault};

#[derive(Debug)]
pub(super) struct Frame {
    pub(super) body: Value,
    pub(super) id: FrameId,
}

#[derive(Clone, Debug, Default, Serialize)]
pub(super) struct FrameId(Box<RawValue>);

/// An answer under the id of what it answers.
#[derive(Serialize)]
pub(super) struct Answer<'a> {
    id: &'a FrameId,
    #[serde(flatten)]
    body: &'a Value,
}

impl Frame {
    pub(super) fn parse(line: &[u8]) -> Result<Self, Fault> {
        let body = tabmux_wire::strict::parse(line)?;
        let id = match body.get("id") {
            None => FrameId::default(),
            Some(id) if is_exact(id) => FrameId(to_raw_value(id).map_err(|error| unreadable(&error))?),
            Some(_) => FrameId(written_id(line)?),
        };
        Ok(Self { body, id })
    }
}

impl FrameId {
    pub(super) fn is_null(&self) -> bool {
        self.0.get() == "null"
    }

    /// The answer's line. `body` is an object without an id.
    pub(super) fn line(&self, body: &Value) -> String {
        serde_json::to_string(&Answer { id: self, body }).expect("an object whose keys are texts is JSON")
    }
}

/// Whether reading and writing it again changes nothing.
fn is_exact(id: &Value) -> bool {
    match id {
        Value::Number(number) => number.is_i64() || number.is_u64(),
        Value::Null | Value::Bool(_) | Value::String(_) => true,
        Value::Array(_) | Value::Object(_) => false,
    }
}

fn written_id(line: &[u8]) -> Result<Box<RawValue>, Fault> {
    #[derive(Deserialize)]
    struct Written {
        id: Box<RawValue>,
    }
    serde_json::from_slice::<Written>(line).map(|written| written.id).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> Fault {
    Fault::new(Code::BadArgument, format!("The id cannot be read: {error}."), "Send a text or a number as id.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// S1.46
    #[test]
    fn an_id_comes_back_as_it_was_written() {
        for id in ["null", "7", "\"a\"", "123456789012345678901234567890", "1.50", "-0", "{\"odd\":[1e2, 0.10]}", "18446744073709551615"] {
            let frame = Frame::parse(format!("{{\"type\":\"PING\",\"id\":{id}}}").as_bytes()).unwrap();
            assert_eq!(frame.id.line(&json!({"type": "PONG"})), format!("{{\"id\":{id},\"type\":\"PONG\"}}"));
        }
        assert!(Frame::parse(b"{\"type\":\"PING\"}").unwrap().id.is_null());
        assert!(Frame::parse(b"{\"id\":1,\"id\":2}").is_err());
    }
}
