//! Grants: made, narrowed, listed, revoked, used up, expired (by the same clock as sessions), ended with their session or with
//! the grant they came from. What a holder may do is decided in `admit` like everything else; a grant that is not there any
//! more, or never was, answers exactly like a missing session.

use std::collections::HashSet;
use std::sync::Arc;

use super::find::Standing;
use super::{Effect, Persist, Registry};
use crate::{
    CallId, Caller, ClientId, Code, Deed, Fault, Grant, GrantId, GrantKey, Identity, Millis, Right, SessionId, Share, Touch, Uses,
};

/// Of one session at once.
const MAX_GRANTS: usize = 100;

/// Grants that are remembered after their end, so that trying them again is noticed.
pub(super) const MAX_ENDED: usize = 256;

/// Former drivers a session remembers.
pub(super) const MAX_FORMER: usize = 8;

/// A grant and when it ends.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) grant: Arc<Grant>,
    pub(super) until: Option<Millis>,
}

/// A grant in an answer or a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shared {
    pub grant: Arc<Grant>,
    /// `None`: as long as its session.
    pub left_ms: Option<u64>,
}

/// Which grants to revoke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Revoke<'a> {
    All,
    /// By its id, or by the capability itself.
    One(&'a str),
}

impl Given {
    fn is_due(&self, now: Millis) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    fn shared(&self, now: Millis) -> Shared {
        Shared { grant: Arc::clone(&self.grant), left_ms: self.until.map(|until| until.since(now)) }
    }
}

impl Registry {
    /// Gives somebody a right to a session of the caller's, or a part of the right the caller was given itself. `mint` gives the
    /// hashes of fresh capabilities.
    pub fn share(
        &mut self,
        caller: Caller<'_>,
        target: Option<&str>,
        share: Share,
        mut mint: impl FnMut() -> GrantKey,
        now: Millis,
    ) -> Result<Shared, Fault> {
        let identity = self.acting(caller.client, now)?;
        let found = self.find(&identity, caller.agent, target, now)?;
        if share.right == Right::HandOver && (share.tools.is_some() || !share.domains.is_empty()) {
            let message = "A session is handed over whole, without limits on tools or domains.";
            return Err(Fault::new(Code::BadArgument, message, "Leave tools and domains out, or use the mode act."));
        }
        let parent = match found.standing {
            Standing::Holder(key) => Some(self.narrowed(key, &share, now)?),
            Standing::Owner | Standing::Operator => None,
        };
        if self.grants.values().filter(|given| given.grant.session == found.session).count() >= MAX_GRANTS {
            let message = format!("The session has {MAX_GRANTS} grants, and no more are given.");
            return Err(Fault::new(Code::Capacity, message, "Revoke some that are no longer needed."));
        }
        let mut key = mint();
        while self.grants.keys().any(|known| known.id() == key.id()) {
            key = mint();
        }
        let inherited = parent.as_ref().map(|given| &given.grant);
        let own = (!share.domains.is_empty()).then_some(share.domains);
        let grant = Grant {
            key,
            session: found.session,
            giver: identity,
            parent: inherited.map(|grant| grant.key),
            right: share.right,
            tools: share.tools.or_else(|| inherited.and_then(|grant| grant.tools.clone())),
            domains: inherited.map(|grant| grant.domains.clone()).unwrap_or_default().into_iter().chain(own).collect(),
            uses: share.uses,
            taken_by: None,
            created_unix_ms: share.created_unix_ms,
        };
        let until = share.ttl_ms.map(|ttl| now.plus(ttl)).into_iter().chain(parent.and_then(|given| given.until)).min();
        Ok(self.give(Given { grant: Arc::new(grant), until }, now))
    }

    /// The grant a narrower one is to be made from.
    fn narrowed(&self, key: GrantKey, share: &Share, now: Millis) -> Result<Given, Fault> {
        let given = self.alive(key, now).cloned().ok_or_else(|| super::find::not_found(&Identity::Grant(key), crate::CAPABILITY))?;
        let grant = &given.grant;
        let wider = share.tools.iter().flatten().find(|tool| grant.tools.as_ref().is_some_and(|tools| !tools.contains(*tool)));
        let message = match (share.right, wider) {
            (Right::HandOver, _) => "Only its owner hands a session over.".to_owned(),
            (right, _) if right > grant.right => {
                format!("The grant is for mode {}, and none that goes further comes from it.", grant.right.name())
            }
            (_, Some(tool)) => format!("The grant is not for {tool}, and none that is comes from it."),
            _ if grant.uses == Uses::Once => "A grant for one call cannot be passed on as another.".to_owned(),
            _ => return Ok(given),
        };
        Err(Fault::new(Code::PolicyDenied, message, "Ask for less, or ask whoever gave you the session."))
    }

