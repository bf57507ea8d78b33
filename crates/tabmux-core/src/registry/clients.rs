//! Peers come and go.

use super::{Client, Ended, Registry};
use crate::session::Orphan;
use crate::{CallId, ClientId, Code, Effect, Fault, Identity, Leave, Link, Millis, OnLost, SessionId};

impl Registry {
    /// A peer is here. A connection takes back the orphans of its identity, unless another one drives it.
    pub fn attach(&mut self, identity: Identity, link: Link, now: Millis) -> ClientId {
        let client = ClientId(self.next_client);
        self.next_client += 1;
        if identity.is_exclusive() && link == Link::Connection {
            self.take_back(&identity, client, now);
        }
        self.away.retain(|other| *other != identity);
        self.clients.insert(client, Client { identity, link, has_called: false });
        client
    }

    /// A peer is gone. Its waiting calls are cancelled; a running one finishes, unless the session closes (C7).
    pub fn detach(&mut self, client: ClientId, leave: Leave, now: Millis) {
        let Some(Client { identity, link, .. }) = self.clients.remove(&client) else { return };
        self.cancel_waiting_of(client);
        let was_last = self.was_last(&identity, client);
        if was_last {
            self.holders.remove(&identity);
        }
        match (leave, link) {
            (Leave::Goodbye, _) if was_last => self.end_all_of(&identity, Ended::Goodbye),
            (Leave::Lost, Link::Connection) if was_last && identity.is_exclusive() => self.lose(&identity, now),
            (Leave::Goodbye | Leave::Lost, _) => {}
        }
        self.forget_unused(&identity);
        self.note_emptiness(now);
    }

    /// Whether nobody who may act as this identity is left, now that this client is gone.
    fn was_last(&self, identity: &Identity, client: ClientId) -> bool {
        match self.holders.get(identity) {
            Some(holder) => *holder == client,
            None => !identity.is_many() && !self.clients.values().any(|other| other.identity == *identity),
        }
    }

    /// The identity behind a client.
    pub fn identity(&self, client: ClientId) -> Option<&Identity> {
        self.clients.get(&client).map(|client| &client.identity)
    }

    /// Whether a client may act at all, for calls that need no session (`list_sessions`).
    pub fn authorize(&mut self, client: ClientId, now: Millis) -> Result<(), Fault> {
        self.acting(client, now).map(|_| ())
    }

    /// The identity a client may act as now. A second live connection with the same secret may not (contract:
    /// `session_exists` on each call); once the first is gone, its next call may.
    pub(super) fn acting(&mut self, client: ClientId, now: Millis) -> Result<Identity, Fault> {
        let Some(Client { identity, link, has_called }) = self.clients.get_mut(&client) else {
            return Err(Fault::new(Code::Unauthorized, "This connection is not registered.", "Connect again."));
        };
        *has_called = true;
        let (identity, link) = (identity.clone(), *link);
        if identity.is_exclusive() && link == Link::Connection {
            self.take_back(&identity, client, now);
            if self.holders.get(&identity) != Some(&client) {
                return Err(Fault::new(
                    Code::SessionExists,
                    "Another live client drives the session of this name.",
                    "Use another --session name, end the other client, or have it share the session.",
                ));
            }
        }
        Ok(identity)
    }

    fn take_back(&mut self, identity: &Identity, client: ClientId, now: Millis) {
        if self.holders.contains_key(identity) {
            return;
        }
        self.holders.insert(identity.clone(), client);
        self.end_orphanhood(identity, now);
    }

    fn end_orphanhood(&mut self, identity: &Identity, now: Millis) {
        for id in self.owned_by(identity) {
            let Some((session, live)) = self.live_mut(id) else { continue };
            if live.orphan.take().is_some() {
                live.last_used = now;
                session.epoch.0 += 1;
                self.dirty.insert(id);
            }
        }
    }

    /// The connection that drove this identity is gone. The oldest of those that called and were refused drives from now on. Where the others
    /// were silent, whoever calls or comes first does: the client that was lost may be started again beside them.
    fn lose(&mut self, identity: &Identity, now: Millis) {
        let here = || self.clients.iter().filter(|(_, other)| other.identity == *identity && other.link == Link::Connection);
        let heir = here().filter(|(_, other)| other.has_called).map(|(id, _)| *id).min();
        match (here().next().is_some(), self.rules.on_lost) {
            (true, _) => {
                self.orphan_all_of(identity, now);
                self.end_orphanhood(identity, now);
                self.holders.extend(heir.map(|heir| (identity.clone(), heir)));
            }
            (false, OnLost::Keep) => {}
            (false, OnLost::Close) => self.end_all_of(identity, Ended::Lost),
            (false, OnLost::Grace) => self.orphan_all_of(identity, now),
        }
    }

    fn orphan_all_of(&mut self, identity: &Identity, now: Millis) {
        for id in self.owned_by(identity) {
            self.orphan(id, now);
        }
    }

    pub(super) fn orphan(&mut self, id: SessionId, now: Millis) {
        let until = self.rules.orphan_grace_ms.map(|grace| now.plus(grace));
        if let Some((_, live)) = self.live_mut(id) {
            live.orphan = Some(Orphan { until });
        }
    }

    pub(super) fn owned_by(&self, identity: &Identity) -> Vec<SessionId> {
        self.owned.get(identity).map(|handles| handles.values().copied().collect()).unwrap_or_default()
    }

    fn cancel_waiting_of(&mut self, client: ClientId) {
        let mut cancelled: Vec<CallId> = Vec::new();
        for (_, live) in self.sessions.values_mut() {
            cancelled.extend(live.waiting.iter().filter(|waiting| waiting.client == client).map(|waiting| waiting.call));
            live.waiting.retain(|waiting| waiting.client != client);
        }
        for call in cancelled {
            self.calls.remove(&call.0);
            let fault = Fault::new(Code::Cancelled, "The client left before the call began.", "Connect and call again.");
            self.effects.push(Effect::EndCall { call, fault });
        }
    }

    /// Drops what is kept per identity once nobody can ask for it again.
    pub(super) fn forget_unused(&mut self, identity: &Identity) {
        let used = self.owned.contains_key(identity) || self.clients.values().any(|client| client.identity == *identity);
        if !used {
            self.currents.remove(identity);
            self.keep_unseen_endings(identity);
            self.numbers.retain(|(owner, _), _| owner != identity);
        }
    }
}
