//! What goes out to one peer: one writer, one queue bounded in bytes. A peer that does not read stops being read
//! from, then is closed; nobody else notices. What the lines say is deliberately absent.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// While more than this waits, nothing more is read from the peer.
pub(crate) const BACKLOG_BYTES: usize = 2 * 1024 * 1024;
/// Calls that already run may still answer, but with this much unread the peer is closed.
pub(crate) const LARGEST_BACKLOG_BYTES: usize = 64 * 1024 * 1024;
/// A peer that takes nothing for this long while the backlog is full is closed.
const STALL: Duration = Duration::from_secs(60);
/// How long the last lines may take when a connection ends.
const FAREWELL: Duration = Duration::from_secs(2);

/// The peer is gone; the line was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the peer is gone")]
pub struct Lost;

/// A way to write a line of one's own to a peer, in order with everything else, and to learn that it is gone.
#[derive(Clone, Debug)]
pub struct LineSender {
    queue: mpsc::UnboundedSender<Outgoing>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    backlog: AtomicUsize,
    taken: Notify,
    /// The peer's requests that have not been answered.
    unanswered: watch::Sender<usize>,
    lost: CancellationToken,
}

#[derive(Debug)]
enum Outgoing {
    Line(String),
    End,
}

/// The writing end's task.
#[derive(Debug)]
pub(crate) struct Writer(JoinHandle<()>);

/// Starts the writer of one peer.
pub(crate) fn start<W: AsyncWrite + Unpin + Send + 'static>(target: W) -> (LineSender, Writer) {
    let (queue, lines) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        backlog: AtomicUsize::new(0),
        taken: Notify::new(),
        unanswered: watch::Sender::new(0),
        lost: CancellationToken::new(),
    });
    let writer = tokio::spawn(write_all(target, lines, shared.clone()));
    (LineSender { queue, shared }, Writer(writer))
}

impl LineSender {
    /// Queues one line; the newline is added. Never waits.
    pub fn send_line(&self, mut line: String) -> Result<(), Lost> {
        line.push('\n');
        let backlog = self.shared.backlog.fetch_add(line.len(), Ordering::AcqRel) + line.len();
        if backlog > LARGEST_BACKLOG_BYTES {
            self.shared.lost.cancel();
            return Err(Lost);
        }
        self.queue.send(Outgoing::Line(line)).map_err(|_| Lost)
    }

    /// Resolves when the peer is gone: it closed its end, or did not read for too long.
    pub async fn lost(&self) {
        self.shared.lost.cancelled().await;
    }

    /// Resolves when every request that was read has its answer in the queue. For a daemon that stops.
    pub async fn all_answered(&self) {
        // An error means that the connection is gone, and with it everybody who waits for an answer.
        let mut unanswered = self.shared.unanswered.subscribe();
        drop(unanswered.wait_for(|unanswered| *unanswered == 0).await);
    }

    pub(crate) fn set_unanswered(&self, unanswered: usize) {
        self.shared.unanswered.send_replace(unanswered);
    }

    pub(crate) fn lost_token(&self) -> &CancellationToken {
        &self.shared.lost
    }

    /// Waits until the peer has read enough for more to be read from it.
    pub(crate) async fn room(&self) {
        loop {
            let mut taken = std::pin::pin!(self.shared.taken.notified());
            taken.as_mut().enable();
            if self.shared.backlog.load(Ordering::Acquire) <= BACKLOG_BYTES {
                return;
            }
            taken.await;
        }
    }
}

impl Writer {
    /// Writes what is still queued, with a deadline, and closes the peer's reading end.
    pub(crate) async fn finish(&mut self, sender: &LineSender) {
        // An error means that the writer has already ended.
        let _ended = sender.queue.send(Outgoing::End);
        if tokio::time::timeout(FAREWELL, &mut self.0).await.is_err() {
            self.0.abort();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Short lines go out together, up to about this many bytes in one write.
const WRITE_BYTES: usize = 64 * 1024;

async fn write_all<W: AsyncWrite + Unpin>(mut target: W, mut lines: mpsc::UnboundedReceiver<Outgoing>, shared: Arc<Shared>) {
    while let Some(Outgoing::Line(line)) = lines.recv().await {
        let mut bytes = line.into_bytes();
        let mut ends = false;
        while bytes.len() < WRITE_BYTES && !ends {
            match lines.try_recv() {
                Ok(Outgoing::Line(line)) => bytes.extend_from_slice(line.as_bytes()),
                Ok(Outgoing::End) => ends = true,
                Err(_) => break,
            }
        }
        if write_steadily(&mut target, &bytes, &shared).await.is_err() {
            shared.lost.cancel();
            return;
        }
        if ends {
            break;
        }
    }
    // The peer may be gone already; there is nobody left to tell.
    let _closed = target.shutdown().await;
}

/// Writes everything, however slowly, as long as the peer takes something or the backlog is not full.
async fn write_steadily<W: AsyncWrite + Unpin>(target: &mut W, mut bytes: &[u8], shared: &Shared) -> Result<(), Lost> {
    while !bytes.is_empty() {
        match tokio::time::timeout(STALL, target.write(bytes)).await {
            Ok(Ok(count @ 1..)) => {
                bytes = &bytes[count..];
                shared.backlog.fetch_sub(count, Ordering::AcqRel);
                shared.taken.notify_waiters();
            }
            Ok(_) => return Err(Lost),
            Err(_) if shared.backlog.load(Ordering::Acquire) > BACKLOG_BYTES => return Err(Lost),
            Err(_) => {}
        }
    }
    target.flush().await.map_err(|_| Lost)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn a_peer_that_lets_too_much_pile_up_is_lost_and_the_rest_is_not_kept() {
        let (theirs, _unread) = tokio::io::duplex(1024);
        let (sender, _writer) = start(theirs);
        let line = "x".repeat(1024 * 1024 - 1);
        let sent = (0..100).take_while(|_| sender.send_line(line.clone()).is_ok()).count();
        assert_eq!(sent, LARGEST_BACKLOG_BYTES / (1024 * 1024));
        tokio::time::timeout(Duration::from_secs(5), sender.lost()).await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_with_a_short_backlog_keeps_its_connection() {
        let (theirs, mut ours) = tokio::io::duplex(1024);
        let (sender, mut writer) = start(theirs);
        sender.send_line("x".repeat(100_000)).unwrap();
        tokio::time::sleep(STALL * 10).await;
        assert!(!sender.lost_token().is_cancelled());
        let reading = tokio::spawn(async move {
            let mut all = Vec::new();
            ours.read_to_end(&mut all).await.map(|_| all.len())
        });
        writer.finish(&sender).await;
        assert_eq!(reading.await.unwrap().unwrap(), 100_001);
        assert_eq!(sender.send_line("late".into()), Err(Lost));
    }
}
