//! The pages of the session a call runs in, and nothing else: a tool cannot even name another session's page.

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use tabmux_core::{Fault, TabId};
use tabmux_driver::{Context, Dialog, Domains, Emulation, Isolation, Lacks, Page};

use crate::reply::placed;
use crate::visible;

#[async_trait]
pub trait Pages: Send + Sync {
    /// The page the call is for: the tab it named, else the session's current one; opens one where there is none.
    async fn page(&self) -> Result<(TabId, Arc<dyn Page>), Fault>;
    /// The same page, to be sent to this address and for nothing else: the address counts, and not where the page is, of which nothing is told.
    async fn page_bound_for(&self, url: &str) -> Result<(TabId, Arc<dyn Page>), Fault> {
        self.may_go(url)?;
        self.page().await
    }
    /// The same page, for what is known of it already: it may stand still in a dialog.
    async fn page_on_record(&self) -> Result<(TabId, Arc<dyn Page>), Fault> {
        self.page().await
    }
    /// The session's own world, for what belongs to all of its pages.
    async fn context(&self) -> Result<Arc<dyn Context>, Fault>;
    /// Makes the session's pages see this and nothing else, for as long as the session lasts.
    async fn emulate(&self, wanted: Emulation) -> Result<(), Fault>;
    /// Whether a file may be given to pages.
    fn may_read(&self, file: &Path) -> bool;
    async fn list(&self) -> Vec<PageView>;
    /// The tab that a call without one means.
    fn current(&self) -> Option<TabId>;
    /// Opens a page and makes it current.
    async fn open(&self) -> Result<(TabId, Arc<dyn Page>), Fault>;
    async fn select(&self, which: &PageRef) -> Result<PageView, Fault>;
    async fn close(&self, which: &PageRef) -> Result<PageView, Fault>;
    /// Opens the session's pages again elsewhere, with their logins, and leaves where they were.
    async fn move_house(&self, wanted: Move) -> Result<(), Fault>;
    /// The sites the operator lets pages reach.
    fn domains(&self) -> &Domains;
    /// Whether the call may send a page there, besides that: what was shared may be for some sites only.
    fn may_go(&self, _url: &str) -> Result<(), Fault> {
        Ok(())
    }
    /// Whether the call may be told what is at this address, for the same reason.
    fn may_see(&self, _url: &str) -> bool {
        true
    }
    /// Refuses what cannot be told apart by site, where the call is for some sites only.
    fn may_see_all(&self) -> Result<(), Fault> {
        Ok(())
    }
    /// Which other tabs have an open dialog, as far as the call may be told.
    fn asking(&self) -> Vec<(TabId, Dialog)> {
        Vec::new()
    }
    /// Where a call that waits writes down what does not hold yet, for who tells that its time was up.
    fn lacks(&self) -> Lacks {
        Lacks::default()
    }
    /// Notes that the page went elsewhere, so that a restarted daemon knows.
    fn moved(&self, tab: TabId);
}

/// Where a session's pages are to be opened again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// What it lost with its browser comes back.
    Back,
    /// What is not said stays as it is.
    To {
        isolation: Option<Isolation>,
        headless: Option<bool>,
        /// Also where something would not come along.
        force: bool,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageRef {
    Index(usize),
    Tab(String),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PageView {
    pub page_idx: usize,
    pub tab_id: String,
    pub url: String,
    pub title: String,
    /// Why it shows the browser's own error page, if it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<String>,
    /// Whether it shows nothing, because its process crashed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub crashed: bool,
    pub current: bool,
}

impl PageView {
    pub fn of(page_idx: usize, tab: TabId, page: &dyn Page, current: bool) -> Self {
        let (url, title, unreachable, crashed) = (page.url(), page.title(), page.unreachable(), page.is_crashed());
        Self { page_idx, tab_id: tab.to_string(), url, title, unreachable, crashed, current }
    }

    pub(crate) fn place(&self) -> String {
        if self.crashed {
            return format!("{} — crashed; navigate with reload brings it back", visible::line(&self.url));
        }
        placed(&self.url, &self.title, self.unreachable.as_deref())
    }
}
