//! A session's context, pages and news.

use std::collections::{BTreeMap, VecDeque};
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tabmux_core::{Code, Fault, SessionId, TabId};
use tabmux_driver::{
    Browser, Chooser, Context, ContextSpec, Dialog, DriverError, Emulation, HOUSEKEEPING, Handle, Isolation, Page, PageEvent, PageRecord,
    Popup,
};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::changes;
use super::downloads::{self, Told};
use super::pages::CallPages;
use super::{After, Errand, Job, Lasting, Turn, Work};
use crate::hub::Hub;

/// How long making a context, or finding one again, may take; it outlives the call that asked for it.
const OPENING: Duration = Duration::from_secs(60);

/// How long until a context that did not close is tried again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// News that wait for the next reply.
const MAX_NEWS: usize = 20;

/// A context and the browser it is in.
type InBrowser = (Arc<dyn Browser>, Arc<dyn Context>);

#[derive(Debug)]
pub(super) struct World {
    pub(super) hub: Arc<Hub>,
    pub(super) id: SessionId,
    /// How the context is made, again too.
    spec: Mutex<ContextSpec>,
    stop: CancellationToken,
    pub(super) context: tokio::sync::Mutex<Option<Arc<dyn Context>>>,
    /// The browser that the context is in.
    browser: Mutex<Option<Arc<dyn Browser>>>,
    pages: Mutex<BTreeMap<TabId, Arc<dyn Page>>>,
    news: Mutex<VecDeque<String>>,
    /// The call that has the turn: the tab it works on, and how to end it.
    running: Mutex<Option<Running>>,
    /// The browser, or the last window, was lost; the next call says so, once.
    loss: Mutex<Option<Fault>>,
    /// The tab whose end a call was told.
    mourned: Mutex<Option<TabId>>,
}

#[derive(Debug)]
struct Running {
    tab: Option<TabId>,
    interrupt: Option<oneshot::Sender<Fault>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(super) fn new(hub: Arc<Hub>, id: SessionId, mut spec: ContextSpec, stop: CancellationToken) -> Self {
        spec.downloads = Some(downloads::directory(&hub.settings.paths.state_dir, id));
        Self {
            hub,
            id,
            spec: Mutex::new(spec),
            stop,
            context: tokio::sync::Mutex::default(),
            browser: Mutex::default(),
            pages: Mutex::default(),
            news: Mutex::default(),
            running: Mutex::default(),
            loss: Mutex::default(),
            mourned: Mutex::default(),
        }
    }

    pub(super) fn isolation(&self) -> Isolation {
        locked(&self.spec).isolation
    }

    pub(super) fn spec(&self) -> ContextSpec {
        locked(&self.spec).clone()
    }

    /// Whether a file is one that agents may give to pages: not the daemon's own, but for what this session downloaded.
    pub(super) fn may_read(&self, file: &std::path::Path) -> bool {
        let paths = &self.hub.settings.paths;
        let own = self.spec().downloads.is_some_and(|directory| file.starts_with(directory));
        own || ![&paths.state_dir, &paths.runtime_dir].into_iter().any(|place| file.starts_with(place))
    }

    /// Makes the session's pages see this, those of its next browser and of the next daemon too.
    pub(super) async fn emulate(self: &Arc<Self>, wanted: Emulation) -> Result<(), Fault> {
        self.open().await?.emulate(&wanted).await?;
        let written = {
            let mut spec = locked(&self.spec);
            spec.emulation = wanted;
            Lasting::of(&spec).written()
        };
        self.hub.decide_now(|registry, _| registry.set_settings(self.id, &written));
        Ok(())
    }

