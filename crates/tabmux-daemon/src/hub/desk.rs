//! What one caller can do with its sessions.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use tabmux_core::{Code, Fault, Listed, Phase, Session, SessionId, Share, ways_out};
use tabmux_driver::{Domains, HOUSEKEEPING, failpoint};
use tabmux_tools::{Arguments, Called, Desk, Forked, GrantView, OpenSession, Run, SessionList, SessionView, Tool, visible_line};
use tokio::time::Instant;

use super::{CallerOf, ForkOf, Hub};
use crate::clock::{self, Moment};
use crate::session::Reach;

/// What is known of a lost session without asking its task.
const LOST: &str = "Its browser was lost; the next call starts it afresh.";

#[derive(Debug)]
pub(crate) struct CallerDesk {
    hub: Arc<Hub>,
    caller: CallerOf,
    deadline: Instant,
    /// For programs, beside the answer.
    facts: Mutex<Map<String, Value>>,
}

impl CallerDesk {
    pub(crate) fn new(hub: Arc<Hub>, caller: CallerOf, deadline: Instant) -> Self {
        Self { hub, caller, deadline, facts: Mutex::default() }
    }

    pub(super) fn facts(self) -> Map<String, Value> {
        self.facts.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn view_of(&self, id: SessionId) -> Option<SessionView> {
        let now = self.hub.clock.moment();
        self.hub.look(|registry| registry.listing(id).map(|listed| view(listed, now, self.hub.browsers.name())))
    }

    /// The first page did not come as it was asked for. Where there is one to go on with (it opened a dialog, it loads for longer than
    /// the call might take), the session stays, and the way out leads into it; else nothing is left, and the way out begins anew.
    fn not_opened(&self, id: SessionId, fault: Fault) -> Fault {
        let kept = self.hub.decide_now(|registry, _| {
            registry.undo_unused(id);
            registry.session(id).filter(|session| session.phase != Phase::Closing).map(Session::handle)
        });
        if let Some(name) = kept {
            let message = format!("{} Session '{}' was started and is kept.", fault.message, visible_line(&name));
            self.tell("sessionId", name.into());
            return Fault { message, ..fault };
        }
        let hint = match fault.code {
            Code::NavigationFailed => fault.hint,
            Code::Timeout => "Start it again with a longer timeout (ms, at most 600000).".to_owned(),
            _ => return fault,
        };
        Fault { message: format!("{} No session was started.", fault.message), hint, ..fault }
    }

    /// Waits until nothing of the sessions is left in a browser; bounded, because a driver may hang.
    async fn until_gone(&self, ids: &[SessionId]) {
        let gone = ids.iter().filter_map(|id| self.hub.handle(*id)).map(|handle| handle.done.cancelled_owned());
        let waited = tokio::time::timeout(HOUSEKEEPING, futures::future::join_all(gone)).await;
        if waited.is_err() {
            tracing::warn!(?ids, "closing takes long; it goes on in the background");
        }
    }
}

#[async_trait]
impl Desk for CallerDesk {
    async fn open(&self, open: OpenSession) -> Result<SessionView, Fault> {
        let opened = self.hub.reserve(&self.caller, &open)?;
        let mut undo = Undo { hub: &self.hub, session: Some(opened.session) };
        let Some(Run::Page(new_page)) = tabmux_tools::find("new_page").map(|tool| tool.run) else {
            return Err(Fault::new(Code::Internal, "The tool new_page is missing.", "Please report it."));
        };
        let args = open.url.map(|url| Map::from_iter([("url".to_owned(), url.into())])).unwrap_or_default();
        let work = self.hub.run_inside(&self.caller, opened.uuid, new_page, args, self.deadline).await;
        failpoint("open-finished");
        undo.session = None;
        let work = work.map_err(|fault| self.not_opened(opened.session, fault))?;
        let mut view = self.view_of(opened.session).ok_or_else(closed)?;
        let losses = self.hub.handle(opened.session).map(|handle| handle.take_losses()).unwrap_or_default();
        let refused = work.reply.result.get("httpStatus").map(|status| format!("The server answered HTTP {status}."));
        let warnings: Vec<String> = opened.warning.into_iter().chain(refused).chain(losses).collect();
        view.warning = (!warnings.is_empty()).then(|| warnings.join(" "));
        view.tab_id = work.tab.map(|tab| tab.to_string());
        view.url = work.url;
        Ok(view)
    }

