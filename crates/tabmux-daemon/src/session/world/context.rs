//! How a session's context is made, found again after a restart, and closed. What happens in it meanwhile is the world's.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::FutureExt;
use tabmux_core::{Code, Fault, Loss, Session, TabId};
use tabmux_driver::{Browser, Context, DriverError, HOUSEKEEPING, Handle, PageRecord, failpoint};
use tokio_util::task::AbortOnDropHandle;

use super::{World, closed, locked};
use crate::session::downloads;
use crate::session::news::Gone;

/// How long making a context, or finding one again, may take; it outlives the call that asked for it.
const OPENING: Duration = Duration::from_secs(60);

/// How long a daemon that ends waits for what is being made: it has to see it gone too, all within five seconds.
const ENDING: Duration = Duration::from_millis(300);

/// How long until a context that did not close is tried again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// A context and the browser it is in.
type InBrowser = (Arc<dyn Browser>, Arc<dyn Context>);
impl World {
    /// The context, made or found again when there is none yet. When that fails the session is over and its seat free (S3.25).
    pub(in crate::session) async fn open(self: &Arc<Self>) -> Result<Arc<dyn Context>, Fault> {
        self.open_held(&mut *self.context.lock().await).await
    }

    /// The context where there is one, found again if a former daemon made it. For those who do not call the session themselves: one that
    /// lost its browser starts afresh only by a call of its own.
    pub(in crate::session) async fn find(self: &Arc<Self>) -> Result<Option<Arc<dyn Context>>, Fault> {
        let mut context = self.context.lock().await;
        let is_there = self.hub.look(|registry| registry.session(self.id).is_some_and(|session| session.context.is_some()));
        if is_there { self.open_held(&mut context).await.map(Some) } else { Ok(None) }
    }

    async fn open_held(self: &Arc<Self>, context: &mut Option<Arc<dyn Context>>) -> Result<Arc<dyn Context>, Fault> {
        if let Some(context) = context {
            return Ok(Arc::clone(context));
        }
        if self.stop.is_cancelled() {
            return Err(closed());
        }
        let former = self.hub.look(|registry| registry.session(self.id).is_some_and(|session| session.context.is_some()));
        let loss_said = self.loss_said.swap(false, Ordering::Relaxed);
        match self.open_in_time().await {
            Ok(opened) => Ok(self.be_in(context, opened)),
            // It went with somebody else's browser that does not listen any more, or with one that did not survive the former daemon:
            // this call says so, unless the one before did when the connection broke, and the next one starts afresh.
            Err(fault) if former && matches!(fault.code, Code::BrowserCrashed | Code::BrowserNotFound) => {
                let fault = if loss_said { fault } else { crate::browser::ended(fault) };
                let can_return = self.place.lose().await && fault.code == Code::BrowserCrashed;
                let fault = if can_return { fault.with_hint(super::BRING_BACK) } else { fault };
                self.tell_loss(&fault, loss_said).await;
                Err(fault)
            }
            // Its pages are there, and cannot be had just now.
            Err(fault) if former && passes(fault.code) => {
                self.hub.decide_now(|registry, _| registry.put_off(self.id, &fault));
                Err(fault)
            }
            // It lost a browser of its user's, who has not started it again: the name is kept until they do.
            Err(fault) if !former && self.spec().endpoint.is_some() && self.was_made() => {
                self.hub.decide_now(|registry, _| registry.browser_lost(self.id, &fault));
                Err(fault)
            }
            Err(fault) => {
                tracing::warn!(session = %self.id, %fault, "the session could not be opened");
                self.hub.decide_now(|registry, now| {
                    // A former daemon's context is still somewhere: the record stays until it is closed.
                    if former { registry.lost(self.id) } else { registry.open_failed(self.id, &fault, now) }
                });
                self.stop.cancel();
                Err(fault)
            }
        }
    }

    /// The calls there are hear of it once the next daemon knows it too, and does not say it again. Where none of them is the owner's, because
    /// somebody else or a copy that begins with this session found it out, the owner's next one is told.
    async fn tell_loss(self: &Arc<Self>, fault: &Fault, said: bool) {
        let ((), safe) = self.hub.decide(|registry, _| {
            let called = registry.has_calls_of_owner(self.id);
            registry.forget_browser(self.id);
            if !called && !said {
                self.lose(fault.clone());
                registry.set_loss(self.id, Loss::Untold);
            }
        });
        if let Err(fault) = safe.written().await {
            tracing::warn!(session = %self.id, %fault, "that the browser is gone may be said twice");
        }
        self.hub.decide_now(|registry, _| registry.put_off(self.id, fault));
    }

