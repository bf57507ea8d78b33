//! A versioned hello: a shim, whose stream is MCP from then on, or the command line.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tabmux_core::{ClientId, Code, Fault, Identity, Link};
use tabmux_mcp::{Fixtures, Handler};
use tabmux_tools::{Effect, Level};
use tabmux_wire::VERSION;
use tabmux_wire::control::WireFault;
use tabmux_wire::hello::{GoodbyeLine, Hello, HelloLine, Role, Welcome, WelcomeLine};
use tabmux_wire::outbox::LineSender;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::OwnedWriteHalf;
use tokio_util::sync::CancellationToken;

use super::{Door, Reader, identity_of_connection, identity_of_secret};
use crate::hub::{Doorway, Presence, Profile};
use crate::tokens::TokenHolder;

/// A secret shorter than this could be guessed.
const SHORTEST_KEY: usize = 32;

/// How long the last answers of a connection, and then its end, may take.
const LAST_WORDS: Duration = Duration::from_secs(1);

impl Door {
    pub(super) async fn hello(self: &Arc<Self>, first: Value, reader: Reader, mut write: OwnedWriteHalf) {
        let hello = match read_hello(first).and_then(|hello| self.identify(&hello).map(|identity| (hello, identity))) {
            Ok(known) => known,
            Err(fault) => {
                return answer(&mut write, WelcomeLine { tabmux: VERSION, welcome: None, error: Some(WireFault::from(&fault)) }).await;
            }
        };
        let (hello, identity) = hello;
        let link = if hello.role == Role::Mcp { Link::Connection } else { Link::None };
        let profile = Profile {
            label: format!("{} {}", hello.program, hello.pid),
            session_name: hello.session.clone(),
            defaults: hello.defaults.clone(),
            asks_once: false,
        };
        // Exiting: the peer sees its connection close before a welcome, and starts the next daemon.
        let Some(here) = Presence::begin(&self.hub, identity, link, profile) else { return };
        let read_only_tools =
            tabmux_tools::TABLE.iter().filter(|tool| tool.effect == Effect::Read).map(|tool| tool.name.to_owned()).collect();
        let (build, settings) = (self.hub.settings.build, Some(self.hub.settings.declared.clone()));
        let welcome = Welcome { version: env!("CARGO_PKG_VERSION").into(), build, pid: std::process::id(), read_only_tools, settings };
        answer(&mut write, WelcomeLine { tabmux: VERSION, welcome: Some(welcome), error: None }).await;
        match hello.role {
            Role::Mcp => self.mcp(here, hello, reader, write).await,
            Role::Cli => self.control(here.client, reader, write).await,
        }
    }

    /// Rights come from what the peer shows, never from what it says (C5).
    fn identify(&self, hello: &Hello) -> Result<Identity, Fault> {
        match (&hello.token, &hello.key, hello.role) {
            (Some(token), _, _) => self.identity_of_token(token),
            (None, Some(key), _) if key.len() < SHORTEST_KEY => {
                let message = format!("The key has {} characters, at least {SHORTEST_KEY} are needed.", key.len());
                Err(Fault::new(Code::BadArgument, message, "Send 256 random bits as hex."))
            }
            (None, Some(key), _) => Ok(identity_of_secret(key)),
            (None, None, Role::Cli) => Ok(Identity::Operator),
            (None, None, Role::Mcp) => Ok(identity_of_connection()),
        }
    }

    pub(super) fn identity_of_token(&self, token: &str) -> Result<Identity, Fault> {
        match self.tokens.check(token).or_else(|| self.hub.holder(token).map(TokenHolder::Grant)) {
            Some(TokenHolder::Main) => Ok(Identity::Operator),
            Some(TokenHolder::Named(name)) => Ok(Identity::Token(name.into())),
            Some(TokenHolder::Grant(key)) => Ok(Identity::Grant(key)),
            None => {
                let hint = "Make one with `tabmux token new NAME`, or unset TABMUX_TOKEN.";
                Err(Fault::new(Code::Unauthorized, "The token is unknown or was revoked.", hint))
            }
        }
    }

