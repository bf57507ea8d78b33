//! Which old-era sessions are just being brought back. rmcp lists such a session before it has replayed its `initialize`, and a
//! request that reached it in between would end it; so whoever brings one back is alone with it.

use std::collections::HashSet;
use std::sync::Arc;

use tokio::sync::watch;

/// Clones share what they know.
#[derive(Clone, Default)]
pub(super) struct Comebacks(Arc<watch::Sender<HashSet<Arc<str>>>>);

/// The right to bring one session back; others wait until it is dropped.
pub(super) struct Comeback {
    comebacks: Comebacks,
    id: Arc<str>,
}

impl Comebacks {
    /// Asked after the session was seen in rmcp's list: if not, it is wholly there.
    pub(super) fn is_underway(&self, id: &str) -> bool {
        self.0.borrow().contains(id)
    }

    pub(super) async fn take(&self, id: &Arc<str>) -> Comeback {
        loop {
            if self.0.send_if_modified(|underway| underway.insert(Arc::clone(id))) {
                return Comeback { comebacks: self.clone(), id: Arc::clone(id) };
            }
            // Only a lost sender is an error, and it is held here.
            let _ = self.0.subscribe().wait_for(|underway| !underway.contains(id)).await;
        }
    }
}

impl Drop for Comeback {
    fn drop(&mut self) {
        self.comebacks.0.send_modify(|underway| {
            underway.remove(&self.id);
        });
    }
}
