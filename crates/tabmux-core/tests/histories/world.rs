//! The registry under test, with what a daemon keeps beside it: the journal, and a ledger of how calls ended.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tabmux_core::{
    Admitted, CallId, Caller, ClientId, Code, Effect, Fault, Grant, GrantKey, Identity, Kind, Lane, Millis, Minted, Open, Party, Persist,
    Phase, Registry, Revoke, Right, Rules, Seat, Session, SessionId, Share, Shared, TabId, TabNumber, TabRef, Touch,
};

use crate::model::{Answer, DONE, Model, Place};
use crate::op::{Closer, Named, Op, Target, Who, Wish, agent, capability, deed, digest, name, tab, tool, uuid};

type Currents = BTreeMap<(Identity, Option<Arc<str>>), SessionId>;

#[derive(Debug)]
pub(crate) struct World {
    rules: Rules,
    registry: Registry,
    now: Millis,
    minted: u32,
    /// The journal, replayed as a restarting daemon would.
    sessions: BTreeMap<SessionId, Session>,
    currents: Currents,
    next_tab: TabNumber,
    /// Grants as they were written, and when.
    grants: BTreeMap<GrantKey, (Shared, Millis)>,
    granted: u32,
    /// Every call admitted by this daemon and how often it ended.
    ends: BTreeMap<u64, u32>,
    /// Which client each call is answered to.
    asked_by: BTreeMap<u64, u64>,
    /// The calls that began, per session.
    begun: BTreeMap<SessionId, u64>,
    /// The calls that wait or run, as the daemon's session tasks know them.
    queues: BTreeMap<SessionId, Vec<u64>>,
}

impl World {
    pub(crate) fn new(rules: Rules) -> Self {
        Self {
            rules,
            registry: Registry::new(rules, Millis(0)),
            now: Millis(0),
            minted: 0,
            sessions: BTreeMap::new(),
            currents: Currents::new(),
            next_tab: TabNumber(1),
            grants: BTreeMap::new(),
            granted: 0,
            ends: BTreeMap::new(),
            asked_by: BTreeMap::new(),
            begun: BTreeMap::new(),
            queues: BTreeMap::new(),
        }
    }

    pub(crate) fn apply(&mut self, op: &Op) -> Answer {
        let now = self.now;
        match op {
            Op::Attach(identity, link) => Ok(vec![self.registry.attach(identity.clone(), *link, now).0]),
            Op::Reserve(who, wanted, kind, seat) => self.reserve(*who, *wanted, *kind, *seat),
            Op::Opening(id) => nothing(self.registry.opening(SessionId(*id))),
            Op::Opened(id) => nothing(self.registry.opened(SessionId(*id), "context".into())),
            Op::Resolve(who, target) => self.aimed(*who, *target, |registry, caller, text| registry.resolve(caller, text, now)),
            Op::Admit(who, target, tab, lane, touch) => self.admit(*who, *target, *tab, (*lane, *touch)),
            Op::Share(who, target, wish) => self.share(*who, *target, *wish),
            Op::Revoke(who, target, which) => self.revoke(*who, *target, *which),
            Op::Begin(id) => self.begin(SessionId(*id)),
            Op::Finish(call) => Ok(vec![self.finish(*call)]),
            Op::SetCurrent(_, Target::Current) | Op::Rename(_, Target::Current, _) => DONE,
            Op::SetCurrent(who, target) => {
                self.aimed(*who, *target, |registry, caller, text| registry.set_current(caller, text.unwrap_or_default(), now))
            }
            Op::Rename(who, target, new) => {
                self.aimed(*who, *target, |registry, caller, text| registry.rename(caller, text.unwrap_or_default(), name(*new), now))
            }
            Op::Close(who, target) => self.aimed(*who, *target, |registry, caller, text| registry.close(caller, text, now)),
            Op::CloseAll(who) => many(self.registry.close_all(caller(*who), now)),
            Op::DetachAll(who) => many(self.registry.detach_all(caller(*who), now)),
            Op::AddTab(id) => {
                let added = self.registry.add_tab(SessionId(*id), Party::Owner, "page".into(), String::new());
                added.map(|tab| vec![tab.0.into()]).map_err(|fault| fault.code)
            }
            Op::AddPopup(id) => {
                let added = self.registry.add_popup(SessionId(*id), "popup".into(), String::new());
                added.map(|tab| vec![tab.0.into()]).map_err(|fault| fault.code)
            }
            Op::WorkTab(id) => {
                let works = self.registry.work_tab(SessionId(*id), Party::Owner);
                works.map(|tab| vec![tab.map_or(0, |tab| tab.0).into()]).map_err(|_| Code::TabGone)
            }
            Op::SelectTab(id, tab) => nothing(self.registry.select_tab(SessionId(*id), Party::Owner, TabId(*tab))),
            Op::HolderSelectsTab(id, grant, tab) => {
                let party = Party::Holder(digest(&capability(*grant)).id());
                nothing(self.registry.select_tab(SessionId(*id), party, TabId(*tab)))
            }
            _ => {
                self.happen(op);
                DONE
            }
        }
    }