    /// The context, made or found again when there is none yet. When that fails the session is over and its seat free (S3.25).
    pub(super) async fn open(self: &Arc<Self>) -> Result<Arc<dyn Context>, Fault> {
        let mut context = self.context.lock().await;
        if let Some(context) = &*context {
            return Ok(Arc::clone(context));
        }
        if self.stop.is_cancelled() {
            return Err(closed());
        }
        let former = self.hub.look(|registry| registry.session(self.id).is_some_and(|session| session.context.is_some()));
        match self.open_in_time().await {
            Ok((browser, opened)) => {
                *context = Some(Arc::clone(&opened));
                *locked(&self.browser) = Some(Arc::clone(&browser));
                self.tend(browser, &opened);
                Ok(opened)
            }
            // It went with a browser that did not survive the former daemon: this call says so, the next one starts afresh.
            Err(fault) if former && fault.code == Code::BrowserCrashed => {
                self.hub.decide_now(|registry, _| registry.browser_lost(self.id, &fault));
                Err(fault)
            }
            // Its pages are there, and cannot be had just now.
            Err(fault) if former && passes(fault.code) => {
                self.hub.decide_now(|registry, _| registry.put_off(self.id, &fault));
                Err(fault)
            }
            // It lost a browser of its user's, who has not started it again: the name is kept until they do.
            Err(fault) if !former && self.spec().endpoint.is_some() && self.had_tabs() => {
                self.hub.decide_now(|registry, _| registry.browser_lost(self.id, &fault));
                Err(fault)
            }
            Err(fault) => {
                tracing::warn!(session = %self.id, %fault, "the session could not be opened");
                self.hub.decide_now(|registry, now| {
                    // A former daemon's context is still somewhere: the record stays until it is closed.
                    if former { registry.lost(self.id) } else { registry.open_failed(self.id, &fault, now) }
                });
                self.stop.cancel();
                Err(fault)
            }
        }
    }

    fn had_tabs(&self) -> bool {
        self.hub.look(|registry| registry.session(self.id).is_some_and(|session| session.next_tab > 1))
    }

    /// On a task of its own, so that a panic in a driver ends this session only. A session that is closed meanwhile
    /// waits a little for what is being made, to close it again (S3.23); nobody waits for that but this task.
    async fn open_in_time(self: &Arc<Self>) -> Result<InBrowser, Fault> {
        let world = Arc::clone(self);
        let mut opening = AbortOnDropHandle::new(tokio::spawn(async move { world.open_or_adopt().await }));
        let joined = tokio::select! {
            biased;
            joined = &mut opening => Some(joined),
            () = tokio::time::sleep(OPENING) => None,
            () = self.stop.cancelled() => tokio::time::timeout(HOUSEKEEPING, &mut opening).await.ok(),
        };
        match joined {
            Some(joined) => joined.unwrap_or_else(|_| Err(self.hub.panicked())),
            None => {
                let hint = "Try again; `tabmux doctor` says what is wrong.";
                Err(Fault::new(Code::Timeout, "The browser did not make a context in time.", hint))
            }
        }
    }

    async fn open_or_adopt(self: &Arc<Self>) -> Result<InBrowser, Fault> {
        let known = self.hub.look(|registry| registry.session(self.id).and_then(|session| session.context.clone()));
        match known {
            Some(handle) => self.adopt(&Handle(handle.to_string())).await,
            None => self.open_new().await,
        }
    }

    /// Write down, make, write down: a crash in between is undone by the next daemon.
    async fn open_new(self: &Arc<Self>) -> Result<InBrowser, Fault> {
        let (announced, safe) = self.hub.decide(|registry, _| registry.opening(self.id));
        announced?;
        safe.written().await?;
        let spec = self.spec();
        spec.downloads.as_deref().map_or(Ok(()), downloads::make)?;
        let browser = self.hub.browsers.get(&spec).await?;
        let vacant = self.hub.browsers.vacancy(&browser);
        let context = browser.open_context(&spec).await?;
        let (opened, safe) = self.hub.decide(|registry, _| registry.opened(self.id, context.handle().0.as_str().into()));
        let written = match opened {
            Ok(()) => safe.written().await,
            Err(closed_meanwhile) => Err(closed_meanwhile),
        };
        if let Err(fault) = written {
            if let Err(why) = close_context(&*context).await {
                tracing::warn!(session = %self.id, why, "a context that is not wanted any more did not close");
            }
            return Err(fault);
        }
        vacant.taken();
        Ok((browser, context))
    }

    fn tabs_on_record(&self) -> Vec<(TabId, PageRecord)> {
        self.hub.look(|registry| {
            let tabs = registry.session(self.id).map(|session| &session.tabs);
            let record = |(id, tab): (&TabId, &tabmux_core::Tab)| {
                (*id, PageRecord { handle: Handle(tab.handle.to_string()), url: tab.url.clone(), memento: tab.memento.clone() })
            };
            tabs.map(|tabs| tabs.iter().map(record).collect()).unwrap_or_default()
        })
    }

