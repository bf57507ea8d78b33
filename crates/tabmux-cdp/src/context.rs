//! One isolated world of Chromium: a browser context, the pages that were opened in it, and those they opened.

mod adopt;
mod arrive;
mod cookies;
mod copy;
mod downloads;
mod emulation;
mod hidden;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use tabmux_driver::{
    Browser, Context, Cookie, Copied, Download, DriverError, Emulation, Footprint, HOUSEKEEPING, Handle, Page, PageEvent, PageSeed,
    Planted, Popup, Result, Source, Windowed, failpoint,
};
use tokio::sync::{mpsc, watch};
use tokio_util::task::AbortOnDropHandle;

use crate::connection::Connection;
use crate::page::CdpPage;
use crate::protocol::target::{self, TargetInfo};
use crate::windows::{Fresh, OwnWindows, Turn, Windows};
use crate::world::World;
use crate::{CdpBrowser, CdpError};
use copy::LiveSource;
pub(crate) use downloads::{Strays, Whose};
pub(crate) use hidden::is_hidden;

/// How many popups wait for whoever takes them; a page that opens more has the rest closed.
const POPUP_QUEUE: usize = 32;

pub(crate) const BLANK: &str = "about:blank";

/// How the handles of contexts begin that are only some tabs or windows of a shared profile.
pub(crate) const TABS: &str = "tabs-";
pub(crate) const WINDOWS: &str = "windows-";

/// Between the name of a context and the number of a tab, in the address of one that can only be told by it.
pub(crate) const CRADLE_MARK: char = '~';

/// Whether a page of a shared profile begins there.
pub(crate) fn is_cradle(url: &str) -> bool {
    let mark = url.strip_prefix(BLANK).and_then(|rest| rest.strip_prefix('#'));
    mark.is_some_and(|mark| mark.starts_with(TABS) || mark.starts_with(WINDOWS))
}

/// How many pages that are gone are remembered.
const MAX_GONE: usize = 64;

#[derive(Debug)]
pub(crate) struct CdpContext {
    me: Weak<Self>,
    handle: Handle,
    pub(crate) unit: Unit,
    /// A browser that ends with this context.
    browser: Weak<CdpBrowser>,
    /// What its pages share.
    pub(crate) world: Arc<World>,
    pub(crate) connection: Connection,
    /// Those of the profile, which pages outside a browser context share.
    pub(crate) windows: Arc<Windows>,
    /// Held while a page is made, so that a target nobody here asked for can be told from one that is being made.
    making: Arc<tokio::sync::Mutex<()>>,
    /// Whether a new page says whose it is.
    marks_pages: bool,
    /// Downloads of the browser that nobody knows of.
    strays: Arc<Strays>,
    inner: Mutex<Inner>,
}

/// What keeps the pages of a context from those of others.
#[derive(Debug)]
pub(crate) enum Unit {
    /// A browser context: own cookies, storage and cache.
    Context,
    /// Nothing but that they are its own; cookies are the profile's.
    Tabs,
    /// The windows they are in; cookies are the profile's.
    Windows(OwnWindows),
}

#[derive(Debug)]
struct Inner {
    /// By target id; `None` once the context is closed, so that no page can open in it any more.
    pages: Option<HashMap<String, Arc<CdpPage>>>,
    /// Those of a closed context that are still there: whoever closes it again closes them.
    unclosed: HashMap<String, Arc<CdpPage>>,
    /// Pages that are gone, newest last: the browser's list still names them for a moment.
    gone: VecDeque<String>,
    /// Pages that come up by themselves and have not joined yet.
    coming: BTreeSet<String>,
    /// Pages that came up by themselves, newest last, gone or not.
    came: VecDeque<String>,
    popups: mpsc::Sender<Popup>,
    unheard: Option<mpsc::Receiver<Popup>>,
    /// Brings what is on its way to it; ends with the context.
    filling: Option<AbortOnDropHandle<()>>,
}