    /// What has no answer.
    fn happen(&mut self, op: &Op) {
        let now = self.now;
        match op {
            Op::Detach(client, leave) => self.registry.detach(ClientId(*client), *leave, now),
            Op::OpenFailed(id) => {
                let fault = Fault::new(Code::BrowserNotFound, "No browser.", "Install one.");
                self.registry.open_failed(SessionId(*id), &fault, now);
            }
            Op::HandOver(id, to) => self.registry.hand_over(SessionId(*id), to, now),
            Op::Closed(id) => self.registry.closed(SessionId(*id), now),
            Op::Lost(id) => self.registry.lost(SessionId(*id)),
            Op::BrowserLost(id) => {
                let fault = Fault::new(Code::BrowserCrashed, "The browser is gone.", "Navigate again.");
                self.registry.browser_lost(SessionId(*id), &fault);
            }
            Op::CloseEverything => self.registry.close_everything(),
            Op::RemoveTab(id, tab, by) => {
                let by = (*by == Closer::Owner).then_some(Party::Owner);
                self.registry.remove_tab(SessionId(*id), TabId(*tab), by);
            }
            Op::TabAt(id, tab, url) => self.registry.tab_at(SessionId(*id), TabId(*tab), ["about:blank", "data:,"][usize::from(*url)]),
            Op::Watch(id) => self.registry.watch(SessionId(*id)),
            Op::Unwatch(id) => self.registry.unwatch(SessionId(*id), now),
            Op::Pass(ms) => self.now = Millis(now.0 + ms),
            Op::Tick(ms) => {
                self.now = Millis(now.0 + ms);
                self.registry.tick(self.now);
            }
            Op::Restart => self.restart(),
            _ => unreachable!("{op:?} has an answer"),
        }
    }

