//! The pages of one session, as one call may use them.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures::future::join_all;
use tabmux_core::{Admitted, Code, Fault, LostTab, Party, Session, TabId, ways_out};
use tabmux_driver::{Context, Dialog, Domains, Emulation, Lacks, Page};
use tabmux_tools::{Move, PageRef, PageView, Pages};

use super::Turn;
use super::reach::Reach;
use super::world::{World, dialog_elsewhere, dialog_fault};

/// How many dialogs a document may open before it is likely that it never ends. Nothing but its end stops it: whoever sends it elsewhere meets the next
/// one.
const MANY_DIALOGS: u64 = 3;

pub(super) struct CallPages {
    world: Arc<World>,
    admitted: Admitted,
    reach: Reach,
    turn: Turn,
    /// The tab the call worked on, for its reply.
    tab: Mutex<Option<TabId>>,
    /// A dialog was open before the call, which did nothing then.
    met_dialog: AtomicBool,
    lacks: Lacks,
}

impl CallPages {
    pub(super) fn new(world: Arc<World>, admitted: Admitted, reach: Reach, turn: Turn) -> Self {
        Self { world, admitted, reach, turn, tab: Mutex::new(None), met_dialog: AtomicBool::new(false), lacks: Lacks::default() }
    }

    pub(super) fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Where the call ended up, for its reply (S2.26, S2.36).
    pub(super) fn worked_on(&self) -> (Option<TabId>, Option<String>) {
        let (tab, page) = self.working_on();
        (tab, page.map(|page| page.url()))
    }

    /// The tab the call works on, and its page while there is one.
    pub(super) fn working_on(&self) -> (Option<TabId>, Option<Arc<dyn Page>>) {
        let tab = *self.tab.lock().unwrap_or_else(PoisonError::into_inner);
        (tab, tab.and_then(|tab| self.world.page(tab)))
    }

    /// A call that took its page out of reach (a link, a redirect, the way back) is told so, and nothing of what is there.
    pub(super) fn check_where_it_ended(&self, url: Option<&str>) -> Result<(), Fault> {
        url.map_or(Ok(()), |url| self.reach.check(url))
    }

    /// Whether it is the call that the session works for now, and not one beside that.
    pub(super) fn has_turn(&self) -> bool {
        self.turn == Turn::Queue
    }

    /// Whether the call leaves the session's own bookkeeping as it is.
    fn only_looks(&self) -> bool {
        self.turn == Turn::Watching || self.reach.only_looks()
    }

    /// The next daemon finds the page as the call left it.
    pub(super) fn remember(&self) {
        let tab = *self.tab.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((tab, page)) = tab.and_then(|tab| Some((tab, self.world.page(tab)?))) {
            self.world.remember(tab, &*page);
        }
    }

    fn note(&self, tab: TabId) {
        *self.tab.lock().unwrap_or_else(PoisonError::into_inner) = Some(tab);
        if self.turn == Turn::Queue {
            self.world.works_on(tab);
        }
    }

    fn session<T>(&self, look: impl FnOnce(&Session) -> T) -> Result<T, Fault> {
        let closed = || Fault::new(Code::SessionClosed, "The session was closed.", ways_out::NEW_SESSION);
        self.world.hub.look(|registry| registry.session(self.world.id).map(look)).ok_or_else(closed)
    }

    /// The page of a tab, where it is within reach.
    fn live_page(&self, tab: TabId) -> Result<Arc<dyn Page>, Fault> {
        let page = self.page_anywhere(tab)?;
        self.reach.check(&page.url())?;
        Ok(page)
    }

    /// The page of a tab that is in the registry; one whose page is gone is gone for good.
    fn page_anywhere(&self, tab: TabId) -> Result<Arc<dyn Page>, Fault> {
        self.world.page(tab).ok_or_else(|| {
            // Lost with its browser, and perhaps found again with it.
            if self.world.is_lost() {
                return crate::browser::crashed("it went away during the call");
            }
            self.world.forget_tab(tab);
            self.note(tab);
            let taken = self.world.hub.look(|registry| registry.taken_tab(self.world.id, tab));
            taken.unwrap_or_else(|| tabmux_driver::DriverError::PageGone.into())
        })
    }

    /// The page that the call is for; `hand_out` says whether it may have it.
    async fn page_by(&self, hand_out: impl FnOnce(TabId) -> Result<Arc<dyn Page>, Fault> + Send) -> Result<(TabId, Arc<dyn Page>), Fault> {
        let meant = match self.admitted.tab {
            Some(tab) => Some(tab),
            None => self.meant().await?,
        };
        let tab = match (meant, self.turn) {
            (Some(tab), Turn::Queue) => tab,
            (Some(tab), Turn::Beside | Turn::Watching) => {
                // Not after the queue's first call: pages of a former daemon may still have to be found again.
                self.world.open().await?;
                tab
            }
            (None, Turn::Watching | Turn::Queue) if self.only_looks() => return Err(nothing_to_watch()),
            (None, Turn::Queue | Turn::Watching) => return self.open().await,
            (None, Turn::Beside) => return Err(tabmux_driver::DriverError::NoDialog.into()),
        };
        let page = hand_out(tab)?;
        if self.admitted.tab.is_some() && !self.only_looks() {
            self.choose(tab)?;
        }
        self.note(tab);
        Ok((tab, page))
    }

