//! What others may do with a session, and until when.

use super::*;
use crate::{CAPABILITY, Grant, Revoke, Right, Share, Shared, Uses};

const LOOKS: Deed<'static> = Deed { tool: "snapshot", touch: Touch::Looks };

/// As to migrate or to restore.
const GOVERNS: Deed<'static> = Deed { tool: "migrate", touch: Touch::Governs };

fn read() -> Share {
    Share::default()
}

pub(super) fn act() -> Share {
    Share { right: Right::Act, ..read() }
}

fn hand_over() -> Share {
    Share { right: Right::HandOver, ..read() }
}

fn tools(names: &[&str]) -> Option<std::collections::BTreeSet<String>> {
    Some(names.iter().map(ToString::to_string).collect())
}

impl World {
    /// Shares a session and gives the capability.
    pub(super) fn share(&mut self, caller: Caller<'_>, target: Option<&str>, share: Share) -> Result<String, Fault> {
        self.minted += 1;
        let capability = format!("{CAPABILITY}{}", self.minted);
        let shared = self.registry.share(caller, target, share, || digest(&capability), self.now);
        self.registry.check_invariants();
        shared.map(|_| capability)
    }

    pub(super) fn try_deed(&mut self, client: ClientId, target: Option<&str>, deed: Deed<'_>) -> Result<Admitted, Fault> {
        let admitted = self.registry.admit(Lane::Queue, by(client), target, None, deed, self.now);
        self.registry.check_invariants();
        admitted
    }

    fn looks(&mut self, client: ClientId, capability: &str) -> Option<Code> {
        let admitted = self.try_deed(client, Some(capability), LOOKS);
        self.end(admitted)
    }

    fn acts(&mut self, client: ClientId, capability: &str) -> Option<Code> {
        let admitted = self.try_deed(client, Some(capability), ACTS);
        self.end(admitted)
    }

    fn end(&mut self, admitted: Result<Admitted, Fault>) -> Option<Code> {
        admitted.map(|admitted| self.finish(admitted)).err().map(|fault| fault.code)
    }

    fn shares(&mut self, client: ClientId, target: Option<&str>) -> Vec<Shared> {
        self.registry.shares(by(client), target, self.now).unwrap()
    }

    pub(super) fn revoke(&mut self, client: ClientId, target: Option<&str>, which: Revoke<'_>) -> Result<usize, Code> {
        let revoked = self.registry.revoke(by(client), target, which, self.now);
        self.registry.check_invariants();
        revoked.map(|revoked| revoked.len()).map_err(|fault| fault.code)
    }
}

pub(super) fn two() -> (World, ClientId, ClientId, SessionId) {
    let mut world = World::new();
    let (me, you) = (world.connect(secret("me")), world.connect(secret("you")));
    let id = world.open(me, "web");
    (world, me, you, id)
}

#[test]
fn it_is_known_whether_any_call_is_the_owners() {
    let (mut world, me, you, id) = two();
    let other = world.open(me, "other");
    let capability = world.share(by(me), Some("web"), read()).unwrap();
    world.registry.admit(Lane::Queue, by(you), Some(&capability), None, LOOKS, world.now).unwrap();
    assert!(!world.registry.has_calls_of_owner(id));
    let own = world.registry.admit(Lane::Queue, by(me), Some("web"), None, LOOKS, world.now).unwrap();
    assert_eq!([id, other].map(|id| world.registry.has_calls_of_owner(id)), [true, false]);
    world.registry.finish(own.call, world.now);
    assert!(!world.registry.has_calls_of_owner(id));
}

const GONE: Option<Code> = Some(Code::SessionNotFound);
const DENIED: Option<Code> = Some(Code::PolicyDenied);

#[test]
fn whoever_shows_the_capability_may_look_and_nobody_else() {
    let (mut world, me, you, id) = two();
    let capability = world.share(by(me), None, read()).unwrap();
    assert_eq!(
        world.try_deed(you, Some(&capability), LOOKS).map(|admitted| (admitted.session, admitted.party)),
        Ok((id, Party::Holder(digest(&capability).id())))
    );
    assert!(world.try_deed(me, None, LOOKS).is_ok_and(|admitted| admitted.party == Party::Owner));
    assert_eq!(world.acts(you, &capability), DENIED);
    let stranger = world.visit(Identity::Nobody);
    assert_eq!(world.looks(stranger, &capability), None, "it needs nothing else");
    for name in
        ["web".to_owned(), id.to_string(), world.session(id).uuid.to_string(), "tmx_999".to_owned(), digest(&capability).to_string()]
    {
        assert_eq!(world.looks(you, &name), GONE, "{name}");
    }
    assert_eq!(world.names(you), [""; 0], "it is not listed as its own");
}

