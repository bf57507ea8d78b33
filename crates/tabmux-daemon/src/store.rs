//! Joins registry and journal: what lasts is queued for the disk in the order it was decided, and read back at start.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use futures::future::{BoxFuture, FutureExt, join_all};
use serde_json::Value;
use tabmux_core::{Fault, Identity, Millis, Persist, Session, SessionId, Shared, TabNumber};

use crate::journal::{Durability, Journal, JournalError, Replayed};
use crate::record::{HttpRecord, Lasting, Record};
use crate::secrets::Secrets;

/// After so many records the journal is replaced by a snapshot.
const COMPACT_AFTER: u64 = 2_000;

/// Or after so many bytes: one session with many tabs writes long records.
const COMPACT_AFTER_BYTES: u64 = 8 * 1024 * 1024;

/// Old-era HTTP clients remembered at most; the one that changed longest ago is forgotten first.
const MAX_HTTP_CLIENTS: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Store {
    journal: Journal,
    http: Mutex<BTreeMap<String, HttpRecord>>,
    /// Bytes of the records since the last snapshot.
    bytes: AtomicU64,
    /// A record is missing on disk; only a snapshot makes that good.
    behind: AtomicBool,
    /// A session is gone, and still in the journal.
    left_over: AtomicBool,
    /// One snapshot at a time is enough.
    snapshotting: AtomicBool,
    /// What is never written down.
    secrets: OnceLock<Secrets>,
}

/// What a former daemon knew.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub(crate) sessions: Vec<Session>,
    pub(crate) currents: Vec<(Identity, Option<std::sync::Arc<str>>, SessionId)>,
    pub(crate) grants: Vec<Shared>,
    pub(crate) next_tab: TabNumber,
}

