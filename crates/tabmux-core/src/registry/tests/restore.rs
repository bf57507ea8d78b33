//! Beginning with what a former daemon knew.

use super::*;
use crate::{Epoch, TabNumber};

fn record(number: u32, owner: Identity, phase: Phase) -> Session {
    Session {
        id: SessionId(number),
        uuid: minted(number).uuid,
        name: format!("s{number}"),
        kind: Kind::Browser,
        owner,
        seat: Seat::Plain,
        source: None,
        phase,
        isolation: "context".to_owned(),
        context: Some("ctx".into()),
        made: number.into(),
        created_unix_ms: 1,
        epoch: Epoch(4),
        tabs: BTreeMap::new(),
        current_tab: None,
        next_tab: 1,
        settings: String::new(),
        windows: crate::WindowScope::default(),
        former: Vec::new(),
        loss: crate::Loss::None,
        unfinished: false,
    }
}

/// S1.41
#[test]
fn open_sessions_come_back_with_names_tabs_and_currents() {
    let mut session = record(1, token("t"), Phase::Open);
    session.tabs.insert(TabId(2), Tab { number: TabNumber(40), handle: "p".into(), url: "u".to_owned(), memento: None });
    (session.current_tab, session.next_tab) = (Some(TabId(2)), 3);
    let sessions = vec![session.clone(), record(2, token("t"), Phase::Open)];
    let currents = vec![(token("t"), None, SessionId(1)), (token("t"), Some("a".into()), SessionId(2))];
    let mut world = World::restored(rules(), sessions, currents);
    assert_eq!((world.effects(), world.orphaned()), (vec![], 0));
    let me = world.visit(token("t"));
    assert_eq!(world.registry.current(by(me)), Some(SessionId(1)));
    assert_eq!(world.registry.current(agent(me, "a")), Some(SessionId(2)));
    assert_eq!(world.session(SessionId(1)), &session);
    assert_eq!(world.registry.records().count(), 2);
    assert_eq!(world.resolve(by(me), Some("s2")), Ok(SessionId(2)));
    assert_eq!(world.resolve(by(me), Some(&session.uuid.to_string())), Ok(SessionId(1)));
}

/// S1.41, S2.5
#[test]
fn tab_numbers_go_on_above_the_old_ones() {
    let mut session = record(1, token("t"), Phase::Open);
    for (tab, number) in [(1, 40), (3, 17)] {
        session.tabs.insert(TabId(tab), Tab { number: TabNumber(number), handle: "p".into(), url: "u".to_owned(), memento: None });
    }
    (session.current_tab, session.next_tab) = (Some(TabId(1)), 4);
    let mut world = World::restored(rules(), vec![session, record(2, token("t"), Phase::Open)], vec![]);
    let tab = world.add_tab(SessionId(1));
    assert_eq!((tab, world.tab(SessionId(1), tab).number), (TabId(4), TabNumber(41)));
}

/// S2.5
#[test]
fn the_number_of_a_tab_that_is_gone_is_not_given_again_after_a_restart() {
    let mut former = World::new();
    let me = former.connect(token("t"));
    let id = former.open(me, "web");
    let tabs = [0; 3].map(|_| former.add_tab(id));
    former.registry.remove_tab(id, tabs[2], None);
    let mut world = World::new();
    world.registry.restore(former.registry.records().cloned().collect(), vec![], vec![], former.registry.next_tab(), world.now);
    world.registry.check_invariants();
    let tab = world.add_tab(id);
    assert_eq!((world.tab(id, tab).number, world.registry.next_tab()), (TabNumber(4), TabNumber(5)));
}

/// S3.36
#[test]
fn sessions_made_after_a_restart_are_listed_after_those_before_it() {
    let mut world = World::restored(rules(), vec![record(2, token("t"), Phase::Open), record(7, token("t"), Phase::Open)], vec![]);
    let me = world.visit(token("t"));
    world.registry.reserve(by(me), plain(Some("new")), || minted(1), world.now).unwrap();
    world.registry.check_invariants();
    assert_eq!(world.names(me), ["s2", "s7", "new"]);
}

/// S3.5, S3.23
#[test]
fn what_was_half_made_is_undone_and_what_was_half_closed_is_finished() {
    let sessions =
        vec![record(1, token("t"), Phase::Opening), record(2, token("t"), Phase::Closing), record(3, token("t"), Phase::Reserved)];
    let currents = vec![(token("t"), None, SessionId(1)), (token("t"), Some("a".into()), SessionId(2))];
    let mut world = World::restored(rules(), sessions, currents);
    assert_eq!(world.effects(), [close(SessionId(1), Ended::Undone), close(SessionId(2), Ended::Undone)]);
    let me = world.visit(token("t"));
    assert_eq!(world.names(me), ["s3"]);
    let forgotten = [None, Some("a")].map(|agent| Persist::Current { owner: token("t"), agent: agent.map(Into::into), session: None });
    let persists = world.registry.take_persists();
    assert_eq!(persists[..2], forgotten);
    let expected = Persist::Session(Box::new(Session { phase: Phase::Closing, ..record(1, token("t"), Phase::Opening) }));
    assert_eq!(persists[2..], [expected]);
    assert_eq!(code(world.resolve(by(me), Some("s2"))), Some(Code::SessionNotFound));
    world.closed(SessionId(1));
    world.closed(SessionId(2));
    assert_eq!(world.registry.take_persists(), [Persist::Gone(SessionId(1)), Persist::Gone(SessionId(2))]);
}

