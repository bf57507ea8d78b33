//! An MCP client over a real `tabmux mcp` process. Requests can be sent ahead of their replies; every read has
//! a deadline; a line that is no JSON-RPC message fails the test, because stdout is the wire.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Lab, SOON, until};

pub struct Mcp {
    child: Mutex<Child>,
    input: Mutex<Option<ChildStdin>>,
    inbox: Mutex<Inbox>,
    next_id: Mutex<u64>,
    pid: u32,
}

struct Inbox {
    lines: Receiver<String>,
    replies: HashMap<String, Value>,
    notifications: Vec<Value>,
    /// Ids in the order their replies came.
    order: Vec<String>,
}

/// The answer to a tool call.
#[derive(Clone, Debug)]
pub struct Reply(pub Value);

impl Mcp {
    pub fn start(lab: &Lab, command: &mut Command) -> Self {
        let mut child = lab.spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
        let output = child.stdout.take().expect("stdout is piped");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { break };
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        let input = Mutex::new(child.stdin.take());
        let inbox = Inbox { lines, replies: HashMap::new(), notifications: Vec::new(), order: Vec::new() };
        let pid = child.id();
        Self { child: Mutex::new(child), input, inbox: Mutex::new(inbox), next_id: Mutex::new(0), pid }
    }

    pub fn pid(&self) -> u32 {
        self.pid
    }

    pub fn initialize(&self) -> Value {
        self.initialize_as("2025-11-25")
    }

