//! What is known of a page without asking it: where it is, what it logged, which dialog is open, how far its
//! loading got. Written by the connection's reader, which must never wait; read by everybody else.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tabmux_driver::{Dialog, DriverError, LogEntry, PageEvent, PageLog, Request, Traffic};
use tokio::sync::{mpsc, watch};

use super::act::Reports;
use super::chooser::OpenChooser;
use super::console;
use super::frames::Frames;
use super::traffic;
use crate::CdpError;
use crate::context;
use crate::event::read;
use crate::protocol::{Event, inspector, page, runtime};

/// How many events wait for the listener; beyond it they are dropped, since the reader cannot wait for a watcher.
const EVENT_QUEUE: usize = 64;

/// An event larger than this is noted, not decoded: a page writes as much as it likes.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// How many pages asked for are remembered, and for how long.
const MAX_ASKED: usize = 16;
const ASKED_LATELY: Duration = Duration::from_secs(3);

/// How many documents a page may have gone through before somebody looks who asked for the first of them.
const FORMER_DOCUMENTS: usize = 8;

#[derive(Debug)]
pub(crate) struct PageState {
    /// Chromium calls the main frame of a page as it calls its target.
    main_frame: String,
    progress: watch::Sender<Progress>,
    traffic_changed: watch::Sender<()>,
    inner: Mutex<Inner>,
    frames: Mutex<Frames>,
    reports: Reports,
}

/// How far the page is. Loader ids are Chromium's names for documents.
#[derive(Clone, Debug, Default)]
pub(super) struct Progress {
    /// Documents committed in the main frame.
    pub(super) commits: u64,
    /// Moves within a document (fragments, the history API).
    pub(super) moves: u64,
    pub(super) loader: String,
    /// The documents before it, the latest first.
    former: VecDeque<String>,
    pub(super) loaded: bool,
    /// Another document was asked for and is not there yet.
    pub(super) underway: bool,
    /// The document is Chromium's own error page.
    pub(super) unreachable: bool,
    pub(super) life: Life,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Life {
    #[default]
    Alive,
    Crashed,
    Gone(DriverError),
}

#[derive(Debug)]
struct Inner {
    url: String,
    title: String,
    dialog: Option<OpenDialog>,
    chooser: Option<OpenChooser>,
    log: PageLog,
    traffic: Traffic,
    /// Which document somebody saw last, and at which address.
    looked_at: Option<(u64, String)>,
    /// What it asked a new tab or window for, and when: such pages do not say who opened them (FACTS: ctrl-, middle- and shift-click).
    asked: VecDeque<(Instant, String)>,
    /// `None` once the page is gone: the listener hears the end of its channel.
    events: Option<mpsc::Sender<PageEvent>>,
    /// What happens before the first listener comes waits here for it.
    unheard: Option<mpsc::Receiver<PageEvent>>,
}

#[derive(Clone, Debug)]
pub(super) struct OpenDialog {
    pub(super) dialog: Dialog,
    pub(super) default_prompt: Option<String>,
}

impl Default for OpenDialog {
    /// One of which nothing is known.
    fn default() -> Self {
        Self { dialog: Dialog { kind: "dialog".into(), text: String::new() }, default_prompt: None }
    }
}

impl Progress {
    /// Whether the document is there, or was before it sent the page on.
    pub(super) fn has_shown(&self, loader: &str) -> bool {
        self.loader == loader || self.former.iter().any(|former| former == loader)
    }

