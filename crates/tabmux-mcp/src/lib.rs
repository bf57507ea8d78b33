//! The only room that knows MCP. It turns `tools/list` and `tools/call` of every protocol revision, from a
//! socket or over HTTP, into calls of one trait, `Dispatch`, and its answers back. Sessions, ownership and
//! browsers are deliberately absent.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use serde_json::{Map, Value};
use tabmux_core::{ClientId, Fault};
use tabmux_tools::Reply;
use tokio_util::sync::CancellationToken;

mod answer;
mod caller;
mod catalog;
mod conformance;
mod handler;
mod http;
mod lines;
mod message;
mod turn;

pub use catalog::{Catalog, ToolListing};
pub use handler::{Fixtures, Handler};
pub use http::{HttpDoor, HttpSessions, ResponseBody, SessionStoreError, check_body};
pub use lines::{LineTransport, open_lines, serve_lines};

/// What stands behind the MCP door: the daemon's hub.
pub trait Dispatch: Send + Sync + 'static {
    fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>>;
}

/// One `tools/call`.
#[derive(Debug)]
pub struct ToolCall {
    pub client: ClientId,
    /// What the client calls itself, for lists that people read (S1.31).
    pub client_name: Option<String>,
    /// The agent within the client, where the client names it in `_meta` (C8).
    pub agent: Option<String>,
    pub tool: String,
    pub args: Map<String, Value>,
    /// How long the caller has waited for it already, at a daemon that is gone.
    pub waited: Duration,
    /// Cancelled by the client, or by its HTTP connection going away. A lost socket does not cancel: the running
    /// call finishes, and what waits in a queue is the hub's to end (CONTRACT, "Lost").
    pub cancel: CancellationToken,
}

/// What the agent reads.
#[derive(Debug)]
pub struct ToolAnswer {
    pub outcome: Result<Reply, Fault>,
    /// Data for programs, `_meta["tabmux/result"]`: sessionId, sessionType, tabId, url, …
    pub result: Map<String, Value>,
}

/// Who speaks over HTTP; the daemon's HTTP door puts it into the request's extensions once it has authenticated the caller.
#[derive(Clone, Copy, Debug)]
pub struct HttpCaller {
    pub client: ClientId,
}
