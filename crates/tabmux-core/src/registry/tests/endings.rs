//! Sessions that ended without their owner's doing: their owner is told once.

use super::*;
use crate::registry::endings::{MAX_AWAY, MAX_ENDINGS};

fn told(world: &mut World, caller: ClientId, target: Option<&str>) -> (Code, String) {
    let fault = world.resolve(by(caller), target).unwrap_err();
    world.registry.check_invariants();
    (fault.code, fault.message)
}

fn not_found(text: &str) -> (Code, String) {
    (Code::SessionNotFound, format!("No session: {text}."))
}

fn none_active() -> (Code, String) {
    (Code::SessionRequired, "No session: none active.".to_owned())
}

/// S0.20, S0.14
#[test]
fn an_owner_is_told_once_that_its_session_was_idle_for_too_long() {
    for (idle, said) in [(1_800_000, "30m"), (90_000, "90s"), (1_500, "1500ms")] {
        for name in 0..3 {
            let mut world = World::with(Rules { session_idle_ms: Some(idle), ..rules() });
            let me = world.connect(secret("me"));
            let id = world.open(me, "web");
            let text = ["web".to_owned(), id.to_string(), world.session(id).uuid.to_string()][name].clone();
            world.tick_after(idle);
            assert_eq!(told(&mut world, me, Some("other")), not_found("other"), "a name it never had");
            let message = format!("No session: {text}. Session 'web' was closed after {said} without a call.");
            assert_eq!(told(&mut world, me, Some(&text)), (Code::SessionClosed, message));
            assert_eq!(told(&mut world, me, Some(&text)), not_found(&text), "never again");
            assert_eq!(told(&mut world, me, None), none_active());
        }
    }
}

/// S0.20
#[test]
fn a_call_that_names_no_session_is_told_of_the_last_one_when_none_is_left() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "old");
    world.pass(1);
    world.open(me, "new");
    world.tick_after(IDLE - 1);
    assert_eq!(world.resolve(by(me), None).map(|_| ()), Ok(()), "one is left, and is meant");
    world.tick_after(1);
    let closed = |name: &str| (Code::SessionClosed, format!("Session '{name}' was closed after 1s without a call."));
    assert_eq!([0; 3].map(|_| told(&mut world, me, None)), [closed("new"), closed("old"), none_active()]);
}

#[test]
fn with_several_sessions_left_the_list_comes_and_not_the_one_that_ended() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "old");
    world.pass(1);
    world.open(me, "one");
    world.open(me, "two");
    world.tick_after(IDLE - 1);
    assert_eq!(told(&mut world, me, None).0, Code::SessionRequired);
    assert_eq!(told(&mut world, me, Some("old")).0, Code::SessionClosed, "it is still to be told");
}

#[test]
fn an_owner_is_told_that_the_operator_closed_its_session_and_nothing_of_its_own_doing() {
    let mut world = World::new();
    let (me, operator) = (world.connect(secret("me")), world.visit(Identity::Operator));
    let id = world.open(me, "web");
    world.close(by(operator), Some("web")).unwrap();
    assert_eq!(world.effects(), [close(id, Ended::ByOperator)]);
    assert_eq!(told(&mut world, operator, Some("web")), not_found("web"), "it knows");
    assert_eq!(
        told(&mut world, me, Some("web")),
        (Code::SessionClosed, "No session: web. Session 'web' was closed by the operator.".to_owned())
    );
    for client in [me, operator] {
        let id = world.open(client, "own");
        world.close(by(client), Some("own")).unwrap();
        assert_eq!(world.effects(), [close(id, Ended::Asked)]);
        assert_eq!(told(&mut world, client, Some("own")), not_found("own"));
    }
}

/// S3.14
#[test]
fn nobody_else_is_told_and_strangers_are_told_nothing() {
    let mut world = World::new();
    let (me, you, stranger) = (world.connect(secret("me")), world.connect(secret("you")), world.visit(Identity::Nobody));
    world.open(me, "web");
    let id = world.open(stranger, "web");
    let uuid = world.session(id).uuid.to_string();
    world.tick_after(IDLE);
    assert_eq!(told(&mut world, you, Some("web")), not_found("web"));
    assert_eq!(told(&mut world, you, None), none_active());
    assert_eq!((told(&mut world, stranger, Some(&uuid)), told(&mut world, stranger, None)), (not_found(&uuid), none_active()));
    assert_eq!(told(&mut world, me, None).0, Code::SessionClosed);
}

