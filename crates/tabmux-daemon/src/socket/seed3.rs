//! Seed 3's methods, `browser.agent_session.open|tab|dispose|list`, as another front of the same hub. A
//! connection is one-shot and speaks for the operator, or for the capability it shows, unless it identifies
//! itself (`system.identify`) as long-lived: then it is a caller of its own, and losing it orphans its sessions (S3.17).

use std::sync::Arc;

use serde_json::{Map, Value, json};
use tabmux_core::{ClientId, Code, Fault, Identity, Link, Listed};
use tabmux_tools::{Desk, OpenSession, SessionView};
use tabmux_wire::control::WireFault;
use tabmux_wire::lines::Line;
use tabmux_wire::strict::only_fields;
use tokio::net::unix::OwnedWriteHalf;
use tokio_util::sync::CancellationToken;

use super::frame::{Frame, FrameId};
use super::replies::Replies;
use super::{Door, Reader, check_version, identity_of_connection, text_of, too_long};
use crate::clock::{self, Moment};
use crate::hub::{Ask, CallerDesk, CallerOf, Presence, Profile};

/// What the parameters of any method may say (CONTRACT.md, "The daemon's doors").
const FIELDS: &[&str] = &["profile_id", "session_id", "url", "caller"];
/// A list can be asked for one agent's sessions, under either name (S3.13).
const LIST_FIELDS: &[&str] = &["profile_id", "session_id", "url", "caller", "agent_id", "agent_surface_id"];
/// How a caller may describe itself (S3.11); only a token or its own client id is believed.
const CALLER_FIELDS: &[&str] = &["token", "client", "surface_id", "workspace_id", "session"];

/// The callers one connection speaks for.
#[derive(Default)]
struct Callers {
    /// The connection itself, once it identified itself.
    own: Option<Presence>,
    /// One-shot identities: the operator, or a capability's.
    shown: Vec<(Identity, Presence)>,
}

impl Door {
    pub(super) async fn seed3(self: &Arc<Self>, first: Frame, mut reader: Reader, write: OwnedWriteHalf) {
        let replies = Replies::start(write);
        let mut callers = Callers::default();
        let mut next = Ok(first);
        loop {
            let (id, outcome) = match next {
                Ok(Frame { body, id }) => (id, self.seed3_method(&mut callers, &body).await),
                Err(fault) => (FrameId::default(), Err(fault)),
            };
            let answer = match outcome {
                Ok(result) => json!({"ok": true, "result": result}),
                Err(mut fault) => {
                    self.hub.settings.secrets.hide_fault(&mut fault);
                    json!({"ok": false, "error": WireFault::from(&fault)})
                }
            };
            replies.answer(&id, &answer);
            let line = tokio::select! {
                line = replies.next_line(&mut reader) => line,
                () = self.closing.cancelled() => return replies.finish().await,
            };
            next = match line {
                Line::Whole(line) => Frame::parse(&line),
                Line::TooLong { bytes, .. } => Err(too_long(bytes)),
                Line::End => return,
            };
        }
    }

    async fn seed3_method(self: &Arc<Self>, callers: &mut Callers, frame: &Value) -> Result<Value, Fault> {
        check_version(frame)?;
        only_fields(frame, &["id", "method", "params", "version"], "The method call")?;
        let none = Value::Object(Map::new());
        let params = frame.get("params").filter(|params| !params.is_null()).unwrap_or(&none);
        if !params.is_object() {
            return Err(Fault::new(Code::BadArgument, "'params' is not an object.", "Send the method's arguments as an object."));
        }
        let method = text_of(frame, "method")?.unwrap_or_default();
        let fields = if method == "browser.agent_session.list" { LIST_FIELDS } else { FIELDS };
        only_fields(params, fields, "params")?;
        if method == "system.identify" {
            let client = self.seed3_own(callers)?;
            return Ok(json!({"client": client.to_string()}));
        }
        let client = self.seed3_caller(callers, params)?;
        // Opening a tab is a tool's use, and noted there.
        if method == "browser.agent_session.tab" {
            return self.seed3_tab(client, params).await;
        }
        let shown = ["session_id", "profile_id"].map(|key| params.get(key).and_then(Value::as_str));
        let what = method.strip_prefix("browser.").unwrap_or("agent_session").chars().take(64).collect::<String>();
        self.hub.noted(&CallerOf::of(client), &shown, &what, self.seed3_verb(client, method, params)).await
    }

