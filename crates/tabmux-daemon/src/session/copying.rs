//! How a session becomes a copy of another: what it begins with, and for a fork the pages too. How logins get from context to
//! context is the drivers'; whose they may be was decided when the seat was taken.

use std::fmt;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, join_all};
use futures::{FutureExt, StreamExt};
use tabmux_core::{Code, Fault, Identity, Party, Session, TabId};
use tabmux_driver::{Arrival, Beginning, Context, ContextSpec, Copied, Footprint, HOUSEKEEPING, PageSeed, ReadOnce, Source, StorageState};
use tokio::sync::OnceCell;

use super::SessionHandle;
use super::world::World;
use crate::sources::Whence;

/// A live session that is copied whole, read once for all of its copies.
pub(crate) struct Fork {
    source: SessionHandle,
    read: OnceCell<Whole>,
}

/// What was read of it.
#[derive(Debug)]
pub(super) struct Whole {
    /// None where its logins are a profile's that it shares.
    beginning: Option<Beginning>,
    pages: Vec<Seed>,
    /// Which of them is current.
    current: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Seed {
    pub(super) page: PageSeed,
    /// Why only its address is known.
    pub(super) bare: Option<String>,
}

impl Seed {
    pub(super) fn into_page(self) -> PageSeed {
        self.page
    }
}

impl Whole {
    pub(super) async fn of(world: &Arc<World>) -> Result<Self, Fault> {
        let beginning = Beginning::with(ReadOnce::of(world.source().await?));
        let (pages, current) = world.seeds().await;
        Ok(Self { beginning: Some(beginning), pages, current })
    }

    /// Only its pages: its logins are where it goes.
    pub(super) async fn without_logins(world: &Arc<World>) -> Result<Self, Fault> {
        world.open().await?;
        let (pages, current) = world.seeds().await;
        Ok(Self { beginning: None, pages, current })
    }

    /// A session that was saved.
    pub(super) fn saved(state: Option<StorageState>, pages: Vec<PageSeed>, current: Option<usize>) -> Self {
        let pages = pages.into_iter().map(|page| Seed { page, bare: None }).collect();
        Self { beginning: state.map(Beginning::with), pages, current }
    }

    /// Comes when nothing of the source is needed any more. What cannot be read is missing in the copies, which say so. Gives what was
    /// read and cannot be written elsewhere, such as keys that their browser gives to nobody.
    pub(super) async fn read_all(&self) -> Vec<String> {
        let Some(source) = self.beginning.as_ref().map(Beginning::source) else { return Vec::new() };
        drop(source.cookies().await);
        let origins = source.origins().await.unwrap_or_default();
        let reading = |origin: String| async move {
            let reading = futures::future::join(source.kept(&origin), source.framed(&origin));
            let read = tokio::time::timeout(HOUSEKEEPING, reading).await;
            let left_out = read.ok().and_then(|(kept, _)| kept.ok()).map(|kept| kept.left_out).unwrap_or_default();
            left_out.into_iter().map(|what| format!("{origin}: {what}")).collect::<Vec<_>>()
        };
        futures::stream::iter(origins).map(reading).buffered(READ_AT_ONCE).concat().await
    }

    pub(super) fn beginning(&self) -> Option<&Beginning> {
        self.beginning.as_ref()
    }

    pub(super) fn pages(&self) -> &[Seed] {
        &self.pages
    }

    pub(super) fn current(&self) -> Option<usize> {
        self.current
    }
}

/// Says what could not be copied, once.
#[derive(Debug, Default)]
pub(super) struct Losses {
    told: usize,
}

/// How many origins are read at once. Each needs a renderer for a moment.
const READ_AT_ONCE: usize = 4;

/// How long a fork waits until all of its source is read.
const READING: Duration = Duration::from_secs(5);

/// How news of losses begin.
pub(super) const NOT_COPIED: &str = "Not copied into this session: ";

/// How many losses one piece of news names.
pub(super) const NAMED: usize = 5;

impl Fork {
    pub(crate) fn of(source: SessionHandle) -> Arc<Self> {
        Arc::new(Self { source, read: OnceCell::new() })
    }

