//! What a caller can do with its sessions, and how it sees them. Who the caller is, only the implementor knows.

use std::time::Duration;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use tabmux_core::{Fault, Share};

use crate::{Arguments, Tool, ToolResult};

/// The daemon implements it for one caller at a time.
#[async_trait]
pub trait Desk: Send + Sync {
    /// Makes a session, navigates it when a URL is given, and rolls back when that leaves no page.
    async fn open(&self, open: OpenSession) -> Result<SessionView, Fault>;
    async fn list(&self) -> SessionList;
    /// The one session that a capability is for.
    async fn list_shared(&self, capability: &str) -> Result<SessionList, Fault>;
    async fn set_current(&self, session: &str) -> Result<SessionView, Fault>;
    /// `None` = the current session.
    async fn close(&self, session: Option<&str>) -> Result<SessionView, Fault>;
    /// The sites the operator lets pages reach.
    fn domains(&self) -> &tabmux_driver::Domains;
    async fn close_all(&self, detach: bool) -> Result<Vec<SessionView>, Fault>;
    /// Makes copies that are the caller's, of a session of its own.
    async fn fork(&self, session: Option<&str>, count: u32, prefix: Option<&str>) -> Result<Forked, Fault>;
    /// Gives others a right to a session; the capability is said this once.
    async fn share(&self, session: Option<&str>, share: Share) -> Result<(String, GrantView), Fault>;
    /// What others may do that the caller can revoke: all of it, or with one session.
    async fn shares(&self, session: Option<&str>) -> Result<Vec<GrantView>, Fault>;
    /// Ends one grant, by its id, or `all` of them.
    async fn revoke(&self, session: Option<&str>, which: &str) -> Result<Vec<GrantView>, Fault>;
    /// Runs a tool as this caller, through the same decisions as a call of its own. It takes at most so long, whatever its arguments say.
    async fn call(&self, tool: &'static Tool, args: Arguments, most: Duration) -> Called;
    /// How long the call at this desk may still take.
    fn time_left(&self) -> Duration;
    /// A secret the operator registered, for a page only.
    fn secret(&self, name: &str) -> Result<String, Fault>;
    /// Adds data for programs to the answer, also when the call fails.
    fn tell(&self, key: &str, value: Value);
}

/// What a call made at a desk came to.
#[derive(Debug)]
pub struct Called {
    pub outcome: ToolResult,
    /// The session it ran in.
    pub session: Option<String>,
    /// What happened in that session since its last answer.
    pub news: Vec<String>,
}

impl Called {
    /// A call that was not made.
    pub fn refused(fault: Fault) -> Self {
        Self { outcome: Err(fault), session: None, news: Vec::new() }
    }
}

/// The copies there are, and why there are no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Forked {
    pub sessions: Vec<SessionView>,
    pub missing: Option<Fault>,
}

/// A grant as who may revoke it sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct GrantView {
    /// Its id, which is no secret.
    pub grant: String,
    pub session_id: String,
    /// `read`, `act` or `hand_over`.
    pub mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Every list of sites a page must be among.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<Vec<String>>,
    pub once: bool,
    /// What is left of its time; without it, as long as the session.
    #[serde(rename = "left_ms", skip_serializing_if = "Option::is_none")]
    pub left_ms: Option<u64>,
    pub created_at: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSession {
    pub name: Option<String>,
    pub url: Option<String>,
    pub isolation: Option<tabmux_driver::Isolation>,
    pub headless: Option<bool>,
    pub from: Option<String>,
    pub proxy: Option<tabmux_driver::Proxy>,
}

/// A session as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionView {
    /// The name; for a caller without an identity, the uuid.
    pub session_id: String,
    pub id: String,
    pub uuid: String,
    #[serde(rename = "type")]
    pub kind: String,
    pub isolation: String,
    /// What it began with: `profile:work`, `session:web`, `file` (S3.35).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// `active`, `orphaned`, or `lost` with its browser.
    pub state: String,
    /// What became of one that was lost, and what can be done about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    pub created_at: String,
    pub age_s: u64,
    /// When its last call came or ended (S1.25).
    pub last_active_at: String,
    pub tabs: usize,
    /// What its pages take; unknown where the browser does not say.
    #[serde(rename = "memory_kb")]
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

#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionList {
    pub sessions: Vec<SessionView>,
    pub current_session: Option<String>,
    /// Why the list is empty for a caller without an identity, or how a session in it is used that is not the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// It is somebody else's, so that none of it can be the caller's current one.
    #[serde(skip)]
    pub is_shared: bool,
}
