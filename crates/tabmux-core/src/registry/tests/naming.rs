//! What sessions are called, and by whom they can be called that.

use super::*;

fn automatic(world: &mut World, client: ClientId, kind: Kind) -> String {
    let id = world.open_as(client, Open { kind, ..plain(None) });
    world.session(id).name.clone()
}

/// S0.10, S0.11
#[test]
fn automatic_names_count_per_type() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let kinds = [Kind::Browser, Kind::Browser, Kind::Ios, Kind::Android, Kind::Browser];
    let names = kinds.map(|kind| automatic(&mut world, me, kind));
    assert_eq!(names, ["browser-1", "browser-2", "ios-1", "android-1", "browser-3"]);
}

/// S0.11
#[test]
fn an_automatic_name_skips_a_taken_one() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "browser-1");
    world.open(me, "browser-3");
    let names = [0; 2].map(|_| automatic(&mut world, me, Kind::Browser));
    assert_eq!(names, ["browser-2", "browser-4"]);
}

/// S0.11
#[test]
fn the_number_goes_on_after_a_close_and_a_refused_session_takes_none() {
    let mut world = World::with(Rules { max_sessions: 1, ..rules() });
    let me = world.connect(secret("me"));
    assert_eq!(automatic(&mut world, me, Kind::Browser), "browser-1");
    assert_eq!(code(world.reserve(by(me), plain(None))), Some(Code::Capacity));
    world.close(by(me), None).unwrap();
    assert_eq!(automatic(&mut world, me, Kind::Browser), "browser-2");
}

/// S0.10, S0.11
#[test]
fn numbers_and_names_are_counted_per_owner() {
    let mut world = World::new();
    let (a, b) = (world.connect(secret("a")), world.connect(secret("b")));
    assert_eq!(automatic(&mut world, a, Kind::Browser), "browser-1");
    assert_eq!(automatic(&mut world, b, Kind::Browser), "browser-1");
    let (mine, yours) = (world.open(a, "web"), world.open(b, "web"));
    assert_eq!(world.resolve(by(a), Some("web")), Ok(mine));
    assert_eq!(world.resolve(by(b), Some("web")), Ok(yours));
}

/// S0.18, S0.15
#[test]
fn a_taken_name_is_refused_and_the_old_session_stays_usable() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let old = world.open(me, "test");
    let fault = world.reserve(by(me), plain(Some("test"))).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::SessionExists, "Session 'test' already exists."));
    assert_eq!(world.admit(by(me), Some("test")).map(|admitted| admitted.session), Ok(old));
    assert_eq!(world.registry.counts().sessions, 1);
}

/// S0.9, S3.34
#[test]
fn a_session_is_found_by_name_id_and_uuid_and_keeps_what_it_was_made_with() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open_as(me, Open { kind: Kind::Ios, ..plain(Some("phone")) });
    let session = world.session(id).clone();
    for text in ["phone".to_owned(), id.to_string(), session.uuid.to_string(), session.uuid.to_string().to_uppercase()] {
        assert_eq!(world.resolve(by(me), Some(&text)), Ok(id), "{text}");
    }
    assert_eq!((session.kind, session.seat, session.isolation.as_str()), (Kind::Ios, Seat::Plain, "context"));
    assert_eq!((session.owner.clone(), session.created_unix_ms, session.epoch), (secret("me"), 7, crate::Epoch(1)));
    assert_eq!((session.phase, session.context.as_deref(), session.handle()), (Phase::Open, Some("context"), "phone".to_owned()));
}

/// S1.20
#[test]
fn an_id_or_uuid_that_is_taken_is_drawn_again() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let first = world.open(me, "one");
    let uuid = world.session(first).uuid;
    let mut draws = vec![minted(9), Minted { id: SessionId(8), uuid }, Minted { id: first, uuid: Uuid(1) }];
    let opened = world.registry.reserve(by(me), plain(Some("two")), || draws.pop().expect("draws are left"), world.now);
    assert_eq!(opened.map(|opened| opened.session), Ok(minted(9).id));
    assert!(draws.is_empty());
}

