//! `chrome-devtools-mcp`, in the two set-ups of its "Concurrent sessions" page: `--isolated` with a server each, and all
//! agents behind one server, each in an isolated context and naming its page.

use std::process::Command;
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::agent::{Agent, Agents, Browser, Contender, Door, Ground, OwnClient, Product, answer, is_root};
use super::reading::{Dialect, Entry, FormDialect, Kind, Shows, Step, last_page};
use super::shared::SharedLines;

pub(super) const CONTENDERS: [Contender; 4] =
    [own(Browser::Default), own(Browser::SameAsTabmux), shared(Browser::Default), shared(Browser::SameAsTabmux)];

/// The page a fresh browser begins with.
const FIRST_PAGE: u64 = 1;

/// Its tool descriptions: always `fill_form`, and `includeSnapshot` where the page changes.
pub(super) const DIALECT: Dialect = Dialect {
    product: Product::ChromeDevtools,
    how: "`take_snapshot`",
    client: command,
    open: |url| navigate(FIRST_PAGE, url),
    look: snapshot,
    shows: Shows::Everything,
    more: last_page,
    form: Some(FormDialect { look: snapshot, fill, confirm: snapshot }),
};

struct OwnAgent(OwnClient);

struct SharedAgent {
    server: Arc<SharedLines>,
    context: String,
    page: u64,
}

const fn own(browser: Browser) -> Contender {
    Contender {
        product: Product::ChromeDevtools,
        setup: "`--isolated`, a server per agent",
        door: Door::OwnClient,
        browser,
        agents: own_agents,
    }
}

const fn shared(browser: Browser) -> Contender {
    Contender {
        product: Product::ChromeDevtools,
        setup: "all behind one server, isolated contexts",
        door: Door::Shared,
        browser,
        agents: shared_agents,
    }
}

fn own_agents(ground: &Ground, count: usize) -> Result<Agents> {
    (0..count).map(|_| Ok(Box::new(OwnAgent(OwnClient::new(command(ground)?))) as Box<dyn Agent>)).collect()
}

fn shared_agents(ground: &Ground, count: usize) -> Result<Agents> {
    let server = Arc::new(SharedLines::start(command(ground)?)?);
    server.initialize()?;
    let agent = |n| SharedAgent { server: Arc::clone(&server), context: format!("agent-{n}"), page: 0 };
    Ok((0..count).map(|n| Box::new(agent(n)) as Box<dyn Agent>).collect())
}

fn command(ground: &Ground) -> Result<Command> {
    let mut command = ground.node("chrome-devtools-mcp/build/src/bin/chrome-devtools-mcp.js")?;
    command.args(["--isolated", "--headless", "--no-usage-statistics", "--executablePath"]).arg(ground.browser()?);
    command.env("CHROME_DEVTOOLS_MCP_NO_UPDATE_CHECKS", "1");
    if is_root() {
        command.arg("--chromeArg=--no-sandbox");
    }
    Ok(command)
}

fn navigate(page: u64, url: &str) -> (&'static str, Value) {
    ("navigate_page", json!({"pageId": page, "type": "url", "url": url}))
}

fn evaluate(page: u64, expression: &str) -> (&'static str, Value) {
    ("evaluate_script", json!({"pageId": page, "function": format!("() => {expression}")}))
}

fn screenshot(page: u64) -> (&'static str, Value) {
    ("take_screenshot", json!({"pageId": page, "format": "jpeg"}))
}

fn snapshot() -> Step {
    ("take_snapshot", json!({"pageId": FIRST_PAGE}))
}

fn fill(entries: &[Entry], button: &str) -> Vec<Step> {
    let element = |entry: &Entry| json!({"uid": entry.reference, "value": if entry.kind == Kind::Tick { "true" } else { &entry.value }});
    let elements: Vec<_> = entries.iter().map(element).collect();
    vec![
        ("fill_form", json!({"pageId": FIRST_PAGE, "elements": elements})),
        ("click", json!({"pageId": FIRST_PAGE, "uid": button, "includeSnapshot": true})),
    ]
}

/// The number of the page that was opened in a context: `3: title (url) [selected] isolatedContext=agent-2`.
fn page_of(context: &str, reply: &Value) -> Option<u64> {
    let text = reply["result"]["content"][0]["text"].as_str()?;
    let line = text.lines().find(|line| line.ends_with(&format!("isolatedContext={context}")))?;
    line.split(':').next()?.trim().parse().ok()
}

impl OwnAgent {
    fn call(&mut self, (tool, arguments): (&str, Value)) -> Result<String> {
        self.0.call(tool, &arguments)
    }
}

impl Agent for OwnAgent {
    fn open(&mut self, url: &str) -> Result<String> {
        self.0.open()?;
        self.navigate(url)
    }

    fn navigate(&mut self, url: &str) -> Result<String> {
        self.call(navigate(FIRST_PAGE, url))
    }

    fn evaluate(&mut self, expression: &str) -> Result<String> {
        self.call(evaluate(FIRST_PAGE, expression))
    }

    fn screenshot(&mut self) -> Result<String> {
        self.call(screenshot(FIRST_PAGE))
    }
}

impl SharedAgent {
    fn call(&self, (tool, arguments): (&str, Value)) -> Result<String> {
        answer(&self.server.call(tool, &arguments)?)
    }
}

impl Agent for SharedAgent {
    fn open(&mut self, url: &str) -> Result<String> {
        let reply = self.server.call("new_page", &json!({"url": url, "isolatedContext": self.context}))?;
        self.page = page_of(&self.context, &reply).with_context(|| format!("no page of {} in {reply}", self.context))?;
        answer(&reply)
    }

    fn navigate(&mut self, url: &str) -> Result<String> {
        self.call(navigate(self.page, url))
    }

    fn evaluate(&mut self, expression: &str) -> Result<String> {
        self.call(evaluate(self.page, expression))
    }

    fn screenshot(&mut self) -> Result<String> {
        self.call(screenshot(self.page))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from chrome-devtools-mcp 1.11.0.
    #[test]
    fn the_page_of_a_context_is_read_from_the_list_of_pages() {
        let text = "## Pages\n1: about:blank\n2: agent-1 visit-0 (http://127.0.0.1:1/a.html) isolatedContext=agent-1\n\
                    13: agent-10 visit-0 (http://127.0.0.1:1/b.html) [selected] isolatedContext=agent-10";
        let reply = json!({"result": {"content": [{"type": "text", "text": text}]}});
        assert_eq!(page_of("agent-1", &reply), Some(2));
        assert_eq!(page_of("agent-10", &reply), Some(13));
        assert_eq!(page_of("agent-2", &reply), None);
    }
}
