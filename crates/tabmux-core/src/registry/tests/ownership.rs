//! Whose a session is, and what everybody else is told (C5, C9, C11, C17).

use super::*;

/// S0.14, S1.37, S2.13, S3.14
#[test]
fn a_foreign_session_answers_exactly_like_a_missing_one() {
    let mut world = World::new();
    let (a, b) = (world.connect(secret("a")), world.connect(secret("b")));
    let id = world.open(a, "web");
    let uuid = world.session(id).uuid.to_string();
    let identities = [token("t"), Identity::Path("p".into()), Identity::Http("h".into()), Identity::Nobody];
    let others: Vec<ClientId> = identities.into_iter().map(|identity| world.visit(identity)).collect();
    for caller in others.into_iter().chain([b]) {
        let missing = world.resolve(by(caller), Some("sess_00000fff")).unwrap_err();
        for text in ["web", &id.to_string(), &uuid] {
            let foreign = [
                code_and_text(world.resolve(by(caller), Some(text))),
                code_and_text(world.admit(by(caller), Some(text))),
                code_and_text(world.registry.admit(Lane::Beside, by(caller), Some(text), None, ACTS, world.now)),
                code_and_text(world.close(by(caller), Some(text))),
                code_and_text(world.registry.rename(by(caller), text, "mine", world.now)),
                code_and_text(world.set_current(by(caller), text)),
            ];
            let expected = (Code::SessionNotFound, missing.to_string().replace("sess_00000fff", text));
            assert!(foreign.iter().all(|answer| *answer == Some(expected.clone())), "{foreign:?}");
        }
    }
    assert_eq!(world.resolve(by(a), Some("web")), Ok(id), "it is untouched");
}

fn code_and_text<T>(result: Result<T, Fault>) -> Option<(Code, String)> {
    result.err().map(|fault| (fault.code, fault.to_string()))
}

/// S0.14
#[test]
fn an_unknown_name_is_shown_safely_and_cut() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let fault = world.resolve(by(me), Some("a\u{1b}[31m")).unwrap_err();
    assert_eq!(fault.message, "No session: a\\u{1b}[31m.");
    assert!(world.resolve(by(me), Some(&"x".repeat(10_000))).unwrap_err().message.len() < 200);
}

/// S3.13, S3.36
#[test]
fn a_listing_shows_the_callers_own_sessions_in_the_order_they_were_made() {
    let mut world = World::new();
    let (a, b) = (world.connect(secret("a")), world.connect(secret("b")));
    // The clock is set back meanwhile, two are made in the same moment, and ids are drawn at random.
    for (name, created_unix_ms, id) in [("first", 9, 30), ("second", 5, 20), ("third", 5, 10)] {
        let open = Open { created_unix_ms, ..plain(Some(name)) };
        world.registry.reserve(by(a), open, || minted(id), world.now).unwrap();
    }
    world.open(b, "other");
    assert_eq!(world.names(a), ["first", "second", "third"]);
    assert_eq!(world.names(b), ["other"]);
    assert_eq!(world.registry.list_all().len(), 4);
    assert_eq!(world.registry.list(by(ClientId(99))).len(), 0);
}

/// S3.13
#[test]
fn strangers_share_nothing_and_each_session_is_reached_by_its_uuid_alone() {
    let mut world = World::new();
    let (one, other) = (world.visit(Identity::Nobody), world.visit(Identity::Nobody));
    let id = world.open(one, "web");
    let same_name = world.open(other, "web");
    let uuid = world.session(id).uuid.to_string();
    assert_eq!(world.session(id).handle(), uuid);
    assert_eq!(world.registry.list(by(one)).len(), 0);
    for text in [uuid.clone(), uuid.to_uppercase()] {
        assert_eq!(world.admit(by(one), Some(&text)).map(|admitted| admitted.session), Ok(id), "{text}");
    }
    for text in ["web", "browser-1", &id.to_string()] {
        assert_eq!(code(world.resolve(by(one), Some(text))), Some(Code::SessionNotFound), "{text}");
    }
    assert_eq!(code(world.registry.close_all(by(one), world.now)), Some(Code::PolicyDenied));
    assert_eq!(code(world.registry.detach_all(by(one), world.now)), Some(Code::PolicyDenied));
    assert_eq!(world.registry.counts().sessions, 2, "both stay as they were");
    assert_eq!(world.close(by(other), Some(&uuid)), Ok(id), "whoever has the handle has the session");
    assert_eq!(world.registry.counts().sessions, 1);
    assert_eq!(world.session(same_name).phase, Phase::Open);
}

