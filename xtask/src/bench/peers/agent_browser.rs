//! `agent-browser`: a session per agent, over its MCP server and over its command line, as its README has both.

use anyhow::Result;
use serde_json::json;

use super::agent::{Agent, Agents, Browser, Contender, Door, Ground, OwnClient, Product, is_root};
use super::cli::CommandLine;

pub(super) const CONTENDERS: [Contender; 4] =
    [mcp(Browser::Default), mcp(Browser::SameAsTabmux), cli(Browser::Default), cli(Browser::SameAsTabmux)];

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
    let agent = |n| {
        let mut command = ground.command(&ground.installed.agent_browser)?;
        command.arg("mcp").envs(environment(ground, n)?);
        Ok(Box::new(McpAgent(OwnClient::new(command))) as Box<dyn Agent>)
    };
    (0..count).map(agent).collect()
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
