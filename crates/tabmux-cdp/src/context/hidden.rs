//! Tabs that nobody sees. They go to an origin to read or write what it keeps, and everything they ask for is answered here with
//! an empty document, so nothing reaches the network and no script of the origin runs. They are no pages of the context:
//! never listed, in no window, and closed whatever happens.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tabmux_driver::{DriverError, HOUSEKEEPING, Result, origin_of};
use tokio::sync::watch;

use super::{BLANK, CdpContext, closed};
use crate::CdpError;
use crate::connection::{Connection, Listener, WeakConnection};
use crate::event::read;
use crate::page::{attach_frames, thrown};
use crate::protocol::{Command, Event, fetch, network, page, runtime, target};

/// How their addresses end, so that the next daemon does not take one for a page.
const MARK: &str = "#tabmux-hidden";

/// How long reading or writing what an origin keeps may take.
const WORKING: Duration = Duration::from_secs(20);

/// The hidden tabs of one copying or reading. They are used again while that lasts, and closed with it.
#[derive(Debug)]
pub(super) struct HiddenTabs {
    context: Weak<CdpContext>,
    idle: Mutex<Vec<Hidden>>,
}

#[derive(Debug)]
struct Hidden {
    connection: Connection,
    target: String,
    session: String,
    place: watch::Receiver<Place>,
    frames: watch::Receiver<Vec<Frame>>,
}

/// A frame of another site in its document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Frame {
    origin: String,
    session: String,
    world: i64,
}

/// Which document it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Nowhere,
    At { origin: String, world: i64 },
    Gone,
}

struct Ears {
    connection: WeakConnection,
    /// Also its main frame.
    target: String,
    session: String,
    place: watch::Sender<Place>,
    frames: watch::Sender<Vec<Frame>>,
}

/// Hears what is said of a frame.
struct FrameEars {
    session: String,
    frames: watch::Sender<Vec<Frame>>,
}

const EMBED: &str =
    "function (src) { const frame = document.createElement('iframe'); frame.src = src; document.documentElement.append(frame); }";

/// The members of `auxData` that matter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Auxiliary {
    is_default: bool,
    frame_id: String,
}

/// Whether a target is one of these, of this daemon or a former one.
pub(crate) fn is_hidden(info: &target::TargetInfo) -> bool {
    info.url.ends_with(MARK)
}

impl HiddenTabs {
    pub(super) fn of(context: Weak<CdpContext>) -> Self {
        Self { context, idle: Mutex::default() }
    }

    /// Calls a function in a document of this origin and waits for what it gives.
    pub(super) async fn call(&self, origin: &str, function: &str, arguments: &[Value]) -> Result<Value> {
        let tab = self.tab().await?;
        // One that is given up here, or failed, is closed with that.
        let value = tab.call(origin, function, arguments).await?;
        self.idle().push(tab);
        Ok(value)
    }

    /// The same in a frame of this origin, in a document of that one.
    pub(super) async fn call_in_frame(&self, top: &str, frame: &str, function: &str, arguments: &[Value]) -> Result<Value> {
        let tab = self.tab().await?;
        let value = tab.call_in_frame(top, frame, function, arguments).await?;
        self.idle().push(tab);
        Ok(value)
    }

