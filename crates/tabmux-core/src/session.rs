//! One session: whose it is, its tabs, its queue and its clocks.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use crate::{ClientId, Epoch, Identity, Party, SessionId, TabId, TabNumber, Uuid, WindowScope};

/// Time on a clock that never jumps and does not run while the machine sleeps (C1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl Millis {
    pub(crate) fn since(self, earlier: Millis) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// A clock set to any length stays in the future.
    pub(crate) fn plus(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add(ms))
    }
}

/// What a session drives (S0.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    #[default]
    Browser,
    Ios,
    Android,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Browser => "browser",
            Self::Ios => "ios",
            Self::Android => "android",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Browser, Self::Ios, Self::Android].into_iter().find(|kind| kind.name() == name)
    }
}

/// How far a session's making has come. Written to the journal before the step it announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// An id is reserved, nothing was made (S1.14).
    Reserved,
    /// A context is being made; a crash now undoes it.
    Opening,
    Open,
    /// It is being closed; a crash now finishes that.
    Closing,
}

impl Phase {
    pub fn name(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Opening => "opening",
            Self::Open => "open",
            Self::Closing => "closing",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Reserved, Self::Opening, Self::Open, Self::Closing].into_iter().find(|phase| phase.name() == name)
    }
}

/// Whether its browser went away, and it has no other yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Loss {
    #[default]
    None,
    /// Its next call says so, whichever daemon answers it.
    Untold,
    Told,
}

impl Loss {
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Untold => "untold",
            Self::Told => "told",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Untold, Self::Told].into_iter().find(|loss| loss.name() == name)
    }
}

/// Whether a session is a copy of a logged-in source; copies have a hard limit (C4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Seat {
    #[default]
    Plain,
    Clone,
}

/// One tab of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tab {
    pub number: TabNumber,
    /// The driver's own name for the page; opaque here.
    pub handle: Arc<str>,
    pub url: String,
    /// What the driver wants to be told when it finds the page again; opaque here.
    pub memento: Option<String>,
}

/// One call, from its admission to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallId(pub u64);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) call: CallId,
    pub(crate) client: ClientId,
    pub(crate) epoch: Epoch,
    pub(crate) by_grant: bool,
}

/// What lasts of a session; the journal keeps this (C-journal) and a restarted daemon begins with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    pub id: SessionId,
    pub uuid: Uuid,
    pub name: String,
    pub kind: Kind,
    pub owner: Identity,
    pub seat: Seat,
    /// What it began with, as its owner may read it: `profile:work`, `session:web` (S3.35). Never a secret.
    pub source: Option<String>,
    pub phase: Phase,
    /// How its pages are kept apart, in the driver's word.
    pub isolation: String,
    /// How its context is to be made again, in the driver's words; empty where nothing was asked for. Never a secret.
    pub settings: String,
    /// The driver's own name for the context, once there is one.
    pub context: Option<Arc<str>>,
    /// Which of the daemon's sessions it is, in the order of their making: clocks are too coarse for that and may be set back.
    pub made: u64,
    /// Wall-clock time of its making, for people only; no decision uses it.
    pub created_unix_ms: i64,
    pub epoch: Epoch,
    pub tabs: BTreeMap<TabId, Tab>,
    pub current_tab: Option<TabId>,
    /// The number the next tab gets; tab ids are never reused (C17).
    pub next_tab: u32,
    pub windows: WindowScope,
    /// Who drove it, under which name, before another took it over; the last one first.
    pub former: Vec<(Identity, String)>,
    pub loss: Loss,
    /// The call that makes it has not come to its end: a crash now undoes it, however much of it is there.
    pub unfinished: bool,
}

/// What is forgotten with the daemon.
#[derive(Debug, Default)]
pub(crate) struct Live {
    pub(crate) last_used: Millis,
    /// Since when no connection of its owner lives, and until when that is borne.
    pub(crate) orphan: Option<Orphan>,
    /// Admitted calls that have not begun, in order (C3).
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) running: Option<Waiting>,
    /// Calls beside the queue (answering a dialog); they keep a session from being idle.
    pub(crate) beside: u32,
    pub(crate) viewers: u32,
    /// The tabs that are current for those who use it and do not own it.
    pub(crate) chosen: BTreeMap<Party, TabId>,
    /// The tab that each who uses it works in, as far as they know. It may be gone.
    pub(crate) works_in: BTreeMap<Party, TabId>,
    /// Numbers of its tabs that were closed, the last ones; so that they are not taken for another's.
    pub(crate) closed_tabs: VecDeque<TabNumber>,
    /// Those of them that are open, and a person's now.
    pub(crate) taken_tabs: VecDeque<(TabId, TabNumber)>,
}

