//! One page of the fake browser. A script's wait ends when its document does (closed, crashed, navigated away),
//! so nothing here can outlive its page. The lock is never held across an await.

mod life;
mod perform;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, Weak};

use async_trait::async_trait;
use serde_json::Value;
use tokio::sync::{mpsc, watch};

use super::cookies::CookieJar;
use super::form::{Effect, Form};
use super::history::History;
use super::script::Script;
use super::sight::Seen;
use super::storage::Storage;
use super::visit::{self, Visit};
use super::{FakeContext, locked, reading};
use crate::{
    Acted, Action, Area, Article, Awaited, Changes, Chooser, Condition, Dialog, DialogAnswer, DriverError, Element, Handle, Image,
    ImageFormat, LogEntry, Navigation, Orientation, Page, PageEvent, PageLog, PageRecord, PageSeed, Reading, Request, Result, Selector,
    Shot, Sight, Snapshot, StorageArea, StorageItem, Traffic,
};
use life::{Life, browser_gone};
use perform::OpenDialog;

/// One white dot, as PNG and as JPEG: a fake page has nothing to see.
const PNG_DOT: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4//8/AAX+Av4N70a4AAAAAElFTkSuQmCC";
const JPEG_DOT: &str = "/9j/4AAQSkZJRgABAQEASABIAAD/2wBDAP//////////////////////////////////////////////////////////////////////////////////////wAALCAABAAEBAREA/8QAFAABAAAAAAAAAAAAAAAAAAAAA//EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AN//Z";

/// A PDF without pages.
const PDF_EMPTY: &str = "JVBERi0xLjQKMSAwIG9iajw8L1R5cGUvQ2F0YWxvZy9QYWdlcyAyIDAgUj4+ZW5kb2JqCjIgMCBvYmo8PC9UeXBlL1BhZ2VzL0tpZHNbXS9Db3VudCAwPj5lbmRvYmoKdHJhaWxlcjw8L1Jvb3QgMSAwIFI+PgolJUVPRgo=";

/// How many events wait for the listener; beyond it they are dropped, since a page cannot wait for its watcher.
const EVENT_QUEUE: usize = 64;

#[derive(Debug)]
pub(super) struct FakePage {
    handle: Handle,
    pub(super) context: Weak<FakeContext>,
    cookies: Arc<CookieJar>,
    pub(super) session_storage: Storage,
    /// Also says, without another value, that the document changed.
    life: watch::Sender<Life>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    history: History,
    documents: u64,
    count: u64,
    /// As a script set it, and as it was when somebody last looked or asked.
    title: Option<String>,
    title_told: Option<String>,
    /// What scripts added to the document.
    added: String,
    form: Form,
    log: PageLog,
    traffic: Traffic,
    seen: Seen,
    dialog: Option<OpenDialog>,
    /// How many the document has opened.
    dialogs: u64,
    chooser: Option<Chooser>,
    /// How many pages the last script opened.
    opened: u64,
    /// A function that somebody waits for, and what it gave last.
    function_gave: Option<(String, String)>,
    /// `None` once the page is closed: the listener hears the end of its channel.
    events: Option<mpsc::Sender<PageEvent>>,
    /// What happens before the first listener comes waits here for it.
    unheard: Option<mpsc::Receiver<PageEvent>>,
}

impl FakePage {
    /// A page of a former daemon, at its last URL, or blank where that URL does not open.
    pub(super) fn restored(record: &PageRecord, context: Weak<FakeContext>, cookies: Arc<CookieJar>) -> Arc<Self> {
        let url = Visit::to(&record.url).map_or_else(|_| visit::BLANK.to_owned(), |visit| visit.url);
        Self::at(record.handle.clone(), url, context, cookies)
    }

    pub(super) fn at(handle: Handle, url: String, context: Weak<FakeContext>, cookies: Arc<CookieJar>) -> Arc<Self> {
        let (events, unheard) = mpsc::channel(EVENT_QUEUE);
        let state = State {
            history: History::starting_at(url),
            documents: 0,
            count: 0,
            title: None,
            title_told: None,
            added: String::new(),
            form: Form::default(),
            log: PageLog::default(),
            traffic: Traffic::default(),
            seen: Seen::default(),
            dialog: None,
            dialogs: 0,
            chooser: None,
            opened: 0,
            function_gave: None,
            events: Some(events),
            unheard: Some(unheard),
        };
        Arc::new(Self {
            handle,
            context,
            cookies,
            session_storage: Storage::default(),
            life: watch::Sender::new(Life::Document(0)),
            state: Mutex::new(state),
        })
    }

