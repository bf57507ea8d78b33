//! Seats and their limits (C4).

use super::*;

/// S0.19
#[test]
fn from_the_fifth_session_on_there_is_a_warning_and_the_sixth_still_starts() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let warnings: Vec<Option<String>> = (0..6).map(|_| world.reserve(by(me), plain(None)).unwrap().warning).collect();
    assert_eq!(warnings[..4], [None, None, None, None]);
    assert_eq!(warnings[4].as_deref(), Some("5 sessions of yours are open now; close those you no longer need."));
    assert!(warnings[5].as_deref().is_some_and(|text| text.starts_with("6 sessions")));
}

/// S0.19
/// S3.14: a count of others' sessions would tell of them.
#[test]
fn the_warning_counts_the_callers_own_sessions() {
    let mut world = World::with(rules());
    let (me, other) = (world.connect(secret("me")), world.connect(secret("other")));
    for _ in 0..6 {
        world.reserve(by(other), plain(None)).unwrap();
    }
    assert_eq!(world.reserve(by(me), plain(None)).unwrap().warning, None);
}

#[test]
fn a_banished_identity_has_no_sessions_and_may_not_act() {
    let mut world = World::with(rules());
    let (me, other) = (world.connect(Identity::Token("me".into())), world.connect(secret("other")));
    world.open(me, "mine");
    world.open(other, "theirs");
    world.registry.banish(&Identity::Token("me".into()), world.now);
    assert_eq!(code(world.registry.resolve(by(me), Some("mine"), world.now)), Some(Code::Unauthorized));
    assert_eq!(world.registry.list_all().len(), 1);
}

#[test]
fn the_warning_can_be_turned_off() {
    let mut world = World::with(Rules { warn_sessions: 0, ..rules() });
    let me = world.connect(secret("me"));
    assert_eq!(world.reserve(by(me), plain(None)).unwrap().warning, None);
}

/// S3.19, S3.20, S3.21, S3.22
#[test]
fn clones_have_a_hard_limit_that_counts_those_in_the_making_and_leaves_the_rest_alone() {
    let mut world = World::new();
    let (a, b) = (world.connect(secret("a")), world.connect(secret("b")));
    world.open(a, "plain");
    world.reserve(by(a), clone_of("reserved")).unwrap();
    let making = world.reserve(by(b), clone_of("making")).unwrap().session;
    world.registry.opening(making).unwrap();
    let fault = world.reserve(by(a), clone_of("third")).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::Capacity, "All 2 cloned sessions are in use (limits.max_clones)."));
    assert_eq!(code(world.resolve(by(a), Some("third"))), Some(Code::SessionNotFound), "nothing untracked is left");
    assert!(world.admit(by(a), Some("reserved")).is_ok(), "those there are can be used");
    assert!(world.reserve(by(a), plain(Some("third"))).is_ok(), "plain sessions are not clones");
    assert_eq!((world.registry.counts().clones, world.registry.counts().sessions), (2, 4));
    assert!(!fault.hint.contains("lost"), "{fault}");
    world.leave(b, Leave::Lost);
    let fault = world.reserve(by(a), clone_of("fourth")).unwrap_err();
    assert!(fault.hint.contains("may still come back to 1 of them"), "why nobody can close it: {fault}");
}

/// S3.19, S3.21
#[test]
fn a_limit_on_all_sessions_counts_everybodys_and_a_closed_one_frees_its_seat() {
    let mut world = World::with(Rules { max_sessions: 2, ..rules() });
    let (a, b) = (world.connect(secret("a")), world.connect(secret("b")));
    world.open(a, "one");
    world.open(b, "one");
    let fault = world.reserve(by(a), plain(Some("two"))).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::Capacity, "All 2 sessions are in use (limits.max_sessions)."));
    world.close(by(b), None).unwrap();
    assert!(world.reserve(by(a), plain(Some("two"))).is_ok());
}

#[test]
fn without_a_limit_there_is_no_limit() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    for _ in 0..100 {
        world.open_as(me, plain(None));
    }
    assert_eq!(world.registry.counts().sessions, 100);
}

/// S0.18
#[test]
fn a_taken_name_is_said_before_a_full_house() {
    let mut world = World::with(Rules { max_sessions: 1, ..rules() });
    let me = world.connect(secret("me"));
    world.open(me, "web");
    assert_eq!(code(world.reserve(by(me), plain(Some("web")))), Some(Code::SessionExists));
}

#[test]
fn the_counts_say_what_there_is() {
    let mut world = World::new();
    let (me, mate) = (world.connect(token("t")), world.connect(secret("s")));
    let id = world.open_as(me, clone_of("web"));
    world.open(mate, "lost");
    world.leave(mate, Leave::Lost);
    let calls = [0; 3].map(|_| world.admit(by(me), None).unwrap());
    world.begin(calls[0]).unwrap();
    world.registry.admit(Lane::Beside, by(me), None, None, ACTS, world.now).unwrap();
    let counts = Counts { sessions: 2, active: 1, orphaned: 1, lost: 0, reserved: 0, clones: 1, clients: 1, running: 2, waiting: 2 };
    assert_eq!(world.registry.counts(), counts);
    world.close(by(me), Some(&id.to_string())).unwrap();
    assert_eq!(world.registry.counts(), Counts { sessions: 1, orphaned: 1, lost: 0, clients: 1, ..Counts::default() });
}