    /// Comes when the source may change or go without any of the copies missing anything. One that takes too long for that
    /// goes on being read by those who need it.
    pub(crate) async fn is_whole(&self) {
        let reading = async {
            if let Ok(whole) = self.whole().await {
                whole.read_all().await;
            }
        };
        drop(tokio::time::timeout(READING, reading).await);
    }

    async fn whole(&self) -> Result<&Whole, Fault> {
        self.read.get_or_try_init(|| Whole::of(&self.source.world)).await
    }
}

impl fmt::Debug for Fork {
    /// What was read is secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fork").field("source", &self.source.world.id).finish_non_exhaustive()
    }
}

impl Losses {
    pub(super) fn news(&mut self, copied: &Copied) -> Option<String> {
        let new = copied.losses.get(self.told..).unwrap_or_default();
        let count = copied.lost.saturating_sub(self.told);
        self.told = copied.lost;
        if count == 0 {
            return None;
        }
        let mut said: Vec<String> = new.iter().take(NAMED).map(|loss| tabmux_tools::visible_line(loss)).collect();
        if count > said.len() {
            said.push(format!("{} more", count - said.len()));
        }
        Some(format!("{NOT_COPIED}{}.", said.join("; ")))
    }
}

impl World {
    /// Says in `spec` what the context begins with. Gives the fork whose pages follow.
    pub(super) async fn begin(self: &Arc<Self>, spec: &mut ContextSpec) -> Result<Option<Arc<Fork>>, Fault> {
        // What a former context was at is nothing to this one.
        spec.footprint = Footprint::default();
        let fork = self.fork.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(fork) = fork {
            spec.source = fork.whole().await?.beginning.clone();
            return Ok(Some(fork));
        }
        let Some(whence) = &self.whence else { return Ok(None) };
        // It moved into a profile that others share, who did not ask for what it began with.
        if spec.isolation.shares_profile() {
            self.add_news(format!("It starts without the logins of {whence}, because others share its profile."));
            return Ok(None);
        }
        match self.beginning(whence).await {
            Ok(beginning) => spec.source = Some(beginning),
            // It lost its browser and must not lose its name too, only because its source is gone by now.
            Err(fault) if self.was_made() => self.add_news(format!("It starts without the logins of {whence}: {}", fault.message)),
            Err(fault) => return Err(fault),
        }
        Ok(None)
    }

    /// A session is a source for as long as it is its copy's owner's: who took it over has logins of their own in it by now.
    pub(super) async fn beginning(self: &Arc<Self>, whence: &Whence) -> Result<Beginning, Fault> {
        let owner = |id| self.hub.look(|registry| registry.session(id).map(|session| session.owner.clone()));
        if let (Some(source), Some(own)) = (whence.session().and_then(owner), owner(self.id))
            && source != own
            && own != Identity::Operator
        {
            let hint = "Start a session without `from`, or with another source.";
            return Err(Fault::new(Code::SessionClosed, format!("{whence} was handed over, so nothing can be copied from it."), hint));
        }
        self.hub.sources.beginning(&self.hub, whence).await
    }

    /// Opens the pages of the session this is a fork of. One that cannot be opened is said and the others stay.
    pub(super) async fn plant(self: &Arc<Self>, context: &dyn Context, fork: &Fork) {
        // A copy that loses its browser later starts afresh as others do.
        self.fork.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Ok(whole) = fork.whole().await else { return };
        let opened = join_all(whole.pages.iter().map(|seed| context.open_seeded(&seed.page))).await;
        let mut current = None;
        for (at, (seed, opened)) in whole.pages.iter().zip(opened).enumerate() {
            let url = tabmux_tools::visible_line(&seed.page.url);
            if let Some(why) = &seed.bare {
                self.add_news(format!("What the page {url} keeps for itself was not copied: {why}"));
            }
            let tab = match opened {
                Ok(planted) => {
                    self.add_late(&url, planted.arrival);
                    self.add_tab(&planted.page, Party::Owner).await
                }
                Err(error) => Err(error.into()),
            };
            match tab {
                Ok(tab) if whole.current == Some(at) => current = Some(tab),
                Ok(_) => {}
                Err(fault) => self.add_news(format!("The page {url} was not copied: {}", fault.message)),
            }
        }
        if let Some(tab) = current {
            // Closed meanwhile, perhaps, and then there is nothing to select.
            drop(self.hub.decide_now(|registry, _| registry.select_tab(self.id, Party::Owner, tab)));
        }
    }

