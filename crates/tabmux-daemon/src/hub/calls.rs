//! One call, in a straight line: find the tool, take the common arguments, be admitted, wait for the turn, run, answer.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use serde_json::Map;
use tabmux_core::{
    Admitted, CallId, ClientId, Code, Deed, Fault, Grant, Lane, Party, Right, SessionId, TabNumber, TabRef, Touch, Uuid, ways_out,
};
use tabmux_mcp::{Dispatch, ToolAnswer, ToolCall};
use tabmux_tools::{Arguments, Called, Common, Content, Group, OpenSession, PageTool, Run, Tool, ToolResult};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::desk::CallerDesk;
use super::reply::Answer;
use super::{CallerOf, Hub, State};
use crate::secrets::Hidden;
use crate::session::{After, Errand, Job, Limit, SessionHandle, Turn, Work};

/// A call may ask for at most this much time (C1).
const LONGEST: Duration = Duration::from_secs(600);

/// A session ends its call at the deadline itself, and says what it waited for; it has this long to do so.
const LAST_WORD: Duration = Duration::from_millis(250);

/// One call of a tool, before anything was decided about it.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) caller: CallerOf,
    pub(crate) tool: String,
    pub(crate) args: Arguments,
    pub(crate) cancel: CancellationToken,
    /// How long the caller has waited for it already, at a daemon that is gone.
    pub(crate) waited: Duration,
}

impl Ask {
    pub(crate) fn new(caller: CallerOf, tool: String, args: Arguments, cancel: CancellationToken) -> Self {
        Self { caller, tool, args, cancel, waited: Duration::ZERO }
    }
}

/// The hub as the MCP room sees it.
#[derive(Clone, Debug)]
pub(crate) struct Doorway(pub(crate) Arc<Hub>);

impl Dispatch for Doorway {
    fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>> {
        let caller = CallerOf { client: call.client, agent: call.agent };
        let ask = Ask { caller, tool: call.tool, args: call.args, cancel: call.cancel, waited: call.waited };
        Box::pin(self.0.run_tool(ask))
    }
}

impl Hub {
    /// Runs one tool for one caller, whatever door it came through.
    pub(crate) async fn run_tool(self: &Arc<Self>, ask: Ask) -> ToolAnswer {
        self.run_on(ask, None).await
    }

    /// The same where the tab is named by its number in the whole daemon (S2.14).
    pub(crate) async fn run_on(self: &Arc<Self>, mut ask: Ask, number: Option<TabNumber>) -> ToolAnswer {
        let _visit = match Visit::begin(self) {
            Entrance::Open(visit) => visit,
            Entrance::NextDaemon if self.asks_once(ask.caller.client) => {
                return ToolAnswer { outcome: Err(stopping()), result: Map::new() };
            }
            // This call was not run, and the shim sends it again to the next daemon.
            Entrance::NextDaemon => {
                self.hold(ask.caller.client, self.deadline_of(&ask)).await;
                return ToolAnswer { outcome: Err(left_over()), result: Map::new() };
            }
        };
        let caller = ask.caller.client;
        let name = ask.tool.chars().take(64).collect::<String>();
        let answering = async {
            match self.prepare(&mut ask) {
                Ok((tool, common)) => self.dispatch(tool, common, ask, number, LONGEST).await,
                Err(fault) => Answer::refused(fault),
            }
        };
        let mut answer = self.logged(caller, &name, answering).await.framed();
        // The one answer that a capability is for.
        let hidden = if name == "share_session" && answer.outcome.is_ok() { Hidden::Registered } else { Hidden::All };
        self.settings.secrets.hide_in(&mut answer, hidden);
        self.count_tokens(&answer);
        answer
    }

    /// Until when the caller waits for a call of which nothing has been read.
    fn deadline_of(&self, ask: &Ask) -> Instant {
        let timeout = tabmux_tools::common(&mut ask.args.clone()).ok().and_then(|common| common.timeout);
        Limit::of(timeout.unwrap_or(self.settings.clocks.call_deadline).min(LONGEST), ask.waited).deadline
    }

