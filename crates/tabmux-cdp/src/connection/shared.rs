//! What the callers, the reader and the writer of a connection share. The one lock is never held across an await nor while
//! a listener is called.

use std::collections::HashMap;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use serde::de::DeserializeOwned;
use tokio::sync::{mpsc, oneshot, watch};

use super::sessions::{Fate, Sessions, Welcome};
use super::{Counts, Listener, Tap};
use crate::protocol::target::DetachedFromTarget;
use crate::protocol::{Command, Event};
use crate::transport::{Incoming, Outgoing};
use crate::wire::{self, Head};
use crate::{CdpError, Result};

const MAX_PENDING: usize = 10_000;
/// More than may be pending, because a forgotten call's frame stays in the queue.
const MAX_QUEUED: usize = 2 * MAX_PENDING;
const MAX_QUEUED_BYTES: usize = 64 << 20;
/// How long the reader may go on after the writer failed.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Such a reply is decoded off the runtime's own threads.
const LARGE: usize = 2 << 20;

pub(super) struct Shared {
    state: Mutex<State>,
    queue: mpsc::Sender<String>,
    /// Of the frames in the queue.
    queued_bytes: AtomicUsize,
    ended: watch::Sender<Option<String>>,
    counters: Counters,
    tap: OnceLock<Tap>,
}

struct State {
    next_id: i32,
    pending: HashMap<i32, Pending>,
    sessions: Sessions,
    /// Until the end, which lets go of it.
    root: Option<Arc<dyn Listener>>,
}

struct Pending {
    session: Option<String>,
    reply: oneshot::Sender<Result<Bytes>>,
}

#[derive(Default)]
struct Counters {
    calls: AtomicU64,
    replies: AtomicU64,
    events: AtomicU64,
    lost: AtomicU64,
    stray: AtomicU64,
}

/// A reply that is awaited; forgotten when dropped.
pub(super) struct Asked {
    shared: Arc<Shared>,
    id: i32,
    reply: oneshot::Receiver<Result<Bytes>>,
}

impl Shared {
    pub(super) fn new(first_id: i32, root: Arc<dyn Listener>) -> (Arc<Self>, mpsc::Receiver<String>) {
        let (queue, queued) = mpsc::channel(MAX_QUEUED);
        let state = State { next_id: first_id.max(1), pending: HashMap::new(), sessions: Sessions::default(), root: Some(root) };
        let shared = Self {
            state: Mutex::new(state),
            queue,
            queued_bytes: AtomicUsize::new(0),
            ended: watch::Sender::new(None),
            counters: Counters::default(),
            tap: OnceLock::new(),
        };
        (Arc::new(shared), queued)
    }

    /// Numbers a command and queues it.
    pub(super) fn ask<C: Command>(self: &Arc<Self>, session: Option<&str>, command: &C) -> Result<Asked> {
        let (sender, reply) = oneshot::channel();
        let busy = CdpError::Busy { method: C::METHOD };
        let id = {
            let mut state = self.state();
            if let Some(why) = &*self.ended.borrow() {
                return Err(CdpError::Disconnected(why.clone()));
            }
            if state.pending.len() >= MAX_PENDING {
                return Err(busy);
            }
            let id = state.new_id();
            state.pending.insert(id, Pending { session: session.map(str::to_owned), reply: sender });
            id
        };
        // From here on dropping it takes the call back.
        let asked = Asked { shared: self.clone(), id, reply };
        let frame = wire::encode(id, session, command);
        let size = frame.len();
        if self.queued_bytes.fetch_add(size, Relaxed) + size > MAX_QUEUED_BYTES {
            self.queued_bytes.fetch_sub(size, Relaxed);
            return Err(busy);
        }
        if let Some(tap) = self.tap.get() {
            tap.record(session, C::METHOD, &frame);
        }
        tracing::trace!(method = C::METHOD, session, size, "sent");
        if self.queue.try_send(frame).is_err() {
            self.queued_bytes.fetch_sub(size, Relaxed);
            return Err(busy);
        }
        count(&self.counters.calls, 1);
        Ok(asked)
    }