#[test]
fn a_grant_for_acting_is_for_pages_and_not_for_the_session_itself() {
    let (mut world, me, you, id) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    assert_eq!((world.acts(you, &capability), world.looks(you, &capability)), (None, None));
    assert_eq!(code(world.close(by(you), Some(&capability))), DENIED);
    assert_eq!(code(world.registry.rename(by(you), &capability, "mine", world.now)), DENIED);
    assert_eq!(code(world.set_current(by(you), &capability)), DENIED);
    assert_eq!(world.effects(), []);
    assert_eq!(world.session(id).name, "web");
}

#[test]
fn where_a_session_lives_is_its_owners_affair_whatever_a_grant_says() {
    let (mut world, me, you, id) = two();
    let grants = [read(), act(), Share { tools: tools(&["migrate"]), ..act() }, Share { uses: Uses::Once, ..act() }];
    for share in grants {
        let capability = world.share(by(me), None, share.clone()).unwrap();
        let refused = world.try_deed(you, Some(&capability), GOVERNS).unwrap_err();
        assert_eq!(Err(refused), world.close(by(you), Some(&capability)), "as closing it is: {share:?}");
        assert!(world.registry.known_grant(digest(&capability)).is_some(), "and that was no use of it");
    }
    let operator = world.visit(Identity::Operator);
    for (client, name) in [(me, "web"), (operator, "web")] {
        let admitted = world.try_deed(client, Some(name), GOVERNS);
        assert_eq!(world.end(admitted), None);
    }
    let whole = world.share(by(me), None, hand_over()).unwrap();
    assert_eq!(world.try_deed(you, Some(&whole), GOVERNS).map(|admitted| admitted.session), Ok(id), "its new owner's");
}

#[test]
fn a_grant_that_ended_lately_is_known_and_of_no_use() {
    let (mut world, me, you, _) = two();
    let revoked = world.share(by(me), None, act()).unwrap();
    let used = world.share(by(me), None, Share { uses: Uses::Once, ..act() }).unwrap();
    world.revoke(me, None, Revoke::One(&revoked)).unwrap();
    assert_eq!((world.acts(you, &used), world.acts(you, &used), world.acts(you, &revoked)), (None, GONE, GONE));
    assert!([&revoked, &used].iter().all(|capability| world.registry.known_grant(digest(capability)).is_some()));
    assert_eq!(world.registry.known_grant(digest("tmx_77")), None);
    for _ in 0..1000 {
        let capability = world.share(by(me), None, act()).unwrap();
        world.revoke(me, None, Revoke::One(&capability)).unwrap();
    }
    assert_eq!(world.registry.known_grant(digest(&revoked)), None, "not for ever");
    assert_eq!(world.registry.ended_grants.len(), super::super::grants::MAX_ENDED);
}

#[test]
fn only_the_named_tools_are_admitted() {
    let (mut world, me, you, _) = two();
    let capability = world.share(by(me), None, Share { tools: tools(&["snapshot"]), ..act() }).unwrap();
    assert_eq!(world.looks(you, &capability), None);
    let refused = world.try_deed(you, Some(&capability), ACTS).unwrap_err();
    let expected = format!("The grant {} is not for {}.", digest(&capability).id(), ACTS.tool);
    assert_eq!((refused.code, refused.message), (Code::PolicyDenied, expected));
    for tools in [None, tools(&[LOOKS.tool, ACTS.tool])] {
        let capability = world.share(by(me), None, Share { tools, ..read() }).unwrap();
        let refused = world.try_deed(you, Some(&capability), ACTS).unwrap_err();
        let expected = format!("The grant {} is only for looking, and {} acts.", digest(&capability).id(), ACTS.tool);
        assert_eq!((refused.code, refused.message), (Code::PolicyDenied, expected));
    }
}

