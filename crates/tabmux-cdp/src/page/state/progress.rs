//! How far a page is: which document it shows, whether that is loaded, whether it lives.

use std::collections::VecDeque;

use tabmux_driver::DriverError;

/// How many documents a page may have gone through before somebody looks who asked for the first of them.
const FORMER_DOCUMENTS: usize = 8;
/// How far the page is. Loader ids are Chromium's names for documents.
#[derive(Clone, Debug, Default)]
pub(in crate::page) struct Progress {
    /// Documents committed in the main frame.
    pub(in crate::page) commits: u64,
    /// Moves within a document (fragments, the history API).
    pub(in crate::page) moves: u64,
    pub(in crate::page) loader: String,
    /// The documents before it, the latest first.
    former: VecDeque<String>,
    pub(in crate::page) loaded: bool,
    /// The browser is done with it, which it says after the load.
    pub(in crate::page) stopped: bool,
    /// How often scripts asked for another document, and how often one was begun to be fetched.
    pub(in crate::page) requested: u64,
    pub(in crate::page) started: u64,
    /// How many pages it asked for, in tabs or windows of their own.
    pub(in crate::page) new_pages: u64,
    /// The document is to give way to another one in a moment, as one with a refresh does.
    pub(in crate::page) scheduled: bool,
    /// Another document was asked for and is not there yet.
    pub(in crate::page) underway: bool,
    /// Where that one is.
    pub(in crate::page) bound_for: String,
    /// How its document will be called.
    pub(in crate::page) bound_loader: String,
    /// How many of those came to nothing, and left the page where it was.
    pub(in crate::page) fruitless: u64,
    /// How many dialogs it has opened.
    pub(in crate::page) dialogs: u64,
    /// Those of the documents before.
    pub(in crate::page) former_dialogs: u64,
    /// Downloads that it began.
    pub(in crate::page) downloads: u64,
    /// Not all of the document came, and the rest will not.
    pub(in crate::page) broke_off: bool,
    /// The document is Chromium's own error page.
    pub(in crate::page) unreachable: bool,
    pub(in crate::page) life: Life,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::page) enum Life {
    #[default]
    Alive,
    Crashed,
    Gone(DriverError),
}

impl Progress {
    /// Whether the document is there, or was before it sent the page on.
    pub(in crate::page) fn has_shown(&self, loader: &str) -> bool {
        self.loader == loader || self.former.iter().any(|former| former == loader)
    }

    /// The document has loaded, or never will.
    pub(in crate::page) fn is_over(&self) -> bool {
        self.loaded || self.life == Life::Crashed
    }

    pub(super) fn commit(&mut self, loader: String) {
        self.commits += 1;
        self.former_dialogs = self.dialogs;
        (self.underway, self.scheduled, self.stopped) = (false, false, false);
        self.former.truncate(FORMER_DOCUMENTS - 1);
        self.former.push_front(std::mem::replace(&mut self.loader, loader));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dialogs_of_a_document_are_counted_from_its_beginning() {
        let mut progress = Progress { dialogs: 3, ..Progress::default() };
        progress.commit("next".into());
        progress.dialogs += 1;
        assert_eq!(progress.dialogs - progress.former_dialogs, 1);
    }

    #[test]
    fn a_page_that_goes_on_for_ever_is_remembered_for_a_while_only() {
        let mut progress = Progress::default();
        (0..100).for_each(|number| progress.commit(number.to_string()));
        assert!(progress.has_shown("95") && !progress.has_shown("5"));
        assert_eq!(progress.former.len(), FORMER_DOCUMENTS);
    }
}