    pub(super) fn listen(&self, session: &str, listener: &Arc<dyn Listener>) {
        loop {
            let welcome = {
                let mut state = self.state();
                if let Some(why) = self.ended.borrow().clone() {
                    drop(state);
                    return gone(&**listener, &CdpError::Disconnected(why));
                }
                state.sessions.welcome(session, listener)
            };
            match welcome {
                // The reader keeps what comes meanwhile, so the order stays.
                Welcome::Backlog(frames) => frames.iter().for_each(|frame| self.hear(&**listener, frame)),
                Welcome::Listening(before) => return drop(before),
                Welcome::Departed => return gone(&**listener, &CdpError::SessionGone),
            }
        }
    }

    pub(super) fn fail(&self, session: &str, why: &CdpError) {
        let failed = self.state().take_pending(session);
        answer_all(failed, why);
    }

    pub(super) fn forget(&self, session: &str) {
        self.fail(session, &CdpError::SessionGone);
        let listener = self.state().sessions.forget(session);
        drop(listener);
    }

    pub(super) fn ended(&self) -> impl Future<Output = String> + Send + use<> {
        let mut ended = self.ended.subscribe();
        async move { ended.wait_for(Option::is_some).await.ok().and_then(|why| why.clone()).unwrap_or_default() }
    }

    /// The first reason counts.
    pub(super) fn end(&self, why: &str) {
        let (pending, listeners) = {
            let mut state = self.state();
            let first = self.ended.send_if_modified(|ended| ended.is_none() && ended.replace(why.to_owned()).is_none());
            if !first {
                return;
            }
            let pending: Vec<_> = state.pending.drain().map(|(_, pending)| pending).collect();
            let mut listeners = state.sessions.take_listeners();
            listeners.extend(state.root.take());
            (pending, listeners)
        };
        tracing::debug!(why, "connection ended");
        let why = CdpError::Disconnected(why.to_owned());
        answer_all(pending, &why);
        listeners.iter().for_each(|listener| gone(&**listener, &why));
    }

    pub(super) fn counts(&self) -> Counts {
        let Counters { calls, replies, events, lost, stray } = &self.counters;
        let pending = self.state().pending.len() as u64;
        let [calls, replies, events, lost, stray] = [calls, replies, events, lost, stray].map(|counter| counter.load(Relaxed));
        Counts { calls, replies, events, lost, stray, pending }
    }

    pub(super) fn tap(&self, capacity: usize) -> Tap {
        self.tap.get_or_init(|| Tap::new(capacity)).clone()
    }

    #[cfg(test)]
    pub(super) fn set_next_id(&self, id: i32) {
        self.state().next_id = id;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nothing panics under this lock")
    }

    fn receive(&self, frame: Bytes) {
        match Head::of(&frame) {
            Some(Head::Reply { id }) => {
                let pending = self.state().pending.remove(&id);
                // Counted first, so that whoever sees the reply sees the count.
                count(if pending.is_some() { &self.counters.replies } else { &self.counters.stray }, 1);
                if let Some(call) = pending {
                    let _ = call.reply.send(Ok(frame));
                }
            }
            Some(Head::Event { method, session }) => {
                self.event(session.as_deref(), &frame);
                if method == DetachedFromTarget::METHOD {
                    self.detached(&frame);
                }
            }
            None => {
                tracing::debug!(size = frame.len(), "a frame that is no CDP");
                count(&self.counters.stray, 1);
            }
        }
    }

    fn event(&self, session: Option<&str>, frame: &Bytes) {
        let fate = {
            let mut state = self.state();
            match session {
                Some(session) => state.sessions.event(session, frame),
                None => state.root.clone().map_or(Fate::Kept { lost: 1 }, Fate::Heard),
            }
        };
        match fate {
            Fate::Heard(listener) => self.hear(&*listener, frame),
            Fate::Kept { lost } => count(&self.counters.lost, lost as u64),
        }
    }

