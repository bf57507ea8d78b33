//! The conformance fixtures on a free loopback port, for the official MCP conformance suite; prints the port.
//! With `--stdio`, the same on stdin and stdout, for the SDKs' stdio clients.

#![allow(clippy::print_stdout, reason = "the port is this program's result")]

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value};
use tabmux_core::{ClientId, Code, Fault};
use tabmux_mcp::{
    Catalog, Dispatch, Fixtures, Handler, HttpCaller, HttpDoor, HttpSessions, SessionStoreError, ToolAnswer, ToolCall, open_lines,
    serve_lines,
};
use tabmux_wire::lines::LineReader;
use tokio::io::BufReader;
use tokio_util::sync::CancellationToken;

struct NoTools;

impl Dispatch for NoTools {
    fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>> {
        let fault = Fault::new(Code::Unsupported, format!("{} is not here.", call.tool), "Call a fixture.");
        Box::pin(async { ToolAnswer { outcome: Err(fault), result: Map::new() } })
    }
}

#[derive(Default)]
struct InMemory(Mutex<HashMap<String, Value>>);

#[async_trait]
impl HttpSessions for InMemory {
    async fn load(&self, id: &str) -> Result<Option<Value>, SessionStoreError> {
        Ok(self.0.lock().expect("no holder panics").get(id).cloned())
    }

    async fn store(&self, id: &str, initialize: Value) -> Result<(), SessionStoreError> {
        self.0.lock().expect("no holder panics").insert(id.to_owned(), initialize);
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        self.0.lock().expect("no holder panics").remove(id);
        Ok(())
    }
}

/// What the daemon's door does before it lets a request through: only loopback names as Host and Origin.
fn comes_from_here(headers: &HeaderMap) -> bool {
    let host_of = |value: &str| {
        let authority = value.rsplit("//").next().unwrap_or(value);
        authority.rsplit_once(':').filter(|(_, port)| port.parse::<u16>().is_ok()).map_or(authority, |(host, _)| host).to_owned()
    };
    let is_loopback = |value: &header::HeaderValue| {
        let host = value.to_str().map(host_of).unwrap_or_default();
        ["localhost", "127.0.0.1", "[::1]"].contains(&host.as_str())
    };
    headers.get(header::HOST).is_some_and(is_loopback) && headers.get(header::ORIGIN).is_none_or(is_loopback)
}

async fn serve(State(door): State<HttpDoor>, mut request: Request) -> Response {
    if !comes_from_here(request.headers()) {
        return StatusCode::FORBIDDEN.into_response();
    }
    request.extensions_mut().insert(HttpCaller { client: ClientId(0) });
    door.handle(request).await.into_response()
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let ct = CancellationToken::new();
    if std::env::args().any(|argument| argument == "--stdio") {
        let handler = Handler::new(Arc::new(NoTools), Catalog::new(Vec::new()), ClientId(0)).with_fixtures(Fixtures::Conformance);
        let lines = LineReader::new(BufReader::new(tokio::io::stdin()), tabmux_wire::MAX_FRAME_BYTES);
        let (transport, _sender) = open_lines(lines, tokio::io::stdout());
        serve_lines(handler, transport, None, ct).await;
        return Ok(());
    }
    let door = HttpDoor::new(Arc::new(NoTools), Catalog::new(Vec::new()), Fixtures::Conformance, Arc::new(InMemory::default()), ct);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    println!("{}", listener.local_addr()?.port());
    axum::serve(listener, Router::new().fallback(serve).with_state(door)).await
}
