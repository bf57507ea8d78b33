//! What goes out to one peer: one writer, one queue bounded in bytes. A peer that does not read stops being read
//! from, then is closed; nobody else notices. What the lines say is deliberately absent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// While more than this waits, nothing more is read from the peer.
const BACKLOG_BYTES: usize = 2 * 1024 * 1024;
/// Calls that already run may still answer. With this much unread by all peers of the process together, the one
/// that has left most unread is closed: a peer that reads has nothing to fear from those that do not.
const UNREAD_BYTES: usize = 32 * 1024 * 1024;
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
    all: &'static Unread,
    backlog: AtomicUsize,
    taken: Notify,
    /// Closed for what it left unread: nothing more is written, and what waits is dropped.
    evicted: CancellationToken,
    /// Nothing more is written, for whatever reason.
    ended: CancellationToken,
    /// The peer's requests that have not been answered.
    unanswered: watch::Sender<usize>,
    lost: CancellationToken,
}

#[derive(Debug)]
enum Outgoing {
    Line(String, Weight),
    End,
}

/// What a line counts for until it was written or dropped.
#[derive(Debug)]
struct Weight {
    shared: Arc<Shared>,
    bytes: usize,
}

/// What all peers of this process have not read. One for all, because they share its memory.
#[derive(Debug)]
struct Unread {
    bytes: AtomicUsize,
    peers: Mutex<Vec<Weak<Shared>>>,
}

static UNREAD: Unread = Unread::new();

/// The writing end's task. It ends when it is dropped, or, once detached, when every `LineSender` is gone.
#[derive(Debug)]
pub struct Writer(Option<JoinHandle<()>>);

/// Starts the writer of one peer.
pub fn start<W: AsyncWrite + Unpin + Send + 'static>(target: W) -> (LineSender, Writer) {
    start_among(&UNREAD, target)
}

fn start_among<W: AsyncWrite + Unpin + Send + 'static>(all: &'static Unread, target: W) -> (LineSender, Writer) {
    let (queue, lines) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        all,
        backlog: AtomicUsize::new(0),
        taken: Notify::new(),
        evicted: CancellationToken::new(),
        ended: CancellationToken::new(),
        unanswered: watch::Sender::new(0),
        lost: CancellationToken::new(),
    });
    all.watch(&shared);
    let (peer, ends) = (Arc::clone(&shared), shared.ended.clone().drop_guard());
    let writer = tokio::spawn(async move {
        tokio::select! {
            () = write_all(target, lines, &peer) => {}
            () = peer.evicted.cancelled() => {}
        }
        drop(ends);
    });
    (LineSender { queue, shared }, Writer(Some(writer)))
}

impl Unread {
    const fn new() -> Self {
        Self { bytes: AtomicUsize::new(0), peers: Mutex::new(Vec::new()) }
    }

    fn watch(&self, peer: &Arc<Shared>) {
        let mut peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        peers.retain(|peer| peer.strong_count() > 0);
        peers.push(Arc::downgrade(peer));
    }

    /// Lets go of whoever has left most unread, as long as all together have left too much.
    fn relieve(&self) {
        let peers = self.peers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut unread: Vec<_> = peers.iter().filter_map(Weak::upgrade).filter(|peer| !peer.evicted.is_cancelled()).collect();
        let all = |unread: &[Arc<Shared>]| unread.iter().map(|peer| peer.backlog.load(Ordering::Acquire)).sum::<usize>();
        while all(&unread) > UNREAD_BYTES {
            unread.sort_by_key(|peer| peer.backlog.load(Ordering::Acquire));
            let Some(most) = unread.pop() else { return };
            most.evicted.cancel();
            most.lost.cancel();
        }
    }
}

impl Weight {
    fn of(shared: &Arc<Shared>, bytes: usize) -> Self {
        shared.backlog.fetch_add(bytes, Ordering::AcqRel);
        let weight = Self { shared: Arc::clone(shared), bytes };
        if shared.all.bytes.fetch_add(bytes, Ordering::AcqRel) + bytes > UNREAD_BYTES {
            shared.all.relieve();
        }
        weight
    }
}

impl Drop for Weight {
    fn drop(&mut self) {
        self.shared.all.bytes.fetch_sub(self.bytes, Ordering::AcqRel);
        self.shared.backlog.fetch_sub(self.bytes, Ordering::AcqRel);
        self.shared.taken.notify_waiters();
    }
}

impl LineSender {
    /// Queues one line; the newline is added. Never waits.
    pub fn send_line(&self, mut line: String) -> Result<(), Lost> {
        line.push('\n');
        let weight = Weight::of(&self.shared, line.len());
        if self.shared.evicted.is_cancelled() {
            return Err(Lost);
        }
        self.queue.send(Outgoing::Line(line, weight)).map_err(|_| Lost)
    }

