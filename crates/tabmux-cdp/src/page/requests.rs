//! Which requests of a page wait for our word, and what they are told: the one owner of `Fetch` on a page. A server's
//! question for a login can only be answered where all of them wait. Documents wait where something is on its way to their
//! origin, until it has come.

use std::sync::Arc;

use serde_json::value::RawValue;
use tabmux_driver::{Emulation, HOUSEKEEPING, origin_of};

use super::emulation::{Asked, Eyes};
use super::{CdpPage, PageState};
use crate::connection::{Connection, WeakConnection};
use crate::paused::Paused;
use crate::protocol::fetch::{ContinueRequest, Disable, Enable, FailRequest, RequestPattern};
use crate::protocol::network::GetCookies;
use crate::protocol::page::{Frame, GetFrameTree, GetNavigationHistory, Reload};
use crate::world::World;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waiting {
    None,
    Documents,
    All,
    /// All of a worker's, so that none gets to the network: what a worker is told of the network's conditions, Chromium does not heed.
    Offline,
}

impl Waiting {
    /// Of a page that sees this.
    pub(super) fn of(world: &World, emulation: &Emulation) -> Self {
        match (world.watches_logins(emulation), world.origins.is_waiting()) {
            (true, _) => Self::All,
            (false, true) => Self::Documents,
            (false, false) => Self::None,
        }
    }
}

/// Never `Fetch.disable` for a page that may be loading: a request that Chromium is about to pause, and fetches the cookies for, is then
/// let go by nobody (measured: 55 of 300 navigations hang). With no pattern nothing new waits, and what waits is still heard of.
fn enable(waiting: Waiting) -> Enable {
    if waiting == Waiting::None {
        return Enable { patterns: Some(Vec::new()), handle_auth_requests: None };
    }
    let resource_type = (waiting == Waiting::Documents).then(|| "Document".to_owned());
    let pattern = RequestPattern { url_pattern: Some("*".into()), resource_type, ..RequestPattern::default() };
    Enable { patterns: Some(vec![pattern]), handle_auth_requests: Some(waiting == Waiting::All) }
}

/// A request of a worker is let go, unless the network is to be out of reach by now.
pub(super) fn paused_in_worker(connection: &WeakConnection, session: &str, world: &World, params: &RawValue) {
    let (Some(Paused { request_id, url, .. }), Some(connection)) = (Paused::read(params), connection.upgrade()) else { return };
    let offline = world.shown().offline.unwrap_or_default();
    if offline && url.starts_with("http") {
        drop(connection.send(Some(session), &FailRequest { request_id, error_reason: "InternetDisconnected".into() }));
    } else {
        drop(connection.send(Some(session), &ContinueRequest { request_id, ..ContinueRequest::default() }));
    }
}

pub(super) fn let_wait(eyes: &Eyes<'_>, waiting: Waiting, asked: &mut Asked) {
    let about = if waiting == Waiting::None { "requests" } else { "httpCredentials" };
    eyes.ask(about, &enable(waiting), asked);
}

impl CdpPage {
    /// As it is to be now, whatever was before. Requests that waited for the word of a former daemon go on.
    pub(crate) async fn let_wait_again(&self) {
        let session = Some(self.session.as_str());
        let waiting = Waiting::of(&self.world, &self.world.emulation());
        if waiting != Waiting::None {
            drop(self.connection.send(session, &enable(Waiting::None)));
            // By then the cookies of what was about to wait are there too, and it waits.
            let cookies = GetCookies { urls: Some(vec!["http://127.0.0.1/".into()]) };
            drop(self.connection.call_in(session, &cookies, HOUSEKEEPING).await);
        }
        drop(self.connection.send(session, &Disable::default()));
        if waiting != Waiting::None {
            drop(self.connection.send(session, &enable(waiting)));
        }
    }

    /// A page that another one opened may have its first document already, which nobody could keep waiting. Nobody waits for the
    /// answer: where the document is held it comes only once that is let go, and what it is held for may need our turn.
    pub(super) fn look_for_early_document(&self) {
        if !self.world.origins.is_waiting() {
            return;
        }
        let (connection, session) = (self.connection.clone(), self.session.clone());
        let (world, state) = (Arc::clone(&self.world), Arc::clone(&self.state));
        tokio::spawn(async move {
            if let Ok(tree) = connection.call_in(Some(&session), &GetFrameTree::default(), HOUSEKEEPING).await {
                early(&connection.downgrade(), &session, &world, &state, &tree.frame_tree.frame);
            }
        });
    }

