//! How long a fake page lives, and each document of it.

use super::FakePage;
use crate::fake::{DEATH, locked};
use crate::{Dialog, DriverError, Page, PageEvent, Result};

/// Which document the page shows. A running script belongs to one of them and ends with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Document(u64),
    Crashed,
    Closed,
    /// Its browser is gone.
    Lost,
}

impl FakePage {
    pub(in crate::fake) fn is_closed(&self) -> bool {
        matches!(*self.life.borrow(), Life::Closed | Life::Lost)
    }

    /// Closes the page without news: whoever asked knows.
    pub(in crate::fake) fn end(&self) {
        self.leave(Life::Closed);
    }

    /// The page is gone with its browser.
    pub(in crate::fake) fn lose(&self) {
        self.leave(Life::Lost);
    }

    pub(super) fn leave(&self, life: Life) {
        let mut state = locked(&self.state);
        state.dialog = None;
        state.events = None;
        self.life.send_replace(life);
    }

    pub(super) fn close_itself(&self) {
        locked(&self.state).tell(PageEvent::Closed);
        self.end();
    }

    pub(super) fn crash(&self) {
        let mut state = locked(&self.state);
        state.dialog = None;
        state.tell(PageEvent::Crashed);
        self.life.send_replace(Life::Crashed);
    }

    /// A dialog freezes the document: no script runs, no text is read, nothing is navigated until it is answered.
    pub(super) fn not_frozen(&self) -> Result<()> {
        match self.dialog() {
            Some(Dialog { kind, text }) => Err(DriverError::DialogOpen { kind, text }),
            None => Ok(()),
        }
    }

    pub(super) fn document(&self) -> Result<Life> {
        match *self.life.borrow() {
            Life::Closed => Err(DriverError::PageGone),
            Life::Lost => Err(browser_gone()),
            Life::Crashed => Err(DriverError::PageCrashed),
            document @ Life::Document(_) => Ok(document),
        }
    }

    /// Comes when the page shows another document than this one, with the reason a script of it fails.
    pub(super) async fn end_of(&self, document: Life) -> DriverError {
        let mut life = self.life.subscribe();
        let now = life.wait_for(|now| *now != document).await.map_or(Life::Closed, |now| *now);
        match now {
            Life::Closed => DriverError::PageGone,
            Life::Lost => browser_gone(),
            Life::Crashed => DriverError::PageCrashed,
            Life::Document(_) => DriverError::Navigated,
        }
    }

    pub(in crate::fake) async fn closed(&self) {
        let mut life = self.life.subscribe();
        // An error means that the sender is gone, and with it the page.
        let _ = life.wait_for(|now| matches!(now, Life::Closed | Life::Lost)).await;
    }
}

pub(super) fn browser_gone() -> DriverError {
    DriverError::BrowserGone(DEATH.into())
}
