//! The door over real loopback sockets, with requests written by hand and a hub that notes what reaches it.

mod bounds;
mod commands;
mod guard;
mod listen;
mod mcp;

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tabmux_core::{ClientId, Code, Fault, GrantKey, TabNumber};
use tabmux_mcp::{Dispatch, HttpCaller, ToolAnswer, ToolCall};
use tabmux_tools::{Content, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;

use super::*;
use crate::settings::OnConflict;

/// The two there are.
const CAPABILITY: &str = "tmx_given";
const ANOTHER: &str = "tmx_given_too";
const GRANT: GrantKey = GrantKey([7; 32]);

const PATIENCE: Duration = Duration::from_secs(20);

/// A hub that remembers what it was asked. Client numbers are places in `clients`.
#[derive(Default)]
struct TestHub {
    clients: Mutex<Vec<HttpIdentity>>,
    goodbyes: Mutex<Vec<HttpIdentity>>,
    commands: Mutex<Vec<(HttpIdentity, Command)>>,
    /// Sessions that exist, by whom.
    sessions: Mutex<Vec<(HttpIdentity, String)>>,
    /// What `initialize` counts up.
    initialized: AtomicUsize,
    bound: Mutex<Vec<String>>,
    command_began: Notify,
    command_cancelled: Arc<Notify>,
}

impl TestHub {
    fn who(&self, client: ClientId) -> HttpIdentity {
        self.clients.lock().unwrap()[usize::try_from(client.0).unwrap()].clone()
    }

    /// An MCP server in one screen: `initialize` gives an id, DELETE and GET are fine, everything else says who asked and how.
    fn mcp(&self, request: &http::Request<Full<Bytes>>, body: &Value) -> http::Response<ResponseBody> {
        let header = |name: &str| request.headers().get(name).map(|value| value.to_str().unwrap().to_owned());
        let who = self.who(request.extensions().get::<HttpCaller>().unwrap().client);
        let seen = json!({
            "who": format!("{who:?}"), "mcp-session-id": header("mcp-session-id"), "x-instance-id": header("x-instance-id"),
            "authorization": header("authorization"), "body": body,
        });
        let mut response = refusal::json_response(http::StatusCode::OK, &seen);
        if body["method"] == "initialize" {
            let id = format!("mcp-{}", self.initialized.fetch_add(1, Ordering::SeqCst) + 1);
            response.headers_mut().insert("mcp-session-id", id.parse().unwrap());
        }
        if body["method"] == "forgotten" {
            *response.status_mut() = http::StatusCode::NOT_FOUND;
        }
        response
    }
}

impl Dispatch for TestHub {
    fn call(&self, _: ToolCall) -> BoxFuture<'_, ToolAnswer> {
        unreachable!("the door itself never calls tools")
    }
}

impl Backend for TestHub {
    fn http_client(&self, who: HttpIdentity) -> ClientId {
        let mut clients = self.clients.lock().unwrap();
        let place = clients.iter().position(|known| *known == who).unwrap_or_else(|| {
            clients.push(who);
            clients.len() - 1
        });
        ClientId(place as u64)
    }

    fn goodbye(&self, who: HttpIdentity) -> BoxFuture<'_, ()> {
        self.goodbyes.lock().unwrap().push(who);
        Box::pin(async {})
    }

    fn health(&self) -> Health {
        Health { sessions: 3, extension_connected: true }
    }

    fn command(
        &self,
        client: ClientId,
        command: Command,
        cancel: tokio_util::sync::CancellationToken,
    ) -> BoxFuture<'_, Result<CommandAnswer, CommandRefusal>> {
        Box::pin(async move {
            self.commands.lock().unwrap().push((self.who(client), command.clone()));
            match (command.tool.as_str(), command.tab) {
                (_, Some(TabNumber(42))) => Err(CommandRefusal::ForeignTab),
                ("fail", _) => Err(Fault::new(Code::StaleEpoch, "Changed hands.", "Take it back.").into()),
                ("hang", _) => {
                    let cancelled = Arc::clone(&self.command_cancelled);
                    tokio::spawn(async move {
                        cancel.cancelled().await;
                        cancelled.notify_one();
                    });
                    self.command_began.notify_one();
                    futures::future::pending().await
                }
                _ => {
                    let result = json!({"tabId": "t1", "title": "T"}).as_object().unwrap().clone();
                    let content = vec![Content::Text("Done.".into())];
                    let reply = Reply { content, result, structured: None };
                    Ok(CommandAnswer { tab: Some(TabNumber(7)), url: Some("http://a/".into()), reply })
                }
            }
        })
    }

    fn has_session(&self, who: &HttpIdentity, session: &str) -> bool {
        self.sessions.lock().unwrap().contains(&(who.clone(), session.to_owned()))
    }

    fn holder(&self, capability: &str) -> Option<GrantKey> {
        [(CAPABILITY, GRANT), (ANOTHER, GrantKey([8; 32]))].into_iter().find(|(known, _)| *known == capability).map(|(_, grant)| grant)
    }
}

