//! The little of an MCP line that the shim reads: id and method, and of a tool call its name and era. Lines
//! themselves pass on byte for byte; what cannot be read here is left for the daemon to judge.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use tabmux_wire::edges::is_id;
use tabmux_wire::hello::WAITED_META;

/// The protocol revision whose results say that they are complete.
const STATELESS_REVISION: &str = "2026-07-28";

/// What a line is, seen from its sender.
#[derive(Debug, PartialEq)]
pub(super) enum Glimpse {
    Request {
        id: Value,
        method: String,
    },
    /// The client no longer waits for this id.
    Cancelled {
        id: Value,
    },
    /// An answer to a request of the other side.
    Answer {
        id: Value,
        failed: bool,
    },
    /// A notification, a request whose id nobody takes, or no JSON at all.
    Other,
}

/// What a call must be answered like when nobody else can.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct CallShape {
    pub(super) tool: Option<String>,
    pub(super) stateless: bool,
    /// For how long it may be waited for, where it says so.
    pub(super) timeout: Option<Duration>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<Value>,
    method: Option<String>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct CallParams<'a> {
    name: Option<String>,
    #[serde(borrow)]
    arguments: Option<&'a RawValue>,
    #[serde(rename = "_meta")]
    meta: Option<CallMeta>,
}

#[derive(Deserialize)]
struct CallArguments {
    timeout: Option<u64>,
}

#[derive(Deserialize)]
struct CallMeta {
    #[serde(rename = "io.modelcontextprotocol/protocolVersion")]
    version: Option<String>,
}

pub(super) fn glimpse(line: &[u8]) -> Glimpse {
    let Ok(envelope) = serde_json::from_slice::<Envelope<'_>>(line) else { return Glimpse::Other };
    match (envelope.id.filter(|id| !id.is_null()), envelope.method) {
        // The daemon answers such a request without its id, so nothing would ever settle it.
        (Some(id), Some(_)) if !is_id(&id) => Glimpse::Other,
        (Some(id), Some(method)) => Glimpse::Request { id, method },
        (Some(id), None) => Glimpse::Answer { id, failed: envelope.error.is_some() },
        (None, Some(method)) if method == "notifications/cancelled" => {
            match params_of(line).and_then(|mut params| params.get_mut("requestId").map(Value::take)) {
                Some(id) => Glimpse::Cancelled { id },
                None => Glimpse::Other,
            }
        }
        (None, _) => Glimpse::Other,
    }
}

/// The messages of a batch, each as a line without its end. An empty batch is left for the daemon to refuse.
pub(super) fn batch(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    if line.trim_ascii_start().first() != Some(&b'[') {
        return None;
    }
    let messages: Vec<&RawValue> = serde_json::from_slice(line).ok()?;
    (!messages.is_empty()).then(|| messages.into_iter().map(|message| message.get().as_bytes().to_vec()).collect())
}

/// The parameters of a request, for `initialize`.
pub(super) fn params_of(line: &[u8]) -> Option<Value> {
    let envelope: Envelope<'_> = serde_json::from_slice(line).ok()?;
    serde_json::from_str(envelope.params?.get()).ok()
}

/// The same call, with how long its client has waited for it, so that the next daemon keeps to its deadline. As it is where it has no place for that.
pub(super) fn with_wait(line: &[u8], waited: Duration) -> Vec<u8> {
    type Members = BTreeMap<String, Box<RawValue>>;
    let within = |members: &Members, name: &str| members.get(name).map(|inner| serde_json::from_str::<Members>(inner.get())).transpose();
    let raw = |members: &Members| serde_json::value::to_raw_value(members);
    let written = || {
        let mut request: Members = serde_json::from_slice(line)?;
        let mut params = within(&request, "params")?.unwrap_or_default();
        let mut meta = within(&params, "_meta")?.unwrap_or_default();
        meta.insert(WAITED_META.to_owned(), serde_json::value::to_raw_value(&waited.as_millis())?);
        params.insert("_meta".to_owned(), raw(&meta)?);
        request.insert("params".to_owned(), raw(&params)?);
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        Ok::<_, serde_json::Error>(line)
    };
    written().unwrap_or_else(|_| line.to_vec())
}

