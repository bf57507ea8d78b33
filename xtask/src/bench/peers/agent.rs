//! What every contender must be able to do, and what it is given to do it with. How it says it, and in which set-up it
//! runs, is each contender's own file.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::install::Installed;
use crate::bench::client::Lines;

/// One agent. Each answer comes back as text, whole, and is checked by the caller.
pub(super) trait Agent: Send {
    /// Starts what is this agent's own, says hello and goes to the first page.
    fn open(&mut self, url: &str) -> Result<String>;
    fn navigate(&mut self, url: &str) -> Result<String>;
    fn evaluate(&mut self, expression: &str) -> Result<String>;
    fn screenshot(&mut self) -> Result<String>;
}

/// A product in one set-up for several agents, with one choice of browser.
#[derive(Clone)]
pub(super) struct Contender {
    pub(super) product: Product,
    /// In words, for the table.
    pub(super) setup: &'static str,
    pub(super) door: Door,
    pub(super) browser: Browser,
    /// Starts what the agents share, if anything, and gives the agents.
    pub(super) agents: fn(&Ground, usize) -> Result<Agents>,
}

pub(super) type Agents = Vec<Box<dyn Agent>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Product {
    Tabmux,
    Playwright,
    ChromeDevtools,
    AgentBrowser,
}

/// How an agent reaches the product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Door {
    /// A client process of its own for every agent.
    OwnClient,
    /// A connection of its own to one server for all.
    OwnConnection,
    /// All agents behind one client.
    Shared,
    /// No client: a process for each call.
    CommandLine,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Browser {
    /// What the product takes by itself, or its stand-in.
    Default,
    /// The one that tabmux takes by itself.
    SameAsTabmux,
    /// The stand-in for the peers' default: tabmux on their ground.
    Full,
}

/// Directories, browser and installed peers of one measurement.
pub(super) struct Ground<'a> {
    pub(super) installed: &'a Installed,
    pub(super) directory: PathBuf,
    /// The browser to name to the product; none when it finds its own.
    pub(super) browser: Option<PathBuf>,
}

/// An MCP client process of one agent's own; started when it is opened, because that is part of what is measured.
pub(super) struct OwnClient {
    command: Option<Command>,
    lines: Option<Lines>,
}

impl OwnClient {
    pub(super) fn new(command: Command) -> Self {
        Self { command: Some(command), lines: None }
    }

    pub(super) fn open(&mut self) -> Result<()> {
        self.lines.insert(Lines::start(self.command.take().context("opened once")?)?).initialize()
    }

    pub(super) fn call(&mut self, tool: &str, arguments: &Value) -> Result<String> {
        answer(&self.lines.as_mut().context("opened before it is used")?.call(tool, arguments)?)
    }
}

impl Product {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tabmux => "tabmux",
            Self::Playwright => "@playwright/mcp",
            Self::ChromeDevtools => "chrome-devtools-mcp",
            Self::AgentBrowser => "agent-browser",
        }
    }
}

impl Ground<'_> {
    /// A command with nothing of this process's environment, at home in the measurement's directory.
    pub(super) fn command(&self, program: &Path) -> Result<Command> {
        let mut path = vec![self.installed.node.parent().context("node lies in a directory")?.to_path_buf()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let log = std::fs::OpenOptions::new().create(true).append(true).open(self.directory.join("stderr.log"))?;
        let mut command = Command::new(program);
        command.env_clear().env("HOME", &self.directory).env("TMPDIR", &self.directory).env("PATH", std::env::join_paths(path)?);
        command.current_dir(&self.directory).stdin(Stdio::null()).stderr(log);
        Ok(command)
    }

    pub(super) fn node(&self, script: &str) -> Result<Command> {
        let mut command = self.command(&self.installed.node)?;
        command.arg(self.installed.module(script));
        Ok(command)
    }

    pub(super) fn browser(&self) -> Result<&Path> {
        self.browser.as_deref().context("a peer is told its browser")
    }
}

/// Chromium's sandbox refuses to run as root; elsewhere it stays on.
pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// The result of a `tools/call` as text, or what went wrong.
pub(super) fn answer(reply: &Value) -> Result<String> {
    let result = &reply["result"];
    if result.is_null() || result["isError"] == Value::Bool(true) {
        bail!("{reply}");
    }
    Ok(result.to_string())
}
