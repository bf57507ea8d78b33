//! Windows of sessions whose pages live among others' in one profile (Seed 4). A driver says where a tab is; whose a
//! window is, and so whether the tab may stay there, is decided here and nowhere else.

use super::Registry;
use super::tabs::lost_tab;
use crate::session::TabEnd;
use crate::{Fault, Ground, Placement, SessionId, Spot, TabId, WindowId, WindowScope};

impl Registry {
    /// Notes where a new tab of the session came up (S4.5, S4.15, S4.23). A window of another session is never taken,
    /// whatever the driver says of it.
    pub fn place_tab(&mut self, id: SessionId, tab: TabId, spot: Spot) -> Placement {
        let ground = if self.is_anothers(id, spot.window) { Ground::Old } else { spot.ground };
        self.in_windows(id, tab, |windows| windows.place_new(tab, Spot { ground, ..spot }))
    }

    /// Notes where a tab of the session is now (S4.19).
    pub fn tab_moved(&mut self, id: SessionId, tab: TabId, found: WindowId) -> Placement {
        let placement = self.in_windows(id, tab, |windows| windows.moved(tab, found));
        if placement == Placement::Left
            && let Some((session, live)) = self.live_mut(id)
            && let Some(record) = session.tabs.get(&tab)
        {
            live.note_taken(tab, record.number);
        }
        placement
    }

    /// What a call on this tab is told, where a person took it out of the session.
    pub fn taken_tab(&self, id: SessionId, tab: TabId) -> Option<Fault> {
        let (_, live) = self.live(id)?;
        let end = live.end_of(|(taken, _)| *taken == tab);
        (end == TabEnd::Taken).then(|| lost_tab(Some(end), &tab.to_string()))
    }

    /// A window of the session does not take tabs; it stays the session's.
    pub fn window_full(&mut self, id: SessionId, window: WindowId) {
        if let Some((session, _)) = self.live_mut(id)
            && session.windows.windows.contains(&window)
        {
            session.windows.full.insert(window);
        }
    }

    /// A window of the session is no more (S4.17). Tabs that were in it are removed as their pages are found gone.
    pub fn window_gone(&mut self, id: SessionId, window: WindowId) {
        let Some((session, _)) = self.live_mut(id) else { return };
        session.windows.window_closed(window);
        self.dirty.insert(id);
    }

    fn is_anothers(&self, id: SessionId, window: WindowId) -> bool {
        self.sessions.values().any(|(session, _)| session.id != id && session.windows.windows.contains(&window))
    }

    fn in_windows(&mut self, id: SessionId, tab: TabId, note: impl FnOnce(&mut WindowScope) -> Placement) -> Placement {
        let Some((session, _)) = self.live_mut(id) else { return Placement::Right };
        if !session.tabs.contains_key(&tab) {
            return Placement::Right;
        }
        let before = session.windows.clone();
        let placement = note(&mut session.windows);
        if session.windows != before {
            self.dirty.insert(id);
        }
        placement
    }
}
