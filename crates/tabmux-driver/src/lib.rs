//! What a browser can be asked: the traits every driver implements, and a fake browser that implements them
//! without one. Sessions, clients and MCP are deliberately absent: a driver knows contexts and pages.

mod act;
pub mod contract;
mod cookie;
mod copy;
mod domains;
mod download;
mod emulation;
mod error;
mod failpoint;
pub mod fake;
mod keys;
mod log;
mod reading;
mod script;
mod see;
mod selector;
mod sight;
mod storage;
mod traffic;
mod wait;
mod window;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, watch};

pub use act::{Acted, Action, Bring, Button, Click, MAX_TYPED, Modifiers, PATIENCE, Verb};
pub use cookie::{Cookie, SameSite};
pub use copy::{
    ARRIVING, Arrival, Beginning, Copied, Footprint, Leisure, Opening, Origins, PageSeed, Planted, ReadOnce, SessionStorage, Source,
    origin_of,
};
pub use domains::{Domain, Domains, Hosts, Reach, is_for_pages};
pub use download::{Download, DownloadState, MAX_DOWNLOADS, safe_name, settle};
pub use emulation::{Credentials, Emulation, Geolocation, Permission, Proxy, Throttle};
pub use error::DriverError;
pub use failpoint::failpoint;
pub use keys::{Chord, Key};
pub use log::PageLog;
pub use reading::{Article, Reading};
pub use script::SCRIPT;
pub use see::{Area, Image, ImageFormat, Orientation, Shot};
pub use selector::{By, Selector, Words};
pub use sight::{Changes, Element, Rows, Scope, Sight, Snapshot, Which};
pub use storage::{DATABASES, OriginStorage, StorageArea, StorageItem, StorageState};
pub use tabmux_core::{Ground, Spot, WindowId};
pub use traffic::{Request, Stage, Traffic};
pub use wait::{Awaited, Condition, Lacks, NETWORK_QUIET, UrlPattern};
pub use window::{Place, Strangers, WindowBounds, Windowed};

pub type Result<T> = std::result::Result<T, DriverError>;

/// What keeps one session's pages from another's (C12).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Own cookies and storage in a browser tabmux launched.
    #[default]
    Context,
    /// Own window in a shared profile.
    Window,
    /// Own tabs in a shared profile.
    Tab,
    /// Own browser process.
    Browser,
}

impl Isolation {
    /// Whether its cookies and storage are those of a profile that others use too.
    pub fn shares_profile(self) -> bool {
        matches!(self, Self::Tab | Self::Window)
    }
}

/// How a context is to be made, and made again after its browser was lost. What must not be written down is left out
/// when this is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ContextSpec {
    pub isolation: Isolation,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headless: Option<bool>,
    /// Where its browser listens, when it is one that somebody else started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoint: Option<String>,
    pub certificates: Certificates,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<Proxy>,
    /// What its pages see from the beginning.
    pub emulation: Emulation,
    /// How large they are where nothing else is emulated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub viewport: Option<(u32, u32)>,
    /// Where its downloads go: a directory that is there, and nobody else's.
    #[serde(skip)]
    pub downloads: Option<PathBuf>,
    /// What it begins with. Cookies are there when it is open; what origins keep follows, and documents wait for it.
    #[serde(skip)]
    pub source: Option<Beginning>,
    /// What a former daemon knew of its origins.
    #[serde(skip_serializing_if = "Footprint::is_empty")]
    pub footprint: Footprint,
}

/// What a context thinks of certificates it cannot verify.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Certificates {
    #[default]
    Checked,
    Ignored,
}

/// A driver's own name for a context or a page. Opaque outside the driver; the journal keeps it so that a new
/// daemon can find the same context again.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Handle(pub String);

/// One running browser.
#[async_trait]
pub trait Browser: Send + Sync + std::fmt::Debug {
    fn info(&self) -> BrowserInfo;

    /// Makes an isolated context. Nothing of it is left when this fails.
    async fn open_context(&self, spec: &ContextSpec) -> Result<Arc<dyn Context>>;

    /// Finds a context again that a former daemon made as `spec` says, with the pages it had. Pages that are gone are left out. What
    /// had not arrived in it (`spec.footprint`) is brought from `spec.source`.
    async fn adopt_context(&self, context: &Handle, spec: &ContextSpec, pages: &[PageRecord]) -> Result<Adopted>;

    /// Closes every context but these: what a former daemon was making when it died. Says how many of these it has; those that
    /// are only some pages of a profile are not counted.
    async fn keep_only(&self, contexts: &[Handle]) -> Result<usize>;

    /// How many isolated contexts are in it, whoever made them.
    async fn contexts(&self) -> Result<usize>;

    /// From now on none of its pages gets to the port through which the browser at this address is controlled.
    async fn shut_door(&self, endpoint: &str) -> Result<()>;

    /// Comes when the browser is gone, with the reason.
    async fn gone(&self) -> String;

