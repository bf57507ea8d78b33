//! Making sessions, plain ones and copies, taking up those of a former daemon, and letting go of those that are gone.

use std::sync::Arc;

use serde_json::{Map, Value};
use tabmux_core::{Code, Fault, Kind, Loss, Minted, Open, Opened, Phase, Seat, Session, SessionId, Uuid};
use tabmux_driver::{Beginning, Certificates, ContextSpec, Domains, Emulation, Isolation, failpoint};
use tabmux_tools::OpenSession;

use super::{CallerOf, Hub, State};
use crate::browser::default_isolation;
use crate::session::{Lasting, Making, SessionHandle};
use crate::sources::Whence;
use crate::storage_state;

/// Said once by a session whose daemon was replaced.
const LOST_SECRETS: &str = "httpCredentials and the proxy's password were lost with the former daemon: they are never written down. \
     Give httpCredentials again with emulate; start the session again for the proxy.";

impl Hub {
    /// Reserves a seat and starts the session's task; the context is made when the first call needs it.
    pub(super) fn reserve_locked(self: &Arc<Self>, state: &mut State, caller: &CallerOf, open: &OpenSession) -> Result<Opened, Fault> {
        let profile = state.profiles.get(&caller.client).cloned().unwrap_or_default();
        let wanted = with_defaults(open, &profile.defaults)?;
        let default_name = profile.session_name.as_deref().filter(|_| state.registry.owns_none(caller.as_caller()));
        let flags = of_flags(&profile.defaults)?;
        let endpoint = flags.endpoint.clone().or_else(|| self.settings.attach.endpoint.clone());
        let whence = wanted.from.as_deref().map(|from| self.whence(&mut state.registry, caller.as_caller(), from, self.clock.now()));
        let whence = whence.transpose()?;
        // Logins often hold only where they were made: a copy goes the same way as its source, unless told another.
        let sources_proxy = || state.sessions.get(&whence.as_ref()?.session()?)?.spec().proxy;
        let proxy = wanted.proxy.or_else(sources_proxy);
        // What it is to begin with needs a world of its own.
        let apart = flags.source.is_some() || proxy.is_some() || whence.is_some();
        let usual = || if apart { Isolation::Context } else { default_isolation(endpoint.as_deref()) };
        let isolation = wanted.isolation.unwrap_or_else(usual);
        let spec = ContextSpec { isolation, headless: wanted.headless, proxy, endpoint, ..flags };
        own_world(&spec, whence.as_ref())?;
        within_policy(&spec, &self.settings.chromium.domains)?;
        self.browsers.check(&spec)?;
        self.seat_locked(state, caller, open.name.as_deref().or(default_name), Making { spec, whence, fork: None })
    }

    /// Takes a seat for a session that is made so; copies have seats of their own (C4).
    pub(super) fn seat_locked(
        self: &Arc<Self>,
        state: &mut State,
        caller: &CallerOf,
        name: Option<&str>,
        making: Making,
    ) -> Result<Opened, Fault> {
        let source = making.whence.as_ref().map(Whence::to_string);
        let open = Open {
            name,
            kind: Kind::Browser,
            seat: if source.is_some() { Seat::Clone } else { Seat::Plain },
            source: source.as_deref(),
            isolation: isolation_name(making.spec.isolation),
            created_unix_ms: crate::clock::unix_ms(),
        };
        let opened = state.registry.reserve(caller.as_caller(), open, mint, self.clock.now())?;
        state.registry.set_unfinished(opened.session);
        state.registry.set_settings(opened.session, &Lasting::of(&making.spec, making.whence.as_ref()).written());
        let handle = SessionHandle::start(Arc::clone(self), opened.session, making);
        state.sessions.insert(opened.session, handle);
        Ok(opened)
    }

    /// Reserves a seat for a caller.
    pub(crate) fn reserve(self: &Arc<Self>, caller: &CallerOf, open: &OpenSession) -> Result<Opened, Fault> {
        let mut state = self.lock();
        let opened = self.reserve_locked(&mut state, caller, open);
        failpoint("open-reserving");
        let safe = self.carry_out(&mut state);
        drop(state);
        failpoint("open-reserved");
        self.watch_over(safe);
        opened
    }

