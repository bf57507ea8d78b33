//! What a CDP frame looks like on the wire, and where it is to go. The reader learns that from the frame's two ends;
//! payloads are decoded by whoever asked for them, and nothing here ever builds a `Value` of a whole frame.

use std::borrow::Cow;

use memchr::{memchr, memrchr};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

use crate::protocol::Command;
use crate::{CdpError, Result, lenient};

/// Chromium's own code for "Session with given id not found.".
const SESSION_NOT_FOUND: i64 = -32001;
/// Its code for whatever a server cannot do.
const TOO_LONG: i64 = -32000;

/// Where a frame is to go.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head<'a> {
    Reply { id: i32 },
    Event { method: Cow<'a, str>, session: Option<Cow<'a, str>> },
}

#[derive(Serialize)]
struct Call<'a, C> {
    id: i32,
    method: &'static str,
    params: &'a C,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    id: Option<i32>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow, rename = "sessionId")]
    session: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Params<'a> {
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

#[derive(Deserialize)]
#[serde(bound = "R: DeserializeOwned")]
struct Answer<R> {
    result: Option<R>,
    error: Option<Refusal>,
}

#[derive(Deserialize)]
struct Refusal {
    code: i64,
    message: String,
    data: Option<String>,
}

impl<'a> Head<'a> {
    /// Of a frame that is no CDP at all: nothing.
    pub(crate) fn of(frame: &'a [u8]) -> Option<Self> {
        Self::probe(frame).or_else(|| Self::parse(frame))
    }

