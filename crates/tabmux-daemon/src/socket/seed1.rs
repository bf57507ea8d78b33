//! Seed 1's frames, one JSON object per line: REGISTER reserves a session id, the first REQUEST makes the
//! session, PING answers, DISCONNECT ends it, STATUS tells. A missing version means 1 (C10).

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tabmux_core::{ClientId, Code, Fault, Link, Session, SessionId};
use tabmux_tools::Desk;
use tabmux_wire::control::WireFault;
use tabmux_wire::lines::Line;
use tabmux_wire::strict::only_fields;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::frame::{Frame, FrameId};
use super::replies::{Replies, begin_in_order};
use super::{Door, Reader, check_version, identity_of_connection, text_of, too_long};
use crate::hub::{Ask, CallerDesk, CallerOf, Hub, Presence, Profile};

/// Requests of one connection at once.
const AT_ONCE: usize = 128;

impl Door {
    pub(super) async fn seed1(self: &Arc<Self>, first: Frame, mut reader: Reader, write: OwnedWriteHalf) {
        let profile = Profile { label: "seed1".into(), ..Profile::default() };
        let Some(here) = Presence::begin(&self.hub, identity_of_connection(), Link::Connection, profile) else { return };
        let client = here.client;
        // Dropped before the connection is said to be lost, which makes orphans of what is left.
        let mut reserved = Reservations { hub: Arc::clone(&self.hub), client, sessions: Vec::new() };
        let replies = Replies::start(write);
        let places = Arc::new(Semaphore::new(AT_ONCE));
        let mut next = Ok(first);
        loop {
            let place = tokio::select! {
                place = Arc::clone(&places).acquire_owned() => place,
                () = replies.gone() => break,
                () = self.closing.cancelled() => return replies.finish().await,
            };
            let Ok(place) = place else { break };
            let (door, answers) = (Arc::clone(self), replies.clone());
            match next {
                // Reserving keeps its order; everything else may overlap, the session's queue orders it.
                Ok(frame) if frame.body.get("type").and_then(Value::as_str) != Some("REQUEST") => {
                    if let Some(answer) = door.seed1_frame(&mut reserved, &frame).await {
                        answers.answer(&frame.id, &answer);
                    }
                    drop(place);
                }
                Ok(Frame { body, id }) => {
                    let discreet = Arc::clone(&door);
                    let request = door.seed1_request(client, body);
                    begin_in_order(async move {
                        answers.answer(&id, &discreet.seed1_discreet(request.await));
                        drop(place);
                    })
                    .await;
                }
                Err(fault) => answers.answer(&FrameId::default(), &error(&fault)),
            }
            let line = tokio::select! {
                line = replies.next_line(&mut reader) => line,
                () = self.closing.cancelled() => return replies.finish().await,
            };
            next = match line {
                Line::Whole(line) => Frame::parse(&line),
                Line::TooLong { bytes, .. } => Err(too_long(bytes)),
                Line::End => break,
            };
        }
    }

    async fn seed1_frame(self: &Arc<Self>, reserved: &mut Reservations, Frame { body: frame, id }: &Frame) -> Option<Value> {
        let client = reserved.client;
        let answer = async {
            match type_of(frame)? {
                "REGISTER" => reserved.register().map(Some),
                "PING" => Ok(Some(json!({"type": "PONG"}))),
                "STATUS" => {
                    let active = self.hub.look(|registry| registry.counts().active);
                    Ok(Some(json!({"type": "STATUS_OK", "extensionConnected": false, "activeSessions": active})))
                }
                // DISCONNECT: a REQUEST goes its own way, and there are no others.
                _ => {
                    let session = text_of(frame, "sessionId")?;
                    let deadline = tokio::time::Instant::now() + self.hub.settings.clocks.call_deadline;
                    let closed = CallerDesk::new(Arc::clone(&self.hub), CallerOf::of(client), deadline).close(session).await?;
                    Ok((!id.is_null()).then(|| json!({"type": "DISCONNECT_OK", "sessionId": closed.id})))
                }
            }
        };
        answer.await.unwrap_or_else(|fault: Fault| Some(error(&fault)))
    }