    async fn adopt(self: &Arc<Self>, handle: &Handle) -> Result<InBrowser, Fault> {
        let tabs = self.tabs_on_record();
        let records: Vec<PageRecord> = tabs.iter().map(|(_, record)| record.clone()).collect();
        let (browser, adopted) = self.hub.browsers.find(&self.spec(), handle, &records).await?;
        for (tab, record) in tabs {
            match adopted.pages.iter().find(|(handle, _)| *handle == record.handle) {
                Some((_, page)) => self.add_page(tab, page),
                None => self.tab_lost(tab, "did not survive the restart"),
            }
        }
        self.tell_windows(&*adopted.context);
        Ok((browser, adopted.context))
    }

    /// Takes in what pages of the context open, and notices when its browser is gone.
    fn tend(self: &Arc<Self>, browser: Arc<dyn Browser>, context: &Arc<dyn Context>) {
        let mut popups = context.popups();
        let mut files = context.downloads();
        let mut told = Told::knowing(&files.borrow_and_update());
        let (world, context) = (Arc::clone(self), Arc::clone(context));
        tokio::spawn(async move {
            let gone = browser.gone();
            tokio::pin!(gone);
            loop {
                tokio::select! {
                    () = world.stop.cancelled() => return,
                    why = &mut gone => return world.browser_lost(&browser, &why).await,
                    Some(popup) = popups.recv() => world.popup_opened(&*context, &popup).await,
                    Ok(()) = files.changed() => told.news(&files.borrow_and_update()).into_iter().for_each(|news| world.add_news(news)),
                }
            }
        });
    }

    /// A page that a page of this session opened is the session's too (S4.23).
    async fn popup_opened(self: &Arc<Self>, context: &dyn Context, popup: &Popup) {
        let page = &popup.page;
        match self.hub.decide_now(|registry, _| registry.add_popup(self.id, page.handle().0.as_str().into(), page.url())) {
            Ok(tab) => {
                self.add_page(tab, page);
                self.settle_popup(context, tab, page).await;
                self.add_news(format!("A page opened tab {tab}; select_page goes there."));
            }
            Err(fault) => {
                tracing::debug!(session = %self.id, %fault, "a popup was closed again");
                // With the session, if this fails.
                drop(page.close().await);
            }
        }
    }

    /// Called by whoever notices it; the first does it.
    async fn browser_lost(self: &Arc<Self>, browser: &Arc<dyn Browser>, why: &str) {
        let mut context = self.context.lock().await;
        if locked(&self.browser).take_if(|known| Arc::ptr_eq(known, browser)).is_none() {
            return;
        }
        let fault = crate::browser::crashed(why);
        *context = None;
        locked(&self.pages).clear();
        locked(&self.news).clear();
        if self.spec().endpoint.is_some() {
            // Perhaps only the connection broke, and the pages are still there: the next call looks for them, and says if not.
            return self.hub.decide_now(|registry, _| registry.put_off(self.id, &fault));
        }
        *locked(&self.loss) = Some(fault.clone());
        self.hub.decide_now(|registry, _| registry.browser_lost(self.id, &fault));
    }

    /// A call was told that the browser is gone: so the next one must not meet what was in it.
    async fn notice_loss(self: &Arc<Self>) {
        let browser = locked(&self.browser).clone();
        if let Some(browser) = browser
            && let Some(why) = browser.gone().now_or_never()
        {
            self.browser_lost(&browser, &why).await;
        }
    }

    /// Said once: the browser was lost since the last call.
    pub(super) fn take_loss(&self) -> Option<Fault> {
        locked(&self.loss).take()
    }

    pub(super) fn add_page(self: &Arc<Self>, tab: TabId, page: &Arc<dyn Page>) {
        locked(&self.pages).insert(tab, Arc::clone(page));
        self.remember(tab, &**page);
        let mut events = page.events();
        let (world, page) = (Arc::clone(self), Arc::downgrade(page));
        tokio::spawn(async move {
            loop {
                let event = tokio::select! {
                    event = events.recv() => event,
                    () = world.stop.cancelled() => return,
                };
                if let Some(page) = page.upgrade() {
                    world.remember(tab, &*page);
                }
                match event {
                    Some(PageEvent::DialogOpened(dialog)) => world.dialog_opened(tab, &dialog),
                    Some(PageEvent::ChooserOpened(chooser)) => world.add_news(chooser_news(tab, chooser)),
                    Some(PageEvent::Crashed) => world.add_news(format!("Tab {tab} crashed; navigate it again to bring it back.")),
                    Some(PageEvent::Closed) => {
                        world.tab_lost(tab, "was closed by the page or by a person");
                        return world.windowless(tab);
                    }
                    None => return,
                }
            }
        });
    }

