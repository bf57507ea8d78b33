//! The reference: flat maps, every question answered by looking through all of them. It says what each operation
//! must answer and which effects must follow, and is compared with the registry after every step.

mod grants;
mod work;

use std::collections::{BTreeMap, BTreeSet};

use tabmux_core::{Code, Ended, Identity, Kind, Leave, Link, OnLost, Phase, Rules, Seat};

use crate::op::{Op, Target, Who, name, uuid};
pub(crate) use grants::Grant;

#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) owner: Identity,
    pub(crate) seat: Seat,
    pub(crate) phase: Phase,
    pub(crate) epoch: u64,
    /// The daemon-wide number of each tab.
    pub(crate) tabs: BTreeMap<u32, u64>,
    pub(crate) current_tab: Option<u32>,
    /// The tab that its owner works in, as far as it knows.
    pub(crate) works_in: Option<u32>,
    pub(crate) next_tab: u32,
    pub(crate) last_used: u64,
    pub(crate) orphan_until: Option<u64>,
    pub(crate) viewers: u32,
    /// Who drove it before another took it over, and what it was called then.
    pub(crate) former: Vec<(Identity, String)>,
    /// Its browser went away, and it has no other yet.
    pub(crate) lost: bool,
}

/// A session, and the grant by which it is reached, if by one.
pub(crate) type Found = (u32, Option<u32>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Waiting,
    Running,
    Beside,
}

#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) session: u32,
    pub(crate) client: u64,
    pub(crate) epoch: u64,
    pub(crate) place: Place,
    /// The grant that admitted it, and the one that came from.
    pub(crate) by: Option<(u32, Option<u32>)>,
    pub(super) touch: tabmux_core::Touch,
}

/// What an operation answers: the numbers of what it gives, or why not.
pub(crate) type Answer = Result<Vec<u64>, Code>;

/// Nothing to say.
pub(crate) const DONE: Answer = Ok(vec![]);

#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) rules: Rules,
    pub(crate) now: u64,
    pub(crate) clients: BTreeMap<u64, (Identity, Link)>,
    pub(crate) holders: BTreeMap<Identity, u64>,
    /// Those who asked for anything.
    pub(crate) called: BTreeSet<u64>,
    pub(crate) sessions: BTreeMap<u32, Session>,
    pub(crate) currents: BTreeMap<(Identity, Option<u8>), u32>,
    pub(crate) numbers: BTreeMap<(Identity, Kind), u32>,
    /// Sessions that ended without their owner's doing, oldest first: id, name, and whether the owner was away.
    pub(crate) endings: BTreeMap<Identity, Vec<(u32, String, bool)>>,
    pub(crate) calls: BTreeMap<u64, Call>,
    pub(crate) grants: BTreeMap<u32, Grant>,
    pub(crate) next_grant: u32,
    pub(crate) next_client: u64,
    pub(crate) next_session: u32,
    pub(crate) next_call: u64,
    pub(crate) next_tab_number: u64,
    pub(crate) empty_since: Option<u64>,
    pub(crate) exiting: bool,
    /// Of the last operation.
    pub(crate) answer: Answer,
    /// Of the last operation, as words.
    pub(crate) effects: BTreeSet<String>,
}