    /// Under one lock, so that the list fits together (S3.36); what only the sessions' own tasks know is added to it.
    async fn list(&self) -> SessionList {
        self.hub.all_taken_up().await;
        let caller = self.caller.as_caller();
        let now = self.hub.clock.moment();
        let (mut views, current_session, nobody) = self.hub.look(|registry| {
            let view = |listed: Listed<'_>| (listed.session.id, view(listed, now, self.hub.browsers.name()));
            let views: Vec<(SessionId, SessionView)> = registry.list(caller).into_iter().map(view).collect();
            let current = registry.current(caller).and_then(|id| registry.session(id)).map(Session::handle);
            (views, current, matches!(registry.identity(caller.client), Some(tabmux_core::Identity::Nobody)))
        });
        self.hub.freshen(&self.hub.reach_of(caller.client), views.iter_mut().map(|(id, view)| (*id, view))).await;
        SessionList {
            sessions: views.into_iter().map(|(_, view)| view).collect(),
            current_session,
            note: nobody.then(|| {
                "Callers of this address cannot be told apart, so nothing is listed: pass the sessionId you were given, or use a token or path of your own."
                    .to_owned()
            }),
            is_shared: false,
        }
    }

    async fn list_shared(&self, capability: &str) -> Result<SessionList, Fault> {
        self.hub.all_taken_up().await;
        let (shown, safe) = self.hub.decide(|registry, now| registry.shown_by(self.caller.as_caller(), capability, now));
        self.hub.settled(safe).await;
        let (id, grant) = shown?;
        let mut view = self.view_of(id).ok_or_else(closed)?;
        let note = grant.as_ref().map(|grant| {
            let mode = grant.right.name();
            format!("Shared with you (mode {mode}): go on naming it by the capability, which is in no other list of yours.")
        });
        let is_shared = grant.is_some();
        self.hub.freshen(&Reach::of(grant), [(id, &mut view)].into_iter()).await;
        let current_session = (!is_shared).then(|| view.session_id.clone());
        Ok(SessionList { sessions: vec![view], current_session, note, is_shared })
    }

    async fn set_current(&self, session: &str) -> Result<SessionView, Fault> {
        let (current, safe) = self.hub.decide(|registry, now| registry.set_current(self.caller.as_caller(), session, now));
        self.hub.settled(safe).await;
        let id = current?;
        self.view_of(id).ok_or_else(closed)
    }

    async fn close(&self, session: Option<&str>) -> Result<SessionView, Fault> {
        let moment = self.hub.clock.moment();
        let ((id, closing), safe) = self
            .hub
            .decide(|registry, now| {
                let id = registry.resolve(self.caller.as_caller(), session, now)?;
                let before = registry.listing(id).map(|listed| view(listed, moment, self.hub.browsers.name()));
                registry.close(self.caller.as_caller(), session, now)?;
                Ok::<_, Fault>((id, before))
            })
            .transposed()?;
        self.hub.settled(safe).await;
        self.until_gone(&[id]).await;
        closing.ok_or_else(closed)
    }

    fn domains(&self) -> &Domains {
        &self.hub.settings.chromium.domains
    }

    async fn close_all(&self, detach: bool) -> Result<Vec<SessionView>, Fault> {
        let caller = self.caller.as_caller();
        let moment = self.hub.clock.moment();
        let ((ids, views), safe) = self
            .hub
            .decide(|registry, now| {
                let view = |listed: Listed<'_>| (listed.session.id, view(listed, moment, self.hub.browsers.name()));
                let before: Vec<(SessionId, SessionView)> = registry.list(caller).into_iter().map(view).collect();
                let ids = if detach { registry.detach_all(caller, now)? } else { registry.close_all(caller, now)? };
                // What is only shared with the caller is listed, and stays.
                let closing = before.into_iter().filter(|(id, _)| ids.contains(id)).map(|(_, view)| view).collect();
                Ok::<_, Fault>((ids, closing))
            })
            .transposed()?;
        self.hub.settled(safe).await;
        if detach {
            return Ok(ids.iter().filter_map(|id| self.view_of(*id)).collect());
        }
        self.until_gone(&ids).await;
        Ok(views)
    }

