//! The reference's grants.

use tabmux_core::{Code, Identity, Right, Touch, Uses};

use super::{Answer, Found, Model, sorted};
use crate::op::{Target, Who, Wish, capability, digest};

#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) session: u32,
    pub(crate) giver: Identity,
    pub(crate) parent: Option<u32>,
    pub(crate) right: Right,
    pub(crate) tools: Option<Touch>,
    pub(crate) once: bool,
    pub(crate) until: Option<u64>,
    pub(crate) taken_by: Option<Identity>,
}

impl Grant {
    pub(crate) fn is_due(&self, now: u64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    pub(crate) fn allows(&self, touch: Touch) -> bool {
        touch != Touch::Governs && (touch == Touch::Looks || self.right == Right::Act) && self.tools.is_none_or(|only| only == touch)
    }
}

impl Model {
    /// The grant a holder is, and its session, whether it is due or not.
    pub(crate) fn held(&self, identity: &Identity) -> Option<(u32, u32)> {
        let is_it =
            |(number, grant): &(&u32, &Grant)| Identity::Grant(digest(&capability(**number))) == *identity && grant.taken_by.is_none();
        self.grants.iter().find(is_it).map(|(number, grant)| (grant.session, *number))
    }

    /// The session behind a capability, and the grant unless that made it the caller's own.
    pub(super) fn granted(&self, identity: &Identity, number: u32) -> Option<Found> {
        let grant = self.grants.get(&number).filter(|grant| !grant.is_due(self.now))?;
        match &grant.taken_by {
            None => Some((grant.session, Some(number))),
            Some(taker) => (taker == identity).then_some((grant.session, None)),
        }
    }

    /// The first who reaches a session that is handed over owns it.
    pub(super) fn settled(&mut self, identity: &Identity, (id, grant): Found) -> Found {
        let Some(number) = grant.filter(|grant| self.grants[grant].right == Right::HandOver) else { return (id, grant) };
        let taken = self.grants.remove(&number).expect("it was looked at");
        let former = (self.sessions[&id].owner.clone(), self.handle(id));
        let name = self.sessions[&id].name.clone();
        self.hand_over(id, identity).expect("it always is");
        if former.0 != *identity {
            let was = (self.sessions[&id].name != name).then_some(name);
            self.effects.insert(format!("taken over {id} {was:?}"));
        }
        let session = self.sessions.get_mut(&id).expect("it is open");
        session.former.retain(|(who, _)| *who != former.0 && who != identity);
        if former.0 != *identity {
            session.former.truncate(7);
            session.former.insert(0, former);
        }
        self.grants.insert(number, Grant { taken_by: Some(identity.clone()), until: None, parent: None, ..taken });
        (id, None)
    }

    pub(super) fn was_taken(&self, identity: &Identity, target: Target) -> bool {
        let text = target.text();
        self.ids(|session| session.former.iter().any(|(who, _)| who == identity)).into_iter().any(|id| {
            let (_, name) = self.sessions[&id].former.iter().find(|(who, _)| who == identity).expect("it was looked for");
            match (target, identity) {
                (_, Identity::Nobody) => text.as_ref() == Some(name),
                (Target::Current, _) => true,
                (Target::Id(wanted) | Target::Uuid(wanted), _) => wanted == id,
                _ => text.as_ref() == Some(name),
            }
        })
    }

    pub(super) fn share(&mut self, who: Who, target: Target, wish: Wish) -> Answer {
        let identity = self.acting(who.client)?;
        let (session, parent) = self.find(&identity, who.agent, target)?;
        let mut until = wish.ttl_ms.map(|ttl| self.now + ttl);
        let mut tools = wish.tools;
        if let Some(parent) = parent.map(|parent| &self.grants[&parent]) {
            let wider = wish.right > parent.right || wish.tools.is_some() && parent.tools.is_some_and(|only| Some(only) != wish.tools);
            if wider || parent.once || wish.right == Right::HandOver {
                return Err(Code::PolicyDenied);
            }
            tools = tools.or(parent.tools);
            until = until.into_iter().chain(parent.until).min();
        }
        let grant =
            Grant { session, giver: identity, parent, right: wish.right, tools, once: wish.uses == Uses::Once, until, taken_by: None };
        let number = self.next_grant;
        self.next_grant += 1;
        self.grants.insert(number, grant);
        Ok(vec![number.into()])
    }

    pub(super) fn revoke(&mut self, who: Who, target: Target, which: Option<u32>) -> Answer {
        let identity = self.acting(who.client)?;
        let within = target.text().map(|_| self.find(&identity, who.agent, target)).transpose()?;
        let shown = match within {
            Some((_, grant)) => grant,
            None => self.held(&identity).map(|(_, grant)| grant),
        };
        let sees = |number: &u32| {
            let grant = &self.grants[number];
            let known = identity != Identity::Nobody;
            let gave = known && (grant.giver == identity || self.owned(&identity).contains(&grant.session));
            let by_session = within.is_some_and(|(_, grant)| grant.is_none());
            identity == Identity::Operator || by_session || gave || shown.is_some_and(|shown| self.line(*number).contains(&shown))
        };
        let meant: Vec<u32> = self
            .grants
            .iter()
            .filter(|(_, grant)| !grant.is_due(self.now) && grant.taken_by.is_none())
            .filter(|(number, grant)| within.is_none_or(|(id, _)| grant.session == id) && which.is_none_or(|which| which == **number))
            .map(|(number, _)| *number)
            .filter(sees)
            .collect();
        if which.is_some() && meant.is_empty() {
            return Err(Code::BadArgument);
        }
        self.end_grants_numbered(&meant);
        Ok(sorted(&meant))
    }

    /// The grants this one came from.
    fn line(&self, number: u32) -> Vec<u32> {
        let parent = self.grants.get(&number).and_then(|grant| grant.parent);
        parent.map(|parent| self.line(parent).into_iter().chain([parent]).collect()).unwrap_or_default()
    }

    pub(super) fn end_grants(&mut self, ends: impl Fn(&Grant) -> bool) {
        let meant: Vec<u32> = self.grants.iter().filter(|(_, grant)| ends(grant)).map(|(number, _)| *number).collect();
        self.end_grants_numbered(&meant);
    }

    fn end_grants_numbered(&mut self, meant: &[u32]) {
        let is_over = |number: &u32| meant.contains(number) || self.line(*number).iter().any(|ancestor| meant.contains(ancestor));
        let over: Vec<u32> = self.grants.keys().copied().filter(is_over).collect();
        let by = |call: &super::Call| {
            call.by.is_some_and(|(grant, parent)| over.contains(&grant) || parent.is_some_and(|parent| over.contains(&parent)))
        };
        let says = |call: &super::Call| match (call.place, call.touch) {
            (super::Place::Waiting, _) => Code::SessionNotFound,
            (_, tabmux_core::Touch::Looks) => Code::Cancelled,
            _ => Code::OutcomeUnknown,
        };
        for (call, code) in self.calls.iter().filter(|(_, call)| by(call)).map(|(number, call)| (*number, says(call))).collect::<Vec<_>>() {
            self.end_call(call, code);
        }
        self.grants.retain(|number, _| !over.contains(number));
    }
}
