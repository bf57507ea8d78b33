//! Tabs and their numbers (C13, C17).

use super::*;
use crate::{TabNumber, WindowId};

fn admit_tab(world: &mut World, client: ClientId, tab: &str) -> Result<Option<TabId>, Fault> {
    world.registry.admit(Lane::Queue, by(client), Some("web"), Some(TabRef::Local(tab)), ACTS, world.now).map(|admitted| admitted.tab)
}

#[test]
fn a_new_tab_is_the_current_one_and_the_latest_of_many() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    assert_eq!(world.session(id).current_tab, None);
    let tabs = [0; 3].map(|_| world.add_tab(id));
    assert_eq!((tabs, world.session(id).current_tab), ([TabId(1), TabId(2), TabId(3)], Some(TabId(3))));
    let tab = world.tab(id, TabId(1));
    assert_eq!((&*tab.handle, tab.url.as_str()), ("page", "about:blank"));
}

/// A journal of a session whose page opens forty others at addresses of two megabytes stays a journal that is written in no time.
#[test]
fn of_a_long_address_the_beginning_is_noted() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let long = format!("data:,{}", "é".repeat(1 << 20));
    let popup = world.registry.add_popup(id, "popup".into(), long.clone()).unwrap();
    let tab = world.add_tab(id);
    world.registry.tab_at(id, tab, &long);
    for tab in [popup, tab] {
        let url = world.tab(id, tab).url.clone();
        assert!(url.len() < 5000 && url.ends_with("é…") && long.starts_with(url.trim_end_matches('…')), "{} bytes", url.len());
    }
}

#[test]
fn tab_ids_are_never_reused() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let first = world.add_tab(id);
    world.registry.remove_tab(id, first, None);
    assert_eq!(world.add_tab(id), TabId(2));
}

/// S1.24
#[test]
fn a_closed_tab_is_gone_and_one_that_never_was_is_not_found() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.add_tab(id);
    world.add_tab(id);
    world.registry.remove_tab(id, TabId(1), None);
    world.registry.check_invariants();
    let gone = admit_tab(&mut world, me, "t1").unwrap_err();
    assert_eq!((gone.code, gone.message.as_str()), (Code::TabGone, "Tab t1 was closed."));
    assert_eq!(admit_tab(&mut world, me, "t2"), Ok(Some(TabId(2))));
    for text in ["t3", "t0", "1", "x", "t4294967295"] {
        let missing = admit_tab(&mut world, me, text).unwrap_err();
        let message = format!("No tab '{text}' in this session; tabs are named t1, t2, …");
        assert_eq!((missing.code, missing.message), (Code::TabNotFound, message));
    }
    let hostile = admit_tab(&mut world, me, &"\u{1b}".repeat(1_000)).unwrap_err();
    assert!(hostile.message.len() < 300 && !hostile.message.contains('\u{1b}'));
    assert_eq!(world.registry.counts().waiting, 1, "a refused call takes no place");
}

/// S2.5, S2.14
#[test]
fn a_tab_of_another_session_cannot_be_named() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let (mine, yours) = (world.open(me, "web"), world.open(you, "web"));
    world.add_tab(mine);
    let [_, second] = [0; 2].map(|_| world.add_tab(yours));
    assert_eq!(code(admit_tab(&mut world, me, &second.to_string())), Some(Code::TabNotFound));
    assert_eq!(code(world.registry.select_tab(mine, Party::Owner, second)), Some(Code::TabNotFound));
}

/// S4.14
#[test]
fn when_the_current_tab_closes_the_first_one_left_becomes_current() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let [first, second, third] = [0; 3].map(|_| world.add_tab(id));
    world.registry.remove_tab(id, first, None);
    assert_eq!(world.session(id).current_tab, Some(third), "the current one did not close");
    world.registry.remove_tab(id, third, None);
    assert_eq!(world.session(id).current_tab, Some(second));
    world.registry.remove_tab(id, second, None);
    world.registry.check_invariants();
    assert_eq!(world.session(id).current_tab, None);
}

