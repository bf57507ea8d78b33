//! One connection to one browser, shared by everybody who has a page in it: numbers the calls, matches the replies, and
//! hands each target's events to its listener. Deadlines are the caller's; what events mean is the listener's.
//!
//! The reader never waits: not for the writer, not for a listener, not for a caller. A reply is decoded by who asked for it.

mod sessions;
mod shared;
mod tap;
#[cfg(test)]
mod tests;

use std::future::Future;
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde_json::value::RawValue;

use crate::protocol::Command;
use crate::transport::Transport;
use crate::{CdpError, Result};
use shared::Shared;
pub use tap::{Sent, Tap};

/// Hears what the browser says of one target. Called by the reader: must never block.
pub trait Listener: Send + Sync {
    fn event(&self, method: &str, params: &RawValue);
    /// Nothing more will come: the browser detached the target, or the connection ended.
    fn gone(&self, why: &CdpError);
}

/// When the last clone is dropped, the connection ends.
#[derive(Clone, Debug)]
pub struct Connection(Arc<Handle>);

/// A connection that does not go on because of this.
#[derive(Clone, Debug)]
pub(crate) struct WeakConnection(Weak<Handle>);

impl WeakConnection {
    pub(crate) fn upgrade(&self) -> Option<Connection> {
        self.0.upgrade().map(Connection)
    }
}

/// What passed so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls put into the writer's queue.
    pub calls: u64,
    /// Replies handed to who asked.
    pub replies: u64,
    /// Events handed to a listener.
    pub events: u64,
    /// Events of sessions nobody listened to in time, beyond what is kept for them.
    pub lost: u64,
    /// Replies nobody waits for any more, and frames that are no CDP.
    pub stray: u64,
    /// Calls that wait for a reply now.
    pub pending: u64,
}

/// Ends the connection with its last owner; the two tasks hold `Shared` only.
#[derive(Debug)]
struct Handle {
    shared: Arc<Shared>,
}

#[allow(clippy::needless_pass_by_value, reason = "what is handed over belongs to the connection")]
impl Connection {
    /// Starts reading and writing. `first_id` lies above every id a former owner of the transport used; `root` hears the
    /// events that belong to no session.
    pub fn start(transport: Transport, first_id: i32, root: Arc<dyn Listener>) -> Self {
        let (shared, queue) = Shared::new(first_id, root);
        tokio::spawn(shared::write(shared.clone(), transport.outgoing, queue));
        tokio::spawn(shared::read(shared.clone(), transport.incoming));
        Self(Arc::new(Handle { shared }))
    }

    /// Dropping the future forgets the call. It has no deadline of its own, but ends with its session and the connection.
    pub async fn call<C: Command>(&self, session: Option<&str>, command: &C) -> Result<C::Reply> {
        self.send(session, command).await
    }

    pub async fn call_in<C: Command>(&self, session: Option<&str>, command: &C, limit: Duration) -> Result<C::Reply> {
        let reply = tokio::time::timeout(limit, self.send(session, command));
        reply.await.unwrap_or(Err(CdpError::Late { method: C::METHOD }))
    }

    /// Queues the command now; the future only waits for the reply. So several can be under way in a known order.
    pub fn send<C: Command>(&self, session: Option<&str>, command: &C) -> impl Future<Output = Result<C::Reply>> + Send + use<C> {
        self.send_within(session, command, usize::MAX)
    }

    /// The same, but a reply that is longer than `most` bytes is refused by its length, before anybody reads it.
    pub fn send_within<C: Command>(
        &self,
        session: Option<&str>,
        command: &C,
        most: usize,
    ) -> impl Future<Output = Result<C::Reply>> + Send + use<C> {
        let asked = self.0.shared.ask(session, command);
        async move {
            let frame = asked?.await?;
            match frame.len() {
                bytes if bytes > most => Err(CdpError::TooLong { method: C::METHOD, bytes }),
                _ => shared::decode(C::METHOD, frame).await,
            }
        }
    }

    /// From now on the session's events go to `listener`, first those that came since the browser attached: they were kept,
    /// within bounds, and what did not fit is counted as lost. A session that is gone already says so at once.
    pub fn listen(&self, session: &str, listener: Arc<dyn Listener>) {
        self.0.shared.listen(session, &listener);
    }

    /// Every pending call of this session ends now, because its renderer will not answer; the session stays.
    pub fn fail(&self, session: &str, why: CdpError) {
        self.0.shared.fail(session, &why);
    }

    /// The session is let go: its pending calls end with [`CdpError::SessionGone`] and its listener is dropped unheard.
    /// A detach by the browser does the same by itself, but tells the listener.
    pub fn forget(&self, session: &str) {
        self.0.shared.forget(session);
    }

    pub(crate) fn downgrade(&self) -> WeakConnection {
        WeakConnection(Arc::downgrade(&self.0))
    }

    /// Ends the connection for everybody; over a pipe the browser then ends too.
    pub fn close(&self, why: &str) {
        self.0.shared.end(why);
    }

    /// Waits for the end of the connection and says why it came.
    pub fn closed(&self) -> impl Future<Output = String> + Send + use<> {
        self.0.shared.ended()
    }

    pub fn counts(&self) -> Counts {
        self.0.shared.counts()
    }

    /// From now on keeps the last `capacity` commands sent, for tests of what is never sent. There is one log for all.
    pub fn tap(&self, capacity: usize) -> Tap {
        self.0.shared.tap(capacity)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.end("nobody uses the connection any more");
    }
}
