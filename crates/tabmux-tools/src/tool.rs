//! What a tool is: a line of the table, and the two places it can run. How a call gets there (ownership, queue,
//! deadline) is the daemon's business and deliberately absent.

use std::collections::BTreeSet;
use std::fmt;

use async_trait::async_trait;
use serde_json::Value;
use tabmux_core::{Fault, Touch};
use tabmux_driver::{Condition, Domains};

use crate::{Arguments, Common, Desk, Pages, Reply};

pub type ToolResult = Result<Reply, Fault>;

/// One line of the table.
pub struct Tool {
    pub name: &'static str,
    pub group: Group,
    pub level: Level,
    pub description: &'static str,
    pub effect: Effect,
    /// The JSON Schema of the tool's own arguments; `schema()` adds `sessionId`, `tabId` and `timeout`.
    pub own_schema: fn() -> Value,
    pub run: Run,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    Sessions,
    Pages,
    See,
    Act,
    Many,
    State,
}

/// From which tool list on a tool is shown: a list shows its own level and the lower ones. Every tool stays callable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Enough to open a page, read it and act on it.
    Slim,
    /// What an endpoint lists that asked for nothing else.
    #[default]
    Core,
    /// The rarely used ones too.
    Full,
}

/// Whether a call may be sent again when its outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Sent twice, it does no harm and loses nothing.
    Read,
    Write,
}

/// Where a tool runs.
#[derive(Clone, Copy)]
pub enum Run {
    /// At the caller's desk: about sessions, queues behind no page.
    Desk(&'static dyn DeskTool),
    /// In a session's queue, on its pages.
    Page(&'static dyn PageTool),
}

/// A tool about sessions. `common.session` is its own `sessionId`.
#[async_trait]
pub trait DeskTool: Send + Sync {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult;
}

/// A tool that works on pages of one session. `common.tab` is the tab the call named.
#[async_trait]
pub trait PageTool: Send + Sync {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult;
    /// `navigate` and `new_page` make a session when the caller has none (C8).
    fn makes_session(&self) -> bool {
        false
    }
    /// What is wrong with the arguments whatever the page, for a tool that makes a session: nothing is made for a call that cannot succeed.
    fn check(&self, _args: &Arguments, _domains: &Domains) -> Result<(), Fault> {
        Ok(())
    }
    /// `handle_dialog` never queues: it is what a blocked call waits for.
    fn skips_queue(&self) -> bool {
        false
    }
    /// Whoever calls `restore` knows that the browser was lost, and need not be told first.
    fn comes_after_a_loss(&self) -> bool {
        false
    }
    /// The session a call only watches, from beside its queue: it holds up nobody there, nor in the caller's own.
    fn watches(&self, _args: &Arguments) -> Option<String> {
        None
    }
    /// What a call with these arguments does to the session, where that is not what the table says of the tool. Who only looks leaves
    /// page and disk as they are.
    fn touch(&self, _args: &Arguments) -> Option<Touch> {
        None
    }
    /// What a call with these arguments says when its time is up, where it waited for something that has a name.
    fn late(&self, _args: &Arguments) -> Option<Late> {
        None
    }
}

/// What did not come in time. How long that was, and how the page is, the daemon adds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Late {
    /// A sentence without its end: `Text "Done" did not appear`.
    pub what: String,
    /// What that is made of, where several things had to hold at once.
    pub parts: Vec<(Condition, String)>,
    pub hint: &'static str,
    /// A function that the page was asked; what it gave last, the page knows.
    pub function: Option<String>,
}

impl Late {
    pub fn new(what: String, hint: &'static str) -> Self {
        Self { what, parts: Vec::new(), hint, function: None }
    }

    /// The same, where it is known which of several did not hold.
    #[must_use]
    pub fn of_these(&self, lacking: &BTreeSet<Condition>) -> String {
        let parts: Vec<&str> = self.parts.iter().filter(|(part, _)| lacking.contains(part)).map(|(_, said)| said.as_str()).collect();
        if parts.is_empty() { self.what.clone() } else { beginning(parts.join(", and ")) }
    }
}

/// As a sentence begins.
pub(crate) fn beginning(mut text: String) -> String {
    text.get_mut(..1).map(str::make_ascii_uppercase);
    text
}

impl Tool {
    /// What a call with these arguments does to the session: so far must a grant go that is enough for it.
    pub fn touch(&self, args: &Arguments) -> Touch {
        let said = if let Run::Page(tool) = self.run { tool.touch(args) } else { None };
        said.unwrap_or(if self.effect == Effect::Read { Touch::Looks } else { Touch::Acts })
    }
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Slim, Self::Core, Self::Full];

    pub fn name(self) -> &'static str {
        match self {
            Self::Slim => "slim",
            Self::Core => "core",
            Self::Full => "full",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).field("effect", &self.effect).field("run", &self.run).finish_non_exhaustive()
    }
}

impl fmt::Debug for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Desk(_) => "Desk",
            Self::Page(_) => "Page",
        })
    }
}
