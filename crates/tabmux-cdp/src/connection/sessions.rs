//! Who listens to which session, and what is kept for sessions that nobody listens to yet. Listeners are never called here.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::sync::Arc;

use bytes::Bytes;

use super::Listener;

/// What is kept for one session between its attach and its listener, and for how many sessions.
const MAX_EVENTS: usize = 500;
const MAX_BYTES: usize = 1 << 20;
const MAX_UNHEARD: usize = 64;
/// How many sessions that went are remembered, for a listener that comes too late.
const MAX_DEPARTED: usize = 256;

#[derive(Default)]
pub(super) struct Sessions {
    known: HashMap<String, Session>,
    departed: VecDeque<String>,
    /// Counts the backlogs begun, so that the oldest gives way.
    begun: u64,
}

pub(super) enum Session {
    Heard(Arc<dyn Listener>),
    Unheard(Backlog),
}

pub(super) struct Backlog {
    begun: u64,
    bytes: usize,
    frames: Vec<Bytes>,
}

/// What becomes of an event.
pub(super) enum Fate {
    Heard(Arc<dyn Listener>),
    Kept { lost: usize },
}

/// What a new listener meets.
pub(super) enum Welcome {
    /// Hear these first, then ask again.
    Backlog(Vec<Bytes>),
    /// In place of whoever listened before, to be dropped outside the lock.
    Listening(Option<Session>),
    Departed,
}

impl Sessions {
    pub(super) fn event(&mut self, session: &str, frame: &Bytes) -> Fate {
        match self.known.get_mut(session) {
            Some(Session::Heard(listener)) => Fate::Heard(listener.clone()),
            Some(Session::Unheard(backlog)) => Fate::Kept { lost: backlog.keep(frame) },
            None => {
                let evicted = self.make_room();
                self.begun += 1;
                let mut backlog = Backlog { begun: self.begun, bytes: 0, frames: Vec::new() };
                let lost = evicted + backlog.keep(frame);
                self.known.insert(session.to_owned(), Session::Unheard(backlog));
                Fate::Kept { lost }
            }
        }
    }

    pub(super) fn welcome(&mut self, session: &str, listener: &Arc<dyn Listener>) -> Welcome {
        if self.departed.iter().any(|departed| departed == session) {
            return Welcome::Departed;
        }
        if let Some(Session::Unheard(backlog)) = self.known.get_mut(session)
            && !backlog.frames.is_empty()
        {
            backlog.bytes = 0;
            return Welcome::Backlog(mem::take(&mut backlog.frames));
        }
        Welcome::Listening(self.known.insert(session.to_owned(), Session::Heard(listener.clone())))
    }

    pub(super) fn forget(&mut self, session: &str) -> Option<Arc<dyn Listener>> {
        match self.known.remove(session)? {
            Session::Heard(listener) => Some(listener),
            Session::Unheard(_) => None,
        }
    }

    /// The browser detached it: its id is never used again.
    pub(super) fn depart(&mut self, session: &str) -> Option<Arc<dyn Listener>> {
        self.departed.push_back(session.to_owned());
        if self.departed.len() > MAX_DEPARTED {
            self.departed.pop_front();
        }
        self.forget(session)
    }

    pub(super) fn take_listeners(&mut self) -> Vec<Arc<dyn Listener>> {
        let known = mem::take(&mut self.known).into_values();
        let heard = known.filter_map(|session| if let Session::Heard(listener) = session { Some(listener) } else { None });
        heard.collect()
    }

    /// Lets go of the oldest backlog when there are too many, and says how many events that loses.
    fn make_room(&mut self) -> usize {
        let unheard = self.known.iter().filter_map(|(id, session)| match session {
            Session::Unheard(backlog) => Some((backlog.begun, id)),
            Session::Heard(_) => None,
        });
        if unheard.clone().count() < MAX_UNHEARD {
            return 0;
        }
        let oldest = unheard.min().map(|(_, id)| id.clone());
        match oldest.and_then(|id| self.known.remove(&id)) {
            Some(Session::Unheard(backlog)) => backlog.frames.len(),
            Some(Session::Heard(_)) | None => 0,
        }
    }
}

impl Backlog {
    /// Copies the frame, which would otherwise hold on to its neighbours' memory. Returns how many events were lost.
    fn keep(&mut self, frame: &Bytes) -> usize {
        if self.frames.len() >= MAX_EVENTS || self.bytes + frame.len() > MAX_BYTES {
            return 1;
        }
        self.bytes += frame.len();
        self.frames.push(Bytes::copy_from_slice(frame));
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(sessions: &mut Sessions, session: &str, size: usize) -> usize {
        match sessions.event(session, &Bytes::from(vec![0; size])) {
            Fate::Kept { lost } => lost,
            Fate::Heard(_) => panic!("nobody listens"),
        }
    }

    #[test]
    fn a_session_nobody_hears_keeps_so_many_events_and_counts_the_rest() {
        let mut sessions = Sessions::default();
        assert_eq!((0..MAX_EVENTS + 3).map(|_| lost(&mut sessions, "a", 1)).sum::<usize>(), 3);
        assert_eq!([lost(&mut sessions, "b", MAX_BYTES), lost(&mut sessions, "b", 1)], [0, 1]);
    }

    #[test]
    fn the_oldest_of_too_many_unheard_sessions_gives_way() {
        let mut sessions = Sessions::default();
        let lost: usize = (0..=MAX_UNHEARD).map(|n| lost(&mut sessions, &n.to_string(), 1)).sum();
        assert_eq!((lost, sessions.known.len(), sessions.known.contains_key("0")), (1, MAX_UNHEARD, false));
    }

    #[test]
    fn only_the_last_departures_are_remembered() {
        let mut sessions = Sessions::default();
        for n in 0..=MAX_DEPARTED {
            sessions.depart(&n.to_string());
        }
        assert!(sessions.departed.len() == MAX_DEPARTED && sessions.departed[0] == "1");
    }
}
