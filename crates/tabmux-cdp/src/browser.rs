//! One running Chromium as the driver's traits see it. Only targets of our own contexts are ever attached to; no method
//! name or id that comes from an agent reaches the browser.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

use async_trait::async_trait;
use serde_json::value::RawValue;
use tabmux_driver::{
    Adopted, Browser, BrowserInfo, Context, ContextSpec, DriverError, HOUSEKEEPING, Handle, Isolation, PageRecord, Result, failpoint,
};

use crate::CdpError;
use crate::attach::Doors;
use crate::connection::{Connection, Listener};
use crate::context::{CdpContext, Strays, TABS, Unit, WINDOWS, Whose, is_hidden};
use crate::event::read;
use crate::find::Kind;
use crate::kept::EndOrder;
use crate::launch::{Launch, Mode, NO_BYPASS, Sharing};
use crate::protocol::{Event, browser, fetch, target};
use crate::threshold::Threshold;
use crate::transport::Transport;
use crate::windows::{OwnWindows, Windows};
use crate::world::{Build, Drawn, World};
use tokio::sync::{mpsc, oneshot};

#[derive(Debug)]
pub struct CdpBrowser {
    info: Mutex<BrowserInfo>,
    connection: Connection,
    targets: Arc<Targets>,
    windows: Arc<Windows>,
    me: Weak<Self>,
    /// How it was started, and whom to ask to end it; none for a browser that is somebody else's.
    kept: Option<(Launch, mpsc::Sender<EndOrder>)>,
}

/// Which contexts are ours. The browser talks of every target it has; what belongs to none of these is not looked at.
#[derive(Debug, Default)]
struct Targets {
    contexts: Mutex<HashMap<String, Weak<CdpContext>>>,
    /// Weak, or the connection would keep itself.
    windows: OnceLock<Weak<Windows>>,
    strays: Arc<Strays>,
    doors: Doors,
    threshold: Threshold,
}

impl CdpBrowser {
    /// Speaks to a browser over its transport. `first_id` is above every id a former daemon used on it.
    pub async fn connect(transport: Transport, first_id: i32, info: BrowserInfo) -> crate::Result<Arc<Self>> {
        Self::connect_to(transport, first_id, info, None).await
    }

    pub(crate) async fn connect_to(
        transport: Transport,
        first_id: i32,
        info: BrowserInfo,
        kept: Option<(Launch, mpsc::Sender<EndOrder>)>,
    ) -> crate::Result<Arc<Self>> {
        let targets = Arc::<Targets>::default();
        let connection = Connection::start(transport, first_id, Arc::clone(&targets) as Arc<dyn Listener>);
        // A person's pages may have hundreds of workers and frames; of those nothing is heard.
        let pages = || vec![target::FilterEntry { kind: Some("page".into()), ..target::FilterEntry::default() }];
        let discover = target::SetDiscoverTargets { discover: true, filter: kept.is_none().then(pages) };
        // One that we keep has pages of ours, or has just been started: it is worth waiting for.
        let patience = if kept.is_some() { HOUSEKEEPING * 6 } else { HOUSEKEEPING };
        connection.call_in(None, &discover, patience).await?;
        if kept.as_ref().is_some_and(|(launch, _)| is_shell(launch)) {
            targets.threshold.begin(&connection, patience).await?;
        }
        let windows = Windows::new(connection.clone());
        targets.windows.set(Arc::downgrade(&windows)).expect("they were made just now");
        Ok(Arc::new_cyclic(|me| Self { info: Mutex::new(info), connection, targets, windows, me: me.clone(), kept }))
    }

    /// Where the files of the window usher go: a directory that only this user can write to. Without one, every page of a
    /// context isolated by window gets a window of its own.
    pub fn keep_window_usher_in(&self, place: std::path::PathBuf) {
        self.windows.keep_usher_in(place);
    }

    /// Nobody but us has used this browser so far.
    pub(crate) fn is_fresh(&self) {
        self.windows.set_untouched();
    }

    /// The wire itself, for tests that count and listen. Nothing of an agent's reaches it.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// How this browser was started.
    pub fn launched(&self) -> Option<&Launch> {
        self.kept.as_ref().map(|(launch, _)| launch)
    }

    pub(crate) fn set_keeper(&self, pid: u32) {
        self.info.lock().unwrap_or_else(PoisonError::into_inner).keeper_pid = Some(pid);
    }

    fn build(&self) -> Build {
        if self.launched().is_some_and(is_shell) { Build::Shell } else { Build::Full }
    }

    fn drawn(&self, unit: &Unit) -> Drawn {
        let headless = self.launched().is_some_and(|launch| launch.mode == Mode::Headless);
        match (self.build(), unit) {
            (Build::Shell, _) => Drawn::Always,
            (Build::Full, Unit::Context) if headless => Drawn::WhileAlone,
            (Build::Full, _) => Drawn::WhenAsked,
        }
    }

