//! The command line's requests. The operator's connection is one-shot: it owns nothing, so its end loses nothing (C7).

use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_core::{ClientId, Code, Fault, Identity};
use tabmux_tools::{Content, Desk};
use tabmux_wire::VERSION;
use tabmux_wire::control::{Ask, Request, Response, WireFault};
use tabmux_wire::hello::GoodbyeLine;
use tabmux_wire::lines::Line;
use tabmux_wire::strict::only_fields;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::replies::{LAST_WORDS, Replies, begin_in_order};
use super::{Door, Reader, too_long};
use crate::hub::{self, CallerDesk, CallerOf, ForkOf, New};

/// Requests of one connection at once.
const AT_ONCE: usize = 64;

impl Door {
    pub(super) async fn control(self: &Arc<Self>, client: ClientId, mut reader: Reader, write: OwnedWriteHalf) {
        let gone = CancellationToken::new();
        // A command that was interrupted takes its call along.
        let _cancel_when_gone = gone.clone().drop_guard();
        let replies = Replies::start(write);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        loop {
            let line = tokio::select! {
                line = replies.next_line(&mut reader) => line,
                () = self.closing.cancelled() => return self.goodbye(client, replies, &places).await,
            };
            let request = match line {
                Line::Whole(line) => read_request(&line),
                Line::TooLong { bytes, .. } => Err((0, too_long(bytes))),
                Line::End => break,
            };
            let (id, ask) = match request {
                Ok(Request { id, ask }) => (id, ask),
                Err((id, fault)) => {
                    replies.send(&response(id, Err(fault)));
                    continue;
                }
            };
            let place = tokio::select! {
                place = Arc::clone(&places).acquire_owned() => place,
                () = replies.gone() => break,
                () = self.closing.cancelled() => return self.goodbye(client, replies, &places).await,
            };
            let Ok(place) = place else { break };
            let (door, replies, gone) = (Arc::clone(self), replies.clone(), gone.clone());
            begin_in_order(async move {
                let mut outcome = door.obey_noted(client, ask, gone).await;
                if let Err(fault) = &mut outcome {
                    door.hub.settings.secrets.hide_fault(fault);
                }
                replies.send(&response(id, outcome));
                drop(place);
            })
            .await;
        }
    }

    /// Says why the daemon ends, behind what is still to be answered.
    async fn goodbye(&self, client: ClientId, replies: Replies, places: &Semaphore) {
        // All places are free once every request has its answer in the queue, but for calls that are the next daemon's.
        let held = self.hub.held().borrow().get(&client).copied().unwrap_or_default();
        let free = u32::try_from(AT_ONCE.saturating_sub(held)).unwrap_or_default();
        let answered = tokio::time::timeout(LAST_WORDS, places.acquire_many(free)).await.is_ok();
        if !answered && self.hub.is_yielding() {
            // Without a goodbye the peer knows that what it asked may have been done.
            return;
        }
        let line = GoodbyeLine { tabmux: VERSION, goodbye: self.hub.farewell().to_owned() };
        replies.send(&serde_json::to_value(line).unwrap_or(Value::Null));
        replies.finish().await;
    }

    async fn obey_noted(self: &Arc<Self>, client: ClientId, ask: Ask, gone: CancellationToken) -> Result<Value, Fault> {
        let (what, session) = match &ask {
            // A tool's use is noted where tools run.
            Ask::Call { .. } => return self.obey(client, ask, gone).await,
            Ask::Status => ("status", None),
            Ask::Sessions { .. } => ("list-sessions", None),
            Ask::Rename { session, .. } => ("rename-session", Some(session.clone())),
            Ask::Kill { session } => ("kill-session", Some(session.clone())),
            Ask::Fork { session, .. } => ("fork", session.clone()),
            Ask::ProfileSave { session, .. } => ("profile save", session.clone()),
            Ask::Stop => ("stop", None),
            Ask::MakeWay => ("up", None),
            Ask::TokenNew { .. } => ("token new", None),
            Ask::TokenList => ("token ls", None),
            Ask::TokenRevoke { .. } => ("token revoke", None),
        };
        let obeying = self.obey(client, ask, gone);
        self.hub.noted(&CallerOf::of(client), &[session.as_deref()], what, obeying).await
    }

