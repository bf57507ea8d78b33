//! The daemon's memory on disk: an append-only, checksummed JSONL journal with an atomic snapshot, written
//! before the side effect it announces and replayed at start. One thread writes, so that lines never mix and
//! one `fdatasync` serves everybody who waits. What the records mean is deliberately absent: they are JSON to
//! this room. So is a lock against a second daemon: the daemon's own `flock` is that.

mod disk;
mod line;
mod replay;
mod writer;

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use serde_json::Value;
use tabmux_core::{Code, Fault};
use tokio::sync::{mpsc, oneshot};

use disk::{Disk, FileDisk};
use writer::{Order, Shared, Writer};

/// How many orders may wait for the writer thread, and how many bytes their records may hold.
const QUEUE_ORDERS: usize = 4096;
const QUEUE_BYTES: usize = 16 * 1024 * 1024;

/// The one handle for writing. Orders are taken in the order of the calls (not of the awaits), so a caller
/// that changes its state under a lock and calls `append` or `compact` under the same lock gets them in that order on disk.
#[derive(Debug)]
pub struct Journal {
    orders: mpsc::Sender<Order>,
    shared: Arc<Shared>,
    path: PathBuf,
}

/// What was found on disk: first `snapshot`, then `records` in the order they were appended.
#[derive(Debug, Default, PartialEq)]
pub struct Replayed {
    pub snapshot: Option<Value>,
    pub records: Vec<Value>,
    /// What could not be read and was taken out, for the log.
    pub torn: Option<Dropped>,
}

/// The part of the files that replay could not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dropped {
    pub bytes: u64,
    pub why: String,
    /// `None` for a torn last line, which nobody was told had been written; else where the bytes are kept.
    pub kept_as: Option<PathBuf>,
}

/// When an append counts as done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// The kernel has it: outlives `kill -9` of the daemon.
    Written,
    /// The disk has it: outlives a power cut.
    Synced,
}

/// The journal could not be opened at all.
#[derive(Debug, thiserror::Error)]
#[error("The journal {path} cannot be used: {source}.", path = .path.display())]
pub struct JournalError {
    pub path: PathBuf,
    #[source]
    pub source: std::io::Error,
}

/// Whether something was written that no daemon brought to its end: one that ends well leaves all of it in its snapshot.
pub fn is_unfinished(state_dir: &Path) -> bool {
    std::fs::metadata(state_dir.join(disk::JOURNAL)).is_ok_and(|journal| journal.len() > 0)
}

impl Journal {
    /// Reads what is there, puts damage aside, and starts the writer. Blocks on the disk: call it before serving.
    pub fn open(dir: &Path) -> Result<(Self, Replayed), JournalError> {
        let failed = |source| JournalError { path: dir.to_path_buf(), source };
        let (disk, found, replayed) = disk::open(dir).map_err(failed)?;
        let journal = Self::start::<FileDisk>(disk, found, dir.join(disk::JOURNAL)).map_err(failed)?;
        Ok((journal, replayed))
    }

    fn start<D: Disk>(disk: D, found: writer::Position, path: PathBuf) -> std::io::Result<Self> {
        let shared = Arc::new(Shared { since_snapshot: AtomicU64::new(found.since_snapshot), queued_bytes: AtomicUsize::new(0) });
        let (orders, inbox) = mpsc::channel(QUEUE_ORDERS);
        let writer = Writer::new(disk, found, path.clone(), Arc::clone(&shared));
        std::thread::Builder::new().name("journal".into()).spawn(move || writer.run(inbox))?;
        Ok(Self { orders, shared, path })
    }

    /// Appends one record. It is queued when this returns and is written even if the future is dropped; the
    /// future says how that went. After a fault of `Written` the record is not in the journal; after a failed
    /// sync of `Synced` it may be.
    pub fn append(&self, rec: &Value, durability: Durability) -> impl Future<Output = Result<(), Fault>> + Send + use<> {
        let (done, outcome) = oneshot::channel();
        let queued = self.queue_record(rec, durability, Some(done));
        self.answer(queued, outcome)
    }

    /// Appends one record without waiting. The fault says that the queue is full or closed; a write that fails
    /// later is logged.
    pub fn append_now(&self, rec: &Value) -> Result<(), Fault> {
        self.queue_record(rec, Durability::Written, None)
    }

    /// Comes when all that was queued so far has been written, or has failed to be.
    pub fn caught_up(&self) -> impl Future<Output = Result<(), Fault>> + Send + use<> {
        let (done, outcome) = oneshot::channel();
        let queued = self.send(Order::Pass { done });
        self.answer(queued, outcome)
    }

    /// Makes `state` the snapshot of everything appended so far, and starts the journal anew behind it.
    pub fn compact(&self, state: &Value) -> impl Future<Output = Result<(), Fault>> + Send + use<> {
        let (done, outcome) = oneshot::channel();
        let queued = self.send(Order::Compact { state: state.to_string(), done });
        self.answer(queued, outcome)
    }

    /// Writes and syncs all that was queued, and ends the writer. Later appends are refused.
    pub fn close(&self) -> impl Future<Output = Result<(), Fault>> + Send + use<> {
        let (done, outcome) = oneshot::channel();
        let queued = self.send(Order::Close { done });
        self.answer(queued, outcome)
    }

    /// Nothing is written until what this gives is dropped.
    #[cfg(test)]
    pub(crate) fn stall(&self) -> std::sync::mpsc::Sender<()> {
        let (held, until) = std::sync::mpsc::channel();
        self.send(Order::Stall { until }).expect("the queue has room");
        held
    }

    /// How much replay would have to read again; the hub compacts when it is much.
    pub fn records_since_snapshot(&self) -> u64 {
        self.shared.since_snapshot.load(Ordering::Relaxed)
    }

    fn queue_record(&self, rec: &Value, durability: Durability, done: Option<writer::Done>) -> Result<(), Fault> {
        let rec = rec.to_string();
        let bytes = rec.len();
        let queued = self.shared.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let sent = if queued > QUEUE_BYTES { Err(self.full()) } else { self.send(Order::Append { rec, durability, done }) };
        if sent.is_err() {
            self.shared.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        }
        sent
    }

    fn send(&self, order: Order) -> Result<(), Fault> {
        self.orders.try_send(order).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => self.full(),
            mpsc::error::TrySendError::Closed(_) => closed(&self.path),
        })
    }

    fn full(&self) -> Fault {
        let message = format!("The journal {} cannot keep up: {QUEUE_ORDERS} records wait for the disk.", self.path.display());
        Fault::new(Code::QueueFull, message, "Try again in a moment; if it stays so, see whether the disk is slow or stuck.")
    }

    fn answer(
        &self,
        queued: Result<(), Fault>,
        outcome: oneshot::Receiver<Result<(), Fault>>,
    ) -> impl Future<Output = Result<(), Fault>> + Send + use<> {
        let path = self.path.clone();
        async move {
            queued?;
            outcome.await.unwrap_or_else(|_| Err(closed(&path)))
        }
    }
}

fn closed(path: &Path) -> Fault {
    let message = format!("The journal {} is closed; the daemon is ending.", path.display());
    Fault::new(Code::Internal, message, "Call again; the next daemon takes over.")
}

#[cfg(test)]
mod tests;
