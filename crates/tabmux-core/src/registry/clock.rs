//! The clocks of C1, all monotonic: a suspended laptop expires nobody.

use super::{Effect, Ended, Registry};
use crate::{Millis, SessionId};

impl Registry {
    /// Ends what is overdue.
    pub fn tick(&mut self, now: Millis) {
        let overdue: Vec<(SessionId, Ended)> = self
            .open_sessions()
            .filter_map(|(session, live)| self.due(live).filter(|(at, _)| *at <= now).map(|(_, why)| (session.id, why)))
            .collect();
        for (id, why) in overdue {
            self.end_session(id, why);
        }
        self.expire_grants(now);
        self.note_emptiness(now);
        let overdue = self.empty_since.zip(self.rules.exit_when_empty_ms).is_some_and(|(since, limit)| now.since(since) >= limit);
        if overdue && !self.exiting && self.visits == 0 {
            self.exiting = true;
            self.effects.push(Effect::Exit);
        }
    }

    /// When the next thing is due.
    pub fn next_due(&self) -> Option<Millis> {
        let sessions = self.open_sessions().filter_map(|(_, live)| self.due(live).map(|(at, _)| at));
        let exit = self
            .empty_since
            .filter(|_| !self.exiting && self.visits == 0)
            .zip(self.rules.exit_when_empty_ms)
            .map(|(since, limit)| since.plus(limit));
        let grants = self.grants.values().filter_map(|given| given.until);
        sessions.chain(exit).chain(grants).min()
    }

    /// When a session ends by itself, and why. One with a call or a viewer is never idle (C1).
    fn due(&self, live: &crate::session::Live) -> Option<(Millis, Ended)> {
        let lost = live.orphan.and_then(|orphan| orphan.until).map(|until| (until, Ended::Lost));
        let idle = self.rules.session_idle_ms.filter(|_| !live.busy()).map(|idle| (live.last_used.plus(idle), Ended::Idle));
        match (lost, idle) {
            (Some(lost), Some(idle)) => Some(if idle.0 < lost.0 { idle } else { lost }),
            (lost, idle) => lost.or(idle),
        }
    }

    /// Remembers since when there is nothing to serve: no session and none being closed, hence no call (S1.10).
    pub(super) fn note_emptiness(&mut self, now: Millis) {
        self.empty_since = if self.sessions.is_empty() { self.empty_since.or(Some(now)) } else { None };
    }
}
