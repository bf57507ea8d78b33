//! One page of Chromium: a target, the CDP session that drives it, and what its events told.

mod act;
mod again;
mod answers;
mod arrival;
mod article;
mod changes;
mod child;
mod chooser;
mod closed;
mod console;
mod ears;
mod elements;
mod embedded;
mod emulation;
mod evaluate;
mod flood;
mod frames;
mod given_up;
mod hidden;
mod memento;
mod memory;
mod navigate;
mod quiet;
mod read;
mod requests;
mod script;
mod seed;
mod shot;
mod sight;
mod state;
mod storage;
mod traffic;
mod underway;
mod value;
mod wait;
mod world;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use futures::future::BoxFuture;
use serde_json::Value;
use tabmux_driver::{
    Acted, Action, Article, Awaited, Certificates, Changes, Dialog, DialogAnswer, DriverError, Element, Emulation, HOUSEKEEPING, Handle,
    Image, LogEntry, Navigation, Orientation, Page, PageEvent, PageSeed, Reading, Request, Result, Selector, Shot, Sight, Snapshot,
    StorageArea, StorageItem,
};
use tokio::sync::mpsc;

use crate::CdpError;
use crate::connection::Connection;
use crate::protocol::{Command, emulation as emulated, inspector, log, network, page, runtime, security, target};
use crate::world::World;

use act::LyingInWait;
pub(crate) use console::thrown;
use ears::Ears;
use emulation::{Eyes, Whose};
use flood::Flood;
use given_up::{Freed, GivenUp};
pub(crate) use memento::Memento;
use requests::Waiting;
pub(crate) use state::PageState;
use state::{Life, Progress};
use underway::Underway;

/// How many bytes of answers Chromium keeps for each page, so that they can be looked at afterwards.
const KEPT_BODIES: i64 = 10 * 1024 * 1024;

/// How long a page that came up by itself may take to answer before it counts as stuck. Who clicked waits for it as long.
const STUCK: Duration = Duration::from_millis(500);

/// A page that only the browser has answered for, and what comes when it answers itself.
pub(crate) type Met = (Arc<CdpPage>, BoxFuture<'static, Result<()>>);

/// When a page runs its first script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begins {
    Already,
    AtOurWord,
}

#[derive(Debug)]
pub(crate) struct CdpPage {
    handle: Handle,
    /// Chromium's name for this attachment; it never leaves this room.
    session: String,
    connection: Connection,
    state: Arc<PageState>,
    world: Arc<World>,
    /// Held while a script that was given up is ended.
    freeing: Arc<tokio::sync::Mutex<Freed>>,
    /// As it was when somebody last looked.
    heap: Mutex<Option<memory::Heap>>,
    /// Where somebody reads.
    bookmark: Mutex<article::Bookmark>,
    /// Its frames have worlds of ours.
    awake: tokio::sync::OnceCell<()>,
}

impl CdpPage {
    /// Attaches to a target and begins to listen. Nothing the page says from here on is missed.
    pub(crate) async fn attach(connection: &Connection, target: &str, url: String, world: &Arc<World>) -> Result<Arc<Self>> {
        let (page, prepared) = Self::meet(connection, target, url, world).await?;
        tokio::time::timeout(HOUSEKEEPING, prepared).await.map_err(|_| CdpError::Late { method: "Page.enable" })??;
        Ok(page)
    }

    /// The same, but only the browser has answered: the page itself may be stuck. Everything it is to hear is on its way.
    pub(crate) async fn meet(connection: &Connection, target: &str, url: String, world: &Arc<World>) -> Result<Met> {
        let attach = target::AttachToTarget { target_id: target.to_owned(), flatten: Some(true) };
        let session = connection.call_in(None, &attach, HOUSEKEEPING).await?.session_id;
        let state = Arc::new(PageState::new(target, url));
        let page = Self::listening(connection, target, session, state, world);
        let prepared = Box::pin(page.prepare(Begins::Already));
        Ok((page, prepared))
    }

    /// The browser attached us to a page that waits for our word to begin. It has the word, behind all that it is to hear before it. Called by the
    /// reader: nothing is waited for.
    pub(crate) fn let_begin(connection: &Connection, session: String, target: &str, world: &Arc<World>) -> Met {
        let state = Arc::new(PageState::new(target, "about:blank".into()));
        let page = Self::listening(connection, target, session, state, world);
        let prepared = Box::pin(page.prepare(Begins::AtOurWord));
        (page, prepared)
    }

