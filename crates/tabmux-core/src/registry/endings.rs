//! Sessions that ended without their owner's doing. Its next call that relied on one is told so, once; after that
//! the session is like one that never was. To anybody else it always is. What ended while its owner was away is kept until that
//! one comes back, within bounds. Nothing of this outlasts the daemon.

use super::{Ended, Registry};
use crate::{Code, Fault, Identity, SessionId, Uuid, ways_out};

/// Kept per owner; the oldest goes first.
pub(super) const MAX_ENDINGS: usize = 8;

/// Owners for whom something is kept though none of them is here; who left first goes first.
pub(super) const MAX_AWAY: usize = 256;

#[derive(Debug)]
pub(super) struct Ending {
    id: SessionId,
    uuid: Uuid,
    pub(super) name: String,
    how: String,
    /// Its owner was away, and could not be told.
    pub(super) unseen: bool,
}

impl Ending {
    fn said(&self) -> String {
        format!("Session '{}' {}.", self.name, self.how)
    }

    fn is_of(&self, text: &str) -> bool {
        self.name == text || text.parse() == Ok(self.id) || text.parse() == Ok(self.uuid)
    }
}

impl Registry {
    /// Notes the end of a session for its owner. Strangers are told apart by nothing, so nothing is kept for them.
    pub(super) fn note_ending(&mut self, id: SessionId, why: Ended) {
        let unseen = self.live(id).is_some_and(|(_, live)| live.orphan.is_some());
        let how = match why {
            Ended::Lost if unseen => {
                let grace = duration(self.rules.orphan_grace_ms.unwrap_or_default());
                format!("expired: its client was away for longer than the grace time of {grace}")
            }
            Ended::Idle => format!("was closed after {} without a call", duration(self.rules.session_idle_ms.unwrap_or_default())),
            Ended::ByOperator => "was closed by the operator".to_owned(),
            Ended::Asked | Ended::Goodbye | Ended::Lost | Ended::Undone => return,
        };
        let Some((session, _)) = self.live(id).filter(|(session, _)| session.owner != Identity::Nobody) else { return };
        let ending = Ending { id, uuid: session.uuid, name: session.name.clone(), how, unseen };
        let endings = self.endings.entry(session.owner.clone()).or_default();
        if endings.len() == MAX_ENDINGS {
            endings.pop_front();
        }
        endings.push_back(ending);
    }

    /// A caller found no session by this name, or none at all: why, if that is not known to it yet.
    pub(super) fn explained(&mut self, identity: &Identity, target: Option<&str>, fault: Fault) -> Fault {
        if let Some(taken) = self.taken_from(identity, target) {
            return taken;
        }
        let Some(endings) = self.endings.get_mut(identity) else { return fault };
        let told = match target {
            Some(text) => endings.iter().position(|ending| ending.is_of(text)).and_then(|at| endings.remove(at)),
            None => endings.pop_back(),
        };
        self.drop_empty_endings();
        let Some(ended) = told.as_ref().map(Ending::said) else { return fault };
        let message = if target.is_some() { format!("{} {ended}", fault.message) } else { ended };
        Fault::new(Code::SessionClosed, message, ways_out::NEW_SESSION_OR_PAGE)
    }

    /// How the owner's last session of this name ended, for the answer that gives it another.
    pub(super) fn ending_of(&self, owner: &Identity, name: &str) -> Option<String> {
        self.endings.get(owner)?.iter().rfind(|ending| ending.name == name).map(Ending::said)
    }

    /// The owner has a session of this name again.
    pub(super) fn forget_ending(&mut self, owner: &Identity, name: &str) {
        if let Some(endings) = self.endings.get_mut(owner) {
            endings.retain(|ending| ending.name != name);
        }
        self.drop_empty_endings();
    }

    /// Nobody is here as this identity any more: only what it could not be told is kept for it.
    pub(super) fn keep_unseen_endings(&mut self, identity: &Identity) {
        if let Some(endings) = self.endings.get_mut(identity) {
            endings.retain(|ending| ending.unseen);
            self.away.retain(|other| other != identity);
            self.away.push_back(identity.clone());
        }
        if self.away.len() > MAX_AWAY
            && let Some(first) = self.away.pop_front()
        {
            self.endings.remove(&first);
        }
        self.drop_empty_endings();
    }

    fn drop_empty_endings(&mut self) {
        self.endings.retain(|_, endings| !endings.is_empty());
        self.away.retain(|identity| self.endings.contains_key(identity));
    }
}

/// As the configuration writes it.
fn duration(ms: u64) -> String {
    match ms {
        ms if ms % 60_000 == 0 => format!("{}m", ms / 60_000),
        ms if ms % 1_000 == 0 => format!("{}s", ms / 1_000),
        ms => format!("{ms}ms"),
    }
}
