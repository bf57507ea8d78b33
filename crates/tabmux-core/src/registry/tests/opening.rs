//! Reserve, make, commit; and what happens when something comes between.

use super::*;
use crate::{Loss, Scoping, WindowId};

/// S1.14
#[test]
fn a_session_is_reserved_then_opening_then_open() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.reserve(by(me), plain(Some("web"))).unwrap().session;
    assert_eq!((world.session(id).phase, world.session(id).context.as_deref()), (Phase::Reserved, None));
    world.registry.opening(id).unwrap();
    assert_eq!(world.session(id).phase, Phase::Opening);
    world.registry.opened(id, "ctx".into()).unwrap();
    assert_eq!((world.session(id).phase, world.session(id).context.as_deref()), (Phase::Open, Some("ctx")));
}

/// S3.23
#[test]
fn a_session_closed_while_it_is_made_refuses_what_was_made_and_leaves_nothing() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.reserve(by(me), clone_of("web")).unwrap().session;
    world.registry.opening(id).unwrap();
    let call = world.admit(by(me), None).unwrap();
    world.close(by(me), Some("web")).unwrap();
    assert_eq!(world.effects()[1..], [close(id, Ended::Asked)]);
    assert_eq!(code(world.registry.opened(id, "late".into())), Some(Code::SessionClosed));
    assert_eq!(code(world.registry.opening(id)), Some(Code::SessionClosed));
    assert_eq!(code(world.registry.add_tab(id, Party::Owner, "page".into(), String::new())), Some(Code::SessionClosed));
    assert_eq!(world.session(id).context, None);
    assert!(!world.finish(call));
    world.closed(id);
    assert_eq!((world.registry.session(id), world.registry.counts().clones), (None, 0));
    assert_eq!(code(world.registry.opened(id, "later".into())), Some(Code::SessionClosed), "no zombie");
}

/// S3.25, S3.21
#[test]
fn a_session_that_could_not_be_made_frees_its_name_and_seat_and_tells_its_callers_why() {
    let mut world = World::with(Rules { max_sessions: 1, ..rules() });
    let me = world.connect(secret("me"));
    let id = world.reserve(by(me), plain(Some("web"))).unwrap().session;
    world.registry.opening(id).unwrap();
    world.set_current(by(me), "web").unwrap();
    let call = world.admit(by(me), None).unwrap();
    let fault = Fault::new(Code::BrowserNotFound, "No browser.", "Install one.");
    world.registry.open_failed(id, &fault, world.now);
    world.registry.check_invariants();
    assert_eq!(world.effects(), [Effect::EndCall { call: call.call, fault }]);
    assert_eq!((world.registry.session(id), world.registry.current(by(me))), (None, None));
    assert_eq!(world.open(me, "web"), SessionId(2), "the name and the seat are free");
}

/// S3.23, S3.25
#[test]
fn a_making_that_fails_after_the_close_leaves_nothing_either() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.reserve(by(me), plain(Some("web"))).unwrap().session;
    world.registry.opening(id).unwrap();
    world.close(by(me), None).unwrap();
    world.registry.open_failed(id, &Fault::new(Code::Internal, "x", "y"), world.now);
    world.registry.check_invariants();
    assert_eq!(world.registry.session(id), None);
    world.closed(id);
    assert_eq!(world.tick_after(EMPTY).last(), Some(&Effect::Exit));
}

/// S0.6
#[test]
fn closing_one_session_leaves_the_others_alive_and_frees_its_name_at_once() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let (one, two) = (world.open(me, "one"), world.open(me, "two"));
    assert_eq!(world.close(by(me), Some("one")), Ok(one));
    assert_eq!(world.effects(), [close(one, Ended::Asked)]);
    assert_eq!(world.resolve(by(me), None), Ok(two));
    assert_eq!(world.open(me, "one"), SessionId(3), "while the former one is still being closed");
    assert_eq!(code(world.close(by(me), Some(&one.to_string()))), Some(Code::SessionNotFound), "it closes once");
    world.closed(one);
    assert_eq!(world.registry.counts().sessions, 2);
}

#[test]
fn a_session_that_is_not_being_closed_cannot_be_reported_closed() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.closed(id);
    assert_eq!(world.resolve(by(me), None), Ok(id));
}

#[test]
fn a_session_the_driver_lost_is_undone_and_a_stop_ends_all() {
    let mut world = World::new();
    let (a, b) = (world.connect(secret("a")), world.connect(secret("b")));
    let ids = [world.open(a, "one"), world.open(a, "two"), world.open(b, "one")];
    world.registry.lost(ids[0]);
    world.registry.check_invariants();
    assert_eq!(world.effects(), [close(ids[0], Ended::Undone)]);
    world.registry.lost(ids[0]);
    world.registry.close_everything();
    world.registry.check_invariants();
    assert_eq!(world.effects(), [close(ids[1], Ended::Asked), close(ids[2], Ended::Asked)]);
}

/// S3.25
#[test]
fn a_session_is_unfinished_until_what_it_is_made_for_is_there_or_it_stays_without() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let (made, kept) = (world.open(me, "made"), world.open(me, "kept"));
    for id in [made, kept] {
        world.registry.set_unfinished(id);
        world.add_tab(id);
    }
    world.registry.take_persists();
    assert_eq!([true, false].map(|_| world.registry.finish_making(made)), [true, false], "once");
    assert!(matches!(&world.registry.take_persists()[..], [Persist::Session(session)] if session.id == made && !session.unfinished));
    world.registry.undo_unused(kept);
    assert!(!world.session(kept).unfinished, "what is not taken back is there to stay");
}

