//! The registry's rules, one sentence each. A `World` is a registry with a clock that only the test moves; it
//! checks the invariants after every step that changes something.

mod callers;
mod calls;
mod clocks;
mod current;
mod endings;
mod grants;
mod hands;
mod journal;
mod limits;
mod naming;
mod opening;
mod orphans;
mod ownership;
mod restore;
mod tabs;
mod windows;

use super::*;
use crate::{Admitted, Caller, Code, Deed, Effect, Ended, Lane, Leave, Open, Opened, Phase, Tab, TabId, Touch};

const IDLE: u64 = 1_000;
const GRACE: u64 = 300;
const EMPTY: u64 = 60;
const QUEUE: usize = 3;

fn rules() -> Rules {
    Rules {
        session_idle_ms: Some(IDLE),
        orphan_grace_ms: Some(GRACE),
        exit_when_empty_ms: Some(EMPTY),
        on_lost: OnLost::Grace,
        warn_sessions: 5,
        max_sessions: 0,
        max_clones: 2,
        max_waiting: QUEUE,
        scoping: Scoping::Windows,
        digest,
    }
}

/// Not a hash, but as good as one for `tmx_1`, `tmx_2`, …
fn digest(capability: &str) -> GrantKey {
    let number = capability.strip_prefix(crate::CAPABILITY).and_then(|number| number.parse::<u32>().ok()).unwrap_or(u32::MAX);
    let mut key = [0xaa; 32];
    key[..4].copy_from_slice(&number.to_be_bytes());
    GrantKey(key)
}

/// What a call does that no test is about.
const ACTS: Deed<'static> = Deed { tool: "click_element", touch: Touch::Acts };

fn secret(name: &str) -> Identity {
    Identity::Secret(name.into())
}

fn token(name: &str) -> Identity {
    Identity::Token(name.into())
}

fn by(client: ClientId) -> Caller<'static> {
    Caller { client, agent: None }
}

fn agent(client: ClientId, agent: &str) -> Caller<'_> {
    Caller { client, agent: Some(agent) }
}

fn plain(name: Option<&str>) -> Open<'_> {
    Open { name, kind: Kind::Browser, seat: Seat::Plain, source: None, isolation: "context", created_unix_ms: 7 }
}

fn clone_of(name: &str) -> Open<'_> {
    Open { seat: Seat::Clone, ..plain(Some(name)) }
}

fn minted(number: u32) -> Minted {
    Minted { id: SessionId(number), uuid: Uuid(u128::from(number) << 64 | 0xabc) }
}

fn code<T>(result: Result<T, Fault>) -> Option<Code> {
    result.err().map(|fault| fault.code)
}

struct World {
    registry: Registry,
    now: Millis,
    minted: u32,
}

impl World {
    fn new() -> Self {
        Self::with(rules())
    }

    fn with(rules: Rules) -> Self {
        Self { registry: Registry::new(rules, Millis(0)), now: Millis(0), minted: 0 }
    }

    fn restored(rules: Rules, sessions: Vec<Session>, currents: Vec<(Identity, Option<Arc<str>>, SessionId)>) -> Self {
        let mut world = Self::with(rules);
        world.minted = 100;
        world.registry.restore(sessions, currents, Vec::new(), TabNumber(1), world.now);
        world.registry.check_invariants();
        world
    }

    fn connect(&mut self, identity: Identity) -> ClientId {
        let client = self.registry.attach(identity, Link::Connection, self.now);
        self.registry.check_invariants();
        client
    }

    /// A peer that has no connection to lose: HTTP, or a one-shot command.
    fn visit(&mut self, identity: Identity) -> ClientId {
        let client = self.registry.attach(identity, Link::None, self.now);
        self.registry.check_invariants();
        client
    }

    fn leave(&mut self, client: ClientId, leave: Leave) {
        self.registry.detach(client, leave, self.now);
        self.registry.check_invariants();
    }