    fn give(&mut self, given: Given, now: Millis) -> Shared {
        let shared = given.shared(now);
        self.persists.push(Persist::Grant(shared.clone()));
        self.grants.insert(given.grant.key, given);
        shared
    }

    /// The grants the caller may revoke, oldest first: those it gave, those of its sessions, those that come from one it holds;
    /// the operator all. With a target only those of that session.
    pub fn shares(&mut self, caller: Caller<'_>, target: Option<&str>, now: Millis) -> Result<Vec<Shared>, Fault> {
        let identity = self.acting(caller.client, now)?;
        let within = target.map(|text| self.find(&identity, caller.agent, Some(text), now)).transpose()?;
        let (session, standing) = within.map(|found| (found.session, found.standing)).unzip();
        let held = match (standing, &identity) {
            (Some(Standing::Holder(key)), _) => Some(key),
            (None, Identity::Grant(key)) => Some(*key),
            _ => None,
        };
        let owns_it = matches!(standing, Some(Standing::Owner | Standing::Operator));
        let sees = |grant: &Grant| {
            let gave = identity != Identity::Nobody && (grant.giver == identity || self.is_owner(grant.session, &identity));
            identity == Identity::Operator || owns_it || gave || held.is_some_and(|key| self.comes_from(grant, key))
        };
        let listed = self.grants.values().filter(|given| !given.is_due(now) && given.grant.taken_by.is_none());
        let mut listed: Vec<Shared> = listed
            .filter(|given| session.is_none_or(|session| given.grant.session == session) && sees(&given.grant))
            .map(|given| given.shared(now))
            .collect();
        listed.sort_by_key(|shared| (shared.grant.created_unix_ms, shared.grant.key));
        Ok(listed)
    }

    /// Whether a grant was made from this one, at whatever distance.
    fn comes_from(&self, grant: &Grant, ancestor: GrantKey) -> bool {
        let parent = |grant: &Grant| grant.parent.and_then(|key| self.grants.get(&key)).map(|given| &given.grant);
        let mut next = parent(grant);
        while let Some(grant) = next {
            if grant.key == ancestor {
                return true;
            }
            next = parent(grant);
        }
        false
    }

    /// Ends grants, with all that came from them and all calls they are used for. Says which were meant.
    pub fn revoke(&mut self, caller: Caller<'_>, target: Option<&str>, which: Revoke<'_>, now: Millis) -> Result<Vec<Shared>, Fault> {
        let mut meant = self.shares(caller, target, now)?;
        if let Revoke::One(text) = which {
            let id = if text.starts_with(crate::CAPABILITY) { Some((self.rules.digest)(text).id()) } else { text.parse::<GrantId>().ok() };
            meant.retain(|shared| Some(shared.grant.id()) == id);
            if meant.is_empty() {
                return Err(Fault::new(
                    Code::BadArgument,
                    "You gave no such grant, or it is over.",
                    "share_session{list: true} shows yours.",
                ));
            }
        }
        for shared in &meant {
            self.end_grant(shared.grant.key);
        }
        Ok(meant)
    }

    /// Every grant, for a snapshot.
    pub fn grants(&self, now: Millis) -> impl Iterator<Item = Shared> {
        self.grants.values().map(move |given| given.shared(now))
    }

    /// A grant by what is known of its capability, also one that ended lately: to use it then is worth a note.
    pub fn known_grant(&self, key: GrantKey) -> Option<Arc<Grant>> {
        let ended = || self.ended_grants.iter().find(|grant| grant.key == key);
        self.grants.get(&key).map(|given| &given.grant).or_else(ended).cloned()
    }

    /// Whether this client was nobody but the holder of a grant that is over.
    pub fn is_over(&self, client: ClientId) -> bool {
        matches!(self.identity(client), Some(Identity::Grant(key)) if !self.grants.contains_key(key))
    }

    /// The grant by which this client has a session, if it is nobody but the holder of one.
    pub fn held_by(&self, client: ClientId) -> Option<Arc<Grant>> {
        let Some(Identity::Grant(key)) = self.identity(client) else { return None };
        self.grants.get(key).map(|given| &given.grant).filter(|grant| grant.taken_by.is_none()).cloned()
    }

    /// Who somebody is that shows this capability and nothing else.
    pub fn holder(&self, capability: &str, now: Millis) -> Option<Identity> {
        let key = (self.rules.digest)(capability);
        let identity = Identity::Grant(key);
        let given = self.alive(key, now)?;
        given.grant.taken_by.as_ref().is_none_or(|taker| *taker == identity).then_some(identity)
    }

