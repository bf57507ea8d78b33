//! What a session is brought back from when its browser is lost: its pages, logins and storage as they were when it last
//! rested, or a little while ago where it never does, in a file of its owner's alone that ends with the session. Deliberately
//! absent: anything newer than that.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use tabmux_core::{Code, Fault, SessionId};
use tabmux_driver::{Context, Copied, OriginStorage, PageSeed, StorageState};
use tokio::sync::watch;
use tokio::task::JoinError;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::copying::{NAMED, Seed, Whole};
use super::downloads;
use super::rest::{AtRest, Known, Rest, Which};
use super::world::World;
use crate::profiles::disk;
use crate::storage_state;

/// How long reading a session may take, and how large what was read may be.
const READING: Duration = Duration::from_secs(10);
const MAX_BYTES: usize = 32 * 1024 * 1024;

/// A session that never rests is saved after so many times the rest it should have had.
const RESTLESS: u32 = 5;

/// A session at rest.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct Saved {
    /// In Playwright's format; none where its logins are a profile's that it shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<Value>,
    pages: Vec<PageSeed>,
    current: Option<usize>,
    /// What could not be read, by origin.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    missing: BTreeMap<String, Vec<String>>,
}

impl Saved {
    /// Whether it would bring nothing back: no login, nothing kept, and no page that went anywhere.
    fn is_blank(&self) -> bool {
        let has = |part: &str| self.state.as_ref().and_then(|state| state[part].as_array()).is_some_and(|all| !all.is_empty());
        !has("cookies") && !has("origins") && self.pages.iter().all(|page| page.url == "about:blank")
    }

    /// As it is written. What is too much is left out, the largest origin first, and named.
    fn fitting(state: Option<AtRest>, at_rest: &mut Rest, pages: Vec<PageSeed>, current: Option<usize>) -> Result<String, Fault> {
        let (mut state, missing) = state.map(|read| (read.state, read.missing)).unzip();
        let mut saved = Self { pages, current, missing: missing.unwrap_or_default(), ..Self::default() };
        loop {
            let in_format = |state: &StorageState| serde_json::from_str(&storage_state::written(state)).unwrap_or_default();
            saved.state = state.as_ref().map(in_format);
            let text = serde_json::to_string(&saved).expect("texts and numbers are JSON");
            let Err(too_much) = check_size(text.len()) else { return Ok(text) };
            let size = |origin: &OriginStorage| serde_json::to_string(origin).map(|text| text.len()).unwrap_or_default();
            let origins = state.as_mut().map(|state| &mut state.origins);
            let largest =
                origins.as_ref().and_then(|origins| origins.iter().enumerate().max_by_key(|(_, origin)| size(origin)).map(|(at, _)| at));
            let Some((origins, at)) = origins.zip(largest) else {
                return Err(too_much);
            };
            let origin = origins.remove(at).origin;
            at_rest.give_up(&origin);
            saved.missing.insert(origin, vec!["it keeps too much".to_owned()]);
        }
    }
}

/// Where a session's files are.
#[derive(Clone, Debug)]
pub(super) struct Place {
    directory: PathBuf,
    /// What it was when it last rested.
    saved: String,
    /// What it was when its browser was lost.
    lost: String,
    /// What it began afresh with after that, and lost again before the former was brought back.
    lost_later: String,
    /// What was told to begin with and has not arrived.
    pub(super) given: String,
}

fn all(state_dir: &Path) -> PathBuf {
    state_dir.join("saved")
}

impl Place {
    pub(super) fn of(state_dir: &Path, id: SessionId) -> Self {
        Self {
            directory: all(state_dir),
            saved: format!("{id}.json"),
            lost: format!("{id}.lost.json"),
            lost_later: format!("{id}.later.json"),
            given: format!("{id}.given.json"),
        }
    }

