//! What a page logged and nobody has read yet. Bounded both in entries and in the size of each, because a page
//! writes as much as it likes; what is lost is counted, so that a reader knows. The oldest go first.

use std::collections::VecDeque;

use crate::LogEntry;

/// How many unread entries a page keeps.
const MAX_ENTRIES: usize = 1000;

/// How many errors are said unasked.
const MAX_ERRORS: usize = 3;

/// How many bytes of one entry are kept; the rest is cut, and the cut is marked.
const MAX_ENTRY_BYTES: usize = 8 * 1024;

/// The unread log of one page.
#[derive(Debug, Default)]
pub struct PageLog {
    entries: VecDeque<LogEntry>,
    lost: u64,
    /// Errors that nobody was told of: of documents that were left, and of the one that is there.
    former: Untold,
    present: Untold,
}

/// The first of them, and how many more.
#[derive(Debug, Default)]
struct Untold {
    errors: Vec<String>,
    more: u64,
}

impl Untold {
    fn add(&mut self, error: String) {
        if self.errors.len() < MAX_ERRORS {
            self.errors.push(error);
        } else {
            self.more += 1;
        }
    }

    /// What must be told whatever else is.
    fn add_first(&mut self, error: String) {
        self.errors.insert(0, error);
        if self.errors.len() > MAX_ERRORS {
            self.errors.pop();
            self.more += 1;
        }
    }

    fn join(&mut self, later: Self) {
        later.errors.into_iter().for_each(|error| self.add(error));
        self.more += later.more;
    }

    fn count(&self) -> u64 {
        self.errors.len() as u64 + self.more
    }
}

impl PageLog {
    pub fn push(&mut self, level: &str, text: &str) {
        if matches!(level, "error" | "exception") {
            self.present.add(shortened(text));
        }
        self.keep(level, text);
    }

    /// An error that is told before the page's own, of which there may be any number.
    pub fn push_ours(&mut self, text: &str) {
        self.present.add_first(shortened(text));
        self.keep("error", text);
    }

    fn keep(&mut self, level: &str, text: &str) {
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
            self.lost += 1;
        }
        self.entries.push_back(LogEntry { level: level.to_owned(), text: shortened(text) });
    }

    /// How many errors nobody was told of.
    pub fn untold_errors(&self) -> u64 {
        self.former.count() + self.present.count()
    }

    /// Another document is there.
    pub fn document_left(&mut self) {
        self.former.join(std::mem::take(&mut self.present));
    }

    /// Something is done to the page: what went wrong in documents that were left before does not come of that. It stays in the log.
    pub fn act_begins(&mut self) {
        self.former = Untold::default();
    }

    /// Takes the errors since the last time, and how many more there were; they stay in the log.
    pub fn take_errors(&mut self) -> (Vec<String>, u64) {
        self.document_left();
        let Untold { errors, more } = std::mem::take(&mut self.former);
        (errors, more)
    }

    /// Takes everything, oldest first, and how many were lost since the last time.
    pub fn take(&mut self) -> (Vec<LogEntry>, u64) {
        (std::mem::take(&mut self.entries).into(), std::mem::take(&mut self.lost))
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= MAX_ENTRY_BYTES {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(MAX_ENTRY_BYTES);
    format!("{}… [{} of {} bytes]", &text[..end], end, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entries_give_way_and_the_loss_is_counted_once() {
        let mut log = PageLog::default();
        for n in 0..MAX_ENTRIES + 3 {
            log.push("log", &n.to_string());
        }
        let (entries, lost) = log.take();
        assert_eq!((entries.len(), lost, entries[0].text.as_str()), (MAX_ENTRIES, 3, "3"));
        assert_eq!(log.take(), (vec![], 0));
    }

    #[test]
    fn errors_are_told_once_and_stay_in_the_log() {
        let mut log = PageLog::default();
        for (level, text) in [("log", "a"), ("error", "b"), ("exception", "c"), ("error", "d"), ("error", "e")] {
            log.push(level, text);
        }
        assert_eq!(log.untold_errors(), 4);
        assert_eq!(log.take_errors(), (vec!["b".to_owned(), "c".into(), "d".into()], 1));
        assert_eq!((log.take_errors(), log.take().0.len()), ((vec![], 0), 5));
    }

    #[test]
    fn what_is_said_of_the_page_comes_before_what_it_says_itself() {
        let mut log = PageLog::default();
        (0..5).for_each(|_| log.push("error", "its own"));
        log.push_ours("ours");
        assert_eq!(log.take_errors(), (vec!["ours".to_owned(), "its own".into(), "its own".into()], 3));
        assert_eq!(log.take().0.last().map(|entry| entry.text.clone()), Some("ours".to_owned()));
    }

    #[test]
    fn errors_of_documents_that_were_left_before_an_act_are_not_told_after_it() {
        let mut log = PageLog::default();
        (0..5).for_each(|_| log.push("error", "of the first"));
        log.document_left();
        log.push("error", "of the second");
        assert_eq!(log.untold_errors(), 6);
        log.act_begins();
        log.push("error", "by the act");
        log.document_left();
        log.push("error", "of where it led");
        assert_eq!(log.take_errors(), (vec!["of the second".to_owned(), "by the act".into(), "of where it led".into()], 0));
        assert_eq!((log.untold_errors(), log.take().0.len()), (0, 8));
    }

    #[test]
    fn a_long_entry_is_cut_between_characters_and_says_so() {
        let mut log = PageLog::default();
        log.push("error", &"é".repeat(MAX_ENTRY_BYTES));
        let text = &log.take().0[0].text;
        assert!(text.len() < MAX_ENTRY_BYTES + 64 && text.ends_with("… [8192 of 16384 bytes]"), "{}", &text[text.len() - 40..]);
    }
}
