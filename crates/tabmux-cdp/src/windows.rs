//! Windows of a shared profile: makes them, opens tabs in the one that is named, and knows which page is in which. It
//! cares neither how the browser was started nor whose a window is. Nothing here takes the person's focus.

mod context;
mod fresh;
mod usher;

use std::collections::{HashMap, HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use futures::future::join_all;
use tabmux_driver::{DriverError, Ground, HOUSEKEEPING, Leisure, Place, Result, Spot, WindowBounds, WindowId};
use tokio::sync::watch;

use crate::CdpError;
use crate::connection::Connection;
use crate::protocol::{browser, target};
pub(crate) use context::OwnWindows;
pub(crate) use fresh::{Fresh, Turn};
use usher::Usher;

/// How many pages of closed contexts are remembered: what they opened in their last moment comes up right after.
const MAX_CHILDLESS: usize = 256;

/// The windows of one browser.
#[derive(Debug)]
pub(crate) struct Windows {
    me: Weak<Self>,
    connection: Connection,
    /// A private directory for the usher's files; without it there is no usher.
    usher_place: OnceLock<PathBuf>,
    usher: tokio::sync::Mutex<Help>,
    places: Mutex<Places>,
    /// Held for reading while a target is made, and for writing by who wants to know whether a new one was made by us.
    making: tokio::sync::RwLock<()>,
    made: Mutex<HashSet<String>>,
    /// Pages that were closed with their context, the newest last.
    childless: Mutex<VecDeque<String>>,
    /// We launched the browser and nobody has had a window in it yet.
    untouched: AtomicBool,
    /// Whether there is, or was, a page of somebody's here.
    pages: watch::Sender<bool>,
    /// When the browser has time for copies that nobody waits for.
    pub(crate) leisure: Leisure,
}

#[derive(Debug, Default)]
enum Help {
    #[default]
    Unasked,
    Here(Arc<Usher>),
    /// This browser takes no extension from us.
    Refused,
}

/// Which window each page is in, as far as that is known.
#[derive(Debug, Default)]
struct Places {
    known: HashMap<String, WindowId>,
    /// Where each of them was when the browser last spoke of it.
    urls: HashMap<String, String>,
    /// How often tabs were moved or closed: what was asked before may be answered too late.
    moves: u64,
    /// The usher listens. Without it a drag is not heard, and nothing is kept.
    watched: bool,
}

impl Windows {
    pub(crate) fn new(connection: Connection) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            me: me.clone(),
            connection,
            usher_place: OnceLock::new(),
            usher: tokio::sync::Mutex::default(),
            places: Mutex::default(),
            making: tokio::sync::RwLock::default(),
            made: Mutex::default(),
            childless: Mutex::default(),
            untouched: AtomicBool::new(false),
            pages: watch::Sender::new(false),
            leisure: Leisure::default(),
        })
    }

    /// Where the usher's files may be written: a directory nobody else can write to.
    pub(crate) fn keep_usher_in(&self, place: PathBuf) {
        // The first one counts.
        let _ = self.usher_place.set(place);
    }

    /// The browser was just launched: its first window, if it has one, is for the first who wants one (S4.8).
    pub(crate) fn set_untouched(&self) {
        self.untouched.store(true, Relaxed);
    }

    /// Whether a page was made here since anybody listens, and when the first one is.
    pub(crate) fn pages(&self) -> watch::Receiver<bool> {
        self.pages.subscribe()
    }

    /// Somebody has a page.
    pub(crate) fn has_page(&self) {
        self.pages.send_if_modified(|any| !std::mem::replace(any, true));
    }

    /// Makes a target that is known to be ours from its first moment on.
    pub(crate) async fn create(self: &Arc<Self>, turn: Turn, create: target::CreateTarget) -> Result<Fresh> {
        let connection = self.connection.clone();
        self.make(turn, async move { Ok(connection.call(None, &create).await?.target_id) }).await
    }

    /// A page in a window of its own.
    async fn open_window(self: &Arc<Self>, turn: Turn, cradle: String, bounds: WindowBounds) -> Result<(Fresh, Spot)> {
        if let Some((id, window)) = self.first_window().await? {
            let fresh = Fresh::found(id, Arc::clone(self), turn);
            self.put(window, bounds).await?;
            tracing::debug!("Using existing window for this MCP session, windowId: {}", window.0);
            return Ok((fresh, Spot { window, ground: Ground::New }));
        }
        let create =
            target::CreateTarget { url: cradle, new_window: Some(true), background: Some(true), ..target::CreateTarget::default() };
        let fresh = self.create(turn, create).await?;
        let window = self.window_of(fresh.id()).await?;
        self.put(window, bounds).await?;
        self.call_usher();
        tracing::debug!("Created new window for this MCP session, windowId: {}", window.0);
        Ok((fresh, Spot { window, ground: Ground::New }))
    }

    /// The blank page a browser came up with, if it is still all there is.
    async fn first_window(&self) -> Result<Option<(String, WindowId)>> {
        if !self.untouched.swap(false, Relaxed) {
            return Ok(None);
        }
        let mut pages = self.strangers().await?;
        pages.retain(|page| page.kind == "page");
        let Some(only) = pages.pop().filter(|only| pages.is_empty() && is_blank(&only.url)) else { return Ok(None) };
        let window = self.window_of(&only.target_id).await?;
        Ok(Some((only.target_id, window)))
    }

    /// A page in this window. Its place is asked for, not believed (S4.15). Without the usher there is no way that leaves the
    /// person's focus alone (a click of ours on a link takes it, seen on a display), so the page gets a window of its own.
    async fn open_tab(self: &Arc<Self>, turn: Turn, cradle: String, window: WindowId) -> Result<(Fresh, Spot)> {
        let usher = self.usher().await.ok_or(DriverError::WindowFull)?;
        let fresh = self.make(turn, async move { usher.open_in(&cradle, window).await }).await?;
        let window = self.window_of(fresh.id()).await?;
        Ok((fresh, Spot { window, ground: Ground::Old }))
    }

    async fn bring(&self, target: &str, place: Place) -> Result<Spot> {
        let usher = self.usher().await.ok_or_else(|| DriverError::Unsupported("This browser cannot move a tab.".into()))?;
        usher.bring(target, place).await?;
        self.forget(target);
        let window = self.window_of(target).await?;
        let ground = match place {
            Place::In(_) => Ground::Old,
            Place::New(bounds) => {
                self.put(window, bounds).await?;
                Ground::New
            }
        };
        Ok(Spot { window, ground })
    }

    async fn put(&self, window: WindowId, bounds: WindowBounds) -> Result<()> {
        let WindowBounds { left, top, width, height } = bounds;
        let set = browser::SetWindowBounds {
            window_id: window.0,
            bounds: browser::Bounds {
                left: Some(left.into()),
                top: Some(top.into()),
                width: Some(width.into()),
                height: Some(height.into()),
                window_state: Some("normal".into()),
            },
        };
        match self.connection.call_in(None, &set, HOUSEKEEPING).await {
            Ok(_) => Ok(()),
            // A tiling window manager knows better.
            Err(refused @ CdpError::Refused { .. }) => {
                tracing::debug!(%refused, "a window stays where it is");
                Ok(())
            }
            Err(other) => Err(other.into()),
        }
    }

    /// The window a page is in; asked for only where it is not known (S4.9, S4.16).
    pub(crate) async fn window_of(&self, target: &str) -> Result<WindowId> {
        let moves = {
            let places = self.places();
            if let Some(window) = places.known.get(target) {
                return Ok(*window);
            }
            places.moves
        };
        let asked = browser::GetWindowForTarget { target_id: Some(target.to_owned()) };
        let window = match self.connection.call_in(None, &asked, HOUSEKEEPING).await {
            Ok(found) => WindowId(found.window_id),
            Err(CdpError::Refused { .. }) => return Err(DriverError::PageGone),
            Err(other) => return Err(other.into()),
        };
        let mut places = self.places();
        if places.watched && places.moves == moves {
            places.known.insert(target.to_owned(), window);
        }
        Ok(window)
    }

    /// The window in which a page that is just coming up is put. Asked for at once, whenever the answer is wanted; one that is in none yet is asked
    /// for again then.
    pub(crate) fn birthplace(self: &Arc<Self>, target: &str) -> impl Future<Output = Option<WindowId>> + Send + use<> {
        let asked = self.connection.send(None, &browser::GetWindowForTarget { target_id: Some(target.to_owned()) });
        let (windows, target) = (Arc::clone(self), target.to_owned());
        async move {
            match tokio::time::timeout(HOUSEKEEPING, asked).await {
                Ok(Ok(found)) => Some(WindowId(found.window_id)),
                Ok(Err(_)) => windows.window_of(&target).await.ok(),
                Err(_) => None,
            }
        }
    }

    /// Whether a page that none of `own` is lives in this window.
    async fn has_others(&self, window: WindowId, own: impl Fn(&str) -> bool) -> Result<bool> {
        let targets = self.connection.call_in(None, &target::GetTargets::default(), HOUSEKEEPING).await?.target_infos;
        let others: Vec<_> = targets.into_iter().filter(|info| info.kind == "page" && !own(&info.target_id)).collect();
        let found = join_all(others.iter().map(|info| self.window_of(&info.target_id))).await;
        Ok(found.into_iter().flatten().any(|found| found == window))
    }

    /// Everything in the profile that nobody here made, of whatever kind, and that no page of ours opened. Waits for what is being made just now: the
    /// browser lists that before we know that it is ours.
    async fn strangers(&self) -> Result<Vec<target::TargetInfo>> {
        let late = |_| CdpError::Late { method: "Target.createTarget" };
        let _none_is_being_made = tokio::time::timeout(HOUSEKEEPING, self.making.write()).await.map_err(late)?;
        let contexts = self.connection.call_in(None, &target::GetBrowserContexts::default(), HOUSEKEEPING).await?;
        let targets = self.connection.call_in(None, &target::GetTargets::default(), HOUSEKEEPING).await?;
        let made = self.made();
        let of_the_profile =
            |info: &target::TargetInfo| info.browser_context_id.as_ref().is_none_or(|id| !contexts.browser_context_ids.contains(id));
        let ours = |id: &String| made.contains(id);
        let strange =
            |info: &target::TargetInfo| !ours(&info.target_id) && !info.opener_id.as_ref().is_some_and(ours) && !usher::is_usher(&info.url);
        Ok(targets.target_infos.into_iter().filter(|info| of_the_profile(info) && strange(info)).collect())
    }

    /// Whether a target that came up is none of our making. Waits for what is being made just now.
    pub(crate) async fn is_stranger(&self, target: &str) -> bool {
        // In a browser that does not answer nobody can tell, and nobody takes it.
        let none_is_being_made = tokio::time::timeout(HOUSEKEEPING, self.making.write()).await.is_ok();
        none_is_being_made && !self.made().contains(target)
    }

    /// Whether a target was made here, or is somebody's page.
    pub(crate) fn has_made(&self, target: &str) -> bool {
        self.made().contains(target)
    }

    /// Its context is closed: what it opens from now on is nobody's.
    pub(crate) fn orphans(&self, target: &str) {
        let mut childless = self.childless();
        if childless.len() == MAX_CHILDLESS {
            childless.pop_front();
        }
        childless.push_back(target.to_owned());
    }

    /// Closes a page that was opened by one whose context is closed; says whether it was one.
    pub(crate) fn ends_orphan(&self, info: &target::TargetInfo) -> bool {
        let orphan = info.opener_id.as_ref().is_some_and(|opener| self.childless().contains(opener));
        if orphan {
            // Queued by now; refused, it is gone already.
            drop(self.connection.send(None, &target::CloseTarget { target_id: info.target_id.clone() }));
        }
        orphan
    }

    /// A target is somebody's from now on.
    pub(crate) fn take(&self, target: &str) {
        self.made().insert(target.to_owned());
    }

    /// A target is the person's again.
    pub(crate) fn give_back(&self, target: &str) {
        self.made().remove(target);
    }

    /// A page that went elsewhere may be in another window too; one whose title changed is not.
    pub(crate) fn is_at(&self, target: &str, url: &str) {
        let mut places = self.places();
        let Places { known, urls, .. } = &mut *places;
        if known.contains_key(target) && urls.insert(target.to_owned(), url.to_owned()).is_none_or(|before| before != url) {
            known.remove(target);
        }
    }

    fn forget(&self, target: &str) {
        self.places().known.remove(target);
    }

    pub(crate) fn destroyed(&self, target: &str) {
        let mut places = self.places();
        places.moves += 1;
        places.known.remove(target);
        places.urls.remove(target);
        drop(places);
        self.made().remove(target);
    }

    fn tabs_moved(&self) {
        let mut places = self.places();
        places.moves += 1;
        places.known.clear();
    }

    fn usher_gone(&self) {
        self.places().watched = false;
        self.tabs_moved();
        if let Some(windows) = self.me.upgrade() {
            tokio::spawn(async move { *windows.usher.lock().await = Help::Unasked });
        }
    }

    /// Has the usher come: from the first window on somebody may drag tabs, and more of them will be wanted.
    fn call_usher(&self) {
        if let Some(windows) = self.me.upgrade() {
            tokio::spawn(async move { drop(windows.usher().await) });
        }
    }

    /// The browser is let go: nothing of ours stays in it.
    pub(crate) async fn dismiss_usher(&self) {
        if let Help::Here(usher) = std::mem::take(&mut *self.usher.lock().await)
            && let Err(error) = usher.leave().await
        {
            tracing::debug!(%error, "the window usher stays in the browser until it ends");
        }
    }

    /// The usher, loaded when it is first needed.
    async fn usher(&self) -> Option<Arc<Usher>> {
        let mut help = self.usher.lock().await;
        match &*help {
            Help::Here(usher) => return Some(Arc::clone(usher)),
            Help::Refused => return None,
            Help::Unasked => {}
        }
        match Usher::find_or_load(&self.connection, self.usher_place.get()?, self.me.clone()).await {
            Ok(usher) => {
                *help = Help::Here(Arc::clone(&usher));
                self.places().watched = usher.has_extension();
                Some(usher)
            }
            Err(error) => {
                tracing::warn!(%error, "the window usher cannot be had: each page gets a window, and drags are looked for with each call");
                if matches!(error, CdpError::Refused { .. }) {
                    *help = Help::Refused;
                }
                None
            }
        }
    }

    fn places(&self) -> MutexGuard<'_, Places> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn childless(&self) -> MutexGuard<'_, VecDeque<String>> {
        self.childless.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn made(&self) -> MutexGuard<'_, HashSet<String>> {
        self.made.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A page nobody has used.
fn is_blank(url: &str) -> bool {
    matches!(url, "" | "about:blank" | "chrome://newtab/" | "chrome://new-tab-page/" | "edge://newtab/")
}
