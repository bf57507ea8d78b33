//! What must hold between any two calls of the registry. Nothing here decides; the random histories ask after
//! every step, so that a broken index is found where it breaks and not where it is next read.

use std::collections::{BTreeSet, HashSet};

use super::Registry;
use crate::session::Live;
use crate::{Identity, Link, Party, Phase, Right, Session, Uses};

impl Registry {
    /// Panics with what is broken.
    #[doc(hidden)]
    pub fn check_invariants(&self) {
        self.check_indexes();
        self.check_calls();
        self.check_tabs();
        self.check_callers();
        self.check_grants();
        assert_eq!(self.empty_since.is_some(), self.sessions.is_empty(), "empty means no session, closing ones included");
    }

    /// Every session that is not being closed is in all indexes, and nothing else is.
    fn check_indexes(&self) {
        let open: Vec<&Session> = self.open_sessions().map(|(session, _)| session).collect();
        for session in &open {
            assert_eq!(self.uuids.get(&session.uuid), Some(&session.id), "{} is found by its uuid", session.id);
            let handles = self.owned.get(&session.owner);
            let indexed = handles.and_then(|handles| handles.get(&session.handle()));
            assert_eq!(indexed, Some(&session.id), "{} is found by its owner", session.id);
        }
        let made: HashSet<u64> = self.sessions.values().map(|(session, _)| session.made).collect();
        assert!(made.len() == self.sessions.len() && made.iter().all(|made| *made < self.next_made), "each was made once");
        let tabs = open.iter().flat_map(|session| session.tabs.iter().map(|(tab, record)| (record.number, (session.id, *tab))));
        assert_eq!(self.tab_numbers, tabs.collect(), "every tab is found by its number, and nothing else is");
        assert_eq!(self.uuids.len(), open.len(), "no uuid is left over");
        assert_eq!(self.owned.values().map(|handles| handles.len()).sum::<usize>(), open.len(), "no name is left over");
        assert!(self.owned.values().all(|handles| !handles.is_empty()), "no owner of nothing is kept");
    }

    /// A session's calls are those that wait in order, the one that runs before them, and those beside the queue.
    fn check_calls(&self) {
        let mut known = 0;
        for (id, (session, live)) in &self.sessions {
            let queue: Vec<u64> = live.running.iter().chain(&live.waiting).map(|waiting| waiting.call.0).collect();
            assert!(queue.is_sorted_by(|one, next| one < next), "{id} serves its calls in the order they came: {queue:?}");
            assert!(
                queue.iter().all(|call| self.calls.get(call).map(|call| call.session) == Some(*id)),
                "{id} queues only calls that have not ended"
            );
            assert!(live.waiting.len() <= self.rules.max_waiting, "{id} keeps the bound of its queue");
            known += queue.len() + live.beside as usize;
            assert!(session.phase != Phase::Closing || nothing_left(live), "{id} is being closed and has calls or a grace");
        }
        assert_eq!(self.calls.len(), known, "every call is in one session");
    }

    /// A tab is in one session, its numbers were given once, and a session with tabs has a current one.
    fn check_tabs(&self) {
        let (mut numbers, mut windows) = (HashSet::new(), HashSet::new());
        for (session, live) in self.sessions.values() {
            for (party, tab) in &live.chosen {
                assert!(session.tabs.contains_key(tab), "{party:?} chose a tab of {}", session.id);
            }
            for (party, tab) in live.chosen.iter().chain(&live.works_in) {
                assert!(session.had_tab(*tab), "{party:?} works in a tab of {}", session.id);
                assert!(!matches!(party, Party::Holder(grant) if !self.is_in_use(session.id, *grant)), "{party:?} may use {}", session.id);
            }
            for window in &session.windows.windows {
                assert!(windows.insert(*window), "{window:?} is one session's");
            }
            for (tab, record) in &session.tabs {
                assert!(numbers.insert(record.number), "tab number {} is in one session", record.number);
                assert!(record.number.0 < self.next_tab_number && tab.0 < session.next_tab, "the next number is above {tab}");
            }
            let current = session.current_tab;
            assert!(current.is_some() || session.first_tab().is_none(), "{} has a current tab if it has tabs of its own", session.id);
            assert!(current.is_none_or(|tab| session.tabs.contains_key(&tab)), "{}'s current tab is its own", session.id);
            assert!(session.windows.places.keys().all(|tab| session.tabs.contains_key(tab)), "only tabs have places");
            assert!(session.windows.strangers.iter().all(|tab| session.tabs.contains_key(tab)), "a stranger is a tab that is there");
        }
    }

