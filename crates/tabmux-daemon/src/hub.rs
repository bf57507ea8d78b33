//! Where callers, sessions and browsers meet. One short lock around the registry, never held across an await:
//! a call asks the registry once, gets an `Admitted` (the permit without which nothing executes), goes into
//! its session's queue, and comes back. Every call ends exactly once: with its reply, its deadline, a cancel,
//! or because its session ended.

mod calls;
mod desk;
mod fork;
mod housekeeping;
mod reply;
mod sessions;
mod shares;
mod status;
mod succession;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};
use tabmux_core::{Caller, ClientId, Effect, Fault, Identity, Leave, Link, Millis, Registry, Rules, SessionId};
use tabmux_driver::failpoint;
use tokio::sync::{Notify, Semaphore, oneshot, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::audit::Audit;
use crate::browser::Browsers;
use crate::clock::Clock;
use crate::journal::JournalError;
use crate::session::SessionHandle;
use crate::settings::Settings;
use crate::sources::Sources;
use crate::store::{Remembered, Safe, Store};

pub(crate) use calls::{Ask, Doorway, stopping, timed_out};
pub(crate) use desk::CallerDesk;
pub(crate) use fork::{ForkOf, New, told};
pub(crate) use sessions::{isolation_name, isolation_of};
pub(crate) use shares::digest;

/// How many sessions of a former daemon are looked for at once.
const TAKEN_UP_AT_ONCE: usize = 2;

/// See the module's first lines.
#[derive(Debug)]
pub(crate) struct Hub {
    pub(crate) settings: Settings,
    pub(crate) clock: Clock,
    pub(crate) browsers: Browsers,
    pub(crate) store: Store,
    pub(crate) sources: Sources,
    audit: Audit,
    state: Mutex<State>,
    /// A newer daemon has asked for the place.
    way_is_wanted: CancellationToken,
    /// The daemon is ending: no new calls.
    pub(crate) stopping: CancellationToken,
    /// Why, for the goodbye.
    farewell: Mutex<Option<&'static str>>,
    /// A call has left; who drains looks again.
    changed: Notify,
    /// Calls that came too late for this daemon, by client; they wait here unanswered, for the next one.
    held: watch::Sender<HashMap<ClientId, usize>>,
    /// Finding a former daemon's sessions again before anybody calls must not hold up those who do.
    pub(crate) taking_up: Semaphore,
    /// The journal has grown long.
    untidy: Notify,
    pub(crate) counters: Counters,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) calls: AtomicU64,
    pub(crate) faults: AtomicU64,
    pub(crate) panics: AtomicU64,
    pub(crate) journal_faults: AtomicU64,
    /// Of all replies, about.
    pub(crate) tokens: AtomicU64,
}

#[derive(Debug)]
struct State {
    registry: Registry,
    sessions: HashMap<SessionId, SessionHandle>,
    /// The calls that are here; once a newer daemon wants the place, those that came since.
    visits: TaskTracker,
    /// How to end a call that waits or runs.
    enders: HashMap<u64, oneshot::Sender<Fault>>,
    profiles: HashMap<ClientId, Arc<Profile>>,
    /// About how many tokens each session's replies have had.
    spent: HashMap<SessionId, u64>,
}

/// What a peer said of itself when it came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Profile {
    /// For people: program, pid, or the client's own name.
    pub(crate) label: String,
    /// `--session NAME`.
    pub(crate) session_name: Option<String>,
    /// What `start_browser` takes when a call does not say.
    pub(crate) defaults: Map<String, Value>,
    /// It does not send a call again that was left to the next daemon, as those on the socket do.
    pub(crate) asks_once: bool,
}

impl Hub {
    /// Reads the journal and begins with what a former daemon knew.
    pub(crate) fn new(settings: Settings) -> Result<Arc<Self>, JournalError> {
        let (store, remembered) = Store::open(&settings.paths.state_dir)?;
        let browsers = Browsers::new(&settings, &remembered.sessions);
        Ok(Self::of_parts(settings, browsers, (store, remembered)))
    }