    /// An operation that names a session. Whatever it answers, only an owner reaches a session, and who is no
    /// owner reads what is read of a session that is not there.
    fn aimed<F>(&mut self, who: Who, target: Target, ask: F) -> Answer
    where
        F: FnOnce(&mut Registry, Caller<'_>, Option<&str>) -> Result<SessionId, Fault>,
    {
        let text = target.text();
        // Before the operation, because it may close or rename what it reached.
        let owners: BTreeMap<SessionId, Identity> = self.registry.records().map(|session| (session.id, session.owner.clone())).collect();
        let answer = ask(&mut self.registry, caller(who), text.as_deref());
        self.check_reach(who, target, &answer, &owners);
        answer.map(|id| vec![id.0.into()]).map_err(|fault| fault.code)
    }

    fn check_reach(&self, who: Who, target: Target, answer: &Result<SessionId, Fault>, owners: &BTreeMap<SessionId, Identity>) {
        match answer {
            Ok(id) => match self.registry.identity(ClientId(who.client)).expect("only who is attached is answered") {
                identity if matches!(target, Target::Capability(_)) => {
                    let Target::Capability(number) = target else { unreachable!("it was looked at") };
                    let grant = self.live_grant(digest(&capability(number))).expect("a grant that is over lets nobody in");
                    assert!(grant.session == *id && grant.taken_by.as_ref().is_none_or(|taker| taker == identity), "{grant:?}");
                }
                Identity::Operator => {}
                Identity::Grant(key) if self.live_grant(*key).is_some_and(|grant| grant.session == *id) => {}
                Identity::Nobody => {
                    assert!(matches!(target, Target::Uuid(number) if SessionId(number) == *id) && owners[id] == Identity::Nobody);
                }
                identity => assert_eq!(owners[id], *identity, "a foreign session was reached"),
            },
            Err(fault) if fault.code == Code::SessionNotFound => {
                let hint = match self.registry.identity(ClientId(who.client)) {
                    Some(Identity::Nobody) => {
                        "Without an identity only a session's uuid counts: pass the one start_browser gave you as sessionId, or get an identity with `tabmux token new NAME` or the path /mcp/NAME."
                    }
                    Some(Identity::Operator) => "`tabmux ls` lists them, `tabmux new -s NAME` makes one.",
                    _ => "Call list_sessions to see yours, or start_browser to make one.",
                };
                let text = target.text().unwrap_or_default();
                let text = if matches!(target, Target::Capability(_)) { "tmx_…".to_owned() } else { text };
                let missing = format!("[session_not_found] No session: {text}. {hint}");
                assert_eq!(fault.to_string(), missing);
            }
            Err(_) => {}
        }
    }

    fn reserve(&mut self, who: Who, wanted: Option<u8>, kind: Kind, seat: Seat) -> Answer {
        let open = Open { name: wanted.map(name), kind, seat, source: None, isolation: "context", created_unix_ms: 0 };
        let next = &mut self.minted;
        let mint = || {
            *next += 1;
            Minted { id: SessionId(*next), uuid: uuid(*next) }
        };
        self.registry.reserve(caller(who), open, mint, self.now).map(|opened| vec![opened.session.0.into()]).map_err(|fault| fault.code)
    }

    /// By what was written down so far, as the next daemon would know it.
    fn live_grant(&self, key: GrantKey) -> Option<Arc<Grant>> {
        let (shared, written) = self.grants.get(&key)?;
        let over = shared.left_ms.is_some_and(|left| written.0 + left <= self.now.0);
        (!over).then(|| Arc::clone(&shared.grant))
    }

    fn share(&mut self, who: Who, target: Target, wish: Wish) -> Answer {
        let Wish { right, uses, ttl_ms, tools } = wish;
        let tools = tools.map(|touch| [tool(touch).to_owned()].into());
        let share = Share { right, tools, ttl_ms, uses, ..Share::default() };
        let (now, next) = (self.now, &mut self.granted);
        let mint = || {
            *next += 1;
            digest(&capability(*next))
        };
        let shared = self.registry.share(caller(who), target.text().as_deref(), share, mint, now);
        shared.map(|_| vec![self.granted.into()]).map_err(|fault| fault.code)
    }

    fn revoke(&mut self, who: Who, target: Target, which: Option<u32>) -> Answer {
        let which = which.map(capability);
        let which = which.as_deref().map_or(Revoke::All, Revoke::One);
        let revoked = self.registry.revoke(caller(who), target.text().as_deref(), which, self.now).map_err(|fault| fault.code)?;
        let mut ids: Vec<u64> = revoked.iter().map(|shared| shared.grant.id().0.into()).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    fn admit(&mut self, who: Who, target: Target, wanted: Option<Named>, (lane, touch): (Lane, Touch)) -> Answer {
        let local = if let Some(Named::Local(number)) = wanted { tab(number) } else { String::new() };
        let named = wanted.map(|wanted| match wanted {
            Named::Local(_) => TabRef::Local(&local),
            Named::Global(number) => TabRef::Global(TabNumber(number)),
        });
        let (now, mut admitted) = (self.now, None::<Admitted>);
        let reached = self.aimed(who, target, |registry, caller, text| {
            let answer = registry.admit(lane, caller, text, named, deed(touch), now);
            admitted = answer.as_ref().ok().copied();
            answer.map(|admitted| admitted.session)
        });
        let Some(admitted) = admitted else { return reached };
        if let Some(grant) = self.registry.grant_of(admitted.call) {
            assert!(touch == Touch::Looks || grant.right > Right::Read, "a grant for looking admitted {admitted:?}");
            assert!(touch != Touch::Governs, "a grant admitted what is its owner's: {admitted:?}");
            assert_eq!(admitted.party, Party::Holder(grant.id()));
        }
        assert!(self.ends.insert(admitted.call.0, 0).is_none(), "a call's number is given once");
        self.asked_by.insert(admitted.call.0, who.client);
        if matches!(lane, Lane::Queue) {
            self.queues.entry(admitted.session).or_default().push(admitted.call.0);
        }
        let (picked, tab) = (u64::from(admitted.picked_for_caller), admitted.tab.map_or(0, |tab| tab.0));
        Ok(vec![admitted.call.0, admitted.session.0.into(), admitted.epoch.0, admitted.ahead as u64, picked, tab.into()])
    }

    /// What a session task does: the oldest call that has not ended begins, if none of the session runs.
    fn begin(&mut self, id: SessionId) -> Answer {
        let last = self.begun.get(&id).copied().unwrap_or(0);
        let ends = &self.ends;
        let queue = self.queues.entry(id).or_default();
        queue.retain(|call| ends[call] == 0);
        let Some(front) = queue.first().copied().filter(|front| *front > last) else { return Ok(vec![]) };
        match self.registry.begin(CallId(front)) {
            Ok(()) => {
                self.begun.insert(id, front);
                Ok(vec![front])
            }
            Err(fault) => {
                self.ended(front);
                Err(fault.code)
            }
        }
    }

    fn finish(&mut self, call: u64) -> u64 {
        let ended = self.registry.finish(CallId(call), self.now);
        if ended {
            self.ended(call);
        }
        ended.into()
    }

    fn ended(&mut self, call: u64) {
        let ends = self.ends.get_mut(&call).expect("only what was admitted ends");
        *ends += 1;
        assert_eq!(*ends, 1, "call {call} ended twice");
    }

    fn restart(&mut self) {
        self.registry = Registry::new(self.rules, self.now);
        let currents = self.currents.iter().map(|((owner, agent), id)| (owner.clone(), agent.clone(), *id)).collect();
        let left = |(shared, written): &(Shared, Millis)| Shared {
            left_ms: shared.left_ms.map(|left| left.saturating_sub(self.now.0 - written.0)),
            ..shared.clone()
        };
        let grants = self.grants.values().map(left).collect();
        self.registry.restore(self.sessions.values().cloned().collect(), currents, grants, self.next_tab, self.now);
        self.ends.clear();
        self.asked_by.clear();
        self.begun.clear();
        self.queues.clear();
    }

    /// What the daemon does after every operation: carry out the effects, write the journal.
    pub(crate) fn drain(&mut self) -> BTreeSet<String> {
        let mut words = BTreeSet::new();
        for effect in self.registry.take_effects() {
            let word = match effect {
                Effect::EndCall { call, fault } => {
                    self.ended(call.0);
                    format!("end {} {}", call.0, fault.code)
                }
                Effect::Close { session, why } => format!("close {} {why:?}", session.0),
                Effect::TakenOver { session, was } => format!("taken over {} {was:?}", session.0),
                Effect::Exit => "exit".to_owned(),
            };
            assert!(words.insert(word.clone()), "{word} happened twice");
        }
        for persist in self.registry.take_persists() {
            match persist {
                Persist::Session(session) => _ = self.sessions.insert(session.id, *session),
                Persist::Gone(id) => _ = self.sessions.remove(&id),
                Persist::Current { owner, agent, session: Some(id) } => _ = self.currents.insert((owner, agent), id),
                Persist::Current { owner, agent, session: None } => _ = self.currents.remove(&(owner, agent)),
                Persist::NextTab(number) => self.next_tab = number,
                Persist::Grant(shared) => _ = self.grants.insert(shared.grant.key, (shared, self.now)),
                Persist::GrantGone(key) => _ = self.grants.remove(&key),
            }
        }
        words
    }

    pub(crate) fn check(&self, model: &Model) {
        self.registry.check_invariants();
        self.check_journal();
        self.check_sessions(model);
        self.check_calls(model);
        self.check_callers(model);
        let due = model.ids(|_| true).into_iter().filter_map(|id| model.due(id)).map(|(at, _)| at);
        let exit = model.empty_since.filter(|_| !model.exiting).map(|since| since + model.rules.exit_when_empty_ms.unwrap_or_default());
        let grants = model.grants.values().filter_map(|grant| grant.until);
        assert_eq!(self.registry.next_due().map(|at| at.0), due.chain(exit).chain(grants).min(), "the next thing due");
        assert_eq!(self.registry.is_exiting(), model.exiting);
    }

    /// What was written is what there is.
    fn check_journal(&self) {
        let records: BTreeMap<SessionId, Session> = self.registry.records().map(|session| (session.id, session.clone())).collect();
        assert_eq!(records, self.sessions, "the journal holds the sessions");
        let currents: Currents = self.registry.currents().map(|(owner, agent, id)| ((owner.clone(), agent.map(Into::into)), id)).collect();
        assert_eq!(currents, self.currents, "the journal holds the current sessions");
        assert_eq!(self.registry.next_tab(), self.next_tab, "the journal holds the next tab's number");
        let grants: Vec<Arc<Grant>> = self.registry.grants(self.now).map(|shared| shared.grant).collect();
        assert_eq!(
            grants,
            self.grants.values().map(|(shared, _)| Arc::clone(&shared.grant)).collect::<Vec<_>>(),
            "the journal holds the grants"
        );
    }

    fn check_sessions(&self, model: &Model) {
        let ids: Vec<u32> = self.registry.records().map(|session| session.id.0).collect();
        assert_eq!(ids, model.sessions.keys().copied().collect::<Vec<_>>(), "the sessions there are");
        for (id, expected) in &model.sessions {
            let session = self.registry.session(SessionId(*id)).expect("checked in the line above");
            assert_eq!((&session.name, &session.owner, session.phase), (&expected.name, &expected.owner, expected.phase), "{id}");
            assert_eq!(session.former, expected.former, "who drove {id} before");
            assert_eq!((session.epoch.0, session.seat, session.kind), (expected.epoch, expected.seat, expected.kind), "{id}");
            let tabs: BTreeMap<u32, u64> = session.tabs.iter().map(|(tab, record)| (tab.0, record.number.0)).collect();
            assert_eq!((&tabs, session.current_tab.map(|tab| tab.0)), (&expected.tabs, expected.current_tab), "{id}");
            for (tab, number) in &expected.tabs {
                let open = expected.phase != Phase::Closing;
                let place = open.then_some((SessionId(*id), TabId(*tab)));
                assert_eq!(self.registry.tab_numbered(TabNumber(*number)), place, "an event of tab {number} reaches its session only");
            }
        }
        let counts = self.registry.counts();
        let expected =
            [model.ids(|_| true), model.ids(|session| session.seat == Seat::Clone), model.ids(|session| session.orphan_until.is_some())];
        assert_eq!([counts.sessions, counts.clones, counts.orphaned], expected.map(|ids| ids.len()), "the counts");
        assert!(counts.sessions <= self.rules.max_sessions as usize && counts.clones <= self.rules.max_clones as usize, "{counts:?}");
        let orphans: Vec<u32> =
            self.registry.list_all().iter().filter(|listed| listed.orphaned).map(|listed| listed.session.id.0).collect();
        assert_eq!(orphans, model.ids(|session| session.orphan_until.is_some()), "the orphans");
    }

    /// No call is forgotten: each has ended, or the model still knows it, as its caller's.
    fn check_calls(&self, model: &Model) {
        let unended: Vec<u64> = self.ends.iter().filter(|(_, ends)| **ends == 0).map(|(call, _)| *call).collect();
        assert_eq!(unended, model.calls.keys().copied().collect::<Vec<_>>(), "the calls that have not ended");
        assert!(model.calls.iter().all(|(number, call)| self.asked_by[number] == call.client), "a reply reaches its caller");
        let counts = self.registry.counts();
        let placed = |place| model.sessions.keys().map(|id| model.calls_in(*id, place).len()).sum::<usize>();
        assert_eq!(counts.waiting, placed(Place::Waiting));
        assert_eq!(counts.running, placed(Place::Running) + placed(Place::Beside));
    }

    fn check_callers(&self, model: &Model) {
        assert_eq!(self.registry.counts().clients, model.clients.len());
        for (client, (identity, _)) in &model.clients {
            for number in [None, Some(0), Some(1)] {
                let caller = Caller { client: ClientId(*client), agent: agent(number) };
                assert_eq!(
                    self.registry.current(caller).map(|id| id.0),
                    model.current(identity, number),
                    "the current session of {caller:?}"
                );
            }
            let caller = Caller { client: ClientId(*client), agent: None };
            let listed: Vec<u32> = self.registry.list(caller).iter().map(|listed| listed.session.id.0).collect();
            assert_eq!(listed, model.listed(identity), "what {caller:?} is told it has");
        }
    }
}

fn caller(who: Who) -> Caller<'static> {
    Caller { client: ClientId(who.client), agent: agent(who.agent) }
}

fn nothing(answer: Result<(), Fault>) -> Answer {
    answer.map(|()| vec![]).map_err(|fault| fault.code)
}

fn many(answer: Result<Vec<SessionId>, Fault>) -> Answer {
    let mut ids: Vec<u64> = answer.map_err(|fault| fault.code)?.iter().map(|id| id.0.into()).collect();
    ids.sort_unstable();
    Ok(ids)
}
