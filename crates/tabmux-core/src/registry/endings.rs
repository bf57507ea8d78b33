//! Sessions that ended without their owner's doing. Its next call that relied on one is told so, once; after that
//! the session is like one that never was. Nothing of this outlasts the daemon.

use super::{Ended, Registry};
use crate::{Code, Fault, Identity, SessionId, Uuid};

/// Kept per owner; the oldest goes first.
pub(super) const MAX_ENDINGS: usize = 8;

#[derive(Debug)]
pub(super) struct Ending {
    id: SessionId,
    uuid: Uuid,
    pub(super) name: String,
    how: String,
}

impl Ending {
    fn is_of(&self, text: &str) -> bool {
        self.name == text || text.parse() == Ok(self.id) || text.parse() == Ok(self.uuid)
    }
}

impl Registry {
    /// Notes the end of a session for its owner. Strangers are told apart by nothing, so nothing is kept for them.
    pub(super) fn note_ending(&mut self, id: SessionId, why: Ended) {
        let how = match why {
            Ended::Idle => format!("was closed after {} without a call", duration(self.rules.session_idle_ms.unwrap_or_default())),
            Ended::ByOperator => "was closed by the operator".to_owned(),
            Ended::Asked | Ended::Goodbye | Ended::Lost | Ended::Undone => return,
        };
        let Some((session, _)) = self.live(id).filter(|(session, _)| session.owner != Identity::Nobody) else { return };
        let ending = Ending { id, uuid: session.uuid, name: session.name.clone(), how };
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
        self.endings.retain(|_, endings| !endings.is_empty());
        let Some(Ending { name, how, .. }) = told else { return fault };
        let ended = format!("Session '{name}' {how}.");
        let message = if target.is_some() { format!("{} {ended}", fault.message) } else { ended };
        Fault::new(Code::SessionClosed, message, "Call start_browser or navigate to make a new one.")
    }

    /// The owner has a session of this name again.
    pub(super) fn forget_ending(&mut self, owner: &Identity, name: &str) {
        if let Some(endings) = self.endings.get_mut(owner) {
            endings.retain(|ending| ending.name != name);
        }
        self.endings.retain(|_, endings| !endings.is_empty());
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
