//! One running Chromium as the driver's traits see it. Only targets of our own contexts are ever attached to; no method
//! name or id that comes from an agent reaches the browser.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use async_trait::async_trait;
use serde_json::value::RawValue;
use tabmux_driver::{
    Adopted, Browser, BrowserInfo, Context, ContextSpec, DriverError, HOUSEKEEPING, Handle, Isolation, PageRecord, Result,
};

use crate::CdpError;
use crate::connection::{Connection, Listener};
use crate::context::{CdpContext, Unit};
use crate::event::read;
use crate::kept::EndOrder;
use crate::launch::{Launch, Sharing};
use crate::page::Look;
use crate::protocol::{Event, target};
use crate::transport::Transport;
use tokio::sync::{mpsc, oneshot};

#[derive(Debug)]
pub struct CdpBrowser {
    info: Mutex<BrowserInfo>,
    connection: Connection,
    targets: Arc<Targets>,
    me: Weak<Self>,
    /// How it was started, and whom to ask to end it; none for a browser that is somebody else's.
    kept: Option<(Launch, mpsc::Sender<EndOrder>)>,
}

/// Which contexts are ours. The browser talks of every target it has; what belongs to none of these is not looked at.
#[derive(Debug, Default)]
struct Targets {
    contexts: Mutex<HashMap<String, Weak<CdpContext>>>,
}

impl CdpBrowser {
    /// Speaks to a browser over its transport. `first_id` is above every id a former daemon used on it.
    pub async fn connect(transport: Transport, first_id: i32, info: BrowserInfo) -> crate::Result<Arc<Self>> {
        Self::connect_to(transport, first_id, info, None).await
    }

    pub(crate) async fn connect_to(
        transport: Transport,
        first_id: i32,
        info: BrowserInfo,
        kept: Option<(Launch, mpsc::Sender<EndOrder>)>,
    ) -> crate::Result<Arc<Self>> {
        let targets = Arc::<Targets>::default();
        let connection = Connection::start(transport, first_id, Arc::clone(&targets) as Arc<dyn Listener>);
        let discover = target::SetDiscoverTargets { discover: true, ..target::SetDiscoverTargets::default() };
        connection.call_in(None, &discover, HOUSEKEEPING).await?;
        Ok(Arc::new_cyclic(|me| Self { info: Mutex::new(info), connection, targets, me: me.clone(), kept }))
    }

    /// The wire itself, for tests that count and listen. Nothing of an agent's reaches it.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }

    /// How this browser was started.
    pub fn launched(&self) -> Option<&Launch> {
        self.kept.as_ref().map(|(launch, _)| launch)
    }

    pub(crate) fn set_keeper(&self, pid: u32) {
        self.info.lock().unwrap_or_else(PoisonError::into_inner).keeper_pid = Some(pid);
    }

    fn remember(&self, id: &str, unit: Unit, look: Look) -> Arc<CdpContext> {
        let alone = self.launched().is_some_and(|launch| launch.sharing == Sharing::One);
        let browser = if alone { self.me.clone() } else { Weak::new() };
        let context = Arc::new(CdpContext::new(id.to_owned(), unit, look, self.connection.clone(), browser));
        let mut contexts = self.targets.contexts();
        contexts.retain(|_, context| context.strong_count() > 0);
        contexts.insert(id.to_owned(), Arc::downgrade(&context));
        context
    }

    /// The context with what it is to begin with; closed again where that fails.
    async fn furnished(&self, context: Arc<CdpContext>, spec: &ContextSpec) -> Result<Arc<dyn Context>> {
        let Some(state) = &spec.state else { return Ok(context) };
        if let Err(error) = context.restore(state).await {
            context.close().await?;
            return Err(error);
        }
        Ok(context)
    }

    fn living(&self, id: &str) -> Option<Arc<CdpContext>> {
        self.targets.contexts().get(id)?.upgrade().filter(|context| !context.is_closed())
    }
}

/// How the handles of contexts begin that are only some tabs of a shared profile.
const TABS: &str = "tabs-";

impl CdpBrowser {
    /// The browser has no name for such a context, so one is made that no other browser's can be taken for.
    fn name_of_tabs(&self) -> Result<String> {
        let number = getrandom::u64().map_err(|error| DriverError::BrowserGone(format!("no random numbers for a handle: {error}")))?;
        Ok(format!("{}{number:016x}", self.tabs_prefix()))
    }

    fn tabs_prefix(&self) -> String {
        format!("{TABS}{}-", self.info().id)
    }
}

fn gone() -> DriverError {
    DriverError::BrowserGone("the session's pages went with a browser that ended".into())
}

