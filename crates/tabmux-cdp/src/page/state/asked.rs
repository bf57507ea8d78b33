//! What a page asked a new tab or window for: such pages do not say who opened them (FACTS: ctrl-, middle- and shift-click).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How many wishes are remembered, and for how long.
const MAX_ASKED: usize = 16;
const ASKED_LATELY: Duration = Duration::from_secs(3);

/// Addresses, and when they were asked for.
#[derive(Debug, Default)]
pub(super) struct Asked(VecDeque<(Instant, String)>);

impl Asked {
    pub(super) fn add(&mut self, url: String) {
        if self.0.len() == MAX_ASKED {
            self.0.pop_front();
        }
        self.0.push_back((Instant::now(), url));
    }

    /// Whether this was asked for shortly before it came; a wish is fulfilled once.
    pub(super) fn take(&mut self, url: &str, came: Instant) -> bool {
        self.0.retain(|(when, _)| came.saturating_duration_since(*when) < ASKED_LATELY);
        let found = self.0.iter().position(|(_, asked)| asked == url);
        found.is_some_and(|at| self.0.remove(at).is_some())
    }
}