    /// What the caller pays for reading this. Pictures are left out: what they cost depends on who looks at them.
    fn count_tokens(&self, answer: &ToolAnswer) {
        let of = |content: &Content| if let Content::Text(text) = content { tabmux_tools::tokens(text) } else { 0 };
        let tokens: usize = match &answer.outcome {
            Ok(reply) => reply.content.iter().map(of).sum(),
            Err(fault) => tabmux_tools::tokens(&fault.to_string()),
        };
        let tokens = u64::try_from(tokens).unwrap_or(u64::MAX);
        self.counters.tokens.fetch_add(tokens, Ordering::Relaxed);
        let session = answer.result.get("id").and_then(serde_json::Value::as_str).and_then(|id| id.parse::<SessionId>().ok());
        if let Some(session) = session {
            let mut state = self.lock();
            // One that is gone has nobody to show it to.
            if state.sessions.contains_key(&session) {
                *state.spent.entry(session).or_default() += tokens;
            }
        }
    }

    /// About how many tokens each session's replies have had.
    pub(super) fn spent(&self) -> std::collections::HashMap<SessionId, u64> {
        self.lock().spent.clone()
    }

    /// Runs a tool within a call that has entered already. A daemon that makes way for another finishes what it has begun.
    pub(super) async fn run_step(self: &Arc<Self>, caller: CallerOf, tool: &'static Tool, mut args: Arguments, most: Duration) -> Called {
        let (client, name) = (caller.client, tool.name);
        let answering = async {
            if self.stopping.is_cancelled() && !self.is_yielding() {
                return Answer::refused(stopping());
            }
            match tabmux_tools::common(&mut args) {
                Ok(common) => {
                    let ask = Ask::new(caller, name.to_owned(), args, CancellationToken::new());
                    self.dispatch(tool, common, ask, None, most.min(LONGEST)).await
                }
                Err(fault) => Answer::refused(fault),
            }
        };
        self.logged(client, name, answering).await.called()
    }

    async fn logged(&self, client: ClientId, tool: &str, answering: impl Future<Output = Answer>) -> Answer {
        let began = Instant::now();
        self.counters.calls.fetch_add(1, Ordering::Relaxed);
        let answer = answering.await;
        let code = answer.outcome.as_ref().err().map(|fault| fault.code.name());
        if code.is_some() {
            self.counters.faults.fetch_add(1, Ordering::Relaxed);
        }
        let session = answer.result.get("sessionId").and_then(serde_json::Value::as_str).unwrap_or("-");
        tracing::info!(%client, session, tool, ms = began.elapsed().as_millis(), outcome = code.unwrap_or("ok"), "call");
        answer
    }

    async fn dispatch(self: &Arc<Self>, tool: &Tool, mut common: Common, ask: Ask, number: Option<TabNumber>, most: Duration) -> Answer {
        // The envelope's tab wins over one inside it.
        if let Some(number) = number {
            common.tab = Some(number.to_string());
        }
        let limit = Limit::of(common.timeout.unwrap_or(self.settings.clocks.call_deadline).min(most), ask.waited);
        let watched = if let Run::Page(page_tool) = tool.run { page_tool.watches(&ask.args) } else { None };
        let source = ask.args.get("from").and_then(serde_json::Value::as_str);
        let used = self.begin_use(&ask.caller, &[watched.as_deref(), common.session.as_deref(), source], tool.name);
        let caller = ask.caller.clone();
        let mut answer = self.run_where_it_runs(tool, common, number, ask, limit).await;
        if let Some(used) = used {
            if answer.outcome.is_ok() {
                answer.add_news(used.untold(&caller));
            }
            used.ends(answer.outcome.as_ref().err().map(|fault| fault.code));
        }
        answer
    }

    async fn run_where_it_runs(self: &Arc<Self>, tool: &Tool, common: Common, number: Option<TabNumber>, ask: Ask, limit: Limit) -> Answer {
        match tool.run {
            Run::Desk(desk_tool) => {
                if let Err(fault) = self.decide_now(|registry, now| registry.authorize(ask.caller.client, now)) {
                    return Answer::refused(fault);
                }
                let Ask { caller, args, cancel, .. } = ask;
                let desk = CallerDesk::new(Arc::clone(self), caller, limit.deadline);
                let outcome = self.isolated(desk_tool.run(&desk, &common, args), limit.deadline, &cancel).await;
                super::reply::of_desk(outcome, desk.facts())
            }
            Run::Page(page_tool) => {
                let errand = Errand { tool: page_tool, after: After::of(tool), name: tool.name, touch: tool.touch(&ask.args) };
                self.page_call(errand, common, number, ask, limit).await
            }
        }
    }

