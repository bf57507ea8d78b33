//! One JSON-RPC message from a stranger, read strictly, and the refusal that answers what is none. rmcp alone
//! would end the connection, answer 415 or say nothing. What a message asks for is deliberately absent.

use rmcp::model::{CallToolRequest, ClientJsonRpcMessage, ClientRequest, GetMeta, RequestId};
use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_wire::edges::{LONGEST_ID, find_id, is_id};

/// JSON-RPC's own error numbers.
pub(crate) const PARSE_ERROR: i32 = -32700;
pub(crate) const INVALID_REQUEST: i32 = -32600;
pub(crate) const METHOD_NOT_FOUND: i64 = -32601;
pub(crate) const INVALID_PARAMS: i32 = -32602;

/// The way out of a method there is not.
pub(crate) const NO_METHOD_HINT: &str = "Use a method of MCP: tools/list names the tools, tools/call calls them.";

/// How far from either end an id is looked for in what cannot be parsed. The search is not linear, so it is short.
const EDGE_BYTES: usize = 512;

/// Methods whose parameters rmcp knows. It takes one of these with other parameters for a custom method.
const TYPED_METHODS: [&str; 6] = ["initialize", "tools/call", "tools/list", "server/discover", "prompts/get", "resources/read"];

/// The answer to something that is no message.
#[derive(Debug)]
pub(crate) struct Refusal {
    pub id: Value,
    pub number: i32,
    pub fault: Fault,
}

impl Refusal {
    /// Boxed, because it is the rare case.
    pub(crate) fn new(id: Value, number: i32, fault: Fault) -> Box<Self> {
        Box::new(Self { id, number, fault })
    }

    pub(crate) fn too_large(id: Value, bytes: u64, limit: usize) -> Box<Self> {
        let message = format!("The message has {bytes} bytes; the limit is {limit}.");
        Self::new(
            id,
            INVALID_REQUEST,
            Fault::new(Code::FrameTooLarge, message, "Send less at a time, or name a file instead of its contents."),
        )
    }

    fn invalid(id: Value, message: impl Into<String>) -> Box<Self> {
        Self::new(id, INVALID_REQUEST, Fault::new(Code::BadArgument, message, "Send a JSON-RPC 2.0 message."))
    }

    /// The JSON-RPC error, as one line.
    pub(crate) fn to_line(&self) -> String {
        let data = json!({ "code": self.fault.code.name(), "hint": self.fault.hint });
        json!({ "jsonrpc": "2.0", "id": self.id, "error": { "code": self.number, "message": self.fault.to_string(), "data": data } })
            .to_string()
    }
}

/// Reads JSON: UTF-8, bounded depth, no key twice.
pub(crate) fn parse(bytes: &[u8]) -> Result<Value, Box<Refusal>> {
    tabmux_wire::strict::parse(bytes).map_err(|fault| {
        // A key that stands twice is still JSON: the id can be read. Else only a look at both ends can find it.
        let lenient = serde_json::from_slice::<Value>(bytes).ok().and_then(|value| value.get("id").filter(|id| is_id(id)).cloned());
        let (head, tail) = (&bytes[..bytes.len().min(EDGE_BYTES)], &bytes[bytes.len().saturating_sub(EDGE_BYTES)..]);
        Refusal::new(lenient.or_else(|| find_id(head, tail)).unwrap_or(Value::Null), PARSE_ERROR, fault)
    })
}

/// Turns a JSON value into a message.
pub(crate) fn read(value: Value) -> Result<ClientJsonRpcMessage, Box<Refusal>> {
    let Some(object) = value.as_object() else {
        return Err(Refusal::invalid(Value::Null, "The message is no JSON object."));
    };
    let id = object.get("id").filter(|id| is_id(id)).cloned().unwrap_or(Value::Null);
    if object.contains_key("id") && id.is_null() {
        return Err(Refusal::invalid(id, format!("The id is neither an integer nor a string of at most {LONGEST_ID} bytes.")));
    }
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Refusal::invalid(id, "The message has no \"jsonrpc\":\"2.0\"."));
    }
    let method = match object.get("method") {
        Some(Value::String(method)) => Some(method.clone()),
        Some(_) => return Err(Refusal::invalid(id, "The method is no string.")),
        None if !id.is_null() && (object.contains_key("result") || object.contains_key("error")) => None,
        None => return Err(Refusal::invalid(id, "The message has no method.")),
    };
    if method.as_deref() == Some("tools/call") && !id.is_null() {
        return read_call(value, id);
    }
    let message =
        serde_json::from_value(value).map_err(|error| Refusal::invalid(id.clone(), format!("The message cannot be read: {error}.")))?;
    match (&message, method) {
        (ClientJsonRpcMessage::Request(request), Some(method)) if is_misread(&request.request, &method) => Err(bad_params(id, &method)),
        _ => Ok(message),
    }
}