    fn be_in(self: &Arc<Self>, context: &mut Option<Arc<dyn Context>>, (browser, opened): InBrowser) -> Arc<dyn Context> {
        *context = Some(Arc::clone(&opened));
        *locked(&self.browser) = Some(Arc::clone(&browser));
        self.tend(browser, &opened);
        opened
    }

    /// Finds a former daemon's session again before anybody calls it, so that it is saved, or named lost. A person's browser is left to
    /// whoever needs it: it may ask them.
    pub(in crate::session) async fn take_up(self: &Arc<Self>) {
        let _known = self.taken_up.clone().drop_guard();
        let mut context = self.context.lock().await;
        let left = self.hub.look(|registry| registry.session(self.id).is_some_and(|session| session.context.is_some()));
        if !left || context.is_some() || self.spec().endpoint.is_some() || !self.hub.browsers.outlive_daemons() {
            return;
        }
        match self.open_in_time().await {
            Ok(opened) => {
                self.be_in(&mut context, opened);
                // What it was in the former daemon's last moments may not be saved.
                self.stirred.notify_one();
            }
            Err(fault) if matches!(fault.code, Code::BrowserCrashed | Code::BrowserNotFound) => {
                let fault = crate::browser::ended(fault);
                let fault = if self.place.lose().await { fault.with_hint(super::BRING_BACK) } else { fault };
                // Calls that wait are answered in their turn: the first is told, unless it is the one that brings everything back.
                self.hub.decide_now(|registry, _| {
                    registry.forget_browser(self.id);
                    self.lose(fault);
                    registry.set_loss(self.id, Loss::Untold);
                });
            }
            Err(fault) => {
                tracing::info!(session = %self.id, %fault, "a former daemon's session is not found yet; the next call looks again");
            }
        }
    }

    /// Whether there is nothing to find again: the next call makes it a context.
    pub(in crate::session) fn has_lost_all(&self) -> bool {
        self.hub.look(|registry| registry.session(self.id).is_some_and(Session::is_lost))
    }

    pub(in crate::session) fn was_made(&self) -> bool {
        self.hub.look(|registry| registry.session(self.id).is_some_and(Session::was_made))
    }

    /// On a task of its own, so that a panic in a driver ends this session only. A session that is closed meanwhile
    /// waits a little for what is being made, to close it again (S3.23); nobody waits for that but this task.
    async fn open_in_time(self: &Arc<Self>) -> Result<InBrowser, Fault> {
        let world = Arc::clone(self);
        let mut opening = AbortOnDropHandle::new(tokio::spawn(async move { world.open_or_adopt().await }));
        let joined = tokio::select! {
            biased;
            joined = &mut opening => Some(joined),
            () = tokio::time::sleep(OPENING) => None,
            () = self.stop.cancelled() => {
                let patience = if self.hub.stopping.is_cancelled() { ENDING } else { HOUSEKEEPING };
                tokio::time::timeout(patience, &mut opening).await.ok()
            }
        };
        match joined {
            Some(joined) => joined.unwrap_or_else(|_| Err(self.hub.panicked())),
            None => {
                let hint = "Try again; `tabmux doctor` says what is wrong.";
                Err(Fault::new(Code::Timeout, "The browser did not make a context in time.", hint))
            }
        }
    }

    async fn open_or_adopt(self: &Arc<Self>) -> Result<InBrowser, Fault> {
        let known = self.hub.look(|registry| registry.session(self.id).and_then(|session| session.context.clone()));
        match known {
            Some(handle) => self.adopt(&Handle(handle.to_string())).await,
            None => self.open_new().await,
        }
    }

    /// Write down, make, write down: a crash in between is undone by the next daemon.
    async fn open_new(self: &Arc<Self>) -> Result<InBrowser, Fault> {
        let (announced, safe) = self.hub.decide(|registry, _| registry.opening(self.id));
        announced?;
        failpoint("open-announcing");
        safe.written().await?;
        failpoint("open-announced");
        let mut spec = self.spec();
        spec.downloads.as_deref().map_or(Ok(()), downloads::make)?;
        failpoint("open-has-directory");
        let copy = self.begin(&mut spec).await?;
        failpoint("open-has-source");
        let browser = self.hub.browsers.get(&spec).await?;
        failpoint("open-has-browser");
        let vacant = self.hub.browsers.vacancy(&browser);
        let context = browser.open_context(&spec).await?;
        failpoint("open-has-context");
        if let Some(fork) = &copy {
            self.plant(&*context, fork).await;
        }
        self.keep_for_the_next(&*context, spec.source.as_ref()).await;
        let (opened, safe) = self.hub.decide(|registry, _| registry.opened(self.id, context.handle().0.as_str().into()));
        failpoint("open-writing");
        let written = match opened {
            Ok(()) => safe.written().await,
            Err(closed_meanwhile) => Err(closed_meanwhile),
        };
        if let Err(fault) = written {
            if let Err(why) = close_context(&*context).await {
                tracing::warn!(session = %self.id, why, "a context that is not wanted any more did not close");
            }
            return Err(fault);
        }
        vacant.taken();
        failpoint("open-written");
        Ok((browser, context))
    }