    /// A listener that panics hurts itself only.
    fn hear(&self, listener: &dyn Listener, frame: &Bytes) {
        let (Some(Head::Event { method, .. }), Ok(params)) = (Head::of(frame), wire::params(frame)) else {
            return count(&self.counters.stray, 1);
        };
        count(&self.counters.events, 1);
        if catch_unwind(AssertUnwindSafe(|| listener.event(&method, params))).is_err() {
            tracing::error!(%method, "a listener panicked");
        }
    }

    fn detached(&self, frame: &Bytes) {
        let Some(detached) = wire::params(frame).ok().and_then(|params| serde_json::from_str::<DetachedFromTarget>(params.get()).ok())
        else {
            return;
        };
        let listener = self.state().sessions.depart(&detached.session_id);
        self.fail(&detached.session_id, &CdpError::SessionGone);
        if let Some(listener) = listener {
            gone(&*listener, &CdpError::SessionGone);
        }
    }
}

impl State {
    /// CDP's ids are 32 bits wide: after the last comes the first that is free.
    fn new_id(&mut self) -> i32 {
        loop {
            let id = self.next_id;
            self.next_id = id.checked_add(1).unwrap_or(1);
            if !self.pending.contains_key(&id) {
                return id;
            }
        }
    }

    fn take_pending(&mut self, session: &str) -> Vec<Pending> {
        self.pending.extract_if(|_, pending| pending.session.as_deref() == Some(session)).map(|(_, pending)| pending).collect()
    }
}

impl Future for Asked {
    type Output = Result<Bytes>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let reply = ready!(Pin::new(&mut self.reply).poll(context));
        Poll::Ready(reply.unwrap_or(Err(CdpError::SessionGone)))
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.shared.state().pending.remove(&self.id);
    }
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").field("counts", &self.counts()).field("ended", &*self.ended.borrow()).finish_non_exhaustive()
    }
}

pub(super) async fn read(shared: Arc<Shared>, mut incoming: Incoming) {
    let reading = async {
        loop {
            match incoming.next().await {
                Some(Ok(frame)) => shared.receive(frame),
                Some(Err(error)) => break format!("the connection to the browser broke: {error}"),
                None => break "the browser closed the connection".to_owned(),
            }
        }
    };
    tokio::select! {
        biased;
        _ = shared.ended() => {}
        why = reading => shared.end(&why),
    }
}

pub(super) async fn write(shared: Arc<Shared>, mut outgoing: Outgoing, mut queue: mpsc::Receiver<String>) {
    let writing = async {
        // A take-over has something to say before the first command.
        outgoing.flush().await?;
        while let Some(frame) = queue.recv().await {
            let mut next = Some(frame);
            while let Some(frame) = next {
                shared.queued_bytes.fetch_sub(frame.len(), Relaxed);
                outgoing.feed(frame).await?;
                next = queue.try_recv().ok();
            }
            outgoing.flush().await?;
        }
        std::io::Result::Ok(())
    };
    tokio::select! {
        biased;
        _ = shared.ended() => {}
        Err(error) = writing => {
            // What the browser said before it closed is still to be read; the reader then ends the connection.
            let _ = tokio::time::timeout(LAST_WORDS, shared.ended()).await;
            shared.end(&format!("the connection to the browser broke: {error}"));
        }
    }
}

/// Decodes a reply in the caller's task, and a large one beside it, so that the runtime's threads stay free for the others.
pub(super) async fn decode<R: DeserializeOwned + Send + 'static>(method: &'static str, frame: Bytes) -> Result<R> {
    if frame.len() < LARGE {
        return wire::decode(method, &frame);
    }
    let decoded = tokio::task::spawn_blocking(move || wire::decode(method, &frame));
    decoded.await.unwrap_or_else(|error| Err(CdpError::Unreadable { method, why: error.to_string() }))
}

/// Whoever stopped waiting hears nothing.
fn answer_all(pending: impl IntoIterator<Item = Pending>, why: &CdpError) {
    for call in pending {
        let _ = call.reply.send(Err(why.clone()));
    }
}

fn gone(listener: &dyn Listener, why: &CdpError) {
    if catch_unwind(AssertUnwindSafe(|| listener.gone(why))).is_err() {
        tracing::error!("a listener panicked");
    }
}

fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Relaxed);
}
