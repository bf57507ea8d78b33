//! Which tab a call without one means, for each who uses a session.

use super::grants::{act, two};
use super::*;
use crate::{Revoke, Share, Uses};

/// What the owner, the one who holds that capability and the operator mean.
fn meant(world: &World, id: SessionId, capability: &str) -> [Option<TabId>; 3] {
    [Party::Owner, holder(capability), Party::Operator].map(|party| world.registry.current_tab(id, party))
}

fn holder(capability: &str) -> Party {
    Party::Holder(digest(capability).id())
}

impl World {
    fn select(&mut self, id: SessionId, party: Party, tab: TabId) {
        self.registry.select_tab(id, party, tab).unwrap();
        self.registry.check_invariants();
    }

    fn choices(&self, id: SessionId) -> usize {
        self.registry.sessions[&id].1.chosen.len()
    }
}

/// S2.20
#[test]
fn everybody_means_the_owners_tab_until_they_choose_and_nobodys_choice_is_anothers() {
    let (mut world, me, _, id) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    assert_eq!(meant(&world, id, &capability), [None; 3]);
    let [one, two, three] = [0; 3].map(|_| world.add_tab(id));
    assert_eq!(meant(&world, id, &capability), [Some(three); 3]);
    world.select(id, holder(&capability), one);
    assert_eq!(meant(&world, id, &capability), [three, one, three].map(Some));
    world.select(id, Party::Operator, two);
    world.select(id, Party::Owner, one);
    assert_eq!(meant(&world, id, &capability), [one, one, two].map(Some));
    world.select(id, Party::Owner, three);
    assert_eq!(meant(&world, id, &capability), [three, one, two].map(Some));
}

#[test]
fn a_tab_is_current_for_who_opened_it_and_for_the_owner_if_there_is_no_other() {
    let (mut world, me, _, id) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    let mut open = |party| world.registry.add_tab(id, party, "page".into(), String::new()).unwrap();
    let [first, owners, holders, operators] = [holder(&capability), Party::Owner, holder(&capability), Party::Operator].map(&mut open);
    assert_eq!(meant(&world, id, &capability), [owners, holders, operators].map(Some));
    for tab in [owners, holders, operators] {
        world.registry.remove_tab(id, tab, None);
    }
    assert_eq!(meant(&world, id, &capability), [Some(first); 3], "who had chosen what is gone means what the owner means");
    world.registry.add_popup(id, "popup".into(), String::new()).unwrap();
    assert_eq!(meant(&world, id, &capability), [Some(first); 3]);
}

#[test]
fn nobody_chooses_a_tab_that_is_not_there() {
    let (mut world, me, _, id) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    let tab = world.add_tab(id);
    world.registry.remove_tab(id, tab, None);
    for party in [Party::Owner, holder(&capability), Party::Operator] {
        assert_eq!(code(world.registry.select_tab(id, party, tab)), Some(Code::TabGone));
        assert_eq!(code(world.registry.select_tab(id, party, TabId(9))), Some(Code::TabNotFound));
    }
    assert_eq!((meant(&world, id, &capability), world.choices(id)), ([None; 3], 0));
}

#[test]
fn what_was_chosen_is_gone_with_the_pages() {
    let (mut world, me, _, id) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    let choose = |world: &mut World| {
        let [one, _] = [0; 2].map(|_| world.add_tab(id));
        world.select(id, holder(&capability), one);
        world.select(id, Party::Operator, one);
    };
    choose(&mut world);
    let house = House { context: "other".into(), isolation: "context", settings: "" };
    let moved = world.registry.rehouse(id, house, vec![("a".into(), String::new()), ("b".into(), String::new())], 1).unwrap();
    assert_eq!(meant(&world, id, &capability), [Some(moved[1]); 3]);
    choose(&mut world);
    world.registry.forget_browser(id);
    world.registry.check_invariants();
    assert_eq!(meant(&world, id, &capability), [None; 3]);
}

#[test]
fn what_was_chosen_by_a_grant_is_forgotten_with_it() {
    let (mut world, me, you, id) = two();
    let [one, two] = [0; 2].map(|_| world.add_tab(id));
    let capability = world.share(by(me), None, act()).unwrap();
    world.select(id, holder(&capability), one);
    let kept = world.share(by(me), None, act()).unwrap();
    world.select(id, holder(&kept), one);
    let call = world.try_deed(you, Some(&capability), ACTS).unwrap();
    world.revoke(me, None, Revoke::One(&capability)).unwrap();
    assert_eq!((meant(&world, id, &capability)[1], meant(&world, id, &kept)[1]), (Some(two), Some(one)));
    world.select(id, call.party, one);
    assert_eq!(world.choices(id), 1, "a call whose grant is over may still be at work, and leaves nothing");
    world.revoke(me, None, Revoke::All).unwrap();
    assert_eq!(world.choices(id), 0);
}