    async fn fork(&self, session: Option<&str>, count: u32, prefix: Option<&str>) -> Result<Forked, Fault> {
        let wanted = ForkOf { session: session.map(str::to_owned), count, prefix: prefix.map(str::to_owned) };
        self.hub.fork(&self.caller, wanted).await
    }

    async fn share(&self, session: Option<&str>, share: Share) -> Result<(String, GrantView), Fault> {
        self.hub.share(&self.caller, session, share).await
    }

    async fn shares(&self, session: Option<&str>) -> Result<Vec<GrantView>, Fault> {
        self.hub.shares(&self.caller, session)
    }

    async fn revoke(&self, session: Option<&str>, which: &str) -> Result<Vec<GrantView>, Fault> {
        self.hub.revoke(&self.caller, session, which).await
    }

    async fn call(&self, tool: &'static Tool, args: Arguments, most: Duration) -> Called {
        let called = self.hub.run_step(self.caller.clone(), tool, args, most).await;
        // What the whole call is about: the first session it came to.
        if let Some(id) = called.outcome.as_ref().ok().and_then(|reply| reply.result.get("id")) {
            self.facts.lock().unwrap_or_else(PoisonError::into_inner).entry("id").or_insert_with(|| id.clone());
        }
        called
    }

    fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    fn secret(&self, name: &str) -> Result<String, Fault> {
        self.hub.settings.secrets.get(name)
    }

    fn tell(&self, key: &str, value: Value) {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).insert(key.to_owned(), value);
    }
}

/// `(Result<T, E>, S)` turned into `Result<(T, S), E>`.
trait Transposed<T, S, E> {
    fn transposed(self) -> Result<(T, S), E>;
}

impl<T, S, E> Transposed<T, S, E> for (Result<T, E>, S) {
    fn transposed(self) -> Result<(T, S), E> {
        self.0.map(|answer| (answer, self.1))
    }
}

/// Takes a session back whose making failed or was given up, with its seat (S3.25).
pub(super) struct Undo<'a> {
    pub(super) hub: &'a Arc<Hub>,
    pub(super) session: Option<SessionId>,
}

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.session {
            self.hub.decide_now(|registry, _| registry.lost(id));
        }
    }
}

/// Whose owner is gone is the first thing to know of a session.
fn state(listed: &Listed<'_>) -> &'static str {
    match (listed.orphaned, listed.session.is_lost()) {
        (true, _) => "orphaned",
        (false, true) => "lost",
        (false, false) => "active",
    }
}

/// A session as its owner sees it.
pub(crate) fn view(listed: Listed<'_>, now: Moment, browser: &str) -> SessionView {
    let session = listed.session;
    SessionView {
        session_id: session.handle(),
        id: session.id.to_string(),
        uuid: session.uuid.to_string(),
        kind: session.kind.name().to_owned(),
        isolation: session.isolation.clone(),
        from: session.source.clone(),
        state: state(&listed).to_owned(),
        hint: session.is_lost().then(|| LOST.to_owned()),
        created_at: clock::iso(session.created_unix_ms),
        age_s: u64::try_from((now.unix_ms - session.created_unix_ms) / 1000).unwrap_or(0),
        last_active_at: now.iso_at(listed.last_used),
        tabs: session.tabs.len(),
        memory_kb: None,
        capabilities: json!({"browserName": browser}),
        warning: None,
        url: session.current_tab.and_then(|tab| session.tabs.get(&tab)).map(|tab| tab.url.clone()),
        tab_id: session.current_tab.map(|tab| tab.to_string()),
    }
}

pub(super) fn closed() -> Fault {
    Fault::new(Code::SessionClosed, "The session was closed meanwhile.", ways_out::NEW_SESSION)
}