    /// The document that was asked for is there.
    fn arrive(&self, to: Navigation<'_>, visit: Visit) -> Result<()> {
        let mut state = locked(&self.state);
        if self.is_closed() {
            return Err(if *self.life.borrow() == Life::Lost { browser_gone() } else { DriverError::PageGone });
        }
        state.history.go(if matches!(to, Navigation::To(_)) { Navigation::To(&visit.url) } else { to })?;
        (state.dialog, state.dialogs) = (None, 0);
        (state.title, state.title_told) = (None, None);
        state.added.clear();
        state.form = Form::default();
        state.chooser = None;
        state.documents += 1;
        state.log.document_left();
        let key = state.documents.to_string();
        let request = Request { method: "GET".into(), url: visit.url, kind: "document".into(), status: Some(200), ..Request::default() };
        state.traffic.begin(&key, request);
        self.life.send_replace(Life::Document(state.documents));
        Ok(())
    }

    /// Never, for a page that waits for something.
    async fn at_rest(&self) -> Result<()> {
        let document = self.document()?;
        match self.waits_for() {
            None => Ok(()),
            Some(_) => Err(self.end_of(document).await),
        }
    }

    fn shown(&self) -> String {
        format!("The fake page at {}. {}", self.url(), locked(&self.state).added).trim_end().to_owned()
    }

    fn is_as(&self, awaited: &Awaited) -> bool {
        let shows = |text: &String| self.shown().to_lowercase().contains(&text.to_lowercase());
        let has = |selector: &String| Selector::parse(selector).is_ok_and(|selector| self.has(&selector));
        awaited.lacks.are(&[
            (Condition::Selector, !awaited.selector.as_ref().is_none_or(has)),
            (Condition::Text, !awaited.text.as_ref().is_none_or(shows)),
            (Condition::Gone, awaited.gone.as_ref().is_some_and(shows)),
            (Condition::Url, !awaited.url.as_ref().is_none_or(|url| url.matches(&self.url()))),
        ]);
        awaited.lacks.now().is_empty()
    }

    /// Its network is always idle; a script is asked again whenever the page changes.
    async fn holds(&self, function: Option<&str>) -> Result<bool> {
        let Some(function) = function else { return Ok(true) };
        let value = self.evaluate(function).await?;
        locked(&self.state).function_gave = Some((function.to_owned(), value.to_string()));
        Ok(!matches!(value, Value::Null | Value::Bool(false)) && value != 0 && value != "")
    }

    fn has(&self, selector: &Selector) -> bool {
        let state = locked(&self.state);
        state.form.shows(state.documents, selector).unwrap_or_default()
    }

    fn kept(&self, area: StorageArea) -> &Storage {
        match area {
            StorageArea::Local => &self.cookies.storage,
            StorageArea::Session => &self.session_storage,
        }
    }
}

#[async_trait]
impl Page for FakePage {
    fn handle(&self) -> &Handle {
        &self.handle
    }

    fn url(&self) -> String {
        locked(&self.state).history.url().to_owned()
    }

    fn is_crashed(&self) -> bool {
        *self.life.borrow() == Life::Crashed
    }

    fn title(&self) -> String {
        let state = locked(&self.state);
        state.title_told.clone().unwrap_or_else(|| visit::title(state.history.url()))
    }

    async fn refresh_title(&self) {
        locked(&self.state).look_at_title();
    }

