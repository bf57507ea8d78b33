//! `@playwright/mcp`, in the two set-ups its README gives for several clients: `--isolated` with a server each, and one
//! HTTP server (`--port`) to which each client has its own connection and with it its own context.

use std::process::Command;
use std::sync::Arc;

use anyhow::Result;
use serde_json::{Value, json};

use super::agent::{Agent, Agents, Browser, Contender, Door, Ground, OwnClient, Product, answer, is_root};
use super::http::{HttpLine, HttpServer};
use super::reading::{Dialect, Entry, FormDialect, Kind, Shows, Step, last_page};

pub(super) const CONTENDERS: [Contender; 4] =
    [own(Browser::Default), own(Browser::SameAsTabmux), http(Browser::Default), http(Browser::SameAsTabmux)];

/// Its README: snapshot, then `browser_fill_form` and `browser_click` with the snapshot's refs.
pub(super) const DIALECT: Dialect = Dialect {
    product: Product::Playwright,
    how: "`browser_snapshot`",
    client: command,
    open: |url| ("browser_navigate", json!({"url": url})),
    look: snapshot,
    shows: Shows::Everything,
    more: last_page,
    form: Some(FormDialect { look: snapshot, fill, confirm: snapshot }),
};

enum PlaywrightAgent {
    Own(OwnClient),
    Http(HttpLine),
}

const fn own(browser: Browser) -> Contender {
    Contender {
        product: Product::Playwright,
        setup: "`--isolated`, a server per agent",
        door: Door::OwnClient,
        browser,
        agents: own_agents,
    }
}

const fn http(browser: Browser) -> Contender {
    Contender {
        product: Product::Playwright,
        setup: "`--isolated --port`, one HTTP server, a connection per agent",
        door: Door::OwnConnection,
        browser,
        agents: http_agents,
    }
}

fn own_agents(ground: &Ground, count: usize) -> Result<Agents> {
    (0..count).map(|_| Ok(Box::new(PlaywrightAgent::Own(OwnClient::new(command(ground)?))) as Box<dyn Agent>)).collect()
}

fn http_agents(ground: &Ground, count: usize) -> Result<Agents> {
    let mut command = command(ground)?;
    command.args(["--port", "0", "--host", "127.0.0.1"]);
    let server = Arc::new(HttpServer::start(command)?);
    Ok((0..count).map(|_| Box::new(PlaywrightAgent::Http(HttpLine::new(Arc::clone(&server)))) as Box<dyn Agent>).collect())
}

fn command(ground: &Ground) -> Result<Command> {
    let mut command = ground.node("@playwright/mcp/cli.js")?;
    command.args(["--isolated", "--headless", "--executable-path"]).arg(ground.browser()?);
    if is_root() {
        command.arg("--no-sandbox");
    }
    Ok(command)
}

fn snapshot() -> Step {
    ("browser_snapshot", json!({}))
}

fn fill(entries: &[Entry], button: &str) -> Vec<Step> {
    let field = |entry: &Entry| {
        let value = if entry.kind == Kind::Tick { "true" } else { &entry.value };
        json!({"target": entry.reference, "name": entry.name, "type": entry.kind.role(), "value": value})
    };
    let fields: Vec<_> = entries.iter().map(field).collect();
    vec![("browser_fill_form", json!({"fields": fields})), ("browser_click", json!({"target": button}))]
}

impl PlaywrightAgent {
    fn call(&mut self, tool: &str, arguments: &Value) -> Result<String> {
        match self {
            Self::Own(client) => client.call(tool, arguments),
            Self::Http(line) => answer(&line.call(tool, arguments)?),
        }
    }
}

impl Agent for PlaywrightAgent {
    fn open(&mut self, url: &str) -> Result<String> {
        match self {
            Self::Own(client) => client.open()?,
            Self::Http(line) => line.initialize()?,
        }
        self.navigate(url)
    }

    fn navigate(&mut self, url: &str) -> Result<String> {
        self.call("browser_navigate", &json!({"url": url}))
    }

    fn evaluate(&mut self, expression: &str) -> Result<String> {
        self.call("browser_evaluate", &json!({"function": format!("() => {expression}")}))
    }

    fn screenshot(&mut self) -> Result<String> {
        self.call("browser_take_screenshot", &json!({"type": "jpeg"}))
    }
}