    /// A seat and no more: the caller is told its id, and the first call with that makes the session (S1.14).
    pub(crate) fn register(self: &Arc<Self>, caller: &CallerOf) -> Result<Opened, Fault> {
        let mut state = self.lock();
        let opened = self.reserve_locked(&mut state, caller, &OpenSession::default());
        if let Ok(opened) = &opened {
            state.registry.finish_making(opened.session);
        }
        let safe = self.carry_out(&mut state);
        drop(state);
        self.watch_over(safe);
        opened
    }

    /// Ends those of these sessions that nothing was begun with.
    pub(crate) fn give_up_reservations(self: &Arc<Self>, sessions: &[SessionId]) {
        let mut state = self.lock();
        for id in sessions {
            state.registry.give_up_reservation(*id);
        }
        let safe = self.carry_out(&mut state);
        drop(state);
        self.watch_over(safe);
    }

    /// Starts a task for every session a former daemon left; those half closed close at once.
    pub(super) fn take_up_sessions(self: &Arc<Self>) {
        self.profiles().sweep();
        let mut state = self.lock();
        let taken_up = |session: &Session| {
            let lasting = Lasting::read(session);
            let whence = session.source.as_deref().map(|source| lasting.whence(source));
            (session.id, (session.phase, session.loss), lasting, whence)
        };
        let left: Vec<_> = state.registry.records().map(taken_up).collect();
        crate::session::sweep_downloads(&self.settings.paths.state_dir, left.iter().map(|(id, ..)| *id));
        crate::session::sweep_saved(&self.settings.paths.state_dir, left.iter().map(|(id, ..)| *id));
        for (id, (phase, loss), lasting, whence) in left {
            let handle = SessionHandle::start(Arc::clone(self), id, Making { spec: lasting.spec, whence, fork: None });
            if lasting.secrets {
                handle.tell(LOST_SECRETS);
            }
            if loss == Loss::Untold {
                handle.was_left_untold();
            }
            if phase == Phase::Closing {
                handle.stop.cancel();
            }
            state.sessions.insert(id, handle);
        }
        let safe = self.carry_out(&mut state);
        drop(state);
        self.watch_over(safe);
    }

    /// The sessions that begin with what this one has.
    pub(crate) fn copies_of(&self, id: SessionId) -> Vec<SessionHandle> {
        self.lock().sessions.values().filter(|handle| handle.whence().and_then(Whence::session) == Some(id)).cloned().collect()
    }

    /// The session's task has ended and nothing of it is left in a browser.
    pub(crate) fn session_gone(self: &Arc<Self>, id: SessionId) {
        self.decide_now(|registry, now| registry.closed(id, now));
        self.untidy.notify_one();
        failpoint("close-writing");
        let handle = {
            let mut state = self.lock();
            state.spent.remove(&id);
            state.sessions.remove(&id)
        };
        if let Some(handle) = handle {
            handle.done.cancel();
        }
    }
}

/// What is wanted: what the call says, else what the peer's own flags say (`tabmux mcp --isolation …`), whichever
/// tool makes the session. What this version cannot do is said, never ignored.
fn with_defaults(open: &OpenSession, defaults: &Map<String, Value>) -> Result<OpenSession, Fault> {
    let mut open = open.clone();
    for (flag, value) in defaults {
        match flag.as_str() {
            "headless" => open.headless = open.headless.or(value.as_bool()),
            "isolation" if open.isolation.is_some() => {}
            "isolation" => {
                open.isolation = Some(serde_json::from_value(value.clone()).map_err(|_| {
                    Fault::new(Code::BadArgument, format!("--isolation {value} is none there is."), "Use context, window, tab or browser.")
                })?);
            }
            // Where and how its world is made, not which session it is: `of_flags`.
            "viewportSize" | "ignoreHttpsErrors" | "storageState" | "cdpEndpoint" => {}
            "from" => open.from = open.from.or_else(|| value.as_str().map(str::to_owned)),
            other => {
                let message = format!("This version cannot do what the flag for '{other}' of this `tabmux mcp` asks for.");
                return Err(Fault::new(Code::Unsupported, message, "Start `tabmux mcp` without it."));
            }
        }
    }
    Ok(open)
}

