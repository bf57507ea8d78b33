//! Where a page is sent by a script or by the answer to a dialog. Those are answered before the page has gone anywhere; whether it
//! comes to where it was sent belongs to the answer all the same.

use std::time::Duration;

use super::CdpPage;
use super::state::{Life, Progress};

/// How long the browser may take to begin with what the page asked it for; some things it never begins with.
pub(super) const BEGIN: Duration = Duration::from_millis(500);

/// How long the document may take. A slow one is no failure.
pub(super) const ARRIVE: Duration = Duration::from_secs(2);

/// What is in a script that may send the page elsewhere a moment later: forms are sent in a turn of their own.
const LATER: [&str; 3] = ["submit", "click", "dispatchEvent"];

impl CdpPage {
    /// Comes when what the script asked for in its next turn is known.
    pub(super) async fn after_script(&self, script: &str) {
        if LATER.iter().any(|word| script.contains(word)) {
            self.next_turn().await;
        }
    }

    /// Comes after what the page is about to do; not for long, where it is busy or asks something.
    pub(super) async fn next_turn(&self) {
        let turn = self.script::<()>("turn", &());
        let mut progress = self.state.watch();
        let dialogs = progress.borrow().dialogs;
        if self.state.dialog().is_some() {
            return;
        }
        let elsewhere = self.reached(&mut progress, |now| now.underway || now.dialogs > dialogs);
        let waited = async {
            tokio::select! { _ = turn => {}, _ = elsewhere => {} }
        };
        // Nothing depends on it but how soon a failure is told.
        let _ = tokio::time::timeout(BEGIN, waited).await;
    }

    pub(super) async fn arrived(&self) -> Option<String> {
        let before = self.state.progress_before();
        let mut progress = self.state.watch();
        let over = |now: &Progress| now.life != Life::Alive || now.commits > before.commits || now.fruitless > before.fruitless;
        let began = |now: &Progress| now.started > before.started || over(now);
        let sent = |now: &Progress| now.requested > before.requested || began(now);
        let now = progress.borrow_and_update().clone();
        if sent(&now) && !over(&now) {
            let arriving = async {
                let begun = tokio::time::timeout(BEGIN, self.reached(&mut progress, began)).await;
                if begun.is_ok() {
                    // Gone, or still on its way: the next call says how the page is.
                    let _ = tokio::time::timeout(ARRIVE, self.reached(&mut progress, over)).await;
                }
            };
            arriving.await;
        }
        self.state.failed_to_go()
    }
}
