//! Tabs that nobody sees. They go to an origin to read or write what it keeps, and everything they ask for is answered here with
//! an empty document, so nothing reaches the network and no script of the origin runs. They are no pages of the context:
//! never listed, in no window, and closed whatever happens.

use std::sync::{Arc, Mutex, PoisonError, Weak};
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
use crate::page::thrown;
use crate::protocol::{Event, fetch, network, page, runtime, target};

/// How their addresses end, so that the next daemon does not take one for a page.
const MARK: &str = "#tabmux-hidden";

/// How long one is kept for the next use.
const LINGER: Duration = Duration::from_secs(2);

/// The hidden tabs of one who needs them now and then.
#[derive(Debug)]
pub(super) struct HiddenTabs {
    context: Weak<CdpContext>,
    idle: Arc<Mutex<Vec<Hidden>>>,
}

#[derive(Debug)]
struct Hidden {
    connection: Connection,
    target: String,
    session: String,
    place: watch::Receiver<Place>,
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
    session: String,
    place: watch::Sender<Place>,
}

/// The members of `auxData` that matter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Auxiliary {
    is_default: bool,
}

/// Whether a target is one of these, of this daemon or a former one.
pub(crate) fn is_hidden(info: &target::TargetInfo) -> bool {
    info.url.ends_with(MARK)
}

impl HiddenTabs {
    pub(super) fn of(context: Weak<CdpContext>) -> Self {
        Self { context, idle: Arc::default() }
    }

    /// Calls a function in a document of this origin and waits for what it gives.
    pub(super) async fn call(&self, origin: &str, function: &str, arguments: &[Value]) -> Result<Value> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let tab = match idle {
            Some(tab) => tab,
            None => Hidden::open(&*self.context.upgrade().ok_or_else(closed)?).await?,
        };
        // One that is given up here, or failed, is closed with that.
        let value = tab.call(origin, function, arguments).await?;
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(tab);
        let idle = Arc::downgrade(&self.idle);
        tokio::spawn(async move {
            tokio::time::sleep(LINGER).await;
            if let Some(idle) = idle.upgrade() {
                drop(idle.lock().unwrap_or_else(PoisonError::into_inner).pop());
            }
        });
        Ok(value)
    }
}

impl Hidden {
    async fn open(context: &CdpContext) -> Result<Self> {
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
        let ears = Ears { connection: connection.downgrade(), session: session.clone(), place: sender };
        connection.listen(&session, Arc::new(ears));
        let tab = Self { connection, target: fresh.id().to_owned(), session, place };
        fresh.kept();
        tab.prepare().await?;
        Ok(tab)
    }

    async fn prepare(&self) -> Result<()> {
        let session = Some(self.session.as_str());
        let ready = futures::future::try_join4(
            self.connection.send(session, &fetch::Enable::default()),
            self.connection.send(session, &network::SetBypassServiceWorker { bypass: true }),
            self.connection.send(session, &page::Enable::default()),
            self.connection.send(session, &runtime::Enable::default()),
        );
        tokio::time::timeout(HOUSEKEEPING, ready).await.map_err(|_| CdpError::Late { method: "Fetch.enable" })??;
        Ok(())
    }

    async fn call(&self, origin: &str, function: &str, arguments: &[Value]) -> Result<Value> {
        let world = self.go(origin).await?;
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
            reply = self.connection.call(Some(&self.session), &call) => reply?,
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
        let reply = self.connection.call(Some(&self.session), &navigate).await?;
        if let Some(why) = reply.error_text {
            return Err(DriverError::NavigationFailed(format!("{why} at {origin}")));
        }
        let mut places = self.place.clone();
        let there = places.wait_for(|place| at(place).is_some() || *place == Place::Gone).await;
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
        let Some(context) = read::<runtime::ExecutionContextCreated>(params).map(|event| event.context) else { return };
        let is_default = context.aux_data.and_then(|data| Auxiliary::deserialize(data).ok()).is_some_and(|data| data.is_default);
        if let Some(origin) = origin_of(&context.origin).filter(|_| is_default) {
            self.place.send_replace(Place::At { origin, world: context.id });
        }
    }
}

impl Listener for Ears {
    fn event(&self, method: &str, params: &RawValue) {
        match method {
            fetch::RequestPaused::METHOD => self.answer(params),
            runtime::ExecutionContextCreated::METHOD => self.shows(params),
            runtime::ExecutionContextsCleared::METHOD => drop(self.place.send_replace(Place::Nowhere)),
            _ => {}
        }
    }

    fn gone(&self, _: &CdpError) {
        self.place.send_replace(Place::Gone);
    }
}