    /// The session that a capability stands for, to be listed, and the grant that shows it. To look at it takes nothing over and uses
    /// nothing up; a grant that is over answers like a missing session.
    pub fn shown_by(&mut self, caller: Caller<'_>, capability: &str, now: Millis) -> Result<(SessionId, Option<Arc<Grant>>), Fault> {
        let identity = self.acting(caller.client, now)?;
        let (id, standing) = self.named(&identity, capability, now)?;
        let grant = match standing {
            Standing::Holder(key) => self.alive(key, now).map(|given| Arc::clone(&given.grant)),
            Standing::Owner | Standing::Operator => None,
        };
        Ok((id, grant))
    }

    /// The grant a call is admitted by, for as long as the call has not ended.
    pub fn grant_of(&self, call: CallId) -> Option<Arc<Grant>> {
        self.calls.get(&call.0).and_then(|call| call.grant.clone())
    }

    pub(super) fn alive(&self, key: GrantKey, now: Millis) -> Option<&Given> {
        self.grants.get(&key).filter(|given| !given.is_due(now))
    }

    /// The session a capability stands for when this identity shows it.
    pub(super) fn granted(&self, identity: &Identity, capability: &str, now: Millis) -> Option<(SessionId, Standing)> {
        let key = (self.rules.digest)(capability);
        let grant = &self.alive(key, now)?.grant;
        match &grant.taken_by {
            None => Some((grant.session, Standing::Holder(key))),
            // Whoever took the session over by it is its owner.
            Some(_) => self.is_owner(grant.session, identity).then_some((grant.session, Standing::Owner)),
        }
    }

    /// The session that a peer holds which is nobody but the holder of a capability. Without a time, whether it is due is not asked.
    pub(super) fn held(&self, identity: &Identity, now: Option<Millis>) -> Option<(SessionId, Standing)> {
        let Identity::Grant(key) = identity else { return None };
        let given = self.grants.get(key).filter(|given| now.is_none_or(|now| !given.is_due(now)))?;
        given.grant.taken_by.is_none().then_some((given.grant.session, Standing::Holder(*key)))
    }

    /// Whether a holder's call may do what it is about to do, and by which grant.
    pub(super) fn permitted(&self, key: GrantKey, deed: Deed<'_>) -> Result<Arc<Grant>, Fault> {
        let grant = Arc::clone(&self.grants.get(&key).expect("find gives grants that are there").grant);
        if grant.allows(deed) {
            return Ok(grant);
        }
        let what = match &grant.tools {
            _ if deed.touch == Touch::Governs => return Err(super::find::owners_alone()),
            Some(tools) if !tools.contains(deed.tool) => format!("is not for {}", deed.tool),
            _ => format!("is only for looking, and {} acts", deed.tool),
        };
        let message = format!("The grant {} {what}.", grant.id());
        Err(Fault::new(Code::PolicyDenied, message, "Ask whoever gave you the session for a grant that goes further."))
    }

    /// A call was admitted by this grant.
    pub(super) fn use_up(&mut self, grant: &Grant) {
        if grant.uses == Uses::Once {
            // The call goes on: it is what the grant was for.
            self.forget_grant(grant.key);
        }
    }

    /// The first use of a hand-over makes the session the user's. Its former driver is remembered, so that it can be told.
    pub(super) fn take_over(&mut self, identity: &Identity, id: SessionId, key: GrantKey, now: Millis) {
        let Some(given) = self.grants.remove(&key) else { return };
        let Some((session, _)) = self.live(id) else { return };
        let (former, name) = ((session.owner.clone(), session.handle()), session.name.clone());
        self.hand_over(id, identity, now);
        if let Some((session, _)) = self.live_mut(id).filter(|_| former.0 != *identity) {
            session.former.truncate(MAX_FORMER - 1);
            session.former.insert(0, former);
            let was = (session.name != name).then_some(name);
            self.effects.push(Effect::TakenOver { session: id, was });
        }
        let taken = Grant { taken_by: Some(identity.clone()), ..(*given.grant).clone() };
        self.give(Given { grant: Arc::new(taken), until: None }, now);
    }

    /// The session this caller drove under that name until another took it over.
    pub(super) fn taken_from(&self, identity: &Identity, target: Option<&str>) -> Option<Fault> {
        // Strangers share one identity: only who knows the uuid may have been that driver.
        let stranger = *identity == Identity::Nobody;
        let (session, name) = self.open_sessions().find_map(|(session, _)| {
            let (_, name) = session.former.iter().find(|(who, _)| who == identity)?;
            let meant = match target {
                Some(text) if stranger => text == name,
                Some(text) => text == name || text.parse() == Ok(session.id) || text.parse() == Ok(session.uuid),
                None => !stranger,
            };
            meant.then_some((session, name))
        })?;
        let message = format!("Session '{name}' was handed over and is driven by another now ({}).", session.epoch);
        Some(Fault::new(Code::StaleEpoch, message, "Make a session of your own with start_browser, or ask its new driver to share it."))
    }