impl RememberSessions for TestHub {
    fn bound(&self, id: &str, owner: &SessionOwner) -> BoxFuture<'_, ()> {
        self.bound.lock().unwrap().push(format!("+{id} {owner}"));
        Box::pin(async {})
    }

    fn unbound(&self, id: &str) {
        self.bound.lock().unwrap().push(format!("-{id}"));
    }
}

/// A door on a port of its own.
struct TestDoor {
    addr: SocketAddr,
    hub: Arc<TestHub>,
    tokens: Arc<Tokens>,
    main: String,
    door: HttpDoor,
    ct: CancellationToken,
    _state: tempfile::TempDir,
}

/// An answer as it was read.
#[derive(Debug)]
struct Answer {
    status: u16,
    headers: String,
    body: Value,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        let mut lines = self.headers.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    fn code(&self) -> &str {
        self.body["error"]["code"].as_str().unwrap_or_else(|| panic!("no code in {self:?}"))
    }
}

fn listen_on(port: u16) -> Listen {
    Listen { addr: Some(SocketAddr::from(([127, 0, 0, 1], port))), also: Vec::new(), on_conflict: OnConflict::Refuse }
}

impl TestDoor {
    async fn open() -> Self {
        Self::with(Bounds::default(), &[]).await
    }

    async fn with(bounds: Bounds, remembered: &[(&str, SessionOwner)]) -> Self {
        let state = tempfile::tempdir().unwrap();
        let tokens = Arc::new(Tokens::open(state.path()).unwrap());
        let main = std::fs::read_to_string(state.path().join("token")).unwrap().trim_end().to_owned();
        let (hub, ct) = (Arc::new(TestHub::default()), CancellationToken::new());
        let remembered = remembered.iter().map(|(id, owner)| ((*id).to_owned(), owner.clone()));
        let behind = Behind {
            backend: Arc::<TestHub>::clone(&hub),
            tokens: Arc::clone(&tokens),
            sessions: Arc::new(HttpSessionsTable::new(remembered, Arc::<TestHub>::clone(&hub))),
            mcp: mcp_service(&hub),
        };
        let door = HttpDoor::start(&listen_on(0), behind, bounds, ct.clone()).await.unwrap().unwrap();
        Self { addr: door.addr, hub, tokens, main, door, ct, _state: state }
    }

    /// Sends the request line and headers given, with Host and the main token unless they are given, and reads the answer.
    async fn send(&self, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let given = |name: &str| headers.iter().any(|(key, _)| key.eq_ignore_ascii_case(name));
        let mut text = format!("{line} HTTP/1.1\r\nConnection: close\r\n");
        if !given("host") {
            text += &format!("Host: {}\r\n", self.addr);
        }
        if !given("authorization") {
            text += &format!("Authorization: Bearer {}\r\n", self.main);
        }
        if !given("content-length") && !body.is_empty() {
            text += &format!("Content-Length: {}\r\n", body.len());
        }
        if !given("content-type") && !body.is_empty() {
            text += "Content-Type: application/json\r\n";
        }
        for (key, value) in headers.iter().filter(|(_, value)| *value != LEFT_OUT) {
            text += &format!("{key}: {value}\r\n");
        }
        self.raw(&format!("{text}\r\n{body}")).await
    }

    async fn raw(&self, text: &str) -> Answer {
        let mut stream = TcpStream::connect(self.addr).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        read_answer(&mut stream).await
    }

    async fn initialize(&self, path: &str, token: &str) -> String {
        let token = format!("Bearer {token}");
        let answer = self.send(&format!("POST {path}"), &[("Authorization", &token)], r#"{"method":"initialize"}"#).await;
        answer.header("mcp-session-id").unwrap_or_else(|| panic!("{answer:?}")).to_owned()
    }
}

/// As a header's value: do not send it at all.
const LEFT_OUT: &str = "\0left out";

fn mcp_service(hub: &Arc<TestHub>) -> McpService {
    let hub = Arc::clone(hub);
    Arc::new(move |request| {
        let hub = Arc::clone(&hub);
        Box::pin(async move {
            let (head, body) = request.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&bytes).unwrap_or(Value::Null);
            hub.mcp(&http::Request::from_parts(head, Full::default()), &body)
        })
    })
}

async fn read_answer(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("an answer in time").unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let (headers, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer in {text:?}"));
    let status = headers.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, headers: headers.to_owned(), body: serde_json::from_str(body).unwrap_or(Value::Null) }
}