    /// Waits until a page that came up by itself is prepared, but not for one that a dialog or a busy script keeps from answering: that one is
    /// prepared whenever it goes on, and is a page until then too.
    pub(crate) async fn prepared_or_stuck(&self, mut prepared: BoxFuture<'static, Result<()>>) -> Result<()> {
        let mut progress = self.state.watch();
        let asks = progress.wait_for(|now| now.dialogs > 0);
        tokio::select! {
            biased;
            done = &mut prepared => return done,
            _ = asks => {}
            () = tokio::time::sleep(STUCK) => {}
        }
        let target = self.handle.0.clone();
        // Ends with the page.
        tokio::spawn(async move {
            if let Err(error) = prepared.await {
                tracing::debug!(%error, target, "a page that was stuck is not prepared");
            }
        });
        Ok(())
    }

    /// One that waits for the word of a former daemon begins. Where it does not wait, this is nothing.
    pub(crate) fn give_word(&self) {
        drop(self.connection.send(Some(&self.session), &runtime::RunIfWaitingForDebugger::default()));
    }

    /// Comes when a page that was let begin has loaded, or asks something; not much later than now, where its server is slow. Who is told of it
    /// sooner would speak to a document that is about to go, or to half of one.
    pub(crate) async fn has_begun(&self) {
        let mut progress = self.state.watch();
        let begun = |now: &Progress| now.loaded || now.fruitless > 0 || now.dialogs > 0 || now.life != Life::Alive;
        // Gone: whoever takes it in finds that out.
        let _ = tokio::time::timeout(STUCK, progress.wait_for(begun)).await;
    }

    /// Goes on with the session a former daemon had. Everything is set up in it and the page itself is not asked, so one that
    /// is stuck behind a dialog or in a loop is found like any other.
    pub(crate) async fn resume(connection: &Connection, target: &str, memento: Memento, world: &Arc<World>) -> Result<Arc<Self>> {
        let asked = target::GetTargetInfo::default();
        let info = connection.call_in(Some(memento.session()), &asked, HOUSEKEEPING).await?.target_info;
        if info.target_id != target {
            return Err(DriverError::PageGone);
        }
        let state = Arc::new(PageState::new(target, info.url.clone()));
        state.set_place(info.url, info.title);
        let session = memento.restore(&state);
        let page = Self::listening(connection, target, session, state, world);
        page.let_wait_again().await;
        page.let_scripts_run();
        page.find_frames_again();
        Ok(page)
    }

    /// What a former daemon was attached to is let go, and told of anew. Nobody waits for it.
    fn find_frames_again(&self) {
        // Who lets all go may not say which.
        let let_go = target::SetAutoAttach { auto_attach: false, filter: None, ..attach_frames() };
        drop(self.connection.send(Some(&self.session), &let_go));
        drop(self.connection.send(Some(&self.session), &attach_frames()));
    }

    fn listening(connection: &Connection, target: &str, session: String, state: Arc<PageState>, world: &Arc<World>) -> Arc<Self> {
        let (handle, freeing) = (Handle(target.to_owned()), Arc::default());
        let flood = Flood::new(Arc::clone(&freeing));
        let ears = Ears::new(Arc::clone(&state), Arc::clone(world), connection.downgrade(), session.clone(), flood);
        connection.listen(&session, Arc::new(ears));
        state.frames().number_with(&world.next_ref);
        let (heap, bookmark, awake) = (Mutex::default(), Mutex::default(), tokio::sync::OnceCell::new());
        let (connection, world) = (connection.clone(), Arc::clone(world));
        Arc::new(Self { handle, session, connection, state, world, freeing, heap, bookmark, awake })
    }

    /// Asks where the page is, for one that was on its way before anybody listened.
    pub(crate) async fn catch_up(&self) -> Result<()> {
        let asked = target::GetTargetInfo { target_id: Some(self.handle.0.clone()) };
        let info = self.connection.call_in(None, &asked, HOUSEKEEPING).await?.target_info;
        self.state.is_at(&info.url);
        self.look_for_early_document();
        Ok(())
    }

    pub(crate) fn state(&self) -> &Arc<PageState> {
        &self.state
    }

    pub(crate) fn session(&self) -> &str {
        &self.session
    }

