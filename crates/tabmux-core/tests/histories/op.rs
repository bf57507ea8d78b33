//! Everything that can happen to a registry, with ids that may or may not exist: the registry must bear both.

use proptest::prelude::*;
use proptest::sample::select;
use tabmux_core::{CAPABILITY, Deed, GrantKey, Identity, Kind, Lane, Leave, Link, Right, Seat, SessionId, TabId, Touch, Uses, Uuid};

use crate::model::Model;

/// What a caller writes as `sessionId`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Target {
    Current,
    Name(u8),
    Automatic(u8),
    Id(u32),
    Uuid(u32),
    Capability(u32),
}

/// What a grant is to be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wish {
    pub(crate) right: Right,
    pub(crate) uses: Uses,
    pub(crate) ttl_ms: Option<u64>,
    /// Only for tools that look, or only for those that act.
    pub(crate) tools: Option<Touch>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Who {
    pub(crate) client: u64,
    pub(crate) agent: Option<u8>,
}

/// Who closes a tab.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Closer {
    Owner,
    Person,
}

/// The tab a call names.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Named {
    Local(u32),
    Global(u64),
}

#[derive(Clone, Debug)]
pub(crate) enum Op {
    Attach(Identity, Link),
    Detach(u64, Leave),
    Reserve(Who, Option<u8>, Kind, Seat),
    Opening(u32),
    Opened(u32),
    OpenFailed(u32),
    Resolve(Who, Target),
    Admit(Who, Target, Option<Named>, Lane, Touch),
    Share(Who, Target, Wish),
    /// One grant, or all.
    Revoke(Who, Target, Option<u32>),
    /// The call at the front of this session's queue, if none runs there.
    Begin(u32),
    Finish(u64),
    SetCurrent(Who, Target),
    Rename(Who, Target, u8),
    Close(Who, Target),
    CloseAll(Who),
    DetachAll(Who),
    HandOver(u32, Identity),
    Closed(u32),
    Lost(u32),
    BrowserLost(u32),
    CloseEverything,
    AddTab(u32),
    AddPopup(u32),
    RemoveTab(u32, u32, Closer),
    /// The owner works without naming a tab.
    WorkTab(u32),
    SelectTab(u32, u32),
    /// Who holds that grant selects one.
    HolderSelectsTab(u32, u32, u32),
    TabAt(u32, u32, u8),
    Watch(u32),
    Unwatch(u32),
    Pass(u64),
    Tick(u64),
    /// The daemon is killed; another one begins with the journal.
    Restart,
}

/// Few identities, so that they meet: two exclusive ones, and one of each other kind.
pub(crate) fn identities() -> Vec<Identity> {
    vec![
        Identity::Secret("a".into()),
        Identity::Secret("b".into()),
        Identity::Token("t".into()),
        Identity::Http("h".into()),
        Identity::Operator,
        Identity::Nobody,
    ]
}

/// Not a hash, but as good as one for `tmx_1`, `tmx_2`, …
pub(crate) fn digest(capability: &str) -> GrantKey {
    let number = capability.strip_prefix(CAPABILITY).and_then(|number| number.parse::<u32>().ok()).unwrap_or(u32::MAX);
    let mut key = [0xaa; 32];
    key[..4].copy_from_slice(&number.to_be_bytes());
    GrantKey(key)
}

pub(crate) fn capability(grant: u32) -> String {
    format!("{CAPABILITY}{grant}")
}

pub(crate) fn tool(touch: Touch) -> &'static str {
    match touch {
        Touch::Looks => "look",
        Touch::Acts => "act",
        Touch::Governs => "govern",
    }
}

pub(crate) fn deed(touch: Touch) -> Deed<'static> {
    Deed { tool: tool(touch), touch }
}

/// A name; the last one is no name.
pub(crate) fn name(number: u8) -> &'static str {
    ["n0", "n1", "n2", ""][usize::from(number)]
}

pub(crate) fn agent(number: Option<u8>) -> Option<&'static str> {
    number.map(|number| ["x", "y"][usize::from(number)])
}

pub(crate) fn uuid(session: u32) -> Uuid {
    Uuid(u128::from(session) << 32 | 0xf)
}

impl Target {
    pub(crate) fn text(self) -> Option<String> {
        match self {
            Self::Current => None,
            Self::Name(number) => Some(name(number).to_owned()),
            Self::Automatic(number) => Some(format!("browser-{number}")),
            Self::Id(session) => Some(SessionId(session).to_string()),
            Self::Uuid(session) => Some(uuid(session).to_string()),
            Self::Capability(grant) => Some(capability(grant)),
        }
    }
}

pub(crate) fn tab(number: u32) -> String {
    TabId(number).to_string()
}

