//! The clocks of C1.

use super::*;

/// S0.20, S1.28, S0.21
#[test]
fn a_session_unused_for_the_idle_time_is_closed_and_not_a_moment_before() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.pass(10);
    let call = world.admit(by(me), None).unwrap();
    world.pass(10);
    world.finish(call);
    assert_eq!(world.registry.next_due(), Some(Millis(20 + IDLE)));
    assert_eq!(world.tick_after(IDLE - 1), []);
    assert_eq!(world.tick_after(1), [close(id, Ended::Idle)]);
}

/// S0.20
#[test]
fn an_admitted_call_counts_as_use() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    world.pass(IDLE - 1);
    let call = world.admit(by(me), None).unwrap();
    world.leave(me, Leave::Lost);
    assert_eq!(ends(&world.effects()), [end(call, Code::Cancelled)]);
    world.connect(secret("me"));
    assert_eq!(world.tick_after(IDLE - 1), []);
}

/// S0.20
#[test]
fn a_session_is_never_idle_while_a_call_waits_or_runs() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let call = world.admit(by(me), None).unwrap();
    assert_eq!((world.registry.next_due(), world.tick_after(10 * IDLE)), (None, vec![]));
    world.begin(call).unwrap();
    assert_eq!(world.tick_after(10 * IDLE), []);
    world.finish(call);
    let beside = world.registry.admit(Lane::Beside, by(me), None, None, ACTS, world.now).unwrap();
    assert_eq!(world.tick_after(10 * IDLE), []);
    world.finish(beside);
    assert_eq!(world.tick_after(IDLE), [close(id, Ended::Idle)]);
}

/// S0.20
#[test]
fn a_session_is_never_idle_while_somebody_watches() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.registry.watch(id);
    world.registry.watch(id);
    world.registry.unwatch(id, world.now);
    assert_eq!(world.tick_after(10 * IDLE), [], "one still watches");
    world.registry.unwatch(id, world.now);
    assert_eq!(world.tick_after(IDLE - 1), []);
    assert_eq!(world.tick_after(1), [close(id, Ended::Idle)]);
}

#[test]
fn watching_what_is_not_there_is_nothing() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.registry.unwatch(id, world.now);
    world.registry.watch(SessionId(99));
    world.registry.watch(id);
    assert_eq!(world.tick_after(IDLE), [], "a needless unwatch is not counted");
}

/// S1.10, S0.20
#[test]
fn a_clock_that_is_off_ends_nothing() {
    let off = Rules { session_idle_ms: None, orphan_grace_ms: None, exit_when_empty_ms: None, ..rules() };
    let mut world = World::with(off);
    assert_eq!((world.registry.next_due(), world.tick_after(u64::MAX / 4)), (None, vec![]));
    let me = world.connect(secret("me"));
    world.open(me, "web");
    world.leave(me, Leave::Lost);
    assert_eq!((world.registry.next_due(), world.tick_after(u64::MAX / 4)), (None, vec![]));
}

#[test]
fn a_clock_of_any_length_stays_in_the_future() {
    let longest = Rules { session_idle_ms: Some(u64::MAX), orphan_grace_ms: Some(u64::MAX), exit_when_empty_ms: Some(u64::MAX), ..rules() };
    let mut world = World::with(longest);
    world.pass(1_000);
    let me = world.connect(secret("me"));
    world.open(me, "web");
    assert_eq!(world.tick_after(1), []);
    world.leave(me, Leave::Lost);
    assert_eq!(world.tick_after(1), []);
    assert_eq!(world.registry.next_due(), Some(Millis(u64::MAX)));
}

#[test]
fn of_grace_and_idle_the_earlier_one_counts() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.pass(IDLE - GRACE + 1);
    world.leave(me, Leave::Lost);
    assert_eq!(world.registry.next_due(), Some(Millis(IDLE)));
    assert_eq!(world.tick_after(GRACE - 1), [close(id, Ended::Idle)]);
    let you = world.connect(secret("you"));
    let second = world.open(you, "web");
    world.pass(IDLE - GRACE);
    world.leave(you, Leave::Lost);
    assert_eq!(world.tick_after(GRACE), [close(second, Ended::Lost)], "at the same moment it was lost");
}

