//! What the tests of both doors share: a dispatch that does what its tool's name says, and the list of those tools.

#![allow(dead_code, reason = "each test program uses a part of it")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tabmux_core::{Code, Fault};
use tabmux_mcp::{Catalog, Dispatch, ToolAnswer, ToolCall, ToolListing};
use tabmux_tools::{Content, Level, Reply};
use tokio::sync::{Notify, mpsc};

/// No test waits longer for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// What a dispatch saw.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Started,
    Cancelled,
    Finished,
}

pub(crate) struct Acting {
    pub(crate) seen: mpsc::UnboundedSender<Seen>,
    /// Lets a `wait` call finish.
    pub(crate) go: Arc<Notify>,
}

pub(crate) fn acting() -> (Arc<Acting>, mpsc::UnboundedReceiver<Seen>) {
    let (seen, sights) = mpsc::unbounded_channel();
    (Arc::new(Acting { seen, go: Arc::default() }), sights)
}

impl Dispatch for Acting {
    fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>> {
        Box::pin(async move {
            let facts = json!({ "client": call.client.0, "clientName": call.client_name, "agent": call.agent });
            let Value::Object(result) = facts else { unreachable!("it is an object") };
            let outcome = match call.tool.as_str() {
                "echo" => Ok(said(Value::Object(call.args).to_string())),
                "big" => Ok(said("x".repeat(usize::try_from(call.args["bytes"].as_u64().unwrap()).unwrap()))),
                "panic" => panic!("this call was asked to panic"),
                "fail" => Err(Fault::new(Code::SessionRequired, "No session: none active.", "Call navigate.")),
                "wait" => self.wait(&call).await,
                other => unreachable!("{other} is not in the list"),
            };
            ToolAnswer { outcome, result }
        })
    }
}

impl Acting {
    async fn wait(&self, call: &ToolCall) -> Result<Reply, Fault> {
        self.seen.send(Seen::Started).unwrap();
        tokio::select! {
            () = call.cancel.cancelled() => {
                self.seen.send(Seen::Cancelled).unwrap();
                Err(Fault::new(Code::Cancelled, "Cancelled.", ""))
            }
            () = self.go.notified() => {
                self.seen.send(Seen::Finished).unwrap();
                Ok(said("waited".into()))
            }
        }
    }
}

fn said(text: String) -> Reply {
    Reply { content: vec![Content::Text(text)], result: Map::new(), structured: None }
}

pub(crate) fn catalog() -> Catalog {
    let listing = |name: &str| ToolListing {
        name: name.into(),
        description: format!("Does {name}."),
        schema: json!({ "type": "object", "properties": {} }),
        read_only: name == "echo",
        level: if name == "fail" { Level::Slim } else { Level::Core },
    };
    Catalog::new(["wait", "echo", "big", "panic", "fail"].map(listing).into())
}

pub(crate) async fn soon<T>(what: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, what).await.expect("it came in time")
}

pub(crate) fn initialize(id: impl Into<Value>, version: &str) -> Value {
    let params = initialize_params(version);
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "initialize", "params": params })
}

pub(crate) fn initialize_params(version: &str) -> Value {
    json!({ "protocolVersion": version, "capabilities": {}, "clientInfo": { "name": "Cursor", "version": "1" } })
}

pub(crate) fn call(id: impl Into<Value>, tool: &str, arguments: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id.into(), "method": "tools/call", "params": { "name": tool, "arguments": arguments } })
}

/// The same request as 2026-07-28 wants it.
pub(crate) fn in_new_era(mut request: Value) -> Value {
    request["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": { "name": "Inspector", "version": "1" },
    });
    request
}

pub(crate) fn text_of(reply: &Value) -> &str {
    reply["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {reply}"))
}
