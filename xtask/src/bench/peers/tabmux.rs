//! tabmux: `tabmux mcp` for each agent, one daemon, as the configuration printed by `tabmux up` has it; and its
//! command line, for the peers that have one too.

use std::path::PathBuf;

use anyhow::Result;
use serde_json::json;

use super::agent::{Agent, Agents, Browser, Contender, Door, Ground, OwnClient, Product};
use super::cli::CommandLine;
use crate::workspace;

pub(super) const CONTENDERS: [Contender; 3] = [mcp(Browser::Default), mcp(Browser::Full), CLI];

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
    let agent = |_| {
        let mut command = ground.command(&program())?;
        command.arg("mcp").envs(environment(ground));
        Ok(Box::new(McpAgent(OwnClient::new(command))) as Box<dyn Agent>)
    };
    (0..count).map(agent).collect()
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
