//! Answers in JSON, and refusals: a status, a stable code, a sentence and a way out.

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde::Serialize;
use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_wire::control::WireFault;

use super::ResponseBody;

/// Why a request is not served.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) fault: Fault,
    header: Option<(&'static str, &'static str)>,
    rpc: RpcCode,
}

/// The number a JSON-RPC client reads: <https://www.jsonrpc.org/specification#error_object>, and MCP's own for a session that is not there.
#[derive(Clone, Copy, Debug)]
pub(super) enum RpcCode {
    ParseError = -32700,
    InvalidRequest = -32600,
    SessionNotFound = -32001,
}

impl Refusal {
    pub(super) fn new(fault: Fault) -> Self {
        Self { status: status_of(fault.code), fault, header: None, rpc: RpcCode::InvalidRequest }
    }

    /// A status that HTTP has a number for and our codes have not.
    pub(super) fn with_status(status: StatusCode, code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { status, ..Self::new(Fault::new(code, message, hint)) }
    }

    /// `name` in small letters.
    pub(super) fn header(mut self, name: &'static str, value: &'static str) -> Self {
        self.header = Some((name, value));
        self
    }

    pub(super) fn rpc(mut self, rpc: RpcCode) -> Self {
        self.rpc = rpc;
        self
    }

    /// `{"error":{code,message,hint}}`
    pub(super) fn into_response(self) -> Response<ResponseBody> {
        let body = json!({ "error": WireFault::from(&self.fault) });
        self.with_body(&body)
    }

    /// The same as a JSON-RPC client reads it, for a caller of `/mcp` that is known by now.
    pub(super) fn into_rpc_response(self) -> Response<ResponseBody> {
        let error = json!({ "code": self.rpc as i32, "message": self.fault.to_string(), "data": WireFault::from(&self.fault) });
        let body = json!({ "jsonrpc": "2.0", "id": null, "error": error });
        self.with_body(&body)
    }

    fn with_body(self, body: &Value) -> Response<ResponseBody> {
        let mut response = json_response(self.status, body);
        if let Some((name, value)) = self.header {
            response.headers_mut().insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        response
    }
}

impl From<Fault> for Refusal {
    fn from(fault: Fault) -> Self {
        Self::new(fault)
    }
}

pub(super) fn status_of(code: Code) -> StatusCode {
    StatusCode::from_u16(code.http_status()).expect("every code has a real HTTP status")
}

pub(super) fn json_response(status: StatusCode, body: &impl Serialize) -> Response<ResponseBody> {
    let text = serde_json::to_vec(body).expect("our own answers are plain JSON");
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
