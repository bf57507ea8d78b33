//! Grants as callers make, see and end them, and the audit of what is done by them. What a grant allows, the registry decides.

use std::sync::Arc;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};
use tabmux_core::{CAPABILITY, Code, Fault, Grant, GrantKey, Identity, Party, Registry, Revoke, Right, Session, SessionId, Share, Shared};
use tabmux_tools::{GrantView, visible_line};

use super::{CallerOf, Hub};
use crate::clock;
use crate::session::{SessionHandle, short_url};

/// What is known of a capability.
pub(crate) fn digest(capability: &str) -> GrantKey {
    GrantKey(Sha256::digest(capability.as_bytes()).into())
}

impl Hub {
    /// Makes a capability. It is given out once it is on disk: one that a crash forgets would be a promise broken.
    pub(super) async fn share(
        self: &Arc<Self>,
        caller: &CallerOf,
        session: Option<&str>,
        mut share: Share,
    ) -> Result<(String, GrantView), Fault> {
        share.created_unix_ms = clock::unix_ms();
        let mut first = Some(crate::tokens::random_token()?);
        let (mut capability, mut mint_failed) = (String::new(), None);
        let (shared, safe) = self.decide(|registry, now| {
            let mint = || {
                // The second time its id was another's already. Without random numbers that one stays, and is not given out.
                match first.take().map_or_else(crate::tokens::random_token, Ok) {
                    Ok(another) => capability = another,
                    Err(fault) => mint_failed = Some(fault),
                }
                digest(&capability)
            };
            let shared = registry.share(caller.as_caller(), session, share, mint, now)?;
            let view = view(registry, &shared);
            Ok::<_, Fault>((shared, view))
        });
        let (shared, view) = shared?;
        if let Some(fault) = mint_failed {
            return Err(fault);
        }
        safe.written().await?;
        self.audit_shared("made", caller, &shared);
        // Its clock may be the next to run out.
        self.untidy.notify_one();
        Ok((capability, view))
    }

    pub(super) fn shares(self: &Arc<Self>, caller: &CallerOf, session: Option<&str>) -> Result<Vec<GrantView>, Fault> {
        self.decide_now(|registry, now| {
            let shares = registry.shares(caller.as_caller(), session, now)?;
            Ok(shares.iter().map(|shared| view(registry, shared)).collect())
        })
    }

    /// Ends grants. Said to be done once it is on disk: one that a crash brings back would not be revoked.
    pub(super) async fn revoke(self: &Arc<Self>, caller: &CallerOf, session: Option<&str>, which: &str) -> Result<Vec<GrantView>, Fault> {
        let which = if which == "all" { Revoke::All } else { Revoke::One(which) };
        let (revoked, safe) = self.decide(|registry, now| {
            let revoked = registry.revoke(caller.as_caller(), session, which, now)?;
            let views = revoked.iter().map(|shared| view(registry, shared)).collect::<Vec<_>>();
            Ok::<_, Fault>((revoked, views))
        });
        let (revoked, views) = revoked?;
        for shared in &revoked {
            self.audit_shared("revoked", caller, shared);
        }
        safe.written().await?;
        Ok(views)
    }

    /// The grant of somebody who shows a capability and nothing else. Takes the same time whichever it is, or none.
    pub(crate) fn holder(&self, capability: &str) -> Option<GrantKey> {
        let (shown, now) = (digest(capability), self.clock.now());
        let holder = self.look(|registry| {
            let known = registry.grants(now).fold(Choice::from(0), |known, shared| known | shared.grant.key.0.ct_eq(&shown.0));
            (bool::from(known) && registry.holder(capability, now).is_some()).then_some(shown)
        });
        if let (None, Some(over)) = (holder, self.look(|registry| registry.known_grant(shown))) {
            // Whoever it is comes no further than the door.
            let mut members = members_of(&over, &short(&Identity::Grant(shown)), "connect");
            members.insert("outcome".into(), Code::Unauthorized.name().into());
            self.audit.note("used", members);
        }
        holder
    }

    /// Does what somebody asks for who calls no tool, and notes it like one if it is done by a grant. `shown` is what may hold one.
    pub(crate) async fn noted<T>(
        self: &Arc<Self>,
        caller: &CallerOf,
        shown: &[Option<&str>],
        what: &str,
        asked: impl Future<Output = Result<T, Fault>>,
    ) -> Result<T, Fault> {
        let used = self.begin_use(caller, shown, what);
        let outcome = asked.await;
        if let Some(used) = used {
            used.ends(outcome.as_ref().err().map(|fault| fault.code));
        }
        outcome
    }

    fn audit_shared(&self, event: &str, caller: &CallerOf, shared: &Shared) {
        let grant = &shared.grant;
        let members = json!({
            "grant": grant.id().to_string(),
            "session": grant.session.to_string(),
            "caller": self.who(caller),
            "mode": grant.right.name(),
            "tools": grant.tools,
            "domains": grant.domains,
            "left_ms": shared.left_ms,
            "uses": if grant.uses == tabmux_core::Uses::Once { "once" } else { "many" },
            "from": grant.parent.map(|parent| parent.id().to_string()),
        });
        if let Value::Object(members) = members {
            self.audit.note(event, members);
        }
    }