/// What agents send all day. rmcp tries its methods one after the other, which alone would be a fifth of the work for a call.
fn read_call(value: Value, id: Value) -> Result<ClientJsonRpcMessage, Box<Refusal>> {
    let Ok(number) = serde_json::from_value::<RequestId>(id.clone()) else {
        return Err(Refusal::invalid(id, "The id cannot be read."));
    };
    match serde_json::from_value::<CallToolRequest>(value) {
        Ok(call) => Ok(ClientJsonRpcMessage::request(ClientRequest::CallToolRequest(call), number)),
        Err(_) => Err(bad_params(id, "tools/call")),
    }
}

fn is_misread(request: &ClientRequest, method: &str) -> bool {
    // The new era has no `initialize`: there it is an unknown method, whatever its parameters.
    let is_gone = method == "initialize" && request.get_meta().protocol_version().is_some();
    matches!(request, ClientRequest::CustomRequest(_)) && TYPED_METHODS.contains(&method) && !is_gone
}

fn bad_params(id: Value, method: &str) -> Box<Refusal> {
    let expected = match method {
        "tools/call" => "params has a string \"name\" and, if any, an object \"arguments\"",
        "initialize" => "params has \"protocolVersion\", \"capabilities\" and \"clientInfo\" with \"name\" and \"version\"",
        _ => "see the MCP specification for its params",
    };
    let fault = Fault::new(Code::BadArgument, format!("The parameters of {method} do not fit."), format!("Right is: {expected}."));
    Refusal::new(id, INVALID_PARAMS, fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> Box<Refusal> {
        match parse(text.as_bytes()).and_then(read) {
            Ok(message) => panic!("read {text} as {message:?}"),
            Err(refusal) => refusal,
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id() {
        for (text, id, number) in [
            ("nonsense", json!(null), PARSE_ERROR),
            ("7", json!(null), INVALID_REQUEST),
            (r#"{"id":3}"#, json!(3), INVALID_REQUEST),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, json!("a"), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":4}"#, json!(4), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":4,"method":5}"#, json!(4), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, json!(null), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, json!(null), INVALID_REQUEST),
            (r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"arguments":{}}}"#, json!(6), INVALID_PARAMS),
            (r#"{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"x","arguments":"y"}}"#, json!(6), INVALID_PARAMS),
            (r#"{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":1}}"#, json!(7), INVALID_PARAMS),
        ] {
            let refusal = refused(text);
            assert_eq!((&refusal.id, refusal.number), (&id, number), "{text}: {}", refusal.fault);
            assert_eq!(serde_json::from_str::<Value>(&refusal.to_line()).unwrap()["id"], id);
        }
        assert_eq!(refused(&format!(r#"{{"jsonrpc":"2.0","id":"{}","method":"ping"}}"#, "x".repeat(2000))).id, json!(null));
    }

    #[test]
    fn a_key_that_stands_twice_is_refused_under_the_requests_id() {
        let refusal = refused(r#"{"jsonrpc":"2.0","id":9,"method":"tools/call","params":{"name":"a","name":"b"}}"#);
        assert_eq!((refusal.id, refusal.number), (json!(9), PARSE_ERROR));
        assert!(refusal.fault.message.contains("\"name\" stands twice"), "{}", refusal.fault);
        assert_eq!(refused(&format!(r#"{{"id":12,"method":{}"#, "[".repeat(100_000))).id, json!(12));
    }

    /// The short way and rmcp's own agree.
    #[test]
    fn a_call_is_read_as_rmcp_reads_it() {
        for params in [
            json!({ "name": "a" }),
            json!({ "name": "a", "arguments": null }),
            json!({ "name": "a", "arguments": { "b": [1.5, "c"] }, "_meta": { "progressToken": 7, "x/y": { "z": 1 } }, "more": 1 }),
        ] {
            for id in [json!(3), json!("three")] {
                let value = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
                let theirs: ClientJsonRpcMessage = serde_json::from_value(value.clone()).unwrap();
                assert_eq!(format!("{:?}", read(value).unwrap()), format!("{theirs:?}"));
            }
        }
    }

    #[test]
    fn ordinary_messages_are_read() {
        for text in [
            r#"{"jsonrpc":"2.0","id":0,"method":"tools/list"}"#,
            r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a","arguments":null}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/whatever","params":{"a":[1]}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":"x/unknown","params":{}}"#,
        ] {
            assert!(parse(text.as_bytes()).and_then(read).is_ok(), "{text}");
        }
    }
}
