//! How frames go back to a peer of the socket door: through one writer, so that lines never mix, with a bound
//! on what waits, so that a peer that does not read holds up only itself.

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

#[derive(Clone, Debug)]
pub(super) struct Replies {
    queue: mpsc::Sender<Value>,
}

impl Replies {
    /// Starts the writer. `gone` is cancelled when the peer cannot be written to any more.
    pub(super) fn start(mut write: OwnedWriteHalf, gone: CancellationToken) -> Self {
        let (queue, mut waiting) = mpsc::channel::<Value>(BACKLOG);
        tokio::spawn(async move {
            while let Some(frame) = waiting.recv().await {
                let line = format!("{frame}\n");
                let written = tokio::time::timeout(STALLED, write.write_all(line.as_bytes())).await;
                if !matches!(written, Ok(Ok(()))) {
                    break;
                }
            }
            gone.cancel();
        });
        Self { queue }
    }

    /// Sends one frame; waits while the peer does not read. A peer that is gone needs no answer.
    pub(super) async fn send(&self, frame: Value) {
        drop(self.queue.send(frame).await);
    }
}