    pub fn initialize_as(&self, version: &str) -> Value {
        let parameters = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "e2e", "version": "0"}});
        let id = self.send("initialize", &parameters);
        let reply = self.reply(&id, Duration::from_secs(60));
        assert!(reply.get("result").is_some(), "initialize: {reply}");
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        reply["result"].clone()
    }

    /// Sends a request under the next number.
    pub fn send(&self, method: &str, parameters: &Value) -> Value {
        let id = {
            let mut next = self.next_id.lock().unwrap();
            *next += 1;
            json!(*next)
        };
        self.send_as(&id, method, parameters);
        id
    }

    pub fn send_as(&self, id: &Value, method: &str, parameters: &Value) {
        self.write(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters}));
    }

    pub fn write(&self, message: &Value) {
        self.write_bytes(format!("{message}\n").as_bytes());
    }

    pub fn write_bytes(&self, bytes: &[u8]) {
        let mut input = self.input.lock().unwrap();
        let input = input.as_mut().expect("stdin is open");
        input.write_all(bytes).expect("the shim reads its stdin");
        input.flush().expect("the shim reads its stdin");
    }

    /// The reply to the id, whatever else comes first.
    pub fn reply(&self, id: &Value, deadline: Duration) -> Value {
        self.try_reply(id, deadline).unwrap_or_else(|why| panic!("no reply to {id}: {why}"))
    }

    pub fn try_reply(&self, id: &Value, deadline: Duration) -> Result<Value, String> {
        let ends = Instant::now() + deadline;
        let key = id.to_string();
        let mut inbox = self.inbox.lock().unwrap();
        loop {
            if let Some(reply) = inbox.replies.remove(&key) {
                return Ok(reply);
            }
            let left = ends.saturating_duration_since(Instant::now());
            let line = inbox.lines.recv_timeout(left).map_err(|error| error.to_string())?;
            inbox.take_in(&line);
        }
    }

    /// The reply to a request, or nothing where the peer is gone. A peer that lives and says nothing fails the test.
    pub fn ask(&self, method: &str, parameters: &Value) -> Option<Value> {
        let id = json!(format!("ask-{}", self.order().len()));
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        self.input.lock().unwrap().as_mut()?.write_all(format!("{request}\n").as_bytes()).ok()?;
        let mut inbox = self.inbox.lock().unwrap();
        loop {
            if let Some(reply) = inbox.replies.remove(&id.to_string()) {
                return Some(reply);
            }
            match inbox.lines.recv_timeout(SOON) {
                Ok(line) => inbox.take_in(&line),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => panic!("no reply to {request}"),
            }
        }
    }

    /// Takes in what comes until nothing has come for the given time.
    pub fn take_in_until_quiet(&self, quiet: Duration) {
        let mut inbox = self.inbox.lock().unwrap();
        while let Ok(line) = inbox.lines.recv_timeout(quiet) {
            inbox.take_in(&line);
        }
    }

    /// Starts a tool call without waiting.
    pub fn start_call(&self, tool: &str, arguments: &Value) -> Value {
        self.send("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    pub fn finish_call(&self, id: &Value, deadline: Duration) -> Reply {
        Reply(self.reply(id, deadline))
    }

    pub fn call(&self, tool: &str, arguments: &Value) -> Reply {
        let id = self.start_call(tool, arguments);
        self.finish_call(&id, SOON)
    }

    /// A call that must succeed.
    pub fn ok(&self, tool: &str, arguments: &Value) -> Reply {
        let reply = self.call(tool, arguments);
        assert!(!reply.failed(), "{tool} {arguments}: {}", reply.0);
        reply
    }

    /// A call that must fail with the code; gives its text.
    pub fn fails(&self, tool: &str, arguments: &Value, code: &str) -> String {
        let reply = self.call(tool, arguments);
        assert_eq!(reply.code(), code, "{tool} {arguments}: {}", reply.0);
        reply.text()
    }

    /// The names of the caller's sessions.
    pub fn sessions(&self) -> Vec<String> {
        let list = self.ok("list_sessions", &json!({})).structured();
        let sessions = list["sessions"].as_array().unwrap_or_else(|| panic!("sessions: {list}")).clone();
        sessions.iter().map(|session| session["sessionId"].as_str().expect("a name").to_owned()).collect()
    }

    /// Ids in the order their replies have come so far.
    pub fn order(&self) -> Vec<String> {
        self.inbox.lock().unwrap().order.clone()
    }

    pub fn notifications(&self) -> Vec<Value> {
        self.inbox.lock().unwrap().notifications.clone()
    }

    /// Ends the input, as a client does that exits.
    pub fn close_input(&self) {
        drop(self.input.lock().unwrap().take());
    }

    pub fn wait_exit(&self, deadline: Duration) -> ExitStatus {
        until("the shim exits", deadline, || self.child.lock().unwrap().try_wait().expect("our own child"))
    }

    pub fn is_running(&self) -> bool {
        self.child.lock().unwrap().try_wait().expect("our own child").is_none()
    }
}

impl Inbox {
    fn take_in(&mut self, line: &str) {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("stdout is the wire, but there is: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "stdout is the wire, but there is: {line}");
        match message.get("id") {
            // An error about a line whose id could not be read has none, and may come again.
            Some(id) if message.get("method").is_none() && !id.is_null() => {
                let key = id.to_string();
                self.order.push(key.clone());
                let twice = self.replies.insert(key, message);
                assert!(twice.is_none(), "answered twice: {line}");
            }
            _ => self.notifications.push(message),
        }
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.close_input();
        let mut child = self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let _ = child.kill();
        let _ = child.wait();
    }
}

impl Reply {
    pub fn failed(&self) -> bool {
        self.0.get("error").is_some() || self.0["result"]["isError"] == json!(true)
    }

    /// Everything an agent reads.
    pub fn text(&self) -> String {
        let content = self.0["result"]["content"].as_array().cloned().unwrap_or_default();
        content.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
    }

    /// The stable code of a failed call, empty when it did not fail.
    pub fn code(&self) -> String {
        self.0["result"]["_meta"]["tabmux/error"]["code"].as_str().unwrap_or_default().to_owned()
    }

    /// The data for programs.
    pub fn result(&self) -> Value {
        self.0["result"]["_meta"]["tabmux/result"].clone()
    }

    pub fn structured(&self) -> Value {
        self.0["result"]["structuredContent"].clone()
    }
}