    async fn obey(self: &Arc<Self>, client: ClientId, ask: Ask, gone: CancellationToken) -> Result<Value, Fault> {
        let caller = CallerOf::of(client);
        match ask {
            // Boxed: each connection is as large as its largest branch.
            Ask::Call { tool, args } => Box::pin(self.call(hub::Ask::new(caller, tool, args, gone))).await,
            Ask::Status => Ok(self.status(client).await),
            Ask::Sessions { all } => self.hub.sessions(client, all).await,
            Ask::Rename { session, name } => {
                let (renamed, safe) = self.hub.decide(|registry, now| registry.rename(caller.as_caller(), &session, &name, now));
                renamed?;
                self.hub.settled(safe).await;
                Ok(json!({"sessionId": name}))
            }
            Ask::Kill { session } => {
                let deadline = tokio::time::Instant::now() + self.hub.settings.clocks.call_deadline;
                let view = CallerDesk::new(Arc::clone(&self.hub), caller, deadline).close(Some(&session)).await?;
                Ok(json!({"closed": view.session_id, "id": view.id}))
            }
            Ask::Fork { session, count, prefix } => {
                let wanted = ForkOf { session, count, prefix };
                tokio::select! {
                    forked = self.hub.fork(&caller, wanted) => forked.map(|forked| hub::told(count, &forked)),
                    () = gone.cancelled() => Err(Fault::new(Code::Cancelled, "The copying was given up.", "Fork again if it is still wanted.")),
                }
            }
            Ask::ProfileSave { name, session, new } => {
                self.operator_only(client, "keep profiles")?;
                let new = if new { New::Must } else { New::May };
                self.hub.save_profile(&caller, session.as_deref(), name, new).await
            }
            Ask::Stop => {
                self.operator_only(client, "stop the daemon")?;
                self.hub.say_farewell("stop");
                Ok(json!({"stopping": true}))
            }
            Ask::MakeWay => {
                self.operator_only(client, "replace the daemon")?;
                self.hub.make_way();
                Ok(json!({"yielding": true}))
            }
            Ask::TokenNew { name } => {
                self.operator_only(client, "make tokens")?;
                self.tokens.new_token(&name).map(|token| json!({"name": name, "token": token}))
            }
            Ask::TokenList => {
                self.operator_only(client, "list tokens")?;
                let rows: Vec<Value> =
                    self.tokens.list().into_iter().map(|token| json!({"name": token.name, "created_at": token.created_at})).collect();
                Ok(json!({"tokens": rows}))
            }
            Ask::TokenRevoke { name } => {
                self.operator_only(client, "revoke tokens")?;
                self.tokens.revoke(&name)?;
                // Whoever came in with it is out, and the next token of that name inherits nothing.
                let identity = Identity::Token(name.as_str().into());
                self.hub.decide_now(|registry, now| registry.banish(&identity, now));
                Ok(json!({"revoked": name}))
            }
        }
    }

    /// Runs a tool and gives its answer as the command line reads it.
    pub(super) async fn call(self: &Arc<Self>, ask: hub::Ask) -> Result<Value, Fault> {
        let answer = self.hub.run_tool(ask).await;
        let reply = answer.outcome?;
        let content: Vec<Value> = reply
            .content
            .into_iter()
            .map(|content| match content {
                Content::Text(text) => json!({"type": "text", "text": text}),
                Content::Image { base64, mime } => json!({"type": "image", "data": base64, "mimeType": mime}),
            })
            .collect();
        Ok(json!({"content": content, "result": answer.result, "structured": reply.structured}))
    }

    async fn status(&self, client: ClientId) -> Value {
        let mut status = self.hub.status().await;
        status.insert("tokens".into(), self.hub.tokens_seen_by(client));
        let listen = self.listen.get().map(|addr| json!({"addr": addr.ip().to_string(), "port": addr.port()}));
        status.insert("listen".into(), listen.unwrap_or(Value::Null));
        if let Some(error) = self.listen_error.get() {
            status.insert("listen_error".into(), error.as_str().into());
        }
        Value::Object(status)
    }

    fn operator_only(&self, client: ClientId, what: &str) -> Result<(), Fault> {
        let operator = self.hub.look(|registry| registry.identity(client) == Some(&Identity::Operator));
        if operator {
            return Ok(());
        }
        Err(Fault::new(Code::PolicyDenied, format!("Only the operator may {what}."), "Unset TABMUX_TOKEN to be the operator."))
    }
}

fn read_request(line: &[u8]) -> Result<Request, (u64, Fault)> {
    let value = tabmux_wire::strict::parse(line).map_err(|fault| (0, fault))?;
    let id = value.get("id").and_then(Value::as_u64).unwrap_or(0);
    let request = Request::deserialize(&value).map_err(|error| {
        (id, Fault::new(Code::BadArgument, format!("The request cannot be read: {error}."), "See the tabmux-wire crate for the requests."))
    })?;
    only_fields(&value, request.ask.fields(), "The request").map_err(|fault| (id, fault))?;
    Ok(request)
}

fn response(id: u64, outcome: Result<Value, Fault>) -> Value {
    let response = match outcome {
        Ok(ok) => Response { id, ok: Some(ok), error: None },
        Err(fault) => Response { id, ok: None, error: Some(WireFault::from(&fault)) },
    };
    serde_json::to_value(response).unwrap_or(Value::Null)
}
