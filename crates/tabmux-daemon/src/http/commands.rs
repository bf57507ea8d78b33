//! `POST /commands`, Seed 2's surface: one command in its envelope, one answer that echoes it (S2.10). Tab
//! numbers are global here, so another's tab can be named, and is refused as such (S2.14, C17).

use http::request::Parts;
use http::{Response, StatusCode};
use hyper::body::Incoming;
use serde_json::{Map, Value, json};
use tabmux_core::{Code, Fault, TabNumber, Uuid};
use tabmux_wire::control::WireFault;
use tokio_util::sync::CancellationToken;

use super::backend::{Command, CommandAnswer, CommandRefusal, HttpIdentity};
use super::mcp::INSTANCE_ID;
use super::refusal::{Refusal, json_response, status_of};
use super::routes::Door;
use super::{ResponseBody, alias, body, guard};
use crate::tokens::TokenHolder;

/// What a command's answer says about the command, as far as it is known.
struct Envelope {
    wire_id: Uuid,
    /// Echoed as it came (S2.4).
    origin_id: Option<Value>,
    session_id: String,
    name: Option<String>,
}

/// Who sent a command, and for which session where the identity does not say.
struct Sender {
    who: HttpIdentity,
    session: Option<String>,
}

impl Door {
    pub(super) async fn commands(
        &self,
        head: &Parts,
        body: &mut Incoming,
        holder: &TokenHolder,
    ) -> Result<Response<ResponseBody>, Refusal> {
        let instance = guard::only(&head.headers, &INSTANCE_ID)?.ok_or_else(|| {
            let message = "The request has no X-Instance-ID.";
            Fault::new(Code::BadArgument, message, "Send the mcp-session-id that initialize gave you, or a session's uuid.")
        })?;
        let sender = self.sender(&instance, holder)?;
        let body = body::read_json(head, body, self.bounds.body_read).await?.value;
        let mut envelope = Envelope { wire_id: new_wire_id()?, origin_id: None, session_id: instance, name: None };
        let outcome = match envelope.open(body, sender.session.as_deref()) {
            Ok(command) => self.run(sender.who, command, &envelope).await,
            Err(fault) => Err(fault.into()),
        };
        Ok(envelope.close(outcome))
    }

    /// Exactly the session that was named, or 404; never another one (S2.13).
    fn sender(&self, instance: &str, holder: &TokenHolder) -> Result<Sender, Refusal> {
        let bound = self.behind.sessions.owner(instance).filter(|owner| owner.is_held_by(holder));
        if let Some(owner) = bound {
            return Ok(Sender { who: owner.identity(Some(instance)), session: None });
        }
        let who = match holder {
            TokenHolder::Main => HttpIdentity::Anonymous,
            TokenHolder::Named(name) => HttpIdentity::Token(name.clone()),
            TokenHolder::Grant(key) => HttpIdentity::Grant(*key),
        };
        if self.behind.backend.has_session(&who, instance) {
            return Ok(Sender { who, session: Some(instance.to_owned()) });
        }
        let hint = "Initialize an MCP session first and send its mcp-session-id as X-Instance-ID.";
        Err(Fault::new(Code::SessionNotFound, "Session not connected", hint).into())
    }

    async fn run(&self, who: HttpIdentity, command: Command, envelope: &Envelope) -> Result<CommandAnswer, CommandRefusal> {
        let cancel = CancellationToken::new();
        // Dropped with this future when the peer goes away, and the hub learns of it.
        let _cancel_when_dropped = cancel.clone().drop_guard();
        let client = self.behind.backend.http_client(who);
        let answer = self.behind.backend.command(client, command, cancel);
        tokio::time::timeout(self.bounds.command, answer).await.unwrap_or_else(|_| {
            let message = format!("The command {} of session {} was not answered in time.", envelope.wire_id, envelope.session_id);
            Err(Fault::new(Code::Timeout, message, "See with snapshot what it did before you send it again.").into())
        })
    }
}