    fn reserve(&mut self, caller: Caller<'_>, open: Open<'_>) -> Result<Opened, Fault> {
        let next = &mut self.minted;
        let opened = self.registry.reserve(
            caller,
            open,
            || {
                *next += 1;
                minted(*next)
            },
            self.now,
        );
        self.registry.check_invariants();
        opened
    }

    /// An open session of that name, with the way it takes to get there.
    fn open(&mut self, client: ClientId, name: &str) -> SessionId {
        self.open_as(client, plain(Some(name)))
    }

    fn open_as(&mut self, client: ClientId, open: Open<'_>) -> SessionId {
        let id = self.reserve(by(client), open).expect("there is room").session;
        self.registry.opening(id).expect("just reserved");
        self.registry.opened(id, "context".into()).expect("just opening");
        self.registry.check_invariants();
        id
    }

    fn admit(&mut self, caller: Caller<'_>, target: Option<&str>) -> Result<Admitted, Fault> {
        let admitted = self.registry.admit(Lane::Queue, caller, target, None, ACTS, self.now);
        self.registry.check_invariants();
        admitted
    }

    fn begin(&mut self, admitted: Admitted) -> Result<(), Fault> {
        let begun = self.registry.begin(admitted.call);
        self.registry.check_invariants();
        begun
    }

    fn finish(&mut self, admitted: Admitted) -> bool {
        let ended = self.registry.finish(admitted.call, self.now);
        self.registry.check_invariants();
        ended
    }

    fn resolve(&mut self, caller: Caller<'_>, target: Option<&str>) -> Result<SessionId, Fault> {
        self.registry.resolve(caller, target, self.now)
    }

    fn set_current(&mut self, caller: Caller<'_>, target: &str) -> Result<SessionId, Fault> {
        let set = self.registry.set_current(caller, target, self.now);
        self.registry.check_invariants();
        set
    }

    fn close(&mut self, caller: Caller<'_>, target: Option<&str>) -> Result<SessionId, Fault> {
        let closed = self.registry.close(caller, target, self.now);
        self.registry.check_invariants();
        closed
    }

    fn closed(&mut self, id: SessionId) {
        self.registry.closed(id, self.now);
        self.registry.check_invariants();
    }

    /// Time passes; nobody looks at the clock.
    fn pass(&mut self, ms: u64) {
        self.now = Millis(self.now.0 + ms);
    }

    /// Time passes and the clocks are looked at. Says what follows.
    fn tick_after(&mut self, ms: u64) -> Vec<Effect> {
        self.pass(ms);
        self.registry.tick(self.now);
        self.registry.check_invariants();
        self.registry.take_effects()
    }

    fn effects(&mut self) -> Vec<Effect> {
        self.registry.take_effects()
    }

    fn add_tab(&mut self, id: SessionId) -> TabId {
        let tab = self.registry.add_tab(id, "page".into(), "about:blank".to_owned()).expect("the session is open");
        self.registry.check_invariants();
        tab
    }

    fn tab(&self, id: SessionId, tab: TabId) -> &Tab {
        &self.session(id).tabs[&tab]
    }

    fn session(&self, id: SessionId) -> &Session {
        self.registry.session(id).expect("the session is there")
    }

    fn names(&self, client: ClientId) -> Vec<&str> {
        self.registry.list(by(client)).iter().map(|listed| listed.session.name.as_str()).collect()
    }

    fn orphaned(&self) -> usize {
        self.registry.counts().orphaned
    }
}

fn close(session: SessionId, why: Ended) -> Effect {
    Effect::Close { session, why }
}

fn end(admitted: Admitted, code: Code) -> (CallId, Code) {
    (admitted.call, code)
}

/// The calls that end, in order, with their codes.
fn ends(effects: &[Effect]) -> Vec<(CallId, Code)> {
    let end = |effect: &Effect| match effect {
        Effect::EndCall { call, fault } => Some((*call, fault.code)),
        Effect::Close { .. } | Effect::TakenOver { .. } | Effect::Exit => None,
    };
    effects.iter().filter_map(end).collect()
}