#[test]
fn a_new_session_of_the_name_takes_the_place_of_the_old_ones_end() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    world.open(me, "mail");
    world.tick_after(IDLE);
    world.open(me, "web");
    world.close(by(me), Some("web")).unwrap();
    assert_eq!(told(&mut world, me, Some("web")), not_found("web"));
    assert_eq!(told(&mut world, me, Some("mail")).0, Code::SessionClosed);
}

#[test]
fn the_newest_ends_are_kept_and_none_for_who_is_gone() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    for number in 0..=MAX_ENDINGS {
        world.open(me, &format!("s{number}"));
        world.tick_after(IDLE);
    }
    assert_eq!(told(&mut world, me, Some("s0")), not_found("s0"));
    assert_eq!(told(&mut world, me, Some("s1")).0, Code::SessionClosed);
    world.leave(me, Leave::Lost);
    assert_eq!(world.registry.endings.len(), 0);
}

/// A session of this owner's whose client was lost and did not come back in time.
fn expired(world: &mut World, owner: &str, name: &str) -> SessionId {
    let client = world.connect(secret(owner));
    let id = world.open(client, name);
    world.leave(client, Leave::Lost);
    world.tick_after(GRACE);
    id
}

/// S2.23, S3.14
#[test]
fn an_owner_who_comes_back_too_late_is_told_once_and_others_read_what_a_missing_session_answers() {
    let said = "Session 'web' expired: its client was away for longer than the grace time of 300ms.";
    for name in 0..4 {
        let mut world = World::new();
        let id = expired(&mut world, "me", "web");
        let text = ["web".to_owned(), id.to_string(), world.session(id).uuid.to_string(), "web".to_owned()][name].clone();
        world.closed(id);
        for other in [secret("you"), token("me"), Identity::Http("me".into()), Identity::Operator, Identity::Nobody] {
            let other = world.visit(other);
            assert_eq!((told(&mut world, other, Some(&text)), told(&mut world, other, None)), (not_found(&text), none_active()));
        }
        let me = world.connect(secret("me"));
        let target = (name < 3).then_some(text.as_str());
        let message = target.map_or_else(|| said.to_owned(), |text| format!("No session: {text}. {said}"));
        assert_eq!(told(&mut world, me, target), (Code::SessionClosed, message));
        assert_eq!((told(&mut world, me, Some(&text)), told(&mut world, me, None)), (not_found(&text), none_active()), "once");
    }
}

#[test]
fn who_makes_a_session_of_the_name_again_is_told_with_it_how_the_old_one_ended() {
    let mut world = World::new();
    expired(&mut world, "me", "web");
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let warning = |world: &mut World, client| world.reserve(by(client), plain(Some("web"))).unwrap().warning;
    assert_eq!(warning(&mut world, you), None);
    let said = "Session 'web' expired: its client was away for longer than the grace time of 300ms.";
    assert_eq!(warning(&mut world, me).as_deref(), Some(said));
    world.close(by(me), Some("web")).unwrap();
    assert_eq!(warning(&mut world, me), None, "once");
}

/// What closes at once, by the setting or because nothing was begun, is no surprise to anybody.
#[test]
fn only_what_had_a_grace_time_can_have_been_away_for_too_long() {
    let mut world = World::with(Rules { on_lost: OnLost::Close, ..rules() });
    expired(&mut world, "me", "web");
    let me = world.connect(secret("me"));
    assert_eq!(told(&mut world, me, Some("web")), not_found("web"));
    let given_up = world.reserve(by(me), plain(Some("unused"))).unwrap().session;
    world.registry.give_up_reservation(given_up);
    assert_eq!(told(&mut world, me, Some("unused")), not_found("unused"));
}

#[test]
fn what_is_kept_for_those_who_are_away_is_bounded_and_stays_when_they_come_and_go() {
    let mut world = World::new();
    for number in 0..=MAX_AWAY {
        expired(&mut world, &format!("owner-{number}"), "web");
    }
    assert_eq!((world.registry.endings.len(), world.registry.away.len()), (MAX_AWAY, MAX_AWAY));
    for (owner, code) in [("owner-0", Code::SessionNotFound), ("owner-1", Code::SessionClosed)] {
        for _ in 0..2 {
            let passing = world.connect(secret(owner));
            world.leave(passing, Leave::Lost);
        }
        let back = world.connect(secret(owner));
        assert_eq!(told(&mut world, back, Some("web")).0, code, "{owner}");
    }
    // Told while it was here, it is not told again when it comes another time.
    let me = world.connect(secret("me"));
    world.open(me, "web");
    world.tick_after(IDLE);
    world.leave(me, Leave::Lost);
    assert!(!world.registry.endings.contains_key(&secret("me")));
}