/// The next thing to happen. Ids that exist are likelier than those that do not.
pub(crate) fn ops(model: &Model) -> BoxedStrategy<Op> {
    let clients: Vec<u64> = model.clients.keys().copied().chain([99]).collect();
    let sessions: Vec<u32> = model.sessions.keys().copied().chain([99]).collect();
    let calls: Vec<u64> = model.calls.keys().copied().chain([model.next_call.saturating_sub(1)]).collect();
    let grants: Vec<u32> = model.grants.keys().copied().chain([model.next_grant.saturating_sub(1)]).collect();
    let client = select(clients);
    let session = || select(sessions.clone());
    let who = (client.clone(), prop::option::weighted(0.3, 0..2u8)).prop_map(|(client, agent)| Who { client, agent }).boxed();
    let target = prop_oneof![
        4 => Just(Target::Current),
        3 => (0..4u8).prop_map(Target::Name),
        1 => (1..4u8).prop_map(Target::Automatic),
        2 => session().prop_map(Target::Id),
        2 => session().prop_map(Target::Uuid),
        3 => select(grants.clone()).prop_map(Target::Capability),
    ]
    .boxed();
    let aimed = (who.clone(), target).boxed();
    let identity = || select(identities());
    let holders: Vec<Identity> = grants.iter().map(|grant| Identity::Grant(digest(&capability(*grant)))).collect();
    let somebody = prop_oneof![6 => identity(), 2 => select(holders)];
    let holder = select(grants.clone());
    let touch = select(vec![Touch::Looks, Touch::Acts, Touch::Acts, Touch::Governs]);
    let wish = (
        select(vec![Right::Read, Right::Act, Right::Act, Right::HandOver]),
        select(vec![Uses::Many, Uses::Many, Uses::Once]),
        prop::option::weighted(0.4, 0..40u64),
        prop::option::weighted(0.3, select(vec![Touch::Looks, Touch::Acts])),
    )
        .prop_map(|(right, uses, ttl_ms, tools)| Wish { right, uses, ttl_ms, tools: tools.filter(|_| right != Right::HandOver) });
    let link = select(vec![Link::Connection, Link::Connection, Link::None]);
    let leave = select(vec![Leave::Lost, Leave::Lost, Leave::Goodbye]);
    let lane = select(vec![Lane::Queue, Lane::Queue, Lane::Queue, Lane::Beside]);
    let seat = select(vec![Seat::Plain, Seat::Plain, Seat::Clone]);
    let kind = select(vec![Kind::Browser, Kind::Browser, Kind::Ios]);
    let numbers: Vec<u64> =
        model.sessions.values().flat_map(|session| session.tabs.values().copied()).chain([model.next_tab_number]).collect();
    let tabs: Vec<(u32, u32)> =
        model.sessions.iter().flat_map(|(id, session)| session.tabs.keys().map(|tab| (*id, *tab))).chain([(99, 1)]).collect();
    let place = || prop_oneof![3 => select(tabs.clone()), 1 => (session(), 1..4u32)];
    let named = prop_oneof![(1..4u32).prop_map(Named::Local), select(numbers).prop_map(Named::Global)];
    let wanted = prop::option::weighted(0.6, 0..4u8);
    let callers = prop_oneof![
        6 => (somebody, link).prop_map(|(identity, link)| Op::Attach(identity, link)),
        3 => (client, leave).prop_map(|(client, leave)| Op::Detach(client, leave)),
        3 => aimed.clone().prop_map(|(who, target)| Op::Resolve(who, target)),
        3 => aimed.clone().prop_map(|(who, target)| Op::SetCurrent(who, target)),
        2 => (aimed.clone(), 0..4u8).prop_map(|((who, target), name)| Op::Rename(who, target, name)),
        2 => aimed.clone().prop_map(|(who, target)| Op::Close(who, target)),
        1 => who.clone().prop_map(Op::CloseAll),
        1 => who.clone().prop_map(Op::DetachAll),
        5 => (aimed.clone(), wish).prop_map(|((who, target), wish)| Op::Share(who, target, wish)),
        1 => (aimed.clone(), prop::option::weighted(0.7, select(grants))).prop_map(|((who, target), which)| Op::Revoke(who, target, which)),
    ];
    let making = prop_oneof![
        6 => (who, wanted, kind, seat).prop_map(|(who, name, kind, seat)| Op::Reserve(who, name, kind, seat)),
        4 => session().prop_map(Op::Opening),
        4 => session().prop_map(Op::Opened),
        1 => session().prop_map(Op::OpenFailed),
        4 => session().prop_map(Op::Closed),
        1 => session().prop_map(Op::Lost),
        1 => session().prop_map(Op::BrowserLost),
        1 => (session(), identity()).prop_map(|(session, to)| Op::HandOver(session, to)),
    ];
    let working = prop_oneof![
        8 => (aimed, prop::option::weighted(0.4, named), lane, touch)
            .prop_map(|((who, target), tab, lane, touch)| Op::Admit(who, target, tab, lane, touch)),
        6 => session().prop_map(Op::Begin),
        6 => select(calls).prop_map(Op::Finish),
        3 => session().prop_map(Op::AddTab),
        1 => session().prop_map(Op::AddPopup),
        2 => (place(), select(vec![Closer::Owner, Closer::Person])).prop_map(|((session, tab), by)| Op::RemoveTab(session, tab, by)),
        3 => session().prop_map(Op::WorkTab),
        1 => place().prop_map(|(session, tab)| Op::SelectTab(session, tab)),
        3 => (place(), holder).prop_map(|((session, tab), grant)| Op::HolderSelectsTab(session, grant, tab)),
        1 => (place(), 0..2u8).prop_map(|((session, tab), url)| Op::TabAt(session, tab, url)),
        1 => session().prop_map(Op::Watch),
        1 => session().prop_map(Op::Unwatch),
    ];
    let time = prop_oneof![
        20 => (0..30u64).prop_map(Op::Pass),
        20 => (0..30u64).prop_map(Op::Tick),
        1 => Just(Op::CloseEverything),
        3 => Just(Op::Restart),
    ];
    prop_oneof![4 => callers, 4 => making, 6 => working, 1 => time].boxed()
}