    /// Whoever has a session of this name again is told of that one.
    pub(super) fn forget_taken(&mut self, owner: &Identity, handle: &str) {
        for (id, (session, _)) in &mut self.sessions {
            let before = session.former.len();
            session.former.retain(|(who, name)| who != owner || name != handle);
            if session.former.len() != before {
                self.dirty.insert(*id);
            }
        }
    }

    /// Ends what is overdue.
    pub(super) fn expire_grants(&mut self, now: Millis) {
        let due: Vec<GrantKey> = self.grants.values().filter(|given| given.is_due(now)).map(|given| given.grant.key).collect();
        for key in due {
            self.end_grant(key);
        }
    }

    pub(super) fn end_grants_of(&mut self, id: SessionId) {
        self.end_grants_where(|grant| grant.session == id);
    }

    pub(super) fn end_grants_where(&mut self, ends: impl Fn(&Grant) -> bool) {
        let ending: Vec<GrantKey> = self.grants.values().filter(|given| ends(&given.grant)).map(|given| given.grant.key).collect();
        for key in ending {
            self.end_grant(key);
        }
    }

    /// Ends a grant, all that came from it, and all that is being done by them.
    fn end_grant(&mut self, key: GrantKey) {
        let mut over = HashSet::from([key]);
        let mut ending = vec![key];
        while let Some(key) = ending.pop() {
            self.forget_grant(key);
            let children: Vec<GrantKey> =
                self.grants.values().filter(|given| given.grant.parent == Some(key)).map(|given| given.grant.key).collect();
            over.extend(&children);
            ending.extend(children);
        }
        // One for a single call is used up and gone by now, and yet ends with the one it came from.
        let is_over = |grant: &Arc<Grant>| over.contains(&grant.key) || grant.parent.is_some_and(|parent| over.contains(&parent));
        let used = |call: &super::calls::Call| call.grant.as_ref().is_some_and(is_over);
        let mut calls: Vec<u64> = self.calls.iter().filter(|(_, call)| used(call)).map(|(number, _)| *number).collect();
        calls.sort_unstable();
        for call in calls {
            self.end_call(CallId(call), self.cut_short(CallId(call)));
        }
    }

    /// What is said of a call that its grant did not outlive. One that ran may have done something.
    fn cut_short(&self, number: CallId) -> Fault {
        let Some(call) = self.calls.get(&number.0) else { return super::find::not_found(&Identity::Operator, crate::CAPABILITY) };
        let waits = |live: &crate::session::Live| live.waiting.iter().any(|waiting| waiting.call == number);
        if self.sessions.get(&call.session).is_none_or(|(_, live)| waits(live)) {
            return super::find::not_found(&Identity::Operator, crate::CAPABILITY);
        }
        match call.touch {
            Touch::Looks => {
                let message = "The grant ended while the call ran, and the call with it.";
                Fault::new(Code::Cancelled, message, "Ask whoever gave you the session for another grant.")
            }
            Touch::Acts | Touch::Governs => {
                let message = "The grant ended while the call ran; it may have changed something.";
                Fault::new(Code::OutcomeUnknown, message, "Ask whoever gave you the session what came of it, before it is done again.")
            }
        }
    }

    fn forget_grant(&mut self, key: GrantKey) {
        let Some(given) = self.grants.remove(&key) else { return };
        self.persists.push(Persist::GrantGone(key));
        self.forget_choices(given.grant.session);
        self.ended_grants.truncate(MAX_ENDED - 1);
        self.ended_grants.push_front(given.grant);
    }

    /// Ends one call from outside.
    fn end_call(&mut self, call: CallId, fault: Fault) {
        let Some(ended) = self.calls.remove(&call.0) else { return };
        if let Some((_, live)) = self.sessions.get_mut(&ended.session) {
            live.let_go(call);
        }
        self.forget_choices(ended.session);
        self.effects.push(Effect::EndCall { call, fault });
    }

    /// Begins with the grants a former daemon knew; those without a session or without the grant they came from are over.
    pub(super) fn restore_grants(&mut self, grants: Vec<Shared>, now: Millis) {
        for Shared { grant, left_ms } in grants {
            self.grants.insert(grant.key, Given { grant, until: left_ms.map(|left| now.plus(left)) });
        }
        let lost = |registry: &Self, grant: &Grant| {
            let orphaned = grant.parent.is_some_and(|parent| !registry.grants.contains_key(&parent));
            orphaned || registry.live(grant.session).is_none()
        };
        let over: Vec<GrantKey> = self.grants.values().filter(|given| lost(self, &given.grant)).map(|given| given.grant.key).collect();
        for key in over {
            self.end_grant(key);
        }
        self.expire_grants(now);
    }
}
