//! A session's pages and news, and what becomes of them: in `context` how they get a browser, in `call` how a call uses them.

mod call;
mod context;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tabmux_core::{Code, Fault, Loss, Party, Registry, SessionId, TabId, ways_out};
use tabmux_driver::{Browser, Chooser, Context, ContextSpec, Emulation, Isolation, Page, PageEvent, Popup};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

use super::away::Seen;
use super::copying::{Fork, Losses, NOT_COPIED};
use super::downloads::{self, Told};
use super::news::{Gone, Lost, News};
use super::saving::Place;
use super::{Lasting, Making};
use crate::hub::Hub;
use crate::sources::Whence;
use call::Running;
pub(super) use call::{answer_in, described, dialog_elsewhere, dialog_fault};
pub(super) use context::close_context;

/// What can be done about a lost browser where the session was saved.
pub(super) const BRING_BACK: &str = "restore brings back its pages and logins as they were saved last; any other call starts it afresh.";

/// How long the end of a browser is waited for that a page of it has told.
const NOTICE: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct World {
    pub(super) hub: Arc<Hub>,
    pub(super) id: SessionId,
    /// How the context is made, again too.
    spec: Mutex<ContextSpec>,
    /// What it begins with, again too.
    pub(super) whence: Option<Whence>,
    /// The session it is a whole copy of, until it is one.
    pub(super) fork: Mutex<Option<Arc<Fork>>>,
    pub(super) stop: CancellationToken,
    pub(super) context: tokio::sync::Mutex<Option<Arc<dyn Context>>>,
    /// The browser that the context is in.
    browser: Mutex<Option<Arc<dyn Browser>>>,
    pages: Mutex<BTreeMap<TabId, Arc<dyn Page>>>,
    /// Which tab opened a tab, where the browser says.
    openers: Mutex<BTreeMap<TabId, TabId>>,
    news: Mutex<News>,
    /// The call that has the turn: the tab it works on, and how to end it.
    running: Mutex<Option<Running>>,
    /// The browser, or the last window, was lost; the next call of each who uses the session says so, once.
    loss: Mutex<Option<Lost>>,
    /// A call was told that somebody else's browser is gone, which nobody knows for certain before it is looked for again.
    loss_said: AtomicBool,
    /// What who drives the session was told last.
    seen: Mutex<Option<Seen>>,
    /// Something about its tabs was decided, and may not be written down yet.
    unwritten: AtomicBool,
    /// A call ended: what was saved may be old.
    pub(super) stirred: Notify,
    /// It moved: what was saved is old, and is not left so for a rest.
    pub(super) moved: Notify,
    /// Cancelled when the session leaves the context that it is in; what watches over that ends then.
    left: Mutex<CancellationToken>,
    /// How many pages that pages opened were taken in, or turned away.
    popups: watch::Sender<u64>,
    /// Held while the session is saved, and while what was saved is removed.
    pub(super) saving: tokio::sync::Mutex<()>,
    pub(super) place: Place,
    /// It is known whether what a former daemon left of it is there.
    pub(super) taken_up: CancellationToken,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl World {
    pub(super) fn new(hub: Arc<Hub>, id: SessionId, making: Making, stop: CancellationToken) -> Self {
        let Making { mut spec, whence, fork } = making;
        spec.downloads = Some(downloads::directory(&hub.settings.paths.state_dir, id));
        Self {
            place: Place::of(&hub.settings.paths.state_dir, id),
            hub,
            id,
            spec: Mutex::new(spec),
            whence,
            fork: Mutex::new(fork),
            stop,
            context: tokio::sync::Mutex::default(),
            browser: Mutex::default(),
            pages: Mutex::default(),
            openers: Mutex::default(),
            news: Mutex::default(),
            running: Mutex::default(),
            loss: Mutex::default(),
            loss_said: AtomicBool::new(false),
            seen: Mutex::default(),
            unwritten: AtomicBool::new(false),
            stirred: Notify::new(),
            moved: Notify::new(),
            left: Mutex::default(),
            popups: watch::Sender::new(0),
            saving: tokio::sync::Mutex::default(),
            taken_up: CancellationToken::new(),
        }
    }

    /// Decides something about its tabs that the running call tells.
    pub(super) fn decide<T>(&self, ask: impl FnOnce(&mut Registry) -> T) -> T {
        self.unwritten.store(true, Ordering::Relaxed);
        self.hub.decide_now(|registry, _| ask(registry))
    }

    /// What it was made for went well. Written down with what that call opened, before anybody is told that the session is there.
    pub(super) fn finish_making(&self) {
        if self.hub.decide_now(|registry, _| registry.finish_making(self.id)) {
            self.unwritten.store(true, Ordering::Relaxed);
        }
    }

    /// What a reply tells, the next daemon knows too: a tab that was opened is not lost to a kill right behind the answer.
    pub(super) async fn on_record(&self) {
        if self.unwritten.swap(false, Ordering::Relaxed) {
            self.hub.on_record().await;
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
    pub(super) async fn emulate(self: &Arc<Self>, mut wanted: Emulation) -> Result<(), Fault> {
        wanted.viewport = wanted.viewport.or(self.spec().viewport);
        self.open().await?.emulate(&wanted).await?;
        self.keep(|spec| spec.emulation = wanted);
        Ok(())
    }

    /// Changes how the context is made again, for the next daemon too.
    pub(super) fn keep(self: &Arc<Self>, change: impl FnOnce(&mut ContextSpec)) {
        let written = {
            let mut spec = locked(&self.spec);
            change(&mut spec);
            Lasting::of(&spec, self.whence.as_ref()).written()
        };
        self.hub.decide_now(|registry, _| registry.set_settings(self.id, &written));
    }

    /// Takes in what pages of the context open, and notices when its browser is gone.
    pub(super) fn tend(self: &Arc<Self>, browser: Arc<dyn Browser>, context: &Arc<dyn Context>) {
        let left = CancellationToken::new();
        std::mem::replace(&mut *locked(&self.left), left.clone()).cancel();
        self.save_at_rest(context, left.clone());
        let mut popups = context.popups();
        let mut files = context.downloads();
        let mut told = Told::knowing(&files.borrow_and_update());
        let (mut copied, mut footprint) = (context.copied(), context.footprint());
        let mut losses = Losses::default();
        // Said with the opening already.
        self.extend_news(losses.news(&copied.borrow_and_update()));
        footprint.mark_changed();
        let (world, context) = (Arc::clone(self), Arc::clone(context));
        tokio::spawn(async move {
            let gone = browser.gone();
            tokio::pin!(gone);
            loop {
                tokio::select! {
                    () = world.stop.cancelled() => return,
                    () = left.cancelled() => return,
                    why = &mut gone => return world.browser_lost(&browser, &why).await,
                    Some(popup) = popups.recv() => world.popup_opened(&*context, &popup).await,
                    Ok(()) = files.changed() => told.news(&files.borrow_and_update()).into_iter().for_each(|news| world.add_news(news)),
                    Ok(()) = copied.changed() => world.extend_news(losses.news(&copied.borrow_and_update())),
                    Ok(()) = footprint.changed() => {
                        let known = footprint.borrow_and_update().clone();
                        world.has_footprint(known).await;
                    }
                }
            }
        });
    }

    /// A page that a page of this session opened is the session's too (S4.23).
    async fn popup_opened(self: &Arc<Self>, context: &dyn Context, popup: &Popup) {
        let page = &popup.page;
        match self.hub.decide_now(|registry, _| registry.add_popup(self.id, page.handle().0.as_str().into(), page.url())) {
            Ok(tab) => {
                self.note_opener(tab, popup);
                self.add_page(tab, page);
                self.settle_popup(context, tab, page).await;
                self.add_news_of(tab, format!("A page opened tab {tab}; select_page goes there."));
            }
            Err(fault) => {
                self.add_news(format!("A page opened another one, which was closed at once: {}", fault.message));
                // With the session, if this fails.
                drop(page.close().await);
            }
        }
        self.popups.send_modify(|count| *count += 1);
    }

    fn note_opener(&self, tab: TabId, popup: &Popup) {
        let pages = locked(&self.pages);
        let opener = pages.iter().find(|(_, page)| popup.opener.as_ref() == Some(page.handle())).map(|(opener, _)| *opener);
        let mut openers = locked(&self.openers);
        openers.retain(|tab, _| pages.contains_key(tab));
        openers.extend(opener.map(|opener| (tab, opener)));
    }

    /// Whether one tab is another, or opened it, or opened what opened it.
    fn has_opened(&self, opener: TabId, tab: TabId) -> bool {
        let openers = locked(&self.openers);
        std::iter::successors(Some(tab), |tab| openers.get(tab).copied()).any(|above| above == opener)
    }

    /// Whether its pages are in this context.
    pub(super) async fn is_in(&self, context: &Arc<dyn Context>) -> bool {
        self.context.lock().await.as_ref().is_some_and(|own| Arc::ptr_eq(own, context))
    }

    pub(super) fn browser(&self) -> Option<Arc<dyn Browser>> {
        locked(&self.browser).clone()
    }

    pub(super) fn is_in_browser(&self, browser: &Arc<dyn Browser>) -> bool {
        locked(&self.browser).as_ref().is_some_and(|own| Arc::ptr_eq(own, browser))
    }

    /// Whether the browser went away since the last call opened one.
    pub(super) fn is_lost(&self) -> bool {
        locked(&self.browser).is_none()
    }

    /// From now on its pages are in another browser, made so.
    pub(super) fn settle_in(&self, spec: ContextSpec, browser: &Arc<dyn Browser>) {
        *locked(&self.spec) = ContextSpec { source: None, ..spec };
        *locked(&self.browser) = Some(Arc::clone(browser));
        // What could be done with them is not told any more: their dialogs wait for nobody.
        locked(&self.pages).clear();
    }

    /// Called by whoever notices it; the first does it.
    async fn browser_lost(self: &Arc<Self>, browser: &Arc<dyn Browser>, why: &str) {
        // What is being saved is the last that will be known of it.
        let _saved = self.saving.lock().await;
        let mut context = self.context.lock().await;
        if !self.is_in_browser(browser) {
            return;
        }
        let fault = crate::browser::crashed(why);
        let lost_more = self.spec().endpoint.is_none() && self.place.lose().await;
        // From here on nothing waits: who sees that it is lost finds what is said of it.
        *locked(&self.browser) = None;
        let fault = if lost_more { fault.with_hint(BRING_BACK) } else { fault };
        *context = None;
        locked(&self.pages).clear();
        locked(&self.news).forget();
        if self.spec().endpoint.is_some() {
            // Who runs is told by what follows, and may be ended by it before it can note that.
            if locked(&self.running).is_some() {
                self.loss_said.store(true, Ordering::Relaxed);
            }
            // Perhaps only the connection broke, and the pages are still there: the next call looks for them, and says if not.
            return self.hub.decide_now(|registry, _| registry.put_off(self.id, &fault));
        }
        self.lose(fault.clone());
        self.hub.decide_now(|registry, _| {
            registry.browser_lost(self.id, &fault);
            registry.set_loss(self.id, Loss::Untold);
        });
    }

    /// A former daemon died before it could say that the browser is gone.
    pub(super) fn was_left_untold(&self) {
        self.lose(crate::browser::crashed("it ended before the daemon was started again"));
    }

    /// A call was told that the browser is gone: so the next one must not meet what was in it.
    async fn notice_loss(self: &Arc<Self>) {
        let browser = locked(&self.browser).clone();
        // A page may learn of it a moment before the browser's own end is known; the call is to say what can be done about it.
        if let Some(browser) = browser
            && let Ok(why) = tokio::time::timeout(NOTICE, browser.gone()).await
        {
            self.browser_lost(&browser, &why).await;
        }
        self.loss_said.store(self.is_lost() && self.spec().endpoint.is_some(), Ordering::Relaxed);
    }

    /// Everybody who knew the session is to be told.
    pub(super) fn lose(&self, fault: Fault) {
        self.lost_sight();
        let lost = Lost::new(fault, locked(&self.news).parties());
        *locked(&self.loss) = Some(lost);
    }

    /// Said once to each, whichever daemon says it: the browser was lost since the last call.
    pub(super) async fn take_loss(&self, party: Party) -> Option<Fault> {
        locked(&self.news).meet(party);
        let loss = locked(&self.loss).as_mut()?.tell(party)?;
        if loss.code != Code::BrowserCrashed {
            self.hub.decide_now(|registry, _| registry.told_gone(self.id, party, None));
            locked(&self.news).knows_all_gone(party);
            return Some(loss);
        }
        if party == Party::Owner {
            self.decide(|registry| registry.set_loss(self.id, Loss::Told));
            self.on_record().await;
        }
        let can_return = self.spec().endpoint.is_none() && self.can_come_back().await;
        Some(if can_return { loss.with_hint(BRING_BACK) } else { loss })
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
                    Some(PageEvent::ChooserOpened(chooser)) => world.add_news_of(tab, chooser_news(tab, chooser)),
                    Some(PageEvent::Crashed) => locked(&world.news).crashed(tab),
                    Some(PageEvent::Closed) => {
                        return world.tab_lost(tab, Gone::Closed);
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
    pub(super) fn tab_lost(self: &Arc<Self>, tab: TabId, how: Gone) {
        if self.take_page(tab).is_some() {
            locked(&self.news).add_gone(tab, how);
        }
        self.forget_tab(tab);
    }

    /// How this tab ended, if that is still known.
    pub(super) fn end_of(&self, tab: TabId) -> Option<String> {
        locked(&self.news).end(tab).map(str::to_owned)
    }

    /// This one was told of its end in place of an answer.
    pub(super) fn knows_end(&self, party: Party, tab: TabId) {
        locked(&self.news).knows_end(party, tab);
    }

    /// How a call on this tab ended tells whether it is crashed or asks something: who is answered with that needs not hear it once more, and what
    /// goes somewhere brings it back.
    fn tells_of_tab(&self, party: Party, tab: TabId, tool: &str, outcome: Result<(), Code>) {
        match outcome {
            Err(Code::DialogOpen) => locked(&self.news).knows_dialog(party, tab),
            Err(Code::TabCrashed) => locked(&self.news).knows_crash(party, tab),
            Ok(()) if tool == "navigate" => locked(&self.news).lives_again(tab),
            Ok(()) | Err(_) => {}
        }
    }

    /// It has a window again: who has not been told that there was none needs not be.
    pub(super) fn has_windows(&self) {
        locked(&self.loss).take_if(|lost| lost.fault().code == Code::TabGone);
    }

    pub(super) fn add_news(&self, text: String) {
        locked(&self.news).add(text, None);
    }

    /// What can be done with this tab.
    pub(super) fn add_news_of(&self, tab: TabId, text: String) {
        locked(&self.news).add_of(tab, text, None);
    }

    /// That one who uses the session opened a tab, for the others.
    pub(super) fn tell_others_of(&self, party: Party, tab: TabId, text: String) {
        locked(&self.news).add_of(tab, text, Some(party));
    }

    fn tabs(&self) -> BTreeSet<TabId> {
        locked(&self.pages).keys().copied().collect()
    }

    /// That one who uses the session closed a tab, for the others.
    pub(super) fn tell_others_of_end(&self, party: Party, tab: TabId, text: String) {
        locked(&self.news).add_end(tab, text, Some(party));
    }

    fn extend_news(&self, news: Option<String>) {
        news.into_iter().for_each(|news| self.add_news(news));
    }

    /// Before all other news.
    pub(super) fn add_first(&self, text: String) {
        locked(&self.news).add_first(text);
    }

    /// Before even that, until its new driver has read it.
    pub(super) fn was_taken_over(&self, told: String) {
        locked(&self.news).was_taken_over(told);
    }

    pub(super) fn is_news(&self, part: &str) -> bool {
        let tabs = self.tabs();
        locked(&self.news).waiting(&tabs).any(|news| news.contains(part))
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Option<Seen>> {
        locked(&self.seen)
    }

    /// What each of the pages is like.
    pub(super) fn each_page<T>(&self, look: impl Fn(&dyn Page) -> T) -> BTreeMap<TabId, T> {
        locked(&self.pages).iter().map(|(tab, page)| (*tab, look(&**page))).collect()
    }

    pub(super) fn news(&self) -> Vec<String> {
        let tabs = self.tabs();
        locked(&self.news).waiting(&tabs).map(str::to_owned).collect()
    }

    /// Those of them that say what a copy has not got.
    pub(super) fn take_losses(&self) -> Vec<String> {
        locked(&self.news).take_out(NOT_COPIED)
    }

    /// What happened since the last reply. Taken by who gives the next one, so that a reply nobody waits for takes none along.
    pub(super) fn take_news(&self, party: Party) -> Vec<String> {
        let tabs = self.tabs();
        locked(&self.news).take(party, &tabs)
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
    Fault::new(Code::SessionClosed, "The session was closed.", ways_out::NEW_SESSION)
}

#[cfg(test)]
impl World {
    pub(super) fn news_waiting(&self) -> usize {
        let tabs = self.tabs();
        locked(&self.news).waiting(&tabs).count()
    }
}