    /// Chromium writes `id` or `method` first and `sessionId` last. In valid JSON the first member cannot be mistaken, and
    /// neither can a last one: within a string its quotes would be escaped, within an inner object more braces would follow.
    fn probe(frame: &'a [u8]) -> Option<Self> {
        if let Some(rest) = frame.strip_prefix(br#"{"id":"#) {
            let end = memchr(b',', &rest[..rest.len().min(12)])?;
            let id = std::str::from_utf8(&rest[..end]).ok()?.parse().ok()?;
            return Some(Self::Reply { id });
        }
        let rest = frame.strip_prefix(br#"{"method":""#)?;
        let method = plain(&rest[..memchr(b'"', rest)?])?;
        let rest = frame.strip_suffix(br#""}"#)?;
        let session_at = memrchr(b'"', rest)? + 1;
        let session = plain(&rest[session_at..])?;
        rest[..session_at].ends_with(br#","sessionId":""#).then_some(())?;
        Some(Self::Event { method: method.into(), session: Some(session.into()) })
    }

    fn parse(frame: &'a [u8]) -> Option<Self> {
        let envelope: Envelope<'a> = serde_json::from_slice(frame).ok()?;
        match envelope {
            Envelope { id: Some(id), .. } => Some(Self::Reply { id }),
            Envelope { method: Some(method), session, .. } => Some(Self::Event { method, session }),
            Envelope { .. } => None,
        }
    }
}

/// The text between two quotes, if it stands there as it is meant.
fn plain(bytes: &[u8]) -> Option<&str> {
    memchr(b'\\', bytes).is_none().then(|| std::str::from_utf8(bytes).ok())?
}

pub(crate) fn encode<C: Command>(id: i32, session: Option<&str>, command: &C) -> String {
    let call = Call { id, method: C::METHOD, params: command, session };
    serde_json::to_string(&call).expect("a command is a struct of plain values")
}

/// An event's parameters, unread.
pub(crate) fn params(frame: &[u8]) -> serde_json::Result<&RawValue> {
    match serde_json::from_slice::<Params<'_>>(frame)?.params {
        Some(params) => Ok(params),
        None => serde_json::from_str("{}"),
    }
}

/// A short frame for one of which only the ends are known: a reply is a refusal, and an event has nothing but the request it is about, so that the
/// page's request is not kept waiting for good.
pub(crate) fn in_place_of(ends: &[u8], bytes: usize) -> Option<String> {
    match Head::probe(ends)? {
        Head::Reply { id } => {
            let message = format!("The answer is {} MB long, which is too much.", bytes >> 20);
            Some(json!({"id": id, "error": {"code": TOO_LONG, "message": message}}).to_string())
        }
        Head::Event { method, session } => {
            let about = format!("{{\"method\":\"{method}\",\"params\":{{\"requestId\":\"");
            let request = ends.strip_prefix(about.as_bytes()).and_then(|rest| plain(&rest[..memchr(b'"', rest)?]));
            let params = request.map_or(json!({}), |request| json!({"requestId": request}));
            Some(json!({"method": method, "params": params, "sessionId": session}).to_string())
        }
    }
}

/// What a reply says.
pub(crate) fn decode<R: DeserializeOwned>(method: &'static str, frame: &[u8]) -> Result<R> {
    let unreadable = |why: String| CdpError::Unreadable { method, why };
    match lenient::read(frame).map_err(|error| unreadable(error.to_string()))? {
        Answer { error: Some(Refusal { code: SESSION_NOT_FOUND, .. }), .. } => Err(CdpError::SessionGone),
        Answer { error: Some(Refusal { code, message, data }), .. } => {
            let message = data.map_or(message.clone(), |data| format!("{message} {data}"));
            Err(CdpError::Refused { method, code, message })
        }
        Answer { result: Some(result), .. } => Ok(result),
        Answer { .. } => Err(unreadable("neither a result nor an error".into())),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;
    use crate::protocol::page::{Navigate, NavigateReply};

    /// Strings that look like the ends of a frame, and others.
    fn tricky() -> impl Strategy<Value = String> {
        prop_oneof![
            Just(r#"","sessionId":"FALSE"}"#.to_owned()),
            Just(r#","sessionId":"FALSE"#.to_owned()),
            Just(r#"{"id":7,"#.to_owned()),
            Just(r#"{"method":"False.event","#.to_owned()),
            Just("sessionId".to_owned()),
            Just("\\\"}".to_owned()),
            "[A-Za-z0-9 ]{0,12}",
            any::<String>(),
        ]
    }

    fn payload() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![tricky().prop_map(Value::from), any::<i64>().prop_map(Value::from), Just(Value::Null)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((tricky(), inner.clone()), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
                inner.prop_map(|inner| json!({"id": 3, "method": "False.event", "sessionId": inner})),
            ]
        })
    }

    /// The members of a frame in any order, some of them left out.
    fn members(first: (&'static str, Value), payload_name: &'static str) -> impl Strategy<Value = Vec<(&'static str, Value)>> {
        let session = prop_oneof![Just(None), "[A-F0-9]{32}".prop_map(Some), tricky().prop_map(Some)];
        (payload(), session).prop_flat_map(move |(payload, session)| {
            let mut members = vec![first.clone(), (payload_name, payload)];
            members.extend(session.map(|session| ("sessionId", Value::from(session))));
            prop_oneof![3 => Just(members.clone()), 1 => Just(members).prop_shuffle()]
        })
    }

    fn frame() -> impl Strategy<Value = Vec<(&'static str, Value)>> {
        let reply = any::<i32>().prop_flat_map(|id| members(("id", id.into()), "result"));
        let event = tricky().prop_flat_map(|method| members(("method", method.into()), "params"));
        prop_oneof![reply, event]
    }

    fn text(members: &[(&str, Value)]) -> String {
        let members: Vec<_> = members.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
        format!("{{{}}}", members.join(","))
    }

    proptest! {
        #[test]
        fn the_ends_of_a_frame_say_what_a_parse_says(members in frame()) {
            let text = text(&members);
            let parsed = Head::parse(text.as_bytes());
            prop_assert!(parsed.is_some());
            if let Some(probed) = Head::probe(text.as_bytes()) {
                prop_assert_eq!(Some(probed), parsed);
            }
        }

        #[test]
        fn nothing_makes_the_probe_panic(frame: Vec<u8>, text in tricky()) {
            let _ = (Head::of(&frame), Head::of(text.as_bytes()));
        }

        /// A take-over relies on it: the rest of a torn frame never passes for a whole one.
        #[test]
        fn the_rest_of_a_torn_frame_is_no_json(members in frame(), cut: prop::sample::Index) {
            let text = text(&members);
            let rest = &text.as_bytes()[1 + cut.index(text.len() - 1)..];
            prop_assert!(serde_json::from_slice::<&RawValue>(rest).is_err());
        }
    }

    #[test]
    fn the_frames_of_chromium_need_no_parse() {
        assert_eq!(Head::probe(br#"{"id":-4,"result":{"x":1},"sessionId":"A"}"#), Some(Head::Reply { id: -4 }));
        assert_eq!(Head::probe(br#"{"id":2147483647,"error":{"code":1,"message":""}}"#), Some(Head::Reply { id: i32::MAX }));
        let event = Head::Event { method: "Page.x".into(), session: Some("A1".into()) };
        assert_eq!(Head::probe(br#"{"method":"Page.x","params":{"sessionId":"B"},"sessionId":"A1"}"#), Some(event));
        assert_eq!(Head::probe(br#"{"method":"Page.x","params":{"sessionId":"B"}}"#), None);
        assert_eq!(Head::of(br#"{"error":{"code":-32700,"message":"JSON: no"}}"#), None);
    }

    #[test]
    fn a_call_is_written_as_chromium_reads_it() {
        let text = encode(5, Some("S"), &Navigate { url: "about:blank".into(), ..Navigate::default() });
        assert_eq!(text, r#"{"id":5,"method":"Page.navigate","params":{"url":"about:blank"},"sessionId":"S"}"#);
    }

    #[test]
    fn a_reply_is_a_result_or_an_error() {
        let reply: NavigateReply = decode("Page.navigate", br#"{"id":1,"result":{"frameId":"F","new":[1]},"sessionId":"S"}"#).unwrap();
        assert_eq!((reply.frame_id.as_str(), reply.error_text), ("F", None));
        let half: NavigateReply = decode("Page.navigate", br#"{"id":1,"result":{"frameId":"F\ud83d"}}"#).unwrap();
        assert_eq!(half.frame_id, "F\u{fffd}", "half a character does not cost the answer");
        let fail = |frame: &[u8]| decode::<NavigateReply>("Page.navigate", frame).unwrap_err();
        let refused = CdpError::Refused { method: "Page.navigate", code: -32000, message: "No. Bad url".into() };
        assert_eq!(fail(br#"{"id":1,"error":{"code":-32000,"message":"No.","data":"Bad url"}}"#), refused);
        assert_eq!(fail(br#"{"id":1,"error":{"code":-32001,"message":"Session with given id not found."}}"#), CdpError::SessionGone);
        assert!(matches!(fail(br#"{"id":1}"#), CdpError::Unreadable { .. }));
        assert!(matches!(fail(br#"{"id":1,"result":{}}"#), CdpError::Unreadable { .. }));
    }

    #[test]
    fn an_event_without_parameters_has_empty_ones() {
        assert_eq!(params(br#"{"method":"A.b","params":{"x": 1}}"#).unwrap().get(), r#"{"x": 1}"#);
        assert_eq!(params(br#"{"method":"A.b"}"#).unwrap().get(), "{}");
    }
}
