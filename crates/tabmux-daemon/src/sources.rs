//! Where a session's logins come from: which source a text means, and one reading of it for all that begin with it at the same
//! time (S3.3). What can be read, and how it gets into a context, is the drivers'.

mod whence;

use std::fmt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use tabmux_core::{Code, Fault, SessionId};
use tabmux_driver::{Beginning, Cookie, OriginStorage, ReadOnce, Source, StorageState};
use tokio::sync::OnceCell;

use crate::hub::Hub;
use crate::storage_state;
pub(crate) use whence::Whence;
pub use whence::is_file;

/// How many origins are read at a time, and how long one may take.
const AT_ONCE: usize = 2;
const READING: Duration = Duration::from_secs(20);

/// The readings that are under way.
#[derive(Debug, Default)]
pub(crate) struct Sources {
    readings: Mutex<Vec<(Whence, Weak<Reading>)>>,
}

/// One reading, shared by whoever comes before its cookies are there: who comes later must not get what is older than its call.
#[derive(Default)]
struct Reading(OnceCell<ReadOnce>);

impl Sources {
    /// What a context begins with.
    pub(crate) async fn beginning(&self, hub: &Arc<Hub>, whence: &Whence) -> Result<Beginning, Fault> {
        let reading = self.reading(whence);
        reading.0.get_or_try_init(|| async { open(hub, whence).await.map(ReadOnce::of) }).await?;
        Ok(Beginning::from(reading as Arc<dyn Source>))
    }

    fn reading(&self, whence: &Whence) -> Arc<Reading> {
        let mut readings = self.readings();
        readings.retain(|(_, reading)| reading.strong_count() > 0);
        let mut known = readings.iter().filter(|(known, _)| known == whence).filter_map(|(_, reading)| reading.upgrade());
        known.find(|reading| reading.is_early()).unwrap_or_else(|| {
            let reading = Arc::default();
            readings.push((whence.clone(), Arc::downgrade(&reading)));
            reading
        })
    }

    /// Comes when nothing more of this session is needed by those that are being filled from it, or after a while.
    pub(crate) async fn have_read(&self, session: SessionId) {
        let of_it: Vec<Weak<Reading>> = self
            .readings()
            .iter()
            .filter(|(whence, _)| whence.session() == Some(session))
            .map(|(_, reading)| Weak::clone(reading))
            .collect();
        let all = futures::future::join_all(of_it.iter().map(read_all));
        if tokio::time::timeout(READING, all).await.is_err() {
            tracing::warn!(%session, "a session ends before its copies have all of it");
        }
    }

    fn readings(&self) -> MutexGuard<'_, Vec<(Whence, Weak<Reading>)>> {
        self.readings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reads what nobody has read yet, for as long as anybody is to have it.
async fn read_all(reading: &Weak<Reading>) {
    let opened = || reading.upgrade().filter(|reading| reading.0.initialized());
    let Some(both) = opened().map(|reading| async move { (reading.cookies().await, reading.origins().await) }) else { return };
    let read = |origin: String| async move {
        if let Some(reading) = opened() {
            drop(futures::future::join(reading.kept(&origin), reading.framed(&origin)).await);
        }
    };
    let (_cookies, origins) = both.await;
    futures::stream::iter(origins.unwrap_or_default()).for_each_concurrent(AT_ONCE, read).await;
}

impl Reading {
    fn is_early(&self) -> bool {
        self.0.get().is_none_or(|once| !once.has_cookies())
    }

    fn once(&self) -> &ReadOnce {
        self.0.get().expect("it is opened before it is handed out")
    }
}

impl fmt::Debug for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Reading").field(&self.0.get()).finish()
    }
}

#[async_trait]
impl Source for Reading {
    async fn cookies(&self) -> tabmux_driver::Result<Vec<Cookie>> {
        self.once().cookies().await
    }

    async fn origins(&self) -> tabmux_driver::Result<Vec<String>> {
        self.once().origins().await
    }

    async fn kept(&self, origin: &str) -> tabmux_driver::Result<OriginStorage> {
        self.once().kept(origin).await
    }

    async fn framed(&self, origin: &str) -> tabmux_driver::Result<Vec<OriginStorage>> {
        self.once().framed(origin).await
    }
}

async fn open(hub: &Arc<Hub>, whence: &Whence) -> Result<Arc<dyn Source>, Fault> {
    match whence {
        Whence::Session { id, name } => match hub.handle(*id) {
            Some(handle) => handle.source().await,
            None => Err(gone(name)),
        },
        Whence::Profile(name) => {
            let (profiles, name) = (hub.profiles(), name.clone());
            on_disk(move || profiles.read(&name)).await
        }
        Whence::File(path) => {
            let path = path.clone();
            on_disk(move || read_file(&path)).await
        }
        Whence::Given(given) => {
            let given = given.clone();
            let unusable = |why| Fault::new(Code::BadArgument, format!("The storage state cannot be used: {why}."), STATE_HINT);
            on_disk(move || storage_state::read(given.text()).map_err(unusable)).await
        }
        Whence::Past(what) => Err(gone(what)),
    }
}

/// What a source holds now, all of it, and what of it could not be had.
pub(crate) async fn state_of(source: &dyn Source) -> Result<(StorageState, Vec<String>), Fault> {
    let cookies = source.cookies().await?;
    Ok(state_of_origins(source, cookies, source.origins().await?).await)
}

/// The same where cookies and origins are known.
pub(crate) async fn state_of_origins(source: &dyn Source, cookies: Vec<Cookie>, origins: Vec<String>) -> (StorageState, Vec<String>) {
    let reading = origins.into_iter().map(|origin| async move {
        let read = tokio::time::timeout(READING, futures::future::join(source.kept(&origin), source.framed(&origin))).await;
        let Ok((kept, framed)) = read else { return Err(format!("{origin}: it was not read in time")) };
        let mut kept = kept.map_err(|error| format!("{origin}: {error}"))?;
        for framed in framed.unwrap_or_default().iter().filter(|framed| !framed.is_empty()) {
            kept.left_out
                .push(format!("{origin}: what a frame of {} keeps in its pages, for which the format has no words", framed.origin));
        }
        Ok(kept)
    });
    let read: Vec<_> = futures::stream::iter(reading).buffered(AT_ONCE).collect().await;
    let (mut state, mut losses) = (StorageState { cookies, origins: Vec::new() }, Vec::new());
    for kept in read {
        match kept {
            Ok(mut kept) => {
                losses.append(&mut kept.left_out);
                state.origins.extend(Some(kept).filter(|kept| !kept.is_empty()));
            }
            Err(loss) => losses.push(loss),
        }
    }
    (state, losses)
}

const STATE_HINT: &str = "Give what Playwright's storageState() writes: {\"cookies\": […], \"origins\": […]}.";

async fn on_disk(read: impl FnOnce() -> Result<StorageState, Fault> + Send + 'static) -> Result<Arc<dyn Source>, Fault> {
    let read = tokio::task::spawn_blocking(read).await;
    let state = read.map_err(|_| Fault::new(Code::Internal, "Reading the source failed inside tabmux.", "Please report it."))??;
    Ok(Arc::new(state))
}

fn read_file(path: &Path) -> Result<StorageState, Fault> {
    let unusable = |why: String| Fault::new(Code::BadArgument, format!("The file {} cannot be used: {why}.", path.display()), STATE_HINT);
    storage_state::read_file(path).map_err(unusable)
}

fn gone(what: &str) -> Fault {
    let hint = "Start a session without `from`, or with another source.";
    Fault::new(Code::SessionClosed, format!("{what} is gone, so nothing can be copied from it."), hint)
}
