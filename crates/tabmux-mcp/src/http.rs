//! MCP over streamable HTTP, both eras: sessions by `mcp-session-id` up to 2025-11-25, none from 2026-07-28 on.
//! Host, Origin, tokens and who the caller is are deliberately absent: the daemon's door checks them first and
//! leaves an `HttpCaller` in the request's extensions.

mod answering;
mod body;
mod comeback;
mod sessions;

use std::convert::Infallible;
use std::fmt::{self, Display};
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use ::http::{HeaderValue, Method, Request, Response, StatusCode};
use ::http_body::Body;
use bytes::Bytes;
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::SessionManager;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use answering::Answering;
pub use body::check_body;
use comeback::{Comeback, Comebacks};
pub use sessions::{HttpSessions, SessionStoreError};

use crate::Dispatch;
use crate::catalog::Catalog;
use crate::handler::{Fixtures, Handler};

/// The body of every answer.
pub type ResponseBody = BoxBody<Bytes, Infallible>;

/// rmcp forgets an old-era session that long after its last message, calls that still run included; so this is
/// longer than any call. A forgotten session comes back from the store with its next request.
const FORGET_AFTER: Duration = Duration::from_secs(15 * 60);

/// How many old-era sessions rmcp may have in memory; forgotten ones do not count.
const MOST_SESSIONS: usize = 10_000;

/// An `initialize` is kept in memory and in the journal for as long as its client may come back.
const LARGEST_INITIALIZE: usize = 64 * 1024;

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
    comebacks: Comebacks,
    answering: Answering,
}