    /// A page that is to do something: behind an open dialog it would do nothing.
    fn not_asking(&self, (tab, page): (TabId, Arc<dyn Page>)) -> Result<(TabId, Arc<dyn Page>), Fault> {
        match page.dialog() {
            Some(dialog) if self.turn == Turn::Queue => {
                self.met_dialog.store(true, Ordering::Relaxed);
                Err(self.told_of_dialog(tab, &dialog))
            }
            _ => Ok((tab, page)),
        }
    }

    /// What a page says to the call in a dialog, unless that page is out of its reach.
    pub(super) fn told_of_dialog(&self, tab: TabId, dialog: &Dialog) -> Fault {
        let page = self.world.page(tab);
        let url = page.as_ref().map(|page| page.url());
        let own = self.working_on().0 == Some(tab);
        let mut fault = if own { dialog_fault(dialog) } else { dialog_elsewhere(tab, dialog) };
        if page.is_some_and(|page| page.dialogs() >= MANY_DIALOGS) {
            fault.hint.push_str(&format!(" If there is always another, end the page: close_page with tabId {tab}, then new_page."));
        }
        self.check_where_it_ended(url.as_deref()).err().unwrap_or(fault)
    }

    /// The fault of a call that a dialog ended, where it opened after the call had begun: in this tab, or else in its own.
    pub(super) fn ended_by_dialog(&self, fault: Fault, tab: Option<TabId>) -> Fault {
        if fault.code != Code::DialogOpen || self.met_dialog.load(Ordering::Relaxed) {
            return fault;
        }
        Fault { opened: tab.or(self.working_on().0), ..fault }
    }

    async fn view(&self, index: usize, tab: TabId, current: Option<TabId>) -> Option<PageView> {
        let page = self.world.page(tab)?;
        page.refresh_title().await;
        Some(PageView::of(index, tab, &*page, current == Some(tab)))
    }

    fn tabs(&self) -> Result<(Vec<TabId>, Option<TabId>), Fault> {
        let tabs = self.session(|session| session.windows.visible(session.tabs.keys().copied()).collect())?;
        Ok((tabs, self.current()))
    }

    /// The tab that the call works in where it names none. Who worked in one that is gone is told so, once, and nothing is done: never
    /// in a neighbour, nor in a new window (S1.24, S4.14, S4.17).
    async fn meant(&self) -> Result<Option<TabId>, Fault> {
        let (id, party) = (self.world.id, self.admitted.party);
        let watches = self.turn == Turn::Watching;
        let meant = match watches {
            true => self.world.hub.look(|registry| registry.meant_tab(id, party)),
            false => self.world.hub.decide_now(|registry, _| registry.work_tab(id, party)),
        };
        if !watches
            && !matches!(meant, Ok(Some(_)))
            && let Some(loss) = self.world.take_loss(party).await
        {
            return Err(loss);
        }
        meant.map_err(|lost| {
            let fault = self.lost(lost);
            if !watches {
                self.world.knows_end(party, lost.tab);
            }
            fault
        })
    }

    fn lost(&self, LostTab { tab, current }: LostTab) -> Fault {
        let how = self.world.end_of(tab).unwrap_or_else(|| format!("Tab {tab} was closed."));
        let (now, hint) = match current {
            Some(current) => (format!("Tab {current} is current now"), "Call again to go on there, or choose another with select_page."),
            None => ("The session has no tab now".to_owned(), "Call navigate or new_page to have a new one."),
        };
        Fault::new(Code::TabGone, format!("{how} {now}, and nothing was done."), hint)
    }

    /// From now on a call without a tab means this one.
    fn choose(&self, tab: TabId) -> Result<(), Fault> {
        self.world.decide(|registry| registry.select_tab(self.world.id, self.admitted.party, tab))
    }

    /// Who the others take the caller for; the owner's own doing is no news.
    fn stranger(&self) -> Option<&'static str> {
        match self.admitted.party {
            Party::Owner => None,
            Party::Operator => Some("The operator"),
            Party::Holder(_) => Some("Somebody this session is shared with"),
        }
    }

    fn find(&self, which: &PageRef) -> Result<(usize, TabId), Fault> {
        let (tabs, _) = self.tabs()?;
        match which {
            PageRef::Index(index) => tabs.get(*index).map(|tab| (*index, *tab)).ok_or_else(|| no_such_index(*index, tabs.len())),
            PageRef::Tab(text) => {
                let tab = self.world.hub.look(|registry| registry.own_tab(self.world.id, text))?;
                Ok((tabs.iter().position(|other| *other == tab).unwrap_or(0), tab))
            }
        }
    }
}