    async fn seed3_verb(self: &Arc<Self>, client: ClientId, method: &str, params: &Value) -> Result<Value, Fault> {
        match method {
            "browser.agent_session.open" => self.seed3_open(client, params).await,
            "browser.agent_session.dispose" => {
                let session = required(params, "session_id")?;
                let closed = self.seed3_desk(client).close(Some(session)).await?;
                Ok(json!({"session_id": closed.uuid, "disposed": true}))
            }
            "browser.agent_session.list" => self.seed3_list(client, params),
            other => {
                let message = format!("'{}' is no method.", other.chars().take(64).collect::<String>());
                Err(Fault::new(Code::BadArgument, message, "Use browser.agent_session.open, .tab, .dispose or .list."))
            }
        }
    }

    fn seed3_desk(self: &Arc<Self>, client: ClientId) -> CallerDesk {
        let deadline = tokio::time::Instant::now() + self.hub.settings.clocks.call_deadline;
        CallerDesk::new(Arc::clone(&self.hub), CallerOf::of(client), deadline)
    }

    fn seed3_own(self: &Arc<Self>, callers: &mut Callers) -> Result<ClientId, Fault> {
        if let Some(own) = &callers.own {
            return Ok(own.client);
        }
        let own = self.seed3_attach(identity_of_connection(), Link::Connection)?;
        Ok(callers.own.insert(own).client)
    }

    fn seed3_attach(self: &Arc<Self>, identity: Identity, link: Link) -> Result<Presence, Fault> {
        let profile = Profile { label: "agent-session".into(), ..Profile::default() };
        let exiting = || Fault::new(Code::Cancelled, "The daemon is stopping.", "Connect again: a new one is started.");
        Presence::begin(&self.hub, identity, link, profile).ok_or_else(exiting)
    }

    /// Who asks. A caller is believed only with a capability of its own; a made-up id is refused (S3.12).
    fn seed3_caller(self: &Arc<Self>, callers: &mut Callers, params: &Value) -> Result<ClientId, Fault> {
        // Who says nothing about itself is whom its connection is.
        let caller = params.get("caller").filter(|caller| !caller.is_null() && !caller.as_object().is_some_and(Map::is_empty));
        if let Some(caller) = caller {
            only_fields(caller, CALLER_FIELDS, "caller")?;
        }
        let identity = match caller {
            None if callers.own.is_some() => return self.seed3_own(callers),
            None => Identity::Operator,
            Some(caller) => match text_of(caller, "token")? {
                Some(token) => self.identity_of_token(token)?,
                None => return self.seed3_live_client(callers, caller),
            },
        };
        if let Some((_, here)) = callers.shown.iter().find(|(shown, _)| *shown == identity) {
            return Ok(here.client);
        }
        let here = self.seed3_attach(identity.clone(), Link::None)?;
        let client = here.client;
        callers.shown.push((identity, here));
        Ok(client)
    }

    /// A connection may name itself by the id `system.identify` gave it, and nobody else.
    fn seed3_live_client(self: &Arc<Self>, callers: &Callers, caller: &Value) -> Result<ClientId, Fault> {
        let named = text_of(caller, "client")?;
        match &callers.own {
            Some(own) if named == Some(&own.client.to_string()) => Ok(own.client),
            _ => {
                let hint = "Send caller.token with a token from `tabmux token new NAME`, or leave caller out.";
                Err(Fault::new(Code::Unauthorized, "The caller is not known here.", hint))
            }
        }
    }

    async fn seed3_open(self: &Arc<Self>, client: ClientId, params: &Value) -> Result<Value, Fault> {
        let open = OpenSession {
            from: text_of(params, "profile_id")?.map(|profile| self.seed3_source(profile)).transpose()?,
            url: text_of(params, "url")?.map(str::to_owned),
            ..OpenSession::default()
        };
        if let Some(url) = &open.url {
            tabmux_tools::allowed_url(url, &self.hub.settings.chromium.domains)?;
        }
        let view = match text_of(params, "session_id")? {
            Some(session) => self.seed3_reopen(client, session, open).await?,
            None => self.seed3_desk(client).open(open).await?,
        };
        Ok(
            json!({"session_id": view.uuid, "short_id": view.uuid.get(..8), "id": view.id, "name": view.session_id, "tab_id": view.tab_id, "url": view.url, "created_at": view.created_at, "warning": view.warning}),
        )
    }

