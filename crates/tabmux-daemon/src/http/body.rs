//! Reading a request's body: JSON only, bounded while it streams in, with a deadline, and strictly.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, EXPECT};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use serde_json::Value;
use tabmux_core::{Code, Fault};
use tabmux_wire::{MAX_FRAME_BYTES, strict};

use super::refusal::{Refusal, RpcCode};

/// How long a refused peer may go on sending, so that it reads our answer instead of a reset connection.
const DRAIN: Duration = Duration::from_secs(5);

/// A body that is JSON, as it came and as it reads.
#[derive(Debug)]
pub(super) struct Json {
    pub(super) bytes: Bytes,
    pub(super) value: Value,
}

/// Reads the JSON body of a POST.
pub(super) async fn read_json(head: &Parts, body: &mut Incoming, deadline: Duration) -> Result<Json, Refusal> {
    check_content_type(&head.headers)?;
    let announced = head.headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > MAX_FRAME_BYTES as u64) {
        return Err(too_large());
    }
    let bytes = tokio::time::timeout(deadline, read_bounded(body)).await.map_err(|_| {
        let message = format!("The body was not there after {} s.", deadline.as_secs());
        Refusal::with_status(StatusCode::REQUEST_TIMEOUT, Code::Timeout, message, "Send the whole body at once.")
    })??;
    let value = strict::parse(&bytes).map_err(|fault| Refusal::new(fault).rpc(RpcCode::ParseError))?;
    Ok(Json { bytes, value })
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Refusal> {
    let given = headers.get(CONTENT_TYPE).map(|value| String::from_utf8_lossy(value.as_bytes()));
    let kind = given.as_deref().map(|given| given.split(';').next().unwrap_or("").trim());
    if kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/json")) {
        return Ok(());
    }
    let message = match kind {
        Some(kind) => format!("The Content-Type '{}' is not served.", kind.chars().take(100).collect::<String>()),
        None => "The request has no Content-Type.".to_owned(),
    };
    Err(Refusal::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, Code::BadArgument, message, "Send Content-Type: application/json."))
}

async fn read_bounded(body: &mut Incoming) -> Result<Bytes, Refusal> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            Fault::new(Code::BadArgument, format!("The body could not be read: {error}."), "Send a whole HTTP request.")
        })?;
        if let Ok(data) = frame.into_data() {
            if bytes.len() + data.len() > MAX_FRAME_BYTES {
                return Err(too_large());
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.freeze())
}

fn too_large() -> Refusal {
    let message = format!("The body is larger than {MAX_FRAME_BYTES} bytes.");
    Fault::new(Code::FrameTooLarge, message, "Send less; larger things go by file.").into()
}

/// Drops what a refused peer still sends. A peer that waits for `100 Continue` sends nothing and needs none of this.
pub(super) async fn drain(head: &Parts, body: &mut Incoming) {
    if !head.headers.contains_key(EXPECT) {
        let rest = async { while let Some(Ok(_)) = body.frame().await {} };
        // At the deadline the connection is closed under the sender, which is all that is left to do.
        drop(tokio::time::timeout(DRAIN, rest).await);
    }
}
