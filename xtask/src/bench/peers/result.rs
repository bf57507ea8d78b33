//! What a run found, as it is written to `target/peers/results.json`, and the little arithmetic on it.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::agent::{Browser, Door, Product};

/// A whole run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    /// Sentences about machine, versions, browsers.
    pub(super) preface: Vec<String>,
    pub(super) cells: Vec<Cell>,
    pub(super) floor: Option<Floor>,
}

/// One contender with one number of agents.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Cell {
    pub(super) product: Product,
    pub(super) setup: String,
    pub(super) door: Door,
    pub(super) browser: Browser,
    pub(super) agents: usize,
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    Measured(Measured),
    /// It could not be measured, and why.
    Failed(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) ready_ms: f64,
    /// All agents ready, nobody calling.
    pub(super) memory_kb: u64,
    /// After all calls.
    pub(super) memory_after_kb: u64,
    pub(super) processes: usize,
    /// File name of the browser that really ran.
    pub(super) binary: String,
    pub(super) evaluate: Spread,
    pub(super) navigate: Spread,
    pub(super) screenshot: Spread,
    pub(super) calls_per_s: f64,
    pub(super) tally: Tally,
}

/// How long calls took, one at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Spread {
    pub(super) p50_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) samples: usize,
}

/// Every answer, judged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Tally {
    pub(super) right: u64,
    pub(super) wrong: u64,
    pub(super) errors: u64,
    /// The first that was not right, shortened.
    pub(super) first_problem: Option<String>,
}

/// tabmux and a bare pipe client, in alternating blocks.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Floor {
    pub(super) tabmux: Spread,
    pub(super) raw: Spread,
    /// What tabmux's browser weighs with as many contexts and a bare client: no daemon, no shims, nobody's tools.
    #[serde(default)]
    pub(super) bare_kb: u64,
}

const PROBLEM_CHARS: usize = 300;

impl Spread {
    pub(super) fn of(mut times: Vec<Duration>) -> Self {
        times.sort_unstable();
        let at = |percent: usize| {
            let index = (times.len() * percent).div_ceil(100).saturating_sub(1);
            times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1e3)
        };
        Self { p50_ms: at(50), p99_ms: at(99), samples: times.len() }
    }
}

impl Tally {
    pub(super) fn add(&mut self, other: Self) {
        self.right += other.right;
        self.wrong += other.wrong;
        self.errors += other.errors;
        self.first_problem = self.first_problem.take().or(other.first_problem);
    }

    pub(super) fn problem(&mut self, what: &str) {
        self.first_problem.get_or_insert_with(|| what.chars().take(PROBLEM_CHARS).collect());
    }
}

impl Cell {
    pub(super) fn measured(&self) -> Option<&Measured> {
        match &self.outcome {
            Outcome::Measured(measured) => Some(measured),
            Outcome::Failed(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_sorted_times() {
        let spread = Spread::of((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!(spread, Spread { p50_ms: 50.0, p99_ms: 99.0, samples: 100 });
        assert_eq!(Spread::of(vec![Duration::from_millis(3)]), Spread { p50_ms: 3.0, p99_ms: 3.0, samples: 1 });
        assert_eq!(Spread::of(Vec::new()), Spread::default());
    }

    #[test]
    fn a_tally_keeps_the_first_problem_only() {
        let mut tally = Tally { right: 1, ..Tally::default() };
        let mut other = Tally { wrong: 2, errors: 1, ..Tally::default() };
        other.problem("first");
        other.problem("second");
        tally.add(other);
        assert_eq!((tally.right, tally.wrong, tally.errors, tally.first_problem.as_deref()), (1, 2, 1, Some("first")));
    }
}
