//! Sessions: reserved before anything is made, committed after, undone when it failed; renamed, handed over, closed.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::find::{Standing, UUID_ONLY};
use super::{Effect, Ended, Minted, Persist, Registry};
use crate::session::Live;
use crate::{
    Caller, Code, Epoch, Fault, Identity, Kind, Loss, Millis, Party, Phase, Seat, Session, SessionId, Uuid, WindowScope, ways_out,
};

/// How many agents of one identity may have a current session of their own.
pub(super) const MAX_AGENTS: usize = 256;

/// What a new session is to be.
#[derive(Clone, Copy, Debug)]
pub struct Open<'a> {
    pub name: Option<&'a str>,
    pub kind: Kind,
    pub seat: Seat,
    pub source: Option<&'a str>,
    pub isolation: &'a str,
    pub created_unix_ms: i64,
}

/// A reserved seat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    pub session: SessionId,
    /// Names it also when its name is another's by then.
    pub uuid: Uuid,
    /// Said when the soft limit is reached (S0.19), or when the caller had a session of this name that ended without its doing.
    pub warning: Option<String>,
}

/// A session in a listing.
#[derive(Clone, Copy, Debug)]
pub struct Listed<'a> {
    pub session: &'a Session,
    pub orphaned: bool,
    /// When its last call came or ended (S1.25).
    pub last_used: Millis,
}

impl<'a> Listed<'a> {
    fn of((session, live): (&'a Session, &Live)) -> Self {
        Self { session, orphaned: live.orphan.is_some(), last_used: live.last_used }
    }
}

impl Registry {
    /// Reserves a name and a seat (C4, C5). Nothing was made yet; `open_failed` gives both back.
    pub fn reserve(&mut self, caller: Caller<'_>, open: Open<'_>, mut mint: impl FnMut() -> Minted, now: Millis) -> Result<Opened, Fault> {
        let owner = self.acting(caller.client, now)?;
        if let Identity::Grant(_) = owner {
            let message = "A capability is for the session it was given for, and makes no others.";
            return Err(Fault::new(Code::PolicyDenied, message, "Unset TABMUX_TOKEN, or use a token of `tabmux token new NAME`."));
        }
        let wanted = open.name.map(|name| self.free_name(&owner, name)).transpose()?;
        let warning = self.seat(&owner, open.seat)?;
        let name = wanted.unwrap_or_else(|| self.next_name(&owner, open.kind));
        let warning = self.ending_of(&owner, &name).into_iter().chain(warning).reduce(|ended, warning| format!("{ended} {warning}"));
        let mut minted = mint();
        while self.sessions.contains_key(&minted.id) || self.uuids.contains_key(&minted.uuid) {
            minted = mint();
        }
        let session = Session {
            id: minted.id,
            uuid: minted.uuid,
            name,
            kind: open.kind,
            owner,
            seat: open.seat,
            source: open.source.map(str::to_owned),
            phase: Phase::Reserved,
            isolation: open.isolation.to_owned(),
            settings: String::new(),
            context: None,
            made: self.next_made,
            created_unix_ms: open.created_unix_ms,
            epoch: Epoch(1),
            tabs: BTreeMap::new(),
            current_tab: None,
            next_tab: 1,
            windows: WindowScope { scoping: self.rules.scoping, ..WindowScope::default() },
            former: Vec::new(),
            loss: Loss::None,
            unfinished: false,
        };
        self.next_made += 1;
        self.sessions.insert(minted.id, (session, Live { last_used: now, ..Live::default() }));
        self.enlist(minted.id);
        self.dirty.insert(minted.id);
        self.note_emptiness(now);
        Ok(Opened { session: minted.id, uuid: minted.uuid, warning })
    }

    /// Notes how the session's context is to be made again.
    pub fn set_settings(&mut self, id: SessionId, settings: &str) {
        let Some((session, _)) = self.live_mut(id) else { return };
        if session.settings != settings {
            session.settings = settings.to_owned();
            self.dirty.insert(id);
        }
    }