    /// Closes the peer's reading end behind what is queued: what is said later does not reach it.
    pub fn end(&self) {
        // An error means that the writer has already ended.
        let _ended = self.queue.send(Outgoing::End);
    }

    /// Resolves when the peer is gone: it closed its end, or did not read for too long.
    pub async fn lost(&self) {
        self.shared.lost.cancelled().await;
    }

    /// Resolves when every request that was read has its answer in the queue. For a daemon that stops.
    pub async fn all_answered(&self) {
        // An error means that the connection is gone, and with it everybody who waits for an answer.
        drop(self.unanswered().wait_for(|unanswered| *unanswered == 0).await);
    }

    /// How many requests that were read have no answer in the queue.
    pub fn unanswered(&self) -> watch::Receiver<usize> {
        self.shared.unanswered.subscribe()
    }

    /// Gives up sending, and resolves when everybody else has too and everything is written.
    pub async fn all_written(self) {
        let ended = self.shared.ended.clone();
        drop(self);
        ended.cancelled().await;
    }

    /// How many requests of the peer have no answer in the queue.
    pub fn set_unanswered(&self, unanswered: usize) {
        self.shared.unanswered.send_replace(unanswered);
    }

    pub fn lost_token(&self) -> &CancellationToken {
        &self.shared.lost
    }

    /// Waits until the peer has read enough for more to be read from it.
    pub async fn room(&self) {
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
    pub async fn finish(&mut self, sender: &LineSender) {
        // An error means that the writer has already ended.
        let _ended = sender.queue.send(Outgoing::End);
        if tokio::time::timeout(FAREWELL, sender.shared.ended.cancelled()).await.is_err() {
            self.stop();
        }
    }

    /// Lets it write as long as anybody has something to send.
    pub fn detach(mut self) {
        self.0 = None;
    }

    fn stop(&mut self) {
        if let Some(task) = self.0.take() {
            task.abort();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Short lines go out together, up to about this many bytes in one write.
const WRITE_BYTES: usize = 64 * 1024;

async fn write_all<W: AsyncWrite + Unpin>(mut target: W, mut lines: mpsc::UnboundedReceiver<Outgoing>, shared: &Shared) {
    while let Some(Outgoing::Line(line, weight)) = lines.recv().await {
        let mut bytes = line.into_bytes();
        let mut weights = vec![weight];
        let mut ends = false;
        while bytes.len() < WRITE_BYTES && !ends {
            match lines.try_recv() {
                Ok(Outgoing::Line(line, weight)) => {
                    bytes.extend_from_slice(line.as_bytes());
                    weights.push(weight);
                }
                Ok(Outgoing::End) => ends = true,
                Err(_) => break,
            }
        }
        if write_steadily(&mut target, &bytes, shared).await.is_err() {
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
            Ok(Ok(count @ 1..)) => bytes = &bytes[count..],
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

    /// Peers of a process of their own.
    fn world() -> &'static Unread {
        Box::leak(Box::new(Unread::new()))
    }

    #[tokio::test]
    async fn a_peer_that_lets_too_much_pile_up_is_lost_and_the_rest_is_not_kept() {
        let (theirs, _unread) = tokio::io::duplex(1024);
        let (sender, _writer) = start_among(world(), theirs);
        let line = "x".repeat(1024 * 1024 - 1);
        let sent = (0..100).take_while(|_| sender.send_line(line.clone()).is_ok()).count();
        assert_eq!(sent, UNREAD_BYTES / (1024 * 1024));
        tokio::time::timeout(Duration::from_secs(5), sender.lost()).await.unwrap();
        tokio::time::timeout(Duration::from_secs(5), sender.shared.ended.cancelled()).await.unwrap();
        assert_eq!(sender.shared.backlog.load(Ordering::Acquire), 0, "what it did not read is not kept");
    }

    #[tokio::test]
    async fn of_all_peers_the_one_with_most_unread_goes_first() {
        let all = world();
        let peers: Vec<_> = (0..4).map(|_| tokio::io::duplex(1024)).map(|(theirs, ours)| (start_among(all, theirs), ours)).collect();
        let line = "x".repeat(1024 * 1024 - 1);
        // 1, 10, 11 and then more than the rest of what all may leave unread.
        for (peer, lines) in [(0, 1), (1, 10), (2, 11), (3, 11)] {
            for _ in 0..lines {
                let _may_be_lost = peers[peer].0.0.send_line(line.clone());
            }
        }
        let lost: Vec<_> = peers.iter().map(|((sender, _), _)| sender.lost_token().is_cancelled()).collect();
        assert_eq!(lost.iter().filter(|lost| **lost).count(), 1, "{lost:?}");
        assert!(!lost[0] && !lost[1], "{lost:?}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_peer_with_a_short_backlog_keeps_its_connection() {
        let (theirs, mut ours) = tokio::io::duplex(1024);
        let (sender, mut writer) = start_among(world(), theirs);
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
