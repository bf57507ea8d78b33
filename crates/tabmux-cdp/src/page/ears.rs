//! Hears what the browser says of one page. What must be answered at once is answered here, without waiting; the rest is noted.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::answers::Answers;
use super::flood::Flood;
use super::{PageState, child, embedded, requests};
use crate::CdpError;
use crate::connection::{Listener, WeakConnection};
use crate::event::read;
use crate::protocol::fetch::{AuthRequired, RequestPaused};
use crate::protocol::input::DragIntercepted;
use crate::protocol::target::AttachedToTarget;
use crate::protocol::{Event, page, runtime};
use crate::world::World;

#[derive(Debug)]
pub(super) struct Ears {
    answers: Answers,
}

impl Ears {
    pub(super) fn new(state: Arc<PageState>, world: Arc<World>, connection: WeakConnection, session: String, flood: Flood) -> Self {
        world.pages().insert(session.clone());
        Self { answers: Answers::new(state, world, connection, session, flood) }
    }

    /// Frames that live in another process are not heard here.
    fn arrived(&self, params: &RawValue) {
        if let Some(event) = read::<page::FrameNavigated>(params) {
            let Answers { state, world, connection, session, .. } = &self.answers;
            world.origins.visited(&event.frame.security_origin);
            state.frames().navigated(&event.frame.id, event.frame.parent_id.as_deref());
            if event.frame.parent_id.is_none() {
                requests::early(connection, session, world, state, &event.frame);
            }
        }
    }
}

impl Listener for Ears {
    fn event(&self, method: &str, params: &RawValue) {
        let Answers { state, world, connection, session, .. } = &self.answers;
        match method {
            runtime::ExecutionContextCreated::METHOD => {
                embedded::came(connection, session, world, &state.url(), params);
                state.hear_frames(session, method, params);
            }
            RequestPaused::METHOD => requests::paused(connection, session, world, Some(state), params),
            AuthRequired::METHOD => self.answers.log_in(params),
            runtime::BindingCalled::METHOD => self.answers.called(params),
            page::DownloadWillBegin::METHOD => {
                if let Some(event) = read::<page::DownloadWillBegin>(params) {
                    world.downloads.began(&event.guid, &event.url, &event.suggested_filename);
                    state.download_began();
                }
            }
            page::FrameNavigated::METHOD => {
                self.arrived(params);
                state.hear(session, method, params);
                self.answers.tell_others();
            }
            DragIntercepted::METHOD => state.reports().drag_began(params),
            AttachedToTarget::METHOD => {
                if let Some(connection) = connection.upgrade() {
                    child::attached(&connection, state, world, session, params);
                }
            }
            _ if state.hear_frames(session, method, params) => {}
            _ => {
                state.hear(session, method, params);
                self.answers.limit(method, params);
            }
        }
    }

    fn gone(&self, why: &CdpError) {
        self.answers.state.lost(why);
    }
}

impl Drop for Ears {
    fn drop(&mut self) {
        self.answers.world.pages().remove(&self.answers.session);
        self.answers.tell_others();
    }
}