    /// Works with the files where waiting for the disk holds nobody up.
    pub(super) async fn on_disk<T: Send + 'static>(&self, work: impl FnOnce(&Self) -> T + Send + 'static) -> Result<T, JoinError> {
        let place = self.clone();
        tokio::task::spawn_blocking(move || work(&place)).await
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>, Fault> {
        disk::read(&self.directory.join(name))
    }

    fn read(&self, name: &str) -> Result<Option<Saved>, Fault> {
        Ok(self.text(name)?.and_then(|text| serde_json::from_str(&text).ok()))
    }

    pub(super) fn write(&self, name: &str, text: &str) -> Result<(), Fault> {
        downloads::make(&self.directory)?;
        disk::replace(&self.directory, name, text)
    }

    /// From now on what was saved is what was lost. Says whether there is anything to bring back.
    pub(super) async fn lose(&self) -> bool {
        let losing = self.on_disk(|place| {
            match (place.has(&place.saved), place.has(&place.lost)) {
                // What was lost first has the logins that the session had for longest, and the latter may be no more than a login page.
                (true, true) => drop(place.rename(&place.saved, &place.lost_later)),
                (false, true) => place.remove(&place.saved),
                (_, false) => {
                    // Where none was saved since, what was lost before is all there is.
                    if place.rename(&place.saved, &place.lost).is_ok() {
                        place.remove(&place.lost_later);
                    }
                }
            }
            place.next_to_come_back().is_some()
        });
        losing.await.unwrap_or_default()
    }

    /// Whether a file has anything to bring back.
    fn has(&self, name: &str) -> bool {
        self.read(name).ok().flatten().is_some_and(|saved| !saved.is_blank())
    }

    /// What a restore brings back: what was lost first, and asked again, what was lost after that.
    fn next_to_come_back(&self) -> Option<&str> {
        [&self.lost, &self.lost_later].into_iter().map(String::as_str).find(|name| self.directory.join(name).exists())
    }

    fn rename(&self, from: &str, to: &str) -> std::io::Result<()> {
        std::fs::rename(self.directory.join(from), self.directory.join(to))
    }

    pub(super) fn remove(&self, name: &str) {
        match std::fs::remove_file(self.directory.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => tracing::warn!(%error, "what was saved of a session is left"),
            _ => {}
        }
    }
}

fn check_size(bytes: usize) -> Result<(), Fault> {
    if bytes <= MAX_BYTES {
        return Ok(());
    }
    Err(Fault::new(Code::NoSpace, format!("{bytes} bytes are too many to save."), "Nothing needs to be done."))
}

