//! tabmux: `tabmux mcp` for each agent, one daemon, as the configuration printed by `tabmux up` has it; and its
//! command line, for the peers that have one too.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use super::agent::{Agent, Agents, Browser, Contender, Door, Ground, OwnClient, Product};
use super::cli::CommandLine;
use super::reading::{Dialect, Entry, FormDialect, Kind, Shows, Step};
use crate::workspace;

pub(super) const CONTENDERS: [Contender; 3] = [mcp(Browser::Default), mcp(Browser::Full), CLI];

/// docs/agents.md: `snapshot`, then all that is to be done in one `execute_sequence`, which says what came of it.
pub(super) const DIALECT: Dialect = Dialect {
    product: Product::Tabmux,
    how: "`snapshot`",
    client,
    open,
    look,
    shows: Shows::Everything,
    more: |reply| cursor(reply).map(|cursor| ("snapshot", json!({"cursor": cursor}))),
    form: Some(FormDialect { look: || ("snapshot", json!({"interactive": true})), fill, confirm: look }),
};

/// With every row that is folded otherwise, and as much in one reply as there can be.
pub(super) const UNFOLDED: Dialect = Dialect {
    product: Product::Tabmux,
    how: "`snapshot`, full",
    client,
    open,
    look: || ("snapshot", json!({"full": true, "budget": 50_000})),
    shows: Shows::Everything,
    more: |reply| cursor(reply).map(|cursor| ("snapshot", json!({"full": true, "budget": 50_000, "cursor": cursor}))),
    form: None,
};

/// Only what can be acted upon, as agent-browser has it by default.
pub(super) const INTERACTIVE: Dialect = Dialect {
    product: Product::Tabmux,
    how: "`snapshot`, interactive",
    client,
    open,
    look: || ("snapshot", json!({"interactive": true})),
    shows: Shows::Interactive,
    more: |reply| cursor(reply).map(|cursor| ("snapshot", json!({"interactive": true, "cursor": cursor}))),
    form: None,
};

struct McpAgent(OwnClient);

struct CliAgent {
    line: CommandLine,
    name: String,
}

const CLI: Contender = Contender {
    product: Product::Tabmux,
    setup: "command line, a session per agent",
    door: Door::CommandLine,
    browser: Browser::Default,
    agents: cli_agents,
};

const fn mcp(browser: Browser) -> Contender {
    Contender { product: Product::Tabmux, setup: "`tabmux mcp` per agent, one daemon", door: Door::OwnClient, browser, agents: mcp_agents }
}

fn mcp_agents(ground: &Ground, count: usize) -> Result<Agents> {
    (0..count).map(|_| Ok(Box::new(McpAgent(OwnClient::new(client(ground)?))) as Box<dyn Agent>)).collect()
}

fn client(ground: &Ground) -> Result<Command> {
    let mut command = ground.command(&program())?;
    command.arg("mcp").envs(environment(ground));
    Ok(command)
}

fn open(url: &str) -> Step {
    ("navigate", json!({"url": url}))
}

fn look() -> Step {
    ("snapshot", json!({}))
}

/// Where a reply that was cut goes on: `[12 more lines: cursor 40]`.
fn cursor(reply: &str) -> Option<&str> {
    let (_, cursor) = reply.lines().last()?.strip_suffix(']')?.split_once(" more lines: cursor ")?;
    Some(cursor)
}

fn fill(entries: &[Entry], button: &str) -> Vec<Step> {
    let action = |entry: &Entry| match entry.kind {
        Kind::Text => json!({"action": "set_value", "selector": entry.reference, "value": entry.value}),
        Kind::Choice => json!({"action": "select_option", "selector": entry.reference, "options": [entry.value]}),
        Kind::Tick => json!({"action": "set_value", "selector": entry.reference, "value": "true"}),
    };
    let click = json!({"action": "click_element", "selector": button});
    vec![("execute_sequence", json!({"actions": entries.iter().map(action).chain([click]).collect::<Vec<_>>()}))]
}

fn cli_agents(ground: &Ground, count: usize) -> Result<Agents> {
    let agent = |n| CliAgent { line: CommandLine::new(ground, &program(), environment(ground)), name: format!("agent-{n}") };
    Ok((0..count).map(|n| Box::new(agent(n)) as Box<dyn Agent>).collect())
}

fn program() -> PathBuf {
    workspace::root().join("target/release/tabmux")
}

fn environment(ground: &Ground) -> Vec<(String, String)> {
    let under = |name: &str| ground.directory.join(name).to_string_lossy().into_owned();
    let mut all = vec![
        ("TABMUX_RUNTIME_DIR".to_owned(), under("run")),
        ("TABMUX_STATE_DIR".to_owned(), under("state")),
        ("TABMUX_LISTEN".to_owned(), "127.0.0.1:0".to_owned()),
    ];
    all.extend(ground.browser.as_ref().map(|browser| ("TABMUX_BROWSER".to_owned(), browser.to_string_lossy().into_owned())));
    all
}

impl Agent for McpAgent {
    fn open(&mut self, url: &str) -> Result<String> {
        self.0.open()?;
        self.navigate(url)
    }

    fn navigate(&mut self, url: &str) -> Result<String> {
        self.0.call("navigate", &json!({"url": url}))
    }

    fn evaluate(&mut self, expression: &str) -> Result<String> {
        self.0.call("evaluate", &json!({"script": expression}))
    }

    fn screenshot(&mut self) -> Result<String> {
        self.0.call("screenshot", &json!({}))
    }
}

impl Agent for CliAgent {
    fn open(&mut self, url: &str) -> Result<String> {
        self.line.run(&["new", "-s", &self.name])?;
        self.navigate(url)
    }

    fn navigate(&mut self, url: &str) -> Result<String> {
        self.line.run(&["open", "-t", &self.name, url])
    }

    fn evaluate(&mut self, expression: &str) -> Result<String> {
        self.line.run(&["eval", "-t", &self.name, expression])
    }

    fn screenshot(&mut self) -> Result<String> {
        self.line.picture(&["screenshot", "-t", &self.name], &self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_that_was_cut_says_where_it_goes_on() {
        assert_eq!(cursor("e1 link \"a\"\n[12 more lines: cursor 7-40]"), Some("7-40"));
        assert_eq!(cursor("e1 link \"[12 more lines: cursor 7]\""), None);
        assert_eq!(cursor(""), None);
    }
}
