//! Hears what the browser says of one page. What must be answered at once is answered here, without waiting; the rest is noted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::value::RawValue;

use super::{PageState, child, embedded, requests};
use crate::CdpError;
use crate::connection::{Listener, WeakConnection};
use crate::event::read;
use crate::protocol::emulation::{SetLocaleOverride, SetTimezoneOverride};
use crate::protocol::fetch::{AuthChallengeResponse, AuthRequired, ContinueWithAuth, RequestPaused};
use crate::protocol::input::DragIntercepted;
use crate::protocol::target::AttachedToTarget;
use crate::protocol::{Command, Event, page, runtime};
use crate::world::World;

/// How many requests are remembered that credentials were shown for.
const MAX_SHOWN: usize = 64;

#[derive(Debug)]
pub(super) struct Ears {
    pub(super) state: Arc<PageState>,
    pub(super) world: Arc<World>,
    /// Weak: the connection holds its listeners.
    pub(super) connection: WeakConnection,
    pub(super) session: String,
    /// Requests that were answered with credentials once: asked again, those were wrong.
    shown: Mutex<VecDeque<String>>,
}

impl Ears {
    pub(super) fn new(state: Arc<PageState>, world: Arc<World>, connection: WeakConnection, session: String) -> Self {
        world.pages().insert(session.clone());
        Self { state, world, connection, session, shown: Mutex::default() }
    }

    /// Sends without waiting for the answer.
    fn say<C: Command>(&self, command: &C) {
        if let Some(connection) = self.connection.upgrade() {
            drop(connection.send(Some(&self.session), command));
        }
    }

    /// Wrong credentials are shown once; after that, and without any, the server's own page is the answer.
    fn log_in(&self, params: &RawValue) {
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

    /// Frames that live in another process are not heard here.
    fn arrived(&self, params: &RawValue) {
        if let Some(event) = read::<page::FrameNavigated>(params) {
            self.world.origins.visited(&event.frame.security_origin);
            self.state.frames().navigated(&event.frame.id, event.frame.parent_id.as_deref());
            if event.frame.parent_id.is_none() {
                requests::early(&self.connection, &self.session, &self.world, &self.state, &event.frame);
            }
        }
    }

    /// Pages in one process have one time zone and one language, and lose them with the page that set them first, when it
    /// ends or goes elsewhere. So the others are told again; where nothing was lost, nothing happens.
    fn tell_others(&self) {
        let emulation = self.world.emulation();
        let Some(connection) = self.connection.upgrade() else { return };
        for session in self.world.pages().iter().filter(|session| **session != self.session) {
            if let Some(timezone_id) = emulation.timezone.clone() {
                drop(connection.send(Some(session), &SetTimezoneOverride { timezone_id }));
            }
            if let Some(locale) = emulation.locale.clone() {
                drop(connection.send(Some(session), &SetLocaleOverride { locale: Some(locale) }));
            }
        }
    }

    fn called(&self, params: &RawValue) {
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
}

impl Listener for Ears {
    fn event(&self, method: &str, params: &RawValue) {
        match method {
            runtime::ExecutionContextCreated::METHOD => {
                embedded::came(&self.connection, &self.session, &self.world, &self.state.url(), params);
                self.state.hear_frames(&self.session, method, params);
            }
            RequestPaused::METHOD => requests::paused(&self.connection, &self.session, &self.world, Some(&self.state), params),
            AuthRequired::METHOD => self.log_in(params),
            runtime::BindingCalled::METHOD => self.called(params),
            page::DownloadWillBegin::METHOD => {
                if let Some(event) = read::<page::DownloadWillBegin>(params) {
                    self.world.downloads.began(&event.guid, &event.url, &event.suggested_filename);
                    self.state.download_began();
                }
            }
            page::FrameNavigated::METHOD => {
                self.arrived(params);
                self.state.hear(method, params);
                self.tell_others();
            }
            DragIntercepted::METHOD => self.state.reports().drag_began(params),
            AttachedToTarget::METHOD => {
                if let Some(connection) = self.connection.upgrade() {
                    child::attached(&connection, &self.state, &self.world, &self.session, params);
                }
            }
            _ if self.state.hear_frames(&self.session, method, params) => {}
            _ => self.state.hear(method, params),
        }
    }

    fn gone(&self, why: &CdpError) {
        self.state.lost(why);
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.world.pages().remove(&self.session);
        self.tell_others();
    }
}
