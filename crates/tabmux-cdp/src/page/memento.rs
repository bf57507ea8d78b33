//! What the next daemon must know of a page to go on with it: the CDP session that drives it, and what Chromium told once
//! and will not tell again. Kept in the journal as the driver wrote it; nobody else reads it.

use std::fmt;

use serde::{Deserialize, Serialize};
use tabmux_driver::Dialog;

use super::state::{OpenDialog, PageState};

/// More of a dialog's text than anybody reads; the journal is small.
const MAX_TEXT: usize = 1000;

/// Refs are written down by the thousand, so that the journal is not written for each of them.
const REFS_AT_ONCE: u32 = 1000;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Memento {
    session: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    dialog: Option<Asked>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    crashed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unreachable: Option<String>,
    /// No ref below was left to give.
    #[serde(default, skip_serializing_if = "is_zero")]
    refs: u32,
}

#[derive(Debug, Serialize, Deserialize)]
struct Asked {
    kind: String,
    text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    default_prompt: Option<String>,
}

impl Memento {
    pub(super) fn of(session: &str, state: &PageState) -> Self {
        let cut = |text: String| text.chars().take(MAX_TEXT).collect();
        let dialog = state.dialog().map(|open| Asked {
            kind: open.dialog.kind,
            text: cut(open.dialog.text),
            default_prompt: open.default_prompt.map(cut),
        });
        let refs = (state.frames().next_ref() - 1).next_multiple_of(REFS_AT_ONCE);
        Self { session: session.to_owned(), dialog, crashed: state.is_crashed(), unreachable: state.unreachable(), refs }
    }

    /// None of a version that wrote something else: then the page is attached to anew.
    pub(crate) fn read(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(super) fn session(&self) -> &str {
        &self.session
    }

    /// Gives the page back what was known of it, and says in which session.
    pub(super) fn restore(self, state: &PageState) -> String {
        let dialog =
            self.dialog.map(|Asked { kind, text, default_prompt }| OpenDialog { dialog: Dialog { kind, text }, default_prompt, number: 0 });
        state.restore(dialog, self.crashed, self.unreachable);
        state.frames().refs_up_to(self.refs + 1);
        self.session
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(refs: &u32) -> bool {
    *refs == 0
}

impl fmt::Display for Memento {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self).expect("a memento is a struct of plain values"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_restored_as_it_was_remembered() {
        let state = PageState::new("T", "about:blank".into());
        let dialog = Dialog { kind: "prompt".into(), text: "name?".into() };
        state.restore(
            Some(OpenDialog { dialog: dialog.clone(), default_prompt: Some("Ann".into()), number: 0 }),
            true,
            Some("net::ERR_FAILED".into()),
        );
        state.frames().refs_up_to(1002);
        let text = Memento::of("S", &state).to_string();

        let again = PageState::new("T", "about:blank".into());
        assert_eq!(Memento::read(&text).unwrap().restore(&again), "S");
        let open = again.dialog().unwrap();
        assert_eq!((open.dialog, open.default_prompt.as_deref(), again.is_crashed()), (dialog, Some("Ann"), true));
        assert_eq!(again.unreachable().as_deref(), Some("net::ERR_FAILED"));
        assert_eq!(again.frames().next_ref(), 2001, "a number that was given is never given again");
        assert!(Memento::read("{}").is_none());
    }
}
