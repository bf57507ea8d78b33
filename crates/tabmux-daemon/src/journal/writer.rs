//! The one thread that writes. It takes whatever waits, writes it at once, syncs once for all that asked, and
//! answers. A write that fails is cut away again, so that the file stays readable and later appends work once there is room.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use tabmux_core::{Code, Fault};
use tokio::sync::{mpsc, oneshot};

use super::disk::Disk;
use super::{Durability, line};

/// How many orders one sync may serve.
const BATCH: usize = 256;

pub(super) type Done = oneshot::Sender<Result<(), Fault>>;

#[derive(Debug)]
pub(super) enum Order {
    Append {
        rec: String,
        durability: Durability,
        done: Option<Done>,
    },
    /// Nothing but the word that its turn has come.
    Pass {
        done: Done,
    },
    Compact {
        state: String,
        done: Done,
    },
    Close {
        done: Done,
    },
    /// A disk that is slow, until the other end is dropped.
    #[cfg(test)]
    Stall {
        until: std::sync::mpsc::Receiver<()>,
    },
}

/// What callers read without asking the thread.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) since_snapshot: AtomicU64,
    pub(super) queued_bytes: AtomicUsize,
}

/// Where the journal stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Position {
    pub(super) last_seq: u64,
    pub(super) length: u64,
    pub(super) since_snapshot: u64,
}

pub(super) struct Writer<D> {
    disk: D,
    path: PathBuf,
    shared: Arc<Shared>,
    at: Position,
    tail: Tail,
    /// Whether the disk may still lack something that was written.
    unsynced: bool,
    waiting_for_sync: Vec<Done>,
}

/// What stands behind the last good line.
#[derive(PartialEq, Eq)]
enum Tail {
    Clean,
    /// Part of a line, of a write that failed: to be cut away before the next one.
    HalfLine,
}

/// Whether the thread goes on.
#[derive(PartialEq, Eq)]
enum Next {
    GoOn,
    End,
}

impl<D: Disk> Writer<D> {
    pub(super) fn new(disk: D, at: Position, path: PathBuf, shared: Arc<Shared>) -> Self {
        Self { disk, path, shared, at, tail: Tail::Clean, unsynced: false, waiting_for_sync: Vec::new() }
    }

    /// Works until the journal is closed or its last handle is gone.
    pub(super) fn run(mut self, mut inbox: mpsc::Receiver<Order>) {
        let mut batch = Vec::with_capacity(BATCH);
        while inbox.blocking_recv_many(&mut batch, BATCH) > 0 {
            for order in batch.drain(..) {
                if self.obey(order) == Next::End {
                    return;
                }
            }
            self.sync_for_all();
        }
    }

    fn obey(&mut self, order: Order) -> Next {
        match order {
            Order::Append { rec, durability, done } => {
                self.shared.queued_bytes.fetch_sub(rec.len(), Ordering::Relaxed);
                let outcome = self.append(&rec).map_err(|error| self.fault("written", &error));
                match (outcome, done) {
                    (Ok(()), Some(done)) if durability == Durability::Synced => self.waiting_for_sync.push(done),
                    (Err(fault), None) => tracing::warn!(%fault, "a record nobody waits for was not written"),
                    (outcome, Some(done)) => tell(done, outcome),
                    (Ok(()), None) => {}
                }
                Next::GoOn
            }
            Order::Pass { done } => {
                tell(done, Ok(()));
                Next::GoOn
            }
            #[cfg(test)]
            Order::Stall { until } => {
                until.recv().ok();
                Next::GoOn
            }
            Order::Compact { state, done } => {
                self.sync_for_all();
                let outcome = self.compact(&state).map_err(|error| self.fault("compacted", &error));
                tell(done, outcome);
                Next::GoOn
            }
            Order::Close { done } => {
                self.waiting_for_sync.push(done);
                self.sync_for_all();
                Next::End
            }
        }
    }

    fn append(&mut self, rec: &str) -> io::Result<()> {
        self.cut_half_line()?;
        let mut bytes = Vec::with_capacity(rec.len() + 64);
        line::write(&mut bytes, self.at.last_seq + 1, rec);
        if let Err(error) = self.write_all(&bytes) {
            self.tail = Tail::HalfLine;
            if let Err(cut) = self.cut_half_line() {
                tracing::warn!(%cut, "half a line stays at the end of the journal until the next append");
            }
            return Err(error);
        }
        self.unsynced = true;
        self.at.last_seq += 1;
        self.at.length += bytes.len() as u64;
        self.count(self.at.since_snapshot + 1);
        Ok(())
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.disk.append(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(written) => bytes = &bytes[written..],
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn cut_half_line(&mut self) -> io::Result<()> {
        if self.tail == Tail::HalfLine {
            self.disk.cut_to(self.at.length)?;
            self.tail = Tail::Clean;
        }
        Ok(())
    }

    /// First the snapshot, whole; only then the journal is emptied. A crash between leaves records the snapshot covers, which replay skips.
    fn compact(&mut self, state: &str) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(state.len() + 64);
        line::write(&mut bytes, self.at.last_seq, state);
        self.disk.put_snapshot(&bytes)?;
        self.count(0);
        self.disk.cut_to(0)?;
        self.at.length = 0;
        self.tail = Tail::Clean;
        Ok(())
    }

    fn sync_for_all(&mut self) {
        if self.waiting_for_sync.is_empty() {
            return;
        }
        let outcome = if self.unsynced { self.disk.sync() } else { Ok(()) };
        self.unsynced &= outcome.is_err();
        let outcome = outcome.map_err(|error| self.fault("synced", &error));
        for done in self.waiting_for_sync.drain(..) {
            tell(done, outcome.clone());
        }
    }

    fn count(&mut self, since_snapshot: u64) {
        self.at.since_snapshot = since_snapshot;
        self.shared.since_snapshot.store(since_snapshot, Ordering::Relaxed);
    }

    fn fault(&self, verb: &str, error: &io::Error) -> Fault {
        let path = self.path.display();
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => Fault::new(
                Code::NoSpace,
                format!("The journal {path} could not be {verb}: {error}."),
                "Free some space on that disk, or move the state directory with TABMUX_STATE_DIR, then call again.",
            ),
            _ => Fault::new(
                Code::Internal,
                format!("The journal {path} could not be {verb}: {error}."),
                "See whether the disk is healthy and writable, then call again.",
            ),
        }
    }
}

/// A caller that no longer waits is no error: its record is written all the same.
fn tell(done: Done, outcome: Result<(), Fault>) {
    drop(done.send(outcome));
}
