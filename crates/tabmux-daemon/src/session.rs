//! One task per session. It makes the context when the first call needs it, runs the session's calls one at a
//! time in the order they were admitted, and closes everything when it is told to stop. No other code touches
//! the session's pages; calls beside the queue (answering a dialog) go through the same world.

mod away;
mod changes;
mod copying;
mod downloads;
mod filling;
mod lasting;
mod late;
mod moving;
mod news;
mod pages;
mod reach;
mod rest;
mod saving;
mod windows;
mod world;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use tabmux_core::{Admitted, CallId, Fault, Grant, Party, SessionId, TabId, Touch};
use tabmux_driver::{ContextSpec, Source};
use tabmux_tools::{Arguments, Common, Effect, Group, PageTool, Reply, Tool};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use crate::hub::Hub;
use crate::sources::Whence;
use crate::store::Safe;
pub(crate) use away::short_url;
pub(crate) use copying::Fork;
pub(crate) use downloads::sweep_downloads;
pub(crate) use lasting::Lasting;
pub(crate) use late::Limit;
pub(crate) use reach::Reach;
pub(crate) use saving::sweep_saved;
use world::World;

/// One admitted call on its way to a page. `admitted` is the permit: only the registry makes one.
pub(crate) struct Job {
    pub(crate) admitted: Admitted,
    /// What letting it in changed: a session that was handed over, a grant that is used up. On record before the call does anything.
    pub(crate) written: Safe,
    /// Where nothing but a grant admitted it.
    pub(crate) grant: Option<Arc<Grant>>,
    pub(crate) errand: Errand,
    pub(crate) common: Common,
    pub(crate) args: Arguments,
    pub(crate) turn: Turn,
    pub(crate) limit: Limit,
    /// The caller no longer waits.
    pub(crate) abort: CancellationToken,
    pub(crate) reply: oneshot::Sender<Result<Work, Fault>>,
}

/// Whether a call holds the session's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    Queue,
    Beside,
    /// Beside it too, and changing nothing: not even which tab is current, nor what has been told.
    Watching,
}

/// What is to be run on a page, and what is said after it went well.
#[derive(Clone, Copy)]
pub(crate) struct Errand {
    pub(crate) tool: &'static dyn PageTool,
    pub(crate) after: After,
    pub(crate) name: &'static str,
    pub(crate) touch: Touch,
}

/// What is said after a call that went well.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    Nothing,
    /// What changed on the page.
    Changes,
    /// That it sent the page where it could not go, if it did.
    Arrival,
}

impl After {
    /// Every tool that acts on a page. A script's own value is its answer, and who answers a dialog waits for nobody.
    pub(crate) fn of(tool: &Tool) -> Self {
        match tool.name {
            "evaluate" | "handle_dialog" => Self::Arrival,
            _ if tool.group == Group::Act && tool.effect == Effect::Write => Self::Changes,
            _ => Self::Nothing,
        }
    }
}

/// What a finished call gives back.
#[derive(Debug)]
pub(crate) struct Work {
    pub(crate) reply: Reply,
    pub(crate) tab: Option<TabId>,
    pub(crate) url: Option<String>,
}

/// How a session's world is made.
#[derive(Debug, Default)]
pub(crate) struct Making {
    pub(crate) spec: ContextSpec,
    /// What it begins with.
    pub(crate) whence: Option<Whence>,
    /// Or the session it is a whole copy of.
    pub(crate) fork: Option<Arc<Fork>>,
}

/// How the hub reaches a session's task.
#[derive(Clone, Debug)]
pub(crate) struct SessionHandle {
    mailbox: Arc<Mailbox>,
    world: Arc<World>,
    /// Close everything and end.
    pub(crate) stop: CancellationToken,
    /// Nothing of the session is left.
    pub(crate) done: CancellationToken,
}

/// Calls whose turn has not come. The registry bounds how many there can be; one whose caller gave up is taken out at once.
#[derive(Default)]
struct Mailbox {
    jobs: Mutex<VecDeque<Job>>,
    arrived: Notify,
}

impl std::fmt::Debug for Mailbox {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Mailbox").finish_non_exhaustive()
    }
}

impl Mailbox {
    fn jobs(&self) -> std::sync::MutexGuard<'_, VecDeque<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn next(&self) -> Job {
        loop {
            if let Some(job) = self.jobs().pop_front() {
                return job;
            }
            self.arrived.notified().await;
        }
    }
}

impl SessionHandle {
    pub(crate) fn start(hub: Arc<Hub>, id: SessionId, making: Making) -> Self {
        let stop = CancellationToken::new();
        let world = Arc::new(World::new(hub, id, making, stop.clone()));
        let handle = Self { mailbox: Arc::default(), world, stop, done: CancellationToken::new() };
        let task = handle.clone();
        tokio::spawn(async move {
            // A defect here must not leave a session that nobody serves: it ends, and says so.
            if tokio::spawn(task.clone().serve()).await.is_err() {
                let fault = task.world.hub.panicked();
                tracing::error!(session = %task.world.id, %fault, "the session's task failed");
                task.world.hub.decide_now(|registry, _| registry.lost(task.world.id));
            }
            task.world.close().await;
            task.world.hub.session_gone(task.world.id);
        });
        handle
    }

    /// Takes the call in. Called under the hub's lock, so that the order here is the order of admission.
    pub(crate) fn submit(&self, job: Job) {
        if job.turn == Turn::Queue {
            self.mailbox.jobs().push_back(job);
            self.mailbox.arrived.notify_one();
        } else {
            let world = Arc::clone(&self.world);
            tokio::spawn(async move { world.execute(job).await });
        }
    }

