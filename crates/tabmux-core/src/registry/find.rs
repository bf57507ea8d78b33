//! Which session a call means (C5, C8, C9, C17). A foreign session answers exactly like a missing one.

use super::Registry;
use crate::{CAPABILITY, Caller, Code, Fault, GrantKey, Identity, Millis, Party, Right, SessionId, Uuid};

/// How many sessions an answer lists.
const NAMES_SHOWN: usize = 20;

/// The way out for callers that cannot be told apart (C11).
pub(super) const UUID_ONLY: &str = "Without an identity only a session's uuid counts: pass the one start_browser gave you as sessionId, \
    or get an identity with `tabmux token new NAME` or the path /mcp/NAME.";

/// Whether the session was named by the caller or picked for it (S0.23).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Picked {
    ByCaller,
    ForCaller,
}

/// By what right a caller has a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    Owner,
    /// The operator, with another's.
    Operator,
    /// By this grant and nothing else.
    Holder(GrantKey),
}

impl Standing {
    pub(super) fn party(self) -> Party {
        match self {
            Self::Owner => Party::Owner,
            Self::Operator => Party::Operator,
            Self::Holder(key) => Party::Holder(key.id()),
        }
    }
}

/// The session a call means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) session: SessionId,
    pub(crate) picked: Picked,
    pub(crate) standing: Standing,
}

impl Registry {
    pub(super) fn find(&mut self, identity: &Identity, agent: Option<&str>, target: Option<&str>, now: Millis) -> Result<Found, Fault> {
        let found = match target {
            Some(text) => self.named(identity, text, now).map(|(id, standing)| (id, Picked::ByCaller, standing)),
            None => self.picked(identity, agent, now).map(|(id, standing)| (id, Picked::ForCaller, standing)),
        };
        match found {
            Ok((session, picked, standing)) => {
                let standing = self.settled(identity, session, standing, now);
                Ok(Found { session, picked, standing })
            }
            Err(fault) if fault.code == Code::SessionNotFound => Err(self.explained(identity, target, fault)),
            Err(fault) if fault.code == Code::SessionRequired && !self.owned.contains_key(identity) => {
                Err(self.explained(identity, target, fault))
            }
            Err(fault) => Err(fault),
        }
    }

    /// Who reaches a session that is to be handed over has it from now on.
    pub(super) fn settled(&mut self, identity: &Identity, session: SessionId, standing: Standing, now: Millis) -> Standing {
        match standing {
            Standing::Holder(key) if self.alive(key, now).is_some_and(|given| given.grant.right == Right::HandOver) => {
                self.take_over(identity, session, key, now);
                Standing::Owner
            }
            other => other,
        }
    }

    /// The session a caller names, by name, id or uuid, or by a capability for it.
    pub(super) fn named(&self, identity: &Identity, text: &str, now: Millis) -> Result<(SessionId, Standing), Fault> {
        let found = if text.starts_with(CAPABILITY) {
            self.granted(identity, text, now)
        } else {
            self.own_or_operators(identity, text)?.or_else(|| self.held(identity, Some(now)).filter(|(id, _)| self.is_called(*id, text)))
        };
        found.ok_or_else(|| not_found(identity, text))
    }

    fn own_or_operators(&self, identity: &Identity, text: &str) -> Result<Option<(SessionId, Standing)>, Fault> {
        let own = self.owned.get(identity).and_then(|handles| handles.get(text)).copied();
        let found = match identity {
            Identity::Nobody => self.by_uuid(text).filter(|id| self.is_owner(*id, identity)),
            Identity::Operator => match own.or_else(|| self.by_id(text)) {
                Some(id) => Some(id),
                None => self.anybodys(text)?,
            },
            _ => own.or_else(|| self.by_id(text).filter(|id| self.is_owner(*id, identity))),
        };
        Ok(found.map(|id| (id, if self.is_owner(id, identity) { Standing::Owner } else { Standing::Operator })))
    }

    fn is_called(&self, id: SessionId, text: &str) -> bool {
        self.by_id(text) == Some(id) || self.live(id).is_some_and(|(session, _)| session.name == text)
    }

    fn by_id(&self, text: &str) -> Option<SessionId> {
        self.by_uuid(text).or_else(|| text.parse().ok().filter(|id| self.live(*id).is_some()))
    }

    fn by_uuid(&self, text: &str) -> Option<SessionId> {
        text.parse::<Uuid>().ok().and_then(|uuid| self.uuids.get(&uuid)).copied()
    }

    pub(super) fn is_owner(&self, id: SessionId, identity: &Identity) -> bool {
        self.live(id).is_some_and(|(session, _)| session.owner == *identity)
    }

    /// The operator may also name anybody's session by its name, where only one has it (C9).
    fn anybodys(&self, name: &str) -> Result<Option<SessionId>, Fault> {
        let matching: Vec<SessionId> =
            self.open_sessions().filter(|(session, _)| session.name == name).map(|(session, _)| session.id).collect();
        match matching.as_slice() {
            [] => Ok(None),
            [only] => Ok(Some(*only)),
            several => {
                let message = format!("{} sessions are named '{name}': {}.", several.len(), shown(several));
                Err(Fault::new(Code::BadArgument, message, "Name one by its id; `tabmux ls --all` says whose each is."))
            }
        }
    }