impl Model {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            now: 0,
            clients: BTreeMap::new(),
            holders: BTreeMap::new(),
            called: BTreeSet::new(),
            sessions: BTreeMap::new(),
            currents: BTreeMap::new(),
            numbers: BTreeMap::new(),
            endings: BTreeMap::new(),
            calls: BTreeMap::new(),
            grants: BTreeMap::new(),
            next_grant: 1,
            next_client: 1,
            next_session: 1,
            next_call: 1,
            next_tab_number: 1,
            empty_since: Some(0),
            exiting: false,
            answer: Ok(vec![]),
            effects: BTreeSet::new(),
        }
    }

    pub(crate) fn apply(&mut self, op: &Op) {
        self.effects.clear();
        self.answer = self.answer_to(op);
        let idle = |identity: &Identity| {
            !self.clients.values().any(|(other, _)| other == identity)
                && !self.sessions.values().any(|session| session.phase != Phase::Closing && session.owner == *identity)
        };
        let forgotten: Vec<_> = self.numbers.keys().filter(|(identity, _)| idle(identity)).cloned().collect();
        let untold: Vec<_> = self.endings.keys().filter(|identity| idle(identity)).cloned().collect();
        self.numbers.retain(|key, _| !forgotten.contains(key));
        for (_, ended) in self.endings.iter_mut().filter(|(key, _)| untold.contains(key)) {
            ended.retain(|(_, _, away)| *away);
        }
        self.endings.retain(|_, ended| !ended.is_empty());
        let names: Vec<_> = self.ids(|_| true).iter().map(|id| (self.sessions[id].owner.clone(), self.sessions[id].name.clone())).collect();
        for (owner, ended) in &mut self.endings {
            ended.retain(|(_, name, _)| !names.contains(&(owner.clone(), name.clone())));
        }
        for session in self.sessions.values_mut() {
            session.former.retain(|former| !names.contains(former));
        }
        self.empty_since = if self.sessions.is_empty() { self.empty_since.or(Some(self.now)) } else { None };
    }

    fn answer_to(&mut self, op: &Op) -> Answer {
        match op {
            Op::Attach(identity, link) => self.attach(identity, *link),
            Op::Detach(client, leave) => self.detach(*client, *leave),
            Op::Reserve(who, name, kind, seat) => self.reserve(*who, *name, *kind, *seat),
            Op::Opening(id) => self.set_phase(*id, Phase::Opening),
            Op::Opened(id) => self.set_phase(*id, Phase::Open),
            Op::OpenFailed(id) => self.open_failed(*id),
            Op::Resolve(who, target) => self.resolve_own(*who, *target).map(|id| vec![id.into()]),
            Op::Admit(who, target, tab, lane, touch) => self.admit(*who, *target, *tab, (*lane, *touch)),
            Op::Share(who, target, wish) => self.share(*who, *target, *wish),
            Op::Revoke(who, target, which) => self.revoke(*who, *target, *which),
            Op::Begin(id) => self.begin(*id),
            Op::Finish(call) => self.finish(*call),
            Op::SetCurrent(who, target) => self.set_current(*who, *target),
            Op::Rename(who, target, name) => self.rename(*who, *target, *name),
            Op::Close(who, target) => self.close(*who, *target),
            Op::CloseAll(who) => self.somebody(*who).and_then(|who| self.end_all(&self.owned(&who), Ended::Asked)),
            Op::DetachAll(who) => self.detach_all(*who),
            Op::HandOver(id, to) => self.hand_over(*id, to),
            Op::Closed(id) => self.closed(*id),
            Op::Lost(id) => self.end_all(&[*id], Ended::Undone).and(DONE),
            Op::BrowserLost(id) => self.browser_lost(*id),
            Op::CloseEverything => self.end_all(&self.sessions.keys().copied().collect::<Vec<_>>(), Ended::Asked).and(DONE),
            Op::AddTab(id) => self.add_tab(*id),
            Op::AddPopup(id) => self.add_popup(*id),
            Op::RemoveTab(id, tab, by) => self.remove_tab(*id, *tab, *by),
            Op::WorkTab(id) => self.work_tab(*id),
            Op::SelectTab(id, tab) => self.select_tab(*id, *tab),
            Op::HolderSelectsTab(id, _, tab) => self.tab(*id, *tab).and(DONE),
            Op::TabAt(..) => DONE,
            Op::Watch(id) => self.watch(*id),
            Op::Unwatch(id) => self.unwatch(*id),
            Op::Pass(ms) => self.pass(*ms),
            Op::Tick(ms) => self.tick(*ms),
            Op::Restart => self.restart(),
        }
    }

    pub(crate) fn open(&self, id: u32) -> Option<&Session> {
        self.sessions.get(&id).filter(|session| session.phase != Phase::Closing)
    }

    fn open_mut(&mut self, id: u32) -> Option<&mut Session> {
        self.sessions.get_mut(&id).filter(|session| session.phase != Phase::Closing)
    }

    /// The open sessions that are so, in the order of their ids.
    pub(crate) fn ids(&self, keep: impl Fn(&Session) -> bool) -> Vec<u32> {
        self.sessions.iter().filter(|(_, session)| session.phase != Phase::Closing && keep(session)).map(|(id, _)| *id).collect()
    }

    pub(crate) fn owned(&self, identity: &Identity) -> Vec<u32> {
        self.ids(|session| session.owner == *identity)
    }

    /// What an identity can name as its own.
    pub(crate) fn own(&self, identity: &Identity) -> Vec<u32> {
        if *identity == Identity::Nobody { vec![] } else { self.owned(identity) }
    }

    /// What an identity is told it has.
    pub(crate) fn listed(&self, identity: &Identity) -> Vec<u32> {
        let held = self.held(identity).map(|(id, _)| id);
        self.own(identity).into_iter().chain(held).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn handle(&self, id: u32) -> String {
        let session = &self.sessions[&id];
        if session.owner == Identity::Nobody { uuid(id).to_string() } else { session.name.clone() }
    }

    pub(crate) fn calls_in(&self, id: u32, place: Place) -> Vec<u64> {
        self.calls.iter().filter(|(_, call)| call.session == id && call.place == place).map(|(number, _)| *number).collect()
    }

    pub(crate) fn current(&self, identity: &Identity, agent: Option<u8>) -> Option<u32> {
        self.own_current(identity, agent).or_else(|| self.held(identity).map(|(id, _)| id))
    }

    fn own_current(&self, identity: &Identity, agent: Option<u8>) -> Option<u32> {
        let own = self.own(identity);
        let only = if own.len() == 1 { own.first() } else { None };
        self.currents.get(&(identity.clone(), agent)).or(only).copied()
    }

    // Peers.

    fn attach(&mut self, identity: &Identity, link: Link) -> Answer {
        let client = self.next_client;
        self.next_client += 1;
        self.clients.insert(client, (identity.clone(), link));
        if matches!(identity, Identity::Secret(_)) && link == Link::Connection {
            self.take_back(identity, client);
        }
        Ok(vec![client])
    }

    fn take_back(&mut self, identity: &Identity, client: u64) {
        if *self.holders.entry(identity.clone()).or_insert(client) != client {
            return;
        }
        self.end_orphanhood(identity);
    }

    fn end_orphanhood(&mut self, identity: &Identity) {
        let now = self.now;
        for session in self.sessions.values_mut().filter(|session| session.owner == *identity && session.orphan_until.is_some()) {
            session.orphan_until = None;
            session.last_used = now;
            session.epoch += 1;
        }
    }

    fn detach(&mut self, client: u64, leave: Leave) -> Answer {
        let Some((identity, link)) = self.clients.remove(&client) else { return DONE };
        let waiting = self.calls.iter().filter(|(_, call)| call.client == client && call.place == Place::Waiting);
        for call in waiting.map(|(number, _)| *number).collect::<Vec<_>>() {
            self.end_call(call, Code::Cancelled);
        }
        let shared = self.clients.values().any(|(other, _)| *other == identity);
        let last = match (&identity, self.holders.get(&identity)) {
            (Identity::Operator | Identity::Nobody, _) => false,
            (_, Some(holder)) => *holder == client,
            (_, None) => !shared,
        };
        if !last {
            return DONE;
        }
        self.holders.remove(&identity);
        let here = || self.clients.iter().filter(|(_, other)| **other == (identity.clone(), Link::Connection)).map(|(id, _)| *id);
        let (is_here, heir) = (here().next().is_some(), here().find(|id| self.called.contains(id)));
        let owned = self.owned(&identity);
        let bound = matches!(identity, Identity::Secret(_)) && link == Link::Connection;
        match (leave, is_here, self.rules.on_lost) {
            (Leave::Goodbye, ..) => self.end_all(&owned, Ended::Goodbye).and(DONE),
            (Leave::Lost, ..) if !bound => DONE,
            (Leave::Lost, true, _) => {
                owned.iter().for_each(|id| self.orphan(*id));
                self.end_orphanhood(&identity);
                self.holders.extend(heir.map(|heir| (identity, heir)));
                DONE
            }
            (Leave::Lost, false, OnLost::Keep) => DONE,
            (Leave::Lost, false, OnLost::Close) => self.end_all(&owned, Ended::Lost).and(DONE),
            (Leave::Lost, false, OnLost::Grace) => {
                owned.iter().for_each(|id| self.orphan(*id));
                DONE
            }
        }
    }

    fn orphan(&mut self, id: u32) {
        let until = self.now + self.rules.orphan_grace_ms.expect("the histories' clocks are on");
        self.sessions.get_mut(&id).expect("it is owned").orphan_until = Some(until);
    }

    fn acting(&mut self, client: u64) -> Result<Identity, Code> {
        let (identity, link) = self.clients.get(&client).cloned().ok_or(Code::Unauthorized)?;
        self.called.insert(client);
        if matches!(identity, Identity::Secret(_)) && link == Link::Connection {
            self.take_back(&identity, client);
            if self.holders[&identity] != client {
                return Err(Code::SessionExists);
            }
        }
        Ok(identity)
    }

    // Who means which session.

    /// Finds a session, and tells the caller once of one that ended without its doing.
    pub(crate) fn find(&mut self, identity: &Identity, agent: Option<u8>, target: Target) -> Result<Found, Code> {
        let found = self.look_up(identity, agent, target);
        if let Ok(found) = found {
            return Ok(self.settled(identity, found));
        }
        let none = found == Err(Code::SessionNotFound) || found == Err(Code::SessionRequired) && self.own(identity).is_empty();
        if none && self.was_taken(identity, target) {
            return Err(Code::StaleEpoch);
        }
        let Some(endings) = self.endings.get_mut(identity).filter(|_| none) else { return found };
        let told = match target {
            Target::Current => endings.pop(),
            Target::Id(wanted) | Target::Uuid(wanted) => endings.iter().position(|(id, ..)| *id == wanted).map(|at| endings.remove(at)),
            _ => endings.iter().position(|(_, name, _)| Some(name) == target.text().as_ref()).map(|at| endings.remove(at)),
        };
        if told.is_some() { Err(Code::SessionClosed) } else { found }
    }

    pub(crate) fn look_up(&self, identity: &Identity, agent: Option<u8>, target: Target) -> Result<Found, Code> {
        let mine = |id: &u32| self.open(*id).is_some_and(|session| session.owner == *identity || *identity == Identity::Operator);
        let held = self.held(identity).filter(|(_, grant)| !self.grants[grant].is_due(self.now)).map(|(id, grant)| (id, Some(grant)));
        let Some(text) = target.text() else {
            return self.own_current(identity, agent).map(|id| (id, None)).or(held).ok_or(Code::SessionRequired);
        };
        if let Target::Capability(grant) = target {
            return self.granted(identity, grant).ok_or(Code::SessionNotFound);
        }
        let is_held = |id: u32| match target {
            Target::Id(wanted) | Target::Uuid(wanted) => wanted == id,
            _ => self.sessions[&id].name == text,
        };
        let named = |ids: Vec<u32>| -> Vec<u32> { ids.into_iter().filter(|id| self.sessions[id].name == text).collect() };
        let found = match (target, identity) {
            (Target::Uuid(id), _) => Some(id).filter(mine),
            (_, Identity::Nobody) => None,
            (Target::Id(id), _) => Some(id).filter(mine),
            _ => match (named(self.owned(identity)).first(), named(self.ids(|_| true)).as_slice()) {
                (Some(own), _) => Some(*own),
                (None, [only]) if *identity == Identity::Operator => Some(*only),
                (None, [_, _, ..]) if *identity == Identity::Operator => return Err(Code::BadArgument),
                _ => None,
            },
        };
        found.map(|id| (id, None)).or(held.filter(|(id, _)| is_held(*id))).ok_or(Code::SessionNotFound)
    }

    fn resolve(&mut self, who: Who, target: Target) -> Result<u32, Code> {
        let identity = self.acting(who.client)?;
        self.find(&identity, who.agent, target).map(|(id, _)| id)
    }

    /// What only an owner or the operator may do.
    fn resolve_own(&mut self, who: Who, target: Target) -> Result<u32, Code> {
        let identity = self.acting(who.client)?;
        match self.find(&identity, who.agent, target)? {
            (id, None) => Ok(id),
            (_, Some(_)) => Err(Code::PolicyDenied),
        }
    }

    fn set_current(&mut self, who: Who, target: Target) -> Answer {
        let Some(_) = target.text() else { return DONE };
        let id = self.resolve(who, target)?;
        let identity = self.clients[&who.client].0.clone();
        if identity == Identity::Nobody || self.sessions[&id].owner != identity {
            return Err(Code::PolicyDenied);
        }
        self.currents.insert((identity, who.agent), id);
        Ok(vec![id.into()])
    }

    // Sessions.

    fn free_name(&self, owner: &Identity, name: &str) -> Result<(), Code> {
        let taken = self.own(owner).iter().any(|id| self.sessions[id].name == name);
        if taken { Err(Code::SessionExists) } else { Ok(()) }
    }

    fn wanted_name(&self, owner: &Identity, number: u8) -> Result<String, Code> {
        if number == 3 {
            return Err(Code::BadArgument);
        }
        self.free_name(owner, name(number)).map(|()| name(number).to_owned())
    }

    fn next_name(&mut self, owner: &Identity, kind: Kind) -> String {
        loop {
            let number = self.numbers.entry((owner.clone(), kind)).or_insert(0);
            *number += 1;
            let name = format!("{}-{number}", kind.name());
            if self.free_name(owner, &name).is_ok() {
                return name;
            }
        }
    }

    fn reserve(&mut self, who: Who, wanted: Option<u8>, kind: Kind, seat: Seat) -> Answer {
        let owner = self.acting(who.client)?;
        if matches!(owner, Identity::Grant(_)) {
            return Err(Code::PolicyDenied);
        }
        let wanted = wanted.map(|number| self.wanted_name(&owner, number)).transpose()?;
        let clones = self.ids(|session| session.seat == Seat::Clone).len();
        let full = self.ids(|_| true).len() >= self.rules.max_sessions as usize;
        if full || seat == Seat::Clone && clones >= self.rules.max_clones as usize {
            return Err(Code::Capacity);
        }
        let name = wanted.unwrap_or_else(|| self.next_name(&owner, kind));
        let id = self.next_session;
        self.next_session += 1;
        let session = Session {
            name,
            kind,
            owner,
            seat,
            phase: Phase::Reserved,
            epoch: 1,
            tabs: BTreeMap::new(),
            current_tab: None,
            works_in: None,
            next_tab: 1,
            last_used: self.now,
            orphan_until: None,
            viewers: 0,
            former: vec![],
            lost: false,
        };
        self.sessions.insert(id, session);
        Ok(vec![id.into()])
    }

    fn set_phase(&mut self, id: u32, phase: Phase) -> Answer {
        let session = self.open_mut(id).ok_or(Code::SessionClosed)?;
        (session.phase, session.lost) = (phase, session.lost && phase != Phase::Open);
        DONE
    }

    fn rename(&mut self, who: Who, target: Target, number: u8) -> Answer {
        let Some(_) = target.text() else { return DONE };
        let id = self.resolve_own(who, target)?;
        if self.sessions[&id].name != name(number) {
            let renamed = self.wanted_name(&self.sessions[&id].owner, number)?;
            self.sessions.get_mut(&id).expect("it was found").name = renamed;
        }
        Ok(vec![id.into()])
    }

    fn hand_over(&mut self, id: u32, to: &Identity) -> Answer {
        let Some(session) = self.open(id) else { return DONE };
        let (kind, former) = (session.kind, session.owner.clone());
        let mut name = session.name.clone();
        if former != *to {
            self.currents.retain(|_, current| *current != id);
            self.end_grants(|grant| grant.session == id);
            if self.free_name(to, &name).is_err() {
                name = self.next_name(to, kind);
            }
        }
        let now = self.now;
        let session = self.open_mut(id).expect("it is open");
        (session.owner, session.name, session.last_used, session.orphan_until) = (to.clone(), name, now, None);
        session.epoch += 1;
        session.works_in = session.current_tab;
        session.former.retain(|(who, _)| who != to);
        DONE
    }

    fn detach_all(&mut self, who: Who) -> Answer {
        let identity = self.somebody(who)?;
        let mut given = if identity == Identity::Operator { vec![] } else { self.owned(&identity) };
        // By name, because names that are taken are given in that order.
        given.sort_by_key(|id| self.sessions[id].name.clone());
        for id in &given {
            self.hand_over(*id, &Identity::Operator)?;
        }
        Ok(sorted(&given))
    }

    fn close(&mut self, who: Who, target: Target) -> Answer {
        let id = self.resolve_own(who, target)?;
        let own = self.sessions[&id].owner == self.clients[&who.client].0;
        self.end_all(&[id], if own { Ended::Asked } else { Ended::ByOperator })
    }

    fn end_all(&mut self, ids: &[u32], why: Ended) -> Answer {
        for id in ids {
            let Some(session) = self.sessions.get_mut(id).filter(|session| session.phase != Phase::Closing) else { continue };
            let away = session.orphan_until.is_some();
            let told = matches!(why, Ended::Idle | Ended::ByOperator) || why == Ended::Lost && away;
            if told && session.owner != Identity::Nobody {
                let endings = self.endings.entry(session.owner.clone()).or_default();
                endings.push((*id, session.name.clone(), away));
                endings.drain(..endings.len().saturating_sub(8));
            }
            session.phase = Phase::Closing;
            session.orphan_until = None;
            self.effects.insert(format!("close {id} {why:?}"));
            self.forget(*id, Code::SessionClosed);
            self.end_grants(|grant| grant.session == *id);
        }
        Ok(sorted(ids))
    }

    /// Ends the calls of a session, and nobody has it as current.
    fn forget(&mut self, id: u32, code: Code) {
        for call in self.calls.iter().filter(|(_, call)| call.session == id).map(|(number, _)| *number).collect::<Vec<_>>() {
            self.end_call(call, code);
        }
        self.currents.retain(|_, current| *current != id);
    }

    fn open_failed(&mut self, id: u32) -> Answer {
        self.forget(id, Code::BrowserNotFound);
        self.end_grants(|grant| grant.session == id);
        self.sessions.remove(&id);
        DONE
    }

    fn closed(&mut self, id: u32) -> Answer {
        if self.open(id).is_none() {
            self.sessions.remove(&id);
        }
        DONE
    }

    // Time.

    fn pass(&mut self, ms: u64) -> Answer {
        self.now += ms;
        DONE
    }

    /// When a session ends by itself, and why.
    pub(crate) fn due(&self, id: u32) -> Option<(u64, Ended)> {
        let session = self.open(id)?;
        let busy = session.viewers > 0 || self.calls.values().any(|call| call.session == id);
        let idle = self.rules.session_idle_ms.filter(|_| !busy).map(|idle| (session.last_used + idle, Ended::Idle));
        let lost = session.orphan_until.map(|until| (until, Ended::Lost));
        lost.into_iter().chain(idle).min_by_key(|(at, _)| *at)
    }

    fn tick(&mut self, ms: u64) -> Answer {
        self.now += ms;
        for id in self.ids(|_| true) {
            if let Some((_, why)) = self.due(id).filter(|(at, _)| *at <= self.now) {
                self.end_all(&[id], why)?;
            }
        }
        let now = self.now;
        self.end_grants(|grant| grant.is_due(now));
        let limit = self.rules.exit_when_empty_ms.expect("the histories' clocks are on");
        if self.empty_since.is_some_and(|since| since + limit <= self.now) && !self.exiting {
            self.exiting = true;
            self.effects.insert("exit".to_owned());
        }
        DONE
    }

    fn restart(&mut self) -> Answer {
        let former = std::mem::replace(self, Self::new(self.rules));
        (self.now, self.next_session, self.next_tab_number) = (former.now, former.next_session, former.next_tab_number);
        self.empty_since = Some(self.now);
        (self.sessions, self.currents) = (former.sessions, former.currents);
        (self.grants, self.next_grant) = (former.grants, former.next_grant);
        for id in self.sessions.keys().copied().collect::<Vec<_>>() {
            let session = self.sessions.get_mut(&id).expect("it is a key");
            (session.last_used, session.orphan_until, session.viewers) = (self.now, None, 0);
            session.works_in = session.current_tab;
            let lost = matches!(session.owner, Identity::Secret(_)) && self.rules.on_lost != OnLost::Keep;
            if session.phase == Phase::Opening && session.lost {
                session.phase = Phase::Reserved;
            }
            let unbegun = session.seat == Seat::Clone && session.next_tab == 1 && !session.lost;
            match session.phase {
                Phase::Reserved if unbegun => _ = self.end_all(&[id], Ended::Undone),
                Phase::Opening => _ = self.end_all(&[id], Ended::Undone),
                Phase::Closing => _ = self.effects.insert(format!("close {id} {:?}", Ended::Undone)),
                Phase::Reserved | Phase::Open if lost => self.orphan(id),
                Phase::Reserved | Phase::Open => {}
            }
        }
        let now = self.now;
        self.end_grants(|grant| grant.is_due(now));
        DONE
    }
}

fn sorted(ids: &[u32]) -> Vec<u64> {
    let mut ids: Vec<u64> = ids.iter().map(|id| u64::from(*id)).collect();
    ids.sort_unstable();
    ids
}
