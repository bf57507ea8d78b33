//! Who may answer a page beyond the network's ordinary requests: whoever is at the other end of its sockets, and its workers.

use std::collections::HashSet;
use std::time::{Duration, Instant};

/// How long an answer over a socket is waited for.
const ANSWER: Duration = Duration::from_millis(150);

#[derive(Debug, Default)]
pub(super) struct Beyond {
    /// When something was sent over a socket since the last act, or one was opened, and nothing came since.
    asked: Option<Instant>,
    /// By session.
    workers: HashSet<String>,
}

impl Beyond {
    pub(super) fn act_begins(&mut self) {
        self.asked = None;
    }

    /// Takes in an event; only its kind matters here.
    pub(super) fn note(&mut self, method: &str) {
        match method {
            "Network.webSocketCreated" | "Network.webSocketFrameSent" => {
                self.asked.get_or_insert_with(Instant::now);
            }
            "Network.webSocketFrameReceived" | "Network.webSocketFrameError" | "Network.webSocketClosed" => self.asked = None,
            _ => {}
        }
    }

    /// Until when an answer may come; none, where nobody was asked, or it is too late.
    pub(super) fn awaits(&mut self) -> Option<Instant> {
        let until = self.asked? + ANSWER;
        if until <= Instant::now() {
            self.asked = None;
        }
        self.asked.map(|_| until)
    }

    pub(super) fn worker_came(&mut self, session: String) {
        self.workers.insert(session);
    }

    pub(super) fn worker_went(&mut self, session: &str) {
        self.workers.remove(session);
    }

    pub(super) fn workers(&self) -> Vec<String> {
        self.workers.iter().cloned().collect()
    }

    pub(super) fn has_workers(&self) -> bool {
        !self.workers.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_awaited_only_after_something_was_sent() {
        let mut beyond = Beyond::default();
        beyond.note("Network.webSocketFrameReceived");
        assert_eq!(beyond.awaits(), None);
        beyond.note("Network.webSocketFrameSent");
        let until = beyond.awaits().expect("an answer may come");
        beyond.note("Network.webSocketFrameSent");
        assert_eq!(beyond.awaits(), Some(until), "who goes on sending is not waited for longer");
        beyond.note("Network.webSocketFrameReceived");
        assert_eq!(beyond.awaits(), None);
        beyond.asked = Instant::now().checked_sub(ANSWER);
        assert_eq!(beyond.awaits(), None, "it is too late");
    }
}
