//! What a lost connection leaves behind (C7).

use super::*;

/// S2.23, S2.31, S0.21
#[test]
fn a_lost_connection_leaves_an_orphan_that_the_same_secret_takes_back_whole() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.open(me, "other");
    let tab = world.add_tab(id);
    world.set_current(by(me), "web").unwrap();
    world.leave(me, Leave::Lost);
    assert_eq!(world.orphaned(), 2);
    assert!(world.registry.list_all().iter().all(|listed| listed.orphaned));
    assert_eq!(world.tick_after(GRACE - 1), []);
    let back = world.connect(secret("me"));
    assert_eq!((world.orphaned(), world.registry.current(by(back))), (0, Some(id)));
    assert_eq!((world.session(id).current_tab, world.session(id).epoch), (Some(tab), crate::Epoch(2)));
    assert_eq!(world.tick_after(GRACE), [], "the grace clock is off again");
}

/// S2.23, S0.21
#[test]
fn an_orphan_nobody_takes_back_is_closed_when_the_grace_is_over_and_not_before() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let mine = world.open(me, "web");
    world.open(you, "web");
    world.pass(5);
    world.leave(me, Leave::Lost);
    assert_eq!(world.registry.next_due(), Some(Millis(5 + GRACE)));
    assert_eq!(world.tick_after(GRACE - 1), []);
    assert_eq!(world.tick_after(1), [close(mine, Ended::Lost)]);
    let back = world.connect(secret("me"));
    let told = [0; 2].map(|_| code(world.resolve(by(back), Some("web"))));
    assert_eq!(told, [Some(Code::SessionClosed), Some(Code::SessionNotFound)]);
}

/// S2.23
#[test]
fn a_foreign_connection_does_not_take_an_orphan() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.leave(me, Leave::Lost);
    let other = world.connect(secret("other"));
    assert_eq!(code(world.resolve(by(other), Some("web"))), Some(Code::SessionNotFound));
    assert_eq!((world.orphaned(), world.session(id).epoch), (1, crate::Epoch(1)));
}

/// S1.23
#[test]
fn lost_connections_close_or_keep_sessions_where_the_setting_says_so() {
    for (on_lost, effects) in [(OnLost::Close, vec![close(SessionId(1), Ended::Lost)]), (OnLost::Keep, vec![])] {
        let mut world = World::with(Rules { on_lost, ..rules() });
        let me = world.connect(secret("me"));
        world.open(me, "web");
        world.leave(me, Leave::Lost);
        assert_eq!((world.effects(), world.orphaned()), (effects, 0), "{on_lost:?}");
    }
}

#[test]
fn a_kept_session_ends_by_the_idle_clock_only() {
    let mut world = World::with(Rules { on_lost: OnLost::Keep, ..rules() });
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.leave(me, Leave::Lost);
    assert_eq!(world.tick_after(IDLE - 1), []);
    assert_eq!(world.tick_after(1), [close(id, Ended::Idle)]);
}

#[test]
fn with_the_grace_clock_off_an_orphan_waits_until_it_is_idle() {
    let mut world = World::with(Rules { orphan_grace_ms: None, ..rules() });
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.leave(me, Leave::Lost);
    assert_eq!((world.orphaned(), world.tick_after(IDLE - 1)), (1, vec![]));
    assert_eq!(world.tick_after(1), [close(id, Ended::Idle)]);
}

/// The contract: the running call finishes, queued ones are cancelled.
#[test]
fn when_a_connection_is_lost_its_running_call_finishes_and_its_waiting_ones_are_cancelled() {
    let mut world = World::new();
    let (me, mate) = (world.connect(token("t")), world.connect(token("t")));
    world.open(me, "web");
    let [running, waiting, mates] = [me, me, mate].map(|client| world.admit(by(client), None).unwrap());
    let beside = world.registry.admit(Lane::Beside, by(me), None, None, ACTS, world.now).unwrap();
    world.begin(running).unwrap();
    world.leave(me, Leave::Lost);
    assert_eq!(ends(&world.effects()), [end(waiting, Code::Cancelled)]);
    assert!(!world.finish(waiting), "it has ended already");
    assert!(world.finish(running) && world.finish(beside));
    assert_eq!(world.begin(mates), Ok(()), "the call of another connection keeps its place");
}

/// S3.17
#[test]
fn a_session_its_owner_uses_without_a_connection_is_an_orphan_no_more() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.leave(me, Leave::Lost);
    let command = world.visit(secret("me"));
    assert_eq!(world.orphaned(), 1, "coming is not using");
    let call = world.admit(by(command), None).unwrap();
    assert_eq!((world.orphaned(), world.session(id).epoch), (0, crate::Epoch(1)));
    world.finish(call);
    assert_eq!(world.tick_after(IDLE - 1), []);
    assert_eq!(world.tick_after(1), [close(id, Ended::Idle)]);
}

#[test]
fn the_operator_looking_in_does_not_save_an_orphan() {
    let mut world = World::new();
    let (me, operator) = (world.connect(secret("me")), world.visit(Identity::Operator));
    let id = world.open(me, "web");
    world.leave(me, Leave::Lost);
    let call = world.admit(by(operator), Some("web")).unwrap();
    world.finish(call);
    assert_eq!(world.orphaned(), 1);
    assert_eq!(world.tick_after(GRACE), [close(id, Ended::Lost)]);
}

#[test]
fn taking_an_orphan_back_starts_the_idle_clock_anew() {
    let mut world = World::with(Rules { orphan_grace_ms: None, ..rules() });
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.leave(me, Leave::Lost);
    world.pass(IDLE - 1);
    world.connect(secret("me"));
    assert_eq!(world.tick_after(IDLE - 1), []);
    assert_eq!(world.tick_after(1), [close(id, Ended::Idle)]);
}
