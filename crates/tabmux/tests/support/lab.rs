//! A private daemon's home: its own runtime and state directories, a fake browser, a free port. When it is
//! dropped the daemon is stopped, and the test fails if anything is left of it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::time::Duration;

use serde_json::{Value, json};

use super::{Door, Http, Mcp, SOON, process, until};

#[derive(Debug)]
pub struct Lab {
    directory: tempfile::TempDir,
    variables: Vec<(String, String)>,
    /// Processes the test itself started; every other one of this home is a daemon.
    started: Mutex<Vec<u32>>,
}

/// What a command printed and how it ended.
#[derive(Debug)]
pub struct Printed {
    pub code: i32,
    pub stdout: String,
    pub stderr: String,
}

impl Lab {
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// With further `TABMUX_…` variables for every process of this home.
    pub fn with(variables: &[(&str, &str)]) -> Self {
        // Short, because a socket's path may have 107 characters.
        let directory = tempfile::Builder::new().prefix("tm").tempdir_in("/tmp").expect("/tmp is writable");
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { directory, variables, started: Mutex::default() }
    }

    /// With the browser that is installed here, found as for any user.
    pub fn real() -> Self {
        Self::with(&[("TABMUX_BROWSER", "")])
    }

    /// One more variable for every process that is started from now on.
    pub fn set(&mut self, name: &str, value: &str) {
        self.variables.push((name.to_owned(), value.to_owned()));
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn runtime_dir(&self) -> PathBuf {
        self.variable("TABMUX_RUNTIME_DIR").map_or_else(|| self.path().join("run"), PathBuf::from)
    }

    pub fn state_dir(&self) -> PathBuf {
        self.variable("TABMUX_STATE_DIR").map_or_else(|| self.path().join("state"), PathBuf::from)
    }

    pub fn socket(&self) -> PathBuf {
        self.runtime_dir().join("tabmux.sock")
    }

    fn variable(&self, wanted: &str) -> Option<&str> {
        self.variables.iter().rfind(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    }

    /// The binary with this home's environment and nothing of ours.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tabmux"));
        command.args(arguments);
        self.environment(&mut command);
        command
    }

    pub fn environment(&self, command: &mut Command) {
        command.env_clear().env("HOME", self.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs([("TABMUX_BROWSER", "fake"), ("TABMUX_LISTEN", "127.0.0.1:0")]);
        command.env("TABMUX_RUNTIME_DIR", self.path().join("run")).env("TABMUX_STATE_DIR", self.path().join("state"));
        command.envs(self.variables.iter().map(|(name, value)| (name, value)));
        if self.variable("TABMUX_BROWSER") == Some("") {
            command.env_remove("TABMUX_BROWSER");
        }
        // cargo llvm-cov and friends write where this says.
        if let Some(profile) = std::env::var_os("LLVM_PROFILE_FILE") {
            command.env("LLVM_PROFILE_FILE", profile);
        }
    }

    /// Starts a process and remembers that it is not a daemon.
    pub fn spawn(&self, command: &mut Command) -> Child {
        let child = command.spawn().unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        self.started.lock().unwrap().push(child.id());
        child
    }

    /// Runs a command to its end.
    pub fn run(&self, arguments: &[&str]) -> Printed {
        self.run_command(&mut self.command(arguments))
    }

    pub fn run_command(&self, command: &mut Command) -> Printed {
        self.run_within(command, Duration::from_secs(60))
    }

    pub fn run_within(&self, command: &mut Command, deadline: Duration) -> Printed {
        let mut child = self.spawn(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
        let stderr = read_aside(child.stderr.take().expect("stderr is piped"));
        let stdout = read_aside(child.stdout.take().expect("stdout is piped"));
        let status = until(&format!("{command:?} ends"), deadline, || child.try_wait().expect("our own child"));
        let text =
            |bytes: std::thread::JoinHandle<Vec<u8>>| String::from_utf8(bytes.join().expect("reads to the end")).expect("prints UTF-8");
        Printed { code: status.code().unwrap_or(-1), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Runs a command that must succeed and gives its one JSON document.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let printed = self.run(arguments);
        assert_eq!(printed.code, 0, "{arguments:?}: {printed:?}");
        printed.json()
    }

    /// A new `tabmux mcp`, not yet initialized.
    pub fn client(&self) -> Mcp {
        self.client_with(&["mcp"])
    }

    pub fn client_with(&self, arguments: &[&str]) -> Mcp {
        Mcp::start(self, &mut self.command(arguments))
    }

    /// A client that has said hello.
    pub fn ready_client(&self) -> Mcp {
        let client = self.client();
        client.initialize();
        client
    }

    pub fn status(&self) -> Value {
        self.json(&["status", "--json"])
    }

    /// The same of a daemon that surely runs, without starting a process.
    pub fn glance(&self) -> Value {
        let mut door = Door::open(&self.socket());
        door.ask(&json!({"tabmux": 1, "hello": {"role": "cli", "program": "e2e", "pid": std::process::id()}}));
        door.ask(&json!({"id": 1, "do": "status"}))["ok"].clone()
    }

    pub fn daemon_pid(&self) -> u32 {
        let status = self.status();
        let pid = status["pid"].as_u64().unwrap_or_else(|| panic!("status has a pid: {status}"));
        u32::try_from(pid).expect("pids are small")
    }

    /// Every process of this home that the test did not start itself.
    pub fn daemons(&self) -> Vec<u32> {
        let started = self.started.lock().unwrap();
        process::of_runtime_dir(&self.runtime_dir()).into_iter().filter(|pid| !started.contains(pid)).collect()
    }

    /// The HTTP door with the operator's token.
    pub fn http(&self) -> Http {
        let status = self.status();
        let port = status["listen"]["port"].as_u64().unwrap_or_else(|| panic!("the HTTP door listens: {status}"));
        let token = std::fs::read_to_string(self.state_dir().join("token")).expect("the token file is there");
        Http::new(u16::try_from(port).expect("a port"), token.trim())
    }

    /// Stops the daemon and proves that nothing is left.
    pub fn stop(&self) {
        let printed = self.run(&["stop"]);
        assert_eq!(printed.code, 0, "stop: {printed:?}");
        self.assert_nothing_left();
    }

    pub fn assert_nothing_left(&self) {
        let running = || self.daemons().iter().map(|pid| format!("{pid} {}", process::command_line(*pid))).collect::<Vec<_>>();
        until(&format!("no daemon is left: {:?}", running()), SOON, || self.daemons().is_empty().then_some(()));
        assert!(!self.socket().exists(), "the socket is left: {}", self.socket().display());
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        let failed = std::thread::panicking();
        if !failed && !self.daemons().is_empty() {
            self.stop();
        }
        if failed {
            let log = std::fs::read_to_string(self.state_dir().join("daemon.log")).unwrap_or_default();
            // Who only asked for the status while it was waited for says nothing about it.
            let glance = |line: &&str| line.contains("identity=operator label=\"e2e ") || line.ends_with("leave=Lost");
            let tail: Vec<_> = log.lines().rev().filter(|line| !glance(line)).take(40).collect();
            eprintln!("the daemon's last words:\n{}", tail.into_iter().rev().collect::<Vec<_>>().join("\n"));
        }
        // Whatever happened, no process outlives its test.
        for pid in self.daemons() {
            process::kill(pid);
        }
    }
}

impl Printed {
    /// stdout as one JSON document.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("one JSON document on stdout: {error}: {self:?}"))
    }
}

impl From<Output> for Printed {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("prints UTF-8");
        Self { code: output.status.code().unwrap_or(-1), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

/// Reads a pipe on a thread of its own, so that neither pipe can fill up.
fn read_aside(mut pipe: impl Read + Send + 'static) -> std::thread::JoinHandle<Vec<u8>> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        pipe.read_to_end(&mut bytes).expect("a pipe reads");
        bytes
    })
}
