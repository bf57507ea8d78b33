//! Everything that can be set, as plain values. The binary reads flags, variables and the file and fills this
//! in; nothing in this crate looks at the environment or at the home directory.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

pub use crate::secrets::Secrets;
pub use tabmux_cdp::launch::AGAINST_RULES;
pub use tabmux_core::{OnLost, Scoping};
pub use tabmux_driver::{Domain, Domains, Strangers, WindowBounds};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub paths: Paths,
    pub clocks: Clocks,
    pub limits: Limits,
    pub listen: Listen,
    pub on_lost: OnLost,
    pub session_info: SessionInfo,
    pub browser: BrowserChoice,
    pub chromium: Chromium,
    pub windows: Windows,
    pub attach: Attach,
    pub secrets: Secrets,
    /// What was set for this daemon and not left at its default, by key, for those who come with wishes of their own.
    pub declared: BTreeMap<String, serde_json::Value>,
    /// `tabmux up` supervises: never exit when empty.
    pub supervised: bool,
    /// When this program was made, in milliseconds of Unix time; a newer one takes its place.
    pub build: u64,
    /// Mounts the MCP conformance fixtures beside the tools. Tests only.
    pub conformance_fixtures: bool,
}

/// Where things are. `lock` is beside `socket`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths {
    pub runtime_dir: PathBuf,
    pub state_dir: PathBuf,
    pub socket: PathBuf,
    pub pid_file: PathBuf,
    pub lock: PathBuf,
    pub log_file: PathBuf,
}

/// The four clocks of C1. `None` = off (`0` in the file).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clocks {
    pub session_idle: Option<Duration>,
    pub orphan_grace: Option<Duration>,
    /// After how much rest a session is saved.
    pub session_save: Option<Duration>,
    pub exit_when_empty: Option<Duration>,
    pub call_deadline: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub warn_sessions: u32,
    /// 0 = unlimited.
    pub max_sessions: u32,
    pub max_clones: u32,
    /// How many calls may wait in one session's queue.
    pub queue: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listen {
    /// `None` = no HTTP door.
    pub addr: Option<SocketAddr>,
    pub also: Vec<u16>,
    pub on_conflict: OnConflict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnConflict {
    Refuse,
    Next,
}

/// When a reply names its session (S0.24).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionInfo {
    Auto,
    Always,
    Never,
}

/// How Chromium is started when a session needs one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chromium {
    /// The binary that keeps browsers when it is called with the word `keeper`: this one.
    pub keeper: PathBuf,
    pub runtime_dir: PathBuf,
    /// Where fresh profiles are.
    pub profiles_dir: PathBuf,
    /// How long a browser outlives its daemon.
    pub grace: Option<Duration>,
    pub headless: bool,
    pub args: Vec<String>,
    /// The user data directory of the browser that sessions share, which stays; else each has a fresh one.
    pub profile: Option<PathBuf>,
    /// Width and height of new windows.
    pub window: (u32, u32),
    /// The sites pages may reach.
    pub domains: Domains,
}

/// How sessions isolated by window live beside each other and the person (Seed 4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    pub scoping: Scoping,
    /// Where a session's new window is put.
    pub bounds: WindowBounds,
    /// What of the person's is shown where scoping is off.
    pub strangers: Strangers,
}

/// Browsers that somebody else started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attach {
    /// The one that every session gets that names no other, as the user wrote it.
    pub endpoint: Option<String>,
    /// Where people's profiles are, for the endpoint `auto`.
    pub home: Option<PathBuf>,
    pub config_home: Option<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BrowserChoice {
    /// The built-in fake browser, for tests.
    Fake,
    /// Any other value of `TABMUX_BROWSER`, or none.
    Named(Option<PathBuf>),
}

impl Default for Clocks {
    fn default() -> Self {
        Self {
            session_idle: Some(Duration::from_secs(30 * 60)),
            orphan_grace: Some(Duration::from_secs(5 * 60)),
            session_save: Some(Duration::from_secs(3)),
            exit_when_empty: Some(Duration::from_secs(60)),
            call_deadline: Duration::from_secs(30),
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { warn_sessions: 5, max_sessions: 0, max_clones: 10, queue: 64 }
    }
}