    fn remember(&self, id: &str, unit: Unit, spec: &ContextSpec) -> Arc<CdpContext> {
        let world = World::new(id, spec, self.build(), self.drawn(&unit));
        let alone = self.launched().is_some_and(|launch| launch.sharing == Sharing::One);
        let browser = if alone { self.me.clone() } else { Weak::new() };
        let windows = Arc::clone(&self.windows);
        let context = Arc::new_cyclic(|me| {
            let context = CdpContext::new(id.to_owned(), unit, world, self.connection.clone(), windows, browser, Weak::clone(me));
            let context = context.among_strays(&self.targets.strays);
            if self.kept.is_none() { context.among_a_persons() } else { context }
        });
        let mut contexts = self.targets.contexts();
        contexts.retain(|_, context| context.strong_count() > 0);
        contexts.insert(id.to_owned(), Arc::downgrade(&context));
        context
    }

    /// The context with what it is to begin with; closed again where that fails.
    async fn furnished(&self, context: Arc<CdpContext>, spec: &ContextSpec) -> Result<Arc<dyn Context>> {
        let furnished = async {
            self.furnish(&context).await?;
            match &spec.source {
                Some(beginning) => context.begin_with(beginning).await,
                None => Ok(()),
            }
        };
        let furnished = furnished.await;
        failpoint("context-furnished");
        if let Err(error) = furnished {
            context.close().await?;
            return Err(error);
        }
        Ok(context)
    }

    /// Gives a context what no other has: a place for its downloads, a clipboard of its own, its permissions.
    async fn furnish(&self, context: &CdpContext) -> Result<()> {
        let ours = if self.kept.is_some() { Whose::Ours } else { Whose::Theirs };
        let (downloads, permissions) = futures::join!(context.place_downloads(ours), context.furnish());
        downloads.and(permissions)
    }

    /// Hidden tabs of a former daemon, which not even the end of their context would close.
    async fn close_hidden(&self) -> Result<()> {
        let targets = self.connection.call_in(None, &target::GetTargets::default(), HOUSEKEEPING).await?.target_infos;
        for info in targets.into_iter().filter(|info| is_hidden(info) && !self.windows.has_made(&info.target_id)) {
            // Queued by now; refused, it is gone already.
            drop(self.connection.send(None, &target::CloseTarget { target_id: info.target_id }));
        }
        Ok(())
    }

    /// What a context of a former daemon is; those that are gone are said.
    async fn unit_of(&self, id: &str) -> Result<Unit> {
        if let Some(unit) = self.shared_unit(id)? {
            return Ok(unit);
        }
        let known = self.connection.call_in(None, &target::GetBrowserContexts::default(), HOUSEKEEPING).await?;
        if known.browser_context_ids.iter().any(|known| known == id) { Ok(Unit::Context) } else { Err(gone()) }
    }

    fn living(&self, id: &str) -> Option<Arc<CdpContext>> {
        self.targets.contexts().get(id)?.upgrade().filter(|context| !context.is_closed())
    }
}

/// It has no windows that people could see, so every page in it is ours.
fn is_shell(launch: &Launch) -> bool {
    launch.binary.kind == Kind::HeadlessShell
}

/// A browser context that is not yet anybody's. Whoever gives up before it is leaves nothing behind.
#[derive(Debug)]
struct Unfinished {
    connection: Connection,
    id: Option<String>,
}

impl Unfinished {
    /// Made on a task of its own, which waits for as long as the browser lives: one that comes when nobody waits for it any more is known too.
    async fn make(connection: &Connection, create: target::CreateBrowserContext) -> Result<Self> {
        let (sender, made) = oneshot::channel();
        let connection = connection.clone();
        tokio::spawn(async move {
            let made = connection.send(None, &create).await;
            // Unheard: it goes with who was to have it.
            drop(sender.send(made.map(|made| Self { connection, id: Some(made.browser_context_id) })));
        });
        let late = CdpError::Late { method: "Target.createBrowserContext" };
        // Its task ends early only with the daemon.
        match tokio::time::timeout(HOUSEKEEPING, made).await {
            Ok(Ok(made)) => Ok(made?),
            Ok(Err(_)) | Err(_) => Err(late.into()),
        }
    }

    fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    fn finished(mut self) {
        self.id = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(browser_context_id) = self.id.take() {
            // Queued by now; refused, it is gone already.
            drop(self.connection.send(None, &target::DisposeBrowserContext { browser_context_id }));
        }
    }
}

const NOT_OURS: &str =
    "A browser that was attached to belongs to somebody, so no session can have it to itself; use window, context or tab.";

