//! The first line a shim or the command line writes, the daemon's answer, and its farewell. After a `Welcome`
//! a shim's stream is MCP, one message per line; the command line's is `control`.

use serde::{Deserialize, Serialize};

/// In the `_meta` of a call that a shim sends again: for how many milliseconds its client has waited for it.
pub const WAITED_META: &str = "tabmux/waitedMs";

/// First line of a shim or of the command line: `{"tabmux":1,"hello":{…}}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelloLine {
    /// The socket protocol's version.
    pub tabmux: u32,
    pub hello: Hello,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hello {
    pub role: Role,
    /// Version of the program that says hello, for the log and for take-over by a newer one.
    pub program: String,
    pub pid: u32,
    /// A secret of at least 32 characters that makes this peer itself again after a daemon crash. The daemon keeps its hash only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// `--session NAME`: the name of the session this peer makes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// A capability (`TABMUX_TOKEN`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Of a re-joining shim: the parameters of the MCP `initialize` its client sent to a former daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initialize: Option<serde_json::Value>,
    /// `--tools`: which part of the tool list this endpoint shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<String>,
    /// What `start_browser` takes when the call does not say (`--isolation`, `--headed`, …), as its arguments.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub defaults: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// `tabmux mcp`: MCP follows.
    Mcp,
    /// The command line: `control` requests follow.
    Cli,
}

/// The daemon's answer to a hello: `{"tabmux":1,"welcome":{…}}` or `{"tabmux":1,"error":{…}}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WelcomeLine {
    pub tabmux: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub welcome: Option<Welcome>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<crate::control::WireFault>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Welcome {
    pub version: String,
    /// Which of two daemons of one version is newer: when its binary was made, in milliseconds of Unix time.
    #[serde(default)]
    pub build: u64,
    pub pid: u32,
    /// Tools that only read: a shim sends an unanswered call of one again after a daemon crash.
    pub read_only_tools: Vec<String>,
    /// What was set for the daemon, by key; daemons of former versions do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settings: Option<std::collections::BTreeMap<String, serde_json::Value>>,
}

/// The daemon stops on purpose: `{"tabmux":1,"goodbye":"stop"}`. The shim then waits for the next call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct GoodbyeLine {
    pub tabmux: u32,
    /// `stop`; `empty`: nothing was left to serve; or `upgrade`: a newer daemon takes its place with the same sessions. In the
    /// last two cases whatever is unanswered was not begun. `cut_off`: the same, but what is unanswered may have been done.
    pub goodbye: String,
}

impl GoodbyeLine {
    /// Every line of the daemon's own begins so; no MCP message does.
    pub const PREFIX: &'static str = "{\"tabmux\":";

    /// A newer daemon takes the place, and some calls of this peer were not finished in time.
    pub const CUT_OFF: &'static str = "cut_off";
}
