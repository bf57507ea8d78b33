//! What is written down after each operation, and that it is enough.

use super::*;

fn written(world: &mut World) -> Vec<Persist> {
    world.registry.take_persists()
}

/// The session as it is now, to be written.
fn whole(world: &World, id: SessionId) -> Persist {
    Persist::Session(Box::new(world.session(id).clone()))
}

fn current(agent: Option<&str>, session: Option<SessionId>) -> Persist {
    Persist::Current { owner: secret("me"), agent: agent.map(Into::into), session }
}

/// S1.41
#[test]
fn each_step_of_a_sessions_life_is_written_once() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.reserve(by(me), plain(Some("web"))).unwrap().session;
    assert_eq!((world.session(id).phase, written(&mut world)), (Phase::Reserved, vec![whole(&world, id)]));
    assert_eq!(written(&mut world), [], "it is written");
    world.registry.opening(id).unwrap();
    assert_eq!((world.session(id).phase, written(&mut world)), (Phase::Opening, vec![whole(&world, id)]));
    world.registry.opened(id, "ctx".into()).unwrap();
    assert_eq!((world.session(id).phase, written(&mut world)), (Phase::Open, vec![whole(&world, id)]));
    world.registry.rename(by(me), "web", "new", world.now).unwrap();
    assert_eq!(written(&mut world), [whole(&world, id)]);
    world.registry.set_settings(id, "headed");
    assert_eq!((world.session(id).settings.clone(), written(&mut world)), ("headed".to_owned(), vec![whole(&world, id)]));
    world.registry.set_settings(id, "headed");
    assert_eq!(written(&mut world), [], "nothing changed");
    world.close(by(me), None).unwrap();
    assert_eq!((world.session(id).phase, written(&mut world)), (Phase::Closing, vec![whole(&world, id)]));
    world.closed(id);
    assert_eq!(written(&mut world), [Persist::Gone(id)]);
}

/// S1.41
#[test]
fn tabs_are_written_when_something_changed_and_only_then() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.add_tab(id);
    let tab = world.add_tab(id);
    let numbers = [2, 3].map(|number| Persist::NextTab(TabNumber(number)));
    assert_eq!(written(&mut world), [&numbers[..], &[whole(&world, id)]].concat(), "several changes are one record");
    world.registry.select_tab(id, Party::Owner, tab).unwrap();
    assert_eq!(written(&mut world), [], "it was current already");
    world.registry.select_tab(id, Party::Owner, TabId(1)).unwrap();
    assert_eq!(written(&mut world), [whole(&world, id)]);
    world.registry.tab_at(id, tab, "about:blank");
    assert_eq!(written(&mut world), [], "it was there already");
    world.registry.tab_at(id, tab, "https://example.org/");
    assert_eq!(written(&mut world), [whole(&world, id)]);
    world.registry.remember_tab(id, tab, Some("a dialog is open".into()));
    assert_eq!(written(&mut world), [whole(&world, id)]);
    world.registry.remember_tab(id, tab, Some("a dialog is open".into()));
    assert_eq!(written(&mut world), [], "that was known already");
    world.registry.remove_tab(id, tab, None);
    assert_eq!(written(&mut world), [whole(&world, id)]);
    world.registry.remove_tab(id, tab, None);
    assert_eq!(written(&mut world), [], "it was gone already");
}

/// S1.41
#[test]
fn current_sessions_are_written_when_set_and_when_they_end() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    written(&mut world);
    world.set_current(by(me), "web").unwrap();
    world.set_current(agent(me, "a"), "web").unwrap();
    assert_eq!(written(&mut world), [current(None, Some(id)), current(Some("a"), Some(id))]);
    assert_eq!(world.registry.currents().collect::<Vec<_>>(), [(&secret("me"), None, id), (&secret("me"), Some("a"), id)]);
    world.close(by(me), None).unwrap();
    assert_eq!(written(&mut world), [current(None, None), current(Some("a"), None), whole(&world, id)]);
}

/// S1.41
#[test]
fn changes_of_hands_are_written() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    world.set_current(by(me), "web").unwrap();
    world.leave(me, Leave::Lost);
    written(&mut world);
    world.connect(secret("me"));
    assert_eq!(written(&mut world), [whole(&world, id)], "taken back: a new epoch");
    world.registry.hand_over(id, &Identity::Operator, world.now);
    assert_eq!(written(&mut world), [current(None, None), whole(&world, id)]);
}

/// S3.25
#[test]
fn a_session_that_could_not_be_made_is_written_as_gone() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.reserve(by(me), plain(None)).unwrap().session;
    world.registry.opening(id).unwrap();
    written(&mut world);
    world.registry.open_failed(id, &Fault::new(Code::Internal, "x", "y"), world.now);
    assert_eq!(written(&mut world), [Persist::Gone(id)]);
}

/// Calls, clocks, viewers and connections are forgotten with the daemon.
#[test]
fn what_is_not_to_last_is_not_written() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    let id = world.open(me, "web");
    written(&mut world);
    let call = world.admit(by(me), None).unwrap();
    world.begin(call).unwrap();
    world.finish(call);
    world.registry.watch(id);
    world.registry.unwatch(id, world.now);
    world.tick_after(1);
    world.leave(me, Leave::Lost);
    assert_eq!(written(&mut world), []);
    assert_eq!(code(world.reserve(by(me), plain(None))), Some(Code::Unauthorized));
    assert_eq!(written(&mut world), []);
}

#[test]
fn effects_are_given_out_once() {
    let mut world = World::new();
    let me = world.connect(secret("me"));
    world.open(me, "web");
    world.close(by(me), None).unwrap();
    assert_eq!(world.effects().len(), 1);
    assert_eq!(world.effects(), []);
}
