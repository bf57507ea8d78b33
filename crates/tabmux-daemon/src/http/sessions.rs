//! Which `mcp-session-id` belongs to whom. An id is no secret: with any other token, or at another path, it
//! answers like one that does not exist. What an MCP session holds is deliberately absent.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard};

use futures::future::BoxFuture;
use tabmux_core::{GrantKey, NotAnId};

use super::backend::HttpIdentity;
use crate::tokens::TokenHolder;

/// More than any machine has MCP clients; the one not used for longest goes first.
const MAX_SESSIONS: usize = 4096;

/// All `mcp-session-id`s and their owners.
pub struct HttpSessionsTable {
    table: Mutex<Table>,
    memory: Arc<dyn RememberSessions>,
}

/// Who initialised an MCP session. Prints as `main`, `token:NAME`, `path:NAME` or `grant:HASH` and reads back.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SessionOwner {
    Main,
    Token(String),
    Path(String),
    Grant(GrantKey),
}

/// Keeps the table over a restart of the daemon, because clients do not initialise again (C11). The hub journals it.
pub trait RememberSessions: Send + Sync + 'static {
    /// Ends when the binding outlives a crash; only then the client learns its id.
    fn bound(&self, id: &str, owner: &SessionOwner) -> BoxFuture<'_, ()>;
    fn unbound(&self, id: &str);
}

#[derive(Default)]
struct Table {
    entries: HashMap<String, Entry>,
    uses: u64,
}

struct Entry {
    owner: SessionOwner,
    last_use: u64,
}

/// Whether an owner has MCP sessions besides the one that ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Others {
    Left,
    None,
}

impl HttpSessionsTable {
    /// The table as `memory` had it (`entries()` of the former daemon).
    pub fn new(remembered: impl IntoIterator<Item = (String, SessionOwner)>, memory: Arc<dyn RememberSessions>) -> Self {
        let entries = remembered.into_iter().map(|(id, owner)| (id, Entry { owner, last_use: 0 })).collect();
        Self { table: Mutex::new(Table { entries, uses: 0 }), memory }
    }

    /// Everything there is to remember, for a snapshot.
    pub fn entries(&self) -> Vec<(String, SessionOwner)> {
        self.table().entries.iter().map(|(id, entry)| (id.clone(), entry.owner.clone())).collect()
    }

    /// The owner of an id, which counts as a use.
    pub(super) fn owner(&self, id: &str) -> Option<SessionOwner> {
        let mut table = self.table();
        table.uses += 1;
        let now = table.uses;
        let entry = table.entries.get_mut(id)?;
        entry.last_use = now;
        Some(entry.owner.clone())
    }

    pub(super) async fn bind(&self, id: &str, owner: SessionOwner) {
        let dropped = self.table().insert(id, owner.clone());
        if let Some(dropped) = dropped {
            self.memory.unbound(&dropped);
        }
        self.memory.bound(id, &owner).await;
    }

    pub(super) fn unbind(&self, id: &str) -> Others {
        let mut table = self.table();
        let Some(ended) = table.entries.remove(id) else { return Others::None };
        let others = table.entries.values().any(|entry| entry.owner == ended.owner);
        drop(table);
        self.memory.unbound(id);
        if others { Others::Left } else { Others::None }
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Table {
    /// Gives back the id that had to go for the new one.
    fn insert(&mut self, id: &str, owner: SessionOwner) -> Option<String> {
        self.uses += 1;
        let oldest = || self.entries.iter().min_by_key(|(_, entry)| entry.last_use).map(|(id, _)| id.clone());
        let dropped = if self.entries.len() >= MAX_SESSIONS { oldest() } else { None };
        if let Some(dropped) = &dropped {
            self.entries.remove(dropped);
        }
        self.entries.insert(id.to_owned(), Entry { owner, last_use: self.uses });
        dropped
    }
}

impl SessionOwner {
    /// Whether the holder of a token may speak for this owner.
    pub(super) fn is_held_by(&self, holder: &TokenHolder) -> bool {
        match (self, holder) {
            (Self::Main | Self::Path(_), TokenHolder::Main) => true,
            (Self::Token(name), TokenHolder::Named(holder)) => name == holder,
            (Self::Grant(key), TokenHolder::Grant(shown)) => key == shown,
            _ => false,
        }
    }

    /// Who the caller is to the hub; `id` is its `mcp-session-id`, if it has one.
    pub(super) fn identity(&self, id: Option<&str>) -> HttpIdentity {
        match (self, id) {
            (Self::Token(name), _) => HttpIdentity::Token(name.clone()),
            (Self::Path(name), _) => HttpIdentity::Path(name.clone()),
            (Self::Grant(key), _) => HttpIdentity::Grant(*key),
            (Self::Main, Some(id)) => HttpIdentity::McpSession(id.to_owned()),
            (Self::Main, None) => HttpIdentity::Anonymous,
        }
    }
}

impl fmt::Display for SessionOwner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Main => f.write_str("main"),
            Self::Token(name) => write!(f, "token:{name}"),
            Self::Path(name) => write!(f, "path:{name}"),
            Self::Grant(key) => write!(f, "grant:{key}"),
        }
    }
}

impl FromStr for SessionOwner {
    type Err = NotAnId;

    fn from_str(text: &str) -> Result<Self, NotAnId> {
        match text.split_once(':') {
            None if text == "main" => Ok(Self::Main),
            Some(("token", name)) => Ok(Self::Token(name.to_owned())),
            Some(("path", name)) => Ok(Self::Path(name.to_owned())),
            Some(("grant", key)) => key.parse().map(Self::Grant),
            _ => Err(NotAnId),
        }
    }
}

impl fmt::Debug for HttpSessionsTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSessionsTable").field("sessions", &self.table().entries.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Log(Mutex<Vec<String>>);

    impl RememberSessions for Log {
        fn bound(&self, id: &str, owner: &SessionOwner) -> BoxFuture<'_, ()> {
            self.0.lock().unwrap().push(format!("+{id} {owner}"));
            Box::pin(async {})
        }

        fn unbound(&self, id: &str) {
            self.0.lock().unwrap().push(format!("-{id}"));
        }
    }

    #[test]
    fn owners_print_and_read_back() {
        for owner in
            [SessionOwner::Main, SessionOwner::Token("a:b".into()), SessionOwner::Path("x".into()), SessionOwner::Grant(GrantKey([7; 32]))]
        {
            assert_eq!(owner.to_string().parse(), Ok(owner));
        }
        assert_eq!("other".parse::<SessionOwner>(), Err(NotAnId));
    }

    #[tokio::test]
    async fn a_full_table_forgets_what_was_not_used_for_longest_and_says_so() {
        let log = Arc::new(Log::default());
        let table = HttpSessionsTable::new([], Arc::<Log>::clone(&log));
        for n in 0..MAX_SESSIONS {
            table.bind(&format!("id{n}"), SessionOwner::Main).await;
        }
        assert_eq!(table.owner("id0"), Some(SessionOwner::Main));
        table.bind("new", SessionOwner::Path("p".into())).await;
        assert_eq!((table.owner("id1"), table.owner("id0")), (None, Some(SessionOwner::Main)));
        assert_eq!(table.entries().len(), MAX_SESSIONS);
        assert_eq!(log.0.lock().unwrap()[MAX_SESSIONS..], ["-id1", "+new path:p"]);
    }
}