    /// Ends the browser and all its traces, or lets go of one that is somebody else's.
    async fn end(&self) -> Result<()>;
}

/// An adopted context and those of its pages that still live, by the handle the record named.
#[derive(Debug)]
pub struct Adopted {
    pub context: Arc<dyn Context>,
    pub pages: Vec<(Handle, Arc<dyn Page>)>,
}

/// What a journal keeps of a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageRecord {
    pub handle: Handle,
    pub url: String,
    /// What the page said of itself last: see [`Page::memento`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memento: Option<String>,
}

impl PageRecord {
    pub fn of(page: &dyn Page) -> Self {
        Self { handle: page.handle().clone(), url: page.url(), memento: page.memento() }
    }
}

/// One isolated world in a browser.
#[async_trait]
pub trait Context: Send + Sync + std::fmt::Debug {
    fn handle(&self) -> &Handle;

    /// Opens a page in this context, at `about:blank`.
    async fn open_page(&self) -> Result<Arc<dyn Page>>;

    /// Closes every page and forgets the context's storage. Never waits for a page's own scripts.
    async fn close(&self) -> Result<()>;

    /// Every cookie of this context, whatever its site.
    async fn cookies(&self) -> Result<Vec<Cookie>>;

    /// Sets cookies, and gives the places of those that the browser does not take; the others are set.
    async fn set_cookies(&self, cookies: &[Cookie]) -> Result<Vec<usize>>;

    /// Forgets every cookie.
    async fn clear_cookies(&self) -> Result<()>;

    /// Itself as something to begin with, for as long as it is open.
    fn source(&self) -> Option<Arc<dyn Source>> {
        None
    }

    /// How far the copying of what it began with has come, and what was lost on the way.
    fn copied(&self) -> watch::Receiver<Copied> {
        watch::channel(Copied::default()).1
    }

    /// Which origins it has been at. Whoever keeps this for the next daemon gives it back with the [`ContextSpec`].
    fn footprint(&self) -> watch::Receiver<Footprint> {
        watch::channel(Footprint::default()).1
    }

    /// The origins that pages or frames of it came to since this was asked last.
    fn take_visits(&self) -> BTreeSet<String> {
        BTreeSet::new()
    }

    /// Opens a page as another one was, within seconds. That its address cannot be reached now is no failure.
    async fn open_seeded(&self, _seed: &PageSeed) -> Result<Planted> {
        Err(DriverError::Unsupported("Pages of this session cannot be copied.".into()))
    }

    /// What its pages see.
    fn emulation(&self) -> Emulation;

    /// Makes its pages see this and nothing else, those that are there and those to come.
    async fn emulate(&self, wanted: &Emulation) -> Result<()>;

    /// What its pages take, in kB. Never waits for a page that does not answer; none where nothing is known.
    async fn memory_kb(&self) -> Option<u64> {
        None
    }

    /// What its pages downloaded, oldest first; bounded.
    fn downloads(&self) -> watch::Receiver<Vec<Download>>;

    /// Hears of pages that pages of this context opened; they are in it already. One listener; bounded, never blocking the driver.
    fn popups(&self) -> mpsc::Receiver<Popup>;

    /// What else can be asked where pages live in windows among those of others.
    fn windows(&self) -> Option<&dyn Windowed> {
        None
    }
}

/// A page that another one opened.
#[derive(Clone, Debug)]
pub struct Popup {
    pub page: Arc<dyn Page>,
    /// The page that opened it, where the browser says.
    pub opener: Option<Handle>,
}

/// One page. A tool is handed its page and cannot choose another.
#[async_trait]
pub trait Page: Send + Sync + std::fmt::Debug {
    fn handle(&self) -> &Handle;

    /// Where the page is now; never waits for the page.
    fn url(&self) -> String;
    /// As it was when somebody last looked at the page, or asked for it.
    fn title(&self) -> String;

    /// Asks the browser what the title is now, which a page changes without telling. Not for long, and never the page itself.
    async fn refresh_title(&self) {}

    /// What the server answered with the document, where that is known.
    fn status(&self) -> Option<u16> {
        None
    }

    /// Why it shows the browser's own error page, if it does; it is at the address that could not be reached then, and has no title.
    fn unreachable(&self) -> Option<String> {
        None
    }

    /// Whether its process ended and it shows nothing.
    fn is_crashed(&self) -> bool {
        false
    }