#[test]
fn a_stranger_cannot_reach_an_owned_session_even_by_its_uuid() {
    let mut world = World::new();
    let (me, stranger) = (world.connect(secret("me")), world.visit(Identity::Nobody));
    let id = world.open(me, "web");
    let uuid = world.session(id).uuid.to_string();
    assert_eq!(code(world.resolve(by(stranger), Some(&uuid))), Some(Code::SessionNotFound));
}

/// S2.13, S3.14
#[test]
fn an_identity_owns_what_it_names_as_its_own_and_nothing_else() {
    let mut world = World::new();
    let (me, stranger) = (world.connect(secret("me")), world.visit(Identity::Nobody));
    let (mine, strangers) = (world.open(me, "web"), world.open(stranger, "web"));
    let names = |world: &World, id: SessionId| ["web".to_owned(), id.to_string(), world.session(id).uuid.to_string()];
    let (of_mine, of_strangers) = (names(&world, mine), names(&world, strangers));
    let owned = |world: &World, identity: Identity, names: &[String; 3]| names.clone().map(|name| world.registry.has(&identity, &name));
    assert_eq!(owned(&world, secret("me"), &of_mine), [true; 3]);
    assert_eq!(owned(&world, Identity::Nobody, &of_strangers), [false, false, true]);
    assert_eq!(owned(&world, Identity::Nobody, &of_mine), [false; 3]);
    assert_eq!(owned(&world, secret("me"), &of_strangers), [true, false, false], "it has a 'web' of its own");
    assert_eq!(owned(&world, token("t"), &of_mine), [false; 3]);
    assert_eq!(owned(&world, Identity::Operator, &of_mine), [false; 3], "reaching is not owning");
    world.close(by(me), None).unwrap();
    assert_eq!(owned(&world, secret("me"), &of_mine), [false; 3]);
}

/// S3.13
#[test]
fn the_operator_reaches_any_session_by_id_uuid_or_a_name_only_one_has() {
    let mut world = World::new();
    let (a, b, operator) = (world.connect(secret("a")), world.connect(secret("b")), world.visit(Identity::Operator));
    let (shared, only) = (world.open(a, "web"), world.open(a, "mail"));
    let second = world.open(b, "web");
    let uuid = world.session(shared).uuid.to_string();
    assert_eq!(world.resolve(by(operator), Some("mail")), Ok(only));
    assert_eq!(world.resolve(by(operator), Some(&shared.to_string())), Ok(shared));
    assert_eq!(world.resolve(by(operator), Some(&uuid)), Ok(shared));
    let ambiguous = world.resolve(by(operator), Some("web")).unwrap_err();
    assert_eq!((ambiguous.code, ambiguous.message), (Code::BadArgument, format!("2 sessions are named 'web': {shared}, {second}.")));
    let own = world.open(operator, "web");
    assert_eq!(world.resolve(by(operator), Some("web")), Ok(own), "its own comes first");
    assert_eq!(world.names(operator), ["web"]);
    assert_eq!(world.close(by(operator), Some("mail")), Ok(only));
    assert_eq!(code(world.resolve(by(operator), Some("mail"))), Some(Code::SessionNotFound));
    assert_eq!(code(world.resolve(by(operator), Some(&only.to_string()))), Some(Code::SessionNotFound));
}

/// S0.7, S3.14
#[test]
fn closing_all_sessions_closes_the_callers_own_and_no_others() {
    let mut world = World::new();
    let (a, b) = (world.connect(secret("a")), world.connect(secret("b")));
    let mine = [world.open(a, "one"), world.open(a, "two")];
    let yours = world.open(b, "one");
    assert_eq!(world.registry.close_all(by(a), world.now), Ok(mine.to_vec()));
    world.registry.check_invariants();
    assert_eq!(world.effects(), mine.map(|id| close(id, Ended::Asked)));
    assert_eq!(world.names(a), [""; 0]);
    assert_eq!(world.resolve(by(b), None), Ok(yours));
}

#[test]
fn a_client_that_is_not_attached_is_refused() {
    let mut world = World::new();
    let gone = world.visit(token("t"));
    world.open(gone, "web");
    world.leave(gone, Leave::Lost);
    assert_eq!(code(world.admit(by(gone), Some("web"))), Some(Code::Unauthorized));
    assert_eq!(code(world.reserve(by(gone), plain(None))), Some(Code::Unauthorized));
    assert_eq!(code(world.registry.authorize(gone, world.now)), Some(Code::Unauthorized));
    assert_eq!((world.registry.identity(gone), world.registry.current(by(gone))), (None, None));
    let again = world.visit(token("t"));
    assert_ne!(again, gone, "a client's number is not given twice");
    assert_eq!(world.registry.identity(again), Some(&token("t")));
}
