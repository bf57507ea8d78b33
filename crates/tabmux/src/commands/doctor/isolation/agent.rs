//! An agent: an identity of its own that calls tools, and nothing else. Each call has a deadline.

use serde_json::{Map, Value, json};
use tabmux_core::{Code, Fault};
use tabmux_wire::control::Ask;

use super::unit::Unit;
use crate::control::Control;
use crate::failure::Outcome;
use crate::settings::Config;

/// For a call; a machine under load is slow.
const CALL_MS: u64 = 15_000;
/// For starting a session, which may start a browser.
const START_MS: u64 = 60_000;

pub(in crate::commands::doctor) struct Agent {
    /// With its own token.
    config: Config,
    control: Control,
    pub(super) session: Names,
}

/// Everything its session is known by.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    pub(super) name: String,
    pub(super) id: String,
    pub(super) uuid: String,
    /// The tab it stays in.
    pub(super) tab: String,
}

impl Names {
    pub(super) fn all(&self) -> [&str; 3] {
        [&self.name, &self.id, &self.uuid]
    }
}

/// What a call gave.
#[derive(Debug)]
pub(super) struct Answer(Value);

impl Agent {
    /// The caller that the token in the configuration stands for.
    pub(super) fn of(config: Config) -> Outcome<Self> {
        Ok(Self { control: Control::open(&config)?, config, session: Names::default() })
    }

    /// The same caller once more, in the same session.
    pub(super) fn twin(&self) -> Outcome<Self> {
        Ok(Self { session: self.session.clone(), ..Self::of(self.config.clone())? })
    }

    /// Under a name that nobody else would choose: names are each caller's own, and equal ones would prove nothing.
    pub(in crate::commands::doctor) fn start(&mut self, unit: Unit, name: &str, url: &str) -> Result<(), Fault> {
        let args = json!({"sessionId": name, "isolation": unit.name(), "navigationUrl": url, "timeout": START_MS});
        let started = self.call("start_browser", args)?;
        let named = |key: &str| started.0["result"][key].as_str().unwrap_or_default().to_owned();
        self.session = Names { name: named("sessionId"), id: named("id"), uuid: named("uuid"), tab: named("tabId") };
        Ok(())
    }

    /// Ends its session; the daemon's end would do it too.
    pub(in crate::commands::doctor) fn leave(mut self) {
        self.call("close_session", json!({"sessionId": self.session.name})).ok();
    }

    /// Anything the daemon can be asked.
    pub(super) fn ask(&mut self, ask: &Ask) -> Result<Answer, Fault> {
        self.control.ask(ask).map(Answer).map_err(|failure| failure.fault)
    }

    pub(super) fn call(&mut self, tool: &str, args: Value) -> Result<Answer, Fault> {
        let mut args = match args {
            Value::Object(args) => args,
            _ => Map::new(),
        };
        args.entry("timeout").or_insert_with(|| CALL_MS.into());
        self.ask(&Ask::Call { tool: tool.into(), args })
    }

    /// Runs a script in the tab it stays in.
    pub(super) fn eval(&mut self, script: &str) -> Result<Value, Fault> {
        let tab = self.session.tab.clone();
        self.eval_in(&tab, script)
    }

    /// Runs a script in one of its other tabs.
    pub(super) fn eval_in(&mut self, tab: &str, script: &str) -> Result<Value, Fault> {
        Ok(self.call("evaluate", json!({"script": script, "tabId": tab}))?.value())
    }

    /// Goes somewhere in the tab it stays in.
    pub(super) fn go(&mut self, url: &str) -> Result<(), Fault> {
        self.call("navigate", json!({"url": url, "tabId": self.session.tab})).map(drop)
    }

    /// A further tab; gives its id.
    pub(super) fn open_tab(&mut self, url: &str) -> Result<String, Fault> {
        let opened = self.call("new_page", json!({"url": url}))?;
        opened.0["result"]["tabId"]
            .as_str()
            .map(ToOwned::to_owned)
            .ok_or_else(|| Fault::new(Code::Internal, "new_page did not say which tab it opened.", "Report this with `tabmux logs`."))
    }

    /// The ids of its tabs, in their order.
    pub(super) fn tabs(&mut self) -> Result<Vec<String>, Fault> {
        let listed = self.call("list_pages", json!({}))?;
        let pages = listed.0["structured"]["pages"].as_array().cloned().unwrap_or_default();
        Ok(pages.iter().filter_map(|page| page["tabId"].as_str().map(ToOwned::to_owned)).collect())
    }

    /// Back to one tab without a dialog. What cannot be put right shows in the next probe, which then judges nothing.
    pub(super) fn tidy_up(&mut self) {
        for tab in self.tabs().unwrap_or_default() {
            if tab != self.session.tab {
                self.call("close_page", json!({"tabId": tab})).ok();
            }
        }
        if self.eval("1").is_err_and(|fault| fault.code == Code::DialogOpen) {
            self.call("handle_dialog", json!({"tabId": self.session.tab})).ok();
        }
    }
}

impl Answer {
    /// What a script gave.
    pub(super) fn value(&self) -> Value {
        self.0["result"]["value"].clone()
    }

    /// Whether the word stands anywhere in it.
    pub(super) fn mentions(&self, word: &str) -> bool {
        self.0.to_string().contains(word)
    }

    /// Everything an agent reads of it, part by part.
    pub(super) fn texts(&self) -> Vec<&str> {
        self.0["content"].as_array().map_or_else(Vec::new, |parts| parts.iter().filter_map(|part| part["text"].as_str()).collect())
    }
}