#[test]
fn a_dead_grant_answers_exactly_like_a_missing_session() {
    let (mut world, me, you, id) = two();
    let revoked = world.share(by(me), None, act()).unwrap();
    let expired = world.share(by(me), None, Share { ttl_ms: Some(5), ..act() }).unwrap();
    let used = world.share(by(me), None, Share { uses: Uses::Once, ..act() }).unwrap();
    assert_eq!(world.revoke(me, None, Revoke::One(&revoked)), Ok(1));
    assert_eq!(world.acts(you, &used), None);
    world.pass(5);
    let missing = world.try_deed(you, Some("tmx_77"), LOOKS).unwrap_err();
    assert_eq!(
        missing.to_string(),
        "[session_not_found] No session: tmx_…. Call list_sessions to see yours, or start_browser to make one."
    );
    for capability in [&revoked, &expired, &used] {
        assert_eq!(world.try_deed(you, Some(capability), LOOKS), Err(missing.clone()), "{capability}");
        assert_eq!(world.resolve(by(you), Some(capability)), Err(missing.clone()));
        assert_eq!(world.share(by(you), Some(capability), read()), Err(missing.clone()));
    }
    world.close(by(me), None).unwrap();
    assert_eq!(world.registry.grants.len(), 0, "they end with {id}");
}

#[test]
fn a_grant_for_one_call_admits_one() {
    let (mut world, me, you, _) = two();
    let capability = world.share(by(me), None, Share { uses: Uses::Once, ..act() }).unwrap();
    for _ in 0..QUEUE {
        world.admit(by(me), None).unwrap();
    }
    assert_eq!(world.acts(you, &capability), Some(Code::QueueFull), "this was no use of it");
    assert_eq!(world.share(by(you), Some(&capability), read()).map_err(|fault| fault.code), Err(Code::PolicyDenied));
    let calls: Vec<_> = world.registry.calls.keys().copied().collect();
    assert!(calls.into_iter().all(|call| world.registry.finish(CallId(call), world.now)));
    let admitted = world.try_deed(you, Some(&capability), ACTS).unwrap();
    assert_eq!(world.acts(you, &capability), GONE);
    assert_eq!(world.registry.grant_of(admitted.call).map(|grant| grant.uses), Some(Uses::Once), "what it admitted goes on");
    assert_eq!((world.begin(admitted), world.finish(admitted)), (Ok(()), true));
}

#[test]
fn revoking_ends_what_waits_and_what_runs_by_it_and_nothing_else() {
    let (mut world, me, you, _) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    let narrower = world.share(by(you), Some(&capability), read()).unwrap();
    let running = world.try_deed(you, Some(&capability), ACTS).unwrap();
    world.begin(running).unwrap();
    let waiting = world.try_deed(you, Some(&narrower), LOOKS).unwrap();
    let mine = world.admit(by(me), None).unwrap();
    let beside = world.registry.admit(Lane::Beside, by(you), Some(&capability), None, ACTS, world.now).unwrap();
    let looking = world.registry.admit(Lane::Beside, by(you), Some(&capability), None, LOOKS, world.now).unwrap();
    assert_eq!(world.revoke(me, None, Revoke::One(&digest(&capability).id().to_string())), Ok(1));
    // Only what never began is like a call of a session that is not there.
    let (began, over) = (Code::OutcomeUnknown, Code::SessionNotFound);
    let ended = [end(running, began), end(waiting, over), end(beside, began), end(looking, Code::Cancelled)];
    assert_eq!(ends(&world.effects()), ended);
    assert_eq!([running, waiting, beside, looking].map(|call| world.finish(call)), [false; 4]);
    assert_eq!((world.begin(mine), world.looks(you, &narrower)), (Ok(()), GONE));
}

