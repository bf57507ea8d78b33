//! A daemon without its doors, for tests: a hub on directories of its own, agents that call it, and a browser
//! that can be told to be slow or to fail.

mod stubborn;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicI64;
use std::task::Poll;
use std::time::Duration;

use serde_json::{Map, Value};
use tabmux_core::{ClientId, Code, Fault, Identity, Leave, Link};
use tabmux_mcp::ToolAnswer;
use tabmux_tools::Content;
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::browser::Browsers;
use crate::hub::{Ask, CallerOf, Hub, Profile};
use crate::journal::Journal;
use crate::session::SessionHandle;
use crate::settings::{BrowserChoice, Chromium, Clocks, Domains, Limits, Listen, OnConflict, OnLost, Paths, SessionInfo, Settings};
use crate::store::{Remembered, Store};

pub(crate) use stubborn::{Mood, Stubborn};

/// A hub with its state in a directory that goes away with it.
pub(crate) struct House {
    pub(crate) hub: Arc<Hub>,
    pub(crate) dir: TempDir,
}

/// One caller of a hub.
#[derive(Clone, Debug)]
pub(crate) struct Agent {
    pub(crate) hub: Arc<Hub>,
    pub(crate) client: ClientId,
    pub(crate) thread: Option<String>,
}

/// What a call that succeeded said.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) text: String,
    pub(crate) result: Map<String, Value>,
    pub(crate) structured: Option<Value>,
}

/// Settings for a daemon whose everything is below `dir`.
pub(crate) fn settings(dir: &Path) -> Settings {
    let runtime_dir = dir.join("run");
    Settings {
        paths: Paths {
            state_dir: dir.join("state"),
            socket: runtime_dir.join("tabmux.sock"),
            pid_file: runtime_dir.join("tabmux.pid"),
            lock: runtime_dir.join("tabmux.lock"),
            log_file: dir.join("daemon.log"),
            runtime_dir,
        },
        clocks: Clocks::default(),
        limits: Limits::default(),
        listen: Listen { addr: None, also: Vec::new(), on_conflict: OnConflict::Refuse },
        on_lost: OnLost::Grace,
        session_info: SessionInfo::Auto,
        browser: BrowserChoice::Fake,
        windows: crate::settings::Windows::default(),
        chromium: Chromium {
            keeper: PathBuf::new(),
            runtime_dir: dir.to_owned(),
            profiles_dir: dir.to_owned(),
            grace: None,
            headless: true,
            args: Vec::new(),
            profile: None,
            window: (1280, 720),
            domains: Domains::default(),
        },
        attach: crate::settings::Attach::default(),
        secrets: crate::settings::Secrets::default(),
        declared: std::collections::BTreeMap::new(),
        supervised: false,
        build: 0,
        conformance_fixtures: false,
    }
}

impl House {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    pub(crate) fn with(change: impl FnOnce(&mut Settings)) -> Self {
        Self::at(tempfile::tempdir().unwrap(), change)
    }

    /// With a browser that does what it is told.
    pub(crate) fn stubborn() -> (Self, Arc<Stubborn>) {
        let dir = tempfile::tempdir().unwrap();
        let browser = Stubborn::new();
        (Self::of_parts(dir, &browser, |state| Store::open(state).unwrap()), browser)
    }

    /// With such a browser, on a disk with so many bytes of room.
    pub(crate) fn cramped(room: &Arc<AtomicI64>) -> (Self, Arc<Stubborn>) {
        let dir = tempfile::tempdir().unwrap();
        let browser = Stubborn::new();
        let stored = |state: &Path| {
            let (journal, replayed) = Journal::open_small(state, Arc::clone(room));
            Store::of(journal, replayed)
        };
        (Self::of_parts(dir, &browser, stored), browser)
    }

    fn of_parts(dir: TempDir, browser: &Arc<Stubborn>, stored: impl FnOnce(&Path) -> (Store, Remembered)) -> Self {
        let settings = settings(dir.path());
        let stored = stored(&settings.paths.state_dir);
        let hub = Hub::of_parts(settings, Browsers::given(Arc::clone(browser) as _), stored);
        Self { hub, dir }
    }

    fn at(dir: TempDir, change: impl FnOnce(&mut Settings)) -> Self {
        let mut settings = settings(dir.path());
        change(&mut settings);
        Self { hub: Hub::new(settings).unwrap(), dir }
    }

    /// What `kill -9` leaves, and the next daemon: only what is on disk now counts.
    pub(crate) async fn killed_and_started_again(&self) -> Self {
        self.on_disk().await;
        self.crashed_and_started_again()
    }

    /// The same, with a browser that outlived the daemon.
    pub(crate) async fn killed_and_started_beside(&self, browser: &Arc<Stubborn>) -> Self {
        self.on_disk().await;
        Self::of_parts(self.copy_of_state(), browser, |state| Store::open(state).unwrap())
    }

    /// The same at this very moment, whatever is still on its way to the disk.
    pub(crate) fn crashed_and_started_again(&self) -> Self {
        Self::at(self.copy_of_state(), |_| {})
    }

