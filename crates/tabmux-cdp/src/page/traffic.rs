//! What the network events of a page mean for its list of requests.

use serde::Deserialize;
use serde_json::value::RawValue;
use tabmux_driver::{Request, Traffic};

use crate::event::read;
use crate::protocol::Event;
use crate::protocol::network::{
    LoadingFailed, LoadingFinished, RequestServedFromCache, RequestWillBeSent, Response, ResponseReceived, WebSocketClosed,
    WebSocketCreated, WebSocketFrameError, WebSocketHandshakeResponseReceived,
};

/// What a script is that a worker begins with. Of its answer a page is told no more than the status, and not even that where it is at hand.
const WORKER: &str = "worker";

/// `Network.responseReceivedExtraInfo`, of which no more is needed.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    request_id: String,
    status_code: u16,
}

impl Event for Head {
    const METHOD: &'static str = "Network.responseReceivedExtraInfo";
}

/// Takes in one event; one that is not the network's changes nothing.
pub(super) fn note(traffic: &mut Traffic, method: &str, params: &RawValue) -> Option<()> {
    match method {
        RequestWillBeSent::METHOD => sent(traffic, read(params)?),
        ResponseReceived::METHOD => {
            let event = read::<ResponseReceived>(params)?;
            answered(traffic.of(&event.request_id)?, &event.response);
        }
        LoadingFinished::METHOD => {
            let event = read::<LoadingFinished>(params)?;
            traffic.end(&event.request_id)?.bytes = Some(event.encoded_data_length.max(0.0) as u64);
        }
        LoadingFailed::METHOD => {
            let event = read::<LoadingFailed>(params)?;
            traffic.end(&event.request_id)?.failure = Some(event.blocked_reason.unwrap_or(event.error_text));
        }
        RequestServedFromCache::METHOD => {
            let event = read::<RequestServedFromCache>(params)?;
            traffic.of(&event.request_id)?.from_cache = true;
        }
        Head::METHOD => {
            let event = read::<Head>(params)?;
            traffic.of(&event.request_id).filter(|request| request.kind == WORKER)?;
            traffic.end(&event.request_id)?.status = Some(event.status_code);
        }
        _ => return socket(traffic, method, params),
    }
    Some(())
}

/// A WebSocket is one request that lasts for as long as it is open.
fn socket(traffic: &mut Traffic, method: &str, params: &RawValue) -> Option<()> {
    match method {
        WebSocketCreated::METHOD => {
            let event = read::<WebSocketCreated>(params)?;
            let request = Request { method: "GET".into(), url: event.url, kind: "websocket".into(), ..Request::default() };
            traffic.begin(&event.request_id, request);
        }
        WebSocketHandshakeResponseReceived::METHOD => {
            let event = read::<WebSocketHandshakeResponseReceived>(params)?;
            traffic.of(&event.request_id)?.status = u16::try_from(event.response.status).ok();
        }
        WebSocketFrameError::METHOD => {
            let event = read::<WebSocketFrameError>(params)?;
            traffic.of(&event.request_id)?.failure = Some(event.error_message);
        }
        WebSocketClosed::METHOD => {
            traffic.end(&read::<WebSocketClosed>(params)?.request_id);
        }
        _ => {}
    }
    Some(())
}

fn sent(traffic: &mut Traffic, event: RequestWillBeSent) {
    if let (Some(response), Some(before)) = (&event.redirect_response, traffic.end(&event.request_id)) {
        answered(before, response);
    }
    let kind = event.kind.unwrap_or_else(|| "Other".into()).to_lowercase();
    // Asked for on behalf of no document.
    let of_worker = kind == "script" && event.loader_id.is_empty();
    let request = Request {
        method: event.request.method,
        url: event.request.url,
        kind: if of_worker { WORKER.into() } else { kind },
        ..Request::default()
    };
    traffic.begin(&event.request_id, request);
}

fn answered(request: &mut Request, response: &Response) {
    request.status = u16::try_from(response.status).ok();
    request.mime = Some(response.mime_type.clone());
    request.from_cache |= response.from_disk_cache.unwrap_or_default();
}