    /// Says of a page that was opened again that it is not there yet.
    pub(super) fn add_late(&self, url: &str, arrival: Arrival) {
        match arrival {
            Arrival::There => {}
            Arrival::Loading => self.add_news(format!("The page {url} is still loading.")),
            Arrival::Unanswered => {
                self.add_news(format!(
                    "The page {url} was not copied: its site did not answer in time. Its tab is blank; navigate goes there."
                ));
            }
        }
    }

    /// The context as something that others can begin with. One that was never opened, or was lost, is not opened for that.
    /// Boxed, because opening one session may read another, whose opening may read another still.
    pub(super) fn source(self: &Arc<Self>) -> BoxFuture<'_, Result<Arc<dyn Source>, Fault>> {
        let read = async {
            let Some(context) = self.find().await? else { return Err(self.nothing_to_copy().await) };
            context.source().ok_or_else(|| {
                let message = format!("Session '{}' cannot be copied: its cookies are not its own.", self.called());
                Fault::new(Code::Unsupported, message, "Copy a session of the isolation context or browser.")
            })
        };
        read.boxed()
    }

    async fn nothing_to_copy(&self) -> Fault {
        let name = self.called();
        if !self.was_made() {
            let message = format!("Session '{name}' has no page yet, so there is nothing to copy.");
            return Fault::new(Code::BadArgument, message, "Navigate in it first, or start a session without `from`.");
        }
        let hint = if self.can_come_back().await {
            "Call restore in it, which brings back its pages and logins as they were saved last, and copy it then."
        } else {
            "Nothing of it was saved. Navigate in it and log in first, or use another source."
        };
        Fault::new(Code::BrowserCrashed, format!("Session '{name}' lost its browser, and its logins with it."), hint)
    }

    /// As its owner knows it.
    fn called(&self) -> String {
        self.hub.look(|registry| registry.session(self.id).map(Session::handle)).unwrap_or_else(|| self.id.to_string())
    }

    /// Its pages as they are now, in their order, and which is current. One that does not answer is copied by its address.
    pub(super) async fn seeds(self: &Arc<Self>) -> (Vec<Seed>, Option<usize>) {
        let seen = self.hub.look(|registry| {
            let session = registry.session(self.id)?;
            let tabs: Vec<TabId> = session.windows.visible(session.tabs.keys().copied()).collect();
            Some((tabs, session.current_tab))
        });
        let (tabs, current) = seen.unwrap_or_default();
        let pages: Vec<_> = tabs.into_iter().filter_map(|tab| Some((tab, self.page(tab)?))).collect();
        let current = pages.iter().position(|(tab, _)| Some(*tab) == current);
        let seeds = pages.iter().map(|(_, page)| async {
            let bare = |why: String| Seed { page: PageSeed { url: page.url(), ..PageSeed::default() }, bare: Some(why) };
            match tokio::time::timeout(HOUSEKEEPING, page.seed()).await {
                Ok(Ok(page)) => Seed { page, bare: None },
                Ok(Err(error)) => bare(error.to_string()),
                Err(_) => bare("it did not answer.".to_owned()),
            }
        });
        (join_all(seeds).await, current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_said_once_and_not_all_by_name() {
        let mut losses = Losses::default();
        let mut copied = Copied::default();
        assert_eq!(losses.news(&copied), None);
        copied.lose("cookie sid of a.test: the browser does not take it".into());
        let said = "Not copied into this session: cookie sid of a.test: the browser does not take it.";
        assert_eq!((losses.news(&copied).as_deref(), losses.news(&copied)), (Some(said), None));
        (0..60).for_each(|number| copied.lose(format!("o{number}")));
        assert_eq!(losses.news(&copied).as_deref(), Some("Not copied into this session: o0; o1; o2; o3; o4; 55 more."));
        copied.lose("late".into());
        assert_eq!(losses.news(&copied).as_deref(), Some("Not copied into this session: 1 more."));
    }
}