    fn copy_of_state(&self) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (self.dir.path().join("state"), dir.path().join("state"));
        std::fs::create_dir(&to).unwrap();
        for entry in std::fs::read_dir(from).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                continue;
            }
            std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
        dir
    }

    /// Everything decided so far is on disk: records are written in order. Await it before pausing the clock where a
    /// call waits for the disk: the journal's thread is no timer, and a paused clock runs ahead of it.
    pub(crate) async fn on_disk(&self) {
        self.hub.store.put_http("mark", |_| {}).written().await.unwrap();
    }

    /// A caller with a secret of its own, on a connection.
    pub(crate) fn agent(&self, secret: &str) -> Agent {
        self.agent_as(Identity::Secret(secret.into()), Link::Connection)
    }

    pub(crate) fn operator(&self) -> Agent {
        self.agent_as(Identity::Operator, Link::None)
    }

    pub(crate) fn agent_as(&self, identity: Identity, link: Link) -> Agent {
        self.agent_with(identity, link, Profile::default())
    }

    pub(crate) fn agent_with(&self, identity: Identity, link: Link, profile: Profile) -> Agent {
        let client = self.hub.attach(identity, link, profile).unwrap();
        Agent { hub: Arc::clone(&self.hub), client, thread: None }
    }

    /// Runs the clocks in the background.
    pub(crate) fn keep_time(&self) {
        tokio::spawn(Arc::clone(&self.hub).keep_time());
    }

    /// The only session's task.
    pub(crate) fn session(&self) -> SessionHandle {
        let id = self.hub.look(|registry| registry.records().next().map(|session| session.id)).unwrap();
        self.hub.handle(id).unwrap()
    }

    pub(crate) fn sessions(&self) -> usize {
        self.hub.look(|registry| registry.records().count())
    }
}

impl Agent {
    /// The same connection, another agent on it.
    pub(crate) fn thread(&self, name: &str) -> Self {
        Self { thread: Some(name.to_owned()), ..self.clone() }
    }

    fn ask(&self, tool: &str, args: &Value, cancel: CancellationToken) -> Ask {
        let caller = CallerOf { client: self.client, agent: self.thread.clone() };
        Ask::new(caller, tool.to_owned(), args.as_object().cloned().unwrap(), cancel)
    }

    pub(crate) async fn answer(&self, tool: &str, args: Value) -> ToolAnswer {
        self.hub.run_tool(self.ask(tool, &args, CancellationToken::new())).await
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Said, Fault> {
        said(self.answer(tool, args).await)
    }

    pub(crate) async fn ok(&self, tool: &str, args: Value) -> Said {
        self.call(tool, args).await.unwrap()
    }

    /// Of a call that was waited for elsewhere before.
    pub(crate) async fn fault_after(&self, waited: Duration, tool: &str, args: Value) -> Fault {
        let ask = Ask { waited, ..self.ask(tool, &args, CancellationToken::new()) };
        said(self.hub.run_tool(ask).await).unwrap_err()
    }

    pub(crate) async fn fault(&self, tool: &str, args: Value) -> Fault {
        self.call(tool, args).await.unwrap_err()
    }

    pub(crate) async fn code(&self, tool: &str, args: Value) -> Code {
        self.fault(tool, args).await.code
    }

    /// The value of a script in a session.
    pub(crate) async fn eval(&self, session: &str, script: &str) -> Result<String, Fault> {
        self.call("evaluate", serde_json::json!({ "sessionId": session, "script": script })).await.map(|said| said.text)
    }

    /// Begins a call: it is admitted when this returns, and goes on by itself.
    pub(crate) async fn begin(&self, tool: &str, args: Value) -> JoinHandle<Result<Said, Fault>> {
        self.begin_cancellable(tool, args, CancellationToken::new()).await
    }

    pub(crate) async fn begin_cancellable(&self, tool: &str, args: Value, cancel: CancellationToken) -> JoinHandle<Result<Said, Fault>> {
        let (hub, ask) = (Arc::clone(&self.hub), self.ask(tool, &args, cancel));
        let mut call = Box::pin(async move { said(hub.run_tool(ask).await) });
        match std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context))).await {
            Poll::Ready(said) => tokio::spawn(std::future::ready(said)),
            Poll::Pending => tokio::spawn(call),
        }
    }

    pub(crate) fn lost(&self) {
        self.hub.detach(self.client, Leave::Lost);
    }

    pub(crate) fn goodbye(&self) {
        self.hub.detach(self.client, Leave::Goodbye);
    }
}

fn said(answer: ToolAnswer) -> Result<Said, Fault> {
    let reply = answer.outcome?;
    let text = |content: Content| if let Content::Text(text) = content { text } else { panic!("an image") };
    let text = reply.content.into_iter().map(text).collect::<Vec<_>>().join("\n");
    Ok(Said { text, result: answer.result, structured: reply.structured })
}

/// Waits for something that comes about by itself, for at most ten seconds of real time.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let began = std::time::Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(10), "it never came about: {what}");
        tokio::task::yield_now().await;
    }
}