    /// Something its next reply says first.
    pub(crate) fn tell(&self, news: &str) {
        self.world.add_news(news.to_owned());
    }

    /// It is another's now, who reads this first.
    pub(crate) fn was_taken_over(&self, told: String) {
        self.world.was_taken_over(told);
    }

    /// Its browser is gone, and its former daemon told nobody.
    pub(crate) fn was_left_untold(&self) {
        self.world.was_left_untold();
    }

    /// What happened in the session since this one's last reply, for the one that goes out now.
    pub(crate) fn take_news(&self, party: Party) -> Vec<String> {
        self.world.take_news(party)
    }

    /// The same, which stays for that reply.
    pub(crate) fn news(&self) -> Vec<String> {
        self.world.news()
    }

    /// What it has not got of what it is a copy of, for the reply that says that it was opened.
    pub(crate) fn take_losses(&self) -> Vec<String> {
        self.world.take_losses()
    }

    /// Comes when it is known whether a former daemon's session lives on.
    pub(crate) async fn taken_up(&self) {
        tokio::select! {
            () = self.world.taken_up.cancelled() => {}
            () = self.stop.cancelled() => {}
        }
    }

    /// Where its current page is now.
    pub(crate) fn url(&self) -> Option<String> {
        let current = self.world.hub.look(|registry| registry.session(self.world.id).and_then(|session| session.current_tab));
        current.and_then(|tab| self.url_of(tab))
    }

    /// Where this page of it is now; unknown while a former daemon's has not been found again.
    pub(crate) fn url_of(&self, tab: TabId) -> Option<String> {
        self.world.page(tab).map(|page| page.url())
    }

    /// What its pages take; unknown while its context is being made.
    pub(crate) async fn memory_kb(&self) -> Option<u64> {
        let context = self.world.context.try_lock().ok()?.clone();
        context?.memory_kb().await
    }

    /// How what it lost with its browser can be had again, where it can.
    pub(crate) async fn way_back(&self) -> Option<String> {
        self.world.can_come_back().await.then(|| format!("Its browser was lost; {}", world::BRING_BACK))
    }

    /// Its context as something that others can begin with.
    pub(crate) async fn source(&self) -> Result<Arc<dyn Source>, Fault> {
        self.world.source().await
    }

    /// What it begins with.
    pub(crate) fn whence(&self) -> Option<&Whence> {
        self.world.whence.as_ref()
    }

    /// How its context is made.
    pub(crate) fn spec(&self) -> ContextSpec {
        self.world.spec()
    }

    /// How many calls wait here, and how many news.
    #[cfg(test)]
    pub(crate) fn waiting(&self) -> (usize, usize) {
        (self.mailbox.jobs().len(), self.world.news_waiting())
    }

    /// A page of this session, to let things happen to it.
    #[cfg(test)]
    pub(crate) fn page(&self, tab: TabId) -> Option<Arc<dyn tabmux_driver::Page>> {
        self.world.page(tab)
    }

    /// Whether the call's turn has not come.
    pub(crate) fn is_waiting(&self, call: CallId) -> bool {
        self.mailbox.jobs().iter().any(|job| job.admitted.call == call)
    }

    /// The caller no longer waits for this call.
    pub(crate) fn withdraw(&self, call: CallId) {
        self.mailbox.jobs().retain(|job| job.admitted.call != call);
    }

    /// The call that comes after a loss is told of it in place of an answer, once; any other is given back, to be run.
    async fn tell_loss(&self, job: Job) -> Option<Job> {
        let brings_back = self.brings_back(job.errand).await;
        let loss = self.world.take_loss(job.admitted.party).await.filter(|_| !brings_back);
        let Some(loss) = loss else { return Some(job) };
        self.world.hub.finish(job.admitted.call);
        drop(job.reply.send(Err(loss)));
        None
    }

    async fn brings_back(&self, errand: Errand) -> bool {
        errand.tool.comes_after_a_loss() && self.world.can_come_back().await
    }

    /// Runs calls until the session ends.
    async fn serve(self) {
        // Who is called goes first; the others wait for their turn.
        let (mut first, turn) = tokio::select! {
            biased;
            () = self.stop.cancelled() => return,
            job = self.mailbox.next() => (Some(job), None),
            turn = self.world.hub.taking_up.acquire() => (None, turn.ok()),
        };
        self.world.take_up().await;
        drop(turn);
        loop {
            let job = match first.take() {
                Some(job) => job,
                None => tokio::select! {
                    biased;
                    () = self.stop.cancelled() => return,
                    job = self.mailbox.next() => job,
                },
            };
            let Some(job) = self.tell_loss(job).await else { continue };
            // What was lost comes back in a context of its own: none is made that would be left at once.
            let comes_back = self.world.has_lost_all() && self.brings_back(job.errand).await;
            if !comes_back && self.world.open().await.is_err() {
                // Every waiting call was ended with the reason when the registry was told. Unless that ended the
                // session too, the next call tries again.
                continue;
            }
            // Found again, it may turn out to have no window any more.
            let Some(job) = self.tell_loss(job).await else { continue };
            match self.world.hub.begin(job.admitted.call) {
                Ok(()) => self.world.execute(job).await,
                // The call may be over already; then nobody listens.
                Err(fault) => drop(job.reply.send(Err(fault))),
            }
            // A browser that answers at once must not keep a thread for a whole queue: others have calls too.
            tokio::task::yield_now().await;
        }
    }
}