/// Attenuating only.
#[test]
fn what_comes_from_a_grant_is_never_wider_and_ends_with_it() {
    let (mut world, me, you, _) = two();
    let them = world.connect(secret("them"));
    let wide = Share { tools: tools(&["snapshot", "click_element"]), domains: vec!["a.test".into()], ttl_ms: Some(100), ..act() };
    let capability = world.share(by(me), None, wide).unwrap();
    for wider in [Share { tools: tools(&["snapshot", "evaluate"]), ..act() }, hand_over()] {
        assert_eq!(code(world.share(by(you), Some(&capability), wider.clone())), DENIED, "{wider:?}");
    }
    let fewer = world.share(by(you), Some(&capability), Share { tools: tools(&["snapshot"]), ..act() }).unwrap();
    assert_eq!(world.registry.grants[&digest(&fewer)].grant.tools, tools(&["snapshot"]));
    world.revoke(you, None, Revoke::One(&fewer)).unwrap();
    let refused = world.share(by(you), Some(&capability), hand_over()).unwrap_err();
    assert_eq!(refused.message, "Only its owner hands a session over.");
    let narrow = Share { domains: vec!["b.a.test".into()], ttl_ms: Some(1000), ..read() };
    let narrow = world.share(by(you), Some(&capability), narrow).unwrap();
    assert_eq!(code(world.share(by(them), Some(&narrow), act())), DENIED);
    let grant: Grant = (*world.registry.grants[&digest(&narrow)].grant).clone();
    assert_eq!(
        (grant.right, grant.tools, grant.domains),
        (Right::Read, tools(&["snapshot", "click_element"]), vec![vec!["a.test".into()], vec!["b.a.test".into()]])
    );
    assert_eq!(
        world.shares(you, Some(&capability)).iter().map(|shared| (shared.grant.id(), shared.left_ms)).collect::<Vec<_>>(),
        [(digest(&narrow).id(), Some(100))]
    );
    assert_eq!((world.looks(them, &narrow), world.acts(them, &narrow)), (None, DENIED));
    world.tick_after(100);
    assert_eq!((world.looks(them, &narrow), world.registry.grants.len()), (GONE, 0));
}

#[test]
fn a_grant_expires_on_time_also_when_nobody_looked_at_the_clock() {
    let (mut world, me, you, _) = two();
    let capability = world.share(by(me), None, Share { ttl_ms: Some(50), ..act() }).unwrap();
    assert_eq!(world.registry.next_due(), Some(Millis(50)));
    let holder = world.visit(Identity::Grant(digest(&capability)));
    world.pass(49);
    let running = world.try_deed(you, Some(&capability), ACTS).unwrap();
    world.pass(1);
    assert_eq!((world.acts(you, &capability), world.registry.holder(&capability, world.now)), (GONE, None));
    for target in [None, Some("web")] {
        assert!(world.try_deed(holder, target, LOOKS).is_err(), "nor for who is nobody but its holder: {target:?}");
    }
    assert_eq!(world.shares(me, None), []);
    assert_eq!(ends(&world.tick_after(0)), [end(running, Code::SessionNotFound)]);
}

#[test]
fn givers_owners_and_the_operator_list_and_revoke_and_others_do_not() {
    let (mut world, me, you, _) = two();
    let (operator, them, stranger) = (world.visit(Identity::Operator), world.connect(secret("them")), world.visit(Identity::Nobody));
    let first = world.share(by(me), None, act()).unwrap();
    let second = world.share(by(you), Some(&first), read()).unwrap();
    let third = world.share(by(them), Some(&second), read()).unwrap();
    let listed = |world: &mut World, client, target| world.shares(client, target).iter().map(|shared| shared.grant.key).collect::<Vec<_>>();
    let keys = |capabilities: &[&String]| capabilities.iter().map(|capability| digest(capability)).collect::<Vec<_>>();
    assert_eq!(listed(&mut world, me, None), keys(&[&first, &second, &third]));
    assert_eq!(listed(&mut world, operator, Some("web")), keys(&[&first, &second, &third]));
    assert_eq!(listed(&mut world, you, None), keys(&[&second]), "what came of it is its holder's affair");
    assert_eq!(listed(&mut world, you, Some(&first)), keys(&[&second, &third]));
    let holder = world.visit(Identity::Grant(digest(&first)));
    assert_eq!(listed(&mut world, holder, None), keys(&[&second, &third]));
    assert_eq!(listed(&mut world, stranger, None), []);
    for (client, target, which) in [(you, None, &first), (them, None, &second), (stranger, Some(third.as_str()), &third)] {
        assert_eq!(world.revoke(client, target, Revoke::One(which)), Err(Code::BadArgument));
    }
    assert_eq!(world.revoke(you, None, Revoke::All), Ok(1));
    assert_eq!(listed(&mut world, me, None), keys(&[&first]), "the third came from the second");
    assert_eq!(world.revoke(operator, None, Revoke::One("g_nonsense")), Err(Code::BadArgument));
    assert_eq!(world.revoke(operator, Some("web"), Revoke::All), Ok(1));
}