/// Comes when a copy has become whole: then it has more to save.
async fn is_whole(copied: &mut watch::Receiver<Copied>) {
    while copied.changed().await.is_ok() {
        if copied.borrow_and_update().pending == 0 {
            return;
        }
    }
    std::future::pending::<()>().await;
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
    /// Saves the session whenever it has rested for as long as the settings say, and now and then when it never does, until it has left
    /// this context.
    pub(super) fn save_at_rest(self: &Arc<Self>, context: &Arc<dyn Context>, left: CancellationToken) {
        let Some(rest) = self.hub.settings.clocks.session_save else { return };
        let mut copied = context.copied();
        let (world, context) = (Arc::clone(self), Arc::downgrade(context));
        tokio::spawn(async move {
            let (mut written, mut at_rest) = (String::new(), Rest::default());
            loop {
                let stirred = async {
                    tokio::select! {
                        () = world.stirred.notified() => {}
                        () = is_whole(&mut copied) => {}
                    }
                    world.rests(rest).await;
                };
                // What stirs it from now on is for who saves it where it lives then.
                tokio::select! {
                    biased;
                    () = left.cancelled() => return,
                    () = world.stop.cancelled() => return,
                    () = world.moved.notified() => {}
                    () = stirred => {}
                }
                let Some(context) = world.if_in(&context).await else { return };
                let mut which = Some(Which::Shown);
                while let Some(some) = which.take() {
                    match tokio::time::timeout(READING, world.save(&context, some, &mut at_rest, &mut written)).await {
                        Ok(Ok(has_more)) => which = has_more.then_some(Which::Left),
                        Ok(Err(fault)) => tracing::debug!(session = %world.id, %fault, "the session was not saved"),
                        Err(_) => tracing::debug!(session = %world.id, "the session was not saved: it took too long to read"),
                    }
                }
            }
        });
    }

    /// Comes when nothing has stirred it for so long, or when that takes too long.
    async fn rests(&self, rest: Duration) {
        let latest = Instant::now() + rest * RESTLESS;
        while Instant::now() < latest && tokio::time::timeout(rest, self.stirred.notified()).await.is_ok() {}
    }

    async fn if_in(&self, context: &Weak<dyn Context>) -> Option<Arc<dyn Context>> {
        let context = context.upgrade()?;
        self.is_in(&context).await.then_some(context)
    }

    /// Says whether there is more to read.
    async fn save(
        self: &Arc<Self>,
        context: &Arc<dyn Context>,
        which: Which,
        at_rest: &mut Rest,
        written: &mut String,
    ) -> Result<bool, Fault> {
        let (pages, current) = self.seeds().await;
        let pages: Vec<PageSeed> = pages.into_iter().map(Seed::into_page).collect();
        let state = match context.source() {
            Some(source) => Some(at_rest.read(which, &**context, &*source, &pages, self.known().await?).await?),
            None => None,
        };
        let has_more = state.as_ref().is_some_and(|read| read.has_more);
        let text = Saved::fitting(state, at_rest, pages, current)?;
        if text == *written {
            return Ok(has_more);
        }
        let _writing = self.saving.lock().await;
        // Whoever closes it takes the file away, once nobody writes it any more; and of one that is lost meanwhile, pages are missing.
        if self.stop.is_cancelled() || !self.is_in(context).await {
            return Ok(false);
        }
        let bytes = text.clone();
        let write = move |place: &Place| place.write(&place.saved, &bytes);
        self.place.on_disk(write).await.map_err(|_| self.hub.panicked())??;
        *written = text;
        Ok(has_more)
    }

    /// What was saved of its origins before.
    async fn known(&self) -> Result<Known, Fault> {
        let read = self.place.on_disk(|place| place.read(&place.saved)).await.map_err(|_| self.hub.panicked())?;
        let Some(saved) = read? else { return Ok(Known::default()) };
        let state = saved.state.and_then(|state| storage_state::parse(&state).ok());
        Ok(Known { origins: state.map(|state| state.origins).unwrap_or_default(), missing: saved.missing })
    }

    /// What the session lost with its browser.
    pub(super) async fn lost(&self) -> Result<Whole, Fault> {
        let nothing = || {
            let hint = "A session is saved when it rests; go on with navigate.";
            Fault::new(Code::BadArgument, "Nothing of this session was lost and saved, so there is nothing to bring back.", hint)
        };
        let read = |place: &Place| place.next_to_come_back().map(|name| place.read(name)).transpose();
        let read = self.place.on_disk(read).await.map_err(|_| self.hub.panicked())?;
        let saved = read?.flatten().ok_or_else(nothing)?;
        let unusable = |why| Fault::new(Code::Internal, format!("What was saved of this session cannot be used: {why}."), "Start afresh.");
        let state = saved.state.map(|state| storage_state::parse(&state)).transpose().map_err(unusable)?;
        self.say_missing(&saved.missing);
        Ok(Whole::saved(state, saved.pages, saved.current))
    }

    /// Whether anything was saved of what it lost.
    pub(super) async fn can_come_back(&self) -> bool {
        self.place.on_disk(|place| place.next_to_come_back().is_some()).await.unwrap_or_default()
    }

    /// What was never saved cannot come back.
    fn say_missing(&self, missing: &BTreeMap<String, Vec<String>>) {
        let all: Vec<String> = missing.iter().flat_map(|(origin, what)| what.iter().map(move |what| format!("{origin}: {what}"))).collect();
        let mut said: Vec<String> = all.iter().take(NAMED).map(|what| tabmux_tools::visible_line(what)).collect();
        if all.len() > NAMED {
            said.push(format!("{} more", all.len() - NAMED));
        }
        if !said.is_empty() {
            self.add_news(format!("Not saved before the browser was lost, so not brought back: {}.", said.join("; ")));
        }
        let mut framed: Vec<String> = self.spec().footprint.frames.into_iter().map(|(page, _)| page).collect();
        framed.dedup();
        if !framed.is_empty() {
            framed.truncate(NAMED);
            self.add_news(format!("What frames of other sites kept in pages of {} is not saved.", framed.join(", ")));
        }
    }

    /// It was said what did not come back. From then on the session is one without it, and misses nothing.
    pub(super) async fn forget_missing(&self) {
        let _writing = self.saving.lock().await;
        let forgetting = self.place.on_disk(|place| match place.read(&place.saved) {
            Ok(Some(saved)) if !saved.missing.is_empty() => {
                let text = serde_json::to_string(&Saved { missing: BTreeMap::new(), ..saved }).expect("texts and numbers are JSON");
                place.write(&place.saved, &text)
            }
            _ => Ok(()),
        });
        if let Ok(Err(fault)) = forgetting.await {
            tracing::warn!(session = %self.id, %fault, "what did not come back may be said again");
        }
    }

    /// It is back: what it lost is what is saved of it, until it rests again.
    pub(super) async fn found(&self) {
        let _writing = self.saving.lock().await;
        let keeping = self.place.on_disk(|place| {
            // Also in the place of what was saved of the session that began afresh: that is gone.
            if let Some(name) = place.next_to_come_back()
                && place.rename(name, &place.saved).is_err()
            {
                place.remove(name);
            }
            place.next_to_come_back().is_some()
        });
        // A panic in there was logged; the file goes with the session.
        if keeping.await.unwrap_or_default() {
            self.add_news(
                "What it lost at a later crash is kept as well: restore again brings that back, in the place of this.".to_owned(),
            );
        }
    }

    /// With the session, everything that was saved of it.
    pub(super) async fn unsave(&self) {
        let _writing = self.saving.lock().await;
        let removing = self.place.on_disk(|place| {
            [&place.saved, &place.lost, &place.lost_later, &place.given].into_iter().for_each(|name| place.remove(name));
        });
        // What is left is swept by the next daemon.
        drop(removing.await);
    }
}

#[cfg(test)]
mod tests {
    use super::check_size;

    #[test]
    fn what_is_saved_has_32_mib_at_most() {
        assert!(check_size(33_554_432).is_ok());
        assert!(check_size(33_554_433).is_err());
    }
}
