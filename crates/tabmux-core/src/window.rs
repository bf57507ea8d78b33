//! Seed 4's rules as data: which windows a session owns, where its tabs are, and what is visible to it. A
//! driver reports facts (this tab is in that window, which was there before); the verdicts are made here.

use std::collections::{BTreeMap, BTreeSet};

use crate::TabId;

/// A window as the driver numbers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WindowId(pub i64);

/// Whether page operations are limited to a session's windows (S4.18).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scoping {
    #[default]
    Windows,
    /// `--no-window-scope`: nothing is filtered.
    Off,
}

/// The windows of one session and the tabs in them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowScope {
    pub scoping: Scoping,
    pub windows: BTreeSet<WindowId>,
    pub places: BTreeMap<TabId, WindowId>,
    /// Tabs of the person's that it is shown where nothing is filtered: nobody works in one without naming it, and none is closed with the session.
    pub strangers: BTreeSet<TabId>,
    /// Own windows that did not take a new tab, as popups' do not. Learnt anew by the next daemon.
    pub full: BTreeSet<WindowId>,
}

/// Where a driver found a tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Spot {
    pub window: WindowId,
    pub ground: Ground,
}

/// What a window was when the tab came into it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// Made for the tab, or nobody else's tab is in it.
    New,
    /// There before, with others in it.
    Old,
}

/// What follows from where a tab was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    Right,
    /// A new tab landed elsewhere and must be made again there (S4.15, C14).
    Misplaced {
        expected: Option<WindowId>,
        found: WindowId,
    },
    /// A tab was dragged out of the session's windows: it is the person's now (S4.19).
    Left,
}

impl WindowScope {
    /// The session owns this window from now on: its first, or one a popup of its own made (S4.7, S4.8, S4.23).
    pub fn adopt(&mut self, window: WindowId) {
        self.windows.insert(window);
    }

    /// Where a new tab belongs: the newest of the session's windows that takes one (S4.5).
    pub fn home(&self) -> Option<WindowId> {
        self.windows.iter().rev().find(|window| !self.full.contains(window)).copied()
    }

    /// Notes where a new tab, or one that a tab of the session opened, came up. A window that is nobody else's becomes
    /// the session's; in somebody else's it cannot stay.
    pub fn place_new(&mut self, tab: TabId, spot: Spot) -> Placement {
        let found = spot.window;
        if spot.ground == Ground::New {
            self.adopt(found);
        }
        if self.scoping == Scoping::Windows && !self.windows.contains(&found) {
            return Placement::Misplaced { expected: self.home(), found };
        }
        self.places.insert(tab, found);
        Placement::Right
    }

    /// Notes where an own tab is now. One whose place was never known cannot have left it.
    pub fn moved(&mut self, tab: TabId, found: WindowId) -> Placement {
        if !self.places.contains_key(&tab) {
            return Placement::Right;
        }
        if self.scoping == Scoping::Windows && !self.windows.contains(&found) {
            self.places.remove(&tab);
            return Placement::Left;
        }
        self.places.insert(tab, found);
        Placement::Right
    }

    /// The person closed a window; the tabs that were in it are gone (S4.17).
    pub fn window_closed(&mut self, window: WindowId) -> Vec<TabId> {
        self.windows.remove(&window);
        self.full.remove(&window);
        let gone = self.places.iter().filter(|(_, at)| **at == window).map(|(tab, _)| *tab).collect();
        self.places.retain(|_, at| *at != window);
        gone
    }

    pub fn forget(&mut self, tab: TabId) {
        self.places.remove(&tab);
        self.strangers.remove(&tab);
    }

