//! Peers come and go; one live connection at a time drives a secret.

use super::*;

/// The contract: `session_exists` on each call.
#[test]
fn a_second_live_connection_with_the_same_secret_is_refused_on_each_call() {
    let mut world = World::new();
    let first = world.connect(secret("me"));
    world.open(first, "web");
    let second = world.connect(secret("me"));
    let now = world.now;
    let answers = [
        code(world.resolve(by(second), Some("web"))),
        code(world.admit(by(second), None)),
        code(world.registry.admit(Lane::Beside, by(second), None, None, ACTS, now)),
        code(world.reserve(by(second), plain(None))),
        code(world.close(by(second), None)),
        code(world.registry.close_all(by(second), now)),
        code(world.registry.detach_all(by(second), now)),
        code(world.registry.rename(by(second), "web", "new", now)),
        code(world.set_current(by(second), "web")),
        code(world.registry.authorize(second, now)),
    ];
    assert_eq!(answers, [Some(Code::SessionExists); 10]);
    assert_eq!(world.registry.authorize(first, now), Ok(()));
    assert_eq!(world.admit(by(first), None).map(|admitted| admitted.session), Ok(SessionId(1)));
}

/// S2.23
#[test]
fn the_waiting_connection_takes_over_when_the_first_is_lost() {
    let mut world = World::new();
    let first = world.connect(secret("me"));
    let id = world.open(first, "web");
    let (second, third) = (world.connect(secret("me")), world.connect(secret("me")));
    world.leave(first, Leave::Lost);
    assert_eq!(world.orphaned(), 0, "its owner is here");
    assert_eq!(world.session(id).epoch, crate::Epoch(2), "it changed hands");
    assert_eq!(world.admit(by(second), None).map(|admitted| admitted.session), Ok(id));
    assert_eq!(code(world.admit(by(third), None)), Some(Code::SessionExists), "the oldest goes first");
}

/// S2.23: whoever of them calls first, or the lost one that was started again; before them all who called already and was refused.
#[test]
fn a_silent_connection_does_not_keep_a_session_from_who_is_started_again() {
    for has_called in [false, true] {
        let mut world = World::new();
        let first = world.connect(secret("me"));
        let id = world.open(first, "web");
        let sibling = world.connect(secret("me"));
        if has_called {
            assert_eq!(code(world.admit(by(sibling), None)), Some(Code::SessionExists));
        }
        world.leave(first, Leave::Lost);
        let again = world.connect(secret("me"));
        let (driver, other) = if has_called { (sibling, again) } else { (again, sibling) };
        assert_eq!(world.admit(by(driver), None).map(|admitted| admitted.session), Ok(id));
        assert_eq!(code(world.admit(by(other), None)), Some(Code::SessionExists));
    }
}

/// S2.23
#[test]
fn a_waiting_connection_that_says_nothing_keeps_the_session_from_the_grace_clock() {
    let mut world = World::with(Rules { session_idle_ms: None, on_lost: OnLost::Close, ..rules() });
    let first = world.connect(secret("me"));
    let id = world.open(first, "web");
    let second = world.connect(secret("me"));
    world.leave(first, Leave::Lost);
    assert_eq!(world.tick_after(10 * GRACE), []);
    assert_eq!(world.resolve(by(second), None), Ok(id));
}

#[test]
fn a_refused_connection_that_leaves_takes_nothing_along() {
    for leave in [Leave::Goodbye, Leave::Lost] {
        let mut world = World::new();
        let first = world.connect(secret("me"));
        let id = world.open(first, "web");
        let second = world.connect(secret("me"));
        world.leave(second, leave);
        assert_eq!((world.effects(), world.orphaned()), (vec![], 0));
        assert_eq!(world.resolve(by(first), None), Ok(id), "the first still drives");
    }
}

#[test]
fn after_a_goodbye_the_waiting_connection_may_begin_afresh() {
    let mut world = World::new();
    let first = world.connect(secret("me"));
    let id = world.open(first, "web");
    let second = world.connect(secret("me"));
    world.leave(first, Leave::Goodbye);
    assert_eq!(world.effects(), [close(id, Ended::Goodbye)]);
    assert_eq!(code(world.admit(by(second), None)), Some(Code::SessionRequired));
    let third = world.connect(secret("me"));
    assert_eq!(code(world.registry.authorize(third, world.now)), Some(Code::SessionExists), "the second drives now");
}

/// S1.42: a token is no connection; whoever shows it finds its sessions, also when nobody was there meanwhile.
#[test]
fn sessions_of_a_token_are_never_orphans_however_its_clients_leave() {
    for identity in [token("ci"), Identity::Path("p".into()), Identity::Http("h".into())] {
        for on_lost in [OnLost::Grace, OnLost::Close, OnLost::Keep] {
            let mut world = World::with(Rules { on_lost, ..rules() });
            let (shim, other) = (world.connect(identity.clone()), world.connect(identity.clone()));
            let id = world.open(shim, "web");
            assert_eq!(world.resolve(by(other), None), Ok(id));
            world.leave(shim, Leave::Lost);
            world.leave(other, Leave::Lost);
            assert_eq!((world.effects(), world.orphaned()), (vec![], 0), "{identity} {on_lost:?}");
            assert_eq!(world.tick_after(IDLE - 1), []);
            let back = world.connect(identity.clone());
            assert_eq!(world.resolve(by(back), None), Ok(id));
            assert_eq!(world.session(id).epoch, crate::Epoch(1), "nothing changed hands");
            assert_eq!(world.tick_after(1), [close(id, Ended::Idle)]);
        }
    }
}