    fn prepare(&self, ask: &mut Ask) -> Result<(&'static Tool, Common), Fault> {
        if self.stopping.is_cancelled() {
            return Err(stopping());
        }
        let tool = tabmux_tools::named(&ask.tool)?;
        let common = tabmux_tools::common(&mut ask.args)?;
        // A sequence fills its steps in itself, one by one.
        if tool.group != Group::Many {
            let secrets = &self.settings.secrets;
            tabmux_tools::fill(tool, &mut ask.args, &|argument, inside| secrets.find(argument, inside))?;
        }
        Ok((tool, common))
    }

    /// Runs a future under deadline and cancel; a panic in it ends this call only. It runs on the caller's task,
    /// because what it decides at once must be decided in the order the calls came.
    async fn isolated(
        self: &Arc<Self>,
        run: impl Future<Output = ToolResult> + Send,
        deadline: Instant,
        cancel: &CancellationToken,
    ) -> ToolResult {
        tokio::select! {
            biased;
            ended = AssertUnwindSafe(run).catch_unwind() => ended.unwrap_or_else(|_| Err(self.panicked())),
            () = tokio::time::sleep_until(deadline + LAST_WORD) => Err(timed_out()),
            () = cancel.cancelled() => Err(cancelled()),
        }
    }

    /// What a panic becomes; the panic itself is in the log.
    pub(crate) fn panicked(&self) -> Fault {
        self.counters.panics.fetch_add(1, Ordering::Relaxed);
        Fault::new(
            Code::Internal,
            "The call failed inside tabmux; nothing else was harmed.",
            "Please report it with the log (`tabmux logs`).",
        )
    }

    async fn page_call(self: &Arc<Self>, errand: Errand, common: Common, number: Option<TabNumber>, ask: Ask, limit: Limit) -> Answer {
        match self.admit(errand, common, number, &ask.caller, ask.args, limit) {
            Err(fault) => Answer::refused(fault),
            Ok(pending) => {
                let (admitted, turn, made, session) = (pending.admitted, pending.turn, pending.made.clone(), pending.guard.handle.clone());
                // Who only looks hears no news; who may see some sites only is not told of the others.
                let hears = |grant: &Arc<Grant>| grant.right > Right::Read && grant.domains.is_empty();
                let (party, hears_news) = (admitted.party, turn != Turn::Watching && pending.grant.as_ref().is_none_or(hears));
                let mut undo = UndoUnused { hub: self, session: made.is_some().then_some(admitted.session) };
                let outcome = pending.wait(&ask.cancel).await;
                // Nor does a lost caller, by a reply that does not reach it, nor who drove the session until another took it over.
                let heard = |registry: &tabmux_core::Registry| {
                    let listed = registry.listing(admitted.session);
                    listed.is_none_or(|listed| !listed.orphaned && listed.session.epoch == admitted.epoch)
                };
                let hears_news = hears_news && (party != Party::Owner || self.look(heard));
                // One that ran out of time does: a slow browser is found started by the next call.
                if outcome.as_ref().map_or_else(|fault| fault.code == Code::Timeout, |_| true) {
                    undo.session = None;
                    if made.is_some() {
                        self.decide_now(|registry, _| registry.finish_making(admitted.session));
                    }
                }
                drop(undo);
                super::reply::of_page(self, outcome, &admitted, made, || if hears_news { session.take_news(party) } else { Vec::new() })
            }
        }
    }