    /// The next daemon finds the page as it is now.
    pub(super) fn remember(self: &Arc<Self>, tab: TabId, page: &dyn Page) {
        let memento = page.memento();
        self.hub.decide_now(|registry, _| registry.remember_tab(self.id, tab, memento));
    }

    pub(super) fn page(&self, tab: TabId) -> Option<Arc<dyn Page>> {
        locked(&self.pages).get(&tab).cloned()
    }

    pub(super) fn take_page(&self, tab: TabId) -> Option<Arc<dyn Page>> {
        locked(&self.pages).remove(&tab)
    }

    /// A tab ended without our doing (S1.24). Nobody is answered with a neighbour: its id is gone for good.
    pub(super) fn tab_lost(self: &Arc<Self>, tab: TabId, how: &str) {
        if self.take_page(tab).is_some() {
            self.add_news(format!("Tab {tab} {how}."));
        }
        self.hub.decide_now(|registry, _| registry.remove_tab(self.id, tab));
    }

    /// The session lost its last page with its last window: whoever calls next is told, unless it was told already.
    pub(super) fn lose_windows(&self, tab: TabId, fault: Fault) {
        if *locked(&self.mourned) != Some(tab) {
            *locked(&self.loss) = Some(fault);
        }
    }

    /// A call was told that its tab is gone, so nobody needs to be told again.
    fn mourn(&self, tab: Option<TabId>) {
        *locked(&self.mourned) = tab;
        let mut loss = locked(&self.loss);
        if loss.as_ref().is_some_and(|loss| loss.code == Code::TabGone) {
            *loss = None;
        }
    }

    pub(super) fn add_news(&self, text: String) {
        let mut news = locked(&self.news);
        if news.len() == MAX_NEWS {
            news.pop_front();
        }
        news.push_back(text);
    }

    /// What happened since the last reply. Taken by who gives the next one, so that a reply nobody waits for takes none along.
    pub(super) fn take_news(&self) -> Vec<String> {
        locked(&self.news).drain(..).collect()
    }

    /// An opening dialog ends the call that runs on its page: nothing else would (contract).
    fn dialog_opened(&self, tab: TabId, dialog: &Dialog) {
        let mut running = locked(&self.running);
        let interrupt = running.as_mut().filter(|running| running.tab == Some(tab)).and_then(|running| running.interrupt.take());
        match interrupt {
            // The call may have just ended; then its reply went out and the dialog is said by the next one.
            Some(interrupt) => drop(interrupt.send(dialog_fault(dialog))),
            None => self.add_news(format!("Tab {tab} opened a {} dialog: {:?}. Answer it with handle_dialog.", dialog.kind, dialog.text)),
        }
    }

    /// The running call works on this tab.
    pub(super) fn works_on(&self, tab: TabId) {
        if let Some(running) = locked(&self.running).as_mut() {
            running.tab = Some(tab);
        }
    }

    /// Runs one call; a panic in it ends this call only. What ends it first: its result,
    /// a dialog, the caller giving up, or the session's end (the registry then tells the caller why).
    pub(super) async fn execute(self: &Arc<Self>, job: Job) {
        let Job { admitted, errand: Errand { tool, after }, common, args, turn, abort, reply } = job;
        let (interrupt, interrupted) = oneshot::channel();
        if turn == Turn::Queue {
            *locked(&self.running) = Some(Running { tab: None, interrupt: Some(interrupt) });
        }
        let pages = CallPages::new(Arc::clone(self), admitted, turn);
        let run = async {
            if turn == Turn::Queue {
                self.look_around().await;
            }
            let mut reply = tool.run(&pages, &common, args).await?;
            if after == After::Changes
                && let Some(page) = pages.worked_on().0.and_then(|tab| self.page(tab))
            {
                changes::append(&mut reply, &*page).await;
            }
            let (tab, url) = pages.worked_on();
            Ok::<_, Fault>((reply, tab, url))
        };
        // On this very task, which saves two wake-ups a call; what is stopped is dropped before the next call begins.
        let outcome = tokio::select! {
            biased;
            ended = AssertUnwindSafe(run).catch_unwind() => ended.unwrap_or_else(|_| Err(self.hub.panicked())),
            Ok(fault) = interrupted => Err(fault),
            () = abort.cancelled() => Err(crate::hub::timed_out()),
            () = self.stop.cancelled() => Err(closed()),
        };
        match turn {
            Turn::Queue => *locked(&self.running) = None,
            // Its dialog is answered, which only the page knows so far.
            Turn::Beside => pages.remember(),
            Turn::Watching => {}
        }
        if turn != Turn::Watching && outcome.as_ref().is_err_and(|fault| fault.code == Code::TabGone) {
            self.mourn(pages.worked_on().0);
        }
        if outcome.as_ref().is_err_and(|fault| fault.code == Code::BrowserCrashed) {
            self.notice_loss().await;
        }
        // Before the reply: the next call begins only once this one has ended.
        self.hub.finish(admitted.call);
        let outcome = outcome.map(|(reply, tab, url)| Work { reply, tab, url });
        // Nobody listens when the caller gave up or the session ended.
        drop(reply.send(outcome));
    }

