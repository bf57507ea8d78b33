//! What must be answered at once, in the session that asked: a page's own, or that of a frame in another process. Called by the reader: nothing is
//! waited for.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;
use tabmux_driver::Emulation;

use super::PageState;
use super::emulation::{Asked, Eyes, Whose};
use super::flood::Flood;
use crate::connection::WeakConnection;
use crate::event::read;
use crate::protocol::fetch::{AuthChallengeResponse, AuthRequired, ContinueWithAuth};
use crate::protocol::{Command, runtime};
use crate::world::World;

/// How many requests are remembered that credentials were shown for.
const MAX_SHOWN: usize = 64;

#[derive(Debug)]
pub(super) struct Answers {
    pub(super) state: Arc<PageState>,
    pub(super) world: Arc<World>,
    /// Weak: the connection holds its listeners.
    pub(super) connection: WeakConnection,
    pub(super) session: String,
    /// Requests that were answered with credentials once: asked again, those were wrong.
    shown: Mutex<VecDeque<String>>,
    flood: Flood,
}

impl Answers {
    pub(super) fn new(state: Arc<PageState>, world: Arc<World>, connection: WeakConnection, session: String, flood: Flood) -> Self {
        Self { state, world, connection, session, shown: Mutex::default(), flood }
    }

    /// Whatever it says, it is to leave others their turn.
    pub(super) fn limit(&self, method: &str, params: &RawValue) {
        self.flood.heard(method, params, &self.state, &self.connection, &self.session);
    }

    /// Sends without waiting for the answer.
    fn say<C: Command>(&self, command: &C) {
        if let Some(connection) = self.connection.upgrade() {
            drop(connection.send(Some(&self.session), command));
        }
    }

    /// Wrong credentials are shown once; after that, and without any, the server's own page is the answer.
    pub(super) fn log_in(&self, params: &RawValue) {
        let Some(asked) = read::<AuthRequired>(params) else { return };
        let credentials = self.world.credentials(&asked.auth_challenge).filter(|_| self.first_time(&asked.request_id));
        let auth_challenge_response = match credentials {
            Some(known) => AuthChallengeResponse {
                response: "ProvideCredentials".into(),
                username: Some(known.username),
                password: Some(known.password),
            },
            None => AuthChallengeResponse { response: "CancelAuth".into(), ..AuthChallengeResponse::default() },
        };
        self.say(&ContinueWithAuth { request_id: asked.request_id, auth_challenge_response });
    }

    fn first_time(&self, request: &str) -> bool {
        let mut shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        if shown.iter().any(|known| known == request) {
            return false;
        }
        if shown.len() == MAX_SHOWN {
            shown.pop_front();
        }
        shown.push_back(request.to_owned());
        true
    }

    /// A binding was called: by an act, or by who copies and pastes.
    pub(super) fn called(&self, params: &RawValue) {
        if self.state.reports().called(params) {
            return;
        }
        let Some(called) = read::<runtime::BindingCalled>(params) else { return };
        let clipboard = &self.world.clipboard;
        if called.name != clipboard.name() {
            return;
        }
        let permission = self.world.emulation().permission("clipboard-read");
        if let Some(expression) = clipboard.heard(&called.payload, permission) {
            self.say(&runtime::Evaluate { expression, context_id: Some(called.execution_context_id), ..runtime::Evaluate::default() });
        }
    }

    /// Documents in one process have one time zone and one language, and lose them with the page or frame that set them first, when it
    /// ends or goes elsewhere. So the others are told again; where nothing was lost, nothing happens.
    pub(super) fn tell_others(&self) {
        self.each_other(|eyes, wanted, none, asked| eyes.show_region(wanted, none, asked));
    }

    /// The frames that a page has in one process have all in common that they see.
    pub(super) fn tell_others_all(&self) {
        self.each_other(|eyes, wanted, none, asked| eyes.show_shared(wanted, none, asked));
    }

    fn each_other(&self, tell: impl Fn(&Eyes<'_>, &Emulation, &Emulation, &mut Asked)) {
        let (emulation, none) = (self.world.emulation(), Emulation::default());
        let Some(connection) = self.connection.upgrade().filter(|_| emulation != none) else { return };
        let (pages, frames) = (self.world.pages().clone(), self.world.frames().clone());
        for session in pages.iter().chain(&frames).filter(|session| **session != self.session) {
            tell(&Eyes { connection: &connection, session, whose: Whose::Frame }, &emulation, &none, &mut Asked::new());
        }
    }
}