/// C11: nothing tells strangers apart, so what one gave is listed to none that does not name its session.
#[test]
fn what_a_stranger_gave_is_not_every_strangers_to_revoke() {
    let mut world = World::new();
    let (one, another) = (world.visit(Identity::Nobody), world.visit(Identity::Nobody));
    let id = world.open(one, "web");
    let uuid = world.session(id).uuid.to_string();
    let capability = world.share(by(one), Some(&uuid), act()).unwrap();
    assert_eq!((world.shares(another, None), world.revoke(another, None, Revoke::All)), (vec![], Ok(0)));
    assert_eq!(world.revoke(another, None, Revoke::One(&capability)), Err(Code::BadArgument));
    assert_eq!(world.revoke(one, Some(&uuid), Revoke::One(&capability)), Ok(1));
}

#[test]
fn there_is_a_bound_on_the_grants_of_a_session() {
    let (mut world, me, ..) = two();
    while world.share(by(me), None, read()).is_ok() {}
    assert_eq!(world.registry.grants.len(), 100);
    assert_eq!(code(world.share(by(me), None, read())), Some(Code::Capacity));
}

/// S1.42
#[test]
fn the_first_use_of_a_hand_over_takes_the_session_and_its_former_driver_is_told() {
    let (mut world, me, you, id) = two();
    let (mine, shared) = (world.share(by(me), None, hand_over()).unwrap(), world.share(by(me), None, act()).unwrap());
    let [running, waiting] = [0; 2].map(|_| world.admit(by(me), None).unwrap());
    world.begin(running).unwrap();
    assert_eq!(code(world.share(by(me), None, Share { domains: vec!["a.test".into()], ..hand_over() })), Some(Code::BadArgument));
    let first = world.try_deed(you, Some(&mine), ACTS).unwrap();
    assert_eq!((world.session(id).owner.clone(), first.party, first.epoch), (secret("you"), Party::Owner, crate::Epoch(2)));
    assert_eq!(world.effects().pop(), Some(Effect::TakenOver { session: id, was: None }));
    assert!(world.finish(running), "what ran may finish");
    assert_eq!(code(world.begin(waiting)), Some(Code::StaleEpoch));
    assert_eq!(world.begin(first), Ok(()));
    let me_after = |world: &mut World| {
        let names = [None, Some("web".to_owned()), Some(id.to_string()), Some(world.session(id).uuid.to_string())];
        names.map(|name| code(world.try_deed(me, name.as_deref(), LOOKS)))
    };
    assert_eq!(me_after(&mut world), [Some(Code::StaleEpoch); 4]);
    assert_eq!(me_after(&mut world), [Some(Code::StaleEpoch); 4], "as often as it tries");
    assert_eq!(world.acts(you, &shared), GONE, "what the former owner gave is over");
    assert_eq!((world.acts(you, &mine), world.acts(you, "web"), world.acts(me, &mine)), (None, None, GONE), "it is the taker's");
    let own = world.open(me, "web");
    assert_eq!(world.admit(by(me), Some("web")).map(|admitted| admitted.session), Ok(own), "its own of that name is meant again");
    assert_eq!(code(world.try_deed(me, Some(&id.to_string()), LOOKS)), GONE);
}

