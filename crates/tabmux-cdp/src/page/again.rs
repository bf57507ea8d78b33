//! The first document of a page that another one opened, where pages do not wait (see `threshold.rs`): the browser asks for it before anybody can tell it
//! as whom. Where the server's answer depends on that, it is asked for once more. What only scripts see (a viewport, a time zone) is not worth asking twice.

use std::sync::Arc;
use std::time::Duration;

use tabmux_driver::{Emulation, HOUSEKEEPING};

use super::CdpPage;
use super::arrival::ARRIVE;
use super::state::{Life, Progress};
use crate::protocol::page::{Frame, GetFrameTree, GetNavigationHistory, Reload};

/// How long the page is nobody's for that. Who clicked waits for it as long.
const AT_ONCE: Duration = Duration::from_millis(800);

/// How long its first document may take to come.
const FIRST: Duration = Duration::from_secs(60);

/// Whether servers answer another, or nobody at all.
fn matters(emulation: &Emulation) -> bool {
    let Emulation { user_agent, locale, offline, credentials, .. } = emulation;
    user_agent.is_some() || locale.is_some() || offline.unwrap_or_default() || credentials.is_some()
}

impl CdpPage {
    /// Comes when the page shows what it would have shown if it had been known from the beginning, but not much later than now; a slow document follows.
    pub(crate) async fn as_emulated(self: &Arc<Self>) {
        if !matters(&self.world.emulation()) {
            return;
        }
        let page = Arc::clone(self);
        let mut again = Box::pin(async move { page.load_again().await });
        if tokio::time::timeout(AT_ONCE, &mut again).await.is_err() {
            tokio::spawn(again);
        }
    }

    /// But for an answer to a form, which would be sent twice, for one that was asked for as it should, and where somebody was asked something by it.
    async fn load_again(&self) -> Option<()> {
        let shown = tokio::time::timeout(FIRST, self.first_document()).await.ok()??;
        // One that could not be had, or waits for a login in the browser's own window, is asked for at its own address.
        let url = shown.unreachable_url.as_ref().unwrap_or(&shown.url);
        if !url.starts_with("http") || self.state.heard_of(&shown.loader_id) || !self.state.is_early(&shown.loader_id) {
            return None;
        }
        let session = Some(self.session.as_str());
        let history = self.connection.call_in(session, &GetNavigationHistory::default(), HOUSEKEEPING).await.ok()?;
        let entry = usize::try_from(history.current_index).ok().and_then(|at| history.entries.into_iter().nth(at))?;
        let mut progress = self.state.watch();
        let before = progress.borrow_and_update().clone();
        if entry.transition_type == "form_submit" || before.dialogs > 0 {
            return None;
        }
        self.state.while_early(&shown.loader_id, || drop(self.connection.send(session, &Reload::default())));
        let come = |now: &Progress| now.commits > before.commits || now.life != Life::Alive || now.dialogs > 0;
        tokio::time::timeout(ARRIVE, progress.wait_for(come)).await.ok()?.ok()?;
        Some(())
    }

    /// None where it asks something, or is gone.
    async fn first_document(&self) -> Option<Frame> {
        let mut progress = self.state.watch();
        loop {
            let commits = progress.borrow_and_update().commits;
            let frame = self.connection.call(Some(&self.session), &GetFrameTree::default()).await.ok()?.frame_tree.frame;
            if !frame.url.is_empty() && frame.url != "about:blank" {
                return Some(frame);
            }
            let stuck = |now: &Progress| now.life != Life::Alive || now.dialogs > 0;
            let now = progress.wait_for(|now| now.commits > commits || stuck(now)).await.ok()?;
            if stuck(&now) {
                return None;
            }
        }
    }
}
