//! `/mcp` and `/mcp/NAME`: says who the caller is (C11), and keeps each `mcp-session-id` with the one who
//! initialised it. The protocol itself is behind the `McpService`.

use bytes::Bytes;
use http::header::{AUTHORIZATION, HeaderName};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use tabmux_core::{Code, Fault};
use tabmux_mcp::HttpCaller;
use tabmux_wire::names;

use super::refusal::{Refusal, RpcCode};
use super::routes::Door;
use super::sessions::{Others, SessionOwner};
use super::{ResponseBody, body, guard};
use crate::tokens::TokenHolder;

pub(super) const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
pub(super) const INSTANCE_ID: HeaderName = HeaderName::from_static("x-instance-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
/// The first revision without protocol sessions; a session header means nothing there.
const FIRST_STATELESS: &str = "2026-07-28";

impl Door {
    pub(super) async fn mcp(
        &self,
        head: &Parts,
        body: &mut Incoming,
        holder: &TokenHolder,
        path: Option<String>,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let owner = owner_of(holder, path)?;
        let mut head = head.clone();
        let id = take_session_id(&mut head.headers)?;
        if let Some(id) = &id
            && self.behind.sessions.owner(id).as_ref() != Some(&owner)
        {
            let fault = Fault::new(Code::SessionNotFound, "There is no such MCP session.", "Send initialize again, without a session id.");
            return Err(Refusal::new(fault).rpc(RpcCode::SessionNotFound));
        }
        let bytes = match head.method {
            Method::POST => body::read_json(&head, body, self.bounds.body_read).await?.bytes,
            _ => Bytes::new(),
        };
        // The handler sees the headers, and it needs no secret.
        head.headers.remove(AUTHORIZATION);
        head.extensions.insert(HttpCaller { client: self.behind.backend.http_client(owner.identity(id.as_deref())) });
        let method = head.method.clone();
        let response = (self.behind.mcp)(Request::from_parts(head, Full::new(bytes))).await;
        self.keep_book(&method, id, owner, &response).await;
        Ok(response)
    }

    /// Binds a new `mcp-session-id` to its owner, and lets go of one that ended.
    async fn keep_book(&self, method: &Method, id: Option<String>, owner: SessionOwner, response: &Response<ResponseBody>) {
        let given = response.headers().get(SESSION_ID).and_then(|id| id.to_str().ok());
        match (id, given) {
            (None, Some(new)) => self.behind.sessions.bind(new, owner).await,
            (Some(id), _) if *method == Method::DELETE && response.status().is_success() => {
                let others = self.behind.sessions.unbind(&id);
                let who = owner.identity(Some(&id));
                // Callers that share one token or path share its sessions: the last one to leave closes them.
                if owner == SessionOwner::Main || others == Others::None {
                    let backend = std::sync::Arc::clone(&self.behind.backend);
                    let goodbye = tokio::spawn(async move { backend.goodbye(who).await });
                    // In a task of its own, so that a peer that hangs up does not stop the closing.
                    if let Err(error) = goodbye.await {
                        tracing::error!(%error, "a goodbye did not end well");
                    }
                }
            }
            (Some(id), _) if response.status() == StatusCode::NOT_FOUND => drop(self.behind.sessions.unbind(&id)),
            _ => {}
        }
    }
}

/// A capability or a named token has one identity, whatever the path; the main token gets one from the path.
fn owner_of(holder: &TokenHolder, path: Option<String>) -> Result<SessionOwner, Refusal> {
    if let Some(name) = path.as_ref().filter(|name| !names::is_plain(name)) {
        let message = format!("'/mcp/{}' names nobody.", name.chars().take(100).collect::<String>());
        return Err(Fault::new(Code::BadArgument, message, format!("Use {} after /mcp/.", names::RULE)).into());
    }
    match (holder, path) {
        (TokenHolder::Grant(key), _) => Ok(SessionOwner::Grant(*key)),
        (TokenHolder::Main, None) => Ok(SessionOwner::Main),
        (TokenHolder::Main, Some(name)) => Ok(SessionOwner::Path(name)),
        (TokenHolder::Named(token), path) if path.as_ref().is_none_or(|path| path == token) => Ok(SessionOwner::Token(token.clone())),
        (TokenHolder::Named(token), _) => {
            let message = format!("The token '{token}' is not for this path.");
            Err(Fault::new(Code::PolicyDenied, message, format!("Use /mcp or /mcp/{token} with it.")).into())
        }
    }
}

/// The caller's session id, under either name (S2.7); the request goes on with the protocol's own name only.
fn take_session_id(headers: &mut HeaderMap) -> Result<Option<String>, Refusal> {
    let ids = (guard::only(headers, &SESSION_ID)?, guard::only(headers, &INSTANCE_ID)?);
    headers.remove(INSTANCE_ID);
    let id = match ids {
        (Some(session), Some(instance)) if session != instance => {
            let message = "mcp-session-id and x-instance-id name different sessions.";
            return Err(Fault::new(Code::BadArgument, message, "Send one of them.").into());
        }
        (session, instance) => session.or(instance),
    };
    let is_stateless = headers.get(PROTOCOL_VERSION).is_some_and(|version| version.as_bytes() >= FIRST_STATELESS.as_bytes());
    match id {
        Some(id) if !is_stateless => {
            headers.insert(SESSION_ID, HeaderValue::from_str(&id).expect("it was a header's value"));
            Ok(Some(id))
        }
        _ => {
            headers.remove(SESSION_ID);
            Ok(None)
        }
    }
}
