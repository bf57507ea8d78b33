//! The reference's calls, tabs and viewers.

use tabmux_core::{Code, Identity, Lane, Phase, Touch};

use super::{Answer, Call, DONE, Found, Model, Place};
use crate::op::{Closer, Named, Target, Who};

impl Model {
    /// Who acts, where only a caller with sessions of its own can.
    pub(super) fn somebody(&mut self, who: Who) -> Result<Identity, Code> {
        let identity = self.acting(who.client)?;
        if identity == Identity::Nobody { Err(Code::PolicyDenied) } else { Ok(identity) }
    }

    pub(super) fn end_call(&mut self, call: u64, code: Code) {
        self.calls.remove(&call);
        self.effects.insert(format!("end {call} {code}"));
    }

    pub(super) fn admit(&mut self, who: Who, target: Target, named: Option<Named>, (lane, touch): (Lane, Touch)) -> Answer {
        let identity = self.acting(who.client)?;
        let ((id, grant), tab) = match named {
            Some(Named::Global(number)) => {
                let (found, tab) = self.numbered(&identity, target, number).ok_or(Code::PolicyDenied)?;
                (self.settled(&identity, found), tab)
            }
            Some(Named::Local(tab)) => {
                let found = self.find(&identity, who.agent, target)?;
                let there = self.tab(found.0, tab);
                let session = self.open_mut(found.0).expect("it was found");
                if there.is_err() && session.owner == identity && found.1.is_none() && session.works_in == Some(tab) {
                    session.works_in = None;
                }
                there?;
                (found, tab)
            }
            None => (self.find(&identity, who.agent, target)?, 0),
        };
        if grant.is_some_and(|grant| !self.grants[&grant].allows(touch)) {
            return Err(Code::PolicyDenied);
        }
        let picked = target.text().is_none() && !matches!(named, Some(Named::Global(_)));
        let waiting = self.calls_in(id, Place::Waiting).len();
        let ahead = if lane == Lane::Queue { waiting + self.calls_in(id, Place::Running).len() } else { 0 };
        let place = match lane {
            Lane::Queue if waiting >= self.rules.max_waiting => return Err(Code::QueueFull),
            Lane::Queue => Place::Waiting,
            Lane::Beside if self.calls_in(id, Place::Beside).len() >= self.rules.max_waiting => return Err(Code::QueueFull),
            Lane::Beside => Place::Beside,
        };
        let now = self.now;
        let session = self.open_mut(id).expect("it was found");
        session.last_used = now;
        if session.owner == identity {
            session.orphan_until = None;
        }
        let epoch = session.epoch;
        let call = self.next_call;
        self.next_call += 1;
        let by = grant.map(|grant| (grant, self.grants[&grant].parent));
        self.calls.insert(call, Call { session: id, client: who.client, epoch, place, touch, by });
        if let Some(grant) = grant.filter(|grant| self.grants[grant].once) {
            self.grants.remove(&grant);
        }
        Ok(vec![call, id.into(), epoch, ahead as u64, u64::from(picked), tab.into()])
    }

    pub(super) fn begin(&mut self, id: u32) -> Answer {
        let (waiting, running) = (self.calls_in(id, Place::Waiting), self.calls_in(id, Place::Running));
        let ([front, ..], []) = (waiting.as_slice(), running.as_slice()) else { return DONE };
        if self.calls[front].by.is_none() && self.calls[front].epoch != self.sessions[&id].epoch {
            self.calls.remove(front);
            return Err(Code::StaleEpoch);
        }
        self.calls.get_mut(front).expect("it waits").place = Place::Running;
        Ok(vec![*front])
    }

    pub(super) fn finish(&mut self, call: u64) -> Answer {
        let Some(ended) = self.calls.remove(&call) else { return Ok(vec![0]) };
        self.sessions.get_mut(&ended.session).expect("a call has a session").last_used = self.now;
        Ok(vec![1])
    }

