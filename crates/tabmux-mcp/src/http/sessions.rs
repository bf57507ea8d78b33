//! Where old-era HTTP sessions are kept, so that they outlive the daemon: clients do not initialise again after
//! a 404 (FACTS §2). What a session owns is deliberately absent.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::streamable_http_server::session::store::{SessionState, SessionStore};
use serde_json::Value;

/// The store could not be read or written.
pub type SessionStoreError = Box<dyn std::error::Error + Send + Sync>;

/// The daemon's memory of `mcp-session-id`s: each with the parameters of its `initialize`.
#[async_trait]
pub trait HttpSessions: Send + Sync + 'static {
    async fn load(&self, id: &str) -> Result<Option<Value>, SessionStoreError>;
    /// A client has initialised. Called before it learns its id.
    async fn store(&self, id: &str, initialize: Value) -> Result<(), SessionStoreError>;
    /// The client said goodbye (DELETE). Never called because a session was idle.
    async fn delete(&self, id: &str) -> Result<(), SessionStoreError>;
}

/// `HttpSessions` as rmcp wants it.
pub(super) struct Stored(pub(super) Arc<dyn HttpSessions>);

#[async_trait]
impl SessionStore for Stored {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        let Some(initialize) = self.0.load(id).await? else { return Ok(None) };
        Ok(Some(SessionState::new(serde_json::from_value(initialize)?)))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        self.0.store(id, serde_json::to_value(&state.initialize_params)?).await
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        self.0.delete(id).await
    }
}
