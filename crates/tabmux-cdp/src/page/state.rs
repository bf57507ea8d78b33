//! What is known of a page without asking it: where it is, what it logged, which dialog is open, how far its
//! loading got. Written by the connection's reader, which must never wait; read by everybody else.

mod asked;
mod beyond;
mod hear;
mod progress;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde_json::value::RawValue;
use tabmux_driver::{Dialog, DriverError, LogEntry, PageEvent, PageLog, Request, Stage, Traffic};
use tokio::sync::{mpsc, watch};

use super::act::Reports;
use super::chooser::OpenChooser;
use super::frames::Frames;
use crate::CdpError;
use crate::context;
use asked::Asked;
use beyond::Beyond;
pub(super) use progress::{Life, Progress};

/// How many events wait for the listener; beyond it they are dropped, since the reader cannot wait for a watcher.
const EVENT_QUEUE: usize = 64;

#[derive(Debug)]
pub(crate) struct PageState {
    /// Chromium calls the main frame of a page as it calls its target.
    main_frame: String,
    progress: watch::Sender<Progress>,
    traffic_changed: watch::Sender<()>,
    inner: Mutex<Inner>,
    frames: Mutex<Frames>,
    frames_changed: watch::Sender<()>,
    reports: Reports,
}

#[derive(Debug)]
struct Inner {
    url: String,
    title: String,
    dialog: Option<OpenDialog>,
    chooser: Option<OpenChooser>,
    log: PageLog,
    traffic: Traffic,
    beyond: Beyond,
    act_began: ActBegan,
    /// Which document somebody saw last, and at which address.
    looked_at: Option<(u64, String)>,
    asked: Asked,
    /// The document that came before what its origin keeps.
    early: String,
    /// A function that somebody waits for, and what it gave last.
    function_gave: Option<(String, String)>,
    /// Why the document could not be reached, as a former daemon knew it.
    failed_before: Option<String>,
    /// `None` once the page is gone: the listener hears the end of its channel.
    events: Option<mpsc::Sender<PageEvent>>,
    /// What happens before the first listener comes waits here for it.
    unheard: Option<mpsc::Receiver<PageEvent>>,
}

/// How things were when somebody last began to act.
#[derive(Debug, Default)]
struct ActBegan {
    /// How many requests there had been.
    requests: u64,
    progress: Progress,
    url: String,
}

#[derive(Clone, Debug)]
pub(super) struct OpenDialog {
    pub(super) dialog: Dialog,
    pub(super) default_prompt: Option<String>,
    /// Which of the page's dialogs it is; the next one may open before the answer to this one is heard of.
    pub(super) number: u64,
}