    /// The ownership decision, and a place in the session's queue, in one breath. `navigate` and `new_page` make
    /// the session in it too when the caller has none, so that two of them at once share one (C8).
    fn admit(
        self: &Arc<Self>,
        errand: Errand,
        mut common: Common,
        number: Option<TabNumber>,
        caller: &CallerOf,
        args: Arguments,
        limit: Limit,
    ) -> Result<Pending, Fault> {
        let watched = errand.tool.watches(&args);
        let turn = match (&watched, errand.tool.skips_queue()) {
            (Some(_), _) => Turn::Watching,
            (None, true) => Turn::Beside,
            (None, false) => Turn::Queue,
        };
        common.session = watched.or(common.session);
        let tab = number.map(TabRef::Global).or_else(|| common.tab.as_deref().map(TabRef::Local));
        let mut state = self.lock();
        let admitted =
            self.admit_locked(&mut state, (errand, turn, &args), common.session.as_deref(), tab, caller).and_then(|(admitted, made)| {
                let handle = state.sessions.get(&admitted.session).cloned();
                if handle.is_none() {
                    state.registry.finish(admitted.call, self.clock.now());
                }
                Ok((admitted, made, handle.ok_or_else(gone)?))
            });
        let written = self.carry_out(&mut state);
        let (admitted, made, handle) = match admitted {
            Ok(admitted) => admitted,
            Err(fault) => {
                drop(state);
                self.watch_over(written);
                return Err(fault);
            }
        };
        let (end, ended) = oneshot::channel();
        state.enders.insert(admitted.call.0, end);
        let (reply, answer) = oneshot::channel();
        let abort = CancellationToken::new();
        // However the call named it: the session's own id from here on.
        common.tab = admitted.tab.map(|tab| tab.to_string());
        let grant = state.registry.grant_of(admitted.call);
        handle.submit(Job { admitted, written, grant: grant.clone(), errand, common, args, turn, limit, abort: abort.clone(), reply });
        let guard = CallGuard { hub: Arc::clone(self), call: admitted.call, handle, abort };
        Ok(Pending { admitted, grant, turn, made, deadline: limit.deadline, answer, ended, guard })
    }

    fn admit_locked(
        self: &Arc<Self>,
        state: &mut State,
        (errand, turn, args): (Errand, Turn, &Arguments),
        session: Option<&str>,
        tab: Option<TabRef<'_>>,
        caller: &CallerOf,
    ) -> Result<(Admitted, Option<String>), Fault> {
        let now = self.clock.now();
        let deed = Deed { tool: errand.name, touch: errand.touch };
        let lane = if turn == Turn::Queue { Lane::Queue } else { Lane::Beside };
        let refused = match state.registry.admit(lane, caller.as_caller(), session, tab, deed, now) {
            Ok(admitted) => return Ok((admitted, None)),
            Err(refused) => refused,
        };
        // A call that names a tab means one that is there already.
        let none_yet = session.is_none() && tab.is_none() && state.registry.owns_none(caller.as_caller());
        if !(errand.tool.makes_session() && none_yet && matches!(refused.code, Code::SessionRequired | Code::SessionClosed)) {
            return Err(refused);
        }
        // For a call that cannot succeed none is made.
        errand.tool.check(args, &self.settings.chromium.domains)?;
        let opened = self.reserve_locked(state, caller, &OpenSession::default())?;
        let handle = state.registry.session(opened.session).map(tabmux_core::Session::handle);
        let admitted = state.registry.admit(lane, caller.as_caller(), handle.as_deref(), None, deed, now)?;
        // Why the caller has none any more is said with the new one.
        let ended = (refused.code == Code::SessionClosed).then_some(refused.message);
        let warning: Vec<String> = ended.into_iter().chain(opened.warning).collect();
        Ok((admitted, Some(warning.join("\n"))))
    }

    /// Runs a page tool in a session the daemon itself names (the first page of a new session).
    pub(super) async fn run_inside(
        self: &Arc<Self>,
        caller: &CallerOf,
        session: Uuid,
        tool: &'static dyn PageTool,
        args: Arguments,
        deadline: Instant,
    ) -> Result<Work, Fault> {
        let common = Common { session: Some(session.to_string()), ..Common::default() };
        let errand = Errand { tool, after: After::Nothing, name: "new_page", touch: Touch::Acts };
        // It was there a moment ago: who does not find it now comes after somebody who ended it.
        let ended = |fault: Fault| if fault.code == Code::SessionNotFound { gone() } else { fault };
        let pending = self.admit(errand, common, None, caller, args, Limit::until(deadline)).map_err(ended)?;
        pending.wait(&CancellationToken::new()).await
    }

    /// The call has ended; the second time says nothing new.
    pub(crate) fn finish(self: &Arc<Self>, call: CallId) {
        let mut state = self.lock();
        state.registry.finish(call, self.clock.now());
        state.enders.remove(&call.0);
    }

    /// The call's turn has come.
    pub(crate) fn begin(self: &Arc<Self>, call: CallId) -> Result<(), Fault> {
        self.decide_now(|registry, _| registry.begin(call))
    }
}