    /// It is made for a call that wants more than a seat: a first page, say. Until that is there, nobody has it.
    pub fn set_unfinished(&mut self, id: SessionId) {
        if let Some((session, _)) = self.live_mut(id) {
            session.unfinished = true;
            self.dirty.insert(id);
        }
    }

    /// What it was made for is there, or it stays without. Says whether that is new, and so to be written down.
    pub fn finish_making(&mut self, id: SessionId) -> bool {
        let Some((session, _)) = self.live_mut(id) else { return false };
        let is_new = std::mem::take(&mut session.unfinished);
        if is_new {
            self.dirty.insert(id);
        }
        is_new
    }

    /// The context is about to be made. Written down first, so that a crash undoes it.
    pub fn opening(&mut self, id: SessionId) -> Result<(), Fault> {
        let Some((session, _)) = self.live_mut(id) else { return Err(closed_fault()) };
        session.phase = Phase::Opening;
        self.dirty.insert(id);
        Ok(())
    }

    /// The context is made. Fails when the session was closed meanwhile: the context must then go again (S3.23).
    pub fn opened(&mut self, id: SessionId, context: Arc<str>) -> Result<(), Fault> {
        let Some((session, _)) = self.live_mut(id) else { return Err(closed_fault()) };
        session.phase = Phase::Open;
        // Somebody else's call may have opened it, before the owner was told what it lost.
        if session.loss == Loss::Told {
            session.loss = Loss::None;
        }
        session.context = Some(context);
        self.dirty.insert(id);
        Ok(())
    }

    /// The context could not be made: the seat is free again and nothing is left (S3.25).
    pub fn open_failed(&mut self, id: SessionId, fault: &Fault, now: Millis) {
        self.end_calls(id, fault);
        self.remove(id, now);
    }

    /// A caller closes a session of its own; the operator anybody's.
    pub fn close(&mut self, caller: Caller<'_>, target: Option<&str>, now: Millis) -> Result<SessionId, Fault> {
        let (id, standing) = self.find_own(caller, target, now)?;
        let why = if standing == Standing::Owner { Ended::Asked } else { Ended::ByOperator };
        self.end_session(id, why);
        Ok(id)
    }

    /// A caller closes all of its own sessions (S0.7).
    pub fn close_all(&mut self, caller: Caller<'_>, now: Millis) -> Result<Vec<SessionId>, Fault> {
        let identity = self.acting(caller.client, now)?;
        refuse_nobody(&identity)?;
        let owned = self.owned_by(&identity);
        for id in &owned {
            self.end_session(*id, Ended::Asked);
        }
        Ok(owned)
    }

    /// A caller gives its sessions to the operator; they stay registered (S0.8).
    pub fn detach_all(&mut self, caller: Caller<'_>, now: Millis) -> Result<Vec<SessionId>, Fault> {
        let identity = self.acting(caller.client, now)?;
        refuse_nobody(&identity)?;
        let owned = if identity == Identity::Operator { Vec::new() } else { self.owned_by(&identity) };
        for id in &owned {
            self.hand_over(*id, &Identity::Operator, now);
        }
        Ok(owned)
    }

    /// The session changes hands: what its former driver still has queued answers `stale_epoch`.
    pub fn hand_over(&mut self, id: SessionId, to: &Identity, now: Millis) {
        let Some((session, _)) = self.live(id) else { return };
        let (former, name, kind) = (session.owner.clone(), session.name.clone(), session.kind);
        self.unlist(id);
        if former != *to {
            self.drop_currents(id);
            self.end_grants_of(id);
        }
        let name = self.free_name(to, &name).unwrap_or_else(|_| self.next_name(to, kind));
        if let Some((session, live)) = self.live_mut(id) {
            session.owner = to.clone();
            session.former.retain(|(who, _)| who != to);
            session.name = name;
            session.epoch.0 += 1;
            live.orphan = None;
            live.last_used = now;
            // It is told what it has.
            live.works_in.remove(&Party::Owner);
            live.works_in.extend(session.current_tab.map(|tab| (Party::Owner, tab)));
        }
        self.enlist(id);
        self.forget_unused(&former);
        self.dirty.insert(id);
    }

