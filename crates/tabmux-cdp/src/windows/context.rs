//! A context whose pages live in windows of the shared profile. Which windows are its own it is told.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use async_trait::async_trait;
use futures::future::join_all;
use tabmux_driver::{DriverError, Ground, Handle, Page, Place, Result, Spot, Strangers, WindowBounds, WindowId, Windowed};

use crate::context::{CdpContext, Unit, closed};
use crate::page::CdpPage;
use crate::protocol::target::TargetInfo;

#[derive(Debug, Default)]
pub(crate) struct OwnWindows(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    windows: BTreeSet<WindowId>,
    /// Targets of the person's that the operator lets it use; they are never closed with it.
    strangers: HashSet<String>,
}

impl OwnWindows {
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn newest(&self) -> Option<WindowId> {
        self.inner().windows.last().copied()
    }
}

impl CdpContext {
    fn own_windows(&self) -> Option<&OwnWindows> {
        match &self.unit {
            Unit::Windows(own) => Some(own),
            Unit::Context | Unit::Tabs => None,
        }
    }

    pub(crate) fn shares_profile(&self) -> bool {
        !matches!(self.unit, Unit::Context)
    }

    pub(crate) fn owns(&self, window: WindowId) -> bool {
        self.own_windows().is_some_and(|own| own.inner().windows.contains(&window))
    }

    /// Whether one of its pages had asked for a page at this address when it came up; such a wish is fulfilled once.
    pub(crate) fn asked_for(&self, url: &str, came: Instant) -> bool {
        self.pages().iter().any(|page| page.state().take_asked(url, came))
    }

    /// For who does not care which of its windows it is.
    pub(crate) async fn open_in_newest(&self, own: &OwnWindows) -> Result<Arc<dyn Page>> {
        loop {
            let newest = own.newest();
            match self.open_page_at(newest.map_or(Place::New(WindowBounds::default()), Place::In)).await {
                Ok((page, spot)) => {
                    own.inner().windows.insert(spot.window);
                    return Ok(page);
                }
                Err(DriverError::WindowGone | DriverError::WindowFull) if let Some(window) = newest => {
                    own.inner().windows.remove(&window);
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// Which of these pages are the person's.
    pub(crate) fn take_out_strangers(&self, pages: &mut HashMap<String, Arc<CdpPage>>) -> Vec<Arc<CdpPage>> {
        let Some(own) = self.own_windows() else { return Vec::new() };
        let strangers = std::mem::take(&mut own.inner().strangers);
        pages.extract_if(|target, _| strangers.contains(target)).map(|(_, page)| page).collect()
    }
}

#[async_trait]
impl Windowed for CdpContext {
    async fn open_page_at(&self, place: Place) -> Result<(Arc<dyn Page>, Spot)> {
        let turn = self.turn().await;
        if self.is_closed() {
            return Err(closed());
        }
        let (fresh, spot) = match place {
            Place::In(window) => self.windows.open_tab(turn, self.cradle(), window).await?,
            Place::New(bounds) => self.windows.open_window(turn, self.cradle(), bounds).await?,
        };
        let page = self.take_in(fresh).await?;
        Ok((page, spot))
    }

    async fn spot(&self, page: &Handle) -> Result<Spot> {
        let window = self.windows.window_of(&page.0).await?;
        let shared = self.owns(window) || self.windows.has_others(window, |target| self.has(target)).await?;
        Ok(Spot { window, ground: if shared { Ground::Old } else { Ground::New } })
    }

    async fn bring(&self, page: &Handle, place: Place) -> Result<Spot> {
        self.windows.bring(&page.0, place).await
    }

    async fn windows_of(&self, pages: &[Handle]) -> Vec<(Handle, WindowId)> {
        let asked = pages.iter().map(|page| async move { Some((page.clone(), self.windows.window_of(&page.0).await.ok()?)) });
        join_all(asked).await.into_iter().flatten().collect()
    }

    fn own(&self, windows: &BTreeSet<WindowId>) {
        if let Some(own) = self.own_windows() {
            own.inner().windows.clone_from(windows);
        }
    }

    async fn let_go(&self, page: &Handle) -> Result<()> {
        self.release(&page.0).await
    }

    async fn take_strangers(&self, which: Strangers) -> Result<Vec<Arc<dyn Page>>> {
        let Some(own) = self.own_windows() else { return Ok(Vec::new()) };
        let _turn = self.turn().await;
        let found = self.windows.strangers().await?;
        let mut taken: Vec<Arc<dyn Page>> = Vec::new();
        for info in found.into_iter().filter(|info| is_wanted(info, which)) {
            // One that closes meanwhile is none.
            let Ok(page) = CdpPage::attach(&self.connection, &info.target_id, info.url, &self.world).await else { continue };
            own.inner().strangers.insert(info.target_id.clone());
            if let Err(closed) = self.keep(&info.target_id, &page) {
                self.detach(&page).await?;
                return Err(closed);
            }
            taken.push(page);
        }
        Ok(taken)
    }
}

/// Which of the person's pages are pages, as Seed 4's options say (S4.13).
fn is_wanted(info: &TargetInfo, which: Strangers) -> bool {
    let kind = info.kind == "page" || which.all_kinds && matches!(info.kind.as_str(), "webview" | "background_page" | "other");
    kind && (which.devtools || !info.url.starts_with("devtools://"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// S4.13
    #[test]
    fn developer_tools_and_other_kinds_of_pages_are_hidden_unless_asked_for() {
        let info = |kind: &str, url: &str| TargetInfo { kind: kind.into(), url: url.into(), ..TargetInfo::default() };
        let (tab, tools, other) = (info("page", "https://a.test/"), info("page", "devtools://devtools/x"), info("background_page", "x"));
        let seen = |all_kinds, devtools| [&tab, &tools, &other].map(|info| is_wanted(info, Strangers { all_kinds, devtools }));
        assert_eq!(seen(false, false), [true, false, false]);
        assert_eq!(seen(false, true), [true, true, false]);
        assert_eq!(seen(true, false), [true, false, true]);
        assert!(!is_wanted(&info("service_worker", "x"), Strangers { all_kinds: true, devtools: true }));
    }
}