/// An admitted call that somebody waits for. Dropping it ends the call, wherever it is.
struct Pending {
    admitted: Admitted,
    /// What admitted it, if that was no more than a grant.
    grant: Option<Arc<Grant>>,
    turn: Turn,
    /// A session was made for this call; its warning, if any.
    made: Option<String>,
    deadline: Instant,
    answer: oneshot::Receiver<Result<Work, Fault>>,
    /// The call was ended from outside.
    ended: oneshot::Receiver<Fault>,
    guard: CallGuard,
}

impl Pending {
    /// Whatever ends the call first. What the registry decided counts before what the session's task made of it.
    async fn wait(self, cancel: &CancellationToken) -> Result<Work, Fault> {
        let over = async {
            tokio::time::sleep_until(self.deadline).await;
            if self.guard.handle.is_waiting(self.admitted.call) {
                return not_begun();
            }
            tokio::time::sleep_until(self.deadline + LAST_WORD).await;
            timed_out()
        };
        tokio::select! {
            biased;
            Ok(fault) = self.ended => Err(fault),
            Ok(work) = self.answer => work,
            fault = over => Err(fault),
            () = cancel.cancelled() => Err(cancelled()),
        }
    }
}

/// A call that came to nothing or was given up leaves no session behind, unless something is in it already (S3.25).
struct UndoUnused<'a> {
    hub: &'a Arc<Hub>,
    session: Option<SessionId>,
}

impl Drop for UndoUnused<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.session {
            self.hub.decide_now(|registry, _| registry.undo_unused(session));
        }
    }
}

/// Ends the call when its caller stops waiting for it, for whatever reason.
struct CallGuard {
    hub: Arc<Hub>,
    call: CallId,
    handle: SessionHandle,
    abort: CancellationToken,
}

impl Drop for CallGuard {
    fn drop(&mut self) {
        self.abort.cancel();
        // First in the registry: a session's task that finds a job gone from its mailbox must not find it waiting there.
        self.hub.finish(self.call);
        self.handle.withdraw(self.call);
    }
}

/// One call inside the hub: while there is one, the daemon does not exit for want of work.
struct Visit<'a> {
    hub: &'a Arc<Hub>,
    /// Gone before anybody is told that this call has left.
    among: Option<TaskTrackerToken>,
}

enum Entrance<'a> {
    Open(Visit<'a>),
    /// This one has nothing to do and exits, or makes way for a newer one.
    NextDaemon,
}

impl<'a> Visit<'a> {
    fn begin(hub: &'a Arc<Hub>) -> Entrance<'a> {
        let mut state = hub.lock();
        if hub.is_yielding() || !state.registry.enter() {
            return Entrance::NextDaemon;
        }
        let among = Some(state.visits.token());
        drop(state);
        Entrance::Open(Self { hub, among })
    }
}

impl Drop for Visit<'_> {
    fn drop(&mut self) {
        self.among.take();
        self.hub.lock().registry.leave();
        self.hub.changed.notify_one();
    }
}

fn gone() -> Fault {
    Fault::new(Code::SessionClosed, "The session was closed.", ways_out::NEW_SESSION)
}

pub(crate) fn timed_out() -> Fault {
    let message = "The call did not finish before its deadline and was stopped.";
    Fault::new(Code::Timeout, message, "Look at the page before you try again, or pass a longer timeout (ms, at most 600000).")
}

fn not_begun() -> Fault {
    let message = "What came before it in this session, or a browser that answers nobody, took all of this call's time; it was not begun.";
    let hint = "Call again with a longer timeout (ms, at most 600000); a call that runs on there ends with close_page or close_session.";
    Fault::new(Code::Timeout, message, hint)
}

pub(crate) fn stopping() -> Fault {
    let hint = "Call again: the next call starts a new daemon.";
    Fault::new(Code::Cancelled, "The daemon is stopping; the call was not run.", hint)
}

fn left_over() -> Fault {
    let message = "This daemon ends, and the call's time was over before the next one could begin it.";
    Fault::new(Code::Timeout, message, "Call again, perhaps with a longer timeout (ms, at most 600000).")
}

fn cancelled() -> Fault {
    Fault::new(Code::Cancelled, "The call was cancelled.", "Call again if it is still wanted.")
}
