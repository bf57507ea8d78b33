//! How frames go back to a peer of the socket door: through one writer, so that lines never mix, with a bound
//! on what waits, so that a peer that does not read holds up only itself.

use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Replies that may wait for the peer to read.
const BACKLOG: usize = 64;

/// A peer that reads nothing for so long is gone.
const STALLED: Duration = Duration::from_secs(60);

/// How long the last answers of a connection may take to be written.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Replies {
    queue: mpsc::Sender<Value>,
    /// Everything was written, or the peer is gone.
    ended: CancellationToken,
}

impl Replies {
    /// Starts the writer. `gone` is cancelled when the peer cannot be written to any more.
    pub(super) fn start(mut write: OwnedWriteHalf, gone: CancellationToken) -> Self {
        let (queue, mut waiting) = mpsc::channel::<Value>(BACKLOG);
        let ended = CancellationToken::new();
        let ends = ended.clone().drop_guard();
        tokio::spawn(async move {
            while let Some(frame) = waiting.recv().await {
                let line = format!("{frame}\n");
                let written = tokio::time::timeout(STALLED, write.write_all(line.as_bytes())).await;
                if !matches!(written, Ok(Ok(()))) {
                    break;
                }
            }
            gone.cancel();
            drop(ends);
        });
        Self { queue, ended }
    }

    /// Sends one frame; waits while the peer does not read. A peer that is gone needs no answer.
    pub(super) async fn send(&self, frame: Value) {
        drop(self.queue.send(frame).await);
    }

    /// Waits until all who still have something to say have said it and it is written; bounded, because the peer may not read.
    pub(super) async fn finish(self) {
        let Self { queue, ended } = self;
        drop(queue);
        if tokio::time::timeout(LAST_WORDS, ended.cancelled()).await.is_err() {
            tracing::debug!("a peer did not take its last answers");
        }
    }
}

/// Begins a piece of work here and now, so that calls are decided in the order they came, and goes on with it in the background.
pub(super) async fn begin_in_order(work: impl Future<Output = ()> + Send + 'static) {
    let mut work = Box::pin(work);
    let begun = std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await;
    if begun.is_pending() {
        tokio::spawn(work);
    }
}