impl Default for OpenDialog {
    /// One of which nothing is known.
    fn default() -> Self {
        Self { dialog: Dialog { kind: "dialog".into(), text: String::new() }, default_prompt: None, number: 0 }
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
            beyond: Beyond::default(),
            act_began: ActBegan::default(),
            looked_at: None,
            asked: Asked::default(),
            early: String::new(),
            function_gave: None,
            failed_before: None,
            events: Some(events),
            unheard: Some(unheard),
        };
        Self {
            main_frame: target.to_owned(),
            progress: watch::Sender::default(),
            traffic_changed: watch::Sender::default(),
            inner: Mutex::new(inner),
            frames: Mutex::default(),
            frames_changed: watch::Sender::default(),
            reports: Reports::default(),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn frames(&self) -> MutexGuard<'_, Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in what a session says of the worlds of its frames; whether the event was about them.
    pub(super) fn hear_frames(&self, session: &str, method: &str, params: &RawValue) -> bool {
        let heard = self.frames().hear(session, method, params);
        if heard {
            self.frames_changed.send_replace(());
        }
        heard
    }

    /// The session of a frame is over; also those of the frames in it, which are given.
    pub(super) fn lose_frames(&self, session: &str) -> Vec<String> {
        let within = self.frames().detached(session);
        self.lose_part(session);
        within.iter().for_each(|session| self.lose_part(session));
        self.frames_changed.send_replace(());
        within
    }

    /// Nobody tells what becomes of what a frame or a worker had asked for.
    fn lose_part(&self, session: &str) {
        self.lose_chooser(session);
        self.inner().traffic.over(session);
        self.traffic_changed.send_replace(());
    }

    fn lose_chooser(&self, session: &str) {
        let mut inner = self.inner();
        inner.chooser = inner.chooser.take().filter(|open| open.session != session);
    }

    /// Who hears when frames come and go.
    pub(super) fn watch_frames(&self) -> watch::Receiver<()> {
        self.frames_changed.subscribe()
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

    /// None of an error page: what the browser calls it is nobody's title.
    pub(super) fn title(&self) -> String {
        if self.progress.borrow().unreachable { String::new() } else { self.inner().title.clone() }
    }

    pub(super) fn has_title(&self, title: String) {
        self.inner().title = title;
    }

    pub(super) fn has_title_at(&self, url: &str, title: String) {
        let mut inner = self.inner();
        if inner.url == url {
            inner.title = title;
        }
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

    pub(super) fn dialogs(&self) -> u64 {
        let now = self.progress.borrow();
        now.dialogs - now.former_dialogs
    }

    pub(super) fn chooser(&self) -> Option<OpenChooser> {
        self.inner().chooser.clone()
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

    /// Notes that a document came before what its origin keeps; whether that is news.
    pub(super) fn is_early(&self, loader: &str) -> bool {
        let mut inner = self.inner();
        let news = inner.early != loader;
        loader.clone_into(&mut inner.early);
        news
    }

    pub(super) fn was_early(&self, loader: &str) -> bool {
        self.inner().early == loader
    }

    /// Does something about a document that came early, unless another one is asked for in its place; nobody can ask meanwhile.
    pub(super) fn while_early(&self, loader: &str, act: impl FnOnce()) {
        let inner = self.inner();
        if inner.early == loader {
            act();
        }
    }

    /// Another document is asked for, in place of one that came early.
    pub(super) fn goes_elsewhere(&self) {
        self.inner().early.clear();
    }

    pub(super) fn is_main_frame(&self, frame: &str) -> bool {
        self.main_frame == frame
    }

    /// Which document somebody saw last.
    pub(super) fn looked_commits(&self) -> Option<u64> {
        self.inner().looked_at.as_ref().map(|(commits, _)| *commits)
    }

    pub(super) fn take_errors(&self) -> (Vec<String>, u64) {
        self.inner().log.take_errors()
    }

    pub(super) fn untold_errors(&self) -> u64 {
        self.inner().log.untold_errors()
    }

    /// A script of the page was ended because of what it logged.
    pub(super) fn flood_ended(&self, why: &str) {
        self.inner().log.push_ours(why);
    }

    pub(super) fn take_log(&self) -> (Vec<LogEntry>, u64) {
        self.inner().log.take()
    }

    pub(super) fn function_gave(&self, given: Option<(String, String)>) {
        self.inner().function_gave = given;
    }

    pub(super) fn last_given(&self, function: &str) -> Option<String> {
        self.inner().function_gave.as_ref().filter(|(asked, _)| asked == function).map(|(_, given)| given.clone())
    }

    /// How long the network has been quiet, and who hears when that changes.
    pub(super) fn quiet_for(&self) -> Option<Duration> {
        self.inner().traffic.quiet_for()
    }

    /// Something is done to the page: what it asks for from here on comes of that.
    pub(super) fn act_begins(&self) {
        let progress = self.progress.borrow().clone();
        let mut inner = self.inner();
        inner.beyond.act_begins();
        inner.log.act_begins();
        inner.act_began = ActBegan { requests: inner.traffic.made(), progress, url: inner.url.clone() };
    }

    /// How far the page was when the last act began.
    pub(super) fn progress_before(&self) -> Progress {
        self.inner().act_began.progress.clone()
    }

    /// Whether the last act sent the page elsewhere and it stayed.
    pub(super) fn stayed(&self) -> bool {
        let now = self.progress.borrow().clone();
        let inner = self.inner();
        let began = &inner.act_began;
        !began.url.is_empty() && now.commits == began.progress.commits && now.fruitless > began.progress.fruitless
    }

    /// Whether something that came of the last act is still asked for.
    pub(super) fn awaits(&self, stage: Stage) -> bool {
        let inner = self.inner();
        inner.traffic.awaits(inner.act_began.requests, stage)
    }

    /// Until when an answer to what the last act sent over a socket may come.
    pub(super) fn awaits_socket(&self) -> Option<Instant> {
        self.inner().beyond.awaits()
    }

    /// Chromium calls the request for its script as it calls the worker.
    pub(super) fn worker_came(&self, session: &str, target: &str) {
        let mut inner = self.inner();
        inner.beyond.worker_came(session.to_owned());
        inner.traffic.end(target);
        drop(inner);
        self.traffic_changed.send_replace(());
    }

    pub(super) fn worker_went(&self, session: &str) {
        self.inner().beyond.worker_went(session);
        self.lose_part(session);
    }

    /// Their sessions.
    pub(super) fn workers(&self) -> Vec<String> {
        self.inner().beyond.workers()
    }

    pub(super) fn has_workers(&self) -> bool {
        self.inner().beyond.has_workers()
    }

    /// Whether the page is elsewhere since the last act began.
    pub(super) fn moved_by_act(&self) -> bool {
        let commits = self.progress.borrow().commits;
        let inner = self.inner();
        let began = &inner.act_began;
        // Without an address nobody has acted so far.
        !began.url.is_empty() && (began.progress.commits != commits || began.url != inner.url)
    }

    /// Where the last act sent the page and it could not go.
    pub(super) fn failed_to_go(&self) -> Option<String> {
        let why = self.unreachable()?;
        let commits = self.progress.borrow().commits;
        let inner = self.inner();
        (commits > inner.act_began.progress.commits).then(|| format!("{why} at {}", inner.url))
    }

    /// Why the page shows the browser's own error page, if it does. Its address is the one that could not be reached.
    pub(super) fn unreachable(&self) -> Option<String> {
        let loader = Some(self.progress.borrow()).filter(|now| now.unreachable).map(|now| now.loader.clone())?;
        let mut inner = self.inner();
        let why = inner.traffic.of(&loader).and_then(|request| request.failure.clone()).or_else(|| inner.failed_before.clone());
        Some(why.unwrap_or_else(|| "it does not answer".to_owned()))
    }

    /// How many pages it asked for since the last act began.
    pub(super) fn opened_by_act(&self) -> u64 {
        let now = self.progress.borrow().new_pages;
        now.saturating_sub(self.inner().act_began.progress.new_pages)
    }

    /// What the server said to the request for the document.
    pub(super) fn status(&self) -> Option<u16> {
        let loader = self.progress.borrow().loader.clone();
        self.inner().traffic.of(&loader).and_then(|request| request.status)
    }

    /// Whether the browser told of the request for this document when it was made.
    pub(super) fn heard_of(&self, loader: &str) -> bool {
        self.inner().traffic.of(loader).is_some()
    }

    pub(super) fn watch_traffic(&self) -> watch::Receiver<()> {
        self.traffic_changed.subscribe()
    }

    pub(super) fn requests(&self) -> (Vec<Request>, u64) {
        self.inner().traffic.all()
    }

    /// It was on its way elsewhere, which nobody wants any more. One that is held hears nothing of it.
    pub(super) fn called_off(&self) {
        if self.is_held() {
            return;
        }
        self.inner().traffic.called_off("document");
        self.progress.send_modify(|progress| progress.bound_for.clear());
    }

    /// Why its document broke off, and where.
    pub(super) fn broke_off(&self) -> Option<String> {
        let loader = Some(self.progress.borrow()).filter(|now| now.broke_off).map(|now| now.loader.clone())?;
        self.inner().traffic.of(&loader)?.failure.clone()
    }

    /// Where it is on its way to.
    pub(super) fn bound_for(&self) -> Option<String> {
        Some(self.progress.borrow()).filter(|now| now.underway && !now.bound_for.is_empty()).map(|now| now.bound_for.clone())
    }

    /// Whether what it is on its way to is there: its server has answered, or there is none to ask. Then only the document that it is leaving keeps
    /// it.
    pub(super) fn is_held(&self) -> bool {
        let Some(there) = self.bound_for() else { return false };
        let loader = self.progress.borrow().bound_loader.clone();
        match self.inner().traffic.of(&loader) {
            Some(request) => request.status.is_some() || request.failure.is_some(),
            None => !there.starts_with("http:") && !there.starts_with("https:"),
        }
    }

    pub(super) fn waits_for(&self) -> Option<String> {
        self.inner().traffic.outstanding().map(|request| request.url.clone())
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

    /// Whether it had just asked for a new page at this address when one came up; such a wish is fulfilled once.
    pub(crate) fn take_asked(&self, url: &str, came: Instant) -> bool {
        self.inner().asked.take(url, came)
    }

    pub(super) fn dialog_closed(&self) {
        self.inner().dialog = None;
    }

    /// This one is not open any more; another may be.
    pub(super) fn dialog_answered(&self, number: u64) {
        let mut inner = self.inner();
        inner.dialog = inner.dialog.take().filter(|open| open.number != number);
    }

    pub(super) fn is_crashed(&self) -> bool {
        self.progress.borrow().life == Life::Crashed
    }

    /// As a former daemon knew it. No news: whoever asks next is told.
    pub(super) fn restore(&self, dialog: Option<OpenDialog>, crashed: bool, unreachable: Option<String>) {
        let mut inner = self.inner();
        inner.dialog = dialog;
        self.progress.send_modify(|progress| {
            if crashed {
                progress.life = Life::Crashed;
            }
            progress.unreachable = unreachable.is_some();
        });
        inner.failed_before = unreachable;
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
