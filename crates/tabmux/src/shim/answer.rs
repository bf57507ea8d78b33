//! Answers the shim gives itself, because no daemon will: outcome unknown, daemon not to be had, line too long.

use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_wire::MAX_FRAME_BYTES;
use tabmux_wire::control::WireFault;

use super::glimpse::CallShape;

/// JSON-RPC's "internal error" and "invalid request".
const INTERNAL_ERROR: i32 = -32603;
const INVALID_REQUEST: i32 = -32600;

/// A failed tool call, in the shape every tool answers with.
pub(super) fn failed_call(id: &Value, shape: &CallShape, fault: &Fault) -> Vec<u8> {
    let mut result = json!({
        "content": [{"type": "text", "text": fault.to_string()}],
        "isError": true,
        "_meta": {"tabmux/error": WireFault::from(fault)},
    });
    if shape.stateless {
        result["resultType"] = "complete".into();
    }
    line(&json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// A failed request that is no tool call.
pub(super) fn failed_request(id: &Value, fault: &Fault) -> Vec<u8> {
    error(id, INTERNAL_ERROR, fault)
}

/// A line over the limit; `id` is null where it could not be found.
pub(super) fn too_long(id: &Value, bytes: u64) -> Vec<u8> {
    let message = format!("The message has {bytes} bytes; {MAX_FRAME_BYTES} is the most.");
    error(id, INVALID_REQUEST, &Fault::new(Code::FrameTooLarge, message, "Send less at once, or pass a file's path."))
}

pub(super) fn outcome_unknown(tool: Option<&str>) -> Fault {
    let what = tool.unwrap_or("the request");
    let message = format!("The daemon ended while {what} was running, so it may or may not have happened.");
    Fault::new(Code::OutcomeUnknown, message, "Look at the page first (list_sessions, snapshot), then decide whether to call again.")
}

/// For what changes nothing, and was there each time.
pub(super) fn given_up(tool: Option<&str>, sends: u8) -> Fault {
    let what = tool.unwrap_or("the request");
    let often = if sends > 1 { format!(" {sends} times") } else { String::new() };
    let message = format!("The daemon died{often} while {what} was running, which only reads: nothing was changed.");
    Fault::new(Code::Cancelled, message, "Call again, or look at `tabmux logs` for why it died.")
}

/// What its client would say if it no longer waited.
pub(super) fn cancelled(id: &Value) -> Vec<u8> {
    line(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id, "reason": "The daemon was silent."}}))
}

fn error(id: &Value, code: i32, fault: &Fault) -> Vec<u8> {
    let data = WireFault::from(fault);
    line(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": fault.to_string(), "data": data}}))
}

fn line(message: &Value) -> Vec<u8> {
    let mut bytes = message.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}
