//! Whose window is whose (Seed 4).

use super::*;
use crate::{Ground, House, Placement, Spot, TAKEN, WindowId};

const OWN: WindowId = WindowId(10);
const OTHER: WindowId = WindowId(20);
const USERS: WindowId = WindowId(99);

fn new(window: WindowId) -> Spot {
    Spot { window, ground: Ground::New }
}

/// Two sessions with a window and a tab each.
fn two_in_windows() -> (World, [SessionId; 2]) {
    let mut world = World::new();
    let ids = [("me", OWN), ("you", OTHER)].map(|(name, window)| {
        let client = world.connect(secret(name));
        let id = world.open(client, "web");
        let tab = world.add_tab(id);
        assert_eq!(world.registry.place_tab(id, tab, new(window)), Placement::Right);
        id
    });
    world.registry.check_invariants();
    (world, ids)
}

/// S4.1, S4.20: the window a session's first tab was made in is the session's, and is written down.
#[test]
fn the_window_made_for_a_session_is_its_own_and_nobody_elses() {
    let (mut world, [mine, yours]) = two_in_windows();
    assert_eq!(world.session(mine).windows.home(), Some(OWN));
    let tab = world.add_tab(mine);
    let misplaced = Placement::Misplaced { expected: Some(OWN), found: OTHER };
    assert_eq!(world.registry.place_tab(mine, tab, new(OTHER)), misplaced, "also if a driver takes it for new");
    world.registry.check_invariants();
    assert_eq!(world.session(yours).windows.windows.len(), 1);
    assert_eq!(world.registry.place_tab(mine, tab, Spot { window: OWN, ground: Ground::Old }), Placement::Right);
    assert_eq!(world.session(mine).windows.places[&tab], OWN);
}

/// S4.20: filtering and local indices.
#[test]
fn a_listing_has_the_tabs_in_own_windows_and_counts_from_zero() {
    let (mut world, [mine, yours]) = two_in_windows();
    let second = world.add_tab(mine);
    world.registry.place_tab(mine, second, Spot { window: OWN, ground: Ground::Old });
    let listed = |world: &World, id| {
        let session = world.session(id);
        session.windows.visible(session.tabs.keys().copied()).collect::<Vec<_>>()
    };
    assert_eq!(listed(&world, mine), [TabId(1), second]);
    assert_eq!(listed(&world, yours), [TabId(1)], "its own first one is 0 too");
}

/// S4.19
#[test]
fn a_tab_that_left_is_judged_once_and_the_session_keeps_its_window() {
    let (mut world, [mine, _]) = two_in_windows();
    assert_eq!(world.registry.tab_moved(mine, TabId(1), OWN), Placement::Right);
    assert_eq!(world.registry.tab_moved(mine, TabId(1), USERS), Placement::Left);
    world.registry.remove_tab(mine, TabId(1), None);
    world.registry.check_invariants();
    assert_eq!(world.session(mine).windows.home(), Some(OWN));
    assert_eq!(world.registry.tab_moved(mine, TabId(1), USERS), Placement::Right, "it is no tab of the session any more");
}

/// S4.19: it is open, and no call may be told otherwise, however it names the tab.
#[test]
fn who_names_a_tab_that_a_person_took_is_told_so_and_not_that_it_was_closed() {
    let (mut world, [mine, _]) = two_in_windows();
    let closed = world.add_tab(mine);
    let number = world.session(mine).tabs[&TabId(1)].number;
    world.registry.tab_moved(mine, TabId(1), USERS);
    for tab in [TabId(1), closed] {
        world.registry.remove_tab(mine, tab, None);
    }
    let taken = |named: &str| format!("[tab_gone] Tab {named} {TAKEN}. Call list_pages to see the session's tabs.");
    assert_eq!(world.registry.own_tab(mine, "t1").unwrap_err().to_string(), taken("t1"));
    assert_eq!(world.registry.select_tab(mine, Party::Owner, TabId(1)).unwrap_err().to_string(), taken("t1"));
    assert_eq!(world.registry.taken_tab(mine, TabId(1)).map(|fault| fault.to_string()), Some(taken("t1")));
    let owner = world.session(mine).owner.clone();
    let named = world.registry.own_tab_numbered(&owner, None, number, world.now).unwrap_err();
    assert_eq!(named.to_string(), taken(&number.to_string()));
    assert_eq!(world.registry.own_tab(mine, &closed.to_string()).unwrap_err().message, format!("Tab {closed} was closed."));
    assert_eq!(world.registry.taken_tab(mine, closed), None);
}