#[test]
fn a_capability_shows_its_session_to_whoever_has_it_and_looking_uses_nothing_up() {
    let (mut world, me, you, id) = two();
    let once = world.share(by(me), None, Share { uses: Uses::Once, ..act() }).unwrap();
    let whole = world.share(by(me), None, hand_over()).unwrap();
    let shown = |world: &mut World, who, capability: &str| {
        let shown = world.registry.shown_by(by(who), capability, world.now);
        shown.map(|(id, grant)| (id, grant.map(|grant| grant.right))).map_err(|fault| fault.code)
    };
    let stranger = world.visit(Identity::Nobody);
    for who in [you, stranger, you] {
        assert_eq!(shown(&mut world, who, &once), Ok((id, Some(Right::Act))));
        assert_eq!(shown(&mut world, who, &whole), Ok((id, Some(Right::HandOver))));
    }
    assert_eq!(world.session(id).owner, secret("me"), "it is whose it was");
    assert_eq!((world.acts(you, &once), world.acts(you, &whole)), (None, None));
    assert_eq!((shown(&mut world, you, &once), shown(&mut world, you, &whole)), (Err(Code::SessionNotFound), Ok((id, None))));
    assert_eq!(shown(&mut world, me, &whole), Err(Code::SessionNotFound));
}

#[test]
fn only_the_former_driver_is_told_that_a_session_was_handed_over() {
    let mut world = World::new();
    let (stranger, you, them) = (world.visit(Identity::Nobody), world.connect(secret("you")), world.connect(secret("them")));
    let id = world.open(stranger, "web");
    let uuid = world.session(id).uuid.to_string();
    let capability = world.share(by(stranger), Some(&uuid), hand_over()).unwrap();
    assert_eq!(world.acts(you, &capability), None);
    assert_eq!(world.looks(stranger, &uuid), Some(Code::StaleEpoch));
    assert_eq!(code(world.try_deed(stranger, None, LOOKS)), Some(Code::SessionRequired), "no stranger hears of a uuid it does not know");
    assert_eq!((world.looks(stranger, &id.to_string()), world.looks(them, &uuid)), (GONE, GONE));
    world.close(by(you), None).unwrap();
    assert_eq!(world.looks(stranger, &uuid), GONE, "it is over");
}

#[test]
fn a_session_goes_back_and_forth_and_its_last_driver_is_never_stale() {
    let (mut world, me, you, id) = two();
    for _ in 0..20 {
        let there = world.share(by(me), Some("web"), hand_over()).unwrap();
        assert_eq!((world.acts(you, &there), world.looks(me, "web")), (None, Some(Code::StaleEpoch)));
        let back = world.share(by(you), Some("web"), hand_over()).unwrap();
        assert_eq!((world.acts(me, &back), world.looks(you, "web")), (None, Some(Code::StaleEpoch)));
    }
    assert_eq!((world.session(id).former.len(), world.session(id).epoch), (1, crate::Epoch(41)));
}

/// Each former driver is known once and in order, its present one not at all, and those of long ago are forgotten.
#[test]
fn former_drivers_are_remembered_newest_first_and_not_for_ever() {
    let (mut world, me, you, id) = two();
    let them = world.connect(secret("them"));
    let former = |world: &World| world.session(id).former.iter().map(|(who, _)| who.clone()).collect::<Vec<_>>();
    for (from, to) in [(me, you), (you, them)] {
        let capability = world.share(by(from), None, hand_over()).unwrap();
        assert_eq!(world.acts(to, &capability), None);
    }
    assert_eq!(former(&world), [secret("you"), secret("me")]);
    world.registry.rename(by(them), "web", "new", world.now).unwrap();
    let mine_again = world.share(by(them), None, hand_over()).unwrap();
    assert_eq!((world.acts(me, &mine_again), world.looks(me, "web")), (None, GONE));
    assert_eq!(former(&world), [secret("them"), secret("you")]);
    let mut last = me;
    for number in 0..20 {
        let capability = world.share(by(last), None, hand_over()).unwrap();
        last = world.connect(secret(&format!("driver{number}")));
        assert_eq!(world.acts(last, &capability), None);
    }
    let newest: Vec<_> = (11..19).rev().map(|number| secret(&format!("driver{number}"))).collect();
    assert_eq!(former(&world), newest);
}

/// Who has another session of that name is told of that one; other names it drove are still explained.
#[test]
fn a_former_driver_that_has_the_name_again_means_its_own() {
    let (mut world, me, you, _) = two();
    world.open(me, "mail");
    for name in ["web", "mail"] {
        let capability = world.share(by(me), Some(name), hand_over()).unwrap();
        assert_eq!(world.acts(you, &capability), None);
    }
    world.open(me, "web");
    assert_eq!((world.looks(me, "web"), world.looks(me, "mail")), (None, Some(Code::StaleEpoch)));
}

