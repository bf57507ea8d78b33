//! How frames go back to a peer of the socket door: through one writer, so that lines never mix, with a bound
//! on what waits, so that a peer that does not read holds up only itself.

use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use tabmux_wire::lines::Line;
use tabmux_wire::outbox::{self, LineSender};
use tokio::net::unix::OwnedWriteHalf;

use super::Reader;
use super::frame::FrameId;

/// How long the last answers of a connection may take to be written.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(super) struct Replies(LineSender);

impl Replies {
    /// Starts the writer. It writes as long as anybody has a reply to send, also when the peer sends no more.
    pub(super) fn start(write: OwnedWriteHalf) -> Self {
        let (sender, writer) = outbox::start(write);
        writer.detach();
        Self(sender)
    }

    /// Sends one frame. A peer that is gone needs no answer.
    pub(super) fn send(&self, frame: &Value) {
        // The loop that reads from the peer notices.
        let _gone = self.0.send_line(frame.to_string());
    }

    /// Answers a frame under its own id.
    pub(super) fn answer(&self, id: &FrameId, frame: &Value) {
        let _gone = self.0.send_line(id.line(frame));
    }

    /// The peer's next line, once it has read enough of what it was sent; `End` when it is gone.
    pub(super) async fn next_line(&self, reader: &mut Reader) -> Line {
        let next = async {
            self.0.room().await;
            reader.next().await
        };
        tokio::select! {
            line = next => line.unwrap_or(Line::End),
            () = self.gone() => Line::End,
        }
    }

    /// The peer cannot be written to any more.
    pub(super) async fn gone(&self) {
        self.0.lost().await;
    }

    /// Waits until all who still have something to say have said it and it is written; bounded, because the peer may not read.
    pub(super) async fn finish(self) {
        if tokio::time::timeout(LAST_WORDS, self.0.all_written()).await.is_err() {
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
