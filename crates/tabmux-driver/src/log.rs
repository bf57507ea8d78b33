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
    /// Errors that nobody was told of, and how many more.
    errors: Vec<String>,
    more_errors: u64,
}

impl PageLog {
    pub fn push(&mut self, level: &str, text: &str) {
        if self.entries.len() == MAX_ENTRIES {
            self.entries.pop_front();
            self.lost += 1;
        }
        if matches!(level, "error" | "exception") {
            if self.errors.len() < MAX_ERRORS {
                self.errors.push(shortened(text));
            } else {
                self.more_errors += 1;
            }
        }
        self.entries.push_back(LogEntry { level: level.to_owned(), text: shortened(text) });
    }

    /// How many errors nobody was told of.
    pub fn untold_errors(&self) -> u64 {
        self.errors.len() as u64 + self.more_errors
    }

    /// Takes the errors since the last time, and how many more there were; they stay in the log.
    pub fn take_errors(&mut self) -> (Vec<String>, u64) {
        (std::mem::take(&mut self.errors), std::mem::take(&mut self.more_errors))
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
    fn a_long_entry_is_cut_between_characters_and_says_so() {
        let mut log = PageLog::default();
        log.push("error", &"é".repeat(MAX_ENTRY_BYTES));
        let text = &log.take().0[0].text;
        assert!(text.len() < MAX_ENTRY_BYTES + 64 && text.ends_with("… [8192 of 16384 bytes]"), "{}", &text[text.len() - 40..]);
    }
}
