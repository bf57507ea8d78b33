//! Hears of the frames of a page that live in another process, each over a session of its own: which worlds of ours they have,
//! and which further frames are in them. The rest they say is left unheard; of workers, all but that they are there.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::{PageState, act, attach_frames, embedded, own_world, requests};
use crate::CdpError;
use crate::connection::{Connection, Listener, WeakConnection};
use crate::event::read;
use crate::protocol::fetch::RequestPaused;
use crate::protocol::target::AttachedToTarget;
use crate::protocol::{Event, page, runtime};
use crate::world::World;

/// A worker of the page.
#[derive(Debug)]
struct Worker {
    state: Arc<PageState>,
    session: String,
}

#[derive(Debug)]
struct Child {
    state: Arc<PageState>,
    world: Arc<World>,
    connection: WeakConnection,
    session: String,
}

/// A frame of this page has a session now, of which the session `within` tells. Called by the reader: nothing is waited for.
pub(super) fn attached(connection: &Connection, state: &Arc<PageState>, world: &Arc<World>, within: &str, params: &RawValue) {
    let Some(event) = read::<AttachedToTarget>(params) else { return };
    let session = event.session_id;
    match event.target_info.kind.as_str() {
        "iframe" => {}
        "worker" => {
            state.worker_came(&session, &event.target_info.target_id);
            return connection.listen(&session.clone(), Arc::new(Worker { state: Arc::clone(state), session }));
        }
        _ => return,
    }
    state.frames().attached(event.target_info.target_id, &session, within);
    let child = Child { state: Arc::clone(state), world: Arc::clone(world), connection: connection.downgrade(), session: session.clone() };
    connection.listen(&session, Arc::new(child));
    requests::let_wait_in_frame(connection, &session, world);
    // Whether they arrive shows in the events; a frame that goes at once answers none.
    drop(connection.send(Some(&session), &page::Enable::default()));
    drop(connection.send(Some(&session), &runtime::Enable::default()));
    drop(connection.send(Some(&session), &act::listen()));
    drop(connection.send(Some(&session), &own_world()));
    drop(connection.send(Some(&session), &attach_frames()));
}

impl Listener for Worker {
    fn event(&self, _: &str, _: &RawValue) {}

    fn gone(&self, _: &CdpError) {
        self.state.worker_went(&self.session);
    }
}

impl Listener for Child {
    fn event(&self, method: &str, params: &RawValue) {
        if method == AttachedToTarget::METHOD {
            if let Some(connection) = self.connection.upgrade() {
                attached(&connection, &self.state, &self.world, &self.session, params);
            }
        } else if method == RequestPaused::METHOD {
            requests::paused(&self.connection, &self.session, &self.world, None, params);
        } else if method == runtime::BindingCalled::METHOD {
            self.state.reports().called(params);
        } else {
            if method == runtime::ExecutionContextCreated::METHOD {
                embedded::came(&self.connection, &self.session, &self.world, &self.state.url(), params);
            }
            self.state.hear_frames(&self.session, method, params);
        }
    }

    fn gone(&self, _: &CdpError) {
        let within = self.state.lose_frames(&self.session);
        if let Some(connection) = self.connection.upgrade() {
            within.iter().for_each(|session| connection.forget(session));
        }
    }
}
