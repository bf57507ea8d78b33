//! Making sessions, taking up those of a former daemon, and letting go of those that are gone.

use std::sync::Arc;

use tabmux_core::{Fault, Kind, Minted, Open, Opened, Phase, Seat, SessionId, Uuid};
use tabmux_driver::{ContextSpec, Isolation};

use super::{CallerOf, Hub, State};
use crate::session::SessionHandle;

impl Hub {
    /// Reserves a seat and starts the session's task; the context is made when the first call needs it.
    pub(super) fn reserve_locked(
        self: &Arc<Self>,
        state: &mut State,
        caller: &CallerOf,
        name: Option<&str>,
        seat: Seat,
        isolation: Option<Isolation>,
    ) -> Result<Opened, Fault> {
        self.browsers.check()?;
        let profile = state.profiles.get(&caller.client).cloned().unwrap_or_default();
        let default_name = profile.session_name.as_deref().filter(|_| state.registry.owns_none(caller.as_caller()));
        let isolation = isolation.unwrap_or_default();
        let open = Open {
            name: name.or(default_name),
            kind: Kind::Browser,
            seat,
            isolation: isolation_name(isolation),
            created_unix_ms: crate::clock::unix_ms(),
        };
        let opened = state.registry.reserve(caller.as_caller(), open, mint, self.clock.now())?;
        let handle = SessionHandle::start(Arc::clone(self), opened.session, ContextSpec { isolation, headless: None });
        state.sessions.insert(opened.session, handle);
        Ok(opened)
    }

    /// Reserves a seat for a caller.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        caller: &CallerOf,
        name: Option<&str>,
        seat: Seat,
        isolation: Option<Isolation>,
    ) -> Result<Opened, Fault> {
        let mut state = self.lock();
        let opened = self.reserve_locked(&mut state, caller, name, seat, isolation);
        let safe = self.carry_out(&mut state);
        drop(state);
        self.watch_over(safe);
        opened
    }

    /// Starts a task for every session a former daemon left; those half closed close at once.
    pub(super) fn take_up_sessions(self: &Arc<Self>) {
        let mut state = self.lock();
        let left: Vec<(SessionId, Phase, String)> =
            state.registry.records().map(|session| (session.id, session.phase, session.isolation.clone())).collect();
        for (id, phase, isolation) in left {
            let spec = ContextSpec { isolation: isolation_of(&isolation), headless: None };
            let handle = SessionHandle::start(Arc::clone(self), id, spec);
            if phase == Phase::Closing {
                handle.stop.cancel();
            }
            state.sessions.insert(id, handle);
        }
        let safe = self.carry_out(&mut state);
        drop(state);
        self.watch_over(safe);
    }

    /// The session's task has ended and nothing of it is left in a browser.
    pub(crate) fn session_gone(self: &Arc<Self>, id: SessionId) {
        self.decide_now(|registry, now| registry.closed(id, now));
        let handle = self.lock().sessions.remove(&id);
        if let Some(handle) = handle {
            handle.done.cancel();
        }
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

pub(super) fn isolation_of(name: &str) -> Isolation {
    [Isolation::Context, Isolation::Window, Isolation::Tab, Isolation::Browser]
        .into_iter()
        .find(|isolation| isolation_name(*isolation) == name)
        .unwrap_or_default()
}
