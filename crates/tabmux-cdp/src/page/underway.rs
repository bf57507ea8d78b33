//! A navigation that nobody waits for any more. Until its server answers, Chromium passes nothing on to the page: every later
//! call would wait as well. So what has not begun to arrive is stopped; a page that is there and only loads on is left alone.

use super::CdpPage;
use crate::protocol::page::StopLoading;

pub(super) struct Underway<'a> {
    page: &'a CdpPage,
    commits: u64,
    armed: bool,
}

impl<'a> Underway<'a> {
    pub(super) fn begin(page: &'a CdpPage) -> Self {
        Self { page, commits: page.state.watch().borrow().commits, armed: true }
    }

    pub(super) fn over(mut self) {
        self.armed = false;
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        let arrived = self.page.state.watch().borrow().commits > self.commits;
        // A dialog may be the question whether to leave; its answer decides.
        if !self.armed || arrived || self.page.state.dialog().is_some() {
            return;
        }
        // Queued now, so that it cannot stop a navigation that begins after it. Nobody waits for the answer: where nothing was
        // stopped, the next call says how the page is.
        drop(self.page.connection.send(Some(&self.page.session), &StopLoading::default()));
        self.page.state.called_off();
    }
}