    /// A session the caller already has takes no other seat (S3.22), and keeps what it began with (S3.15).
    async fn seed3_reopen(self: &Arc<Self>, client: ClientId, session: &str, open: OpenSession) -> Result<SessionView, Fault> {
        let caller = CallerOf::of(client);
        let id = self.hub.decide_now(|registry, now| registry.resolve(caller.as_caller(), Some(session), now))?;
        let source = self.hub.look(|registry| registry.session(id).and_then(|session| session.source.clone()));
        if open.from.is_some() && open.from != source {
            let message = format!("The session began with {} and keeps it.", source.as_deref().unwrap_or("no profile"));
            return Err(Fault::new(Code::PolicyDenied, message, "Leave session_id out to open another session with that profile."));
        }
        if let Some(url) = open.url {
            let args = Map::from_iter([("sessionId".to_owned(), id.to_string().into()), ("url".to_owned(), url.into())]);
            self.hub.run_tool(Ask::new(caller, "new_page".into(), args, CancellationToken::new())).await.outcome?;
        }
        self.seed3_desk(client).view_of(id).ok_or_else(|| {
            Fault::new(Code::SessionClosed, "The session was closed meanwhile.", "Leave session_id out to open another one.")
        })
    }

    /// What is called a profile here means one before it means a session.
    fn seed3_source(&self, text: &str) -> Result<String, Fault> {
        let profile = self.hub.profiles().find(text)?;
        Ok(profile.map_or_else(|| text.to_owned(), |profile| format!("profile:{}", profile.name)))
    }

    async fn seed3_tab(self: &Arc<Self>, client: ClientId, params: &Value) -> Result<Value, Fault> {
        let session = required(params, "session_id")?;
        let mut args = Map::from_iter([("sessionId".to_owned(), session.into())]);
        if let Some(url) = text_of(params, "url")? {
            args.insert("url".into(), url.into());
        }
        let ask = Ask::new(CallerOf::of(client), "new_page".into(), args, CancellationToken::new());
        let answer = self.hub.run_tool(ask).await;
        answer.outcome?;
        Ok(json!({"session_id": answer.result.get("uuid"), "tab_id": answer.result.get("tabId"), "url": answer.result.get("url")}))
    }

    /// The caller's own sessions; a filter for another's is refused (S3.13). Taken under one lock (S3.36).
    fn seed3_list(self: &Arc<Self>, client: ClientId, params: &Value) -> Result<Value, Fault> {
        let filters = [text_of(params, "agent_id")?, text_of(params, "agent_surface_id")?];
        let now = self.hub.clock.moment();
        let mut rows = self.hub.look(|registry| {
            let own = registry.identity(client).map(ToString::to_string).unwrap_or_default();
            if filters.into_iter().flatten().any(|filter| filter != own) {
                let hint = "Leave agent_id out to list your own.";
                return Err(Fault::new(Code::PolicyDenied, "Only your own sessions can be listed.", hint));
            }
            Ok(registry.list(CallerOf::of(client).as_caller()).into_iter().map(|listed| row(listed, now)).collect::<Vec<Value>>())
        })?;
        // The disk is asked when nobody waits for the lock any more.
        for row in &mut rows {
            let uuid = row["profile_name"].as_str().and_then(|name| self.hub.profiles().find(name).ok().flatten());
            row["profile_id"] = uuid.map(|profile| profile.uuid).into();
        }
        Ok(json!({"sessions": rows}))
    }
}

/// A session as Seed 3 lists it (S1.25, S3.27, S3.28, S3.34, S3.35).
fn row(listed: Listed<'_>, now: Moment) -> Value {
    let session = listed.session;
    let uuid = session.uuid.to_string();
    json!({
        "session_id": uuid,
        "short_id": uuid.get(..8),
        "id": session.id.to_string(),
        "name": session.name,
        "agent_id": session.owner.to_string(),
        "profile_id": null,
        "profile_name": session.source.as_deref().and_then(|source| source.strip_prefix("profile:")),
        "from": session.source,
        "data_store_id": session.context,
        "tabCount": session.tabs.len(),
        "created_at": clock::iso(session.created_unix_ms),
        "lastActiveAt": now.iso_at(listed.last_used),
    })
}

fn required<'a>(params: &'a Value, key: &str) -> Result<&'a str, Fault> {
    text_of(params, key)?
        .ok_or_else(|| Fault::new(Code::BadArgument, format!("'{key}' is missing."), format!("Send params.{key} as a text.")))
}
