//! What reading and acting cost, as it is written to `target/peers/reading.json`.

use serde::{Deserialize, Serialize};

use super::super::agent::Product;
use super::super::result::Spread;

/// What was found, or why nothing was.
pub(super) type Outcome<T> = Result<T, String>;

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(in super::super) struct Reading {
    /// Sentences about machine, versions, browser, pages.
    pub(super) preface: Vec<String>,
    pub(super) lists: Vec<ListCell>,
    pub(super) forms: Vec<FormCell>,
    pub(super) sights: Vec<SightCell>,
}

/// The tokens of one tool list.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ListCell {
    pub(super) product: Product,
    pub(super) tokens: Outcome<usize>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FormCell {
    pub(super) product: Product,
    pub(super) how: String,
    pub(super) outcome: Outcome<FormDone>,
}

/// The form, filled in and sent several times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FormDone {
    pub(super) time: Spread,
    /// Of one of them.
    pub(super) spent: Spent,
    pub(super) errors: u64,
    pub(super) first_problem: Option<String>,
}

/// What was said: calls, and the tokens of them and of their replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Spent {
    pub(super) calls: usize,
    pub(super) asked: usize,
    pub(super) answered: usize,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SightCell {
    pub(super) product: Product,
    pub(super) how: String,
    pub(super) page: String,
    pub(super) outcome: Outcome<Seen>,
}

/// One page, read several times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Seen {
    pub(super) tokens: usize,
    /// One, unless a reply was cut.
    pub(super) calls: usize,
    pub(super) time: Spread,
}

impl Spent {
    pub(super) fn tokens(self) -> usize {
        self.asked + self.answered
    }
}