/// What was queued for the disk; `None` when there was nothing to write.
#[must_use]
pub(crate) struct Safe(Option<BoxFuture<'static, Result<(), Fault>>>);

impl Safe {
    pub(crate) const NOTHING: Self = Self(None);

    /// Resolves once it is written.
    pub(crate) async fn written(self) -> Result<(), Fault> {
        match self.0 {
            Some(writing) => writing.await,
            None => Ok(()),
        }
    }

    pub(crate) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    #[cfg(not(test))]
    fn when(writing: impl Future<Output = Result<(), Fault>> + Send + 'static) -> Self {
        Self(Some(writing.boxed()))
    }

    /// A paused clock jumps ahead when only another thread has work to do, and the journal is one; it stands
    /// still while a blocking task runs.
    #[cfg(test)]
    fn when(writing: impl Future<Output = Result<(), Fault>> + Send + 'static) -> Self {
        let runtime = tokio::runtime::Handle::current();
        let written = tokio::task::spawn_blocking(move || runtime.block_on(writing));
        Self(Some(async move { written.await.expect("the journal does not panic") }.boxed()))
    }
}

impl Store {
    pub(crate) fn open(state_dir: &Path) -> Result<(Self, Remembered), JournalError> {
        let (journal, replayed) = Journal::open(state_dir)?;
        Ok(Self::of(journal, replayed))
    }

    /// What a journal holds.
    pub(crate) fn of(journal: Journal, replayed: Replayed) -> (Self, Remembered) {
        if let Some(torn) = &replayed.torn {
            tracing::warn!(?torn, "part of the journal could not be read");
        }
        let snapshot = replayed.snapshot.map(serde_json::from_value::<Lasting>).transpose();
        let mut lasting = snapshot
            .inspect_err(|error| tracing::warn!(%error, "the journal's snapshot is of another version and was not used"))
            .unwrap_or_default()
            .unwrap_or_default();
        for record in replayed.records {
            match serde_json::from_value(record) {
                Ok(record) => lasting.apply(record),
                Err(error) => tracing::warn!(%error, "a journal record of another version was skipped"),
            }
        }
        let sessions = lasting.sessions.into_values().filter_map(crate::record::SessionRecord::into_session).collect();
        let currents = lasting
            .currents
            .into_iter()
            .filter_map(|current| Some((current.owner.parse().ok()?, current.agent.map(Into::into), current.session?.parse().ok()?)))
            .collect();
        let now = crate::clock::unix_ms();
        let grants = lasting.grants.into_values().filter_map(|grant| grant.into_shared(now)).collect();
        let store = Self {
            journal,
            http: Mutex::new(lasting.http),
            bytes: AtomicU64::new(0),
            behind: AtomicBool::new(false),
            left_over: AtomicBool::new(false),
            snapshotting: AtomicBool::new(false),
            secrets: OnceLock::new(),
        };
        (store, Remembered { sessions, currents, grants, next_tab: TabNumber(lasting.next_tab) })
    }

    #[cfg(test)]
    pub(crate) fn stall(&self) -> std::sync::mpsc::Sender<()> {
        self.journal.stall()
    }

    /// An address can have a secret in it. What finds pages again are their handles, which have none.
    pub(crate) fn leave_out(&self, secrets: Secrets) {
        // Said once, before anything is written.
        drop(self.secrets.set(secrets));
    }

    fn without_secrets(&self, mut value: Value) -> Value {
        if let Some(secrets) = self.secrets.get() {
            secrets.hide_value(&mut value);
        }
        value
    }

    /// Queues what the registry decided. Call it under the registry's lock, so that the order on disk is the order of the decisions.
    pub(crate) fn keep(&self, persists: Vec<Persist>) -> Safe {
        if persists.is_empty() {
            return Safe::NOTHING;
        }
        if persists.iter().any(|persist| matches!(persist, Persist::Gone(_))) {
            self.left_over.store(true, Ordering::Relaxed);
        }
        let queued: Vec<_> = persists.into_iter().map(|persist| self.append(&Record::from(persist), Durability::Written)).collect();
        Safe::when(async move { join_all(queued).await.into_iter().collect() })
    }

    /// Everything that was kept so far.
    pub(crate) fn all_so_far(&self) -> Safe {
        Safe::when(self.journal.caught_up())
    }

    fn append(&self, record: &Record, durability: Durability) -> impl Future<Output = Result<(), Fault>> + Send + use<> {
        let value = self.without_secrets(serde_json::to_value(record).unwrap_or(Value::Null));
        self.bytes.fetch_add(record.size(), Ordering::Relaxed);
        self.journal.append(&value, durability)
    }

    /// Whether it is time for a snapshot.
    pub(crate) fn wants_snapshot(&self) -> bool {
        let long = self.journal.records_since_snapshot() >= COMPACT_AFTER || self.bytes.load(Ordering::Relaxed) >= COMPACT_AFTER_BYTES;
        let due = long || self.behind.load(Ordering::Relaxed);
        due && !self.snapshotting.load(Ordering::Relaxed)
    }

    /// A record could not be written.
    pub(crate) fn fell_behind(&self) {
        self.behind.store(true, Ordering::Relaxed);
    }

    /// Whether a snapshot would remove something that is nobody's any more.
    pub(crate) fn has_left_over(&self) -> bool {
        self.left_over.load(Ordering::Relaxed)
    }

    /// Says whether a snapshot is due; then it is this caller's to make, and to end.
    pub(crate) fn begin_snapshot(&self) -> bool {
        if !self.wants_snapshot() {
            return false;
        }
        self.behind.store(false, Ordering::Relaxed);
        self.left_over.store(false, Ordering::Relaxed);
        self.bytes.store(0, Ordering::Relaxed);
        !self.snapshotting.swap(true, Ordering::Relaxed)
    }

    pub(crate) fn end_snapshot(&self) {
        self.snapshotting.store(false, Ordering::Relaxed);
    }

    /// Replaces the journal by a snapshot. Under the registry's lock, like `keep`, and under that of the HTTP clients:
    /// a record that is not in the snapshot must come after it.
    pub(crate) fn snapshot(&self, registry: &tabmux_core::Registry, now: Millis) -> Safe {
        let http = self.http();
        let mut lasting = Lasting { http: http.clone(), next_tab: registry.next_tab().0, ..Lasting::default() };
        for session in registry.records() {
            lasting.apply(Record::Session(session.into()));
        }
        for (owner, agent, session) in registry.currents() {
            lasting.apply(Record::from(Persist::Current { owner: owner.clone(), agent: agent.map(Into::into), session: Some(session) }));
        }
        for shared in registry.grants(now) {
            lasting.apply(Record::from(Persist::Grant(shared)));
        }
        Safe::when(self.journal.compact(&self.without_secrets(serde_json::to_value(&lasting).unwrap_or(Value::Null))))
    }

    pub(crate) async fn close(&self) {
        if let Err(fault) = self.journal.close().await {
            tracing::warn!(%fault, "the journal did not close cleanly");
        }
    }

    fn http(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, HttpRecord>> {
        self.http.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn http_records(&self) -> Vec<HttpRecord> {
        self.http().values().cloned().collect()
    }

    pub(crate) fn http_record(&self, id: &str) -> Option<HttpRecord> {
        self.http().get(id).cloned()
    }

    /// Remembers something of an old-era HTTP client.
    pub(crate) fn put_http(&self, id: &str, change: impl FnOnce(&mut HttpRecord)) -> Safe {
        let mut http = self.http();
        let mut queued = Vec::new();
        if http.len() >= MAX_HTTP_CLIENTS && !http.contains_key(id) {
            let oldest = http.values().min_by_key(|record| record.changed_unix_ms).map(|record| record.id.clone());
            if let Some(oldest) = oldest {
                http.remove(&oldest);
                queued.push(self.append(&Record::HttpGone(oldest), Durability::Written));
            }
        }
        let record = http.entry(id.to_owned()).or_insert_with(|| HttpRecord::new(id));
        record.changed_unix_ms = crate::clock::unix_ms();
        change(record);
        queued.push(self.append(&Record::Http(record.clone()), Durability::Written));
        Safe::when(async move { join_all(queued).await.into_iter().collect() })
    }

    pub(crate) fn drop_http(&self, id: &str) -> Safe {
        let mut http = self.http();
        if http.remove(id).is_none() {
            return Safe::NOTHING;
        }
        Safe::when(self.append(&Record::HttpGone(id.to_owned()), Durability::Written))
    }
}
