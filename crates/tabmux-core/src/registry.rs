//! The one place that changes who owns what. Every method is short, synchronous and total; what must happen
//! outside (end a call, close a context, exit) is queued as an `Effect`, what must outlast the daemon as a
//! `Persist`. The caller drains both after every call, under the same lock.

mod calls;
mod check;
mod chosen;
mod clients;
mod clock;
mod endings;
mod find;
mod grants;
mod sessions;
mod tabs;
#[cfg(test)]
mod tests;
mod windows;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;

use crate::session::Live;
use crate::{
    CallId, ClientId, Fault, Grant, GrantKey, Identity, Kind, Link, Millis, OnLost, Scoping, Seat, Session, SessionId, TabId, TabNumber,
    Uuid,
};

pub use calls::{Admitted, Lane};
pub use chosen::LostTab;
pub use grants::{Revoke, Shared};
pub use sessions::{Listed, Open, Opened, check_name};
pub use tabs::{House, TAKEN, TabRef, foreign_tab};

/// The rules that are settings.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// `None` turns a clock off (C1).
    pub session_idle_ms: Option<u64>,
    pub orphan_grace_ms: Option<u64>,
    pub exit_when_empty_ms: Option<u64>,
    pub on_lost: OnLost,
    pub warn_sessions: u32,
    /// 0 = unlimited.
    pub max_sessions: u32,
    pub max_clones: u32,
    /// How many calls may wait in one session.
    pub max_waiting: usize,
    /// Of the sessions that are made from now on (S4.18).
    pub scoping: Scoping,
    /// What is known of a capability. No setting, but as pure as the rest is: this room computes no hashes.
    pub digest: fn(&str) -> GrantKey,
}

/// What must happen outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// This call ends now with this fault, whether it waits or runs.
    EndCall { call: CallId, fault: Fault },
    /// Close what the driver holds for this session, then report `closed`.
    Close { session: SessionId, why: Ended },
    /// Another has this session now, by a hand-over, and is to be told what it has. `was` is its name before, where its taker had another
    /// of that name.
    TakenOver { session: SessionId, was: Option<String> },
    /// Nothing is left to serve: say goodbye and exit.
    Exit,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Asked,
    /// The operator closed another's.
    ByOperator,
    Goodbye,
    Lost,
    Idle,
    /// Its making failed or was interrupted.
    Undone,
}

/// What must outlast the daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Persist {
    Session(Box<Session>),
    Gone(SessionId),
    Current {
        owner: Identity,
        agent: Option<Arc<str>>,
        session: Option<SessionId>,
    },
    /// The number the next tab gets: one that was given is never another tab's, also when its session is long gone.
    NextTab(TabNumber),
    /// A grant, and what is left of its time now.
    Grant(Shared),
    GrantGone(GrantKey),
}

/// Random ids for a new session; drawn again when they are taken.
#[derive(Clone, Copy, Debug)]
pub struct Minted {
    pub id: SessionId,
    pub uuid: Uuid,
}

#[derive(Debug)]
struct Client {
    identity: Identity,
    link: Link,
    /// It asked for something; who never did is owed nothing.
    has_called: bool,
}

/// The session one agent of an identity has set.
type Current = (Option<Arc<str>>, SessionId);

/// See the module's first lines.
#[derive(Debug)]
pub struct Registry {
    rules: Rules,
    sessions: BTreeMap<SessionId, (Session, Live)>,
    /// The sessions that are not being closed, per owner, by what the owner calls them (C5, C11).
    owned: HashMap<Identity, BTreeMap<String, SessionId>>,
    uuids: HashMap<Uuid, SessionId>,
    /// The tabs of these sessions by their daemon-wide number (C17).
    tab_numbers: HashMap<TabNumber, (SessionId, TabId)>,
    clients: HashMap<ClientId, Client>,
    /// The live connection that drives an exclusive identity.
    holders: HashMap<Identity, ClientId>,
    /// The session that was set as current, per identity and agent (C8).
    currents: HashMap<Identity, Vec<Current>>,
    /// The last number of an automatic name, per identity and kind (S0.11).
    numbers: HashMap<(Identity, Kind), u32>,
    /// What an owner has not been told yet: its sessions that ended without its doing, oldest first.
    endings: HashMap<Identity, VecDeque<endings::Ending>>,
    /// Those of them who were gone when theirs was noted, or left since, in the order of their going.
    away: VecDeque<Identity>,
    /// What others may do, by the hash of the capability they show.
    grants: BTreeMap<GrantKey, grants::Given>,
    /// Those that ended last, the latest first.
    ended_grants: VecDeque<Arc<Grant>>,
    calls: HashMap<u64, calls::Call>,
    /// Calls inside the daemon, whether they have come to a session yet or not.
    visits: usize,
    next_client: u64,
    next_call: u64,
    next_tab_number: u64,
    next_made: u64,
    empty_since: Option<Millis>,
    exiting: bool,
    effects: Vec<Effect>,
    dirty: BTreeSet<SessionId>,
    persists: Vec<Persist>,
}

