//! The parts of a page that have a session of their own: its frames in other processes, and its workers. A frame is given all that the page has (its
//! clipboard, what it sees, who answers its questions) before its first script runs, and what it logs and asks for is the page's. Where the page is
//! and what it shows, only the page's own session says.

use std::sync::Arc;

use serde_json::value::RawValue;
use tabmux_driver::Emulation;

use super::answers::Answers;
use super::emulation::{Eyes, Whose};
use super::flood::Flood;
use super::{PageState, act, attach_frames, embedded, hear_requests, keep_choosers, own_world, requests};
use crate::CdpError;
use crate::connection::{Connection, Listener, WeakConnection};
use crate::event::read;
use crate::protocol::fetch::{AuthRequired, RequestPaused};
use crate::protocol::target::AttachedToTarget;
use crate::protocol::{Event, log, page, runtime};
use crate::world::World;

/// A worker of the page.
#[derive(Debug)]
struct Worker {
    state: Arc<PageState>,
    world: Arc<World>,
    connection: WeakConnection,
    session: String,
}

#[derive(Debug)]
struct Child {
    answers: Answers,
}

/// A part of this page has a session now, of which the session `within` tells. Called by the reader: nothing is waited for.
pub(super) fn attached(connection: &Connection, state: &Arc<PageState>, world: &Arc<World>, within: &str, params: &RawValue) {
    let Some(AttachedToTarget { session_id: session, target_info: target, .. }) = read(params) else { return };
    match target.kind.as_str() {
        "iframe" => frame_came(connection, state, world, within, &session, target.target_id),
        "worker" => worker_came(connection, state, world, &session, &target.target_id),
        _ => {}
    }
    // Behind all it was told, which it heeds first. Where it does not wait, this is nothing.
    drop(connection.send(Some(&session), &runtime::RunIfWaitingForDebugger::default()));
}

fn frame_came(connection: &Connection, state: &Arc<PageState>, world: &Arc<World>, within: &str, session: &str, target: String) {
    let child =
        Child::new(Answers::new(Arc::clone(state), Arc::clone(world), connection.downgrade(), session.to_owned(), Flood::default()));
    state.frames().attached(target, session, within);
    connection.listen(session, Arc::new(child));
    furnish(connection, session, world, &world.shown());
}

fn worker_came(connection: &Connection, state: &Arc<PageState>, world: &Arc<World>, session: &str, target: &str) {
    state.worker_came(session, target);
    let (state, weak) = (Arc::clone(state), connection.downgrade());
    let worker = Worker { state, world: Arc::clone(world), connection: weak, session: session.to_owned() };
    connection.listen(session, Arc::new(worker));
    drop(connection.send(Some(session), &hear_requests()));
    drop(Eyes { connection, session, whose: Whose::Worker }.see(world, &world.shown(), &Emulation::default()));
}

/// Whether it arrives shows in the events; a frame that goes at once answers none.
fn furnish(connection: &Connection, session: &str, world: &World, shown: &Emulation) {
    let to = Some(session);
    requests::let_wait_in_frame(connection, session, world);
    drop(connection.send(to, &page::Enable::default()));
    drop(connection.send(to, &runtime::Enable::default()));
    drop(connection.send(to, &log::Enable::default()));
    drop(connection.send(to, &hear_requests()));
    let (binding, script) = world.clipboard.hands();
    drop(connection.send(to, &binding));
    drop(connection.send(to, &script));
    drop(connection.send(to, &keep_choosers()));
    drop(connection.send(to, &act::listen()));
    drop(connection.send(to, &own_world()));
    drop(Eyes { connection, session, whose: Whose::Frame }.see(world, shown, &Emulation::default()));
    drop(connection.send(to, &attach_frames()));
}

impl Listener for Worker {
    fn event(&self, method: &str, params: &RawValue) {
        if method == RequestPaused::METHOD {
            requests::paused_in_worker(&self.connection, &self.session, &self.world, params);
        } else {
            self.state.hear_part(&self.session, method, params);
        }
    }

    fn gone(&self, _: &CdpError) {
        self.state.worker_went(&self.session);
    }
}

impl Child {
    fn new(answers: Answers) -> Self {
        answers.world.frames().insert(answers.session.clone());
        Self { answers }
    }
}

impl Listener for Child {
    fn event(&self, method: &str, params: &RawValue) {
        let Answers { state, world, connection, session, .. } = &self.answers;
        match method {
            AttachedToTarget::METHOD => {
                if let Some(connection) = connection.upgrade() {
                    attached(&connection, state, world, session, params);
                }
            }
            RequestPaused::METHOD => requests::paused(connection, session, world, None, params),
            AuthRequired::METHOD => self.answers.log_in(params),
            runtime::BindingCalled::METHOD => self.answers.called(params),
            runtime::ExecutionContextCreated::METHOD => {
                embedded::came(connection, session, world, &state.url(), params);
                state.hear_frames(session, method, params);
            }
            page::FrameNavigated::METHOD => {
                state.hear_part(session, method, params);
                self.answers.tell_others_all();
            }
            _ if state.hear_frames(session, method, params) => {}
            _ => {
                state.hear_part(session, method, params);
                self.answers.limit(method, params);
            }
        }
    }

    fn gone(&self, _: &CdpError) {
        let within = self.answers.state.lose_frames(&self.answers.session);
        if let Some(connection) = self.answers.connection.upgrade() {
            within.iter().for_each(|session| connection.forget(session));
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.answers.world.frames().remove(&self.answers.session);
        self.answers.tell_others_all();
    }
}