    async fn navigate(&self, to: Navigation<'_>) -> Result<()>;

    /// Runs a script in the page and gives its value as JSON.
    async fn evaluate(&self, script: &str) -> Result<serde_json::Value>;

    /// What is on the page, as lines.
    async fn snapshot(&self, sight: &Sight) -> Result<Snapshot>;

    /// What can be seen, also in frames, and how many more there are beyond the bound.
    async fn elements(&self) -> Result<(Vec<Element>, u64)>;

    /// Waits a little until the page rests, and says what changed since the last time somebody looked, in about so many tokens.
    async fn changes(&self, budget: u32) -> Result<Changes>;

    /// Waits, not for long, until the page is where the last act sent it, if it sent it anywhere; why it could not go there.
    async fn arrival(&self) -> Option<String> {
        None
    }

    /// How many pages it asked for since somebody last acted on it; they may not be there yet, and not every one comes.
    fn opened(&self) -> u64 {
        0
    }

    /// What the page has for reading.
    async fn read(&self, reading: &Reading) -> Result<Article>;

    /// The page's visible text.
    async fn text(&self) -> Result<String>;

    /// Comes when the page is as awaited, in this document or a later one.
    async fn wait_for(&self, awaited: &Awaited) -> Result<()>;

    /// What the function that somebody waits for gave when it was last asked, in few words; nothing, where it was not asked or has not answered.
    fn last_given(&self, _function: &str) -> Option<String> {
        None
    }

    /// What the page's origin keeps.
    async fn storage(&self, area: StorageArea) -> Result<Vec<StorageItem>>;

    /// Sets items, and removes those without a value. Nothing is promised of the others when one is refused.
    async fn set_storage(&self, area: StorageArea, items: &[(String, Option<String>)]) -> Result<()>;

    /// Forgets everything the page's origin keeps there.
    async fn clear_storage(&self, area: StorageArea) -> Result<()>;

    /// What a copy of the page begins with.
    async fn seed(&self) -> Result<PageSeed> {
        Err(DriverError::Unsupported("This page cannot be copied.".into()))
    }

    /// Answers the open dialog. Never waits for a running script.
    async fn answer_dialog(&self, answer: DialogAnswer) -> Result<Dialog>;

    /// The dialog that is open now.
    fn dialog(&self) -> Option<Dialog>;

    /// How many its document has opened so far.
    fn dialogs(&self) -> u64 {
        0
    }

    /// Does to the page what a person would; comes back once the page confirmed that it arrived.
    async fn act(&self, action: &Action) -> Result<Acted>;

    /// Gives files to the input that matches the selector, or to the file chooser that is open. Comes back with a sentence where
    /// the page did something else with them than keep them.
    async fn upload(&self, files: &[PathBuf], selector: Option<&Selector>) -> Result<Option<String>>;

    /// A picture of the page, also when nobody looks at it.
    async fn screenshot(&self, shot: &Shot) -> Result<Image>;

    /// The page on paper, as PDF in base64.
    async fn pdf(&self, orientation: Orientation) -> Result<String>;

    /// What the page asked the network for, oldest first, and how many requests were lost to the bound.
    fn requests(&self) -> (Vec<Request>, u64);

    /// Where it is on its way to, while that has not come. Till then a browser may pass nothing on to the page.
    fn bound_for(&self) -> Option<String> {
        None
    }

    /// Whether that is there, and nothing but the document that it is leaving keeps it from going. Nothing reaches such a page any more.
    fn is_held(&self) -> bool {
        false
    }

    /// What it asked the network for first of all that has not come so far.
    fn waits_for(&self) -> Option<String> {
        None
    }

    /// Takes what was logged since the last time, oldest first, and how many entries were lost to the bound.
    fn take_log(&self) -> (Vec<LogEntry>, u64);

    /// How many errors it logged that nobody was told of.
    fn untold_errors(&self) -> u64 {
        0
    }

    /// Closes the page. Never waits for its scripts.
    async fn close(&self) -> Result<()>;

    /// What its driver wants to be told when it finds the page again for another daemon. Opaque outside the driver.
    fn memento(&self) -> Option<String> {
        None
    }

    /// Hears of this page's dialogs, its crash and its closing. One listener; bounded, never blocking the driver.
    fn events(&self) -> mpsc::Receiver<PageEvent>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Navigation<'a> {
    To(&'a str),
    Back,
    Forward,
    Reload,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub kind: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DialogAnswer {
    Accept { prompt: Option<String> },
    Dismiss,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LogEntry {
    /// `log`, `warning`, `error` or `exception`.
    pub level: String,
    pub text: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageEvent {
    DialogOpened(Dialog),
    /// The page asks for files.
    ChooserOpened(Chooser),
    Crashed,
    /// Closed by a person or by the page itself.
    Closed,
}

/// How many files a page asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chooser {
    One,
    Many,
}

/// What `status` says of a browser.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BrowserInfo {
    pub id: String,
    pub kind: String,
    pub pid: Option<u32>,
    pub keeper_pid: Option<u32>,
    pub endpoint: Option<String>,
    /// How many isolated contexts are in it, where it said so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contexts: Option<usize>,
    /// What has to happen before it can be used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waits_for: Option<String>,
}

/// How long a driver may take for things no caller waits for, such as closing.
pub const HOUSEKEEPING: Duration = Duration::from_secs(5);