impl Registry {
    pub fn new(rules: Rules, now: Millis) -> Self {
        Self {
            rules,
            sessions: BTreeMap::new(),
            owned: HashMap::new(),
            uuids: HashMap::new(),
            tab_numbers: HashMap::new(),
            clients: HashMap::new(),
            holders: HashMap::new(),
            currents: HashMap::new(),
            numbers: HashMap::new(),
            endings: HashMap::new(),
            away: VecDeque::new(),
            grants: BTreeMap::new(),
            ended_grants: VecDeque::new(),
            calls: HashMap::new(),
            visits: 0,
            next_client: 1,
            next_call: 1,
            next_tab_number: 1,
            next_made: 1,
            empty_since: Some(now),
            exiting: false,
            effects: Vec::new(),
            dirty: BTreeSet::new(),
            persists: Vec::new(),
        }
    }

    /// Begins with what a former daemon knew. Nobody is connected yet: sessions of peers that can be lost wait
    /// as orphans; what was half made is undone, what was half closed is finished.
    pub fn restore(
        &mut self,
        sessions: Vec<Session>,
        currents: Vec<(Identity, Option<Arc<str>>, SessionId)>,
        grants: Vec<Shared>,
        next_tab: TabNumber,
        now: Millis,
    ) {
        self.next_tab_number = self.next_tab_number.max(next_tab.0);
        for mut session in sessions {
            // It had lost its browser and keeps its name: only what was being made for it is undone.
            if session.phase == crate::Phase::Opening && session.loss != crate::Loss::None && !session.unfinished {
                session.phase = crate::Phase::Reserved;
                self.dirty.insert(session.id);
            }
            let highest = session.tabs.values().map(|tab| tab.number.0).max().unwrap_or(0);
            self.next_tab_number = self.next_tab_number.max(highest + 1);
            self.next_made = self.next_made.max(session.made + 1);
            let works_in = session.current_tab.map(|tab| (crate::Party::Owner, tab)).into_iter().collect();
            let live = Live { last_used: now, works_in, ..Live::default() };
            let id = session.id;
            let phase = session.phase;
            // What it was to begin with may be nowhere any more.
            let unfinished = session.unfinished;
            let unbegun = session.seat == crate::Seat::Clone && session.is_reservation();
            let lost = session.owner.is_exclusive() && self.rules.on_lost != OnLost::Keep;
            self.sessions.insert(id, (session, live));
            if phase != crate::Phase::Closing {
                self.enlist(id);
            }
            match phase {
                crate::Phase::Reserved | crate::Phase::Opening | crate::Phase::Open if unfinished => self.end_session(id, Ended::Undone),
                crate::Phase::Opening => self.end_session(id, Ended::Undone),
                crate::Phase::Reserved if unbegun => self.end_session(id, Ended::Undone),
                crate::Phase::Closing => self.effects.push(Effect::Close { session: id, why: Ended::Undone }),
                crate::Phase::Reserved | crate::Phase::Open if lost => self.orphan(id, now),
                crate::Phase::Reserved | crate::Phase::Open => {}
            }
        }
        for (owner, agent, session) in currents {
            if self.live(session).is_some_and(|(record, _)| record.owner == owner) {
                self.currents.entry(owner).or_default().push((agent, session));
            } else {
                self.persists.push(Persist::Current { owner, agent, session: None });
            }
        }
        self.restore_grants(grants, now);
        self.note_emptiness(now);
    }

