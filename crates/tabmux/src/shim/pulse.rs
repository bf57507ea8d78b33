//! Whether the daemon is still there for those who wait: a process that was suspended keeps its socket, takes what is written to it, and
//! never answers. One that goes on in time has lost nobody anything, so what its silence means for each request is the ledger's to say.

use std::time::{Duration, Instant};

use tabmux_core::{Code, Fault};

/// So long nothing is heard before it is asked, and so long each question waits.
const EVERY: Duration = Duration::from_secs(2);
/// Questions that stay unanswered. More than one: when the whole machine was held up, the first one's time may be over at once.
const QUESTIONS: u8 = 2;
/// The id of our own questions; clients have no such ids.
const ID: &str = "tabmux-shim-pulse";

/// What is to be done when the time is over.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beat {
    Ask,
    Silent,
}

#[derive(Debug)]
pub(super) struct Pulse {
    /// When it was last heard, joined or asked.
    last: Instant,
    asked: u8,
}

impl Pulse {
    pub(super) fn new(now: Instant) -> Self {
        Self { last: now, asked: 0 }
    }

    pub(super) fn heard(&mut self, now: Instant) {
        *self = Self::new(now);
    }

    /// When to act, for clients that have waited `since` then.
    pub(super) fn due(&self, since: Instant) -> Instant {
        self.last.max(since) + EVERY
    }

    pub(super) fn beat(&mut self, now: Instant) -> Beat {
        self.last = now;
        if self.asked >= QUESTIONS {
            return Beat::Silent;
        }
        self.asked += 1;
        Beat::Ask
    }
}

/// Every era answers it, also before `initialize`.
pub(super) fn question() -> Vec<u8> {
    format!("{{\"jsonrpc\":\"2.0\",\"id\":\"{ID}\",\"method\":\"ping\"}}\n").into_bytes()
}

pub(super) fn is_ours(id: &serde_json::Value) -> bool {
    id == ID
}

/// What those are told whose time is over meanwhile.
pub(super) fn silence(daemon: &Fault) -> Fault {
    Fault::new(Code::Timeout, format!("{} What was asked may still happen once it goes on.", daemon.message), daemon.hint.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_is_asked_twice_before_it_counts_as_silent_and_is_until_it_is_heard() {
        let start = Instant::now();
        let mut pulse = Pulse::new(start);
        assert_eq!(pulse.due(start), start + EVERY);
        for beat in [Beat::Ask, Beat::Ask, Beat::Silent, Beat::Silent] {
            assert_eq!(pulse.beat(start + EVERY), beat);
        }
        pulse.heard(start + EVERY);
        assert_eq!((pulse.due(start), pulse.beat(start + EVERY * 2)), (start + EVERY * 2, Beat::Ask));
    }

    /// The time that a suspended machine has missed is not taken for silence: each question gets its own.
    #[test]
    fn who_waits_since_just_now_and_who_wakes_up_late_has_the_whole_time() {
        let start = Instant::now();
        let mut pulse = Pulse::new(start);
        assert_eq!(pulse.due(start + EVERY * 2), start + EVERY * 3);
        let late = start + EVERY * 100;
        assert_eq!((pulse.beat(late), pulse.due(start)), (Beat::Ask, late + EVERY));
    }
}