pub(super) fn call_shape(line: &[u8]) -> CallShape {
    let params = serde_json::from_slice::<Envelope<'_>>(line).ok().and_then(|envelope| envelope.params);
    let Some(params) = params.and_then(|raw| serde_json::from_str::<CallParams<'_>>(raw.get()).ok()) else { return CallShape::default() };
    let version = params.meta.and_then(|meta| meta.version);
    let timeout = params.arguments.and_then(|raw| serde_json::from_str::<CallArguments>(raw.get()).ok()?.timeout);
    CallShape {
        tool: params.name,
        stateless: version.is_some_and(|version| version.as_str() >= STATELESS_REVISION),
        timeout: timeout.map(Duration::from_millis),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_request_whose_id_the_daemon_refuses_is_not_waited_for() {
        let request = |id: &str| glimpse(format!(r#"{{"id":{id},"method":"ping"}}"#).as_bytes());
        let (longest, longer) = (format!("\"{}\"", "x".repeat(1024)), format!("\"{}\"", "x".repeat(1025)));
        for id in ["1", "-5", "9223372036854775807", "\"a\"", &longest] {
            assert!(matches!(request(id), Glimpse::Request { .. }), "{id}");
        }
        for id in ["1.5", "9223372036854775808", "true", "[1]", "{}", &longer] {
            assert_eq!(request(id), Glimpse::Other, "{id}");
        }
    }

    #[test]
    fn how_long_a_call_was_waited_for_stands_beside_what_it_says() {
        let again = |line: &str| String::from_utf8(with_wait(line.as_bytes(), Duration::from_millis(1500))).unwrap();
        let call = r#"{"id":1,"method":"tools/call","params":{"name":"n","arguments":{"x":1.50},"_meta":{"a":12345678901234567890123}}}"#;
        let expected = concat!(
            r#"{"id":1,"method":"tools/call","params":{"_meta":{"a":12345678901234567890123,"tabmux/waitedMs":1500},"#,
            r#""arguments":{"x":1.50},"name":"n"}}"#,
            "\n"
        );
        assert_eq!(again(call), expected);
        assert_eq!(again(&again(call)), expected);
        assert_eq!(again(r#"{"id":1}"#), "{\"id\":1,\"params\":{\"_meta\":{\"tabmux/waitedMs\":1500}}}\n");
        for odd in [r#"{"id":1,"params":[1]}"#, r#"{"id":1,"params":{"_meta":5}}"#, "nonsense"] {
            assert_eq!(again(odd), odd);
        }
    }

    #[test]
    fn a_batch_is_its_messages_byte_for_byte() {
        let batch =
            |line: &str| batch(line.as_bytes()).map(|all| all.into_iter().map(|one| String::from_utf8(one).unwrap()).collect::<Vec<_>>());
        assert_eq!(batch(r#" [{"id" : 1}, 5] "#), Some(vec![r#"{"id" : 1}"#.to_owned(), "5".to_owned()]));
        for line in ["[]", "[1", "{}", ""] {
            assert_eq!(batch(line), None, "{line}");
        }
    }

    #[test]
    fn requests_answers_and_cancellations_are_told_apart() {
        let request = |id: Value, method: &str| Glimpse::Request { id, method: method.into() };
        for (line, expected) in [
            (r#"{"jsonrpc":"2.0","id":7,"method":"ping"}"#, request(json!(7), "ping")),
            (r#"{"method":"tools/call","params":[1],"id":"a"}"#, request(json!("a"), "tools/call")),
            (r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Glimpse::Answer { id: json!(7), failed: false }),
            (r#"{"jsonrpc":"2.0","id":7,"error":{"code":1}}"#, Glimpse::Answer { id: json!(7), failed: true }),
            (r#"{"method":"notifications/cancelled","params":{"requestId":3}}"#, Glimpse::Cancelled { id: json!(3) }),
            (r#"{"method":"notifications/initialized"}"#, Glimpse::Other),
            (r#"{"id":null,"method":"ping"}"#, Glimpse::Other),
            (r#"[{"id":1,"method":"ping"}]"#, Glimpse::Other),
            ("nonsense", Glimpse::Other),
        ] {
            assert_eq!(glimpse(line.as_bytes()), expected, "{line}");
        }
    }

    #[test]
    fn a_call_tells_its_tool_and_its_era() {
        let old = r#"{"id":1,"method":"tools/call","params":{"name":"navigate","arguments":{"name":"x","timeout":1500}}}"#;
        let timeout = Some(Duration::from_millis(1500));
        assert_eq!(call_shape(old.as_bytes()), CallShape { tool: Some("navigate".into()), stateless: false, timeout });
        let new =
            r#"{"id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"},"name":"n"}}"#;
        assert_eq!(call_shape(new.as_bytes()), CallShape { tool: Some("n".into()), stateless: true, timeout: None });
        assert_eq!(call_shape(br#"{"id":1,"params":[1]}"#), CallShape::default());
    }
}
