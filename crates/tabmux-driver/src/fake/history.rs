//! Where a page has been: a list, and the place in it. Pure.

use crate::{DriverError, Navigation, Result};

/// As many entries as Chromium keeps.
const MAX_ENTRIES: usize = 50;

/// Never empty: a page is always somewhere.
#[derive(Debug)]
pub(super) struct History {
    entries: Vec<String>,
    at: usize,
}

impl History {
    pub(super) fn starting_at(url: String) -> Self {
        Self { entries: vec![url], at: 0 }
    }

    pub(super) fn url(&self) -> &str {
        &self.entries[self.at]
    }

    /// Where a navigation would lead.
    pub(super) fn target<'a>(&'a self, to: Navigation<'a>) -> Result<&'a str> {
        match to {
            Navigation::To(url) => Ok(url),
            step => self.step(step).map(|at| self.entries[at].as_str()),
        }
    }

    /// Goes there.
    pub(super) fn go(&mut self, to: Navigation<'_>) -> Result<()> {
        match to {
            Navigation::To(url) => self.visit(url),
            step => self.at = self.step(step)?,
        }
        Ok(())
    }

    fn step(&self, step: Navigation<'_>) -> Result<usize> {
        let nothing = DriverError::NoHistory;
        match step {
            Navigation::Back => self.at.checked_sub(1).ok_or_else(|| nothing("earlier")),
            Navigation::Forward => Some(self.at + 1).filter(|at| *at < self.entries.len()).ok_or_else(|| nothing("later")),
            Navigation::To(_) | Navigation::Reload => Ok(self.at),
        }
    }

    fn visit(&mut self, url: &str) {
        self.entries.truncate(self.at + 1);
        self.entries.push(url.to_owned());
        if self.entries.len() > MAX_ENTRIES {
            self.entries.remove(0);
        }
        self.at = self.entries.len() - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visit_forgets_what_lay_ahead() {
        let mut history = History::starting_at("a".into());
        for url in ["b", "c"] {
            history.go(Navigation::To(url)).unwrap();
        }
        history.go(Navigation::Back).unwrap();
        assert_eq!((history.url(), history.target(Navigation::Forward)), ("b", Ok("c")));
        history.go(Navigation::To("d")).unwrap();
        assert!(matches!(history.go(Navigation::Forward), Err(DriverError::NoHistory("later"))));
        assert_eq!((history.url(), history.target(Navigation::Back)), ("d", Ok("b")));
    }

    #[test]
    fn the_history_is_bounded_and_keeps_the_newest() {
        let mut history = History::starting_at("first".into());
        for n in 0..200 {
            history.go(Navigation::To(&n.to_string())).unwrap();
        }
        assert_eq!((history.entries.len(), history.url(), history.entries[0].as_str()), (MAX_ENTRIES, "199", "150"));
    }
}