/// What the peer's flags say of how a session's world is made.
fn of_flags(defaults: &Map<String, Value>) -> Result<ContextSpec, Fault> {
    let ignored = defaults.get("ignoreHttpsErrors").and_then(Value::as_bool).unwrap_or_default();
    let viewport: Option<Result<(u32, u32), Fault>> = defaults.get("viewportSize").map(|size| {
        let sides = size
            .as_str()
            .and_then(|text| text.split_once('x'))
            .and_then(|(width, height)| Some((width.parse().ok()?, height.parse().ok()?)));
        sides.ok_or_else(|| {
            Fault::new(Code::BadArgument, format!("--viewport-size {size} is not WIDTHxHEIGHT."), "Write for example 1280x720.")
        })
    });
    let certificates = if ignored { Certificates::Ignored } else { Certificates::Checked };
    let state = defaults.get("storageState").map(storage_state::parse).transpose().map_err(|why| {
        Fault::new(Code::BadArgument, format!("The storage state of this `tabmux mcp` cannot be used: {why}."), "Correct the file.")
    })?;
    let viewport = viewport.transpose()?;
    let emulation = Emulation { viewport, ..Emulation::default() };
    let endpoint = defaults.get("cdpEndpoint").and_then(Value::as_str).map(str::to_owned);
    Ok(ContextSpec { endpoint, emulation, viewport, certificates, source: state.map(Beginning::with), ..ContextSpec::default() })
}

/// A proxy would resolve hosts for the browser, which is what keeps it to the allowed ones; and only one that we start is kept so.
fn within_policy(spec: &ContextSpec, domains: &Domains) -> Result<(), Fault> {
    if domains.is_open() {
        return Ok(());
    }
    if spec.endpoint.is_some() {
        let message = "In a browser that somebody else started, policy.allow_domains and policy.deny_domains could not be kept.";
        return Err(Fault::new(Code::PolicyDenied, message, "Leave --attach or --cdp-endpoint out, or the domain rules."));
    }
    if spec.proxy.is_none() {
        return Ok(());
    }
    let message = "With a proxy, policy.allow_domains and policy.deny_domains could not be kept.";
    Err(Fault::new(Code::PolicyDenied, message, "Leave the proxy out; only the operator can change the policy."))
}

/// What a session begins with must not end up in a profile that others use.
fn own_world(spec: &ContextSpec, whence: Option<&Whence>) -> Result<(), Fault> {
    let (with, without) = match whence {
        Some(_) => ("the logins of another", "leave the source (from, --from, --profile) out"),
        None => ("a storage state", "start `tabmux mcp` without --storage-state"),
    };
    match spec.isolation {
        Isolation::Tab | Isolation::Window if spec.source.is_some() || whence.is_some() => Err(Fault::new(
            Code::Unsupported,
            format!("A session isolated by {} shares its cookies, so it cannot begin with {with}.", isolation_name(spec.isolation)),
            format!("Use the isolation context or browser, or {without}."),
        )),
        _ => Ok(()),
    }
}

fn mint() -> Minted {
    let mut random = [0u8; 20];
    getrandom::fill(&mut random).expect("the kernel gives random bytes once it has booted");
    let (id, uuid) = random.split_at(4);
    let id = SessionId(u32::from_le_bytes(id.try_into().expect("split at 4")));
    Minted { id, uuid: Uuid::from_random(u128::from_le_bytes(uuid.try_into().expect("16 are left"))) }
}

pub(crate) fn isolation_name(isolation: Isolation) -> &'static str {
    match isolation {
        Isolation::Context => "context",
        Isolation::Window => "window",
        Isolation::Tab => "tab",
        Isolation::Browser => "browser",
    }
}

pub(crate) fn isolation_of(name: &str) -> Isolation {
    [Isolation::Context, Isolation::Window, Isolation::Tab, Isolation::Browser]
        .into_iter()
        .find(|isolation| isolation_name(*isolation) == name)
        .unwrap_or_default()
}