    fn picked(&self, identity: &Identity, agent: Option<&str>, now: Millis) -> Result<(SessionId, Standing), Fault> {
        if let Some(current) = self.current_of(identity, agent) {
            return Ok((current, Standing::Owner));
        }
        if let Some(held) = self.held(identity, Some(now)) {
            return Ok(held);
        }
        match self.owned.get(identity).filter(|_| *identity != Identity::Nobody) {
            None => Err(Fault::new(Code::SessionRequired, "No session: none active.", none_hint(identity))),
            Some(handles) => {
                let names: Vec<&String> = handles.keys().collect();
                let message = format!("You have {} sessions and none is current: {}.", names.len(), shown(&names));
                let hint = match identity {
                    Identity::Operator => "Name one with -t NAME.",
                    _ => "Pass sessionId, or call set_current_session.",
                };
                Err(Fault::new(Code::SessionRequired, message, hint))
            }
        }
    }

    /// The only session, or the one that was set (contract).
    pub(super) fn current_of(&self, identity: &Identity, agent: Option<&str>) -> Option<SessionId> {
        if *identity == Identity::Nobody {
            return None;
        }
        let set = self.currents.get(identity).and_then(|agents| agents.iter().find(|(of, _)| of.as_deref() == agent)).map(|(_, id)| *id);
        if set.is_some() {
            return set;
        }
        let handles = self.owned.get(identity)?;
        if handles.len() == 1 { handles.values().next().copied() } else { None }
    }

    /// The session a call without a name would go to.
    pub fn current(&self, caller: Caller<'_>) -> Option<SessionId> {
        let identity = self.identity(caller.client)?;
        self.current_of(identity, caller.agent).or_else(|| self.held(identity, None).map(|(id, _)| id))
    }

    /// Whether this identity has the session it names so, as its own or by the grant that it is; a stranger names it by its uuid (C11).
    pub fn has(&self, identity: &Identity, text: &str) -> bool {
        let owns = self.own_or_operators(identity, text).is_ok_and(|found| found.is_some_and(|(_, standing)| standing == Standing::Owner));
        owns || self.held(identity, None).is_some_and(|(id, _)| self.is_called(id, text))
    }

    /// Whether a call without a name has no session to go to, so that one may be made (C8). For a capability none is made.
    pub fn owns_none(&self, caller: Caller<'_>) -> bool {
        self.identity(caller.client).is_some_and(|identity| match identity {
            Identity::Nobody => true,
            Identity::Grant(_) => false,
            _ => !self.owned.contains_key(identity),
        })
    }

    /// The session this caller means, without beginning a call. Only an owner or the operator is told: with what comes of it (a copy
    /// of its logins, say) everything could be done, whatever a grant says.
    pub fn resolve(&mut self, caller: Caller<'_>, target: Option<&str>, now: Millis) -> Result<SessionId, Fault> {
        self.find_own(caller, target, now).map(|(id, _)| id)
    }

    /// The same, and by what right.
    pub(super) fn find_own(&mut self, caller: Caller<'_>, target: Option<&str>, now: Millis) -> Result<(SessionId, Standing), Fault> {
        let identity = self.acting(caller.client, now)?;
        let found = self.find(&identity, caller.agent, target, now)?;
        match found.standing {
            Standing::Owner | Standing::Operator => Ok((found.session, found.standing)),
            Standing::Holder(_) => Err(owners_alone()),
        }
    }
}

fn shown(sessions: &[impl ToString]) -> String {
    let shown = sessions.iter().take(NAMES_SHOWN).map(ToString::to_string);
    let more = (sessions.len() > NAMES_SHOWN).then(|| "…".to_owned());
    shown.chain(more).collect::<Vec<_>>().join(", ")
}

fn none_hint(identity: &Identity) -> &'static str {
    match identity {
        Identity::Nobody => UUID_ONLY,
        Identity::Grant(_) => "What was shared with you is over; ask for another capability.",
        Identity::Operator => "Make one with `tabmux new`, or `tabmux open URL`.",
        _ => "Call start_browser or navigate to make one.",
    }
}

/// To close, rename, move, bring back, copy or hand over a session is its owner's, and the operator's; a holder may at most pass on a
/// part of what it has.
pub(super) fn owners_alone() -> Fault {
    let message = "A session that was shared with you stays its owner's: a grant is for its pages.";
    Fault::new(Code::PolicyDenied, message, "Ask its owner, or leave it as it is.")
}

pub(super) fn not_found(identity: &Identity, text: &str) -> Fault {
    // A capability is never shown again, whether it is one or not.
    let shown: String = match text.starts_with(CAPABILITY) {
        true => format!("{CAPABILITY}…"),
        false => text.chars().take(128).flat_map(char::escape_default).collect(),
    };
    let hint = match identity {
        // A list would be empty for it.
        Identity::Nobody => UUID_ONLY,
        Identity::Operator => "`tabmux ls` lists them, `tabmux new -s NAME` makes one.",
        _ => "Call list_sessions to see yours, or start_browser to make one.",
    };
    Fault::new(Code::SessionNotFound, format!("No session: {shown}."), hint)
}
