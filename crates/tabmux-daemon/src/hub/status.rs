//! What `tabmux status` and the listings of the command line show.

use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use tabmux_core::{ClientId, Code, Fault, Identity, Listed, Registry, SessionId};
use tabmux_tools::SessionView;

use super::{CallerOf, Hub, desk};
use crate::session::{Reach, SessionHandle};

/// How long a listing waits until it is known which sessions of a former daemon lost their browser with it.
const TAKING_UP: Duration = Duration::from_secs(2);

/// A session on the command line.
#[derive(Serialize)]
struct Row {
    #[serde(skip)]
    session: SessionId,
    #[serde(flatten)]
    view: SessionView,
    owner: String,
    current: bool,
    /// Of its replies, about.
    tokens: u64,
}

impl Hub {
    /// The contract's `status --json`, without what only the doors know.
    pub(crate) async fn status(&self) -> Map<String, Value> {
        self.all_taken_up().await;
        let browsers = self.browsers.described().await;
        let counts = self.look(Registry::counts);
        let counters = &self.counters;
        let status = json!({
            "running": true,
            "version": env!("CARGO_PKG_VERSION"),
            "pid": std::process::id(),
            "uptime_s": self.clock.uptime().as_secs(),
            "socket": self.settings.paths.socket,
            "supervised": self.settings.supervised,
            "attach": self.settings.attach.endpoint,
            "extension": {"connected": false},
            "browsers": browsers,
            "sessions": {
                "active": counts.active(),
                "orphaned": counts.orphaned,
                "lost": counts.lost,
                "clones": counts.clones,
            },
            "clients": counts.clients,
            "calls": {"running": counts.running, "queued": counts.waiting, "total": counters.calls.load(Ordering::Relaxed)},
            "counters": {
                "faults": counters.faults.load(Ordering::Relaxed),
                "panics": counters.panics.load(Ordering::Relaxed),
                "journal_faults": counters.journal_faults.load(Ordering::Relaxed),
                "unreadable_events": tabmux_cdp::unreadable_events(),
            },
            "memory_kb": memory_kb(),
        });
        match status {
            Value::Object(status) => status,
            _ => Map::new(),
        }
    }

    /// About how many tokens the replies have had: all of them, and by session as far as the caller may see it. By id, because
    /// two callers may have sessions of one name.
    pub(crate) fn tokens_seen_by(&self, client: ClientId) -> Value {
        let spent = self.spent();
        let sessions: Map<String, Value> = self.look(|registry| {
            let all = registry.identity(client) == Some(&Identity::Operator);
            let seen = if all { everybodys(registry) } else { registry.list(CallerOf::of(client).as_caller()) };
            let tokens = |Listed { session, .. }: Listed<'_>| {
                let count = spent.get(&session.id).copied().unwrap_or_default();
                (session.id.to_string(), json!({"name": session.handle(), "tokens": count}))
            };
            seen.into_iter().map(tokens).collect()
        });
        json!({"total": self.counters.tokens.load(Ordering::Relaxed), "sessions": sessions})
    }

    /// Sessions for the command line. Only the operator sees everybody's (C9).
    pub(crate) async fn sessions(&self, client: ClientId, all: bool) -> Result<Value, Fault> {
        self.all_taken_up().await;
        let caller = CallerOf::of(client);
        let now = self.clock.moment();
        let spent = self.spent();
        let (mut rows, current) = self.look(|registry| {
            if all && registry.identity(client) != Some(&Identity::Operator) {
                let hint = "Unset TABMUX_TOKEN to be the operator, or list your own sessions.";
                return Err(Fault::new(Code::PolicyDenied, "Only the operator may list everybody's sessions.", hint));
            }
            let listed = if all { everybodys(registry) } else { registry.list(caller.as_caller()) };
            let current = registry.current(caller.as_caller());
            let row = |listed: Listed<'_>| Row {
                session: listed.session.id,
                view: desk::view(listed, now, self.browsers.name()),
                owner: listed.session.owner.to_string(),
                current: current == Some(listed.session.id),
                tokens: spent.get(&listed.session.id).copied().unwrap_or_default(),
            };
            let rows: Vec<Row> = listed.into_iter().map(row).collect();
            Ok((rows, current.and_then(|id| registry.session(id)).map(tabmux_core::Session::handle)))
        })?;
        self.freshen(&self.reach_of(client), rows.iter_mut().map(|row| (row.session, &mut row.view))).await;
        let mut answer = json!({"sessions": rows, "currentSession": current});
        self.settings.secrets.hide_value(&mut answer);
        Ok(answer)
    }

    /// What this client may see, who may be nobody but the holder of a grant.
    pub(super) fn reach_of(&self, client: ClientId) -> Reach {
        Reach::of(self.look(|registry| registry.held_by(client)))
    }

    /// Comes when it is known what became of the sessions of a former daemon, or after a while.
    pub(super) async fn all_taken_up(&self) {
        let handles: Vec<_> = self.lock().sessions.values().cloned().collect();
        let taken_up = futures::future::join_all(handles.iter().map(SessionHandle::taken_up));
        drop(tokio::time::timeout(TAKING_UP, taken_up).await);
    }

    /// Where its page is and what it takes, a session's task knows better than the registry. A grant for some sites shows no others.
    pub(super) async fn freshen<'a>(&self, reach: &Reach, views: impl Iterator<Item = (SessionId, &'a mut SessionView)>) {
        let known = views.filter_map(|(id, view)| Some((self.handle(id)?, view)));
        let freshening = known.map(|(handle, view)| async move {
            view.url = handle.url().or(view.url.take()).filter(|url| reach.covers(url));
            view.memory_kb = handle.memory_kb().await;
            if view.hint.is_some()
                && let Some(hint) = handle.way_back().await
            {
                view.hint = Some(hint);
            }
        });
        futures::future::join_all(freshening).await;
    }
}

/// Everybody's sessions. An id that a client only reserved is none yet (S1.14).
fn everybodys(registry: &Registry) -> Vec<Listed<'_>> {
    registry.list_all().into_iter().filter(|listed| !listed.session.is_reservation()).collect()
}

/// Resident memory of this process.
fn memory_kb() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
