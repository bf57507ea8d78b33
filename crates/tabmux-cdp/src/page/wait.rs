//! Waits until the page is as somebody wants it. The page itself says when (`wait.js`); a page that goes elsewhere is
//! asked again in its next document.

use std::borrow::Cow;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};
use tabmux_driver::{Awaited, DriverError, Result, SCRIPT, Selector};
use tokio::sync::watch;

use super::CdpPage;
use super::frames::World;
use super::state::{Life, Progress};
use super::world::Failure;

const WAIT: &str = include_str!("wait.js");
const STOP: &str = "function (key) { globalThis.tabmuxWaits?.get(key)?.(); }";

/// Whether something held at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    NotAtAll,
    ForIt,
}

/// What a look into one document came to.
enum Look {
    Seen,
    /// The document is gone, or not there yet.
    NoDocument,
}

impl CdpPage {
    /// Until everything holds at the same moment: whatever had to be waited for sends us back to the beginning.
    pub(super) async fn wait(&self, awaited: &Awaited) -> Result<()> {
        loop {
            self.wait_for_document(awaited).await?;
            if awaited.network_idle && self.wait_for_quiet().await? == Waited::ForIt {
                continue;
            }
            match &awaited.function {
                Some(function) if self.holds(function).await? == Waited::ForIt => {}
                _ => return Ok(()),
            }
        }
    }

    async fn wait_for_document(&self, awaited: &Awaited) -> Result<()> {
        let mut progress = self.state.watch();
        let right_place = || awaited.url.as_ref().is_none_or(|url| url.matches(&self.state.url()));
        loop {
            self.until(&mut progress, |_| right_place()).await?;
            if !awaited.needs_document() {
                return Ok(());
            }
            let before = progress.borrow_and_update().commits;
            let another_document = self.until(&mut progress, |now| now.commits > before);
            let look = tokio::select! {
                // A document that is kept for going back never answers.
                another = another_document => another.map(|()| None)?,
                look = self.look_out(awaited) => Some(look?),
            };
            match look {
                Some(Look::Seen) if right_place() => return Ok(()),
                Some(Look::Seen) | None => {}
                Some(Look::NoDocument) => self.until(&mut progress, |now| now.commits > before).await?,
            }
        }
    }

    /// Unlike a navigation, waiting ends with a crash: nothing else runs in the session that could bring the page back.
    pub(super) async fn until(&self, progress: &mut watch::Receiver<Progress>, done: impl Fn(&Progress) -> bool) -> Result<()> {
        self.reached(progress, |now| now.life != Life::Alive || done(now)).await
    }

    async fn look_out(&self, awaited: &Awaited) -> Result<Look> {
        let world = match self.world().await {
            Ok(world) => world,
            Err(Failure::Other(error)) => return Err(error.into()),
            Err(_) => return Ok(Look::NoDocument),
        };
        let lookout = Lookout::new(self, world.clone());
        let selector = awaited.selector.as_deref().map(Selector::parse).transpose()?;
        // What is no selector is a text only.
        let gone = awaited.gone.as_deref().and_then(|what| Selector::parse(what).ok());
        let (selector, gone) = (selector.map(|selector| selector.for_script()), gone.map(|gone| gone.for_script()));
        let wanted = json!({ "text": awaited.text, "selector": selector, "gone": awaited.gone, "goneSelector": gone });
        let wanted = wanted.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        let wanted: serde_json::Map<String, Value> = wanted.map(|(name, value)| (name.clone(), value.clone())).collect();
        let function: Cow<'_, str> =
            if world.ready { WAIT.into() } else { format!("function (...call) {{ {SCRIPT}; return ({WAIT})(...call); }}").into() };
        let seen = self.call_in_world(&world, &function, &[wanted.into(), lookout.key.into()]).await;
        match seen {
            Ok(Value::String(seen)) if seen == "seen" => Ok(Look::Seen),
            Ok(why) => {
                let (selector, why) = (awaited.selector.clone().unwrap_or_default(), why.as_str().unwrap_or_default().to_owned());
                Err(DriverError::BadSelector { selector, why: why.trim_end_matches('.').to_owned() })
            }
            Err(Failure::NoDocument | Failure::Cut) => {
                self.state.frames().forget(&self.handle.0, &world);
                Ok(Look::NoDocument)
            }
            Err(Failure::Threw(text)) => Err(DriverError::ScriptFailed(text)),
            Err(Failure::Other(error)) => Err(error.into()),
        }
    }
}

/// One wait in the page, which ends there too when nobody waits any more.
struct Lookout<'a> {
    page: &'a CdpPage,
    world: World,
    key: u64,
}

impl<'a> Lookout<'a> {
    fn new(page: &'a CdpPage, world: World) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self { page, world, key: NEXT.fetch_add(1, Ordering::Relaxed) }
    }
}

impl Drop for Lookout<'_> {
    fn drop(&mut self) {
        if self.page.state.living().is_ok() {
            self.page.tell_world(&self.world, STOP, &[self.key.into()]);
        }
    }
}