/// S3.5, S3.25: who asked for it was never told that it is there.
#[test]
fn a_session_whose_making_did_not_come_to_its_end_is_undone_however_much_of_it_is_there() {
    let left = |number, phase, loss| Session { unfinished: true, loss, ..record(number, token("t"), phase) };
    let (none, told) = (crate::Loss::None, crate::Loss::Told);
    let sessions =
        vec![left(1, Phase::Reserved, none), left(2, Phase::Open, none), left(3, Phase::Opening, told), left(4, Phase::Open, told)];
    let mut world = World::restored(rules(), [sessions, vec![record(5, token("t"), Phase::Open)]].concat(), vec![]);
    assert_eq!(world.effects(), [1, 2, 3, 4].map(|number| close(SessionId(number), Ended::Undone)));
    let me = world.visit(token("t"));
    assert_eq!(world.names(me), ["s5"]);
}

/// S1.41: what lost its browser was there before, whatever was being made for it, and whether or not it had tabs.
#[test]
fn a_session_whose_next_browser_was_being_opened_keeps_its_name() {
    let lost = |number, seat| Session { context: None, loss: crate::Loss::Told, seat, ..record(number, token("t"), Phase::Opening) };
    let (plain, copy) = (lost(1, Seat::Plain), lost(2, Seat::Clone));
    let mut world = World::restored(rules(), vec![plain.clone(), copy, record(3, token("t"), Phase::Opening)], vec![]);
    assert_eq!(world.effects(), [close(SessionId(3), Ended::Undone)]);
    let me = world.visit(token("t"));
    assert_eq!(world.names(me), ["s1", "s2"]);
    assert_eq!(world.session(SessionId(1)), &Session { phase: Phase::Reserved, ..plain });
}

/// S3.21, S3.25: what a copy was to begin with may be gone, so one that had not begun is undone; one that lost its browser goes on.
#[test]
fn a_copy_that_had_not_begun_is_undone() {
    let copy = |number, next_tab| Session { context: None, seat: Seat::Clone, next_tab, ..record(number, token("t"), Phase::Reserved) };
    let mut world = World::restored(rules(), vec![copy(1, 1), copy(2, 3)], vec![]);
    assert_eq!(world.effects(), [close(SessionId(1), Ended::Undone)]);
    let me = world.visit(token("t"));
    assert_eq!(world.names(me), ["s2"]);
}

/// S1.41
#[test]
fn sessions_of_peers_that_can_be_lost_wait_as_orphans_for_the_grace_time() {
    let owners = [secret("s"), token("t"), Identity::Path("p".into()), Identity::Http("h".into()), Identity::Operator, Identity::Nobody];
    let sessions = (1..).zip(owners).map(|(number, owner)| record(number, owner, Phase::Open)).collect();
    let mut world = World::restored(Rules { on_lost: OnLost::Close, ..rules() }, sessions, vec![]);
    assert_eq!(world.orphaned(), 1, "the daemon was lost, not the client: nothing closes at once");
    assert_eq!(world.tick_after(GRACE), [close(SessionId(1), Ended::Lost)]);
    assert_eq!(world.tick_after(IDLE - GRACE).len(), 5, "the others have the idle clock");
}

/// S0.20
#[test]
fn the_clocks_of_restored_sessions_begin_at_the_restart() {
    let mut world = World::with(rules());
    world.pass(10 * IDLE);
    world.registry.restore(
        vec![record(1, token("t"), Phase::Open), record(2, secret("s"), Phase::Open)],
        vec![],
        vec![],
        TabNumber(1),
        world.now,
    );
    assert_eq!(world.tick_after(GRACE - 1), []);
    assert_eq!(world.tick_after(1), [close(SessionId(2), Ended::Lost)]);
    assert_eq!(world.tick_after(IDLE - GRACE), [close(SessionId(1), Ended::Idle)]);
}

#[test]
fn a_restored_orphan_is_taken_back_by_its_secret() {
    let mut world = World::restored(rules(), vec![record(1, secret("s"), Phase::Open)], vec![]);
    let me = world.connect(secret("s"));
    assert_eq!((world.resolve(by(me), None), world.orphaned()), (Ok(SessionId(1)), 0));
    assert_eq!(world.session(SessionId(1)).epoch, Epoch(5));
}

#[test]
fn where_lost_connections_keep_their_sessions_a_restart_makes_no_orphans() {
    let mut world = World::restored(Rules { on_lost: OnLost::Keep, ..rules() }, vec![record(1, secret("s"), Phase::Reserved)], vec![]);
    assert_eq!((world.orphaned(), world.tick_after(IDLE - 1)), (0, vec![]));
}

#[test]
fn a_current_session_of_somebody_else_is_not_taken_over() {
    let sessions = vec![record(1, token("t"), Phase::Open), record(2, token("t"), Phase::Open)];
    let currents = vec![(token("u"), None, SessionId(1)), (token("t"), None, SessionId(9))];
    let world = World::restored(rules(), sessions, currents);
    assert_eq!(world.registry.currents().count(), 0);
}

/// S1.10
#[test]
fn a_restored_daemon_is_empty_only_without_sessions() {
    let mut world = World::restored(rules(), vec![record(1, token("t"), Phase::Open)], vec![]);
    assert_eq!(world.tick_after(EMPTY), []);
    let mut world = World::restored(rules(), vec![], vec![]);
    assert_eq!(world.tick_after(EMPTY), [Effect::Exit]);
}

#[test]
fn a_restored_name_is_skipped_and_a_restored_seat_counts() {
    let mut session = record(1, token("t"), Phase::Open);
    session.name = "browser-1".to_owned();
    let mut world = World::restored(Rules { max_sessions: 2, ..rules() }, vec![session], vec![]);
    let me = world.visit(token("t"));
    let id = world.open_as(me, plain(None));
    assert_eq!(world.session(id).name, "browser-2");
    assert_eq!(code(world.reserve(by(me), plain(None))), Some(Code::Capacity));
}