#[test]
fn who_is_nobody_but_a_holder_has_the_one_session_and_makes_none() {
    let (mut world, me, _, id) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    let identity = world.registry.holder(&capability, world.now).unwrap();
    let (one, two) = (world.connect(identity.clone()), world.visit(identity.clone()));
    for (client, target) in [(one, None), (two, None), (one, Some("web")), (one, Some(capability.as_str()))] {
        let admitted = world.try_deed(client, target, ACTS);
        assert_eq!(world.end(admitted), None, "{target:?}");
    }
    let other = world.open(me, "other");
    for target in ["other", other.to_string().as_str(), "ghost"] {
        assert_eq!(world.acts(one, target), GONE, "{target} is not what was shared");
    }
    assert_eq!((world.names(one), world.registry.current(by(one))), (vec!["web"], Some(id)));
    assert!(world.registry.has(&identity, "web") && world.registry.has(&identity, &id.to_string()));
    assert!(world.registry.held_by(one).is_some() && world.registry.held_by(me).is_none());
    assert_eq!(code(world.reserve(by(one), plain(None))), DENIED);
    assert!(!world.registry.owns_none(by(one)));
    assert_eq!((code(world.close(by(one), None)), world.registry.close_all(by(one), world.now)), (DENIED, Ok(vec![])));
    world.leave(one, Leave::Goodbye);
    assert_eq!(world.effects(), [], "who leaves takes nothing along");
    world.revoke(me, None, Revoke::All).unwrap();
    let over = world.admit(by(two), None).unwrap_err();
    assert!(over.code == Code::SessionRequired && over.hint.contains("ask for another capability"), "{over}");
    assert_eq!(world.names(two), [""; 0]);
    assert_eq!(world.registry.holder(&capability, world.now), None);
    assert!(!world.registry.has(&identity, "web") && world.registry.is_over(two) && !world.registry.is_over(me));
}

#[test]
fn a_capability_that_took_a_session_over_is_its_owner_from_then_on() {
    let (mut world, me, you, id) = two();
    let capability = world.share(by(me), None, hand_over()).unwrap();
    let identity = world.registry.holder(&capability, world.now).unwrap();
    let command = world.visit(identity.clone());
    assert_eq!(world.try_deed(command, None, ACTS).map(|admitted| admitted.session), Ok(id));
    world.leave(command, Leave::Lost);
    assert_eq!(world.registry.holder(&capability, world.now), Some(identity.clone()), "the next command is the same");
    let next = world.visit(identity);
    assert_eq!(world.close(by(next), None), Ok(id));
    assert_eq!((world.registry.holder(&capability, world.now), world.acts(you, &capability)), (None, GONE));
}

#[test]
fn an_owner_that_comes_back_leaves_what_holders_do_alone() {
    let (mut world, me, you, _) = two();
    let capability = world.share(by(me), None, act()).unwrap();
    let waiting = world.try_deed(you, Some(&capability), ACTS).unwrap();
    world.leave(me, Leave::Lost);
    world.pass(GRACE - 1);
    assert_eq!(world.looks(you, &capability), None);
    assert_eq!(world.orphaned(), 1, "a holder is not the owner");
    world.connect(secret("me"));
    assert_eq!(world.begin(waiting), Ok(()));
}

