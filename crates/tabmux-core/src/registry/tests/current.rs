//! Which session a call without a name goes to (C8).

use super::*;

/// S0.14, S0.3
#[test]
fn with_no_session_a_call_without_a_name_says_none_active() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let fault = world.admit(by(me), None).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::SessionRequired, "No session: none active."));
    assert_eq!(world.registry.current(by(me)), None);
}

/// S0.3, S0.23, S0.24, S0.38, S1.35
#[test]
fn the_only_session_is_current_and_the_caller_is_told_that_it_was_picked() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    assert_eq!(world.registry.current(by(me)), Some(id));
    let picked = world.admit(by(me), None).unwrap();
    assert_eq!((picked.session, picked.picked_for_caller), (id, true));
    let named = world.admit(by(me), Some("web")).unwrap();
    assert_eq!((named.session, named.picked_for_caller), (id, false));
}

/// S0.3
#[test]
fn with_several_sessions_and_none_set_the_caller_is_given_the_list() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "one");
    world.open(me, "two");
    let fault = world.admit(by(me), None).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::SessionRequired, "You have 2 sessions and none is current: one, two."));
    assert_eq!(world.registry.current(by(me)), None);
}

#[test]
fn the_list_of_very_many_sessions_is_cut() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    for number in 10..31 {
        world.open(me, &format!("s{number}"));
    }
    let fault = world.resolve(by(me), None).unwrap_err();
    assert!(fault.message.starts_with("You have 21 sessions") && fault.message.ends_with("s28, s29, …."), "{fault}");
    world.close(by(me), Some("s30")).unwrap();
    assert!(world.resolve(by(me), None).unwrap_err().message.ends_with("s28, s29."));
}

/// S0.13, S0.2
#[test]
fn the_session_that_was_set_is_current_and_a_named_call_still_goes_where_it_says() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let (one, two) = (world.open(me, "one"), world.open(me, "two"));
    assert_eq!(world.set_current(by(me), "two"), Ok(two));
    assert_eq!(world.admit(by(me), None).map(|admitted| admitted.session), Ok(two));
    assert_eq!(world.admit(by(me), Some("one")).map(|admitted| admitted.session), Ok(one));
    assert_eq!(world.set_current(by(me), "one"), Ok(one));
    assert_eq!(world.registry.current(by(me)), Some(one));
}

/// S0.13, S0.14
#[test]
fn setting_an_unknown_session_is_refused_and_changes_nothing() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let (one, _) = (world.open(me, "one"), world.open(me, "two"));
    world.set_current(by(me), "one").unwrap();
    let fault = world.set_current(by(me), "three").unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::SessionNotFound, "No session: three."));
    assert_eq!(world.registry.current(by(me)), Some(one));
}

/// S0.6
#[test]
fn when_the_current_session_closes_the_only_one_left_is_current_and_of_several_none() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    for name in ["one", "two", "three"] {
        world.open(me, name);
    }
    world.set_current(by(me), "one").unwrap();
    world.close(by(me), None).unwrap();
    assert_eq!(world.registry.current(by(me)), None);
    world.close(by(me), Some("two")).unwrap();
    assert_eq!(world.registry.current(by(me)), Some(SessionId(3)));
}

/// S0.35
#[test]
fn agents_of_one_connection_share_its_sessions_and_each_has_its_own_current_one() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let (one, two) = (world.open(me, "one"), world.open(me, "two"));
    world.set_current(agent(me, "a"), "one").unwrap();
    world.set_current(agent(me, "b"), "two").unwrap();
    assert_eq!(world.registry.current(agent(me, "a")), Some(one));
    assert_eq!(world.registry.current(agent(me, "b")), Some(two));
    assert_eq!(world.registry.current(agent(me, "c")), None);
    assert_eq!(world.registry.current(by(me)), None);
    assert_eq!(world.resolve(agent(me, "a"), Some("two")), Ok(two));
    world.set_current(agent(me, "a"), "two").unwrap();
    assert_eq!(world.registry.current(agent(me, "a")), Some(two));
}