impl CdpBrowser {
    /// The browser has no name for such a context, so one is made that no other browser's can be taken for.
    fn name_of(&self, kind: &str) -> Result<String> {
        let number = getrandom::u64().map_err(|error| DriverError::BrowserGone(format!("no random numbers for a handle: {error}")))?;
        Ok(format!("{kind}{}-{number:016x}", self.info().id))
    }

    /// The unit of a context in the shared profile that was made in this very browser; `None` for other kinds of contexts.
    fn shared_unit(&self, handle: &str) -> Result<Option<Unit>> {
        let (kind, unit) = match handle {
            tabs if tabs.starts_with(TABS) => (TABS, Unit::Tabs),
            windows if windows.starts_with(WINDOWS) => (WINDOWS, Unit::Windows(OwnWindows::default())),
            _ => return Ok(None),
        };
        if handle.starts_with(&format!("{kind}{}-", self.info().id)) { Ok(Some(unit)) } else { Err(gone()) }
    }
}

fn gone() -> DriverError {
    DriverError::BrowserGone("the session's pages went with a browser that ended".into())
}

impl Targets {
    fn contexts(&self) -> MutexGuard<'_, HashMap<String, Weak<CdpContext>>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The context of a target: its own one, or, among those who share the profile, that of the page itself or of its opener.
    fn of(&self, info: &target::TargetInfo) -> Option<Arc<CdpContext>> {
        let own = info.browser_context_id.as_ref().and_then(|id| self.contexts().get(id)?.upgrade());
        own.or_else(|| {
            let known = |context: &Arc<CdpContext>| {
                context.has(&info.target_id) || info.opener_id.as_ref().is_some_and(|opener| context.has(opener))
            };
            self.all().into_iter().find(known)
        })
    }

    fn windows(&self) -> Option<Arc<Windows>> {
        self.windows.get()?.upgrade()
    }

    /// A page came up in the profile that does not say who opened it. It is looked at from outside only, until it is clear
    /// that it belongs here.
    fn stranger(&self, info: target::TargetInfo) {
        let sharing: Vec<_> = self.all().into_iter().filter(|context| context.shares_profile()).collect();
        let (Some(windows), false) = (self.windows(), sharing.is_empty() || info.opener_id.is_some()) else { return };
        let came = Instant::now();
        // Asked before anything is waited for: a person may drag it elsewhere meanwhile, and what counts is where it came up.
        let birthplace = windows.birthplace(&info.target_id);
        tokio::spawn(async move {
            let window = birthplace.await;
            if !windows.is_stranger(&info.target_id).await {
                return;
            }
            // The one whose window it came up in, or else one that asked for such a page.
            let housed = window.and_then(|window| sharing.iter().find(|context| context.owns(window)));
            if let Some(context) = housed.or_else(|| sharing.iter().find(|context| context.asked_for(&info.url, came))) {
                context.arrived(info);
            }
        });
    }

    fn all(&self) -> Vec<Arc<CdpContext>> {
        self.contexts().values().filter_map(Weak::upgrade).collect()
    }
}

impl Listener for Targets {
    fn event(&self, method: &str, params: &RawValue) {
        match method {
            target::TargetCreated::METHOD => {
                let Some(target::TargetCreated { target_info: info }) = read(params) else { return };
                if info.kind != "page" {
                    return;
                }
                match self.of(&info) {
                    Some(_) if info.opener_id.is_some() && self.threshold.is_watched() => {}
                    Some(context) => context.arrived(info),
                    None if self.windows().is_some_and(|windows| windows.ends_orphan(&info)) => {}
                    None => self.stranger(info),
                }
            }
            target::AttachedToTarget::METHOD => {
                let Some(target::AttachedToTarget { session_id, target_info: info, waiting_for_debugger }) = read(params) else { return };
                if !waiting_for_debugger {
                    return self.threshold.was_there(session_id);
                }
                // A page that we made is prepared by who made it.
                match self.of(&info).filter(|_| info.opener_id.is_some()) {
                    Some(context) => {
                        failpoint("popup-waits");
                        context.attached(info, session_id);
                    }
                    None => self.threshold.pass(session_id),
                }
            }
            target::TargetInfoChanged::METHOD => {
                let Some(target::TargetInfoChanged { target_info: info }) = read(params) else { return };
                if let Some(windows) = self.windows() {
                    windows.is_at(&info.target_id, &info.url);
                }
                if let Some(context) = self.of(&info) {
                    context.moved(&info);
                }
            }
            fetch::RequestPaused::METHOD => self.doors.paused(params),
            target::TargetDestroyed::METHOD => {
                let Some(event) = read::<target::TargetDestroyed>(params) else { return };
                if let Some(windows) = self.windows() {
                    windows.destroyed(&event.target_id);
                }
                self.all().iter().for_each(|context| context.closed_target(&event.target_id));
            }
            browser::DownloadWillBegin::METHOD => {
                if let Some(event) = read(params) {
                    self.strays.began(&self.all(), event);
                }
            }
            browser::DownloadProgress::METHOD => {
                if let Some(event) = read(params) {
                    self.strays.progressed(&self.all(), event);
                }
            }
            _ => {}
        }
    }