impl CdpContext {
    pub(crate) fn new(
        id: String,
        unit: Unit,
        world: World,
        connection: Connection,
        windows: Arc<Windows>,
        browser: Weak<CdpBrowser>,
        me: Weak<Self>,
    ) -> Self {
        let (popups, unheard) = mpsc::channel(POPUP_QUEUE);
        let inner = Inner {
            pages: Some(HashMap::new()),
            unclosed: HashMap::new(),
            gone: VecDeque::new(),
            coming: BTreeSet::new(),
            came: VecDeque::new(),
            popups,
            unheard: Some(unheard),
            filling: None,
        };
        let (making, world, strays, inner) = (Arc::default(), Arc::new(world), Arc::default(), Mutex::new(inner));
        Self { me, handle: Handle(id), unit, browser, world, connection, windows, making, marks_pages: false, strays, inner }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The right to make a page, of which one is made at a time.
    pub(crate) async fn turn(&self) -> Turn {
        Arc::clone(&self.making).lock_owned().await
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.inner().pages.is_none()
    }

    pub(crate) fn world(&self) -> &World {
        &self.world
    }

    pub(crate) fn has(&self, target: &str) -> bool {
        self.page(target).is_some()
    }

    /// Whether a page that came up by itself was one of its own.
    pub(crate) fn had(&self, target: &str) -> bool {
        self.inner().came.iter().any(|came| came == target)
    }

    /// As the browser wants it: none is the profile's own.
    pub(crate) fn browser_context(&self) -> Option<String> {
        matches!(self.unit, Unit::Context).then(|| self.handle.0.clone())
    }

    pub(crate) fn page(&self, target: &str) -> Option<Arc<CdpPage>> {
        self.inner().pages.as_ref()?.get(target).cloned()
    }

    pub(crate) fn pages(&self) -> Vec<Arc<CdpPage>> {
        self.inner().pages.iter().flat_map(HashMap::values).cloned().collect()
    }

    /// Takes a page in, unless the context was closed meanwhile.
    pub(crate) fn keep(&self, target: &str, page: &Arc<CdpPage>) -> Result<()> {
        let mut inner = self.inner();
        let pages = inner.pages.as_mut().ok_or_else(closed)?;
        self.windows.take(target);
        self.windows.has_page();
        pages.insert(target.to_owned(), Arc::clone(page));
        Ok(())
    }

    /// A page that was made for this context becomes one of its pages.
    pub(crate) async fn take_in(&self, fresh: Fresh) -> Result<Arc<CdpPage>> {
        failpoint("page-created");
        let page = CdpPage::attach(&self.connection, fresh.id(), "about:blank".into(), &self.world).await?;
        failpoint("page-attached");
        self.keep(fresh.id(), &page)?;
        fresh.kept();
        Ok(page)
    }

    /// Where its pages begin. In a person's profile the fragment says that a page is ours until it is on record.
    pub(crate) fn cradle(&self) -> String {
        if self.marks_pages { format!("{BLANK}#{}", self.handle.0) } else { BLANK.into() }
    }

    /// What its pages download is among these, if they are gone too soon.
    pub(crate) fn among_strays(mut self, strays: &Arc<Strays>) -> Self {
        self.strays = Arc::clone(strays);
        self
    }

    /// Its pages come up among those of a person.
    pub(crate) fn among_a_persons(mut self) -> Self {
        self.marks_pages = self.shares_profile();
        self
    }

    fn is_cradle(&self, info: &TargetInfo) -> bool {
        let rest = info.url.strip_prefix(&self.cradle());
        self.marks_pages && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(CRADLE_MARK))
    }

    /// A blank target of this context.
    async fn make_target(&self, turn: Turn) -> Result<Fresh> {
        let create = target::CreateTarget {
            url: self.cradle(),
            browser_context_id: self.browser_context(),
            background: Some(true),
            ..target::CreateTarget::default()
        };
        self.windows.create(turn, create).await
    }

    async fn close_target(&self, id: &str) {
        // Refused: it is gone already.
        drop(self.connection.call_in(None, &target::CloseTarget { target_id: id.to_owned() }, HOUSEKEEPING).await);
    }

    /// The browser says where a page is. The page's own events say so too, but some commits are left out of them.
    pub(crate) fn moved(&self, info: &TargetInfo) {
        if let Some(page) = self.page(&info.target_id) {
            page.state().is_at(&info.url);
        }
    }

    /// From now on it is closed, and at no moment is it unclear what becomes of a page's child. Gives its own pages, and those
    /// of the person's.
    fn take_pages(&self) -> (HashMap<String, Arc<CdpPage>>, Vec<Arc<CdpPage>>) {
        let mut inner = self.inner();
        inner.filling = None;
        let mut pages = inner.pages.take().unwrap_or_default();
        let strangers = self.take_out_strangers(&mut pages);
        if self.shares_profile() {
            pages.keys().for_each(|target| self.windows.orphans(target));
        }
        (pages, strangers)
    }

    async fn give_back(&self, page: &CdpPage) {
        self.windows.give_back(&page.handle().0);
        if let Err(error) = self.detach(page).await {
            tracing::debug!(%error, "a page of the person's is let go of late");
        }
    }

    /// Closes what is left of a closed context. What does not close now is closed by who tries again.
    async fn close_pages(&self) -> Result<()> {
        let unclosed: Vec<_> = self.inner().unclosed.values().cloned().collect();
        let closing = unclosed.iter().map(|page| async {
            page.close().await?;
            self.inner().unclosed.remove(&page.handle().0);
            Ok(())
        });
        futures::future::join_all(closing).await.into_iter().collect()
    }

    /// The page is none of this context's any more, and stays as it is.
    pub(crate) async fn release(&self, target: &str) -> Result<()> {
        let page = self.inner().pages.as_mut().and_then(|pages| pages.remove(target));
        let Some(page) = page else { return Ok(()) };
        self.windows.give_back(target);
        self.detach(&page).await
    }

