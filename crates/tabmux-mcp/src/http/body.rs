//! A POST's body, bounded and read strictly before rmcp sees it, and the answer to one that is no message.

use std::time::Duration;

use ::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use ::http_body::Body;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_wire::MAX_FRAME_BYTES;

use super::ResponseBody;
use crate::message::{self, INVALID_REQUEST, METHOD_NOT_FOUND, NO_METHOD_HINT, PARSE_ERROR, Refusal};

/// An answer that is sent in place of rmcp's; boxed, because it is the rare case.
pub(super) type Refused = Box<Response<ResponseBody>>;

/// rmcp's own errors are a sentence.
const LARGEST_ERROR: usize = 64 * 1024;

/// How long a body may take to arrive.
const PATIENCE: Duration = Duration::from_secs(30);

const JSON: &str = "application/json";

/// Names of types have no case (RFC 9110, 8.3.1).
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.and_then(|kind| kind.get(..JSON.len())).is_some_and(|kind| kind.eq_ignore_ascii_case(JSON))
}

/// Says it as rmcp reads it.
pub(super) fn mark_as_json(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(JSON));
}

pub(super) fn too_many_sessions(id: &Value) -> Refused {
    let fault = Fault::new(
        Code::Capacity,
        "Too many HTTP clients have initialised.",
        "End some with DELETE, or wait until idle ones are forgotten.",
    );
    refused(&Refusal::new(id.clone(), INVALID_REQUEST, fault))
}

pub(super) fn still_answered(id: &Value) -> Refused {
    let fault = Fault::new(Code::BadArgument, format!("id {id} is still being answered."), "Give every request an id of its own.");
    refused(&Refusal::new(id.clone(), INVALID_REQUEST, fault))
}

pub(super) fn initialize_too_large(id: &Value, bytes: usize, limit: usize) -> Refused {
    let message = format!("The initialize has {bytes} bytes; at most {limit} are kept for a client.");
    let fault = Fault::new(Code::FrameTooLarge, message, "Send only capabilities and clientInfo in it.");
    refused(&Refusal::new(id.clone(), INVALID_REQUEST, fault))
}

pub(super) async fn collect<B>(body: B) -> Result<Bytes, Refused>
where
    B: Body + Send + 'static,
    B::Error: std::fmt::Display,
{
    let body = body.map_err(|error| error.to_string()).map_frame(|frame| frame.map_data(into_bytes));
    let whole = tokio::time::timeout(PATIENCE, Limited::new(body, MAX_FRAME_BYTES).collect()).await;
    let Ok(whole) = whole else {
        let fault = Fault::new(Code::Timeout, format!("The body did not arrive within {PATIENCE:?}."), "Send it again.");
        return Err(refused(&Refusal::new(Value::Null, PARSE_ERROR, fault)));
    };
    match whole {
        Ok(whole) => Ok(whole.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => {
            let message = format!("The body is larger than {MAX_FRAME_BYTES} bytes.");
            let fault = Fault::new(Code::FrameTooLarge, message, "Send less at a time, or name a file instead of its contents.");
            Err(refused(&Refusal::new(Value::Null, INVALID_REQUEST, fault)))
        }
        Err(error) => {
            let fault = Fault::new(Code::BadArgument, format!("The body broke off: {error}."), "Send it again.");
            Err(refused(&Refusal::new(Value::Null, PARSE_ERROR, fault)))
        }
    }
}

fn into_bytes(mut data: impl bytes::Buf) -> Bytes {
    data.copy_to_bytes(data.remaining())
}

/// Whether a body is one JSON-RPC message, read strictly: UTF-8, bounded depth, no key twice. Gives it back as JSON.
pub fn check_body(bytes: &[u8]) -> Result<Value, Box<Response<ResponseBody>>> {
    let value = message::parse(bytes).map_err(|refusal| refused(&refusal))?;
    if value.is_array() {
        let hint = "Send one message per POST; MCP has had no batches since 2025-06-18.";
        let fault = Fault::new(Code::Unsupported, "A JSON-RPC batch came over HTTP.", hint);
        return Err(refused(&Refusal::new(Value::Null, INVALID_REQUEST, fault)));
    }
    message::read(value.clone()).map_err(|refusal| refused(&refusal))?;
    Ok(value)
}

/// An error of rmcp's own, with a stable code and a way out beside what it says. Status, headers, error number and
/// what data there is stay as they are: clients act on them.
pub(super) async fn with_code(id: &Value, response: Response<ResponseBody>) -> Response<ResponseBody> {
    let (mut parts, body) = response.into_parts();
    let Ok(text) = Limited::new(body, LARGEST_ERROR).collect().await.map(http_body_util::Collected::to_bytes) else {
        return Response::from_parts(parts, Full::default().boxed());
    };
    let mut answer: Value = serde_json::from_slice(&text).unwrap_or_default();
    let said = answer["error"]["message"].as_str().map_or_else(|| String::from_utf8_lossy(&text).trim().to_owned(), str::to_owned);
    let (code, hint) = match answer["error"]["code"].as_i64() {
        // The new era answers it with 404 too, and no session is amiss.
        Some(METHOD_NOT_FOUND) => (Code::Unsupported, NO_METHOD_HINT),
        _ => meaning_of(parts.status),
    };
    let fault = Fault::new(code, if said.is_empty() { parts.status.to_string() } else { said }, hint);
    let answer = match answer.get_mut("error").and_then(Value::as_object_mut) {
        None => Refusal::new(id.clone(), INVALID_REQUEST, fault).to_line(),
        Some(error) => {
            let data = error.entry("data").or_insert_with(|| json!({}));
            if let Some(data) = data.as_object_mut() {
                data.entry("code").or_insert_with(|| fault.code.name().into());
                data.entry("hint").or_insert_with(|| fault.hint.into());
            }
            answer.to_string()
        }
    };
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Full::new(Bytes::from(answer)).boxed())
}

fn meaning_of(status: StatusCode) -> (Code, &'static str) {
    match status {
        StatusCode::NOT_FOUND => (Code::SessionNotFound, "Send initialize again, without a session id."),
        StatusCode::NOT_ACCEPTABLE => (Code::BadArgument, "Send Accept: application/json, text/event-stream (for GET, text/event-stream)."),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (Code::BadArgument, "Send Content-Type: application/json."),
        StatusCode::METHOD_NOT_ALLOWED => (Code::Unsupported, "Use POST; GET and DELETE are for clients with an mcp-session-id."),
        status if status.is_server_error() => (Code::Internal, "Try again, and please report it with the log (`tabmux logs`)."),
        _ => {
            (Code::BadArgument, "Send what the revision in MCP-Protocol-Version asks for, and the mcp-session-id that initialize gave you.")
        }
    }
}

fn refused(refusal: &Refusal) -> Refused {
    let status = StatusCode::from_u16(refusal.fault.code.http_status()).unwrap_or(StatusCode::BAD_REQUEST);
    let body = Full::new(Bytes::from(refusal.to_line())).boxed();
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json").body(body);
    Box::new(response.expect("a status, a fixed header and a body make a response"))
}