/// S2.20, S1.22
#[test]
fn a_selected_tab_is_current_until_another_is_selected() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let [first, second] = [0; 2].map(|_| world.add_tab(id));
    assert_eq!(world.registry.select_tab(id, Party::Owner, first), Ok(()));
    assert_eq!(world.session(id).current_tab, Some(first));
    world.registry.remove_tab(id, second, None);
    assert_eq!(code(world.registry.select_tab(id, Party::Owner, second)), Some(Code::TabGone));
    assert_eq!(code(world.registry.select_tab(id, Party::Owner, TabId(9))), Some(Code::TabNotFound));
    assert_eq!(world.session(id).current_tab, Some(first));
    world.close(by(me), None).unwrap();
    assert_eq!(code(world.registry.select_tab(id, Party::Owner, first)), Some(Code::SessionClosed));
}

/// S2.5, S2.21
#[test]
fn tab_numbers_are_unique_in_the_daemon_and_lead_to_one_session() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let (mine, yours) = (world.open(me, "web"), world.open(you, "web"));
    let tabs = [mine, yours, mine].map(|id| (id, world.add_tab(id)));
    let numbers = tabs.map(|(id, tab)| world.tab(id, tab).number);
    assert_eq!(numbers, [TabNumber(1), TabNumber(2), TabNumber(3)]);
    for (number, (id, tab)) in numbers.into_iter().zip(tabs) {
        assert_eq!(world.registry.tab_numbered(number), Some((id, tab)));
    }
    assert_eq!(world.registry.tab_numbered(TabNumber(4)), None);
}

fn admit_number(world: &mut World, client: ClientId, target: Option<&str>, number: TabNumber) -> Result<(SessionId, Option<TabId>), Fault> {
    let queued = world.registry.admit(Lane::Queue, by(client), target, Some(TabRef::Global(number)), ACTS, world.now)?;
    world.finish(queued);
    let beside = world.registry.admit(Lane::Beside, by(client), target, Some(TabRef::Global(number)), ACTS, world.now)?;
    world.finish(beside);
    assert_eq!((queued.session, queued.tab), (beside.session, beside.tab));
    assert!(!queued.picked_for_caller, "the number said which session");
    Ok((queued.session, queued.tab))
}

/// S2.14
#[test]
fn a_tab_number_leads_into_any_session_of_the_caller_and_into_no_other() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let (one, two) = (world.open(me, "one"), world.open(me, "two"));
    let yours = world.open(you, "one");
    let [tab, other, foreign] = [one, two, yours].map(|id| {
        let tab = world.add_tab(id);
        world.tab(id, tab).number
    });
    assert_eq!(admit_number(&mut world, me, None, tab), Ok((one, Some(TabId(1)))), "none of the two is current");
    let id = two.to_string();
    for target in ["two", &id] {
        assert_eq!(admit_number(&mut world, me, Some(target), other), Ok((two, Some(TabId(1)))));
        assert_eq!(admit_number(&mut world, me, Some(target), tab), Err(foreign_tab()), "a tab of another session than the named one");
    }
    let foreign_name = yours.to_string();
    for (target, number) in
        [(None, foreign), (Some("one"), foreign), (Some(&*foreign_name), foreign), (Some("none"), tab), (None, TabNumber(99))]
    {
        assert_eq!(admit_number(&mut world, me, target, number), Err(foreign_tab()), "{target:?} {number}");
    }
    world.registry.hand_over(one, &secret("you"), world.now);
    world.registry.check_invariants();
    assert_eq!(admit_number(&mut world, me, None, tab), Err(foreign_tab()));
    assert_eq!(admit_number(&mut world, you, None, tab), Ok((one, Some(TabId(1)))));
}

