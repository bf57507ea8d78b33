//! Calls: admitted, begun in order, ended once (C3). The queue's bound and order are kept here; the daemon's
//! session task only carries out what this says.

use std::sync::Arc;

use super::find::{Found, Picked, Standing};
use super::{Effect, Registry, TabRef};
use crate::session::Waiting;
use crate::{CallId, Caller, Code, Deed, Epoch, Fault, Grant, Millis, Party, SessionId, TabId, Touch};

/// A call that may run, once its turn comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admitted {
    pub call: CallId,
    pub session: SessionId,
    pub epoch: Epoch,
    /// The tab the call named; it was there when the call was admitted.
    pub tab: Option<TabId>,
    /// The caller did not name the session.
    pub picked_for_caller: bool,
    /// How many calls of this session are ahead of it; none of what does not queue.
    pub ahead: usize,
    /// By what right.
    pub party: Party,
}

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) session: SessionId,
    pub(super) grant: Option<Arc<Grant>>,
    pub(super) touch: Touch,
    pub(super) party: Party,
}

/// Whether a call takes its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    Queue,
    /// Beside the queue: what answers a dialog is what the running call waits for.
    Beside,
}

impl Registry {
    /// A call has come in. `false` when the daemon has decided to exit: it must not begin.
    #[must_use]
    pub fn enter(&mut self) -> bool {
        self.visits += usize::from(!self.exiting);
        !self.exiting
    }

    /// A call that entered has been answered or given up.
    pub fn leave(&mut self) {
        self.visits = self.visits.saturating_sub(1);
    }

    /// Calls inside the daemon, also those about sessions that run in none.
    pub fn visits(&self) -> usize {
        self.visits
    }

    /// **The ownership decision.** Finds the session, checks that it is the caller's, that the tab is one of
    /// its tabs and that there is room, and takes a place in the queue or beside it. Who only holds a grant may do what that says.
    pub fn admit(
        &mut self,
        lane: Lane,
        caller: Caller<'_>,
        target: Option<&str>,
        tab: Option<TabRef<'_>>,
        deed: Deed<'_>,
        now: Millis,
    ) -> Result<Admitted, Fault> {
        let identity = self.acting(caller.client, now)?;
        let (Found { session: id, picked, standing }, tab) = match tab {
            Some(TabRef::Global(number)) => {
                let (found, tab) = self.own_tab_numbered(&identity, target, number, now)?;
                (found, Some(tab))
            }
            Some(TabRef::Local(text)) => {
                let found = self.find(&identity, caller.agent, target, now)?;
                let tab = self.own_tab(found.session, text);
                if let (Err(_), Ok(gone)) = (&tab, text.parse()) {
                    self.told_gone(found.session, found.standing.party(), Some(gone));
                }
                (found, Some(tab?))
            }
            None => (self.find(&identity, caller.agent, target, now)?, None),
        };
        let grant = match standing {
            Standing::Owner | Standing::Operator => None,
            Standing::Holder(key) => Some(self.permitted(key, deed)?),
        };
        let call = CallId(self.next_call);
        let max_waiting = self.rules.max_waiting;
        let (session, live) = self.live_mut(id).expect("find gives sessions that are not being closed");
        let epoch = session.epoch;
        let ahead = if lane == Lane::Queue { live.waiting.len() + usize::from(live.running.is_some()) } else { 0 };
        match lane {
            Lane::Queue if live.waiting.len() >= max_waiting => return Err(queue_full(&session.name, max_waiting)),
            Lane::Queue => live.waiting.push_back(Waiting { call, client: caller.client, epoch, by_grant: grant.is_some() }),
            // What does not queue may come at any time, but not in any number.
            Lane::Beside if live.beside as usize >= max_waiting.max(1) => return Err(queue_full(&session.name, max_waiting)),
            Lane::Beside => live.beside += 1,
        }
        live.last_used = now;
        // An owner that reaches an orphan has no connection to lose (one with a connection took it back before
        // this), so from now on only the idle clock ends the session. The operator looking in changes nothing.
        if session.owner == identity {
            live.orphan = None;
        }
        self.next_call += 1;
        if let Some(grant) = &grant {
            self.use_up(grant);
        }
        let party = standing.party();
        self.calls.insert(call.0, Call { session: id, grant, touch: deed.touch, party });
        Ok(Admitted { call, session: id, epoch, tab, picked_for_caller: picked == Picked::ForCaller, ahead, party })
    }

    /// The call's turn has come: it leaves the queue. The epoch is compared again, because the session may have
    /// changed hands while the call waited.
    pub fn begin(&mut self, call: CallId) -> Result<(), Fault> {
        let Some(id) = self.calls.get(&call.0).map(|call| call.session) else {
            return Err(Fault::new(Code::Cancelled, "The call has ended before it began.", "Call again if it is still wanted."));
        };
        let (session, live) = self.sessions.get_mut(&id).expect("a known call belongs to a known session");
        let at_front = live.running.is_none() && live.waiting.front().is_some_and(|waiting| waiting.call == call);
        assert!(at_front, "calls of one session begin one at a time, in the order they came");
        let waiting = live.waiting.pop_front().expect("checked in the line above");
        // What a grant admitted ends with the grant, and who drives the session is nothing to it.
        if waiting.epoch != session.epoch && !waiting.by_grant {
            self.calls.remove(&call.0);
            return Err(stale_epoch());
        }
        live.running = Some(waiting);
        Ok(())
    }

    /// The call has ended. Says whether this was its end, so that nobody answers it twice.
    pub fn finish(&mut self, call: CallId, now: Millis) -> bool {
        let Some(ended) = self.calls.remove(&call.0) else { return false };
        if let Some((_, live)) = self.sessions.get_mut(&ended.session) {
            live.let_go(call);
            live.last_used = now;
        }
        self.forget_choices(ended.session);
        true
    }

    /// Ends every call of a session that is closing.
    pub(super) fn end_calls(&mut self, id: SessionId, fault: &Fault) {
        let mut ended: Vec<u64> = self.calls.iter().filter(|(_, call)| call.session == id).map(|(call, _)| *call).collect();
        ended.sort_unstable();
        for call in ended {
            self.calls.remove(&call);
            self.effects.push(Effect::EndCall { call: CallId(call), fault: fault.clone() });
        }
        if let Some((_, live)) = self.sessions.get_mut(&id) {
            live.waiting.clear();
            live.running = None;
            live.beside = 0;
        }
        self.forget_choices(id);
    }

    /// Whether a call of its owner waits or runs in this session.
    pub fn has_calls_of_owner(&self, id: SessionId) -> bool {
        self.calls.values().any(|call| call.session == id && call.party == Party::Owner)
    }

    /// A person watches this session live; it is never idle meanwhile (C1).
    pub fn watch(&mut self, id: SessionId) {
        if let Some((_, live)) = self.live_mut(id) {
            live.viewers += 1;
        }
    }

    pub fn unwatch(&mut self, id: SessionId, now: Millis) {
        if let Some((_, live)) = self.live_mut(id) {
            live.viewers = live.viewers.saturating_sub(1);
            live.last_used = now;
        }
    }
}

fn queue_full(name: &str, bound: usize) -> Fault {
    let message = format!("{bound} calls already wait in session '{name}'.");
    Fault::new(Code::QueueFull, message, "Wait for their answers, then call again, or use another session.")
}

fn stale_epoch() -> Fault {
    let message = "The session changed hands while the call waited; it was not run.";
    Fault::new(Code::StaleEpoch, message, "Call list_sessions to see what is yours now.")
}
