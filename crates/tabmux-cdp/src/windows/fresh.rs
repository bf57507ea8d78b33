//! A target that was made and is nobody's page yet. Whoever gives up before it is one leaves nothing behind: the target goes
//! with this.

use std::sync::Arc;

use tabmux_driver::{HOUSEKEEPING, Result};
use tokio::sync::{OwnedMutexGuard, oneshot};

use super::Windows;
use crate::CdpError;
use crate::protocol::target::CloseTarget;

/// A context's turn to make a page: until it ends, a target that comes up may be the one that is being made.
pub(crate) type Turn = OwnedMutexGuard<()>;

#[derive(Debug)]
pub(crate) struct Fresh {
    id: String,
    windows: Arc<Windows>,
    origin: Origin,
    _turn: Turn,
}

#[derive(Debug, PartialEq, Eq)]
enum Origin {
    Made,
    /// It was there before.
    Found,
    /// It is somebody's page.
    Kept,
}

impl Fresh {
    pub(super) fn found(id: String, windows: Arc<Windows>, turn: Turn) -> Self {
        windows.take(&id);
        Self { id, windows, origin: Origin::Found, _turn: turn }
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    pub(crate) fn kept(mut self) {
        self.origin = Origin::Kept;
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        match self.origin {
            // Queued by now. Until the browser says that it is gone it counts as made here, so nobody takes it in.
            Origin::Made => drop(self.windows.connection.send(None, &CloseTarget { target_id: self.id.clone() })),
            Origin::Found => self.windows.give_back(&self.id),
            Origin::Kept => {}
        }
    }
}

impl Windows {
    /// Makes a target on a task of its own, which goes on when nobody waits for it any more, and then closes it again.
    pub(super) async fn make(self: &Arc<Self>, turn: Turn, making: impl Future<Output = Result<String>> + Send + 'static) -> Result<Fresh> {
        let (sender, made) = oneshot::channel();
        let windows = Arc::clone(self);
        tokio::spawn(async move {
            let is_made = windows.making.read().await;
            let fresh = making.await.map(|id| {
                windows.take(&id);
                Fresh { id, windows: Arc::clone(&windows), origin: Origin::Made, _turn: turn }
            });
            drop(is_made);
            // Unheard: it goes with who was to have it.
            drop(sender.send(fresh));
        });
        match tokio::time::timeout(HOUSEKEEPING, made).await {
            Ok(Ok(fresh)) => fresh,
            // Its task ends early only with the daemon.
            Ok(Err(_)) | Err(_) => Err(CdpError::Late { method: "Target.createTarget" }.into()),
        }
    }
}