    /// What is kept per caller belongs to somebody, and points to what is theirs.
    fn check_callers(&self) {
        for (identity, holder) in &self.holders {
            let client = self.clients.get(holder).expect("who drives is connected");
            assert!(identity.is_exclusive() && client.identity == *identity && client.link == Link::Connection);
        }
        for (owner, agents) in &self.currents {
            assert!(*owner != Identity::Nobody && agents.len() <= super::sessions::MAX_AGENTS);
            let distinct: HashSet<_> = agents.iter().map(|(agent, _)| agent).collect();
            assert_eq!(distinct.len(), agents.len(), "an agent has one current session");
            for (_, id) in agents {
                assert!(self.live(*id).is_some_and(|(session, _)| session.owner == *owner), "{owner} owns its current session");
            }
        }
        for (owner, endings) in &self.endings {
            assert!(*owner != Identity::Nobody && (1..=super::endings::MAX_ENDINGS).contains(&endings.len()));
            let again = |name| self.owned.get(owner).is_some_and(|handles| handles.contains_key(name));
            assert!(endings.iter().all(|ending| !again(&ending.name)), "{owner} has no session of the name of one that ended");
        }
        let away = |identity: &&Identity| self.away.contains(identity);
        assert!(self.away.len() <= super::endings::MAX_AWAY && self.away.iter().all(|identity| self.endings.contains_key(identity)));
        for identity in self.endings.keys().filter(away) {
            assert!(self.endings[identity].iter().all(|ending| ending.unseen), "{identity} could have been told");
        }
        let here = self.endings.keys().filter(|identity| !away(identity));
        for identity in self.currents.keys().chain(here).chain(self.numbers.keys().map(|(identity, _)| identity)) {
            let used = self.owned.contains_key(identity) || self.clients.values().any(|client| client.identity == *identity);
            assert!(used, "nothing is kept for {identity}, which nobody is");
        }
        for (session, live) in self.open_sessions() {
            let connected = self.clients.values().any(|client| client.identity == session.owner && client.link == Link::Connection);
            assert!(live.orphan.is_none() || !connected, "{} has its owner here and is no orphan", session.id);
            assert!(live.orphan.is_none() || session.owner.is_exclusive(), "{} needs no connection and is no orphan", session.id);
        }
    }

    /// A grant is of a session that is there and of one it came from, and what came from it is never wider.
    fn check_grants(&self) {
        for (key, given) in &self.grants {
            let grant = &given.grant;
            let session = self.live(grant.session).map(|(session, _)| session).expect("a grant ends with its session");
            assert_eq!(grant.key, *key);
            if let Some(taker) = &grant.taken_by {
                assert!(grant.right == Right::HandOver && session.owner == *taker, "{} is whose it was handed to", session.id);
            }
            let Some(parent) = grant.parent.map(|parent| self.grants.get(&parent).expect("a grant ends with the one it came from")) else {
                continue;
            };
            let (wide, narrow) = (&parent.grant, grant);
            assert!(narrow.right <= wide.right && narrow.right != Right::HandOver && narrow.session == wide.session);
            assert!(narrow.domains.starts_with(&wide.domains) && wide.uses == Uses::Many);
            let fits = |tools: &BTreeSet<String>| narrow.tools.as_ref().is_some_and(|narrow| narrow.is_subset(tools));
            assert!(wide.tools.as_ref().is_none_or(fits), "{} has no tool that {} has not", narrow.id(), wide.id());
            assert!(parent.until.is_none_or(|until| given.until.is_some_and(|own| own <= until)), "{} ends first", narrow.id());
        }
        for (session, _) in self.open_sessions() {
            for (identity, name) in &session.former {
                let again = self.owned.get(identity).is_some_and(|handles| handles.contains_key(name));
                assert!(!again && *identity != session.owner, "{identity} is told of {} only while it has no '{name}'", session.id);
            }
            assert!(session.former.len() <= super::grants::MAX_FORMER);
        }
    }
}

fn nothing_left(live: &Live) -> bool {
    live.running.is_none() && live.waiting.is_empty() && live.beside == 0 && live.orphan.is_none()
}