    /// Nothing is on its way any more.
    pub(crate) fn documents_need_not_wait(&self) {
        if Waiting::of(&self.world, &self.world.emulation()) == Waiting::None {
            let frames = self.state.frames().sessions();
            for session in frames.iter().chain([&self.session]) {
                drop(self.connection.send(Some(session), &enable(Waiting::None)));
            }
        }
    }
}

/// A frame in another process has requests of its own, which wait as those of the page do.
pub(super) fn let_wait_in_frame(connection: &Connection, session: &str, world: &World) {
    let waiting = Waiting::of(world, &Emulation::default());
    if waiting != Waiting::None {
        drop(connection.send(Some(session), &enable(waiting)));
    }
}

/// Lets a request go on, at once or when what its origin keeps has come. Called by the reader: nothing is waited for here. `page` where it
/// can be the page itself that goes elsewhere.
pub(super) fn paused(connection: &WeakConnection, session: &str, world: &World, page: Option<&PageState>, params: &RawValue) {
    let Some(Paused { request_id, frame_id, resource_type, url }) = Paused::read(params) else { return };
    if let Some(page) = page.filter(|page| resource_type == "Document" && page.is_main_frame(&frame_id)) {
        page.goes_elsewhere();
    }
    let go_on = ContinueRequest { request_id, ..ContinueRequest::default() };
    if resource_type != "Document" || !world.origins.awaits(&url) {
        // Refused: whoever asked has gone.
        if let Some(connection) = connection.upgrade() {
            drop(connection.send(Some(session), &go_on));
        }
        return;
    }
    let (origins, connection, session) = (Arc::clone(&world.origins), connection.clone(), session.to_owned());
    tokio::spawn(async move {
        origins.arrival(&url).await;
        if let Some(connection) = connection.upgrade() {
            drop(connection.send(Some(&session), &go_on));
        }
    });
}

/// A document is shown whose origin is still waited for: it was asked for before anybody could hold it. It is loaded again when
/// everything has come, but for an answer to a form, which would be sent twice, and where the page is on its way elsewhere by then.
pub(super) fn early(connection: &WeakConnection, session: &str, world: &World, state: &Arc<PageState>, shown: &Frame) {
    if !world.origins.awaits(&shown.security_origin) || !state.is_early(&shown.loader_id) {
        return;
    }
    let (origins, connection, session) = (Arc::clone(&world.origins), connection.clone(), session.to_owned());
    let (url, document, state) = (shown.security_origin.clone(), shown.loader_id.clone(), Arc::clone(state));
    tokio::spawn(async move {
        origins.arrival(&url).await;
        let Some(connection) = connection.upgrade().filter(|_| state.was_early(&document)) else { return };
        // One that does not answer is gone, or will be as it is.
        let Ok(history) = connection.call_in(Some(&session), &GetNavigationHistory::default(), HOUSEKEEPING).await else { return };
        let shown = usize::try_from(history.current_index).ok().and_then(|at| history.entries.get(at));
        if shown.is_some_and(|entry| origin_of(&entry.url) == origin_of(&url) && entry.transition_type != "form_submit") {
            state.while_early(&document, || drop(connection.send(Some(&session), &Reload::default())));
        }
    });
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_driver::{ContextSpec, Credentials};

    use super::*;
    use crate::world::{Build, Drawn};

    #[test]
    fn all_requests_wait_where_a_login_may_be_asked_for_and_none_where_nothing_is_awaited() {
        let world = World::new("C1", &ContextSpec::default(), Build::Shell, Drawn::Always);
        let credentials = Some(Credentials { username: "ann".into(), password: "secret".into(), origin: None });
        assert_eq!(Waiting::of(&world, &Emulation::default()), Waiting::None);
        assert_eq!(Waiting::of(&world, &Emulation { credentials, ..Emulation::default() }), Waiting::All);
        for (waiting, asked) in [
            (Waiting::None, json!({ "patterns": [] })),
            (Waiting::Documents, json!({ "patterns": [{ "urlPattern": "*", "resourceType": "Document" }], "handleAuthRequests": false })),
            (Waiting::All, json!({ "patterns": [{ "urlPattern": "*" }], "handleAuthRequests": true })),
        ] {
            assert_eq!(serde_json::to_value(enable(waiting)).unwrap(), asked, "{waiting:?}");
        }
    }
}