#[test]
fn what_one_caller_sets_is_never_anothers_current_session() {
    let mut world = World::new();
    let (a, b) = (world.connect(secret("a")), world.connect(secret("b")));
    world.open(a, "one");
    world.open(a, "two");
    let yours = world.open(b, "web");
    world.set_current(by(a), "one").unwrap();
    assert_eq!(world.registry.current(by(b)), Some(yours));
    assert_eq!(code(world.set_current(by(b), "one")), Some(Code::SessionNotFound));
}

/// S0.14
#[test]
fn callers_without_an_identity_have_no_current_session() {
    let mut world = World::new();
    let stranger = world.visit(Identity::Nobody);
    let id = world.open(stranger, "web");
    let uuid = world.session(id).uuid.to_string();
    assert_eq!(world.registry.current(by(stranger)), None);
    assert_eq!(world.admit(by(stranger), None).unwrap_err().message, "No session: none active.");
    assert_eq!(code(world.set_current(by(stranger), &uuid)), Some(Code::PolicyDenied));
    assert_eq!(world.registry.currents().count(), 0);
}

#[test]
fn the_operator_cannot_make_anothers_session_its_current_one() {
    let mut world = World::new();
    let (me, operator) = (world.connect(secret("me")), world.visit(Identity::Operator));
    world.open(me, "mine");
    assert_eq!(code(world.set_current(by(operator), "mine")), Some(Code::PolicyDenied));
    let own = world.open(operator, "own");
    world.open(operator, "other");
    assert_eq!(world.set_current(by(operator), "own"), Ok(own));
}

/// The operator's current session lasts between commands (contract).
#[test]
fn a_current_session_outlasts_the_command_that_set_it() {
    let mut world = World::new();
    let first = world.visit(Identity::Operator);
    let own = world.open(first, "own");
    world.open(first, "other");
    world.set_current(by(first), "own").unwrap();
    world.leave(first, Leave::Lost);
    let second = world.visit(Identity::Operator);
    assert_eq!(world.registry.current(by(second)), Some(own));
}

#[test]
fn only_so_many_agents_are_remembered_and_the_oldest_is_forgotten_first() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let one = world.open(me, "one");
    world.open(me, "two");
    let most = crate::registry::sessions::MAX_AGENTS;
    for number in 0..most {
        world.set_current(agent(me, &format!("a{number}")), "one").unwrap();
    }
    assert_eq!(world.registry.current(agent(me, "a0")), Some(one));
    world.registry.take_persists();
    world.set_current(agent(me, "one more"), "one").unwrap();
    assert_eq!(world.registry.current(agent(me, "a0")), None);
    assert_eq!(world.registry.current(agent(me, "a1")), Some(one));
    assert_eq!(world.registry.currents().count(), most);
    let forgotten = Persist::Current { owner: secret("me"), agent: Some("a0".into()), session: None };
    assert!(world.registry.take_persists().contains(&forgotten));
}

/// C11: a caller that cannot be told apart is told what counts here, and how to become somebody.
#[test]
fn who_has_no_session_is_told_how_to_get_or_name_one() {
    let mut world = World::new();
    let (me, nobody, person) = (world.connect(secret("me")), world.visit(Identity::Nobody), world.visit(Identity::Operator));
    let id = world.open(nobody, "web");
    let uuid = world.session(id).uuid.to_string();
    let now = world.now;
    let mut hint = |client, target| world.registry.resolve(by(client), target, now).unwrap_err().hint;
    assert_eq!(hint(me, None), "Call start_browser or navigate to make one.");
    assert_eq!(hint(me, Some("web")), "Call list_sessions to see yours, or start_browser to make one.");
    for (target, command) in [(None, "tabmux open"), (Some("none"), "tabmux ls")] {
        let hint = hint(person, target);
        assert!(hint.contains(command) && !hint.contains("start_browser"), "the command line is no tool: {hint}");
    }
    let hints = [
        hint(nobody, None),
        hint(nobody, Some("web")),
        world.registry.set_current(by(nobody), &uuid, now).unwrap_err().hint,
        world.registry.close_all(by(nobody), now).unwrap_err().hint,
        world.registry.detach_all(by(nobody), now).unwrap_err().hint,
    ];
    for hint in hints {
        assert!(["uuid", "tabmux token new NAME", "/mcp/NAME"].iter().all(|said| hint.contains(said)), "{hint}");
    }
}