    /// The session and tab of that number, if the caller may mean it.
    fn numbered(&self, identity: &Identity, target: Target, number: u64) -> Option<(Found, u32)> {
        let (id, tab) = self.ids(|_| true).into_iter().find_map(|id| {
            let tab = self.sessions[&id].tabs.iter().find(|(_, of)| **of == number)?;
            Some((id, *tab.0))
        })?;
        let found = match target {
            Target::Current => self.own(identity).contains(&id).then_some((id, None)),
            _ => self.look_up(identity, None, target).ok().filter(|(found, _)| *found == id),
        };
        found.map(|found| (found, tab))
    }

    pub(super) fn tab(&self, id: u32, tab: u32) -> Result<(), Code> {
        let session = self.open(id).ok_or(Code::SessionClosed)?;
        match session.tabs.contains_key(&tab) {
            true => Ok(()),
            false if tab < session.next_tab => Err(Code::TabGone),
            false => Err(Code::TabNotFound),
        }
    }

    pub(super) fn add_popup(&mut self, id: u32) -> Answer {
        let before = self.open(id).map(|session| (session.current_tab, session.works_in));
        let added = self.add_tab(id)?;
        let session = self.open_mut(id).expect("a tab was added");
        let (current, works_in) = before.expect("a tab was added");
        session.current_tab = current.or(session.current_tab);
        session.works_in = works_in;
        Ok(added)
    }

    /// Its calls end and its tabs are gone; the session stays, and stays current where it was.
    pub(super) fn browser_lost(&mut self, id: u32) -> Answer {
        if self.open(id).is_none() {
            return DONE;
        }
        for call in self.calls.iter().filter(|(_, call)| call.session == id).map(|(number, _)| *number).collect::<Vec<_>>() {
            self.end_call(call, Code::BrowserCrashed);
        }
        let session = self.open_mut(id).expect("it is open");
        (session.phase, session.lost) = (Phase::Reserved, true);
        session.tabs.clear();
        (session.current_tab, session.works_in) = (None, None);
        DONE
    }

    pub(super) fn add_tab(&mut self, id: u32) -> Answer {
        let number = self.next_tab_number;
        let session = self.open_mut(id).ok_or(Code::SessionClosed)?;
        let tab = session.next_tab;
        session.next_tab += 1;
        session.tabs.insert(tab, number);
        (session.current_tab, session.works_in) = (Some(tab), Some(tab));
        self.next_tab_number += 1;
        Ok(vec![tab.into()])
    }

    /// Its owner works where it worked before, or is told once that this is gone.
    pub(super) fn work_tab(&mut self, id: u32) -> Answer {
        let Some(session) = self.open_mut(id) else { return Ok(vec![0]) };
        let lost = session.works_in.is_some_and(|tab| !session.tabs.contains_key(&tab));
        session.works_in = session.current_tab;
        if lost { Err(Code::TabGone) } else { Ok(vec![session.current_tab.unwrap_or(0).into()]) }
    }

    pub(super) fn remove_tab(&mut self, id: u32, tab: u32, by: Closer) -> Answer {
        if let Some(session) = self.open_mut(id) {
            if session.tabs.remove(&tab).is_some() && by == Closer::Owner && session.works_in == Some(tab) {
                session.works_in = None;
            }
            if session.current_tab == Some(tab) {
                session.current_tab = session.tabs.keys().next().copied();
            }
        }
        DONE
    }

    pub(super) fn select_tab(&mut self, id: u32, tab: u32) -> Answer {
        self.tab(id, tab)?;
        let session = self.open_mut(id).expect("it has the tab");
        (session.current_tab, session.works_in) = (Some(tab), Some(tab));
        DONE
    }

    pub(super) fn watch(&mut self, id: u32) -> Answer {
        if let Some(session) = self.open_mut(id) {
            session.viewers += 1;
        }
        DONE
    }

    pub(super) fn unwatch(&mut self, id: u32) -> Answer {
        let now = self.now;
        if let Some(session) = self.open_mut(id) {
            session.viewers = session.viewers.saturating_sub(1);
            session.last_used = now;
        }
        DONE
    }
}