    fn who(&self, caller: &CallerOf) -> String {
        self.look(|registry| registry.identity(caller.client).map(short)).unwrap_or_default()
    }

    /// The grant a call is made by, whether it will be allowed or not, to be noted when the call has ended. One that is not known
    /// is none: whoever makes capabilities up must not fill the log. Nor does who took the session over need one any more.
    pub(super) fn begin_use(self: &Arc<Self>, caller: &CallerOf, shown: &[Option<&str>], tool: &str) -> Option<Use> {
        let shown = shown.iter().flatten().find(|text| text.starts_with(CAPABILITY)).map(|capability| digest(capability));
        let grant = self.look(|registry| {
            let identity = registry.identity(caller.client);
            let own = if let Some(Identity::Grant(key)) = identity { Some(*key) } else { None };
            let grant = registry.known_grant(shown.or(own)?)?;
            let owner = registry.session(grant.session).map(|session| &session.owner);
            let is_owners = grant.taken_by.is_some() && owner == identity;
            (!is_owners).then_some(grant)
        })?;
        let members = members_of(&grant, &self.who(caller), tool);
        let (right, taken) = (grant.right, grant.taken_by.is_some());
        Some(Use { hub: Arc::clone(self), members, right, taken, session: grant.session, outcome: Code::Cancelled.name() })
    }
}

/// One use of a grant; noted when it ends, however that comes about.
pub(super) struct Use {
    hub: Arc<Hub>,
    members: Map<String, Value>,
    right: Right,
    /// Somebody has taken the session over by it already.
    taken: bool,
    session: SessionId,
    outcome: &'static str,
}

impl Use {
    pub(super) fn ends(mut self, outcome: Option<Code>) {
        self.outcome = outcome.map_or("ok", Code::name);
    }

    /// What the caller has not been told of a session that it has by this use: a call about sessions runs in none of them.
    pub(super) fn untold(&self, caller: &CallerOf) -> Vec<String> {
        let took = self.right == Right::HandOver
            && self.hub.look(|registry| {
                let owner = registry.session(self.session).map(|session| &session.owner);
                owner.is_some() && owner == registry.identity(caller.client)
            });
        let session = if took { self.hub.handle(self.session) } else { None };
        session.map(|session| session.take_news(Party::Owner)).unwrap_or_default()
    }
}

impl Drop for Use {
    fn drop(&mut self) {
        let mut members = std::mem::take(&mut self.members);
        members.insert("outcome".into(), self.outcome.into());
        let hands_over = self.right == Right::HandOver && !self.taken;
        if hands_over {
            let epoch = self.hub.look(|registry| registry.session(self.session).map(|session| session.epoch.0));
            members.insert("epoch".into(), epoch.into());
        }
        self.hub.audit.note(if hands_over { "handed_over" } else { "used" }, members);
    }
}

fn members_of(grant: &Grant, caller: &str, tool: &str) -> Map<String, Value> {
    Map::from_iter([
        ("grant".to_owned(), grant.id().to_string().into()),
        ("session".to_owned(), grant.session.to_string().into()),
        ("caller".to_owned(), caller.into()),
        ("tool".to_owned(), tool.into()),
    ])
}

/// As much of an identity as tells it from others.
fn short(identity: &Identity) -> String {
    match identity {
        Identity::Grant(key) => format!("grant:{}", key.id()),
        other => other.to_string(),
    }
}

/// What somebody reads first who took a session over.
pub(super) fn taken_over(session: &Session, handle: &SessionHandle, was: Option<&str>) -> String {
    let renamed = was.map(|was| format!(" (it was '{was}', a name that you have already)")).unwrap_or_default();
    let tabs = match session.tabs.len() {
        0 => "no tabs".to_owned(),
        1 => "1 tab".to_owned(),
        count => format!("{count} tabs"),
    };
    let current = session.current_tab.map(|tab| (tab, handle.url_of(tab).unwrap_or_else(|| session.tabs[&tab].url.clone())));
    let at = current.map(|(tab, url)| format!(", {tab} is current, at {}", short_url(&url))).unwrap_or_default();
    let name = visible_line(&session.handle());
    format!("You took over session '{name}'{renamed}: {tabs}{at}. Its former driver is out.")
}

fn view(registry: &Registry, shared: &Shared) -> GrantView {
    let grant = &shared.grant;
    GrantView {
        grant: grant.id().to_string(),
        session_id: registry.session(grant.session).map(tabmux_core::Session::handle).unwrap_or_default(),
        mode: grant.right.name().to_owned(),
        tools: grant.tools.as_ref().map(|tools| tools.iter().cloned().collect()),
        domains: grant.domains.clone(),
        once: grant.uses == tabmux_core::Uses::Once,
        left_ms: shared.left_ms,
        created_at: clock::iso(grant.created_unix_ms),
    }
}