/// S2.14: a conflict is for what is another's.
#[test]
fn the_number_of_a_closed_tab_is_gone_for_its_owner_and_foreign_to_others() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let id = world.open(me, "web");
    let [closed, moved] = [(); 2].map(|()| world.add_tab(id));
    let [first, second] = [closed, moved].map(|tab| world.tab(id, tab).number);
    world.registry.remove_tab(id, closed, None);
    world.registry.rehouse(id, super::super::House { context: "c2".into(), isolation: "", settings: "" }, Vec::new(), 0).unwrap();
    for number in [first, second] {
        for target in [None, Some("web")] {
            let gone = admit_number(&mut world, me, target, number).unwrap_err();
            assert_eq!((gone.code, gone.message), (Code::TabGone, format!("Tab {number} was closed.")));
            assert_eq!(admit_number(&mut world, you, target, number), Err(foreign_tab()), "{target:?} {number}");
        }
    }
}

/// S2.14
#[test]
fn a_stranger_names_the_session_of_its_tab_by_the_uuid() {
    let mut world = World::new();
    let stranger = world.visit(Identity::Nobody);
    let id = world.open(stranger, "web");
    let tab = world.add_tab(id);
    let (number, uuid) = (world.tab(id, tab).number, world.session(id).uuid.to_string());
    assert_eq!(admit_number(&mut world, stranger, Some(&uuid), number), Ok((id, Some(tab))));
    for target in [None, Some("web"), Some(&*id.to_string())] {
        assert_eq!(admit_number(&mut world, stranger, target, number), Err(foreign_tab()), "{target:?}");
    }
}

/// S2.24, S1.37
#[test]
fn an_event_of_a_tab_belongs_to_its_session_and_to_nobody_once_it_is_closed() {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let (mine, yours) = (world.open(me, "web"), world.open(you, "web"));
    let [one, two] = [mine, yours].map(|id| {
        let tab = world.add_tab(id);
        world.tab(id, tab).number
    });
    assert_eq!([one, two].map(|number| world.registry.tab_numbered(number)), [Some((mine, TabId(1))), Some((yours, TabId(1)))]);
    world.close(by(me), None).unwrap();
    assert_eq!(world.registry.tab_numbered(one), None);
    world.registry.remove_tab(yours, TabId(1), None);
    assert_eq!(world.registry.tab_numbered(two), None);
}

/// S4.17
#[test]
fn a_closed_tab_has_no_place_any_more() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let tab = world.add_tab(id);
    world.registry.sessions.get_mut(&id).unwrap().0.windows.places.insert(tab, WindowId(1));
    world.registry.remove_tab(id, tab, None);
    world.registry.check_invariants();
    assert!(world.session(id).windows.places.is_empty());
}

#[test]
fn where_a_tab_is_can_be_noted_for_tabs_that_are_there() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let tab = world.add_tab(id);
    world.registry.tab_at(id, tab, "https://example.org/");
    world.registry.tab_at(id, TabId(9), "https://example.org/");
    world.registry.tab_at(SessionId(99), tab, "https://example.org/");
    assert_eq!(world.tab(id, tab).url, "https://example.org/");
    assert_eq!(world.session(id).tabs.len(), 1);
}

#[test]
fn a_session_has_a_bounded_number_of_tabs() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let session = world.open(me, "web");
    for _ in 0..super::super::tabs::MAX_TABS {
        world.registry.add_tab(session, Party::Owner, "page".into(), String::new()).unwrap();
    }
    assert_eq!(code(world.registry.add_tab(session, Party::Owner, "page".into(), String::new())), Some(Code::Capacity));
    world.registry.remove_tab(session, TabId(1), None);
    assert_eq!(world.registry.add_tab(session, Party::Owner, "page".into(), String::new()), Ok(TabId(201)));
}

/// S4.23
#[test]
fn a_popup_gets_its_own_id_and_leaves_the_current_tab_current() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    let first = world.registry.add_popup(id, "alone".into(), String::new()).unwrap();
    assert_eq!(world.session(id).current_tab, Some(first), "the only tab is current");
    let popup = world.registry.add_popup(id, "popup".into(), "http://a.test/".into()).unwrap();
    assert_eq!((world.session(id).current_tab, world.session(id).tabs[&popup].url.as_str()), (Some(first), "http://a.test/"));
    world.registry.check_invariants();
}
