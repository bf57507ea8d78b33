//! The HTTP door: one loopback listener (plus `also` ports) for MCP over HTTP and Seed 2's surface (C2). It
//! bounds, checks and authenticates what comes in, says who the caller is, and passes it on. Deliberately
//! absent: what a call may do (the hub decides), MCP itself (`tabmux-mcp`), CORS, TLS, and any other interface than loopback.

mod alias;
mod backend;
mod body;
mod commands;
mod guard;
mod listen;
mod mcp;
mod refusal;
mod routes;
mod serve;
mod sessions;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use backend::{Backend, Command, CommandAnswer, CommandRefusal, Health, HttpIdentity};
pub use listen::{Holder, ListenError};
pub use sessions::{HttpSessionsTable, RememberSessions, SessionOwner};

use crate::settings::Listen;
use crate::tokens::Tokens;

pub type ResponseBody = BoxBody<Bytes, Infallible>;

/// What answers `/mcp` once the caller is known; its `HttpCaller` is in the request's extensions.
pub type McpService = Arc<dyn Fn(http::Request<Full<Bytes>>) -> BoxFuture<'static, http::Response<ResponseBody>> + Send + Sync>;

/// An open HTTP door. It closes when its cancellation token is cancelled.
#[derive(Debug)]
pub struct HttpDoor {
    pub addr: SocketAddr,
    /// The `also` ports that could be had.
    pub also: Vec<SocketAddr>,
    /// Those that could not, for the log and for `status`.
    pub missing: Vec<ListenError>,
    connections: TaskTracker,
}

/// What stands behind the door.
#[derive(Clone)]
pub struct Behind {
    pub backend: Arc<dyn Backend>,
    pub tokens: Arc<Tokens>,
    pub sessions: Arc<HttpSessionsTable>,
    pub mcp: McpService,
}

/// How much any peer may take of the daemon.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    pub connections: usize,
    /// From the first byte of a connection, or the end of the last answer, to the end of a request's headers: a
    /// slow peer and an idle kept-alive connection end here.
    pub header_read: Duration,
    pub body_read: Duration,
    /// A peer that takes nothing of its answer for so long is gone.
    pub stalled_write: Duration,
    /// Longer than any call may last: only a lost answer reaches it (S2.34).
    pub command: Duration,
    /// How long connections may go on after the door was closed.
    pub drain: Duration,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            connections: 512,
            header_read: Duration::from_secs(30),
            body_read: Duration::from_secs(30),
            stalled_write: Duration::from_secs(60),
            command: Duration::from_secs(11 * 60),
            drain: Duration::from_secs(4),
        }
    }
}

impl HttpDoor {
    /// Opens the door `settings` ask for; `Ok(None)` when they ask for none. After an error the daemon goes on without HTTP (C2).
    pub async fn start(settings: &Listen, behind: Behind, bounds: Bounds, ct: CancellationToken) -> Result<Option<Self>, ListenError> {
        let Some(addr) = settings.addr else { return Ok(None) };
        let listener = listen::bind(addr, settings.on_conflict).await?;
        let addr = listener.local_addr().map_err(|source| ListenError::Io { addr, source })?;
        let mut listeners = vec![listener];
        let mut missing = Vec::new();
        for port in &settings.also {
            // These are wanted for their number, so another number is no help.
            match listen::bind(SocketAddr::new(addr.ip(), *port), crate::settings::OnConflict::Refuse).await {
                Ok(listener) => listeners.push(listener),
                Err(error) => missing.push(error),
            }
        }
        let also = listeners[1..].iter().filter_map(|listener| listener.local_addr().ok()).collect();
        let connections = serve::start(listeners, behind, bounds, &ct);
        Ok(Some(Self { addr, also, missing, connections }))
    }

    /// Waits until every connection has ended; after the cancellation that takes at most `Bounds::drain`.
    pub async fn closed(&self) {
        self.connections.wait().await;
    }
}

impl std::fmt::Debug for Behind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Behind").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