    /// Everything that lasts, for a snapshot.
    pub fn records(&self) -> impl Iterator<Item = &Session> {
        self.sessions.values().map(|(session, _)| session)
    }

    /// Every session that was set as current, for a snapshot.
    pub fn currents(&self) -> impl Iterator<Item = (&Identity, Option<&str>, SessionId)> {
        self.currents.iter().flat_map(|(owner, agents)| agents.iter().map(move |(agent, session)| (owner, agent.as_deref(), *session)))
    }

    /// The number the next tab gets, for a snapshot.
    pub fn next_tab(&self) -> TabNumber {
        TabNumber(self.next_tab_number)
    }

    /// What must happen outside since the last time.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// What must be written down since the last time, oldest first.
    pub fn take_persists(&mut self) -> Vec<Persist> {
        for id in std::mem::take(&mut self.dirty) {
            self.persists.push(match self.sessions.get(&id) {
                Some((session, _)) => Persist::Session(Box::new(session.clone())),
                None => Persist::Gone(id),
            });
        }
        std::mem::take(&mut self.persists)
    }

    /// A session by its id, whatever its phase.
    pub fn session(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id).map(|(session, _)| session)
    }

    /// How many sessions there are: all that are not being closed, of which each is an orphan, lost, reserved or active.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for (session, live) in self.open_sessions() {
            counts.sessions += 1;
            *match live.orphan {
                Some(_) => &mut counts.orphaned,
                None if session.is_lost() => &mut counts.lost,
                None if session.is_reservation() => &mut counts.reserved,
                None => &mut counts.active,
            } += 1;
            counts.clones += usize::from(session.seat == Seat::Clone);
            counts.running += usize::from(live.running.is_some()) + live.beside as usize;
            counts.waiting += live.waiting.len();
        }
        counts.clients = self.clients.len();
        counts
    }

    /// Whether the daemon has decided to exit; nothing new may begin.
    pub fn is_exiting(&self) -> bool {
        self.exiting
    }

    /// Makes a session findable by its owner, under its name or, where the owner has no identity, its uuid; and its tabs.
    fn enlist(&mut self, id: SessionId) {
        let (session, _) = &self.sessions[&id];
        self.uuids.insert(session.uuid, id);
        self.tab_numbers.extend(session.tabs.iter().map(|(tab, record)| (record.number, (id, *tab))));
        let (owner, handle) = (session.owner.clone(), session.handle());
        self.forget_ending(&owner, &handle);
        self.forget_taken(&owner, &handle);
        self.owned.entry(owner).or_default().insert(handle, id);
    }

    fn unlist(&mut self, id: SessionId) {
        let (session, _) = &self.sessions[&id];
        self.uuids.remove(&session.uuid);
        for tab in session.tabs.values() {
            self.tab_numbers.remove(&tab.number);
        }
        if let Some(handles) = self.owned.get_mut(&session.owner) {
            handles.remove(&session.handle());
            if handles.is_empty() {
                self.owned.remove(&session.owner);
            }
        }
    }

    fn open_sessions(&self) -> impl Iterator<Item = (&Session, &Live)> {
        self.sessions.values().filter(|(session, _)| session.phase != crate::Phase::Closing).map(|(session, live)| (session, live))
    }

    /// A session that is not being closed.
    fn live(&self, id: SessionId) -> Option<(&Session, &Live)> {
        self.sessions.get(&id).filter(|(session, _)| session.phase != crate::Phase::Closing).map(|(session, live)| (session, live))
    }

    fn live_mut(&mut self, id: SessionId) -> Option<&mut (Session, Live)> {
        self.sessions.get_mut(&id).filter(|(session, _)| session.phase != crate::Phase::Closing)
    }
}

/// What `status` counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub sessions: usize,
    /// Those that are there and somebody's.
    pub active: usize,
    pub orphaned: usize,
    /// Their browser is gone, and nobody called them since; orphaned ones are not counted here.
    pub lost: usize,
    /// An id is reserved and nothing made; orphaned ones are not counted here.
    pub reserved: usize,
    pub clones: usize,
    pub clients: usize,
    pub running: usize,
    pub waiting: usize,
}