#[async_trait]
impl Pages for CallPages {
    async fn page(&self) -> Result<(TabId, Arc<dyn Page>), Fault> {
        self.not_asking(self.page_by(|tab| self.live_page(tab)).await?)
    }

    async fn page_on_record(&self) -> Result<(TabId, Arc<dyn Page>), Fault> {
        self.page_by(|tab| self.live_page(tab)).await
    }

    async fn page_bound_for(&self, url: &str) -> Result<(TabId, Arc<dyn Page>), Fault> {
        self.may_go(url)?;
        self.not_asking(self.page_by(|tab| self.page_anywhere(tab)).await?)
    }

    async fn context(&self) -> Result<Arc<dyn Context>, Fault> {
        self.reach.check_whole()?;
        self.world.open().await
    }

    async fn emulate(&self, wanted: Emulation) -> Result<(), Fault> {
        self.reach.check_whole()?;
        self.world.emulate(wanted).await
    }

    fn may_read(&self, file: &Path) -> bool {
        self.world.may_read(file)
    }

    async fn list(&self) -> Vec<PageView> {
        let (tabs, current) = self.tabs().unwrap_or_default();
        let views = join_all(tabs.into_iter().enumerate().map(|(index, tab)| self.view(index, tab, current))).await;
        views.into_iter().flatten().filter(|view| self.reach.covers(&view.url)).collect()
    }

    fn current(&self) -> Option<TabId> {
        self.world.hub.look(|registry| registry.current_tab(self.world.id, self.admitted.party))
    }

    async fn open(&self) -> Result<(TabId, Arc<dyn Page>), Fault> {
        let (tab, page) = self.world.open_tab(self.admitted.party).await?;
        if let Some(who) = self.stranger() {
            self.world.tell_others_of(self.admitted.party, tab, format!("{who} opened tab {tab}; select_page goes there."));
        }
        self.note(tab);
        Ok((tab, page))
    }

    async fn select(&self, which: &PageRef) -> Result<PageView, Fault> {
        let (index, tab) = self.find(which)?;
        self.live_page(tab)?;
        self.choose(tab)?;
        self.note(tab);
        self.view(index, tab, Some(tab)).await.ok_or_else(|| tabmux_driver::DriverError::PageGone.into())
    }

    async fn close(&self, which: &PageRef) -> Result<PageView, Fault> {
        let (index, tab) = self.find(which)?;
        // Beside the queue: pages of a former daemon may still have to be found again.
        self.world.open().await?;
        let page = self.live_page(tab)?;
        let view = self.view(index, tab, None).await.ok_or(tabmux_driver::DriverError::PageGone)?;
        self.world.closes(tab);
        self.world.take_page(tab);
        self.world.decide(|registry| registry.remove_tab(self.world.id, tab, Some(self.admitted.party)));
        if let Some(who) = self.stranger() {
            self.world.tell_others_of_end(self.admitted.party, tab, format!("{who} closed tab {tab}."));
        }
        page.close().await?;
        Ok(view)
    }

    async fn move_house(&self, wanted: Move) -> Result<(), Fault> {
        self.world.move_house(wanted).await?;
        if let Some(tab) = self.current() {
            self.note(tab);
        }
        Ok(())
    }

    fn domains(&self) -> &Domains {
        &self.world.hub.settings.chromium.domains
    }

    fn may_go(&self, url: &str) -> Result<(), Fault> {
        self.reach.check_target(url)
    }

    fn may_see(&self, url: &str) -> bool {
        self.reach.covers(url)
    }

    fn may_see_all(&self) -> Result<(), Fault> {
        self.reach.check_whole()
    }

    fn asking(&self) -> Vec<(TabId, Dialog)> {
        let (tabs, own) = (self.tabs().unwrap_or_default().0, self.working_on().0);
        let others = tabs.into_iter().filter(|tab| Some(*tab) != own).filter_map(|tab| Some((tab, self.world.page(tab)?)));
        others.filter(|(_, page)| self.may_see(&page.url())).filter_map(|(tab, page)| Some((tab, page.dialog()?))).collect()
    }

    fn lacks(&self) -> Lacks {
        self.lacks.clone()
    }

    fn moved(&self, tab: TabId) {
        if let Some(page) = self.world.page(tab) {
            self.world.decide(|registry| {
                registry.tab_at(self.world.id, tab, &page.url());
                registry.remember_tab(self.world.id, tab, page.memento());
            });
        }
    }
}

fn nothing_to_watch() -> Fault {
    Fault::new(Code::TabNotFound, "The session has no page yet.", "Wait again once it has gone somewhere.")
}

fn no_such_index(index: usize, count: usize) -> Fault {
    let message = match count {
        0 => format!("No page {index}: the session has no pages."),
        _ => format!("No page {index}: the session's pages are 0 to {}.", count - 1),
    };
    Fault::new(Code::TabNotFound, message, "Call list_pages to see them.")
}