/// S2.22: DELETE by one of several clients of a token.
#[test]
fn a_goodbye_ends_nothing_while_another_client_shows_the_same_token() {
    for link in [Link::Connection, Link::None] {
        let mut world = World::new();
        let (stays, leaves) = (world.registry.attach(token("ci"), link, world.now), world.visit(token("ci")));
        let id = world.open(leaves, "web");
        world.visit(token("other"));
        world.leave(leaves, Leave::Goodbye);
        assert_eq!(world.effects(), [], "{link:?}");
        assert_eq!(world.resolve(by(stays), None), Ok(id));
        world.leave(stays, Leave::Goodbye);
        assert_eq!(world.effects(), [close(id, Ended::Goodbye)], "the last one closes the door");
    }
}

/// S1.17, S2.22
#[test]
fn a_goodbye_closes_the_sessions_at_once_and_no_others() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let mine = [world.open(me, "one"), world.open(me, "two")];
    let yours = world.open(you, "one");
    world.leave(me, Leave::Goodbye);
    assert_eq!(world.effects(), mine.map(|id| close(id, Ended::Goodbye)));
    assert_eq!(world.resolve(by(you), None), Ok(yours));
}

#[test]
fn an_http_caller_ends_by_its_goodbye_and_not_by_a_lost_link() {
    for identity in [Identity::Http("h".into()), Identity::Path("p".into()), token("t"), secret("s")] {
        let mut world = World::new();
        let me = world.visit(identity.clone());
        let id = world.open(me, "web");
        world.leave(me, Leave::Lost);
        assert_eq!((world.effects(), world.orphaned()), (vec![], 0));
        let again = world.visit(identity);
        assert_eq!(world.resolve(by(again), None), Ok(id));
        world.leave(again, Leave::Goodbye);
        assert_eq!(world.effects(), [close(id, Ended::Goodbye)]);
    }
}

/// S3.17
#[test]
fn a_one_shot_command_works_beside_the_live_client_of_its_capability_and_ends_nothing() {
    let mut world = World::new();
    let live = world.connect(secret("me"));
    let id = world.open(live, "web");
    for leave in [Leave::Lost, Leave::Goodbye] {
        let command = world.visit(secret("me"));
        assert_eq!(world.resolve(by(command), Some("web")), Ok(id));
        world.leave(command, leave);
        assert_eq!((world.effects(), world.orphaned()), (vec![], 0));
    }
    assert_eq!(world.resolve(by(live), None), Ok(id));
}

/// S3.17
#[test]
fn the_operators_windows_and_strangers_may_leave_in_any_way_and_end_nothing() {
    for identity in [Identity::Operator, Identity::Nobody] {
        for (link, leave) in [(Link::Connection, Leave::Lost), (Link::Connection, Leave::Goodbye), (Link::None, Leave::Goodbye)] {
            let mut world = World::with(Rules { on_lost: OnLost::Close, ..rules() });
            let client = world.registry.attach(identity.clone(), link, world.now);
            let id = world.open(client, "web");
            world.leave(client, leave);
            assert_eq!((world.effects(), world.orphaned()), (vec![], 0), "{identity} {link:?} {leave:?}");
            assert_eq!(world.session(id).phase, Phase::Open);
        }
    }
}

#[test]
fn leaving_twice_is_leaving_once() {
    let mut world = World::new();
    let (me, other) = (world.connect(secret("me")), world.connect(secret("other")));
    world.leave(me, Leave::Goodbye);
    world.leave(me, Leave::Goodbye);
    assert_eq!(world.registry.counts().clients, 1);
    assert_eq!(world.registry.identity(other), Some(&secret("other")));
}

#[test]
fn nothing_is_kept_for_an_identity_that_owns_nothing_and_is_not_here() {
    let mut world = World::new();
    let me = world.visit(token("t"));
    world.open_as(me, plain(None));
    world.leave(me, Leave::Lost);
    assert_eq!(world.registry.numbers.len(), 1, "it owns a session");
    world.tick_after(IDLE);
    assert_eq!(world.registry.numbers.len(), 0);
    let you = world.visit(token("u"));
    world.open_as(you, plain(None));
    world.close(by(you), None).unwrap();
    assert_eq!(world.registry.numbers.len(), 1, "it is here");
    world.leave(you, Leave::Lost);
    assert_eq!((world.registry.numbers.len(), world.registry.currents.len(), world.registry.owned.len()), (0, 0, 0));
}