    /// The own tabs a listing shows, in order, so that an index is window-local (S4.2, S4.3). A tab whose place
    /// is not known yet is shown: it is the session's own by id. A page of the person's has no id here at all (S4.6).
    pub fn visible<'a>(&'a self, own: impl Iterator<Item = TabId> + 'a) -> impl Iterator<Item = TabId> + 'a {
        own.filter(|tab| self.scoping == Scoping::Off || self.places.get(tab).is_none_or(|at| self.windows.contains(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: WindowId = WindowId(10);
    const USERS: WindowId = WindowId(99);

    fn old(window: WindowId) -> Spot {
        Spot { window, ground: Ground::Old }
    }

    fn scope() -> WindowScope {
        let mut scope = WindowScope::default();
        scope.adopt(OWN);
        scope
    }

    /// S4.5, S4.15
    #[test]
    fn a_new_tab_in_a_foreign_window_is_misplaced_and_not_noted() {
        let mut scope = scope();
        assert_eq!(scope.place_new(TabId(1), old(USERS)), Placement::Misplaced { expected: Some(OWN), found: USERS });
        assert!(scope.places.is_empty());
        assert_eq!(scope.place_new(TabId(1), old(OWN)), Placement::Right);
        assert_eq!(scope.places[&TabId(1)], OWN);
    }

    /// S4.19
    #[test]
    fn a_tab_dragged_out_has_left_and_is_no_longer_listed_by_place() {
        let mut scope = scope();
        scope.place_new(TabId(1), old(OWN));
        assert_eq!(scope.moved(TabId(1), USERS), Placement::Left);
        assert!(scope.places.is_empty());
        assert_eq!(scope.moved(TabId(2), USERS), Placement::Right, "one that was never placed");
    }

    /// S4.7, S4.23
    #[test]
    fn a_window_made_for_a_tab_is_the_sessions_and_one_of_others_never() {
        let mut scope = WindowScope::default();
        assert_eq!(scope.place_new(TabId(1), old(USERS)), Placement::Misplaced { expected: None, found: USERS });
        assert_eq!(scope.place_new(TabId(1), Spot { window: OWN, ground: Ground::New }), Placement::Right);
        assert_eq!((scope.windows.len(), scope.home()), (1, Some(OWN)));
    }

    /// S4.15
    #[test]
    fn a_window_that_takes_no_tab_is_no_home_and_stays_the_sessions() {
        let mut scope = scope();
        scope.adopt(WindowId(11));
        scope.full.insert(WindowId(11));
        assert_eq!(scope.home(), Some(OWN));
        assert_eq!(scope.place_new(TabId(1), old(WindowId(11))), Placement::Right);
        scope.window_closed(WindowId(11));
        assert!(scope.full.is_empty());
    }

    /// S4.2, S4.6, S4.18
    #[test]
    fn only_tabs_in_own_windows_are_visible_and_scoping_can_be_turned_off() {
        let mut scope = scope();
        scope.places.insert(TabId(1), USERS);
        scope.places.insert(TabId(2), OWN);
        let tabs = [TabId(1), TabId(2), TabId(3)];
        assert_eq!(scope.visible(tabs.into_iter()).collect::<Vec<_>>(), [TabId(2), TabId(3)]);
        scope.scoping = Scoping::Off;
        assert_eq!(scope.visible(tabs.into_iter()).collect::<Vec<_>>(), tabs);
        assert_eq!(scope.place_new(TabId(4), old(USERS)), Placement::Right);
        assert_eq!(scope.moved(TabId(4), WindowId(7)), Placement::Right);
    }

    /// S4.1, S4.17
    #[test]
    fn a_closed_window_takes_its_tabs_along_and_the_home_is_the_newest_left() {
        let mut scope = scope();
        scope.adopt(WindowId(11));
        assert_eq!(scope.home(), Some(WindowId(11)));
        scope.place_new(TabId(1), old(OWN));
        scope.place_new(TabId(2), old(WindowId(11)));
        assert_eq!(scope.window_closed(WindowId(11)), [TabId(2)]);
        assert_eq!((scope.home(), &scope.places), (Some(OWN), &BTreeMap::from([(TabId(1), OWN)])));
        scope.forget(TabId(1));
        assert_eq!(scope.window_closed(OWN), []);
        assert_eq!(scope.home(), None);
    }
}