    async fn mcp(self: &Arc<Self>, here: Presence, hello: Hello, reader: Reader, write: OwnedWriteHalf) {
        let client = here.client;
        let fixtures = if self.hub.settings.conformance_fixtures { Fixtures::Conformance } else { Fixtures::None };
        // A newer shim may know a level that this daemon does not.
        let level = hello.tools.as_deref().and_then(Level::named).unwrap_or_default();
        let doorway = Arc::new(Doorway(Arc::clone(&self.hub)));
        let handler = Handler::new(doorway, self.catalog.clone(), client).with_fixtures(fixtures).showing(level);
        let (transport, sender) = tabmux_mcp::open_lines(reader, write);
        let ends = CancellationToken::new();
        let serving = tabmux_mcp::serve_lines(handler, transport, hello.initialize, ends.clone());
        tokio::pin!(serving);
        tokio::select! {
            () = &mut serving => return,
            () = sender.lost() => {
                // Its sessions are orphans from now on, not when its last call has ended.
                drop(here);
                return serving.await;
            }
            () = self.closing.cancelled() => {}
        }
        let mut answered = true;
        if self.hub.farewell() != "empty" {
            // What was drained has its answer, which may still be on its way to the peer.
            answered = tokio::select! {
                () = &mut serving => return,
                () = self.answered(client, &sender) => true,
                () = tokio::time::sleep(LAST_WORDS) => false,
            };
        }
        let clean = answered || !self.hub.is_yielding();
        let farewell = if clean { self.hub.farewell() } else { GoodbyeLine::CUT_OFF };
        if let Ok(line) = serde_json::to_string(&GoodbyeLine { tabmux: VERSION, goodbye: farewell.to_owned() }) {
            // A peer that is gone needs no goodbye.
            let _ = sender.send_line(line);
        }
        if !clean {
            // What still runs is cut off, which is no cancel that its caller asked for.
            sender.end();
        }
        ends.cancel();
        drop(tokio::time::timeout(LAST_WORDS, serving).await);
    }
}

impl Door {
    /// Comes when every request has its answer, but for calls that are the next daemon's.
    async fn answered(&self, client: ClientId, sender: &LineSender) {
        let (mut unanswered, mut held) = (sender.unanswered(), self.hub.held());
        loop {
            let open = *unanswered.borrow_and_update();
            if open <= held.borrow_and_update().get(&client).copied().unwrap_or_default() {
                return;
            }
            tokio::select! {
                Ok(()) = unanswered.changed() => {}
                Ok(()) = held.changed() => {}
                else => return,
            }
        }
    }
}

fn read_hello(first: Value) -> Result<Hello, Fault> {
    let version = first.get("tabmux").and_then(Value::as_u64);
    if version != Some(u64::from(VERSION)) {
        let shown = first.get("tabmux").map(ToString::to_string).unwrap_or_default();
        let message = format!("The peer speaks version {shown} of the socket protocol, this daemon version {VERSION}.");
        return Err(Fault::new(Code::ProtocolVersion, message, "Use the same tabmux for both: run `tabmux stop`, then try again."));
    }
    serde_json::from_value::<HelloLine>(first).map(|line| line.hello).map_err(|error| {
        Fault::new(Code::BadArgument, format!("The hello cannot be read: {error}."), "See the tabmux-wire crate for its fields.")
    })
}

async fn answer(write: &mut OwnedWriteHalf, line: WelcomeLine) {
    let Ok(mut text) = serde_json::to_string(&line) else { return };
    text.push('\n');
    // A peer that does not take its welcome is gone, which reading from it will show.
    drop(tokio::time::timeout(Duration::from_secs(10), write.write_all(text.as_bytes())).await);
}