    /// Gives a session another name (C5).
    pub fn rename(&mut self, caller: Caller<'_>, target: &str, name: &str, now: Millis) -> Result<SessionId, Fault> {
        let (id, _) = self.find_own(caller, Some(target), now)?;
        let (session, _) = self.live(id).ok_or_else(closed_fault)?;
        if session.name == name {
            return Ok(id);
        }
        let owner = session.owner.clone();
        let name = self.free_name(&owner, name)?;
        self.unlist(id);
        if let Some((session, _)) = self.live_mut(id) {
            session.name = name;
        }
        self.enlist(id);
        self.dirty.insert(id);
        Ok(id)
    }

    /// Makes a session the caller's default (S0.13).
    pub fn set_current(&mut self, caller: Caller<'_>, target: &str, now: Millis) -> Result<SessionId, Fault> {
        let owner = self.acting(caller.client, now)?;
        let id = self.find(&owner, caller.agent, Some(target), now)?.session;
        refuse_nobody(&owner)?;
        if self.live(id).is_none_or(|(session, _)| session.owner != owner) {
            let hint = "Pass sessionId on each call instead.";
            return Err(Fault::new(Code::PolicyDenied, "Only a session of your own can be your current one.", hint));
        }
        let agent: Option<Arc<str>> = caller.agent.map(Into::into);
        let agents = self.currents.entry(owner.clone()).or_default();
        agents.retain(|(of, _)| *of != agent);
        if agents.len() >= MAX_AGENTS {
            let (oldest, _) = agents.remove(0);
            self.persists.push(Persist::Current { owner: owner.clone(), agent: oldest, session: None });
        }
        agents.push((agent.clone(), id));
        self.persists.push(Persist::Current { owner, agent, session: Some(id) });
        Ok(id)
    }

    /// The caller's own sessions, and the one that is shared with it, in the order of their making (C9).
    pub fn list(&self, caller: Caller<'_>) -> Vec<Listed<'_>> {
        match self.identity(caller.client) {
            None | Some(Identity::Nobody) => Vec::new(),
            Some(identity) => {
                let held = self.held(identity, None).map(|(id, _)| id);
                self.listed(|session| session.owner == *identity || Some(session.id) == held)
            }
        }
    }

    /// Everybody's sessions; the door lets only the operator ask (C9).
    pub fn list_all(&self) -> Vec<Listed<'_>> {
        self.listed(|_| true)
    }

    /// Whoever reserved this is gone. If nothing was begun with it, nobody comes for it any more.
    pub fn give_up_reservation(&mut self, id: SessionId) {
        if self.live(id).is_some_and(|(session, live)| session.is_reservation() && !live.busy()) {
            self.end_session(id, Ended::Lost);
        }
    }

    /// One session as a listing shows it, whatever its phase.
    pub fn listing(&self, id: SessionId) -> Option<Listed<'_>> {
        self.sessions.get(&id).map(|(session, live)| Listed::of((session, live)))
    }

