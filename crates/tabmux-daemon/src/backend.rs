//! The hub as the HTTP door sees it: who an HTTP caller is, its commands, and what is remembered of it.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt};
use serde_json::Value;
use tabmux_core::{ClientId, Fault, GrantKey, Identity, Leave, Link};
use tabmux_mcp::{Dispatch, HttpSessions, SessionStoreError, ToolAnswer, ToolCall};
use tokio_util::sync::CancellationToken;

use crate::http::{Backend, Command, CommandAnswer, CommandRefusal, Health, HttpIdentity, RememberSessions, SessionOwner};
use crate::hub::{Ask, CallerOf, Doorway, Hub, Profile};

#[derive(Debug)]
pub(crate) struct HubBackend {
    hub: Arc<Hub>,
    /// HTTP callers have no connection; each identity is one client for as long as the daemon lives.
    clients: Mutex<HashMap<HttpIdentity, ClientId>>,
}

impl HubBackend {
    pub(crate) fn new(hub: Arc<Hub>) -> Self {
        Self { hub, clients: Mutex::default() }
    }

    fn clients(&self) -> MutexGuard<'_, HashMap<HttpIdentity, ClientId>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a former daemon knew of `mcp-session-id`s.
    pub(crate) fn remembered(&self) -> Vec<(String, SessionOwner)> {
        self.hub.store.http_records().into_iter().filter_map(|record| Some((record.id, record.holder?.parse().ok()?))).collect()
    }

    async fn run_command(&self, client: ClientId, command: Command, cancel: CancellationToken) -> Result<CommandAnswer, CommandRefusal> {
        let ask = Ask::new(CallerOf::of(client), command.tool, command.args, cancel);
        let answer = self.hub.run_on(ask, command.tab).await;
        let mut reply = answer.outcome.map_err(refusal)?;
        let text = |key: &str| answer.result.get(key).and_then(Value::as_str);
        let number_of = |tab: &str| {
            let (session, tab) = (text("id")?.parse().ok()?, tab.parse().ok()?);
            self.hub.look(|registry| registry.session(session)?.tabs.get(&tab).map(|tab| tab.number))
        };
        let mut tab = text("tabId").and_then(number_of);
        let mut url = text("url").map(str::to_owned);
        for page in reply.structured.iter_mut().filter_map(|list| list.get_mut("pages")?.as_array_mut()).flatten() {
            page["tabNumber"] = page["tabId"].as_str().and_then(number_of).map(|tab| tab.0).into();
            // A list of tabs ran in none of them; the current one stands for where the session is (S2.26).
            if tab.is_none() && page["current"] == true {
                tab = page["tabId"].as_str().and_then(number_of);
                url = page["url"].as_str().map(str::to_owned);
            }
        }
        reply.result = answer.result;
        Ok(CommandAnswer { tab, url, reply })
    }
}

impl Dispatch for HubBackend {
    fn call(&self, call: ToolCall) -> Pin<Box<dyn Future<Output = ToolAnswer> + Send + '_>> {
        Box::pin(async move { Doorway(Arc::clone(&self.hub)).call(call).await })
    }
}

impl Backend for HubBackend {
    fn http_client(&self, who: HttpIdentity) -> ClientId {
        let mut clients = self.clients();
        // One that was banished meanwhile (its token revoked) is another when it comes again.
        if let Some(client) = clients.get(&who).filter(|client| self.hub.look(|registry| registry.identity(**client).is_some())) {
            return *client;
        }
        // Grants come and go; of one that is over nobody comes again.
        let over = |who: &HttpIdentity, client: ClientId| {
            matches!(who, HttpIdentity::Grant(_)) && self.hub.look(|registry| registry.is_over(client))
        };
        for (_, client) in clients.extract_if(|who, client| over(who, *client)) {
            self.hub.detach(client, Leave::Lost);
        }
        let profile = Profile { label: "http".into(), asks_once: true, ..Profile::default() };
        // While the daemon stops there is no client; calls of this one are refused as not registered.
        let Some(client) = self.hub.attach(identity(&who), Link::None, profile) else { return ClientId(0) };
        clients.insert(who, client);
        client
    }