#[test]
fn a_grant_for_one_call_chooses_for_that_call() {
    let (mut world, me, you, id) = two();
    let [one, two] = [0; 2].map(|_| world.add_tab(id));
    let once = Share { uses: Uses::Once, ..act() };
    let ends: [fn(&mut World, Admitted); 2] = [
        |world, call| assert!(world.finish(call)),
        |world, call| world.registry.put_off(call.session, &Fault::new(Code::BrowserCrashed, "", "")),
    ];
    for end in ends {
        let capability = world.share(by(me), None, once.clone()).unwrap();
        let call = world.try_deed(you, Some(&capability), ACTS).unwrap();
        world.select(id, call.party, one);
        assert_eq!(meant(&world, id, &capability), [two, one, two].map(Some));
        end(&mut world, call);
        assert_eq!((meant(&world, id, &capability), world.choices(id)), ([Some(two); 3], 0));
    }
}

/// S1.24, S4.14: nobody works in a neighbour unawares.
#[test]
fn who_worked_in_a_tab_that_is_lost_is_told_once_and_goes_on_with_the_current_one() {
    let (mut world, me, _, id) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    let [one, two, three] = [0; 3].map(|_| world.add_tab(id));
    let parties = [Party::Owner, holder(&capability), Party::Operator];
    let work = |world: &mut World| parties.map(|party| world.registry.work_tab(id, party));
    assert_eq!(world.registry.meant_tab(id, holder(&capability)), Ok(Some(three)));
    assert_eq!(work(&mut world), [Ok(Some(three)); 3]);
    world.select(id, Party::Operator, two);
    assert!(world.registry.remove_tab(id, three, Some(holder(&capability))) && !world.registry.remove_tab(id, three, None));
    let lost = |tab, current| Err(crate::LostTab { tab, current });
    assert_eq!(world.registry.meant_tab(id, Party::Owner), lost(three, Some(one)), "who only asks is not told");
    assert_eq!(work(&mut world), [lost(three, Some(one)), Ok(Some(one)), Ok(Some(two))], "who closed it knows");
    assert_eq!(work(&mut world), [one, one, two].map(|tab| Ok(Some(tab))), "once");
    for tab in [one, two] {
        world.registry.remove_tab(id, tab, None);
    }
    assert_eq!(work(&mut world), [one, one, two].map(|tab| lost(tab, None)));
    assert_eq!(work(&mut world), [Ok(None); 3]);
    world.registry.check_invariants();
}

/// S1.24
#[test]
fn who_named_a_lost_tab_or_chose_another_or_was_told_is_not_told_again() {
    let (mut world, me, _, id) = two();
    let knows: [fn(&mut World, ClientId, SessionId); 4] = [
        |world, me, _| {
            assert_eq!(
                code(world.registry.admit(Lane::Queue, by(me), None, Some(TabRef::Local("t2")), ACTS, world.now)),
                Some(Code::TabGone)
            );
        },
        |world, _, id| world.select(id, Party::Owner, TabId(1)),
        |world, _, id| world.registry.told_gone(id, Party::Owner, Some(TabId(4))),
        |world, _, id| world.registry.told_gone(id, Party::Owner, None),
    ];
    world.add_tab(id);
    for knows in knows {
        let tab = world.add_tab(id);
        world.registry.remove_tab(id, tab, None);
        world.registry.told_gone(id, Party::Owner, Some(TabId(1)));
        assert!(world.registry.meant_tab(id, Party::Owner).is_err(), "another's end is not this one's");
        knows(&mut world, me, id);
        assert_eq!(world.registry.work_tab(id, Party::Owner), Ok(Some(TabId(1))));
    }
}

/// S1.24: the next daemon tells it too, and who takes a session over works in what it was told of.
#[test]
fn a_tab_that_did_not_survive_the_daemon_is_told_to_the_owner() {
    let (mut former, _, _, id) = two();
    let [one, two] = [0; 2].map(|_| former.add_tab(id));
    let mut world = World::new();
    world.registry.restore(former.registry.records().cloned().collect(), vec![], vec![], former.registry.next_tab(), world.now);
    world.registry.remove_tab(id, two, None);
    let lost = Err(crate::LostTab { tab: two, current: Some(one) });
    assert_eq!(world.registry.meant_tab(id, Party::Owner), lost);
    world.registry.hand_over(id, &token("other"), world.now);
    assert_eq!(world.registry.work_tab(id, Party::Owner), Ok(Some(one)));
}