    /// Lets go of a page and leaves it as it is.
    pub(crate) async fn detach(&self, page: &CdpPage) -> Result<()> {
        page.state().end(DriverError::PageGone, None);
        let detach = target::DetachFromTarget { session_id: Some(page.session().to_owned()) };
        let detached = self.connection.call_in(None, &detach, HOUSEKEEPING).await;
        self.connection.forget(page.session());
        match detached {
            // Refused: it is gone already.
            Ok(_) | Err(CdpError::Refused { .. } | CdpError::SessionGone) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }

    pub(crate) fn closed_target(&self, target: &str) {
        let mut inner = self.inner();
        inner.unclosed.remove(target);
        let page = inner.pages.as_mut().and_then(|pages| pages.remove(target));
        if let Some(page) = page {
            inner.forget(target);
            drop(inner);
            page.state().end(DriverError::PageGone, Some(PageEvent::Closed));
        }
    }

    pub(crate) fn browser_gone(&self, why: &CdpError) {
        let pages = {
            let mut inner = self.inner();
            inner.filling = None;
            inner.pages.take().unwrap_or_default()
        };
        for page in pages.values() {
            page.state().end(why.clone().into(), None);
        }
    }
}

#[async_trait]
impl Context for CdpContext {
    fn handle(&self) -> &Handle {
        &self.handle
    }

    async fn open_page(&self) -> Result<Arc<dyn Page>> {
        if let Unit::Windows(own) = &self.unit {
            return self.open_in_newest(own).await;
        }
        let turn = self.turn().await;
        if self.is_closed() {
            return Err(closed());
        }
        Ok(self.take_in(self.make_target(turn).await?).await?)
    }

    async fn close(&self) -> Result<()> {
        let (pages, strangers) = self.take_pages();
        futures::future::join_all(strangers.iter().map(|page| self.give_back(page))).await;
        for page in pages.values() {
            page.state().end(DriverError::PageGone, None);
            self.connection.forget(page.session());
        }
        if let Some(browser) = self.browser.upgrade() {
            return browser.end().await;
        }
        let closed = match self.browser_context() {
            Some(browser_context_id) => {
                self.connection.call_in(None, &target::DisposeBrowserContext { browser_context_id }, HOUSEKEEPING).await.map(|_| ())
            }
            None => {
                self.inner().unclosed.extend(pages);
                return self.close_pages().await;
            }
        };
        match closed {
            // Refused: it is gone already, which is what was asked for.
            Ok(()) | Err(CdpError::Refused { .. }) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }

    async fn cookies(&self) -> Result<Vec<Cookie>> {
        self.all_cookies().await
    }

    async fn set_cookies(&self, cookies: &[Cookie]) -> Result<Vec<usize>> {
        self.put_cookies(cookies).await
    }

    async fn clear_cookies(&self) -> Result<()> {
        if self.shares_profile() {
            let text = "Sessions that share a profile share its cookies: clearing them would log out everybody in it. Use isolation context or browser, or let single ones expire (set, with expires 1).";
            return Err(DriverError::Unsupported(text.into()));
        }
        self.forget_cookies().await
    }

    fn source(&self) -> Option<Arc<dyn Source>> {
        Some(Arc::new(LiveSource::of(Weak::clone(&self.me))))
    }

    async fn open_seeded(&self, seed: &PageSeed) -> Result<Planted> {
        self.open_page_like(seed).await
    }

    fn copied(&self) -> watch::Receiver<Copied> {
        self.world.origins.copied()
    }

    fn footprint(&self) -> watch::Receiver<Footprint> {
        self.world.origins.footprint()
    }

    fn take_visits(&self) -> BTreeSet<String> {
        self.world.origins.take_visits()
    }

    fn windows(&self) -> Option<&dyn Windowed> {
        matches!(self.unit, Unit::Windows(_)).then_some(self)
    }

    fn emulation(&self) -> Emulation {
        self.world.emulation()
    }

    async fn emulate(&self, wanted: &Emulation) -> Result<()> {
        self.change_emulation(wanted).await
    }

    async fn memory_kb(&self) -> Option<u64> {
        let pages = self.pages();
        let heaps = futures::future::join_all(pages.iter().map(|page| page.heap())).await;
        let shared: HashMap<String, u64> = heaps.into_iter().flatten().map(|heap| (heap.id, heap.kb)).collect();
        (pages.is_empty() || !shared.is_empty()).then(|| shared.values().sum())
    }

    fn downloads(&self) -> watch::Receiver<Vec<Download>> {
        self.world.downloads.list()
    }

    fn popups(&self) -> mpsc::Receiver<Popup> {
        let mut inner = self.inner();
        if let Some(unheard) = inner.unheard.take() {
            return unheard;
        }
        let (sender, receiver) = mpsc::channel(POPUP_QUEUE);
        inner.popups = sender;
        receiver
    }
}

impl Inner {
    fn forget(&mut self, target: &str) {
        remember(&mut self.gone, target);
    }

    fn came_up(&mut self, target: &str) {
        remember(&mut self.came, target);
    }
}

fn remember(targets: &mut VecDeque<String>, target: &str) {
    if targets.len() == MAX_GONE {
        targets.pop_front();
    }
    targets.push_back(target.to_owned());
}

pub(crate) fn closed() -> DriverError {
    DriverError::BrowserGone("its context was closed".into())
}
