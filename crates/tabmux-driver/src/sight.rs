//! What can be seen of a page as lines of text: how much of it is wanted, and what comes of it.

use serde::{Deserialize, Serialize};

use crate::Selector;

/// What somebody wants to see of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sight {
    pub scope: Scope,
    pub which: Which,
    pub rows: Rows,
    /// How many levels of indentation.
    pub depth: Option<u32>,
    /// Only lines with this text, or that match this `/expression/`, and what they are in.
    pub find: Option<String>,
    /// Where the last look ended, from its [`Snapshot`]; everything else is as it was then.
    pub cursor: Option<String>,
    /// About how many tokens of text.
    pub budget: u32,
}

/// Which part of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scope {
    #[default]
    Page,
    /// The element that this means.
    Part(Selector),
    /// What lies between two refs.
    Span(u32, u32),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    #[default]
    Everything,
    /// Only what can be acted upon.
    Interactive,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Rows {
    /// Many rows that are alike are told as some of them and a count.
    #[default]
    Folded,
    All,
}

impl Default for Sight {
    fn default() -> Self {
        Self { scope: Scope::Page, which: Which::Everything, rows: Rows::Folded, depth: None, find: None, cursor: None, budget: 10_000 }
    }
}

/// What is on a page, one thing or row a line. A page's own words are in JSON's quotes, but for what cannot be seen in them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    pub text: String,
    /// Where to go on when the budget was too small, and how many lines are left.
    pub cursor: Option<String>,
    pub left: usize,
}

/// Something on the page that can be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Element {
    pub text: String,
    /// Means this element, here and in any page like this one. In a frame, where it would mean another one too, it is a ref.
    pub css_selector: String,
    pub role: String,
    pub tag: String,
    /// Where the document is from, if it is in a frame.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
}

/// What is another on a page than at the last look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// The page shows another document, or another address.
    pub moved: bool,
    /// Lines with `+`, `-` or `~` (changed) before them; of a document nobody has seen yet, its first ones. Bounded.
    pub text: String,
    /// What was logged as an error since, the oldest first; bounded, and how many more there were.
    pub errors: Vec<String>,
    pub more_errors: u64,
    /// Where it was sent and could not go, and why: it shows the browser's own error page.
    pub failed: Option<String>,
    /// It was sent elsewhere, and what is there is nothing to show: a download, an empty answer.
    pub stayed: bool,
    /// It still loads, or does not rest.
    pub unsettled: bool,
    /// How many pages it asked for in tabs of their own, which may not be there yet.
    pub opened: u64,
}