#[test]
fn a_name_can_be_typed_and_reads_as_no_id() {
    let longest = "ä".repeat(128);
    for name in ["web", "user a", "t1", "sess_1", longest.as_str()] {
        assert_eq!(check_name(name), Ok(()), "{name}");
    }
    let too_long = "x".repeat(129);
    let uuid = minted(1).uuid.to_string();
    let wrong = [
        ("", "it is empty"),
        (too_long.as_str(), "longer than 128"),
        ("a\nb", "control or invisible"),
        ("a\u{202e}b", "control or invisible"),
        ("a\u{200b}b", "control or invisible"),
        ("a/b", "a / or a :"),
        ("a:t1", "a / or a :"),
        (" a", "spaces at its ends"),
        ("a ", "spaces at its ends"),
        ("sess_0000001f", "reads as a session id"),
        (uuid.as_str(), "reads as a session id"),
    ];
    for (name, why) in wrong {
        let fault = check_name(name).unwrap_err();
        assert_eq!(fault.code, Code::BadArgument);
        assert!(fault.message.contains(why), "{fault}");
        assert!(fault.message.chars().count() < 160, "a long name is cut: {fault}");
    }
}

#[test]
fn a_bad_name_is_refused_wherever_a_name_is_given() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    assert_eq!(code(world.reserve(by(me), plain(Some("")))), Some(Code::BadArgument));
    world.open(me, "web");
    assert_eq!(code(world.registry.rename(by(me), "web", "\t", world.now)), Some(Code::BadArgument));
}

/// S1.40
#[test]
fn a_renamed_session_answers_to_the_new_name_only() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "old");
    assert_eq!(world.registry.rename(by(me), "old", "new", world.now), Ok(id));
    world.registry.check_invariants();
    assert_eq!(world.resolve(by(me), Some("new")), Ok(id));
    assert_eq!(code(world.resolve(by(me), Some("old"))), Some(Code::SessionNotFound));
    assert_eq!(world.open(me, "old"), SessionId(2), "the old name is free");
}

/// S0.18
#[test]
fn a_rename_to_a_taken_name_is_refused_and_to_its_own_name_is_nothing() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "one");
    world.open(me, "two");
    world.registry.take_persists();
    assert_eq!(code(world.registry.rename(by(me), "one", "two", world.now)), Some(Code::SessionExists));
    assert_eq!(world.registry.rename(by(me), "one", "one", world.now), Ok(id));
    assert_eq!(world.registry.take_persists(), []);
    assert_eq!(world.names(me), ["one", "two"]);
}

#[test]
fn the_operator_renames_among_the_owners_names_not_its_own() {
    let mut world = World::new();
    let (me, operator) = (world.connect(secret("me")), world.visit(Identity::Operator));
    let mine = world.open(me, "mine");
    world.open(me, "taken");
    world.open(operator, "web");
    assert_eq!(world.registry.rename(by(operator), "mine", "web", world.now), Ok(mine));
    assert_eq!(world.resolve(by(me), Some("web")), Ok(mine));
    assert_eq!(code(world.registry.rename(by(operator), &mine.to_string(), "taken", world.now)), Some(Code::SessionExists));
}

/// The name that `tabmux mcp --session` gives is for the first session only; a stranger's sessions are nobody's.
#[test]
fn a_caller_owns_none_until_its_first_session_and_again_after_its_last() {
    let mut world = World::new();
    let (me, other, stranger) = (world.connect(secret("me")), world.connect(secret("other")), world.connect(Identity::Nobody));
    assert!(world.registry.owns_none(by(me)) && world.registry.owns_none(by(stranger)));
    world.open(me, "web");
    world.open(stranger, "theirs");
    assert!(!world.registry.owns_none(by(me)), "it owns one now");
    assert!(world.registry.owns_none(by(other)), "not of others");
    assert!(world.registry.owns_none(by(stranger)), "each of their sessions is a first one");
    world.close(by(me), Some("web")).unwrap();
    assert!(world.registry.owns_none(by(me)), "what is being closed does not count");
}