    /// A hub of given parts, so that tests can bring a browser or a disk of their own.
    pub(crate) fn of_parts(settings: Settings, browsers: Browsers, (store, remembered): (Store, Remembered)) -> Arc<Self> {
        let clock = Clock::start();
        store.leave_out(settings.secrets.clone());
        let mut registry = Registry::new(rules(&settings), clock.now());
        registry.restore(remembered.sessions, remembered.currents, remembered.grants, remembered.next_tab, clock.now());
        let hub = Arc::new(Self {
            clock,
            browsers,
            store,
            sources: Sources::default(),
            audit: Audit::at(&settings.paths.state_dir),
            state: Mutex::new(State {
                registry,
                sessions: HashMap::new(),
                visits: TaskTracker::new(),
                enders: HashMap::new(),
                profiles: HashMap::new(),
                spent: HashMap::new(),
            }),
            way_is_wanted: CancellationToken::new(),
            stopping: CancellationToken::new(),
            farewell: Mutex::new(None),
            changed: Notify::new(),
            held: watch::Sender::default(),
            taking_up: Semaphore::new(TAKEN_UP_AT_ONCE),
            untidy: Notify::new(),
            counters: Counters::default(),
            settings,
        });
        hub.take_up_sessions();
        hub
    }

    /// The one lock. What the registry wants done and written follows before it is released, in order.
    pub(crate) fn decide<T>(self: &Arc<Self>, ask: impl FnOnce(&mut Registry, Millis) -> T) -> (T, Safe) {
        let mut state = self.lock();
        let answer = ask(&mut state.registry, self.clock.now());
        let safe = self.carry_out(&mut state);
        (answer, safe)
    }

    /// Like `decide`, for decisions nobody must wait for the disk for. A failed write is counted and said in the log.
    pub(crate) fn decide_now<T>(self: &Arc<Self>, ask: impl FnOnce(&mut Registry, Millis) -> T) -> T {
        let (answer, safe) = self.decide(ask);
        self.watch_over(safe);
        answer
    }