/// S3.25
#[test]
fn a_session_is_taken_back_only_while_nothing_is_or_waits_in_it() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.reserve(by(me), plain(None)).unwrap().session;
    let call = world.admit(by(me), None).unwrap();
    world.registry.undo_unused(id);
    assert_eq!(world.effects(), [], "a call waits in it");
    world.finish(call);
    let tab = world.registry.add_tab(id, Party::Owner, "page".into(), String::new()).unwrap();
    world.registry.undo_unused(id);
    assert_eq!(world.effects(), [], "it has a tab");
    world.registry.remove_tab(id, tab, None);
    world.registry.undo_unused(id);
    world.registry.check_invariants();
    assert_eq!(world.effects(), [close(id, Ended::Undone)]);
}

#[test]
fn a_session_whose_browser_is_lost_keeps_its_name_and_starts_afresh() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let (lost, other) = (world.open(me, "lost"), world.open(me, "other"));
    let tab = world.registry.add_tab(lost, Party::Owner, "page".into(), "http://a.test/".into()).unwrap();
    let kept = world.registry.add_tab(other, Party::Owner, "page".into(), String::new()).unwrap();
    let number = world.session(lost).tabs[&tab].number;
    let windows = &mut world.registry.sessions.get_mut(&lost).expect("it is open").0.windows;
    windows.scoping = Scoping::Off;
    windows.adopt(WindowId(7));
    world.set_current(by(me), "lost").unwrap();
    let call = world.admit(by(me), None).unwrap();
    world.effects();
    let why = Fault::new(Code::BrowserCrashed, "The browser is gone.", "Navigate again.");
    world.registry.browser_lost(lost, &why);
    world.registry.check_invariants();
    assert_eq!(world.effects(), [Effect::EndCall { call: call.call, fault: why.clone() }], "the session is not closed");
    let session = world.session(lost);
    assert_eq!((session.phase, session.context.as_deref(), session.current_tab, session.tabs.len()), (Phase::Reserved, None, None, 0));
    assert_eq!((session.windows.scoping, session.windows.home()), (Scoping::Off, None), "what was set stays, what was there is gone");
    assert_eq!((world.registry.tab_numbered(number), world.registry.current(by(me))), (None, Some(lost)));
    assert!(world.session(other).tabs.contains_key(&kept), "others notice nothing");
    let unused = world.reserve(by(me), plain(Some("unused"))).unwrap().session;
    let is_lost = |world: &World, id| world.session(id).is_lost();
    assert_eq!([lost, other, unused].map(|id| is_lost(&world, id)), [true, false, false], "what was never made has lost nothing");
    assert_eq!(world.registry.counts().lost, 1);
    for (said, left) in [(Loss::Untold, Loss::Untold), (Loss::Told, Loss::None)] {
        world.registry.set_loss(lost, said);
        world.registry.opened(lost, "next".into()).unwrap();
        assert_eq!(world.session(lost).loss, left, "who was not told is still to be told, with another browser too");
    }
    assert_ne!(world.registry.add_tab(lost, Party::Owner, "page".into(), String::new()), Ok(tab), "an old id is no new tab");
    world.close(by(me), Some("lost")).unwrap();
    world.effects();
    world.registry.browser_lost(lost, &why);
    assert_eq!((world.effects(), world.session(lost).phase), (vec![], Phase::Closing), "what is being closed stays so");
}

/// S1.14: an id that is only reserved is no session yet, and goes with whoever reserved it, unless something was begun with it.
#[test]
fn what_is_only_reserved_is_not_active_and_can_be_given_up() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let reserve = |world: &mut World, name: &str| world.reserve(by(me), plain(Some(name))).unwrap().session;
    let (unused, asked) = (reserve(&mut world, "unused"), reserve(&mut world, "asked"));
    let (open, lost) = (world.open(me, "open"), world.open(me, "lost"));
    world.registry.add_tab(lost, Party::Owner, "page".into(), String::new()).unwrap();
    let why = Fault::new(Code::BrowserCrashed, "The browser is gone.", "Navigate again.");
    world.registry.browser_lost(lost, &why);
    let pageless = world.open(me, "pageless");
    world.registry.browser_lost(pageless, &why);
    let of_all = |is: fn(&Session) -> bool| [unused, asked, open, lost, pageless].map(|id| is(world.session(id)));
    assert_eq!(of_all(Session::is_reservation), [true, true, false, false, false]);
    assert_eq!(of_all(Session::is_lost), [false, false, false, true, true], "also what had no page");
    let counts = world.registry.counts();
    assert_eq!((counts.sessions, counts.lost, counts.reserved, counts.active), (5, 2, 2, 1));
    world.admit(by(me), Some("asked")).unwrap();
    world.effects();
    for id in [unused, asked, open, lost] {
        world.registry.give_up_reservation(id);
    }
    assert_eq!(world.effects(), [close(unused, Ended::Lost)], "something was begun with the others");
    world.open(me, "orphan");
    world.leave(me, Leave::Lost);
    assert_eq!(world.registry.counts().active, 0);
}