    fn commit(&mut self, loader: String) {
        self.commits += 1;
        self.former.truncate(FORMER_DOCUMENTS - 1);
        self.former.push_front(std::mem::replace(&mut self.loader, loader));
    }
}

impl PageState {
    pub(crate) fn new(target: &str, url: String) -> Self {
        let (events, unheard) = mpsc::channel(EVENT_QUEUE);
        let inner = Inner {
            url,
            title: String::new(),
            dialog: None,
            chooser: None,
            log: PageLog::default(),
            traffic: Traffic::default(),
            looked_at: None,
            asked: VecDeque::new(),
            events: Some(events),
            unheard: Some(unheard),
        };
        Self {
            main_frame: target.to_owned(),
            progress: watch::Sender::default(),
            traffic_changed: watch::Sender::default(),
            inner: Mutex::new(inner),
            frames: Mutex::default(),
            reports: Reports::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn frames(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn reports(&self) -> &Reports {
        &self.reports
    }

    pub(super) fn url(&self) -> String {
        let url = self.inner().url.clone();
        // The mark of the context that made the page is nobody's business.
        if context::is_cradle(&url) { context::BLANK.into() } else { url }
    }

    /// Where the browser says the page is.
    pub(crate) fn is_at(&self, url: &str) {
        let mut inner = self.inner();
        if !url.is_empty() && inner.url != url {
            inner.url = url.to_owned();
            inner.title = String::new();
            drop(inner);
            // Whoever waits for an address looks again.
            self.progress.send_modify(|_| ());
        }
    }

    pub(super) fn title(&self) -> String {
        self.inner().title.clone()
    }

    /// What the browser's own list says of the current entry.
    pub(super) fn set_place(&self, url: String, title: String) {
        let mut inner = self.inner();
        inner.url = url;
        inner.title = title;
    }

    pub(super) fn dialog(&self) -> Option<OpenDialog> {
        self.inner().dialog.clone()
    }

    pub(super) fn chooser(&self) -> Option<OpenChooser> {
        self.inner().chooser
    }

    pub(super) fn chooser_answered(&self) {
        self.inner().chooser = None;
    }

    /// Somebody looks at the page as it is now; whether it is elsewhere than at the last look.
    pub(super) fn looked(&self) -> bool {
        let commits = self.progress.borrow().commits;
        let mut inner = self.inner();
        let now = (commits, inner.url.clone());
        inner.looked_at.replace(now.clone()).is_some_and(|before| before != now)
    }

    /// Which document somebody saw last.
    pub(super) fn looked_commits(&self) -> Option<u64> {
        self.inner().looked_at.as_ref().map(|(commits, _)| *commits)
    }

    pub(super) fn take_errors(&self) -> (Vec<String>, u64) {
        self.inner().log.take_errors()
    }

    pub(super) fn take_log(&self) -> (Vec<LogEntry>, u64) {
        self.inner().log.take()
    }

    /// How long the network has been quiet, and who hears when that changes.
    pub(super) fn quiet_for(&self) -> Option<Duration> {
        self.inner().traffic.quiet_for()
    }

    pub(super) fn watch_traffic(&self) -> watch::Receiver<()> {
        self.traffic_changed.subscribe()
    }

    pub(super) fn requests(&self) -> (Vec<Request>, u64) {
        self.inner().traffic.all()
    }

    pub(super) fn events(&self) -> mpsc::Receiver<PageEvent> {
        let mut inner = self.inner();
        if let Some(unheard) = inner.unheard.take() {
            return unheard;
        }
        let (sender, receiver) = mpsc::channel(EVENT_QUEUE);
        if inner.events.is_some() {
            inner.events = Some(sender);
        }
        receiver
    }

    pub(super) fn watch(&self) -> watch::Receiver<Progress> {
        self.progress.subscribe()
    }

    /// Whether a script can run now; if not, why.
    pub(super) fn usable(&self) -> Result<(), DriverError> {
        self.living()?;
        match self.dialog() {
            Some(OpenDialog { dialog: Dialog { kind, text }, .. }) => Err(DriverError::DialogOpen { kind, text }),
            None => Ok(()),
        }
    }

    pub(super) fn living(&self) -> Result<(), DriverError> {
        match &self.progress.borrow().life {
            Life::Alive => Ok(()),
            Life::Crashed => Err(DriverError::PageCrashed),
            Life::Gone(why) => Err(why.clone()),
        }
    }

    /// Whether it answers nothing for now: a dialog is open, or it crashed.
    pub(crate) fn is_stuck(&self) -> bool {
        self.usable().is_err()
    }

    pub(crate) fn is_gone(&self) -> bool {
        matches!(self.progress.borrow().life, Life::Gone(_))
    }

    /// The page ended: by our own hand (no news), by its own or a person's, or with its browser.
    pub(crate) fn end(&self, why: DriverError, news: Option<PageEvent>) {
        let mut inner = self.inner();
        inner.dialog = None;
        if let Some(event) = news {
            inner.tell(event);
        }
        inner.events = None;
        self.progress.send_if_modified(|progress| match progress.life {
            Life::Gone(_) => false,
            Life::Alive | Life::Crashed => {
                progress.life = Life::Gone(why);
                true
            }
        });
    }

    fn crashed(&self) {
        let mut inner = self.inner();
        inner.dialog = None;
        let first = self.progress.send_if_modified(|progress| {
            let alive = progress.life == Life::Alive;
            if alive {
                progress.life = Life::Crashed;
            }
            alive
        });
        if first {
            inner.tell(PageEvent::Crashed);
        }
    }

    pub(crate) fn hear(&self, method: &str, params: &RawValue) {
        if params.get().len() > MAX_EVENT_BYTES {
            if method == runtime::ConsoleAPICalled::METHOD || method == runtime::ExceptionThrown::METHOD {
                self.inner().log.push("warning", &format!("({} bytes were logged at once; too many to keep)", params.get().len()));
            }
            return;
        }
        match method {
            page::LifecycleEvent::METHOD => self.lifecycle(params),
            page::FrameNavigated::METHOD => self.navigated(params),
            page::FrameStartedNavigating::METHOD => self.started(params),
            page::FrameStoppedLoading::METHOD => self.stopped(params),
            page::NavigatedWithinDocument::METHOD => self.moved_within(params),
            page::FrameRequestedNavigation::METHOD => self.asked_for_page(params),
            page::JavascriptDialogOpening::METHOD => self.dialog_opening(params),
            page::JavascriptDialogClosed::METHOD => self.dialog_answered(),
            page::FileChooserOpened::METHOD => self.chooser_opened(params),
            inspector::TargetCrashed::METHOD => self.crashed(),
            inspector::TargetReloadedAfterCrash::METHOD => self.recovered(),
            _ => {
                if let Some((level, text)) = console::entry(method, params) {
                    self.inner().log.push(level, &text);
                } else {
                    traffic::note(&mut self.inner().traffic, method, params);
                    if method.starts_with("Network.") {
                        self.traffic_changed.send_replace(());
                    }
                }
            }
        }
    }

    fn lifecycle(&self, params: &RawValue) {
        // The most frequent event by far, and only one of its names matters.
        if !params.get().contains("\"load\"") {
            return;
        }
        let Some(event) = read::<page::LifecycleEvent>(params) else { return };
        if event.name != "load" || event.frame_id != self.main_frame {
            return;
        }
        self.progress.send_modify(|progress| {
            // Chromium leaves the news of a commit out when one navigation overtakes another; the load still says it.
            if progress.loader != event.loader_id {
                progress.commit(event.loader_id);
                progress.underway = false;
                progress.unreachable = false;
            }
            progress.loaded = true;
        });
    }

    fn navigated(&self, params: &RawValue) {
        let Some(event) = read::<page::FrameNavigated>(params) else { return };
        let frame = event.frame;
        if frame.parent_id.is_some() {
            return;
        }
        let unreachable = frame.unreachable_url.is_some();
        {
            let mut inner = self.inner();
            inner.url = frame.unreachable_url.unwrap_or_else(|| frame.url + &frame.url_fragment.unwrap_or_default());
            inner.title = String::new();
            inner.chooser = None;
            inner.traffic.moved_to(&frame.loader_id);
        }
        self.traffic_changed.send_replace(());
        self.recovered();
        self.progress.send_modify(|progress| {
            progress.commit(frame.loader_id);
            progress.underway = false;
            // A page from the back/forward cache is there at once and loads nothing.
            progress.loaded = event.kind == "BackForwardCacheRestore";
            progress.unreachable = unreachable;
        });
    }

    fn started(&self, params: &RawValue) {
        let Some(event) = read::<page::FrameStartedNavigating>(params).filter(|event| event.frame_id == self.main_frame) else { return };
        if !event.navigation_type.to_lowercase().contains("samedocument") {
            self.progress.send_modify(|progress| progress.underway = true);
        }
    }

    /// Also of one that came to nothing: a download, an empty answer.
    fn stopped(&self, params: &RawValue) {
        if read::<page::FrameStoppedLoading>(params).is_some_and(|event| event.frame_id == self.main_frame) {
            self.progress.send_modify(|progress| progress.underway = false);
        }
    }

    fn moved_within(&self, params: &RawValue) {
        let Some(event) = read::<page::NavigatedWithinDocument>(params).filter(|event| event.frame_id == self.main_frame) else { return };
        self.inner().url = event.url;
        self.progress.send_modify(|progress| progress.moves += 1);
    }

    fn asked_for_page(&self, params: &RawValue) {
        let Some(event) = read::<page::FrameRequestedNavigation>(params) else { return };
        if !matches!(event.disposition.as_str(), "newTab" | "newWindow") {
            return;
        }
        let mut inner = self.inner();
        if inner.asked.len() == MAX_ASKED {
            inner.asked.pop_front();
        }
        inner.asked.push_back((Instant::now(), event.url));
    }

    /// Whether it had just asked for a new page at this address when one came up; such a wish is fulfilled once.
    pub(crate) fn take_asked(&self, url: &str, came: Instant) -> bool {
        let mut inner = self.inner();
        inner.asked.retain(|(when, _)| came.saturating_duration_since(*when) < ASKED_LATELY);
        let found = inner.asked.iter().position(|(_, asked)| asked == url);
        found.is_some_and(|at| inner.asked.remove(at).is_some())
    }

    fn dialog_opening(&self, params: &RawValue) {
        let Some(event) = read::<page::JavascriptDialogOpening>(params) else { return };
        let dialog = Dialog { kind: event.kind, text: event.message };
        let mut inner = self.inner();
        inner.dialog = Some(OpenDialog { dialog: dialog.clone(), default_prompt: event.default_prompt });
        inner.tell(PageEvent::DialogOpened(dialog));
    }

    fn chooser_opened(&self, params: &RawValue) {
        let Some(open) = read(params).and_then(|event| OpenChooser::of(&event)) else { return };
        let mut inner = self.inner();
        inner.chooser = Some(open);
        inner.tell(PageEvent::ChooserOpened(open.chooser));
    }

    pub(super) fn dialog_answered(&self) {
        self.inner().dialog = None;
    }

    /// Another document is there: no dialog is open, and what crashed is back.
    fn recovered(&self) {
        self.dialog_answered();
        self.progress.send_if_modified(|progress| {
            let crashed = progress.life == Life::Crashed;
            if crashed {
                progress.life = Life::Alive;
            }
            crashed
        });
    }

    pub(super) fn is_crashed(&self) -> bool {
        self.progress.borrow().life == Life::Crashed
    }

    /// As a former daemon knew it. No news: whoever asks next is told.
    pub(super) fn restore(&self, dialog: Option<OpenDialog>, crashed: bool) {
        self.inner().dialog = dialog;
        if crashed {
            self.progress.send_modify(|progress| progress.life = Life::Crashed);
        }
    }

    /// The CDP session is over: the target is gone, or the whole browser.
    pub(crate) fn lost(&self, why: &CdpError) {
        match DriverError::from(why.clone()) {
            gone @ DriverError::BrowserGone(_) => self.end(gone, None),
            _ => self.end(DriverError::PageGone, Some(PageEvent::Closed)),
        }
    }
}

impl Inner {
    fn tell(&self, event: PageEvent) {
        if let Some(events) = &self.events {
            // Full or unheard: dropped. Every call on the page says the same.
            let _ = events.try_send(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Both documents may be there before the answer to `Page.navigate` is, which names the first.
    #[test]
    fn a_document_that_sent_the_page_on_at_once_was_shown() {
        let state = PageState::new("main", "about:blank".into());
        for loader in ["first", "second"] {
            let frame = json!({"frame": {"id": "main", "loaderId": loader, "url": "http://a.test/", "domainAndRegistry": "",
                "securityOrigin": "", "mimeType": "text/html"}, "type": "Navigation"});
            state.hear(page::FrameNavigated::METHOD, &RawValue::from_string(frame.to_string()).unwrap());
        }
        let progress = state.watch().borrow().clone();
        assert_eq!((progress.commits, progress.loader.as_str()), (2, "second"));
        assert!(progress.has_shown("first") && progress.has_shown("second") && !progress.has_shown("third"));
    }

    #[test]
    fn a_page_that_goes_on_for_ever_is_remembered_for_a_while_only() {
        let mut progress = Progress::default();
        (0..100).for_each(|number| progress.commit(number.to_string()));
        assert!(progress.has_shown("95") && !progress.has_shown("5"));
        assert_eq!(progress.former.len(), FORMER_DOCUMENTS);
    }
}