    /// Reads without changing anything.
    pub(crate) fn look<T>(&self, ask: impl FnOnce(&Registry) -> T) -> T {
        ask(&self.lock().registry)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn carry_out(self: &Arc<Self>, state: &mut State) -> Safe {
        let persists = state.registry.take_persists();
        let effects = state.registry.take_effects();
        for effect in effects {
            match effect {
                Effect::EndCall { call, fault } => {
                    if let Some(ender) = state.enders.remove(&call.0) {
                        // The caller may have gone; then nobody is left to tell.
                        drop(ender.send(fault));
                    }
                }
                Effect::Close { session, why } => {
                    tracing::info!(%session, ?why, "session ends");
                    failpoint("close-deciding");
                    if let Some(handle) = state.sessions.get(&session) {
                        handle.stop.cancel();
                    }
                }
                Effect::TakenOver { session, was } => {
                    if let Some((handle, record)) = state.sessions.get(&session).zip(state.registry.session(session)) {
                        handle.was_taken_over(shares::taken_over(record, handle, was.as_deref()));
                    }
                }
                Effect::Exit => self.say_farewell("empty"),
            }
        }
        let safe = self.store.keep(persists);
        if self.store.wants_snapshot() {
            self.untidy.notify_one();
        }
        safe
    }

    /// Waits until every decision made so far is written down.
    pub(crate) async fn on_record(&self) {
        let safe = {
            // What was decided is queued before the lock is let go of.
            let _state = self.lock();
            self.store.all_so_far()
        };
        self.settled(safe).await;
    }

    /// Waits for a write in the background.
    pub(crate) fn watch_over(self: &Arc<Self>, safe: Safe) {
        if safe.is_nothing() {
            return;
        }
        let hub = Arc::clone(self);
        tokio::spawn(async move { hub.settled(safe).await });
    }

    /// Waits for a write whose failure changes nothing any more. What is missing on disk then is said in the log and
    /// made good by a snapshot as soon as there is room.
    pub(crate) async fn settled(&self, safe: Safe) {
        if let Err(fault) = safe.written().await {
            self.counters.journal_faults.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            tracing::warn!(%fault, "the journal could not be written");
            self.store.fell_behind();
        }
    }

    /// A peer came. `None` when the daemon has decided to exit: it must connect again.
    pub(crate) fn attach(self: &Arc<Self>, identity: Identity, link: Link, profile: Profile) -> Option<ClientId> {
        let mut state = self.lock();
        // Deciding to exit and saying so happen under the same lock.
        if self.stopping.is_cancelled() {
            return None;
        }
        tracing::info!(identity = %identity, label = profile.label, "client attached");
        let client = state.registry.attach(identity, link, self.clock.now());
        state.profiles.insert(client, Arc::new(profile));
        let safe = self.carry_out(&mut state);
        drop(state);
        self.watch_over(safe);
        Some(client)
    }

    pub(crate) fn detach(self: &Arc<Self>, client: ClientId, leave: Leave) {
        tracing::info!(%client, ?leave, "client detached");
        let mut state = self.lock();
        // It did not leave: it goes over to the next daemon.
        if self.is_yielding() {
            return;
        }
        state.registry.detach(client, leave, self.clock.now());
        state.profiles.remove(&client);
        let safe = self.carry_out(&mut state);
        drop(state);
        self.watch_over(safe);
    }

    pub(crate) fn handle(&self, session: SessionId) -> Option<SessionHandle> {
        self.lock().sessions.get(&session).cloned()
    }

    /// The daemon ends, for this reason. The first reason counts.
    pub(crate) fn say_farewell(&self, reason: &'static str) {
        self.farewell.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.stopping.cancel();
    }

    pub(crate) fn farewell(&self) -> &'static str {
        self.farewell.lock().unwrap_or_else(PoisonError::into_inner).unwrap_or("stop")
    }
}

fn rules(settings: &Settings) -> Rules {
    let ms = |clock: Option<std::time::Duration>| clock.map(|clock| u64::try_from(clock.as_millis()).unwrap_or(u64::MAX));
    Rules {
        session_idle_ms: ms(settings.clocks.session_idle),
        orphan_grace_ms: ms(settings.clocks.orphan_grace),
        exit_when_empty_ms: if settings.supervised { None } else { ms(settings.clocks.exit_when_empty) },
        on_lost: settings.on_lost,
        warn_sessions: settings.limits.warn_sessions,
        max_sessions: settings.limits.max_sessions,
        max_clones: settings.limits.max_clones,
        max_waiting: settings.limits.queue,
        scoping: settings.windows.scoping,
        digest,
    }
}

/// A peer that is here; it is lost when this goes, however that comes about.
#[derive(Debug)]
pub(crate) struct Presence {
    hub: Arc<Hub>,
    pub(crate) client: ClientId,
}

impl Presence {
    pub(crate) fn begin(hub: &Arc<Hub>, identity: Identity, link: Link, profile: Profile) -> Option<Self> {
        hub.attach(identity, link, profile).map(|client| Self { hub: Arc::clone(hub), client })
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        self.hub.detach(self.client, Leave::Lost);
    }
}

/// A caller that does not borrow.
#[derive(Clone, Debug)]
pub(crate) struct CallerOf {
    pub(crate) client: ClientId,
    pub(crate) agent: Option<String>,
}

impl CallerOf {
    pub(crate) fn of(client: ClientId) -> Self {
        Self { client, agent: None }
    }

    pub(crate) fn as_caller(&self) -> Caller<'_> {
        Caller { client: self.client, agent: self.agent.as_deref() }
    }
}
