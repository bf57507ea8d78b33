//! Random histories: peers come and go, call, close, crash, and time passes, while a simple model says what must
//! follow. After every step the registry agrees with the model and the promises hold: one owner per tab; every
//! call ends once; a reply and an event reach only their owner; seats never exceed the limits; after a close
//! nothing is left; calls of a session run in the order they came; the journal alone gives the same registry. A call is
//! admitted for the owner, the operator and the holder of a live grant, and for a grant that is only for looking never one that
//! acts; what a grant admitted ends with it; a former driver is told that the session was handed over.
//!
//! `TABMUX_HISTORY_STEPS=1000000 cargo test -p tabmux-core --test histories` runs that many steps. A failure prints
//! the shortest history that shows it and keeps its seed in `regressions.txt` here, which is tried first from then on.

mod model;
mod op;
mod world;

use model::Model;
use op::Op;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{Config, FileFailurePersistence};
use proptest_state_machine::{ReferenceStateMachine, StateMachineTest, prop_state_machine};
use tabmux_core::{OnLost, Rules};
use world::World;

/// Steps of one history.
const STEPS: u32 = 100;

#[derive(Debug)]
struct Reference;

impl ReferenceStateMachine for Reference {
    type State = Model;
    type Transition = Op;

    fn init_state() -> BoxedStrategy<Model> {
        let rules = |on_lost| Rules {
            session_idle_ms: Some(60),
            orphan_grace_ms: Some(25),
            exit_when_empty_ms: Some(20),
            on_lost,
            warn_sessions: 3,
            max_sessions: 4,
            max_clones: 2,
            max_waiting: 2,
            scoping: tabmux_core::Scoping::Windows,
            digest: op::digest,
        };
        select(vec![OnLost::Grace, OnLost::Grace, OnLost::Close, OnLost::Keep]).prop_map(move |on_lost| Model::new(rules(on_lost))).boxed()
    }

    fn transitions(model: &Model) -> BoxedStrategy<Op> {
        op::ops(model)
    }

    fn apply(mut model: Model, op: &Op) -> Model {
        model.apply(op);
        model
    }
}

#[derive(Debug)]
struct History;

impl StateMachineTest for History {
    type SystemUnderTest = World;
    type Reference = Reference;

    fn init_test(model: &Model) -> World {
        World::new(model.rules)
    }

    fn apply(mut world: World, model: &Model, op: Op) -> World {
        let answer = world.apply(&op);
        assert_eq!(answer, model.answer, "the answer to {op:?}");
        let effects = world.drain();
        assert_eq!(effects, model.effects, "what follows from {op:?}");
        world
    }

    fn check_invariants(world: &World, model: &Model) {
        world.check(model);
    }
}

fn config() -> Config {
    let asked = std::env::var("TABMUX_HISTORY_STEPS").ok().map(|steps| steps.parse::<u32>().expect("TABMUX_HISTORY_STEPS is a number"));
    let by_environment = Config::default();
    Config {
        cases: asked.map_or(by_environment.cases, |steps| steps.div_ceil(STEPS)),
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/histories/regressions.txt"))),
        ..by_environment
    }
}

prop_state_machine! {
    #![proptest_config(config())]

    /// S1.37, S1.42, S2.5, S2.13, S2.15, S2.24, S3.14, S3.20, S3.23, S3.31, S3.36
    #[test]
    fn whatever_happens_in_whatever_order_the_promises_hold(sequential 100 => History);
}
