//! tabmux: `tabmux mcp` for each agent, one daemon, as the configuration printed by `tabmux up` has it.

use anyhow::Result;
use serde_json::json;

use super::agent::{Agent, Browser, Contender, Door, Ground, OwnClient, Product};
use crate::workspace;

pub(super) const CONTENDERS: [Contender; 2] = [row(Browser::Default), row(Browser::Full)];

struct TabmuxAgent(OwnClient);

const fn row(browser: Browser) -> Contender {
    Contender { product: Product::Tabmux, setup: "`tabmux mcp` per agent, one daemon", door: Door::OwnClient, browser, agents }
}

fn agents(ground: &Ground, count: usize) -> Result<Vec<Box<dyn Agent>>> {
    let agent = |_| {
        let mut command = ground.command(&workspace::root().join("target/release/tabmux"))?;
        command.arg("mcp").envs([("TABMUX_LISTEN", "127.0.0.1:0"), ("TABMUX_EXIT_WHEN_EMPTY", "0")]);
        command.env("TABMUX_RUNTIME_DIR", ground.directory.join("run")).env("TABMUX_STATE_DIR", ground.directory.join("state"));
        if let Some(browser) = &ground.browser {
            command.env("TABMUX_BROWSER", browser);
        }
        Ok(Box::new(TabmuxAgent(OwnClient::new(command))) as Box<dyn Agent>)
    };
    (0..count).map(agent).collect()
}

impl Agent for TabmuxAgent {
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
