//! Tabs: each is in one session, has a number there that is never reused, and one of them is current (C13, C17).

use std::sync::Arc;

use super::find::{Found, Picked, Standing};
use super::{Persist, Registry};
use crate::session::TabEnd;
use crate::{Code, Fault, Identity, Millis, Party, SessionId, Tab, TabId, TabNumber, WindowScope};

/// More than any agent can keep an eye on; each is written down whenever one of them changes.
pub(super) const MAX_TABS: usize = 200;
/// Enough to know a page by. A page may open others at addresses of megabytes, and all of a session's are written down together.
const MAX_URL_BYTES: usize = 4096;

/// What is said of a tab that a person took: it is open, and none of the session's.
pub const TAKEN: &str = "was moved to another window by a person, whose it is now";

/// How a call names a tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TabRef<'a> {
    /// `t1`, in the session the call means.
    Local(&'a str),
    /// By its number in the whole daemon, as the protocol-v2 surface does (S2.14, C17). It also says which session is meant.
    Global(TabNumber),
}

/// Where a session's pages live.
#[derive(Clone, Debug)]
pub struct House<'a> {
    /// The driver's own name for the context.
    pub context: Arc<str>,
    pub isolation: &'a str,
    pub settings: &'a str,
}

impl Registry {
    /// A page was made in this session for one who uses it: it gets its number and becomes current for that one.
    pub fn add_tab(&mut self, id: SessionId, party: Party, handle: Arc<str>, url: String) -> Result<TabId, Fault> {
        let tab = self.add_popup(id, handle, url)?;
        self.select_tab(id, party, tab)?;
        Ok(tab)
    }

    /// A page of this session opened another one: it gets its number; which tab is current stays, if there is one (S4.23).
    pub fn add_popup(&mut self, id: SessionId, handle: Arc<str>, url: String) -> Result<TabId, Fault> {
        let tab = self.number_tab(id, handle, url)?;
        if let Some((session, _)) = self.live_mut(id) {
            session.current_tab = session.current_tab.or(Some(tab));
        }
        Ok(tab)
    }

    /// A page of the person's that the session is shown (S4.18): it gets its number, and is current for who chooses it only.
    pub fn add_stranger(&mut self, id: SessionId, handle: Arc<str>, url: String) -> Result<TabId, Fault> {
        let tab = self.number_tab(id, handle, url)?;
        if let Some((session, _)) = self.live_mut(id) {
            session.windows.strangers.insert(tab);
        }
        Ok(tab)
    }

    fn number_tab(&mut self, id: SessionId, handle: Arc<str>, url: String) -> Result<TabId, Fault> {
        let number = TabNumber(self.next_tab_number);
        let Some((session, _)) = self.live_mut(id) else { return Err(super::sessions::closed_fault()) };
        if session.tabs.len() >= MAX_TABS {
            let message = format!("The session has {MAX_TABS} tabs, and no more are opened.");
            return Err(Fault::new(Code::Capacity, message, "Close some with close_page."));
        }
        let tab = TabId(session.next_tab);
        session.next_tab += 1;
        session.tabs.insert(tab, Tab { number, handle, url: noted(url), memento: None });
        self.next_tab_number += 1;
        self.tab_numbers.insert(number, (id, tab));
        self.persists.push(Persist::NextTab(self.next_tab()));
        self.dirty.insert(id);
        Ok(tab)
    }

    /// The session's pages live in another context from now on, as these tabs, of which `current` is the current one. Said and
    /// written at once: whoever dies meanwhile leaves it in the one or in the other. Ids of tabs are not used again.
    pub fn rehouse(
        &mut self,
        id: SessionId,
        house: House<'_>,
        pages: Vec<(Arc<str>, String)>,
        current: usize,
    ) -> Result<Vec<TabId>, Fault> {
        self.opened(id, house.context)?;
        let Some((session, live)) = self.live_mut(id) else { return Err(super::sessions::closed_fault()) };
        session.isolation = house.isolation.to_owned();
        session.settings = house.settings.to_owned();
        session.windows = WindowScope { scoping: session.windows.scoping, ..WindowScope::default() };
        session.current_tab = None;
        live.chosen.clear();
        live.works_in.clear();
        let former = std::mem::take(&mut session.tabs);
        for tab in former.values() {
            live.note_closed(tab.number);
        }
        for tab in former.values() {
            self.tab_numbers.remove(&tab.number);
        }
        self.dirty.insert(id);
        let tabs = pages.into_iter().map(|(handle, url)| self.add_popup(id, handle, url)).collect::<Result<Vec<_>, _>>()?;
        if let Some(tab) = tabs.get(current) {
            self.select_tab(id, Party::Owner, *tab)?;
        }
        Ok(tabs)
    }