impl fmt::Debug for HttpDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
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
        Self { service, sessions, comebacks: Comebacks::default(), answering: Answering::default() }
    }

    /// Answers one request. Dropping the future, or the body of its answer, cancels a call of the new era; in the old
    /// era a lost connection is no cancel (2025-06-18, "Sending Messages to the Server").
    pub fn handle<B>(&self, request: Request<B>) -> Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send + '_>>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        // Boxed, because rmcp's own future takes some 16 kB.
        Box::pin(self.answer(request))
    }

    async fn answer<B>(&self, request: Request<B>) -> Response<ResponseBody>
    where
        B: Body + Send + 'static,
        B::Data: Send,
        B::Error: Display,
    {
        let (mut parts, body) = request.into_parts();
        let (mut bytes, mut message) = (Bytes::new(), Value::Null);
        // What is not declared to be JSON is left to rmcp to refuse (406, 415), unread.
        if parts.method == Method::POST && body::is_json(&parts.headers) {
            body::mark_as_json(&mut parts.headers);
            let checked = body::collect(body).await.and_then(|bytes| check_body(&bytes).map(|message| (bytes, message)));
            match checked {
                Ok(checked) => (bytes, message) = checked,
                Err(refusal) => return *refusal,
            }
        }
        if message["method"] == "initialize" && bytes.len() > LARGEST_INITIALIZE {
            return *body::initialize_too_large(&message["id"], bytes.len(), LARGEST_INITIALIZE);
        }
        if message["method"] == "initialize" && self.sessions.sessions.read().await.len() >= MOST_SESSIONS {
            return *body::too_many_sessions(&message["id"]);
        }
        take_instance_header(&mut parts, &message);
        let method = parts.method.clone();
        let mut request = Request::from_parts(parts, Full::new(bytes));
        let response = match old_era_session(&request, &message) {
            Some(session) => {
                if is_request(&message) {
                    let Some(underway) = self.answering.begin(&session, &message["id"]) else {
                        return *body::still_answered(&message["id"]);
                    };
                    request.extensions_mut().insert(Arc::new(underway));
                }
                self.handle_in_session(&session, request).await
            }
            None => goodbye_as_clients_expect(&method, self.service.handle(request).await),
        };
        if response.status().is_client_error() || response.status().is_server_error() {
            return body::with_code(&message["id"], response).await;
        }
        response
    }

    async fn handle_in_session(&self, id: &str, request: Request<Full<Bytes>>) -> Response<ResponseBody> {
        let id: Arc<str> = id.into();
        let response = self.handle_when_there(&id, request.clone()).await;
        if response.status() != StatusCode::INTERNAL_SERVER_ERROR {
            return response;
        }
        // rmcp was just forgetting this session and did not take the request. Somebody else may have brought it back since.
        let comeback = self.comebacks.take(&id).await;
        let response = self.service.handle(request.clone()).await;
        if response.status() != StatusCode::INTERNAL_SERVER_ERROR {
            return response;
        }
        if let Err(error) = self.sessions.close_session(&id).await {
            tracing::warn!(%error, "an HTTP session could not be closed");
        }
        self.bring_back(comeback, request).await
    }

    async fn handle_when_there(&self, id: &Arc<str>, request: Request<Full<Bytes>>) -> Response<ResponseBody> {
        if self.is_open(id).await && !self.comebacks.is_underway(id) {
            return self.service.handle(request).await;
        }
        let comeback = self.comebacks.take(id).await;
        if self.is_open(id).await {
            drop(comeback);
            return self.service.handle(request).await;
        }
        self.bring_back(comeback, request).await
    }

    /// rmcp restores a session it does not know with its first request, and answers as soon as the call is on its way. On a task
    /// of its own: a client that goes away must not leave it half restored.
    async fn bring_back(&self, comeback: Comeback, request: Request<Full<Bytes>>) -> Response<ResponseBody> {
        let service = self.service.clone();
        let restoring = tokio::spawn(async move {
            let response = service.handle(request).await;
            drop(comeback);
            response
        });
        restoring.await.unwrap_or_else(|error| {
            tracing::error!(%error, "bringing an HTTP session back ended in a defect");
            let mut refusal = Response::new(ResponseBody::default());
            *refusal.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            refusal
        })
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

/// Something that is answered: no notification, no answer, no GET.
fn is_request(message: &Value) -> bool {
    message.get("id").is_some() && message.get("method").is_some()
}

/// rmcp answers a DELETE with 202, which Python's client reports as a failure; 200 and 204 are what it takes.
fn goodbye_as_clients_expect(method: &Method, mut response: Response<ResponseBody>) -> Response<ResponseBody> {
    if method == Method::DELETE && response.status() == StatusCode::ACCEPTED {
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

fn take_instance_header(parts: &mut ::http::request::Parts, message: &Value) {
    let instance: Option<HeaderValue> = parts.headers.get(INSTANCE_HEADER).cloned();
    if let (Some(instance), false, false) = (instance, parts.headers.contains_key(SESSION_HEADER), message["method"] == "initialize") {
        parts.headers.insert(SESSION_HEADER, instance);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HttpCaller, ToolAnswer, ToolCall};
    use async_trait::async_trait;
    use http_body_util::BodyExt;
    use rmcp::transport::streamable_http_server::session::RestoreOutcome;
    use rmcp::transport::streamable_http_server::session::local::create_local_session;
    use serde_json::json;
    use tabmux_core::ClientId;

    struct NoTools;

    impl Dispatch for NoTools {
        fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>> {
            unreachable!("nobody calls {}", call.tool)
        }
    }

    /// Every id is known.
    struct AllKnown;

    #[async_trait]
    impl HttpSessions for AllKnown {
        async fn load(&self, _: &str) -> Result<Option<Value>, SessionStoreError> {
            Ok(Some(json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } })))
        }

        async fn store(&self, _: &str, _: Value) -> Result<(), SessionStoreError> {
            Ok(())
        }

        async fn delete(&self, _: &str) -> Result<(), SessionStoreError> {
            Ok(())
        }
    }

    fn door() -> HttpDoor {
        HttpDoor::new(Arc::new(NoTools), Catalog::new(Vec::new()), Fixtures::None, Arc::new(AllKnown), CancellationToken::new())
    }

    /// What rmcp's map holds while a session is being forgotten: a handle without a worker.
    async fn add_dying_session(door: &HttpDoor, id: &str) {
        let (handle, worker) = create_local_session(id, door.sessions.session_config.clone());
        drop(worker);
        door.sessions.sessions.write().await.insert(id.into(), handle);
    }

    fn post(id: Option<&str>, message: &Value) -> Request<Full<Bytes>> {
        let mut request = Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        if let Some(id) = id {
            request = request.header(SESSION_HEADER, id);
        }
        request.extension(HttpCaller { client: ClientId(1) }).body(Full::new(message.to_string().into())).unwrap()
    }

    #[tokio::test]
    async fn a_request_that_meets_a_session_being_forgotten_is_served_all_the_same() {
        let door = door();
        add_dying_session(&door, "a").await;
        let response = door.handle(post(Some("a"), &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }))).await;
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.into_body().collect().await.unwrap().to_bytes();
        assert!(String::from_utf8_lossy(&body).contains("\"tools\":[]"), "{body:?}");
    }

    fn initialize() -> Value {
        let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "x", "version": "1" } });
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params })
    }

    /// S1.41: rmcp lists a session that it restores before it has shaken hands with it; anything else that came first would end it.
    #[tokio::test]
    async fn a_request_waits_until_its_session_is_wholly_back() {
        let door = door();
        let id: Arc<str> = "a".into();
        let comeback = door.comebacks.take(&id).await;
        let Ok(RestoreOutcome::Restored(transport)) = door.sessions.restore_session(id.clone()).await else { panic!("it was not there") };
        let served = Handler::for_http(Arc::new(NoTools), Catalog::new(Vec::new()));
        let serving = tokio::spawn(async move { rmcp::serve_server(served, transport).await });

        let early = tokio::spawn({
            let (door, request) = (door.clone(), post(Some("a"), &json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })));
            async move { door.handle(request).await }
        });
        // On this one thread it goes as far as it can.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }
        let message = |value: Value| serde_json::from_value(value).unwrap();
        door.sessions.initialize_session(&id, message(initialize())).await.unwrap();
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        door.sessions.accept_message(&id, message(initialized)).await.unwrap();
        let service = serving.await.unwrap().unwrap();
        assert!(!early.is_finished());
        drop(comeback);
        assert_eq!(early.await.unwrap().status(), StatusCode::OK);
        drop(service);
    }

    #[tokio::test]
    async fn an_initialize_that_is_too_large_to_keep_is_refused_with_its_code() {
        let params =
            |name: String| json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": name, "version": "1" } });
        let initialize =
            |size| post(None, &json!({ "jsonrpc": "2.0", "id": 7, "method": "initialize", "params": params("x".repeat(size)) }));
        assert_eq!(door().handle(initialize(60_000)).await.status(), StatusCode::OK);
        let refused = door().handle(initialize(66_000)).await;
        assert_eq!(refused.status(), StatusCode::PAYLOAD_TOO_LARGE);
        let body: Value = serde_json::from_slice(&refused.into_body().collect().await.unwrap().to_bytes()).unwrap();
        assert_eq!((&body["id"], &body["error"]["data"]["code"]), (&json!(7), &json!("frame_too_large")), "{body}");
    }

    #[tokio::test]
    async fn initialising_without_end_is_refused_with_its_code() {
        let door = door();
        for number in 0..MOST_SESSIONS {
            add_dying_session(&door, &number.to_string()).await;
        }
        let response = door.handle(post(None, &initialize())).await;
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
    }
}
