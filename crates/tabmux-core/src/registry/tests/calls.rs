//! The queue of one session (C3).

use super::*;

fn three(world: &mut World, client: ClientId) -> [Admitted; 3] {
    [0; 3].map(|_| world.admit(by(client), None).unwrap())
}

/// S2.15, S0.17
#[test]
fn calls_of_one_session_begin_one_at_a_time_in_the_order_they_came() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    let calls = three(&mut world, me);
    assert_eq!(calls.map(|call| call.ahead), [0, 1, 2]);
    for call in calls {
        assert_eq!(world.begin(call), Ok(()));
        assert!(world.finish(call));
    }
    let [first, ..] = three(&mut world, me);
    world.begin(first).unwrap();
    assert_eq!(world.admit(by(me), None).map(|call| call.ahead), Ok(3), "the running one is ahead too");
}

/// S2.15
#[test]
#[should_panic(expected = "in the order they came")]
fn a_call_cannot_begin_before_its_turn() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    let calls = three(&mut world, me);
    let _ = world.begin(calls[1]);
}

/// S2.15
#[test]
#[should_panic(expected = "one at a time")]
fn a_call_cannot_begin_while_another_runs() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    let calls = three(&mut world, me);
    world.begin(calls[0]).unwrap();
    let _ = world.begin(calls[1]);
}

#[test]
fn nothing_is_ahead_of_a_call_that_does_not_queue() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    let calls = three(&mut world, me);
    world.begin(calls[0]).unwrap();
    let beside = world.registry.admit(Lane::Beside, by(me), Some("web"), None, ACTS, world.now).unwrap();
    assert_eq!(beside.ahead, 0);
}

/// S0.16
#[test]
fn sessions_do_not_wait_for_each_other() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "one");
    world.open(me, "two");
    let calls = ["one", "two"].map(|name| world.admit(by(me), Some(name)).unwrap());
    assert_eq!(calls.map(|call| (call.ahead, world.begin(call))), [(0, Ok(())), (0, Ok(()))]);
}

/// S2.11
#[test]
fn a_full_queue_answers_at_once_and_other_sessions_notice_nothing() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "one");
    world.open(me, "two");
    let first = world.admit(by(me), Some("one")).unwrap();
    world.begin(first).unwrap();
    for _ in 0..QUEUE {
        world.admit(by(me), Some("one")).expect("the running call takes no place in the queue");
    }
    let fault = world.admit(by(me), Some("one")).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::QueueFull, "3 calls already wait in session 'one'."));
    assert!(world.admit(by(me), Some("two")).is_ok());
    for _ in 0..QUEUE {
        assert!(
            world.registry.admit(Lane::Beside, by(me), Some("one"), None, ACTS, world.now).is_ok(),
            "what does not queue needs no place"
        );
    }
    assert_eq!(
        code(world.registry.admit(Lane::Beside, by(me), Some("one"), None, ACTS, world.now)),
        Some(Code::QueueFull),
        "but is bounded too"
    );
    world.finish(first);
    assert_eq!(code(world.admit(by(me), Some("one"))), Some(Code::QueueFull), "no call has left the queue");
}

/// S2.16
#[test]
fn a_call_that_ends_while_it_waits_leaves_the_others_their_order() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    let [first, second, third] = three(&mut world, me);
    assert!(world.finish(second), "cancelled or timed out");
    world.begin(first).unwrap();
    assert!(world.finish(first));
    assert_eq!(world.begin(third), Ok(()));
    assert_eq!(code(world.begin(second)), Some(Code::Cancelled));
}

#[test]
fn every_call_has_a_number_of_its_own_and_ends_once() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    let [first, second, _] = three(&mut world, me);
    assert_ne!(first.call, second.call);
    world.begin(first).unwrap();
    assert!(world.finish(first));
    assert!(!world.finish(first), "it has ended");
    assert_eq!(code(world.begin(first)), Some(Code::Cancelled));
    assert_eq!(world.registry.counts().running, 0);
    assert_eq!(world.begin(second), Ok(()), "ending twice took nobody's turn");
    assert!(!world.registry.finish(CallId(99), world.now));
}

#[test]
fn a_call_beside_the_queue_does_not_wait_and_does_not_end_the_running_one() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let tab = world.add_tab(id);
    let running = world.admit(by(me), None).unwrap();
    world.begin(running).unwrap();
    let [one, two] =
        [0; 2].map(|_| world.registry.admit(Lane::Beside, by(me), Some("web"), Some(TabRef::Local("t1")), ACTS, world.now).unwrap());
    assert_eq!((one.tab, one.session, one.picked_for_caller), (Some(tab), id, false));
    assert!(world.finish(one) && !world.finish(one));
    assert_eq!(world.registry.counts().running, 2);
    assert!(world.finish(two) && world.finish(running));
    assert_eq!(world.registry.counts().running, 0);
}

/// S0.6
#[test]
fn closing_a_session_ends_all_its_calls_once_in_order_and_no_others() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "one");
    world.open(me, "two");
    let calls = [0; 3].map(|_| world.admit(by(me), Some("one")).unwrap());
    let other = world.admit(by(me), Some("two")).unwrap();
    let beside = world.registry.admit(Lane::Beside, by(me), Some("one"), None, ACTS, world.now).unwrap();
    world.begin(calls[0]).unwrap();
    world.close(by(me), Some("one")).unwrap();
    let effects = world.effects();
    assert_eq!(ends(&effects), [calls[0], calls[1], calls[2], beside].map(|call| end(call, Code::SessionClosed)));
    assert_eq!(effects.last(), Some(&close(id, Ended::Asked)), "the calls end before the context goes");
    assert!(calls.into_iter().all(|call| !world.finish(call)));
    assert_eq!((code(world.begin(calls[1])), world.begin(other)), (Some(Code::Cancelled), Ok(())));
}

/// What cannot go on now is told to whoever waits, and the session stays as it is.
#[test]
fn a_session_that_is_put_off_ends_its_calls_with_the_reason_and_keeps_everything() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.add_tab(id);
    let before = world.session(id).clone();
    let [running, waiting] = [0; 2].map(|_| world.admit(by(me), None).unwrap());
    world.begin(running).unwrap();
    let why = Fault::new(Code::PausedByHuman, "Not now.", "Later.");
    world.registry.put_off(id, &why);
    assert_eq!(ends(&world.effects()), [running, waiting].map(|call| end(call, Code::PausedByHuman)));
    assert_eq!(*world.session(id), before);
}