    fn listed(&self, keep: impl Fn(&Session) -> bool) -> Vec<Listed<'_>> {
        let mut listed: Vec<Listed<'_>> = self.open_sessions().filter(|(session, _)| keep(session)).map(Listed::of).collect();
        listed.sort_by_key(|listed| listed.session.made);
        listed
    }

    /// What the driver held for this session is gone (after `Effect::Close`).
    pub fn closed(&mut self, id: SessionId, now: Millis) {
        if self.sessions.get(&id).is_some_and(|(session, _)| session.phase == Phase::Closing) {
            self.remove(id, now);
        }
    }

    /// `stop`: every session ends for good.
    pub fn close_everything(&mut self) {
        let open: Vec<SessionId> = self.open_sessions().map(|(session, _)| session.id).collect();
        for id in open {
            self.end_session(id, Ended::Asked);
        }
    }

    /// This identity is no more: its sessions end, and whoever still acts as it may not go on.
    pub fn banish(&mut self, identity: &Identity, now: Millis) {
        self.end_all_of(identity, Ended::Goodbye);
        self.end_grants_where(|grant| grant.giver == *identity);
        self.clients.retain(|_, client| client.identity != *identity);
        self.holders.remove(identity);
        self.forget_unused(identity);
        self.note_emptiness(now);
    }

    /// The driver lost what it held for this session, or the session cannot go on.
    pub fn lost(&mut self, id: SessionId) {
        self.end_session(id, Ended::Undone);
    }

    /// The session's browser is gone, and with it everything the session had in it. Its calls are told why; the session
    /// stays under its name and starts afresh.
    pub fn browser_lost(&mut self, id: SessionId, why: &Fault) {
        if self.live(id).is_some() {
            self.end_calls(id, why);
            self.forget_browser(id);
        }
    }

    /// The same before anybody is told. Tab ids go on: an old one must not mean a new tab.
    pub fn forget_browser(&mut self, id: SessionId) {
        let Some((session, live)) = self.live_mut(id) else { return };
        live.chosen.clear();
        live.works_in.clear();
        session.phase = Phase::Reserved;
        session.loss = Loss::Told;
        session.context = None;
        session.current_tab = None;
        session.windows = WindowScope { scoping: session.windows.scoping, ..WindowScope::default() };
        let tabs = std::mem::take(&mut session.tabs);
        for tab in tabs.values() {
            self.tab_numbers.remove(&tab.number);
        }
        self.dirty.insert(id);
    }

    /// Who is to be told of it, by this daemon or the next.
    pub fn set_loss(&mut self, id: SessionId, loss: Loss) {
        let Some((session, _)) = self.live_mut(id) else { return };
        session.loss = loss;
        self.dirty.insert(id);
    }

    /// The session cannot go on now, but may later: its calls are told why, and nothing else changes.
    pub fn put_off(&mut self, id: SessionId, why: &Fault) {
        self.end_calls(id, why);
    }

    /// Takes a session back that a failed call made, unless something is or waits in it already (S3.25).
    pub fn undo_unused(&mut self, id: SessionId) {
        if self.live(id).is_some_and(|(session, live)| session.tabs.is_empty() && !live.busy()) {
            self.end_session(id, Ended::Undone);
        } else {
            self.finish_making(id);
        }
    }

    pub(super) fn end_all_of(&mut self, identity: &Identity, why: Ended) {
        for id in self.owned_by(identity) {
            self.end_session(id, why);
        }
    }

    pub(super) fn end_session(&mut self, id: SessionId, why: Ended) {
        if self.live(id).is_none() {
            return;
        }
        self.note_ending(id, why);
        self.unlist(id);
        let Some((session, live)) = self.live_mut(id) else { return };
        let owner = session.owner.clone();
        session.phase = Phase::Closing;
        live.orphan = None;
        self.dirty.insert(id);
        self.end_calls(id, &closed_fault());
        self.end_grants_of(id);
        self.drop_currents(id);
        self.forget_unused(&owner);
        self.effects.push(Effect::Close { session: id, why });
    }

    fn remove(&mut self, id: SessionId, now: Millis) {
        if self.live(id).is_some() {
            self.unlist(id);
        }
        let Some((session, _)) = self.sessions.remove(&id) else { return };
        self.end_grants_of(id);
        self.dirty.insert(id);
        self.drop_currents(id);
        self.forget_unused(&session.owner);
        self.note_emptiness(now);
    }

    fn drop_currents(&mut self, id: SessionId) {
        for (owner, agents) in &mut self.currents {
            for (agent, _) in agents.extract_if(.., |(_, session)| *session == id) {
                self.persists.push(Persist::Current { owner: owner.clone(), agent, session: None });
            }
        }
    }

    /// Checks a wanted name: well formed, no id of another kind, free among its owner's sessions (S0.18).
    fn free_name(&self, owner: &Identity, name: &str) -> Result<String, Fault> {
        check_name(name)?;
        let taken = self.owned.get(owner).is_some_and(|handles| handles.contains_key(name));
        if taken {
            let message = format!("Session '{name}' already exists.");
            return Err(Fault::new(Code::SessionExists, message, ways_out::OTHER_NAME));
        }
        Ok(name.to_owned())
    }

    /// `{type}-{n}`, counted per owner and type, skipping taken names (S0.10, S0.11).
    fn next_name(&mut self, owner: &Identity, kind: Kind) -> String {
        loop {
            let number = self.numbers.entry((owner.clone(), kind)).or_insert(0);
            *number += 1;
            let name = format!("{}-{number}", kind.name());
            if let Ok(name) = self.free_name(owner, &name) {
                return name;
            }
        }
    }

    /// Takes a seat, or says what is full; clones in the making count (C4, S3.20).
    fn seat(&self, owner: &Identity, seat: Seat) -> Result<Option<String>, Fault> {
        let sessions = self.open_sessions().count();
        let clones = self.open_sessions().filter(|(session, _)| session.seat == Seat::Clone).count();
        // Those that nobody who reads this can close.
        let orphans = self.open_sessions().filter(|(session, live)| live.orphan.is_some() && session.seat >= seat).count();
        let hint = match orphans {
            0 => "Close a session, or raise the limit in the configuration.".to_owned(),
            _ => format!(
                "Close a session, or try again later: clients that were lost may still come back to {orphans} of them. Or raise the limit."
            ),
        };
        if self.rules.max_sessions > 0 && sessions >= self.rules.max_sessions as usize {
            let message = format!("All {} sessions are in use (limits.max_sessions).", self.rules.max_sessions);
            return Err(Fault::new(Code::Capacity, message, hint));
        }
        if seat == Seat::Clone && clones >= self.rules.max_clones as usize {
            let message = format!("All {} cloned sessions are in use (limits.max_clones).", self.rules.max_clones);
            return Err(Fault::new(Code::Capacity, message, hint));
        }
        // Of its own only: how many others have is nobody's business (C9).
        let own = self.owned.get(owner).map_or(0, BTreeMap::len) + 1;
        let warn = self.rules.warn_sessions > 0 && own >= self.rules.warn_sessions as usize;
        Ok(warn.then(|| format!("{own} sessions of yours are open now; close those you no longer need.")))
    }
}

