//! What a page's documents and scripts hold: script heap, DOM and buffers. What its process takes beside that is deliberately
//! absent: Chromium does not say which process that is, and Linux does not let others look into a sandboxed one.

use std::time::Duration;

use super::CdpPage;
use crate::protocol::runtime::{Evaluate, GetHeapUsage, GetHeapUsageReply, ReleaseObject};

/// A page that does not answer by then counts with what it said last.
const GLANCE: Duration = Duration::from_millis(300);

/// One heap; pages in one process share it.
#[derive(Clone, Debug)]
pub(crate) struct Heap {
    pub(crate) id: String,
    pub(crate) kb: u64,
}

impl CdpPage {
    pub(crate) async fn heap(&self) -> Option<Heap> {
        let seen = if self.state.usable().is_ok() { tokio::time::timeout(GLANCE, self.weigh()).await.ok().flatten() } else { None };
        let mut last = self.heap.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if seen.is_some() {
            *last = seen;
        }
        last.clone()
    }

    /// Objects are named after the heap they are in.
    async fn weigh(&self) -> Option<Heap> {
        let session = Some(self.session.as_str());
        let object = Evaluate { expression: "({})".into(), ..Evaluate::default() };
        let (used, object) =
            futures::join!(self.connection.send(session, &GetHeapUsage::default()), self.connection.send(session, &object));
        let object_id = object.ok()?.result.object_id?;
        let id = object_id.split('.').next().unwrap_or_default().to_owned();
        drop(self.connection.send(session, &ReleaseObject { object_id }));
        Some(Heap { id, kb: kilobytes(&used.ok()?) })
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "sizes are whole, positive and far below 2^53")]
fn kilobytes(used: &GetHeapUsageReply) -> u64 {
    ((used.used_size + used.embedder_heap_used_size + used.backing_storage_size) / 1024.0) as u64
}