    fn goodbye(&self, who: HttpIdentity) -> BoxFuture<'_, ()> {
        let client = self.http_client(who.clone());
        self.clients().remove(&who);
        let handles = self.hub.look(|registry| {
            let own = registry.list(CallerOf::of(client).as_caller());
            own.into_iter().map(|listed| listed.session.id).collect::<Vec<_>>()
        });
        let handles: Vec<_> = handles.into_iter().filter_map(|id| self.hub.handle(id)).collect();
        self.hub.detach(client, Leave::Goodbye);
        // None closes while another client shares the identity.
        let closing = handles.into_iter().filter(|handle| handle.stop.is_cancelled());
        let gone: Vec<_> = closing.map(|handle| handle.done.cancelled_owned()).collect();
        async move {
            let closed = tokio::time::timeout(tabmux_driver::HOUSEKEEPING, futures::future::join_all(gone));
            if closed.await.is_err() {
                tracing::warn!("closing takes long; it goes on in the background");
            }
        }
        .boxed()
    }

    fn health(&self) -> Health {
        Health { sessions: self.hub.look(|registry| registry.counts().sessions), extension_connected: false }
    }

    fn command(
        &self,
        client: ClientId,
        command: Command,
        cancel: CancellationToken,
    ) -> BoxFuture<'_, Result<CommandAnswer, CommandRefusal>> {
        self.run_command(client, command, cancel).boxed()
    }

    fn has_session(&self, who: &HttpIdentity, session: &str) -> bool {
        self.hub.look(|registry| registry.has(&identity(who), session))
    }

    fn holder(&self, capability: &str) -> Option<GrantKey> {
        self.hub.holder(capability)
    }
}

/// On this surface another's tab is a conflict (S2.14).
fn refusal(fault: Fault) -> CommandRefusal {
    if fault == tabmux_core::foreign_tab() { CommandRefusal::ForeignTab } else { CommandRefusal::Fault(fault) }
}

fn identity(who: &HttpIdentity) -> Identity {
    match who {
        HttpIdentity::McpSession(id) => Identity::Http(id.as_str().into()),
        HttpIdentity::Token(name) => Identity::Token(name.as_str().into()),
        HttpIdentity::Path(name) => Identity::Path(name.as_str().into()),
        HttpIdentity::Grant(key) => Identity::Grant(*key),
        HttpIdentity::Anonymous => Identity::Nobody,
    }
}

impl RememberSessions for HubBackend {
    fn bound(&self, id: &str, owner: &SessionOwner) -> BoxFuture<'_, ()> {
        let safe = self.hub.store.put_http(id, |record| record.holder = Some(owner.to_string()));
        async move {
            if let Err(fault) = safe.written().await {
                tracing::warn!(%fault, "an MCP session would not survive a crash");
            }
        }
        .boxed()
    }

    fn unbound(&self, id: &str) {
        let client = self.clients().remove(&HttpIdentity::McpSession(id.to_owned()));
        if let Some(client) = client {
            // Nothing of it closes by this; it is only forgotten.
            self.hub.detach(client, Leave::Lost);
        }
        self.hub.watch_over(self.hub.store.drop_http(id));
    }
}

#[async_trait::async_trait]
impl HttpSessions for HubBackend {
    async fn load(&self, id: &str) -> Result<Option<Value>, SessionStoreError> {
        Ok(self.hub.store.http_record(id).and_then(|record| record.initialize))
    }

    async fn store(&self, id: &str, initialize: Value) -> Result<(), SessionStoreError> {
        let safe = self.hub.store.put_http(id, |record| record.initialize = Some(initialize));
        safe.written().await.map_err(Into::into)
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        let safe = self.hub.store.drop_http(id);
        safe.written().await.map_err(Into::into)
    }
}
