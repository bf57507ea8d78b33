//! Which tab a call without one means, for each who uses a session. The owner's lasts with the session. Who uses somebody else's has a choice of
//! its own as soon as it chose or opened a tab, until that closes or it may use the session no more; else it means what the owner means. Nobody
//! works in another tab than before unawares: who has not closed the one it worked in is told first that it is gone.

use super::Registry;
use super::sessions::closed_fault;
use super::tabs::lost_tab;
use crate::{Fault, GrantId, Party, SessionId, TabId};

/// The tab that somebody worked in is gone, which they have not been told; calls without a tab mean this one now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostTab {
    pub tab: TabId,
    pub current: Option<TabId>,
}

impl Registry {
    /// From now on a call of this party without a tab means this one (S2.20). What anybody else means stays.
    pub fn select_tab(&mut self, id: SessionId, party: Party, tab: TabId) -> Result<(), Fault> {
        let Some((session, live)) = self.live_mut(id) else { return Err(closed_fault()) };
        if !session.tabs.contains_key(&tab) {
            let end = session.had_tab(tab).then(|| live.end_of(|(taken, _)| *taken == tab));
            return Err(lost_tab(end, &tab.to_string()));
        }
        match party {
            Party::Owner if session.current_tab == Some(tab) => {}
            Party::Owner => {
                session.current_tab = Some(tab);
                self.dirty.insert(id);
            }
            Party::Holder(_) | Party::Operator => {
                live.chosen.insert(party, tab);
            }
        }
        self.goes_to(id, party, Some(tab));
        Ok(())
    }

    /// The tab that a call of this party without one means.
    pub fn current_tab(&self, id: SessionId, party: Party) -> Option<TabId> {
        let (session, live) = self.live(id)?;
        live.chosen.get(&party).copied().or(session.current_tab)
    }

    /// The tab that a call of this party without one is to work in, unless the one it worked in is gone.
    pub fn meant_tab(&self, id: SessionId, party: Party) -> Result<Option<TabId>, LostTab> {
        let Some((session, live)) = self.live(id) else { return Ok(None) };
        let current = self.current_tab(id, party);
        match live.works_in.get(&party) {
            Some(tab) if !session.tabs.contains_key(tab) => Err(LostTab { tab: *tab, current }),
            _ => Ok(current),
        }
    }

    /// The same for a call that works there, or tells its caller: what is lost is told once (S1.24, S4.14).
    pub fn work_tab(&mut self, id: SessionId, party: Party) -> Result<Option<TabId>, LostTab> {
        let meant = self.meant_tab(id, party);
        self.goes_to(id, party, meant.unwrap_or_else(|lost| lost.current));
        meant
    }

    /// This one was told that this tab is gone, or that all are.
    pub fn told_gone(&mut self, id: SessionId, party: Party, tab: Option<TabId>) {
        if let Some((_, live)) = self.live_mut(id)
            && tab.is_none_or(|tab| live.works_in.get(&party) == Some(&tab))
        {
            live.works_in.remove(&party);
        }
    }

    fn goes_to(&mut self, id: SessionId, party: Party, tab: Option<TabId>) {
        let Some((_, live)) = self.live_mut(id) else { return };
        match tab {
            Some(tab) => live.works_in.insert(party, tab),
            None => live.works_in.remove(&party),
        };
        // A call may still be at work whose grant is over.
        if matches!(party, Party::Holder(_)) {
            self.forget_choices(id);
        }
    }

    /// Forgets what was chosen by grants that are over.
    pub(super) fn forget_choices(&mut self, id: SessionId) {
        let Some((_, live)) = self.sessions.get_mut(&id) else { return };
        let mut kept = [std::mem::take(&mut live.chosen), std::mem::take(&mut live.works_in)];
        for kept in &mut kept {
            kept.retain(|party, _| match party {
                Party::Owner | Party::Operator => true,
                Party::Holder(grant) => self.is_in_use(id, *grant),
            });
        }
        if let Some((_, live)) = self.sessions.get_mut(&id) {
            [live.chosen, live.works_in] = kept;
        }
    }

    /// One for a single call is used up when that is admitted, and in use until it ends.
    pub(super) fn is_in_use(&self, id: SessionId, grant: GrantId) -> bool {
        let is_given = self.grants.values().any(|given| given.grant.session == id && given.grant.id() == grant);
        is_given || self.calls.values().any(|call| call.session == id && call.party == Party::Holder(grant))
    }
}
