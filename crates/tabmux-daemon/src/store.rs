//! Joins registry and journal: what lasts is queued for the disk in the order it was decided, and read back at start.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use futures::future::{BoxFuture, FutureExt, join_all};
use serde_json::Value;
use tabmux_core::{Fault, Identity, Persist, Session, SessionId};

use crate::journal::{Durability, Journal, JournalError};
use crate::record::{HttpRecord, Lasting, Record};

/// After so many records the journal is replaced by a snapshot.
const COMPACT_AFTER: u64 = 2_000;

/// Old-era HTTP clients remembered at most; the longest unused one is forgotten first.
const MAX_HTTP_CLIENTS: usize = 4_096;

#[derive(Debug)]
pub(crate) struct Store {
    journal: Journal,
    http: Mutex<BTreeMap<String, HttpRecord>>,
}

/// What a former daemon knew.
#[derive(Debug)]
pub(crate) struct Remembered {
    pub(crate) sessions: Vec<Session>,
    pub(crate) currents: Vec<(Identity, Option<std::sync::Arc<str>>, SessionId)>,
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

    fn when(writing: impl Future<Output = Result<(), Fault>> + Send + 'static) -> Self {
        Self(Some(writing.boxed()))
    }
}

impl Store {
    pub(crate) fn open(state_dir: &Path) -> Result<(Self, Remembered), JournalError> {
        let (journal, replayed) = Journal::open(state_dir)?;
        if let Some(torn) = &replayed.torn {
            tracing::warn!(?torn, "part of the journal could not be read");
        }
        let mut lasting: Lasting = replayed.snapshot.and_then(|snapshot| serde_json::from_value(snapshot).ok()).unwrap_or_default();
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
        Ok((Self { journal, http: Mutex::new(lasting.http) }, Remembered { sessions, currents }))
    }

    /// Queues what the registry decided. Call it under the registry's lock, so that the order on disk is the order of the decisions.
    pub(crate) fn keep(&self, persists: Vec<Persist>) -> Safe {
        if persists.is_empty() {
            return Safe::NOTHING;
        }
        let queued: Vec<_> = persists.into_iter().map(|persist| self.append(&Record::from(persist), Durability::Written)).collect();
        Safe::when(async move { join_all(queued).await.into_iter().collect() })
    }

    fn append(&self, record: &Record, durability: Durability) -> impl Future<Output = Result<(), Fault>> + Send + use<> {
        let value = serde_json::to_value(record).unwrap_or(Value::Null);
        self.journal.append(&value, durability)
    }

    /// Whether it is time for a snapshot.
    pub(crate) fn wants_snapshot(&self) -> bool {
        self.journal.records_since_snapshot() >= COMPACT_AFTER
    }

    /// Replaces the journal by a snapshot. Under the registry's lock, like `keep`.
    pub(crate) fn snapshot(&self, registry: &tabmux_core::Registry) -> Safe {
        let mut lasting = Lasting { http: self.http().clone(), ..Lasting::default() };
        for session in registry.records() {
            lasting.apply(Record::Session(session.into()));
        }
        for (owner, agent, session) in registry.currents() {
            lasting.apply(Record::from(Persist::Current { owner: owner.clone(), agent: agent.map(Into::into), session: Some(session) }));
        }
        Safe::when(self.journal.compact(&serde_json::to_value(&lasting).unwrap_or(Value::Null)))
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
        if http.len() >= MAX_HTTP_CLIENTS && !http.contains_key(id) {
            http.pop_first();
        }
        let record = http.entry(id.to_owned()).or_insert_with(|| HttpRecord { id: id.to_owned(), holder: None, initialize: None });
        change(record);
        Safe::when(self.append(&Record::Http(record.clone()), Durability::Written))
    }

    pub(crate) fn drop_http(&self, id: &str) -> Safe {
        let mut http = self.http();
        if http.remove(id).is_none() {
            return Safe::NOTHING;
        }
        Safe::when(self.append(&Record::HttpGone(id.to_owned()), Durability::Written))
    }
}