    /// Closes the context; also one that a former daemon made and this one never opened. One that does not close is
    /// tried again, ever less often: until it is gone the session stays on record, so that the next daemon knows of it.
    pub(super) async fn close(self: &Arc<Self>) {
        let mut pause = FIRST_PAUSE;
        while let Err(why) = self.close_once().await {
            tracing::warn!(session = %self.id, why, "the context did not close and is tried again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        locked(&self.pages).clear();
        if let Some(directory) = self.spec().downloads {
            downloads::remove(directory).await;
        }
    }

    async fn close_once(&self) -> Result<(), String> {
        let opened = self.context.lock().await.clone();
        let known = self.hub.look(|registry| registry.session(self.id).and_then(|session| session.context.clone()));
        let context = match (opened, known) {
            (Some(context), _) => Some(context),
            (None, Some(handle)) => self.find_again(&Handle(handle.to_string())).await?,
            (None, None) => None,
        };
        match context {
            Some(context) => {
                self.spare_strangers(&*context).await;
                close_context(&*context).await
            }
            None => Ok(()),
        }
    }

    /// A context that cannot be found is gone, unless its browser only does not answer now. Its pages are found with it, since some
    /// contexts are nothing but their pages.
    async fn find_again(&self, handle: &Handle) -> Result<Option<Arc<dyn Context>>, String> {
        let pages: Vec<PageRecord> = self.tabs_on_record().into_iter().map(|(_, record)| record).collect();
        match bounded(OPENING, self.hub.browsers.find(&self.spec(), handle, &pages)).await? {
            Ok((_, adopted)) => Ok(Some(adopted.context)),
            Err(fault) if passes(fault.code) => Err(fault.message),
            Err(_) => Ok(None),
        }
    }
}

/// Whether what was asked for may be had a little later: the browser asks its user, or has too much to do.
fn passes(code: Code) -> bool {
    matches!(code, Code::PausedByHuman | Code::Timeout | Code::QueueFull)
}

async fn close_context(context: &dyn Context) -> Result<(), String> {
    match bounded(HOUSEKEEPING, context.close()).await? {
        // The browser took it along.
        Ok(()) | Err(DriverError::BrowserGone(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// What a driver answers, unless it hangs or panics.
async fn bounded<T>(limit: Duration, asked: impl Future<Output = T>) -> Result<T, String> {
    match tokio::time::timeout(limit, AssertUnwindSafe(asked).catch_unwind()).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err("the driver panicked".to_owned()),
        Err(_) => Err("it took too long".to_owned()),
    }
}

fn chooser_news(tab: TabId, chooser: Chooser) -> String {
    let what = match chooser {
        Chooser::One => "a file",
        Chooser::Many => "files",
    };
    format!("Tab {tab} asks for {what}; upload_file gives {}.", if chooser == Chooser::One { "it" } else { "them" })
}

fn closed() -> Fault {
    Fault::new(Code::SessionClosed, "The session was closed.", "Call start_browser to make a new one.")
}

pub(super) fn dialog_fault(dialog: &Dialog) -> Fault {
    DriverError::DialogOpen { kind: dialog.kind.clone(), text: dialog.text.clone() }.into()
}

#[cfg(test)]
impl World {
    pub(super) fn news_waiting(&self) -> usize {
        locked(&self.news).len()
    }
}
