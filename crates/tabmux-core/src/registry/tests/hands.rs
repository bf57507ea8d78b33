//! A session changes hands.

use super::*;

#[test]
fn what_waited_while_the_session_changed_hands_is_not_run() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let id = world.open(me, "web");
    let [running, waiting] = [0; 2].map(|_| world.admit(by(me), None).unwrap());
    world.begin(running).unwrap();
    world.registry.hand_over(id, &secret("you"), world.now);
    world.registry.check_invariants();
    let new = world.admit(by(you), None).unwrap();
    assert!(world.finish(running), "what ran may finish");
    assert_eq!(code(world.begin(waiting)), Some(Code::StaleEpoch));
    assert!(!world.finish(waiting), "that was its end");
    assert_eq!(world.begin(new), Ok(()));
    assert_eq!(code(world.resolve(by(me), Some("web"))), Some(Code::SessionNotFound));
}

/// S0.8
#[test]
fn detached_sessions_are_the_operators_and_stay_open_under_free_names() {
    let mut world = World::new();
    let (me, operator) = (world.connect(secret("me")), world.visit(Identity::Operator));
    let theirs = world.open(operator, "web");
    let (taken, free) = (world.open(me, "web"), world.open(me, "zoo"));
    world.open(operator, "browser-1");
    assert_eq!(world.registry.detach_all(by(me), world.now), Ok(vec![taken, free]));
    world.registry.check_invariants();
    assert_eq!(world.effects(), []);
    assert_eq!(world.names(me), [""; 0]);
    assert_eq!(world.resolve(by(operator), Some("web")), Ok(theirs));
    assert_eq!(world.resolve(by(operator), Some("zoo")), Ok(free));
    assert_eq!(world.resolve(by(operator), Some("browser-2")), Ok(taken), "a taken name gives way to an automatic one");
    world.leave(me, Leave::Goodbye);
    assert_eq!(world.effects(), [], "they go on without their former owner");
    assert_eq!(world.registry.detach_all(by(operator), world.now), Ok(vec![]), "they are the operator's already");
    assert_eq!(world.session(free).epoch, crate::Epoch(2));
}

#[test]
fn handing_a_session_to_whom_it_belongs_keeps_its_name_and_its_place_as_current() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.open(me, "other");
    world.set_current(by(me), "web").unwrap();
    world.registry.hand_over(id, &secret("me"), world.now);
    world.registry.check_invariants();
    assert_eq!((world.session(id).name.as_str(), world.registry.current(by(me))), ("web", Some(id)));
    assert_eq!(world.session(id).epoch, crate::Epoch(2));
}

#[test]
fn a_session_given_away_is_nobodys_current_one_even_when_it_comes_back() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.open(me, "one");
    world.open(me, "two");
    world.set_current(by(me), "web").unwrap();
    world.registry.hand_over(id, &Identity::Operator, world.now);
    assert_eq!(world.registry.currents().count(), 0);
    world.registry.hand_over(id, &secret("me"), world.now);
    assert_eq!(world.registry.current(by(me)), None);
}

#[test]
fn an_orphan_that_is_handed_over_is_none_and_its_idle_clock_starts_anew() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open_as(me, plain(None));
    world.leave(me, Leave::Lost);
    world.pass(GRACE - 1);
    world.registry.hand_over(id, &Identity::Operator, world.now);
    world.registry.check_invariants();
    assert_eq!((world.orphaned(), world.registry.numbers.len()), (0, 0));
    assert_eq!(world.tick_after(IDLE - 1), []);
    assert_eq!(world.tick_after(1), [close(id, Ended::Idle)]);
}

#[test]
fn a_session_that_is_being_closed_changes_hands_no_more() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.close(by(me), None).unwrap();
    world.registry.hand_over(id, &Identity::Operator, world.now);
    world.registry.hand_over(SessionId(99), &Identity::Operator, world.now);
    world.registry.check_invariants();
    assert_eq!(world.session(id).owner, secret("me"));
}
