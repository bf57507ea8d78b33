//! What a session is brought back from when its browser is lost: its pages, logins and storage as they were when it last
//! rested, in a file of its owner's alone that ends with the session. Deliberately absent: anything newer than that.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tabmux_core::{Code, Fault, SessionId};
use tabmux_driver::{Context, OriginStorage, PageSeed, Source, StorageState, origin_of};
use tokio::task::JoinError;

use super::copying::{Seed, Whole};
use super::downloads;
use super::world::World;
use crate::profiles::disk;
use crate::storage_state;

/// How long reading a session may take, and how large what was read may be.
const READING: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A session at rest.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Saved {
    /// In Playwright's format; none where its logins are a profile's that it shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
    pages: Vec<PageSeed>,
    current: Option<usize>,
}

/// Where a session's files are.
#[derive(Clone, Debug)]
pub(super) struct Place {
    directory: PathBuf,
    /// What it was when it last rested.
    saved: String,
    /// What it was when its browser was lost.
    lost: String,
}

fn all(state_dir: &Path) -> PathBuf {
    state_dir.join("saved")
}

impl Place {
    pub(super) fn of(state_dir: &Path, id: SessionId) -> Self {
        Self { directory: all(state_dir), saved: format!("{id}.json"), lost: format!("{id}.lost.json") }
    }

    /// Works with the files where waiting for the disk holds nobody up.
    async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> Result<T, JoinError> {
        let place = self.clone();
        tokio::task::spawn_blocking(move || work(&place)).await
    }

    fn read(&self, name: &str) -> Result<Option<Saved>, Fault> {
        let text = disk::read(&self.directory.join(name))?;
        Ok(text.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// From now on what was saved is what was lost. Says whether there is anything.
    pub(super) async fn lose(&self) -> bool {
        let losing = self.on_disk(|place| {
            let lost = place.directory.join(&place.lost);
            // None was saved since: what was lost before is all there is.
            drop(std::fs::rename(place.directory.join(&place.saved), &lost));
            lost.exists()
        });
        losing.await.unwrap_or_default()
    }

    fn remove(&self, name: &str) {
        match std::fs::remove_file(self.directory.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => tracing::warn!(%error, "what was saved of a session is left"),
            _ => {}
        }
    }
}

/// Removes what was saved of sessions that this daemon does not know.
pub(crate) fn sweep_saved(state_dir: &Path, known: impl Iterator<Item = SessionId>) {
    let known: Vec<String> = known.map(|id| id.to_string()).collect();
    for entry in std::fs::read_dir(all(state_dir)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_known = name.split('.').next().is_some_and(|id| known.iter().any(|known| known == id));
        if !is_known && let Err(error) = std::fs::remove_file(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "what was saved of a former session is left");
        }
    }
}

impl World {
    /// Saves the session whenever it has rested for as long as the settings say.
    pub(super) fn save_at_rest(self: &Arc<Self>, context: &Arc<dyn Context>) {
        let Some(rest) = self.hub.settings.clocks.session_save else { return };
        let (world, context) = (Arc::clone(self), Arc::downgrade(context));
        tokio::spawn(async move {
            let mut written = String::new();
            loop {
                tokio::select! {
                    () = world.stirred.notified() => {}
                    () = world.stop.cancelled() => return,
                }
                while tokio::time::timeout(rest, world.stirred.notified()).await.is_ok() {}
                let Some(context) = context.upgrade() else { return };
                if !world.is_in(&context).await {
                    return;
                }
                match tokio::time::timeout(READING, world.save(&context, &mut written)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(fault)) => tracing::debug!(session = %world.id, %fault, "the session was not saved"),
                    Err(_) => tracing::debug!(session = %world.id, "the session was not saved: it took too long to read"),
                }
            }
        });
    }

    async fn save(self: &Arc<Self>, context: &Arc<dyn Context>, written: &mut String) -> Result<(), Fault> {
        let (pages, current) = self.seeds().await;
        let pages: Vec<PageSeed> = pages.into_iter().map(Seed::into_page).collect();
        let state = match context.source() {
            Some(source) => Some(self.state_at_rest(&*source, &pages).await?),
            None => None,
        };
        let state = state.map(|state| serde_json::from_str(&storage_state::written(&state)).unwrap_or_default());
        let text = serde_json::to_string(&Saved { state, pages, current }).expect("texts and numbers are JSON");
        if text == *written {
            return Ok(());
        }
        if text.len() > MAX_BYTES {
            return Err(Fault::new(Code::NoSpace, format!("{} bytes are too many to save.", text.len()), "Nothing needs to be done."));
        }
        let _writing = self.saving.lock().await;
        // Whoever closes it takes the file away, once nobody writes it any more; and of one that is lost meanwhile, pages are missing.
        if self.stop.is_cancelled() || !self.is_in(context).await {
            return Ok(());
        }
        let bytes = text.clone();
        let write =
            move |place: &Place| downloads::make(&place.directory).and_then(|()| disk::replace(&place.directory, &place.saved, &bytes));
        self.place.on_disk(write).await.map_err(|_| self.hub.panicked())??;
        *written = text;
        Ok(())
    }

    /// What it holds now. Of origins that no page is at, what was read when one was: asking them would need a page.
    async fn state_at_rest(&self, source: &dyn Source, pages: &[PageSeed]) -> Result<StorageState, Fault> {
        let cookies = source.cookies().await?;
        let mut origins: Vec<OriginStorage> = Vec::new();
        for page in pages {
            let Some(origin) = origin_of(&page.url) else { continue };
            if origins.iter().all(|kept| kept.origin != origin)
                && let Ok(kept) = source.kept(&origin).await
            {
                origins.push(kept);
            }
        }
        let read = self.place.on_disk(|place| place.read(&place.saved)).await.map_err(|_| self.hub.panicked())?;
        let before = read?.and_then(|saved| storage_state::parse(&saved.state?).ok());
        for kept in before.map(|state| state.origins).unwrap_or_default() {
            if origins.iter().all(|newer| newer.origin != kept.origin) {
                origins.push(kept);
            }
        }
        Ok(StorageState { cookies, origins })
    }

    /// What the session lost with its browser.
    pub(super) async fn lost(&self) -> Result<Whole, Fault> {
        let nothing = || {
            let hint = "A session is saved when it rests; go on with navigate.";
            Fault::new(Code::BadArgument, "Nothing of this session was lost and saved, so there is nothing to bring back.", hint)
        };
        let read = self.place.on_disk(|place| place.read(&place.lost)).await.map_err(|_| self.hub.panicked())?;
        let saved = read?.ok_or_else(nothing)?;
        let unusable = |why| Fault::new(Code::Internal, format!("What was saved of this session cannot be used: {why}."), "Start afresh.");
        let state = saved.state.map(|state| storage_state::parse(&state)).transpose().map_err(unusable)?;
        Ok(Whole::saved(state, saved.pages, saved.current))
    }

    /// It is back.
    pub(super) async fn forget_lost(&self) {
        // A panic in there was logged; the file goes with the session.
        drop(self.place.on_disk(|place| place.remove(&place.lost)).await);
    }

    /// With the session, everything that was saved of it.
    pub(super) async fn unsave(&self) {
        let _writing = self.saving.lock().await;
        let removing = self.place.on_disk(|place| [&place.saved, &place.lost].into_iter().for_each(|name| place.remove(name)));
        // What is left is swept by the next daemon.
        drop(removing.await);
    }
}