    async fn seed1_request(self: Arc<Self>, client: ClientId, frame: Value) -> Value {
        match read_request(&frame) {
            Err(fault) => response(frame.get("sessionId"), Err(fault)),
            Ok(Asked { session, tool, args }) => {
                // A lost connection does not cancel: the running call finishes (C7).
                let ask = Ask::new(CallerOf::of(client), tool, args, CancellationToken::new());
                let answer = self.hub.run_tool(ask).await;
                let said = session.or_else(|| answer.result.get("sessionId").and_then(Value::as_str).map(str::to_owned));
                let known = answer.result.get("id").and_then(Value::as_str).map(str::to_owned);
                let seen = known.or_else(|| said.as_deref().map(|said| self.seed1_id(client, said)));
                let outcome = answer.outcome.map(|mut reply| {
                    let members = reply.take_members();
                    let mut data = answer.result;
                    reply.put_content(&mut data);
                    for (key, value) in members {
                        data.entry(key).or_insert(value);
                    }
                    Value::Object(data)
                });
                response(seen.map(Value::from).as_ref(), outcome)
            }
        }
    }

    /// A capability that a frame named its session by is not said back.
    fn seed1_discreet(&self, mut answer: Value) -> Value {
        if let Some(session) = answer.get_mut("sessionId") {
            self.hub.settings.secrets.hide_value(session);
        }
        answer
    }

    /// Frames name sessions by `sess_…`, whatever name the caller used.
    fn seed1_id(self: &Arc<Self>, client: ClientId, said: &str) -> String {
        let id = self.hub.decide_now(|registry, now| registry.resolve(CallerOf::of(client).as_caller(), Some(said), now));
        id.map_or_else(
            |_| said.to_owned(),
            |id| self.hub.look(|registry| registry.session(id).map(|session: &Session| session.id.to_string())).unwrap_or_default(),
        )
    }
}

/// What a connection reserved. What no REQUEST came for ends with it: nothing was made that could be missed.
struct Reservations {
    hub: Arc<Hub>,
    client: ClientId,
    sessions: Vec<SessionId>,
}

impl Reservations {
    fn register(&mut self) -> Result<Value, Fault> {
        let opened = self.hub.register(&CallerOf::of(self.client))?;
        self.sessions.push(opened.session);
        Ok(json!({"type": "REGISTER_OK", "sessionId": opened.session.to_string()}))
    }
}

impl Drop for Reservations {
    fn drop(&mut self) {
        self.hub.give_up_reservations(&self.sessions);
    }
}

/// What a frame of this type may say, besides the tool's own arguments in `params`.
fn fields_of(kind: &str) -> Option<&'static [&'static str]> {
    match kind {
        "REGISTER" => Some(&["type", "id", "version"]),
        "PING" | "DISCONNECT" | "STATUS" => Some(&["type", "id", "version", "sessionId"]),
        "REQUEST" => Some(&["type", "id", "version", "sessionId", "action", "params"]),
        _ => None,
    }
}

/// The frame's type, once its version and its fields are known to be right.
fn type_of(frame: &Value) -> Result<&str, Fault> {
    check_version(frame)?;
    let kind = text_of(frame, "type")?.unwrap_or_default();
    let Some(fields) = fields_of(kind) else {
        let message = format!("'{}' is no frame type.", kind.chars().take(64).collect::<String>());
        return Err(Fault::new(Code::BadArgument, message, "Use REGISTER, REQUEST, PING, DISCONNECT or STATUS."));
    };
    only_fields(frame, fields, kind)?;
    Ok(kind)
}

/// A REQUEST, read.
struct Asked {
    session: Option<String>,
    tool: String,
    args: Map<String, Value>,
}

fn read_request(frame: &Value) -> Result<Asked, Fault> {
    type_of(frame)?;
    let session = text_of(frame, "sessionId")?.map(str::to_owned);
    let action = text_of(frame, "action")?
        .ok_or_else(|| Fault::new(Code::BadArgument, "'action' is missing.", "Name a tool, for example \"action\":\"navigate\"."))?;
    let mut args = match frame.get("params") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(params)) => params.clone(),
        Some(_) => return Err(Fault::new(Code::BadArgument, "'params' is not an object.", "Send the tool's arguments as an object.")),
    };
    if let Some(session) = &session {
        args.insert("sessionId".into(), session.clone().into());
    }
    Ok(Asked { session, tool: action.to_owned(), args })
}

fn response(session: Option<&Value>, outcome: Result<Value, Fault>) -> Value {
    let payload = match outcome {
        Ok(data) => json!({"success": true, "data": data}),
        Err(fault) => json!({"success": false, "error": WireFault::from(&fault)}),
    };
    json!({"type": "RESPONSE", "sessionId": session, "payload": payload})
}

fn error(fault: &Fault) -> Value {
    json!({"type": "ERROR", "error": WireFault::from(fault)})
}