    /// The tab is closed, by one who uses the session or by a person. The first one left becomes current if it was, and who had chosen
    /// it means what the owner means; all but who closed it are told before they work there (S1.24, S4.14). Whether it was there.
    pub fn remove_tab(&mut self, id: SessionId, tab: TabId, by: Option<Party>) -> bool {
        let Some((session, live)) = self.live_mut(id) else { return false };
        let Some(removed) = session.tabs.remove(&tab) else { return false };
        live.note_closed(removed.number);
        session.windows.forget(tab);
        if session.current_tab == Some(tab) {
            session.current_tab = session.first_tab();
        }
        live.chosen.retain(|_, chosen| *chosen != tab);
        live.works_in.retain(|party, known| *known != tab || Some(*party) != by);
        self.tab_numbers.remove(&removed.number);
        self.dirty.insert(id);
        true
    }

    /// Notes where a tab is, for a restarted daemon.
    pub fn tab_at(&mut self, id: SessionId, tab: TabId, url: &str) {
        let Some((session, _)) = self.live_mut(id) else { return };
        let url = noted(url.to_owned());
        if let Some(record) = session.tabs.get_mut(&tab).filter(|record| record.url != url) {
            record.url = url;
            self.dirty.insert(id);
        }
    }

    /// Notes what the tab's driver wants to know again, for a restarted daemon.
    pub fn remember_tab(&mut self, id: SessionId, tab: TabId, memento: Option<String>) {
        let Some((session, _)) = self.live_mut(id) else { return };
        if let Some(record) = session.tabs.get_mut(&tab).filter(|record| record.memento != memento) {
            record.memento = memento;
            self.dirty.insert(id);
        }
    }

    /// The tab a caller names inside its session. A lost one is never answered with a neighbour.
    pub fn own_tab(&self, id: SessionId, text: &str) -> Result<TabId, Fault> {
        let tab = text.parse::<TabId>().map_err(|_| lost_tab(None, text))?;
        let (session, live) = self.live(id).ok_or_else(super::sessions::closed_fault)?;
        let end = || session.had_tab(tab).then(|| live.end_of(|(taken, _)| *taken == tab));
        if session.tabs.contains_key(&tab) { Ok(tab) } else { Err(lost_tab(end(), text)) }
    }

    /// The session and session-local id behind a daemon-wide number: an event goes there and nowhere else (S2.24).
    pub fn tab_numbered(&self, number: TabNumber) -> Option<(SessionId, TabId)> {
        self.tab_numbers.get(&number).copied()
    }

    /// The tab a caller names by its number: one of the session it names or, when it names none, of any of its own.
    /// A stranger owns nothing and must name the session (C11).
    pub(super) fn own_tab_numbered(
        &mut self,
        identity: &Identity,
        target: Option<&str>,
        number: TabNumber,
        now: Millis,
    ) -> Result<(Found, TabId), Fault> {
        let (session, tab) = match self.tab_numbered(number) {
            Some((session, tab)) => (session, Some(tab)),
            None => (self.session_that_closed(number).ok_or_else(foreign_tab)?, None),
        };
        let standing = match target {
            Some(text) => self.named(identity, text, now).ok().filter(|(id, _)| *id == session).map(|(_, standing)| standing),
            None => (*identity != Identity::Nobody && self.is_owner(session, identity)).then_some(Standing::Owner),
        };
        let standing = standing.ok_or_else(foreign_tab)?;
        let end = || self.live(session).map(|(_, live)| live.end_of(|(_, taken)| *taken == number));
        let tab = tab.ok_or_else(|| lost_tab(end(), &number.to_string()))?;
        let standing = self.settled(identity, session, standing, now);
        Ok((Found { session, picked: Picked::ByCaller, standing }, tab))
    }

    fn session_that_closed(&self, number: TabNumber) -> Option<SessionId> {
        self.sessions.iter().find(|(_, (_, live))| live.closed_tabs.contains(&number)).map(|(id, _)| *id)
    }
}

/// The answer to a tab number that is not the caller's, whether there is such a tab or not (S2.14). The caller's own closed ones
/// are gone instead.
pub fn foreign_tab() -> Fault {
    Fault::new(Code::PolicyDenied, "Tab owned by another session", "Use a tab of your own; list_pages shows them.")
}

/// `end` is of a tab that the session had.
pub(super) fn lost_tab(end: Option<TabEnd>, text: &str) -> Fault {
    let hint = "Call list_pages to see the session's tabs.";
    match end {
        Some(TabEnd::Closed) => return Fault::new(Code::TabGone, format!("Tab {text} was closed."), hint),
        Some(TabEnd::Taken) => return Fault::new(Code::TabGone, format!("Tab {text} {TAKEN}."), hint),
        None => {}
    }
    let shown: String = text.chars().take(32).flat_map(char::escape_default).collect();
    Fault::new(Code::TabNotFound, format!("No tab '{shown}' in this session; tabs are named t1, t2, …"), hint)
}

/// What is kept of an address: its beginning, where it is long.
fn noted(mut url: String) -> String {
    let end = url.floor_char_boundary(MAX_URL_BYTES);
    if end < url.len() {
        url.truncate(end);
        url.push('…');
    }
    url
}
