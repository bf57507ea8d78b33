//! A daemon of its own in a temporary directory, and a client that writes a line and waits for the answer.
//! No runtime: one call at a time is what is measured.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// Directories of a private daemon. Dropping it stops the daemon.
pub(super) struct Home {
    tabmux: PathBuf,
    directory: tempfile::TempDir,
    /// None is whatever tabmux finds by itself.
    browser: Option<&'static str>,
}

/// A process that answers each line with a line.
pub(super) struct Lines {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

/// The hello of every MCP client here.
pub(super) fn initialize_parameters() -> Value {
    json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "0"}})
}

impl Home {
    pub(super) fn new(tabmux: PathBuf) -> Result<Self> {
        Ok(Self { tabmux, directory: tempfile::tempdir()?, browser: Some("fake") })
    }

    pub(super) fn with_real_browser(tabmux: PathBuf) -> Result<Self> {
        Ok(Self { tabmux, directory: tempfile::tempdir()?, browser: None })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.tabmux);
        command.args(arguments).env_clear().env("HOME", self.path()).env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("TABMUX_RUNTIME_DIR", self.path().join("run")).env("TABMUX_STATE_DIR", self.path().join("state"));
        command.envs([("TABMUX_LISTEN", "127.0.0.1:0"), ("TABMUX_EXIT_WHEN_EMPTY", "0")]);
        command.envs(self.browser.map(|browser| ("TABMUX_BROWSER", browser)));
        command
    }

    /// A new `tabmux mcp`; the first one starts the daemon.
    pub(super) fn client(&self) -> Result<Lines> {
        Lines::start(self.command(&["mcp"]))
    }

    pub(super) fn daemon_pid(&self) -> Result<u32> {
        let output = self.command(&["status", "--json"]).output()?;
        let status: Value = serde_json::from_slice(&output.stdout).context("status --json prints one JSON document")?;
        let pid = status["pid"].as_u64().with_context(|| format!("no pid in {status}"))?;
        Ok(u32::try_from(pid)?)
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        // The benchmark is over; a daemon that does not stop is the lifecycle tests' business.
        let _ = self.command(&["stop"]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    }
}

impl Lines {
    pub(super) fn start(mut command: Command) -> Result<Self> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().context("stdout is piped")?);
        Ok(Self { child, input, output, next_id: 0 })
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    pub(super) fn initialize(&mut self) -> Result<()> {
        self.round_trip("initialize", &initialize_parameters())?;
        self.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        let answer = self.round_trip("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        if answer["result"]["isError"] == json!(true) || answer.get("error").is_some() {
            bail!("{tool} failed: {answer}");
        }
        Ok(answer)
    }

    /// Writes one request and waits for the line with its id.
    pub(super) fn round_trip(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.next_id += 1;
        self.write(&json!({"jsonrpc": "2.0", "id": self.next_id, "method": method, "params": parameters}))?;
        let mut line = String::new();
        loop {
            line.clear();
            if self.output.read_line(&mut line)? == 0 {
                bail!("the process ended in the middle of {method}");
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == json!(self.next_id) {
                return Ok(answer);
            }
        }
    }

    fn write(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("stdin is open until drop")?;
        input.write_all(format!("{message}\n").as_bytes())?;
        Ok(input.flush()?)
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // End of input ends the process by itself.
        drop(self.input.take());
        let _ = self.child.wait();
    }
}