/// What a session may be called: something a person can type and read, and nothing that reads as an id or as part
/// of an address (`session:tab`, `/mcp/NAME`).
pub fn check_name(name: &str) -> Result<(), Fault> {
    let wrong = if name.is_empty() {
        "it is empty"
    } else if name.chars().count() > 128 {
        "it is longer than 128 characters"
    } else if name.chars().any(is_invisible) || name.trim() != name {
        "it has control or invisible characters, or spaces at its ends"
    } else if name.contains(['/', ':']) {
        "it has a / or a :"
    } else if name.parse::<SessionId>().is_ok() || name.parse::<crate::Uuid>().is_ok() {
        "it reads as a session id"
    } else if name.starts_with(crate::CAPABILITY) {
        "it reads as a capability"
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
    let message = format!("'{shown}' cannot be a session name: {wrong}.");
    Err(Fault::new(Code::BadArgument, message, "Choose a short name such as 'web' or 'user-a'."))
}

/// Characters that change how a text reads without being seen: controls, zero-width ones, bidi controls.
fn is_invisible(c: char) -> bool {
    c.is_control() || matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Callers without an identity share one, so nothing is "theirs" (C11).
fn refuse_nobody(identity: &Identity) -> Result<(), Fault> {
    match identity {
        Identity::Nobody => Err(Fault::new(Code::PolicyDenied, "A caller without an identity has no sessions of its own.", UUID_ONLY)),
        _ => Ok(()),
    }
}

pub(super) fn closed_fault() -> Fault {
    Fault::new(Code::SessionClosed, "The session was closed.", ways_out::NEW_SESSION)
}