    async fn tab(&self) -> Result<Hidden> {
        let context = self.context.upgrade().filter(|context| !context.is_closed()).ok_or_else(closed)?;
        let idle = self.idle().pop_if(|tab| *tab.place.borrow() != Place::Gone);
        match idle {
            Some(tab) => Ok(tab),
            None => Hidden::open(&context).await,
        }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Hidden>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Hidden {
    /// Full Chromium makes none before it has made a page, of whomever: then that is waited for.
    async fn open(context: &CdpContext) -> Result<Self> {
        let mut pages = context.windows.pages();
        let opened = Self::open_now(context).await;
        if opened.is_ok() || *pages.borrow() {
            return opened;
        }
        let has_one = tokio::time::timeout(WORKING, pages.wait_for(|any| *any)).await.is_ok();
        if has_one { Self::open_now(context).await } else { opened }
    }

    async fn open_now(context: &CdpContext) -> Result<Self> {
        let turn = context.turn().await;
        if context.is_closed() {
            return Err(closed());
        }
        let create = target::CreateTarget {
            url: format!("{BLANK}{MARK}"),
            browser_context_id: context.browser_context(),
            background: Some(true),
            hidden: Some(true),
            ..target::CreateTarget::default()
        };
        let fresh = context.windows.create(turn, create).await?;
        // Nobody may take it for a page of the context.
        context.inner().forget(fresh.id());
        let connection = context.connection.clone();
        let attach = target::AttachToTarget { target_id: fresh.id().to_owned(), flatten: Some(true) };
        let session = connection.call_in(None, &attach, HOUSEKEEPING).await?.session_id;
        let (sender, place) = watch::channel(Place::Nowhere);
        let (framed, frames) = watch::channel(Vec::new());
        let ears = Ears {
            connection: connection.downgrade(),
            target: fresh.id().to_owned(),
            session: session.clone(),
            place: sender,
            frames: framed,
        };
        connection.listen(&session, Arc::new(ears));
        let tab = Self { connection, target: fresh.id().to_owned(), session, place, frames };
        fresh.kept();
        tab.prepare().await?;
        Ok(tab)
    }

    async fn prepare(&self) -> Result<()> {
        let session = Some(self.session.as_str());
        let ready = futures::future::try_join5(
            self.connection.send(session, &fetch::Enable::default()),
            self.connection.send(session, &network::SetBypassServiceWorker { bypass: true }),
            self.connection.send(session, &page::Enable::default()),
            self.connection.send(session, &runtime::Enable::default()),
            self.connection.send(session, &target::SetAutoAttach { wait_for_debugger_on_start: false, ..attach_frames() }),
        );
        tokio::time::timeout(HOUSEKEEPING, ready).await.map_err(|_| CdpError::Late { method: "Fetch.enable" })??;
        Ok(())
    }

    async fn call(&self, origin: &str, function: &str, arguments: &[Value]) -> Result<Value> {
        let world = self.go(origin).await?;
        self.run(&self.session, world, function, arguments).await
    }

    async fn call_in_frame(&self, top: &str, frame: &str, function: &str, arguments: &[Value]) -> Result<Value> {
        let world = self.go(top).await?;
        let find = |frames: &Vec<Frame>| frames.iter().find(|known| known.origin == frame).cloned();
        let mut frames = self.frames.clone();
        if find(&frames.borrow_and_update()).is_none() {
            self.run(&self.session, world, EMBED, &[format!("{frame}/{MARK}").into()]).await?;
        }
        let there = tokio::time::timeout(HOUSEKEEPING, frames.wait_for(|frames| find(frames).is_some())).await;
        let late = || CdpError::Late { method: target::AttachedToTarget::METHOD };
        let Frame { session, world, .. } = there.map_err(|_| late())?.ok().and_then(|frames| find(&frames)).ok_or(DriverError::PageGone)?;
        self.run(&session, world, function, arguments).await
    }

    async fn run(&self, session: &str, world: i64, function: &str, arguments: &[Value]) -> Result<Value> {
        let argument = |value: &Value| runtime::CallArgument { value: Some(value.clone()), ..runtime::CallArgument::default() };
        let call = runtime::CallFunctionOn {
            function_declaration: function.to_owned(),
            arguments: Some(arguments.iter().map(argument).collect()),
            execution_context_id: Some(world),
            return_by_value: Some(true),
            await_promise: Some(true),
            ..runtime::CallFunctionOn::default()
        };
        let reply = tokio::select! {
            biased;
            reply = self.connection.call_in(Some(session), &call, WORKING) => reply?,
            // A renderer that crashed answers nothing.
            () = self.lost() => return Err(DriverError::PageCrashed),
        };
        match reply.exception_details {
            Some(details) => Err(DriverError::StorageRefused(thrown(&details))),
            None => Ok(reply.result.value.unwrap_or_default()),
        }
    }

    /// Shows a document of this origin, and says in which world its scripts would run.
    async fn go(&self, origin: &str) -> Result<i64> {
        let at = |place: &Place| match place {
            Place::At { origin: here, world } if here == origin => Some(*world),
            _ => None,
        };
        if let Some(world) = at(&self.place.borrow()) {
            return Ok(world);
        }
        let navigate = page::Navigate { url: format!("{origin}/{MARK}"), ..page::Navigate::default() };
        let reply = self.connection.call_in(Some(&self.session), &navigate, HOUSEKEEPING).await?;
        if let Some(why) = reply.error_text {
            return Err(DriverError::NavigationFailed(format!("{why} at {origin}")));
        }
        let mut places = self.place.clone();
        let arriving = places.wait_for(|place| at(place).is_some() || *place == Place::Gone);
        let there = tokio::time::timeout(HOUSEKEEPING, arriving).await.map_err(|_| CdpError::Late { method: page::Navigate::METHOD })?;
        there.ok().and_then(|place| at(&place)).ok_or(DriverError::PageGone)
    }

    async fn lost(&self) {
        let mut places = self.place.clone();
        let _ = places.wait_for(|place| *place == Place::Gone).await;
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        self.connection.forget(&self.session);
        // Queued by now; refused, it is gone already.
        drop(self.connection.send(None, &target::CloseTarget { target_id: self.target.clone() }));
    }
}

impl Ears {
    /// Whatever it is, it is empty.
    fn answer(&self, params: &RawValue) {
        let (Some(connection), Some(paused)) = (self.connection.upgrade(), read::<fetch::RequestPaused>(params)) else { return };
        let html = fetch::HeaderEntry { name: "Content-Type".into(), value: "text/html".into() };
        let answer = fetch::FulfillRequest {
            request_id: paused.request_id,
            response_code: 200,
            response_headers: Some(vec![html]),
            ..fetch::FulfillRequest::default()
        };
        // Whether it arrived shows in the navigation.
        drop(connection.send(Some(&self.session), &answer));
    }

    fn shows(&self, params: &RawValue) {
        match shown(params) {
            Some((frame, origin, world)) if frame == self.target => drop(self.place.send_replace(Place::At { origin, world })),
            // Not every frame of another site lives in another process.
            Some((_, origin, world)) => {
                let session = self.session.clone();
                self.frames.send_modify(|frames| frames.push(Frame { origin, session, world }));
            }
            None => {}
        }
    }

    /// A frame of another site has a session of its own.
    fn has_frame(&self, params: &RawValue) {
        let (Some(connection), Some(event)) = (self.connection.upgrade(), read::<target::AttachedToTarget>(params)) else { return };
        let ears = FrameEars { session: event.session_id.clone(), frames: self.frames.clone() };
        connection.listen(&event.session_id, Arc::new(ears));
        // Whether it arrived shows in what it says.
        drop(connection.send(Some(&event.session_id), &runtime::Enable::default()));
    }
}

/// The frame, the origin and the world of a document that has come.
fn shown(params: &RawValue) -> Option<(String, String, i64)> {
    let context = read::<runtime::ExecutionContextCreated>(params)?.context;
    let about = context.aux_data.and_then(|data| Auxiliary::deserialize(data).ok()).filter(|about| about.is_default)?;
    Some((about.frame_id, origin_of(&context.origin)?, context.id))
}

impl Listener for Ears {
    fn event(&self, method: &str, params: &RawValue) {
        match method {
            fetch::RequestPaused::METHOD => self.answer(params),
            runtime::ExecutionContextCreated::METHOD => self.shows(params),
            runtime::ExecutionContextsCleared::METHOD => {
                self.place.send_replace(Place::Nowhere);
                self.frames.send_modify(|frames| frames.retain(|frame| frame.session != self.session));
            }
            target::AttachedToTarget::METHOD => self.has_frame(params),
            _ => {}
        }
    }

    fn gone(&self, _: &CdpError) {
        self.place.send_replace(Place::Gone);
    }
}

impl Listener for FrameEars {
    fn event(&self, method: &str, params: &RawValue) {
        if method == runtime::ExecutionContextCreated::METHOD
            && let Some((_, origin, world)) = shown(params)
        {
            self.frames.send_modify(|frames| frames.push(Frame { origin, session: self.session.clone(), world }));
        }
    }

    /// With its document.
    fn gone(&self, _: &CdpError) {
        self.frames.send_modify(|frames| frames.retain(|frame| frame.session != self.session));
    }
}