impl Envelope {
    /// Reads the command, and notes for the answer what it says about itself.
    fn open(&mut self, body: Value, session: Option<&str>) -> Result<Command, Fault> {
        let Value::Object(mut body) = body else { return Err(bad("The body is not a JSON object.")) };
        match body.remove("originId") {
            Some(id) if id.is_string() || id.is_i64() || id.is_u64() => self.origin_id = Some(id),
            None => {}
            Some(other) => return Err(bad(format!("originId is {}, not a string or a whole number.", shown(&other)))),
        }
        let Some(Value::String(name)) = body.remove("name") else { return Err(bad("The command has no name.")) };
        self.name = Some(name.clone());
        let payload = match body.remove("payload") {
            Some(Value::Object(payload)) => payload,
            None => Map::new(),
            Some(other) => return Err(bad(format!("payload is {}, not an object.", shown(&other)))),
        };
        let tab = match body.remove("tabId") {
            None | Some(Value::Null) => None,
            Some(tab) => Some(TabNumber(tab.as_u64().ok_or_else(|| bad(format!("tabId is {}, not a tab's number.", shown(&tab))))?)),
        };
        let fixed = [("type", "command"), ("sessionId", self.session_id.as_str())];
        for (key, expected) in fixed {
            if let Some(given) = body.remove(key).filter(|given| given.as_str() != Some(expected)) {
                return Err(bad(format!("{key} is {} and must be '{expected}' or left out.", shown(&given))));
            }
        }
        if let Some(unknown) = body.keys().next() {
            return Err(bad(format!("The command has an unknown field '{}'.", unknown.chars().take(100).collect::<String>())));
        }
        let (tool, mut args) = alias::resolve(&name, payload)?;
        if let Some(session) = session {
            let other = args.insert("sessionId".into(), session.into()).filter(|given| given.as_str() != Some(session));
            if let Some(other) = other {
                return Err(bad(format!("payload.sessionId is {} and X-Instance-ID is '{session}'.", shown(&other))));
            }
        }
        Ok(Command { tool, args, tab })
    }

    fn close(self, outcome: Result<CommandAnswer, CommandRefusal>) -> Response<ResponseBody> {
        let mut answer = Map::new();
        answer.insert("wireId".into(), self.wire_id.to_string().into());
        if let Some(origin_id) = self.origin_id {
            answer.insert("originId".into(), origin_id);
        }
        answer.insert("sessionId".into(), self.session_id.into());
        answer.insert("type".into(), "response".into());
        answer.insert("name".into(), self.name.into());
        let (status, fault) = match outcome {
            Ok(done) => {
                answer.insert("data".into(), data_of(done).into());
                return json_response(StatusCode::OK, &answer);
            }
            Err(CommandRefusal::Fault(fault)) => (status_of(fault.code), fault),
            Err(CommandRefusal::ForeignTab) => {
                let hint = "Use a tab of your own; list_pages shows them.";
                (StatusCode::CONFLICT, Fault::new(Code::PolicyDenied, "Tab owned by another session", hint))
            }
        };
        answer.insert("data".into(), json!({ "success": false }));
        answer.insert("error".into(), json!(WireFault::from(&fault)));
        json_response(status, &answer)
    }
}

/// `{success, tabId, url, …}` (S2.26), and what the tool said.
fn data_of(mut answer: CommandAnswer) -> Map<String, Value> {
    let mut data = Map::new();
    data.insert("success".into(), true.into());
    data.insert("tabId".into(), answer.tab.map(|tab| tab.0).into());
    data.insert("url".into(), answer.url.into());
    let members = answer.reply.take_members();
    answer.reply.put_content(&mut data);
    for (key, value) in answer.reply.result.into_iter().chain(members) {
        // The tool's own tabId is the session's `t1`; here the number counts.
        data.entry(key).or_insert(value);
    }
    data
}

/// Random, so never used twice (S2.3).
fn new_wire_id() -> Result<Uuid, Fault> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| Fault::new(Code::Internal, format!("The system gives no random numbers: {error}."), "Try again."))?;
    Ok(Uuid::from_random(u128::from_ne_bytes(bytes)))
}

fn bad(message: impl Into<String>) -> Fault {
    Fault::new(Code::BadArgument, message, "Send {\"name\": …, \"payload\": {…}, \"tabId\"?: 1, \"originId\"?: \"…\"}.")
}

fn shown(value: &Value) -> String {
    value.to_string().chars().take(100).collect()
}
