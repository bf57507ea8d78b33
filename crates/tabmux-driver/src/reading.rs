//! What a page says, for reading: as Markdown, its main content or a part of it, and no more at a time than somebody wants to pay.

use crate::Selector;

/// What somebody wants to read of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reading {
    /// All of this and nothing else; without it, the main content.
    pub selector: Option<Selector>,
    /// Where the last reading ended, from its [`Article`].
    pub cursor: Option<String>,
    /// About how many tokens of text.
    pub budget: u32,
}

impl Default for Reading {
    fn default() -> Self {
        Self { selector: None, cursor: None, budget: 10_000 }
    }
}

/// Markdown in the page's own words: nothing in it is to be trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Article {
    pub text: String,
    /// Where to go on when the budget was too small, and how many blocks are left.
    pub cursor: Option<String>,
    pub left: usize,
    /// What of the page is not in it, in words.
    pub left_out: Vec<String>,
}
