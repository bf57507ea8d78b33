//! A double of the daemon for tests of the binary: it listens, and says what the test tells it to say.
#![allow(dead_code, reason = "each test file uses its part")]

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use serde_json::{Value, json};

const PATIENCE: Duration = Duration::from_secs(20);

/// Directories for one test.
pub(crate) struct Home(pub(crate) tempfile::TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The binary, cut off from this machine's own settings.
    pub(crate) fn tabmux(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tabmux"));
        command.args(args).env_clear().env("HOME", self.path()).env("TABMUX_RUNTIME_DIR", self.path().join("run"));
        command.env("TABMUX_STATE_DIR", self.path().join("state")).env("TABMUX_BROWSER", "fake").env("TABMUX_LISTEN", "off");
        command
    }

    pub(crate) fn double(&self) -> Double {
        let run = self.path().join("run");
        std::fs::create_dir_all(&run).unwrap();
        std::fs::set_permissions(&run, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        Double { listener: UnixListener::bind(run.join("tabmux.sock")).unwrap() }
    }

    pub(crate) fn mcp(&self, args: &[&str]) -> Mcp {
        let mut child =
            self.tabmux(&["mcp"]).args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (said, heard) = mpsc::channel();
        std::thread::spawn(move || {
            stdout.lines().map_while(Result::ok).try_for_each(|line| said.send(serde_json::from_str(&line).unwrap()))
        });
        Mcp { stdin: child.stdin.take(), child, heard }
    }
}

pub(crate) struct Double {
    listener: UnixListener,
}

/// One accepted connection and its first line.
pub(crate) struct Peer {
    reader: BufReader<UnixStream>,
    pub(crate) first: Value,
}

impl Double {
    pub(crate) fn accept(&self) -> Peer {
        let (stream, _) = self.listener.accept().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut peer = Peer { reader: BufReader::new(stream), first: Value::Null };
        peer.first = peer.hear().expect("a first line");
        peer
    }

    /// Somebody looked whether anybody listens, and said nothing.
    pub(crate) fn knocked(&self) {
        drop(self.listener.accept().unwrap());
    }

    /// Accepts a shim or command line and welcomes it.
    pub(crate) fn welcome(&self) -> Peer {
        let mut peer = self.accept();
        assert_eq!(peer.first["tabmux"], 1);
        peer.say(&json!({"tabmux": 1, "welcome": {"version": "0.1.0", "pid": 4_194_303, "read_only_tools": ["list_sessions"]}}));
        peer
    }

    /// Answers one question of the command line.
    pub(crate) fn answer(&self, answer: &Value) -> Value {
        let mut peer = self.welcome();
        let ask = peer.hear().expect("a question");
        let mut answer = answer.clone();
        answer["id"] = ask["id"].clone();
        peer.say(&answer);
        ask
    }
}

impl Peer {
    /// `None` at the end.
    pub(crate) fn hear(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            // A peer that left without reading everything resets the connection.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
            read => read.unwrap(),
        };
        (!line.is_empty()).then(|| serde_json::from_str(&line).unwrap())
    }

    pub(crate) fn say(&mut self, line: &Value) {
        writeln!(self.reader.get_mut(), "{line}").unwrap();
    }

    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) {
        self.reader.get_mut().write_all(bytes).unwrap();
    }
}

/// A running `tabmux mcp`.
pub(crate) struct Mcp {
    pub(crate) child: Child,
    pub(crate) stdin: Option<ChildStdin>,
    heard: Receiver<Value>,
}

impl Mcp {
    pub(crate) fn say(&mut self, line: &Value) {
        self.say_bytes(format!("{line}\n").as_bytes());
    }

    pub(crate) fn say_bytes(&mut self, bytes: &[u8]) {
        self.stdin.as_mut().unwrap().write_all(bytes).unwrap();
    }

    pub(crate) fn hear(&self) -> Value {
        self.heard.recv_timeout(PATIENCE).expect("a line from the shim")
    }

    /// The next line on standard error.
    pub(crate) fn complaint(&mut self) -> String {
        let mut line = String::new();
        BufReader::new(self.child.stderr.as_mut().unwrap()).read_line(&mut line).unwrap();
        line
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

pub(crate) fn call(id: u32, tool: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": tool, "arguments": {}}})
}

pub(crate) fn done(id: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": {"content": []}})
}