/// S4.17
#[test]
fn a_session_whose_window_is_gone_can_have_a_new_one() {
    let (mut world, [mine, _]) = two_in_windows();
    world.registry.window_full(mine, USERS);
    assert!(world.session(mine).windows.full.is_empty(), "not its window");
    world.registry.window_gone(mine, OWN);
    assert_eq!(world.session(mine).windows.home(), None);
    let tab = world.add_tab(mine);
    assert_eq!(world.registry.place_tab(mine, tab, new(WindowId(30))), Placement::Right);
    world.registry.window_full(mine, WindowId(30));
    assert_eq!(world.session(mine).windows.home(), None);
    world.registry.check_invariants();
}

/// S4.18
#[test]
fn scoping_is_a_rule_of_the_daemon_and_on_by_default() {
    let mut world = World::with(Rules { scoping: Scoping::Off, ..rules() });
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let tab = world.add_tab(id);
    assert_eq!(world.registry.place_tab(id, tab, Spot { window: USERS, ground: Ground::Old }), Placement::Right);
    assert_eq!(world.registry.tab_moved(id, tab, OTHER), Placement::Right);
    assert_eq!((Scoping::default(), rules().scoping), (Scoping::Windows, Scoping::Windows));
}

/// Where a tab is, is written when that changed and only then.
#[test]
fn a_tabs_place_is_written_once() {
    let (mut world, [mine, _]) = two_in_windows();
    world.registry.take_persists();
    let spot = Spot { window: OWN, ground: Ground::Old };
    world.registry.place_tab(mine, TabId(1), spot);
    assert_eq!(world.registry.take_persists(), []);
    world.registry.tab_moved(mine, TabId(1), USERS);
    assert_eq!(world.registry.take_persists(), [Persist::Session(Box::new(world.session(mine).clone()))]);
}

/// A session that moves takes its pages along under new ids, in no window so far, and is otherwise itself.
#[test]
fn a_session_is_rehoused_whole_and_its_former_tabs_are_nobodys() {
    let mut world = World::with(Rules { scoping: Scoping::Off, ..rules() });
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let old = [world.add_tab(id), world.add_tab(id)];
    world.registry.place_tab(id, old[0], new(OWN));
    world.registry.take_persists();
    let house = || House { context: "elsewhere".into(), isolation: "browser", settings: "{}" };
    let pages = vec![("a".into(), "http://a.test/".to_owned()), ("b".into(), "http://b.test/".to_owned())];
    let tabs = world.registry.rehouse(id, house(), pages, 0).unwrap();
    world.registry.check_invariants();
    let session = world.session(id);
    assert_eq!((tabs.as_slice(), session.current_tab), (&[TabId(3), TabId(4)][..], Some(TabId(3))));
    assert_eq!(
        session.tabs.values().map(|tab| (&*tab.handle, tab.url.as_str())).collect::<Vec<_>>(),
        [("a", "http://a.test/"), ("b", "http://b.test/")]
    );
    assert_eq!((session.context.as_deref(), session.isolation.as_str(), session.settings.as_str()), (Some("elsewhere"), "browser", "{}"));
    assert_eq!((session.windows.scoping, session.windows.windows.len()), (Scoping::Off, 0));
    let written = Persist::Session(Box::new(session.clone()));
    assert_eq!(world.registry.take_persists().last(), Some(&written));
    world.close(by(me), None).unwrap();
    assert_eq!(code(world.registry.rehouse(id, house(), vec![], 0)), Some(Code::SessionClosed));
}
