//! `agent-browser`: a session per agent, over its MCP server and over its command line, as its README has both.

use std::process::Command;

use anyhow::Result;
use serde_json::json;

use super::agent::{Agent, Agents, Browser, Contender, Door, Ground, OwnClient, Product, is_root};
use super::cli::CommandLine;
use super::reading::{Dialect, Entry, FormDialect, Kind, Shows, Step, last_page};

pub(super) const CONTENDERS: [Contender; 4] =
    [mcp(Browser::Default), mcp(Browser::SameAsTabmux), cli(Browser::Default), cli(Browser::SameAsTabmux)];

/// Its README: `snapshot -i`, then a command for each field with the snapshot's refs; `read` for text.
pub(super) const DIALECT: Dialect = Dialect {
    product: Product::AgentBrowser,
    how: "`snapshot`, not interactive",
    client: |ground| client(ground, 0),
    open,
    look: || ("agent_browser_snapshot", json!({"interactive": false})),
    shows: Shows::Everything,
    more: last_page,
    form: Some(FormDialect { look: interactive, fill, confirm: || ("agent_browser_read", json!({})) }),
};

/// What it gives by default: no text, only what can be acted upon.
pub(super) const INTERACTIVE: Dialect = Dialect {
    product: Product::AgentBrowser,
    how: "`snapshot`, interactive",
    client: |ground| client(ground, 0),
    open,
    look: interactive,
    shows: Shows::Interactive,
    more: last_page,
    form: None,
};

struct McpAgent(OwnClient);

struct CliAgent {
    line: CommandLine,
    name: String,
}

const fn mcp(browser: Browser) -> Contender {
    Contender { product: Product::AgentBrowser, setup: "`mcp` and a session per agent", door: Door::OwnClient, browser, agents: mcp_agents }
}

const fn cli(browser: Browser) -> Contender {
    Contender {
        product: Product::AgentBrowser,
        setup: "command line, a session per agent",
        door: Door::CommandLine,
        browser,
        agents: cli_agents,
    }
}

fn mcp_agents(ground: &Ground, count: usize) -> Result<Agents> {
    (0..count).map(|n| Ok(Box::new(McpAgent(OwnClient::new(client(ground, n)?))) as Box<dyn Agent>)).collect()
}

fn client(ground: &Ground, agent: usize) -> Result<Command> {
    let mut command = ground.command(&ground.installed.agent_browser)?;
    command.arg("mcp").envs(environment(ground, agent)?);
    Ok(command)
}

fn open(url: &str) -> Step {
    ("agent_browser_open", json!({"url": url}))
}

fn interactive() -> Step {
    ("agent_browser_snapshot", json!({"interactive": true}))
}

fn fill(entries: &[Entry], button: &str) -> Vec<Step> {
    let field = |entry: &Entry| {
        let selector = format!("@{}", entry.reference);
        match entry.kind {
            Kind::Text => ("agent_browser_fill", json!({"selector": selector, "text": entry.value})),
            Kind::Choice => ("agent_browser_select", json!({"selector": selector, "values": [entry.value]})),
            Kind::Tick => ("agent_browser_check", json!({"selector": selector})),
        }
    };
    let click = ("agent_browser_click", json!({"selector": format!("@{button}")}));
    entries.iter().map(field).chain([click]).collect()
}

fn cli_agents(ground: &Ground, count: usize) -> Result<Agents> {
    let agent = |n| {
        let line = CommandLine::new(ground, &ground.installed.agent_browser, environment(ground, n)?);
        Ok(Box::new(CliAgent { line, name: format!("agent-{n}") }) as Box<dyn Agent>)
    };
    (0..count).map(agent).collect()
}

fn environment(ground: &Ground, agent: usize) -> Result<Vec<(String, String)>> {
    let mut all = vec![
        ("AGENT_BROWSER_SESSION".to_owned(), format!("agent-{agent}")),
        ("AGENT_BROWSER_SOCKET_DIR".to_owned(), ground.directory.join("sockets").to_string_lossy().into_owned()),
        ("AGENT_BROWSER_EXECUTABLE_PATH".to_owned(), ground.browser()?.to_string_lossy().into_owned()),
        ("AGENT_BROWSER_SCREENSHOT_FORMAT".to_owned(), "jpeg".to_owned()),
    ];
    if is_root() {
        all.push(("AGENT_BROWSER_ARGS".to_owned(), "--no-sandbox".to_owned()));
    }
    Ok(all)
}

impl Agent for McpAgent {
    fn open(&mut self, url: &str) -> Result<String> {
        self.0.open()?;
        self.navigate(url)
    }

    fn navigate(&mut self, url: &str) -> Result<String> {
        self.0.call("agent_browser_open", &json!({"url": url}))
    }

    fn evaluate(&mut self, expression: &str) -> Result<String> {
        self.0.call("agent_browser_eval", &json!({"script": expression}))
    }

    fn screenshot(&mut self) -> Result<String> {
        self.0.call("agent_browser_screenshot", &json!({}))
    }
}

impl Agent for CliAgent {
    fn open(&mut self, url: &str) -> Result<String> {
        self.navigate(url)
    }

    fn navigate(&mut self, url: &str) -> Result<String> {
        self.line.run(&["open", url])
    }

    fn evaluate(&mut self, expression: &str) -> Result<String> {
        self.line.run(&["eval", expression])
    }

    fn screenshot(&mut self) -> Result<String> {
        self.line.picture(&["screenshot"], &self.name)
    }
}
