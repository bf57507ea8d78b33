//! Which requests of old-era sessions are being answered. rmcp finds the stream of an answer by the request's id alone: the same id
//! twice at once would give one POST the other's result, and the other none.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

/// A session and an id as it was written; `1` and `"1"` are two.
type Request = (Arc<str>, String);

/// Clones share what they know.
#[derive(Clone, Default)]
pub(super) struct Answering(Arc<Mutex<HashSet<Request>>>);

/// One request that is being answered. It travels in the request's extensions, so it ends where the request does: with the call,
/// not with the connection, and before the answer is on its way.
pub(super) struct Underway {
    answering: Answering,
    request: Request,
}

impl Answering {
    /// `None`: a request of that id is still being answered.
    pub(super) fn begin(&self, session: &str, id: &Value) -> Option<Underway> {
        let request: Request = (session.into(), id.to_string());
        let is_new = self.requests().insert(request.clone());
        is_new.then(|| Underway { answering: self.clone(), request })
    }

    fn requests(&self) -> MutexGuard<'_, HashSet<Request>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Underway {
    fn drop(&mut self) {
        self.answering.requests().remove(&self.request);
    }
}
