//! `agent-browser`: a session per agent, over its MCP server and over its command line, as its README has both.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, bail};
use serde_json::json;

use super::agent::{Agent, Browser, Contender, Door, Ground, OwnClient, Product, is_root};

pub(super) const CONTENDERS: [Contender; 4] =
    [mcp(Browser::Default), mcp(Browser::SameAsTabmux), cli(Browser::Default), cli(Browser::SameAsTabmux)];

struct McpAgent(OwnClient);

/// Each call is a process.
struct CliAgent {
    program: PathBuf,
    environment: Vec<(String, String)>,
    directory: PathBuf,
    picture: PathBuf,
}

const fn mcp(browser: Browser) -> Contender {
    Contender { product: Product::AgentBrowser, setup: "`mcp` and a session per agent", door: Door::OwnClient, browser, agents: mcp_agents }
}

const fn cli(browser: Browser) -> Contender {
    Contender {
        product: Product::AgentBrowser,
        setup: "command line, `--session` per agent",
        door: Door::OwnClient,
        browser,
        agents: cli_agents,
    }
}

fn mcp_agents(ground: &Ground, count: usize) -> Result<Vec<Box<dyn Agent>>> {
    let agent = |n| {
        let mut command = ground.command(&ground.installed.agent_browser)?;
        command.arg("mcp").envs(environment(ground, n)?);
        Ok(Box::new(McpAgent(OwnClient::new(command))) as Box<dyn Agent>)
    };
    (0..count).map(agent).collect()
}

fn cli_agents(ground: &Ground, count: usize) -> Result<Vec<Box<dyn Agent>>> {
    let agent = |n| {
        let mut environment = environment(ground, n)?;
        environment.push(("HOME".into(), ground.directory.to_string_lossy().into_owned()));
        environment.push(("TMPDIR".into(), ground.directory.to_string_lossy().into_owned()));
        let (program, directory) = (ground.installed.agent_browser.clone(), ground.directory.clone());
        let picture = directory.join(format!("agent-{n}.jpeg"));
        Ok(Box::new(CliAgent { program, environment, directory, picture }) as Box<dyn Agent>)
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

impl CliAgent {
    fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().envs(self.environment.iter().cloned()).current_dir(&self.directory);
        let output = command.stdin(std::process::Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(said)
    }
}

impl Agent for CliAgent {
    fn open(&mut self, url: &str) -> Result<String> {
        self.navigate(url)
    }

    fn navigate(&mut self, url: &str) -> Result<String> {
        self.run(&["open", url])
    }

    fn evaluate(&mut self, expression: &str) -> Result<String> {
        self.run(&["eval", expression])
    }

    fn screenshot(&mut self) -> Result<String> {
        self.run(&["screenshot", &self.picture.to_string_lossy()])?;
        // What the others send as base64 lies in a file here.
        let picture = std::fs::read(&self.picture)?;
        Ok(if picture.starts_with(&[0xff, 0xd8, 0xff]) { super::check::JPEG.to_owned() } else { "no picture".to_owned() })
    }
}
