//! How one product is asked for the same things, and a client that keeps what was said, so that it can be counted.

use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::super::agent::{Ground, Product};
use super::result::Spent;
use crate::bench::client::Lines;

/// One tool call: its name and its arguments.
pub(in super::super) type Step = (&'static str, Value);

pub(in super::super) struct Dialect {
    pub(in super::super) product: Product,
    /// In words, for the tables.
    pub(in super::super) how: &'static str,
    pub(in super::super) client: fn(&Ground) -> Result<Command>,
    pub(in super::super) open: fn(&str) -> Step,
    /// The whole page as text.
    pub(in super::super) look: fn() -> Step,
    pub(in super::super) shows: Shows,
    /// What gets the rest, if this is a reply that was cut.
    pub(in super::super) more: fn(&str) -> Option<Step>,
    /// None for what only reads in another way.
    pub(in super::super) form: Option<FormDialect>,
}

/// What a look shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Shows {
    Everything,
    /// Only what can be acted upon.
    Interactive,
}

/// How a form is filled in, as the product's documentation says an agent should.
#[derive(Clone, Copy)]
pub(in super::super) struct FormDialect {
    pub(in super::super) look: fn() -> Step,
    /// All fields, and then the button of this reference.
    pub(in super::super) fill: fn(&[Entry], &str) -> Vec<Step>,
    /// What came of it, where the last reply does not say it.
    pub(in super::super) confirm: fn() -> Step,
}

/// One field of a form, with what is to be in it.
#[derive(Clone, Debug)]
pub(in super::super) struct Entry {
    pub(in super::super) name: &'static str,
    pub(in super::super) kind: Kind,
    pub(in super::super) reference: String,
    pub(in super::super) value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Kind {
    Text,
    Choice,
    Tick,
}

/// A client of one product that remembers every call and reply.
pub(super) struct Talk {
    lines: Lines,
    said: Vec<(String, String)>,
}

/// For products that never cut.
pub(in super::super) fn last_page(_: &str) -> Option<Step> {
    None
}

impl Kind {
    pub(in super::super) fn role(self) -> &'static str {
        match self {
            Self::Text => "textbox",
            Self::Choice => "combobox",
            Self::Tick => "checkbox",
        }
    }
}

impl Talk {
    pub(super) fn start(dialect: &Dialect, ground: &Ground) -> Result<Self> {
        let mut lines = Lines::start((dialect.client)(ground)?)?;
        lines.initialize()?;
        Ok(Self { lines, said: Vec::new() })
    }

    pub(super) fn call(&mut self, (tool, arguments): &Step) -> Result<String> {
        let reply = self.lines.round_trip("tools/call", &json!({"name": tool, "arguments": arguments}))?;
        let result = &reply["result"];
        let texts: Vec<_> = result["content"].as_array().into_iter().flatten().filter_map(|part| part["text"].as_str()).collect();
        let text = texts.join("\n");
        self.said.push((format!("{tool} {arguments}"), text.clone()));
        if result.is_null() || result["isError"] == Value::Bool(true) {
            bail!("{tool}: {}", if text.is_empty() { reply.to_string() } else { text });
        }
        Ok(text)
    }

    pub(super) fn list(&mut self) -> Result<Value> {
        let mut reply = self.lines.round_trip("tools/list", &json!({}))?;
        reply.get_mut("result").map(Value::take).context("a tool list")
    }

    /// What was said since this was asked last. Counting takes time, so nobody's clock may run.
    pub(super) fn spent(&mut self) -> Spent {
        let said = std::mem::take(&mut self.said);
        let (asked, answered) =
            said.iter().fold((0, 0), |(asked, answered), (call, reply)| (asked + tokens(call), answered + tokens(reply)));
        Spent { calls: said.len(), asked, answered }
    }
}

pub(super) fn tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

/// The reference of the element of this role and name: `textbox "City" [ref=e12]`, `uid=1_7 textbox "City"`, `e3 textbox "City"`.
pub(super) fn reference(text: &str, role: &str, name: &str) -> Option<String> {
    let wanted = format!("{role} \"{name}\"");
    let line = text.lines().map(|line| line.trim_start().trim_start_matches("- ")).find(|line| line.contains(&wanted))?;
    let word = |text: &str| text.split([' ', ']', ',']).next().unwrap_or_default().to_owned();
    let marked = ["ref=", "uid="].iter().find_map(|mark| line.split_once(mark)).map(|(_, rest)| word(rest));
    Some(marked.unwrap_or_else(|| word(line))).filter(|reference| !reference.is_empty())
}