    /// All at once, and queued by now; the answers are waited for together.
    fn prepare(&self, begins: Begins) -> impl Future<Output = Result<()>> + Send + use<> {
        let session = Some(self.session.as_str());
        let connection = &self.connection;
        let lifecycle = page::SetLifecycleEventsEnabled { enabled: true };
        let focus = emulated::SetFocusEmulationEnabled { enabled: true };
        let clipboard = self.world.clipboard.hands();
        let enabled = futures::future::join4(
            connection.send(session, &page::Enable::default()),
            connection.send(session, &lifecycle),
            connection.send(session, &runtime::Enable::default()),
            connection.send(session, &log::Enable::default()),
        );
        let enabled_too =
            futures::future::join(connection.send(session, &inspector::Enable::default()), connection.send(session, &hear_requests()));
        let guarded = futures::future::join4(
            connection.send(session, &clipboard.0),
            connection.send(session, &clipboard.1),
            connection.send(session, &keep_choosers()),
            connection.send(session, &attach_frames()),
        );
        let shown = self.show_all();
        if begins == Begins::AtOurWord {
            // Whether they arrive shows in the events.
            drop(connection.send(session, &focus));
            self.give_word();
        }
        let (connection, session) = (connection.clone(), self.session.clone());
        async move {
            let ((enabled, ..), _, (_, script, ..), shown) = futures::join!(enabled, enabled_too, guarded, shown);
            enabled?;
            script?;
            // Only now: headless-shell crashes the opener of a popup that is on its way into another process when it hears this among the others.
            // Nobody waits for the answer; it comes before whatever the page is asked next.
            if begins == Begins::Already {
                drop(connection.send(Some(&session), &focus));
            }
            shown
        }
    }

    /// What a page is made to see from its beginning.
    fn show_all(&self) -> impl Future<Output = Result<()>> + Send + use<> {
        let trusting = (self.world.certificates == Certificates::Ignored)
            .then(|| self.connection.send(Some(&self.session), &security::SetIgnoreCertificateErrors { ignore: true }));
        let mut watching = Vec::new();
        let waiting = Waiting::of(&self.world, &Emulation::default());
        if waiting != Waiting::None {
            let eyes = Eyes { connection: &self.connection, session: &self.session, whose: Whose::Page };
            requests::let_wait(&eyes, waiting, &mut watching);
        }
        let shown = self.show(&self.world.emulation(), &Emulation::default());
        for page in self.world.to_draw(&self.session) {
            // Queued by now; refused, that page is gone.
            drop(self.connection.send(Some(&page), &tiny_screencast()));
        }
        async move {
            if let Some(trusting) = trusting {
                trusting.await?;
            }
            futures::future::try_join_all(watching).await?;
            match shown.await {
                // It was taken by the pages that were there when it was asked for.
                Err(DriverError::EmulationRefused(what)) => tracing::debug!(what, "a new page does not take what others took"),
                other => other?,
            }
            Ok(())
        }
    }

    async fn call<C: Command>(&self, command: &C) -> std::result::Result<C::Reply, CdpError> {
        self.call_in(&self.session, command).await
    }

    async fn call_in<C: Command>(&self, session: &str, command: &C) -> std::result::Result<C::Reply, CdpError> {
        self.unless_crashed(|| self.connection.send(Some(session), command)).await
    }

    /// A reply that is longer is not read.
    async fn call_within<C: Command>(&self, command: &C, most: usize) -> std::result::Result<C::Reply, CdpError> {
        self.unless_crashed(|| self.connection.send_within(Some(&self.session), command, most)).await
    }

    /// Chromium leaves what a crashing renderer was asked unanswered, so a crash ends the call here.
    async fn unless_crashed<R, F>(&self, send: impl FnOnce() -> F) -> std::result::Result<R, CdpError>
    where
        F: Future<Output = std::result::Result<R, CdpError>>,
    {
        let mut progress = self.state.watch();
        let alive = progress.borrow().life == Life::Alive;
        let reply = send();
        if !alive {
            return reply.await;
        }
        tokio::select! {
            biased;
            reply = reply => reply,
            Ok(_) = progress.wait_for(|now| now.life == Life::Crashed) => Err(CdpError::Crashed),
        }
    }
}

#[async_trait]
impl Page for CdpPage {
    fn handle(&self) -> &Handle {
        &self.handle
    }