/// Why a tab is none of the session's any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TabEnd {
    Closed,
    /// A person moved it out of the session's windows (S4.19).
    Taken,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Orphan {
    /// `None`: the grace clock is off.
    pub(crate) until: Option<Millis>,
}

impl Session {
    /// What its owner calls it: the name, or the uuid where the owner is told apart by nothing else (C11).
    pub fn handle(&self) -> String {
        if self.owner == Identity::Nobody { self.uuid.to_string() } else { self.name.clone() }
    }

    /// Whether it ever had a context, with pages or without. The journals of former daemons tell it by its tabs only.
    pub fn was_made(&self) -> bool {
        self.context.is_some() || self.loss != Loss::None || self.next_tab > 1
    }

    /// Whether its browser went away with what it had there, and no call opened another yet.
    pub fn is_lost(&self) -> bool {
        self.phase == Phase::Reserved && self.was_made()
    }

    /// Whether its id was given away and nothing was made for it yet (S1.14).
    pub fn is_reservation(&self) -> bool {
        self.phase == Phase::Reserved && !self.was_made()
    }

    /// The first of its own tabs, which becomes current when the selected one vanished (S4.14).
    pub(crate) fn first_tab(&self) -> Option<TabId> {
        self.tabs.keys().find(|tab| !self.windows.strangers.contains(tab)).copied()
    }

    /// Whether a tab with that id ever was in this session.
    pub(crate) fn had_tab(&self, tab: TabId) -> bool {
        tab.0 >= 1 && tab.0 < self.next_tab
    }
}

/// How many closed tabs a session remembers by their number.
const CLOSED_TABS: usize = 1000;

impl Live {
    pub(crate) fn note_closed(&mut self, tab: TabNumber) {
        if self.closed_tabs.len() >= CLOSED_TABS {
            self.closed_tabs.pop_front();
        }
        self.closed_tabs.push_back(tab);
    }

    pub(crate) fn note_taken(&mut self, id: TabId, tab: TabNumber) {
        if self.taken_tabs.len() >= CLOSED_TABS {
            self.taken_tabs.pop_front();
        }
        self.taken_tabs.push_back((id, tab));
    }

    /// What became of a tab that the session had.
    pub(crate) fn end_of(&self, is_it: impl Fn(&(TabId, TabNumber)) -> bool) -> TabEnd {
        if self.taken_tabs.iter().any(is_it) { TabEnd::Taken } else { TabEnd::Closed }
    }

    /// The call is no more, wherever it was.
    pub(crate) fn let_go(&mut self, call: CallId) {
        if self.running.is_some_and(|running| running.call == call) {
            self.running = None;
        } else if self.waiting.iter().any(|waiting| waiting.call == call) {
            self.waiting.retain(|waiting| waiting.call != call);
        } else {
            self.beside = self.beside.saturating_sub(1);
        }
    }

    pub(crate) fn busy(&self) -> bool {
        self.running.is_some() || !self.waiting.is_empty() || self.beside > 0 || self.viewers > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_phases_and_losses_read_back() {
        for kind in [Kind::Browser, Kind::Ios, Kind::Android] {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
        for phase in [Phase::Reserved, Phase::Opening, Phase::Open, Phase::Closing] {
            assert_eq!(Phase::from_name(phase.name()), Some(phase));
        }
        assert_eq!([Loss::None, Loss::Untold, Loss::Told].map(Loss::name), ["", "untold", "told"], "as journals have them");
        for loss in [Loss::None, Loss::Untold, Loss::Told] {
            assert_eq!(Loss::from_name(loss.name()), Some(loss));
        }
        assert_eq!((Kind::from_name("tv"), Phase::from_name(""), Loss::from_name("lost")), (None, None, None));
    }
}
