//! Everything an agent can ask for: one file per tool, one table. A tool is handed its session desk or its page
//! and cannot choose another. Client ids and protocol names are deliberately absent.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value};
use tabmux_core::{Fault, TabId};
use tabmux_driver::Page;
use tokio_util::sync::CancellationToken;

pub type Arguments = Map<String, Value>;
pub type ToolResult = Result<Reply, Fault>;

/// One line of the table.
pub struct Tool {
    pub name: &'static str,
    pub group: Group,
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

/// Whether a call may be sent again when its outcome is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
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

/// A tool about sessions.
#[async_trait]
pub trait DeskTool: Send + Sync {
    async fn run(&self, desk: &dyn Desk, args: Arguments) -> ToolResult;
}

/// A tool that works on pages of one session.
#[async_trait]
pub trait PageTool: Send + Sync {
    async fn run(&self, cx: &dyn Pages, args: Arguments) -> ToolResult;
    /// `navigate` and `new_page` make a session when the caller has none (C8).
    fn makes_session(&self) -> bool {
        false
    }
    /// `handle_dialog` never queues: it is what a blocked call waits for.
    fn skips_queue(&self) -> bool {
        false
    }
}

/// What a caller can do with its sessions. The daemon implements it for one caller at a time.
#[async_trait]
pub trait Desk: Send + Sync {
    /// Makes a session, navigates it when a URL is given, and rolls back when that fails.
    async fn open(&self, open: OpenSession) -> Result<SessionView, Fault>;
    fn list(&self) -> SessionList;
    fn set_current(&self, session: &str) -> Result<SessionView, Fault>;
    /// `None` = the current session.
    async fn close(&self, session: Option<&str>) -> Result<SessionView, Fault>;
    async fn close_all(&self, detach: bool) -> Result<Vec<SessionView>, Fault>;
}

#[derive(Clone, Debug, Default)]
pub struct OpenSession {
    pub name: Option<String>,
    pub url: Option<String>,
    pub isolation: Option<tabmux_driver::Isolation>,
    pub headless: Option<bool>,
    pub from: Option<String>,
}

/// A session as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// The name; for a caller without an identity, the uuid.
    pub session_id: String,
    pub id: String,
    pub uuid: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub isolation: String,
    /// `active` or `orphaned`.
    pub state: String,
    pub created_at: String,
    pub age_s: u64,
    pub tabs: usize,
    #[serde(rename = "memory_kb", skip_serializing_if = "Option::is_none")]
    pub memory_kb: Option<u64>,
    pub capabilities: Value,
    /// Said once, for example when the soft limit is reached (S0.19).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(rename = "tabId", skip_serializing_if = "Option::is_none")]
    pub tab_id: Option<String>,
}

#[derive(Clone, Debug, Default, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    pub sessions: Vec<SessionView>,
    pub current_session: Option<String>,
    /// Why the list is empty for a caller without an identity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The pages of the session a call runs in, and nothing else.
#[async_trait]
pub trait Pages: Send + Sync {
    /// The page the call is for: the tab it named, else the session's current one; opens one where there is none.
    async fn page(&self) -> Result<(TabId, Arc<dyn Page>), Fault>;
    fn list(&self) -> Vec<PageView>;
    /// Opens a page and makes it current.
    async fn open(&self) -> Result<(TabId, Arc<dyn Page>), Fault>;
    fn select(&self, which: &PageRef) -> Result<PageView, Fault>;
    async fn close(&self, which: &PageRef) -> Result<PageView, Fault>;
    /// Notes that the page went elsewhere, so that a restarted daemon knows.
    fn moved(&self, tab: TabId);
    /// Time left before the call's deadline.
    fn time_left(&self) -> Duration;
    fn cancelled(&self) -> CancellationToken;
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageRef {
    Index(usize),
    Tab(String),
}

#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageView {
    pub page_idx: usize,
    pub tab_id: String,
    pub url: String,
    pub title: String,
    pub current: bool,
}

/// What a successful call gives back.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    pub content: Vec<Content>,
    /// For programs: becomes part of `_meta["tabmux/result"]`.
    pub result: Map<String, Value>,
    /// Only where it holds the whole answer (lists), because some clients show it instead of the text.
    pub structured: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    Text(String),
    Image { base64: String, mime: &'static str },
}