    fn gone(&self, why: &CdpError) {
        self.all().iter().for_each(|context| context.browser_gone(why));
    }
}

#[async_trait]
impl Browser for CdpBrowser {
    fn info(&self) -> BrowserInfo {
        self.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn keep_only(&self, contexts: &[Handle]) -> Result<usize> {
        if self.kept.is_none() {
            // In somebody else's browser only what this connection made is surely ours.
            let (known, unknown): (Vec<_>, Vec<_>) =
                self.targets.all().into_iter().partition(|context| contexts.contains(context.handle()));
            futures::future::join_all(unknown.iter().map(|context| context.close())).await.into_iter().collect::<Result<()>>()?;
            return Ok(known.len());
        }
        self.close_hidden().await?;
        let there = self.connection.call_in(None, &target::GetBrowserContexts::default(), HOUSEKEEPING).await?.browser_context_ids;
        let (known, others): (Vec<_>, Vec<_>) = there.into_iter().partition(|id| contexts.iter().any(|context| context.0 == *id));
        let closing = others.into_iter().map(|browser_context_id| async move {
            let dispose = target::DisposeBrowserContext { browser_context_id };
            self.connection.call_in(None, &dispose, HOUSEKEEPING).await
        });
        for closed in futures::future::join_all(closing).await {
            // Refused: it is gone already.
            if let Err(error @ (CdpError::Disconnected(_) | CdpError::Late { .. })) = closed {
                return Err(error.into());
            }
        }
        Ok(known.len())
    }

    async fn contexts(&self) -> Result<usize> {
        Ok(self.connection.call_in(None, &target::GetBrowserContexts::default(), HOUSEKEEPING).await?.browser_context_ids.len())
    }

    async fn shut_door(&self, endpoint: &str) -> Result<()> {
        Ok(self.targets.doors.keep_shut(&self.connection, endpoint).await?)
    }

    async fn gone(&self) -> String {
        self.connection.closed().await
    }

    async fn end(&self) -> Result<()> {
        // A browser that is not ours is only let go.
        let Some((_, orders)) = &self.kept else {
            self.windows.dismiss_usher().await;
            self.connection.close("it was let go");
            return Ok(());
        };
        let (done, ended) = oneshot::channel();
        if orders.send(done).await.is_err() {
            return Ok(());
        }
        match ended.await {
            Ok(Err(error)) => Err(DriverError::BrowserGone(error.to_string())),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    async fn open_context(&self, spec: &ContextSpec) -> Result<Arc<dyn Context>> {
        match spec.isolation {
            Isolation::Browser if self.kept.is_none() => Err(DriverError::Unsupported(NOT_OURS.into())),
            Isolation::Context | Isolation::Browser => {
                let create = target::CreateBrowserContext {
                    proxy_server: spec.proxy.as_ref().map(|proxy| proxy.server.clone()),
                    proxy_bypass_list: spec.proxy.as_ref().map(|proxy| proxy.bypass.clone().unwrap_or(NO_BYPASS.into())),
                    ..target::CreateBrowserContext::default()
                };
                let made = Unfinished::make(&self.connection, create).await?;
                failpoint("context-created");
                let furnished = self.furnished(self.remember(made.id(), Unit::Context, spec), spec).await;
                made.finished();
                furnished
            }
            Isolation::Tab | Isolation::Window if spec.proxy.is_some() => {
                let text = "Sessions that share a profile share its way to the network; a proxy needs isolation context or browser.";
                Err(DriverError::Unsupported(text.into()))
            }
            Isolation::Tab => self.furnished(self.remember(&self.name_of(TABS)?, Unit::Tabs, spec), spec).await,
            Isolation::Window => {
                let unit = Unit::Windows(OwnWindows::default());
                self.furnished(self.remember(&self.name_of(WINDOWS)?, unit, spec), spec).await
            }
        }
    }

    async fn adopt_context(&self, context: &Handle, spec: &ContextSpec, pages: &[PageRecord]) -> Result<Adopted> {
        let found = match self.living(&context.0) {
            Some(context) => context,
            None => {
                let unit = self.unit_of(&context.0).await?;
                let found = self.remember(&context.0, unit, spec);
                found.world().downloads.find_again().await;
                self.furnish(&found).await?;
                spec.source.iter().for_each(|beginning| found.go_on_with(beginning));
                found
            }
        };
        let pages = found.adopt(pages).await?;
        Ok(Adopted { context: found, pages })
    }
}