    async fn navigate(&self, to: Navigation<'_>) -> Result<()> {
        match self.document() {
            Ok(_) | Err(DriverError::PageCrashed) => {}
            Err(gone) => return Err(gone),
        }
        self.not_frozen()?;
        let visit = Visit::to(locked(&self.state).history.target(to)?)?;
        if visit::is_download(&visit.url) {
            self.context.upgrade().map_or(Ok(()), |context| context.world.download(&visit.url))?;
            return Err(DriverError::BecameDownload(visit.url));
        }
        if !visit.delay.is_zero() {
            tokio::select! {
                biased;
                () = self.closed() => {}
                () = tokio::time::sleep(visit.delay) => {}
            }
        }
        self.filled(&visit.url).await;
        let alert = visit.alert.clone();
        self.arrive(to, visit)?;
        match alert {
            Some(text) => self.perform(Script::Ask { kind: "alert", text }).await.map(drop),
            None => self.at_rest().await,
        }
    }

    async fn evaluate(&self, script: &str) -> Result<Value> {
        let document = self.document()?;
        self.not_frozen()?;
        let script = Script::parse(script)?;
        locked(&self.state).opened = 0;
        tokio::select! {
            biased;
            ended = self.end_of(document) => Err(ended),
            value = self.perform(script) => value,
        }
    }

    fn opened(&self) -> u64 {
        locked(&self.state).opened
    }

    async fn snapshot(&self, sight: &Sight) -> Result<Snapshot> {
        self.document()?;
        self.not_frozen()?;
        let mut state = locked(&self.state);
        let (url, title, added) = (state.history.url().to_owned(), state.look_at_title(), state.added.clone());
        state.seen.look(&url, &title, &added, sight)
    }

    async fn elements(&self) -> Result<(Vec<Element>, u64)> {
        self.document()?;
        self.not_frozen()?;
        let link = Element { text: self.url(), css_selector: "a".into(), role: "link".into(), tag: "a".into(), frame: None };
        Ok((vec![link], 0))
    }

    async fn changes(&self, _budget: u32) -> Result<Changes> {
        self.document()?;
        self.not_frozen()?;
        self.at_rest().await?;
        let mut state = locked(&self.state);
        let (url, title, added) = (state.history.url().to_owned(), state.look_at_title(), state.added.clone());
        let (errors, more_errors) = state.log.take_errors();
        Ok(Changes { errors, more_errors, ..state.seen.compare(&url, &title, &added) })
    }

    async fn read(&self, reading: &Reading) -> Result<Article> {
        self.document()?;
        self.not_frozen()?;
        reading::read(&self.shown(), reading)
    }

    async fn text(&self) -> Result<String> {
        self.document()?;
        self.not_frozen()?;
        Ok(self.shown())
    }

    async fn wait_for(&self, awaited: &Awaited) -> Result<()> {
        let mut life = self.life.subscribe();
        loop {
            life.borrow_and_update();
            self.document()?;
            self.not_frozen()?;
            if self.is_as(awaited) && self.holds(awaited.function.as_deref()).await? {
                return Ok(());
            }
            if awaited.lacks.now().is_empty() {
                awaited.lacks.are(&[(Condition::Function, true)]);
            }
            // An error means that the sender is gone, and with it the page.
            life.changed().await.map_err(|_| DriverError::PageGone)?;
        }
    }

    fn last_given(&self, function: &str) -> Option<String> {
        locked(&self.state).function_gave.as_ref().filter(|(asked, _)| asked == function).map(|(_, given)| given.clone())
    }

    async fn storage(&self, area: StorageArea) -> Result<Vec<StorageItem>> {
        self.document()?;
        self.kept(area).items(&self.url())
    }

    async fn set_storage(&self, area: StorageArea, items: &[(String, Option<String>)]) -> Result<()> {
        self.document()?;
        self.kept(area).set(&self.url(), items)
    }

    async fn clear_storage(&self, area: StorageArea) -> Result<()> {
        self.document()?;
        self.kept(area).clear(&self.url())
    }

    async fn seed(&self) -> Result<PageSeed> {
        self.document()?;
        Ok(PageSeed { url: self.url(), session_storage: self.session_storage.all() })
    }

    async fn answer_dialog(&self, answer: DialogAnswer) -> Result<Dialog> {
        self.document()?;
        let open = locked(&self.state).dialog.take().ok_or(DriverError::NoDialog)?;
        // Nobody waits any more when the call that opened it was cancelled; the dialog is answered all the same.
        let _ = open.answer.send(answer);
        Ok(open.dialog)
    }