    fn tabs_on_record(&self) -> Vec<(TabId, PageRecord)> {
        self.hub.look(|registry| {
            let tabs = registry.session(self.id).map(|session| &session.tabs);
            let record = |(id, tab): (&TabId, &tabmux_core::Tab)| {
                (*id, PageRecord { handle: Handle(tab.handle.to_string()), url: tab.url.clone(), memento: tab.memento.clone() })
            };
            tabs.map(|tabs| tabs.iter().map(record).collect()).unwrap_or_default()
        })
    }

    async fn adopt(self: &Arc<Self>, handle: &Handle) -> Result<InBrowser, Fault> {
        let tabs = self.tabs_on_record();
        let records: Vec<PageRecord> = tabs.iter().map(|(_, record)| record.clone()).collect();
        let mut spec = self.spec();
        self.go_on(&mut spec).await;
        let (browser, adopted) = self.hub.browsers.find(&spec, handle, &records).await?;
        for (tab, record) in &tabs {
            match adopted.pages.iter().find(|(handle, _)| *handle == record.handle) {
                Some((_, page)) => self.add_page(*tab, page),
                None => self.tab_lost(*tab, Gone::NotFound),
            }
        }
        self.was_seen(&tabs);
        self.tell_windows(&*adopted.context);
        Ok((browser, adopted.context))
    }

    /// Closes the context; also one that a former daemon made and this one never opened. One that does not close is
    /// tried again, ever less often: until it is gone the session stays on record, so that the next daemon knows of it.
    pub(in crate::session) async fn close(self: &Arc<Self>) {
        failpoint("close-begins");
        // First that it ends, then its end: whoever finds the one must not miss the other.
        if tokio::time::timeout(HOUSEKEEPING, self.hub.on_record()).await.is_err() {
            tracing::warn!(session = %self.id, "the disk is late; the session is closed before that is written down");
        }
        failpoint("close-written");
        self.let_copies_go_on().await;
        let mut pause = FIRST_PAUSE;
        while let Err(why) = self.close_once().await {
            tracing::warn!(session = %self.id, why, "the context did not close and is tried again");
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        failpoint("close-context-gone");
        locked(&self.pages).clear();
        if let Some(directory) = self.spec().downloads {
            downloads::remove(directory).await;
        }
        self.unsave().await;
        failpoint("close-directory-gone");
    }

    async fn close_once(&self) -> Result<(), String> {
        let opened = self.context.lock().await.clone();
        let known = self.hub.look(|registry| registry.session(self.id).and_then(|session| session.context.clone()));
        let context = match (opened, known) {
            (Some(context), _) => Some(context),
            (None, Some(handle)) => Box::pin(self.find_again(&Handle(handle.to_string()))).await?,
            (None, None) => None,
        };
        match context {
            Some(context) => {
                self.spare_strangers(&*context).await;
                close_context(&*context).await
            }
            None => Ok(()),
        }
    }

    /// A context that cannot be found is gone, unless its browser only does not answer now. Its pages are found with it, since some
    /// contexts are nothing but their pages.
    async fn find_again(&self, handle: &Handle) -> Result<Option<Arc<dyn Context>>, String> {
        let pages: Vec<PageRecord> = self.tabs_on_record().into_iter().map(|(_, record)| record).collect();
        match bounded(OPENING, self.hub.browsers.find(&self.spec(), handle, &pages)).await? {
            Ok((_, adopted)) => Ok(Some(adopted.context)),
            Err(fault) if passes(fault.code) => Err(fault.message),
            Err(_) => Ok(None),
        }
    }
}

/// Whether what was asked for may be had a little later: the browser asks its user, or has too much to do.
fn passes(code: Code) -> bool {
    matches!(code, Code::PausedByHuman | Code::Timeout | Code::QueueFull)
}

pub(in crate::session) async fn close_context(context: &dyn Context) -> Result<(), String> {
    match bounded(HOUSEKEEPING, context.close()).await? {
        // The browser took it along.
        Ok(()) | Err(DriverError::BrowserGone(_)) => Ok(()),
        Err(error) => Err(error.to_string()),
    }
}

/// What a driver answers, unless it hangs or panics.
async fn bounded<T>(limit: Duration, asked: impl Future<Output = T>) -> Result<T, String> {
    match tokio::time::timeout(limit, AssertUnwindSafe(asked).catch_unwind()).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(_)) => Err("the driver panicked".to_owned()),
        Err(_) => Err("it took too long".to_owned()),
    }
}
