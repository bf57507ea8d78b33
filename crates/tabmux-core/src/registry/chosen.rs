//! Which tab a call without one means, for each who uses a session. The owner's lasts with the session. Who uses somebody else's has a choice of
//! its own as soon as it chose or opened a tab, until that closes or it may use the session no more; else it means what the owner means.

use super::Registry;
use super::sessions::closed_fault;
use super::tabs::lost_tab;
use crate::{Fault, GrantId, Party, SessionId, TabId};

impl Registry {
    /// From now on a call of this party without a tab means this one (S2.20). What anybody else means stays.
    pub fn select_tab(&mut self, id: SessionId, party: Party, tab: TabId) -> Result<(), Fault> {
        let Some((session, live)) = self.live_mut(id) else { return Err(closed_fault()) };
        if !session.tabs.contains_key(&tab) {
            return Err(lost_tab(session.had_tab(tab), &tab.to_string()));
        }
        match party {
            Party::Owner if session.current_tab == Some(tab) => {}
            Party::Owner => {
                session.current_tab = Some(tab);
                self.dirty.insert(id);
            }
            Party::Holder(_) | Party::Operator => {
                live.chosen.insert(party, tab);
                // A call may still be at work whose grant is over.
                self.forget_choices(id);
            }
        }
        Ok(())
    }

    /// The tab that a call of this party without one means.
    pub fn current_tab(&self, id: SessionId, party: Party) -> Option<TabId> {
        let (session, live) = self.live(id)?;
        live.chosen.get(&party).copied().or(session.current_tab)
    }

    /// Forgets what was chosen by grants that are over.
    pub(super) fn forget_choices(&mut self, id: SessionId) {
        let Some((_, live)) = self.sessions.get_mut(&id) else { return };
        let mut chosen = std::mem::take(&mut live.chosen);
        chosen.retain(|party, _| match party {
            Party::Owner | Party::Operator => true,
            Party::Holder(grant) => self.is_in_use(id, *grant),
        });
        if let Some((_, live)) = self.sessions.get_mut(&id) {
            live.chosen = chosen;
        }
    }

    /// One for a single call is used up when that is admitted, and in use until it ends.
    pub(super) fn is_in_use(&self, id: SessionId, grant: GrantId) -> bool {
        let is_given = self.grants.values().any(|given| given.grant.session == id && given.grant.id() == grant);
        is_given || self.calls.values().any(|call| call.session == id && call.party == Party::Holder(grant))
    }
}