    fn dialog(&self) -> Option<Dialog> {
        locked(&self.state).dialog.as_ref().map(|open| open.dialog.clone())
    }

    fn dialogs(&self) -> u64 {
        locked(&self.state).dialogs
    }

    /// Nothing here forgets a dialog; it is written down as a browser's driver would.
    fn memento(&self) -> Option<String> {
        self.dialog().map(|dialog| dialog.text)
    }

    async fn act(&self, action: &Action) -> Result<Acted> {
        self.document()?;
        self.not_frozen()?;
        let (acted, effect) = {
            let mut state = locked(&self.state);
            let document = state.documents;
            state.log.act_begins();
            state.form.act(document, &action.verb)?
        };
        match effect {
            Effect::Nothing => {}
            Effect::Say(text) => {
                let mut state = locked(&self.state);
                let blank = if state.added.is_empty() { "" } else { " " };
                state.added.push_str(&format!("{blank}{text}"));
                self.life.send_modify(|_| ());
            }
            Effect::GoTo(path) => {
                let url = self.url();
                let origin = url.split('/').take(3).collect::<Vec<_>>().join("/");
                self.navigate(Navigation::To(&format!("{origin}{path}"))).await?;
            }
        }
        Ok(acted)
    }

    async fn upload(&self, files: &[PathBuf], selector: Option<&Selector>) -> Result<Option<String>> {
        self.document()?;
        self.not_frozen()?;
        if let Some(selector) = selector {
            if self.has(selector) {
                return Err(DriverError::FilesRefused(format!("{selector} is no file input.")));
            }
            return Err(missing(selector));
        }
        match locked(&self.state).chooser.take().ok_or(DriverError::NoChooser)? {
            Chooser::One if files.len() > 1 => Err(DriverError::FilesRefused("It takes one file.".into())),
            Chooser::One | Chooser::Many => Ok(None),
        }
    }

    async fn screenshot(&self, shot: &Shot) -> Result<Image> {
        self.document()?;
        self.not_frozen()?;
        if let Area::Element(selector) = &shot.area
            && !self.has(selector)
        {
            return Err(missing(selector));
        }
        let base64 = match shot.format {
            ImageFormat::Png => PNG_DOT,
            ImageFormat::Jpeg { .. } => JPEG_DOT,
        };
        Ok(Image { base64: base64.to_owned(), format: shot.format, width: 1, height: 1, shown: (1, 1), whole: (1, 1) })
    }

    async fn pdf(&self, _orientation: Orientation) -> Result<String> {
        self.document()?;
        self.not_frozen()?;
        Ok(PDF_EMPTY.to_owned())
    }

    fn requests(&self) -> (Vec<Request>, u64) {
        locked(&self.state).traffic.all()
    }

    fn waits_for(&self) -> Option<String> {
        visit::awaits(locked(&self.state).history.url())
    }

    fn take_log(&self) -> (Vec<LogEntry>, u64) {
        locked(&self.state).log.take()
    }

    fn untold_errors(&self) -> u64 {
        locked(&self.state).log.untold_errors()
    }

    async fn close(&self) -> Result<()> {
        self.end();
        Ok(())
    }

    fn events(&self) -> mpsc::Receiver<PageEvent> {
        let mut state = locked(&self.state);
        if let Some(unheard) = state.unheard.take() {
            return unheard;
        }
        let (sender, receiver) = mpsc::channel(EVENT_QUEUE);
        if state.events.is_some() {
            state.events = Some(sender);
        }
        receiver
    }
}

fn missing(selector: &Selector) -> DriverError {
    match selector.reference() {
        Some(_) => DriverError::StaleRef(selector.to_string()),
        None => DriverError::ElementNotFound { selector: selector.to_string(), near: Vec::new() },
    }
}

impl State {
    fn title(&self) -> String {
        self.title.clone().unwrap_or_else(|| visit::title(self.history.url()))
    }

    fn look_at_title(&mut self) -> String {
        self.title_told = self.title.clone();
        self.title()
    }

    fn tell(&self, event: PageEvent) {
        if let Some(events) = &self.events {
            // Full or unheard: dropped. Every call on the page says the same.
            let _ = events.try_send(event);
        }
    }
}