#[test]
fn grants_outlast_the_daemon_with_what_is_left_of_their_time() {
    let (mut world, me, you, id) = two();
    let [lasting, timed, gone] = [None, Some(50), Some(5)].map(|ttl_ms| world.share(by(me), None, Share { ttl_ms, ..read() }).unwrap());
    let narrower = world.share(by(you), Some(&timed), read()).unwrap();
    world.pass(10);
    let (sessions, grants): (Vec<_>, Vec<_>) = (world.registry.records().cloned().collect(), world.registry.grants(world.now).collect());
    assert_eq!(grants.iter().map(|shared| shared.left_ms).collect::<Vec<_>>(), [None, Some(40), Some(0), Some(40)]);
    let mut next = World::new();
    next.now = Millis(7);
    let orphan = Shared {
        grant: Arc::new(Grant { key: GrantKey([9; 32]), parent: Some(GrantKey([8; 32])), ..(*grants[0].grant).clone() }),
        left_ms: None,
    };
    let foreign =
        Shared { grant: Arc::new(Grant { key: GrantKey([7; 32]), session: SessionId(99), ..(*grants[0].grant).clone() }), left_ms: None };
    next.registry.restore(sessions, vec![], grants.into_iter().chain([orphan, foreign]).collect(), TabNumber(1), next.now);
    next.registry.check_invariants();
    let over: Vec<GrantKey> = next
        .registry
        .take_persists()
        .into_iter()
        .filter_map(|persist| if let Persist::GrantGone(key) = persist { Some(key) } else { None })
        .collect();
    assert_eq!(over.len(), 3);
    let you = next.connect(secret("you"));
    assert_eq!([&lasting, &timed, &gone, &narrower].map(|capability| next.looks(you, capability)), [None, None, GONE, None]);
    next.pass(40);
    assert_eq!([&lasting, &timed, &narrower].map(|capability| next.looks(you, capability)), [None, GONE, GONE]);
    assert_eq!(next.session(id).owner, secret("me"));
}

#[test]
fn every_change_of_a_grant_is_written_down() {
    let (mut world, me, you, _) = two();
    world.registry.take_persists();
    let capability = world.share(by(me), None, Share { ttl_ms: Some(9), ..hand_over() }).unwrap();
    let written = world.registry.take_persists();
    assert!(matches!(&written[..], [Persist::Grant(Shared { left_ms: Some(9), .. })]), "{written:?}");
    assert_eq!(world.acts(you, &capability), None);
    let written = world.registry.take_persists();
    let taken =
        |persist: &Persist| matches!(persist, Persist::Grant(Shared { grant, left_ms: None }) if grant.taken_by == Some(secret("you")));
    assert!(written.iter().any(taken), "{written:?}");
    assert!(
        written.iter().any(|persist| matches!(persist, Persist::Session(session) if session.former == [(secret("me"), "web".to_owned())]))
    );
    world.close(by(you), None).unwrap();
    assert!(world.registry.take_persists().contains(&Persist::GrantGone(digest(&capability))));
}

#[test]
fn grants_that_a_revoked_token_gave_are_over() {
    let (mut world, me, _, _) = two();
    let ci = world.visit(token("ci"));
    let capability = world.share(by(me), None, act()).unwrap();
    let narrower = world.share(by(ci), Some(&capability), read()).unwrap();
    world.registry.banish(&token("ci"), world.now);
    assert_eq!((world.looks(me, &narrower), world.looks(me, &capability)), (GONE, None));
}

#[test]
fn no_session_can_be_called_like_a_capability() {
    let (mut world, me, ..) = two();
    assert_eq!(code(world.reserve(by(me), plain(Some("tmx_1")))), Some(Code::BadArgument));
}

/// S2.14, C17: on the surface where tabs have daemon-wide numbers a holder reaches the tabs of its session and no others.
#[test]
fn a_holder_names_tabs_by_number_only_within_its_session() {
    let (mut world, me, you, id) = two();
    let tab = world.add_tab(id);
    let other = world.open(me, "other");
    let foreign = world.add_tab(other);
    let capability = world.share(by(me), Some("web"), act()).unwrap();
    let number = |world: &World, id, tab| TabRef::Global(world.tab(id, tab).number);
    let (own, foreign) = (number(&world, id, tab), number(&world, other, foreign));
    assert!(
        world
            .registry
            .admit(Lane::Queue, by(you), Some(&capability), Some(own), ACTS, world.now)
            .is_ok_and(|admitted| matches!(admitted.party, Party::Holder(_)))
    );
    for (target, tab) in [(Some(capability.as_str()), foreign), (None, own)] {
        assert_eq!(world.registry.admit(Lane::Queue, by(you), target, Some(tab), ACTS, world.now), Err(foreign_tab()));
    }
    let whole = world.share(by(me), Some("web"), hand_over()).unwrap();
    assert!(
        world
            .registry
            .admit(Lane::Queue, by(you), Some(&whole), Some(own), ACTS, world.now)
            .is_ok_and(|admitted| admitted.party == Party::Owner)
    );
    assert_eq!(world.session(id).owner, secret("you"));
}
