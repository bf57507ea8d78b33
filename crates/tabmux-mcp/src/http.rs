//! MCP over streamable HTTP, both eras: sessions by `mcp-session-id` up to 2025-11-25, none from 2026-07-28 on.
//! Host, Origin, tokens and who the caller is are deliberately absent: the daemon's door checks them first and
//! leaves an `HttpCaller` in the request's extensions.

mod body;
mod sessions;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderValue, Method, Request, Response, StatusCode};
use bytes::Bytes;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

pub use body::check_body;
pub use sessions::{HttpSessions, SessionStoreError};

use crate::Dispatch;
use crate::catalog::Catalog;
use crate::handler::{Fixtures, Handler};

/// The body of every answer.
pub type ResponseBody = BoxBody<Bytes, Infallible>;

/// rmcp forgets an old-era session that long after its last message, calls that still run included; so this is
/// longer than any call. A forgotten session comes back from the store with its next request.
const FORGET_AFTER: Duration = Duration::from_secs(15 * 60);

const SESSION_HEADER: &str = "mcp-session-id";
/// Seed 2's name for the same (S2.7).
const INSTANCE_HEADER: &str = "x-instance-id";
const VERSION_HEADER: &str = "mcp-protocol-version";
const VERSION_META: &str = "io.modelcontextprotocol/protocolVersion";
const FIRST_STATELESS_VERSION: &str = "2026-07-28";

/// The MCP endpoint of the HTTP door. Clones share their sessions.
#[derive(Clone)]
pub struct HttpDoor {
    service: StreamableHttpService<Handler, LocalSessionManager>,
    sessions: Arc<LocalSessionManager>,
    /// Held while a session is brought back: two requests that did so at once would fail one another in rmcp.
    restoring: Arc<Mutex<()>>,
}

impl std::fmt::Debug for HttpDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpDoor").finish_non_exhaustive()
    }
}

impl HttpDoor {
    /// Ends every stream when `ct` is cancelled; stored sessions stay.
    pub fn new(
        dispatch: Arc<dyn Dispatch>,
        catalog: Catalog,
        fixtures: Fixtures,
        store: Arc<dyn HttpSessions>,
        ct: CancellationToken,
    ) -> Self {
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(FORGET_AFTER);
        let sessions = Arc::new(manager);
        let mut config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(true)
            .with_max_request_body_bytes(tabmux_wire::MAX_FRAME_BYTES)
            .with_cancellation_token(ct)
            .disable_allowed_hosts();
        config.session_store = Some(Arc::new(sessions::Stored(store)));
        let handler = move || Ok(Handler::for_http(dispatch.clone(), catalog.clone()).with_fixtures(fixtures));
        let service = StreamableHttpService::new(handler, sessions.clone(), config);
        Self { service, sessions, restoring: Arc::default() }
    }

    /// Answers one request. Dropping the future, or the body of its answer, cancels a call of the new era; in the old
    /// era a lost connection is no cancel (2025-06-18, "Sending Messages to the Server").
    pub async fn handle<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: ::http_body::Body + Send + 'static,
        B::Error: std::fmt::Display,
    {
        let (mut parts, body) = request.into_parts();
        let mut bytes = Bytes::new();
        let mut message = Value::Null;
        if parts.method == Method::POST {
            let checked = body::collect(body).await.and_then(|bytes| check_body(&bytes).map(|message| (bytes, message)));
            match checked {
                Ok(checked) => (bytes, message) = checked,
                Err(refusal) => return *refusal,
            }
        }
        take_instance_header(&mut parts, &message);
        let request = Request::from_parts(parts, Full::new(bytes));
        match old_era_session(&request, &message) {
            Some(id) => self.handle_in_session(&id, request).await,
            None => self.service.handle(request).await,
        }
    }

    async fn handle_in_session(&self, id: &str, request: Request<Full<Bytes>>) -> Response<ResponseBody> {
        let id: Arc<str> = id.into();
        let again = request.clone();
        let response = self.handle_restoring(&id, request).await;
        if response.status() != StatusCode::INTERNAL_SERVER_ERROR {
            return response;
        }
        // rmcp was just forgetting this session and did not take the request. Let it finish, then bring the session back.
        if let Err(error) = self.sessions.close_session(&id).await {
            tracing::warn!(%error, "an HTTP session could not be closed");
        }
        self.handle_restoring(&id, again).await
    }

    async fn handle_restoring(&self, id: &Arc<str>, request: Request<Full<Bytes>>) -> Response<ResponseBody> {
        if self.is_open(id).await {
            return self.service.handle(request).await;
        }
        let restoring = self.restoring.lock().await;
        if self.is_open(id).await {
            drop(restoring);
            return self.service.handle(request).await;
        }
        // In a session rmcp answers as soon as the call is on its way, so the lock is not held for long.
        self.service.handle(request).await
    }

    async fn is_open(&self, id: &Arc<str>) -> bool {
        self.sessions.has_session(id).await.unwrap_or(false)
    }
}

/// The session a request belongs to, unless it speaks the new era, which has none, or opens or ends one.
fn old_era_session<B>(request: &Request<B>, message: &Value) -> Option<String> {
    let header = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok());
    let stateless = message["params"]["_meta"].get(VERSION_META).is_some()
        || header(VERSION_HEADER).is_some_and(|version| version >= FIRST_STATELESS_VERSION);
    if stateless || request.method() == Method::DELETE || message["method"] == "initialize" {
        return None;
    }
    header(SESSION_HEADER).map(str::to_owned)
}

fn take_instance_header(parts: &mut ::http::request::Parts, message: &Value) {
    let instance: Option<HeaderValue> = parts.headers.get(INSTANCE_HEADER).cloned();
    if let (Some(instance), false, false) = (instance, parts.headers.contains_key(SESSION_HEADER), message["method"] == "initialize") {
        parts.headers.insert(SESSION_HEADER, instance);
    }
}