    fn url(&self) -> String {
        self.state.url()
    }

    fn title(&self) -> String {
        self.state.title()
    }

    async fn refresh_title(&self) {
        // Late or gone: what is known of it stands.
        let _ = tokio::time::timeout(HOUSEKEEPING, self.read_title()).await;
    }

    fn status(&self) -> Option<u16> {
        self.state.status()
    }

    fn unreachable(&self) -> Option<String> {
        self.state.unreachable()
    }

    fn is_crashed(&self) -> bool {
        self.state.is_crashed()
    }

    async fn navigate(&self, to: Navigation<'_>) -> Result<()> {
        match self.state.usable() {
            // Going somewhere is what brings a crashed page back.
            Ok(()) | Err(DriverError::PageCrashed) => {
                let underway = Underway::begin(self);
                let gone = self.go(to).await;
                underway.over();
                self.world.origins.page_is_there();
                gone
            }
            Err(unusable) => Err(unusable),
        }
    }

    async fn evaluate(&self, script: &str) -> Result<Value> {
        self.state.usable()?;
        // A script that keeps the page busy would be taken for one that was given up, and ended in its place.
        drop(self.freeing.lock().await);
        self.state.act_begins();
        let given_up = GivenUp::unless_done(self);
        let value = self.run(script).await;
        given_up.done();
        self.after_script(script).await;
        value
    }

    async fn snapshot(&self, sight: &Sight) -> Result<Snapshot> {
        self.state.usable()?;
        let given_up = GivenUp::unless_done(self);
        let seen = self.look(sight).await;
        given_up.done();
        seen
    }

    async fn elements(&self) -> Result<(Vec<Element>, u64)> {
        self.state.usable()?;
        let given_up = GivenUp::unless_done(self);
        let found = self.visible_elements().await;
        given_up.done();
        found
    }

    async fn changes(&self, budget: u32) -> Result<Changes> {
        self.state.usable()?;
        self.compare(budget).await
    }

    async fn arrival(&self) -> Option<String> {
        self.arrived().await
    }

    fn opened(&self) -> u64 {
        self.state.opened_by_act()
    }

    async fn read(&self, reading: &Reading) -> Result<Article> {
        self.state.usable()?;
        let given_up = GivenUp::unless_done(self);
        let article = self.read_article(reading).await;
        given_up.done();
        article
    }

    async fn text(&self) -> Result<String> {
        self.state.usable()?;
        let given_up = GivenUp::unless_done(self);
        let text = self.whole_text().await;
        given_up.done();
        text
    }

    async fn wait_for(&self, awaited: &Awaited) -> Result<()> {
        self.state.usable()?;
        self.wait(awaited).await
    }

    fn last_given(&self, function: &str) -> Option<String> {
        self.state.last_given(function)
    }

    async fn storage(&self, area: StorageArea) -> Result<Vec<StorageItem>> {
        self.state.usable()?;
        self.read_storage(area).await
    }

    async fn set_storage(&self, area: StorageArea, items: &[(String, Option<String>)]) -> Result<()> {
        self.state.usable()?;
        self.put_storage(area, items).await
    }

    async fn clear_storage(&self, area: StorageArea) -> Result<()> {
        self.state.usable()?;
        self.empty_storage(area).await
    }

    async fn seed(&self) -> Result<PageSeed> {
        self.state.usable()?;
        self.read_seed().await
    }

    async fn answer_dialog(&self, answer: DialogAnswer) -> Result<Dialog> {
        self.state.living()?;
        self.state.act_begins();
        // One that opened or was answered in the last moment of a former daemon is not known; the browser knows.
        let open = self.state.dialog().unwrap_or_default();
        let leaves = open.dialog.kind == "beforeunload" && matches!(answer, DialogAnswer::Accept { .. });
        let mut progress = self.state.watch();
        let before = navigate::mark(&mut progress);
        let command = match answer {
            DialogAnswer::Accept { prompt } => page::HandleJavaScriptDialog { accept: true, prompt_text: prompt.or(open.default_prompt) },
            DialogAnswer::Dismiss => page::HandleJavaScriptDialog { accept: false, prompt_text: None },
        };
        match self.connection.call_in(Some(&self.session), &command, HOUSEKEEPING).await {
            Ok(_) => {
                self.state.dialog_answered(open.number);
                if leaves {
                    self.left(&mut progress, before).await;
                } else {
                    self.next_turn().await;
                }
                Ok(open.dialog)
            }
            Err(CdpError::Refused { .. }) => {
                self.state.dialog_answered(open.number);
                Err(DriverError::NoDialog)
            }
            Err(other) => Err(other.into()),
        }
    }