/// S1.10
#[test]
fn an_empty_daemon_exits_once_when_its_time_is_over() {
    let mut world = World::new();
    world.connect(secret("me"));
    assert_eq!(world.registry.next_due(), Some(Millis(EMPTY)));
    assert_eq!((world.tick_after(EMPTY - 1), world.registry.is_exiting()), (vec![], false));
    assert_eq!((world.tick_after(1), world.registry.is_exiting()), (vec![Effect::Exit], true));
    assert_eq!((world.tick_after(EMPTY), world.registry.next_due()), (vec![], None));
}

/// S1.10
#[test]
fn a_daemon_with_a_session_does_not_exit_nor_while_one_is_being_closed() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.pass(EMPTY - 1);
    let id = world.reserve(by(me), plain(None)).unwrap().session;
    assert_eq!(world.tick_after(EMPTY), []);
    world.close(by(me), None).unwrap();
    assert_eq!((world.tick_after(EMPTY), world.registry.is_exiting()), (vec![close(id, Ended::Asked)], false));
    assert_eq!(world.registry.next_due(), None);
    world.closed(id);
    assert_eq!(world.tick_after(EMPTY - 1), [], "the time begins when nothing is left");
    assert_eq!(world.tick_after(1), [Effect::Exit]);
}

/// S1.10
#[test]
fn coming_and_going_of_clients_does_not_delay_the_exit() {
    let mut world = World::new();
    world.pass(EMPTY - 1);
    let me = world.connect(secret("me"));
    world.leave(me, Leave::Lost);
    assert_eq!(world.tick_after(1), [Effect::Exit]);
}

#[test]
fn time_that_goes_on_without_a_look_at_the_clock_ends_nothing_and_use_in_between_counts() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let mine = world.open(me, "web");
    let yours = world.open(you, "web");
    let late = world.open(you, "late");
    world.pass(10 * IDLE);
    let call = world.admit(by(me), None).expect("overdue is not closed");
    world.finish(call);
    assert_eq!(world.tick_after(0), [close(yours, Ended::Idle), close(late, Ended::Idle)], "a late look ends all that is overdue");
    assert_eq!(world.resolve(by(me), None), Ok(mine));
}

#[test]
fn the_next_thing_due_is_the_earliest_of_all() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.pass(7);
    world.open(me, "early");
    world.pass(7);
    world.open(me, "late");
    assert_eq!(world.registry.next_due(), Some(Millis(7 + IDLE)));
}

/// S1.10: a call inside keeps the daemon, whether it has a session or not, and once it exits none may begin.
#[test]
fn a_daemon_with_a_call_inside_does_not_exit() {
    let mut world = World::new();
    assert!(world.registry.enter() && world.registry.enter());
    assert_eq!((world.registry.visits(), world.registry.next_due()), (2, None));
    assert_eq!((world.tick_after(EMPTY), world.registry.is_exiting()), (vec![], false));
    world.registry.leave();
    assert_eq!(world.tick_after(EMPTY), []);
    world.registry.leave();
    assert_eq!((world.registry.visits(), world.tick_after(0)), (0, vec![Effect::Exit]));
    assert!(!world.registry.enter());
    assert_eq!(world.registry.visits(), 0, "who may not begin is not inside");
}

/// S1.25: a listing says when the last call came or ended; looking does not count.
#[test]
fn a_listing_says_when_the_session_was_last_used() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let last = |world: &World| (world.registry.listing(id).unwrap().last_used, world.registry.list(by(me))[0].last_used);
    world.pass(5);
    assert_eq!(last(&world), (Millis(0), Millis(0)), "when it was made");
    let call = world.admit(by(me), None).unwrap();
    world.begin(call).unwrap();
    assert_eq!(last(&world), (Millis(5), Millis(5)));
    world.pass(7);
    world.finish(call);
    world.pass(9);
    world.resolve(by(me), None).unwrap();
    assert_eq!(last(&world), (Millis(12), Millis(12)));
}

#[test]
fn one_listing_shows_an_orphan_and_a_session_that_is_being_closed_too() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let orphaned = |world: &World| world.registry.listing(id).map(|listed| (listed.session.id, listed.orphaned));
    assert_eq!(orphaned(&world), Some((id, false)));
    world.leave(me, Leave::Lost);
    assert_eq!(orphaned(&world), Some((id, true)));
    let operator = world.visit(Identity::Operator);
    world.close(by(operator), Some("web")).unwrap();
    assert_eq!(orphaned(&world), Some((id, false)));
    world.closed(id);
    assert_eq!(orphaned(&world), None);
}
