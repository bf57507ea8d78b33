//! A copy that is still being filled when its daemon dies, and what the next one fills it on from. A source that can be read again is
//! read again; one that was only told, as a storage state is, is kept for its owner alone until all of it has arrived.

use std::sync::Arc;
use std::time::Duration;

use tabmux_core::{Code, Fault};
use tabmux_driver::{Beginning, Context, ContextSpec, Footprint};

use super::world::World;
use crate::sources::{self, Whence};
use crate::storage_state;

/// How long finding the source again may take; another session may have to be found for that.
const FINDING: Duration = Duration::from_secs(20);

impl World {
    /// Before the session is on record as open: what has not arrived in it is, and can be had again.
    pub(super) async fn keep_for_the_next(self: &Arc<Self>, context: &dyn Context, beginning: Option<&Beginning>) {
        let footprint = context.footprint().borrow().clone();
        if let Some(beginning) = beginning
            && !self.source_lasts()
            && let Err(fault) = self.keep_given(beginning, footprint.pending.clone()).await
        {
            tracing::warn!(session = %self.id, %fault, "a daemon that is killed now leaves a copy that is not whole");
        }
        self.keep(|spec| spec.footprint = footprint);
    }

    /// The next daemon knows where the context has been, and what is still on its way to it.
    pub(super) async fn has_footprint(self: &Arc<Self>, footprint: Footprint) {
        let is_whole = footprint.pending.is_empty() && !self.spec().footprint.pending.is_empty();
        self.keep(|spec| spec.footprint = footprint);
        if is_whole && !self.source_lasts() {
            // First that nothing is needed of it any more.
            self.hub.on_record().await;
            // A panic in there was logged; the file goes with the session.
            drop(self.place.on_disk(|place| place.remove(&place.given)).await);
        }
    }

    /// What a former daemon had not brought is brought from the same source. Where that cannot be, the driver says what is missing.
    pub(super) async fn go_on(self: &Arc<Self>, spec: &mut ContextSpec) {
        if spec.footprint.pending.is_empty() {
            return;
        }
        match tokio::time::timeout(FINDING, self.source_again()).await {
            Ok(Ok(beginning)) => spec.source = beginning,
            Ok(Err(fault)) => tracing::info!(session = %self.id, %fault, "a copy stays as the former daemon left it"),
            Err(_) => tracing::warn!(session = %self.id, "a copy stays as the former daemon left it: its source was not found in time"),
        }
    }

    /// Comes when the copies of this session have all of it, or after a while: it may go then.
    pub(super) async fn let_copies_go_on(&self) {
        // Those that a former daemon left unfinished begin to read only when they are found again.
        let unfinished = self.hub.copies_of(self.id).into_iter().filter(|copy| !copy.spec().footprint.pending.is_empty());
        let finding = futures::future::join_all(unfinished.map(|copy| async move { drop(copy.world.find().await) }));
        let going_on = async {
            drop(tokio::time::timeout(FINDING, finding).await);
            self.hub.sources.have_read(self.id).await;
        };
        // With the daemon its copies end too.
        tokio::select! {
            () = self.hub.stopping.cancelled() => {}
            () = going_on => {}
        }
    }

    async fn source_again(self: &Arc<Self>) -> Result<Option<Beginning>, Fault> {
        if let Some(whence) = self.whence.as_ref().filter(|whence| whence.lasts()) {
            return self.beginning(whence).await.map(Some);
        }
        let text = self.place.on_disk(|place| place.text(&place.given)).await.map_err(|_| self.hub.panicked())??;
        let unusable = |why| Fault::new(Code::Internal, format!("What was kept of its source cannot be used: {why}."), "Start it again.");
        text.map(|text| storage_state::read(&text).map(Beginning::with)).transpose().map_err(unusable)
    }

    async fn keep_given(&self, beginning: &Beginning, pending: Vec<String>) -> Result<(), Fault> {
        if pending.is_empty() {
            return Ok(());
        }
        let (state, _) = sources::state_of_origins(&**beginning.source(), Vec::new(), pending).await;
        self.place
            .on_disk(move |place| place.write(&place.given, &storage_state::written(&state)))
            .await
            .map_err(|_| self.hub.panicked())?
    }

    fn source_lasts(&self) -> bool {
        self.whence.as_ref().is_some_and(Whence::lasts)
    }
}
