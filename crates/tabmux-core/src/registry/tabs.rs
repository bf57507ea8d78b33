//! Tabs: each is in one session, has a number there that is never reused, and one of them is current (C13, C17).

use std::sync::Arc;

use super::Registry;
use crate::{Code, Fault, SessionId, Tab, TabId, TabNumber};

/// More than any agent can keep an eye on; each is written down whenever one of them changes.
pub(super) const MAX_TABS: usize = 200;

impl Registry {
    /// A page was made for this session: it gets its number and becomes current.
    pub fn add_tab(&mut self, id: SessionId, handle: Arc<str>, url: String) -> Result<TabId, Fault> {
        let number = TabNumber(self.next_tab_number);
        let Some((session, _)) = self.live_mut(id) else { return Err(super::sessions::closed_fault()) };
        if session.tabs.len() >= MAX_TABS {
            let message = format!("The session has {MAX_TABS} tabs, and no more are opened.");
            return Err(Fault::new(Code::Capacity, message, "Close some with close_page."));
        }
        let tab = TabId(session.next_tab);
        session.next_tab += 1;
        session.tabs.insert(tab, Tab { number, handle, url });
        session.current_tab = Some(tab);
        self.next_tab_number += 1;
        self.dirty.insert(id);
        Ok(tab)
    }

    /// The tab is closed, by us or by a person. The first one left becomes current if it was (S1.24, S4.14).
    pub fn remove_tab(&mut self, id: SessionId, tab: TabId) {
        let Some((session, _)) = self.live_mut(id) else { return };
        if session.tabs.remove(&tab).is_none() {
            return;
        }
        session.windows.forget(tab);
        if session.current_tab == Some(tab) {
            session.current_tab = session.first_tab();
        }
        self.dirty.insert(id);
    }

    /// The tab becomes the session's current one (S2.20).
    pub fn select_tab(&mut self, id: SessionId, tab: TabId) -> Result<(), Fault> {
        let Some((session, _)) = self.live_mut(id) else { return Err(super::sessions::closed_fault()) };
        if !session.tabs.contains_key(&tab) {
            return Err(lost_tab(session.had_tab(tab), &tab.to_string()));
        }
        if session.current_tab != Some(tab) {
            session.current_tab = Some(tab);
            self.dirty.insert(id);
        }
        Ok(())
    }

    /// Notes where a tab is, for a restarted daemon.
    pub fn tab_at(&mut self, id: SessionId, tab: TabId, url: &str) {
        let Some((session, _)) = self.live_mut(id) else { return };
        if let Some(record) = session.tabs.get_mut(&tab).filter(|record| record.url != url) {
            record.url = url.to_owned();
            self.dirty.insert(id);
        }
    }

    /// The tab a caller names inside its session. A lost one is never answered with a neighbour.
    pub fn own_tab(&self, id: SessionId, text: &str) -> Result<TabId, Fault> {
        let tab = text.parse::<TabId>().map_err(|_| lost_tab(false, text))?;
        let (session, _) = self.live(id).ok_or_else(super::sessions::closed_fault)?;
        if session.tabs.contains_key(&tab) { Ok(tab) } else { Err(lost_tab(session.had_tab(tab), text)) }
    }

    /// A tab by its daemon-wide number, for the protocol-v2 surface (C17): whose it is, and its session-local id.
    pub fn tab_numbered(&self, number: TabNumber) -> Option<(SessionId, TabId)> {
        self.open_sessions()
            .find_map(|(session, _)| session.tabs.iter().find(|(_, tab)| tab.number == number).map(|(tab, _)| (session.id, *tab)))
    }
}

fn lost_tab(was_there: bool, text: &str) -> Fault {
    let hint = "Call list_pages to see the session's tabs.";
    if was_there {
        return Fault::new(Code::TabGone, format!("Tab {text} was closed."), hint);
    }
    let shown: String = text.chars().take(32).flat_map(char::escape_default).collect();
    Fault::new(Code::TabNotFound, format!("No tab '{shown}' in this session; tabs are named t1, t2, …"), hint)
}