impl Targets {
    fn contexts(&self) -> MutexGuard<'_, HashMap<String, Weak<CdpContext>>> {
        self.contexts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The context of a target: its own one, or, among those who share the profile, that of the page itself or of its opener.
    fn of(&self, info: &target::TargetInfo) -> Option<Arc<CdpContext>> {
        let own = info.browser_context_id.as_ref().and_then(|id| self.contexts().get(id)?.upgrade());
        own.or_else(|| {
            let known = |context: &Arc<CdpContext>| {
                context.has(&info.target_id) || info.opener_id.as_ref().is_some_and(|opener| context.has(opener))
            };
            self.all().into_iter().find(known)
        })
    }

    fn all(&self) -> Vec<Arc<CdpContext>> {
        self.contexts().values().filter_map(Weak::upgrade).collect()
    }
}

impl Listener for Targets {
    fn event(&self, method: &str, params: &RawValue) {
        match method {
            target::TargetCreated::METHOD => {
                let Some(target::TargetCreated { target_info: info }) = read(params) else { return };
                if info.kind == "page"
                    && let Some(context) = self.of(&info)
                {
                    context.arrived(info);
                }
            }
            target::TargetInfoChanged::METHOD => {
                let Some(target::TargetInfoChanged { target_info: info }) = read(params) else { return };
                if let Some(context) = self.of(&info) {
                    context.moved(&info);
                }
            }
            target::TargetDestroyed::METHOD => {
                let Some(event) = read::<target::TargetDestroyed>(params) else { return };
                self.all().iter().for_each(|context| context.closed_target(&event.target_id));
            }
            _ => {}
        }
    }

    fn gone(&self, why: &CdpError) {
        self.all().iter().for_each(|context| context.browser_gone(why));
    }
}

#[async_trait]
impl Browser for CdpBrowser {
    fn info(&self) -> BrowserInfo {
        self.info.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    async fn keep_only(&self, contexts: &[Handle]) -> Result<()> {
        let known = self.connection.call_in(None, &target::GetBrowserContexts::default(), HOUSEKEEPING).await?.browser_context_ids;
        let others = known.into_iter().filter(|id| contexts.iter().all(|context| context.0 != *id));
        let closing = others.map(|browser_context_id| async move {
            let dispose = target::DisposeBrowserContext { browser_context_id };
            self.connection.call_in(None, &dispose, HOUSEKEEPING).await
        });
        for closed in futures::future::join_all(closing).await {
            // Refused: it is gone already.
            if let Err(error @ (CdpError::Disconnected(_) | CdpError::Late { .. })) = closed {
                return Err(error.into());
            }
        }
        Ok(())
    }

    async fn gone(&self) -> String {
        self.connection.closed().await
    }

    async fn end(&self) -> Result<()> {
        // A browser that is not ours is only let go.
        let Some((_, orders)) = &self.kept else {
            self.connection.close("it was let go");
            return Ok(());
        };
        let (done, ended) = oneshot::channel();
        if orders.send(done).await.is_err() {
            return Ok(());
        }
        match ended.await {
            Ok(Err(error)) => Err(DriverError::BrowserGone(error.to_string())),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }

    async fn open_context(&self, spec: &ContextSpec) -> Result<Arc<dyn tabmux_driver::Context>> {
        match spec.isolation {
            Isolation::Context | Isolation::Browser => {
                let made = self.connection.call_in(None, &target::CreateBrowserContext::default(), HOUSEKEEPING).await?;
                self.furnished(self.remember(&made.browser_context_id, Unit::Context, Look::of(spec)), spec).await
            }
            Isolation::Tab => self.furnished(self.remember(&self.name_of_tabs()?, Unit::Tabs, Look::of(spec)), spec).await,
            Isolation::Window => {
                let text = "A window of its own in a shared profile is not built yet; use context, tab or browser.";
                Err(DriverError::Unsupported(text.into()))
            }
        }
    }

    async fn adopt_context(&self, context: &Handle, pages: &[PageRecord]) -> Result<Adopted> {
        let found = match self.living(&context.0) {
            Some(context) => context,
            None if context.0.starts_with(TABS) => {
                if !context.0.starts_with(&self.tabs_prefix()) {
                    return Err(gone());
                }
                self.remember(&context.0, Unit::Tabs, Look::default())
            }
            None => {
                let known = self.connection.call_in(None, &target::GetBrowserContexts::default(), HOUSEKEEPING).await?;
                if !known.browser_context_ids.contains(&context.0) {
                    return Err(gone());
                }
                self.remember(&context.0, Unit::Context, Look::default())
            }
        };
        let pages = found.adopt(pages).await?;
        Ok(Adopted { context: found, pages })
    }
}