    fn dialog(&self) -> Option<Dialog> {
        self.state.dialog().map(|open| open.dialog)
    }

    fn dialogs(&self) -> u64 {
        self.state.dialogs()
    }

    async fn act(&self, action: &Action) -> Result<Acted> {
        self.state.usable()?;
        self.state.act_begins();
        let lying_in_wait = LyingInWait::unless_done(self);
        let acted = self.perform(action).await;
        lying_in_wait.done();
        acted
    }

    async fn upload(&self, files: &[PathBuf], selector: Option<&Selector>) -> Result<Option<String>> {
        self.state.usable()?;
        self.state.act_begins();
        self.give(files, selector).await
    }

    async fn screenshot(&self, shot: &Shot) -> Result<Image> {
        self.state.usable()?;
        self.picture(shot).await
    }

    async fn pdf(&self, orientation: Orientation) -> Result<String> {
        self.state.usable()?;
        self.print(orientation).await
    }

    fn requests(&self) -> (Vec<Request>, u64) {
        self.state.requests()
    }

    fn bound_for(&self) -> Option<String> {
        self.state.bound_for()
    }

    fn is_held(&self) -> bool {
        self.state.is_held()
    }

    fn waits_for(&self) -> Option<String> {
        self.state.waits_for()
    }

    fn take_log(&self) -> (Vec<LogEntry>, u64) {
        self.state.take_log()
    }

    fn untold_errors(&self) -> u64 {
        self.state.untold_errors()
    }

    async fn close(&self) -> Result<()> {
        self.state.end(DriverError::PageGone, None);
        self.connection.forget(&self.session);
        let close = target::CloseTarget { target_id: self.handle.0.clone() };
        match self.connection.call_in(None, &close, HOUSEKEEPING).await {
            // Refused: it is gone already, which is what was asked for.
            Ok(_) | Err(CdpError::Refused { .. }) => Ok(()),
            Err(other) => Err(other.into()),
        }
    }

    fn memento(&self) -> Option<String> {
        Some(Memento::of(&self.session, &self.state).to_string())
    }

    fn events(&self) -> mpsc::Receiver<PageEvent> {
        self.state.events()
    }
}

/// Gives every frame, those that are there and those to come, a world of ours, so that its name is heard before it is needed.
fn own_world() -> page::AddScriptToEvaluateOnNewDocument {
    page::AddScriptToEvaluateOnNewDocument {
        world_name: Some(frames::WORLD.to_owned()),
        run_immediately: Some(true),
        ..page::AddScriptToEvaluateOnNewDocument::default()
    }
}

fn hear_requests() -> network::Enable {
    network::Enable {
        max_total_buffer_size: Some(KEPT_BODIES),
        max_resource_buffer_size: Some(KEPT_BODIES / 2),
        ..network::Enable::default()
    }
}

/// No window is opened for files.
fn keep_choosers() -> page::SetInterceptFileChooserDialog {
    page::SetInterceptFileChooserDialog { enabled: true, ..page::SetInterceptFileChooserDialog::default() }
}

/// Frames that live in another process get a session of their own, and workers. Their scripts wait until they are let go, so that they see
/// from their first line on what they are to see: see `child.rs`.
pub(crate) fn attach_frames() -> target::SetAutoAttach {
    let filter = ["iframe", "worker"].map(|kind| target::FilterEntry { kind: Some(kind.into()), ..target::FilterEntry::default() });
    target::SetAutoAttach { auto_attach: true, wait_for_debugger_on_start: true, flatten: Some(true), filter: Some(filter.to_vec()) }
}

/// Of which one frame is sent and never acknowledged: it costs no time, and a tab in the background is drawn, its timers and
/// animations run, and pictures of it take no longer than of one in front (FACTS §1). Outlives navigations.
fn tiny_screencast() -> page::StartScreencast {
    page::StartScreencast {
        format: Some("jpeg".into()),
        quality: Some(10),
        max_width: Some(16),
        max_height: Some(16),
        every_nth_frame: Some(1000),
        ..page::StartScreencast::default()
    }
}
