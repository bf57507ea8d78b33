//! A new tab without the usher, for browsers that take no extension from us: a page of the session, in the window that is
//! meant, opens a link of ours in a background tab. The click is made in a world of our own, on a link that is in no
//! document, so the page's scripts see nothing of it; only such a world may ask for a tab in the background.

use std::sync::Arc;
use std::time::Duration;

use tabmux_driver::{DriverError, HOUSEKEEPING, Navigation, Page, Result};
use tokio::sync::oneshot;

use super::Windows;
use crate::CdpError;
use crate::page::CdpPage;
use crate::protocol::{page, runtime, target};

/// How the address of such a tab begins; the rest says which one it is.
const MARK: &str = "about:blank#tabmux-";

/// A page that is busy, or may open nothing, is not waited for longer: the next one is asked.
const PATIENCE: Duration = Duration::from_secs(1);

impl Windows {
    /// Opens a tab beside the first of these pages that can, and gives its target.
    pub(super) async fn open_beside(&self, pages: &[Arc<CdpPage>]) -> Result<String> {
        for page in pages {
            match tokio::time::timeout(PATIENCE, self.click(page)).await {
                Ok(Ok(target)) => return Ok(target),
                Ok(Err(gone @ DriverError::BrowserGone(_))) => return Err(gone),
                Ok(Err(_)) | Err(_) => {}
            }
        }
        Err(DriverError::WindowFull)
    }

    async fn click(&self, page: &CdpPage) -> Result<String> {
        let number = getrandom::u64().map_err(|error| DriverError::Unsupported(format!("no random numbers: {error}")))?;
        let url = format!("{MARK}{number:016x}");
        let (came, coming) = oneshot::channel();
        self.awaited().insert(url.clone(), came);
        let _forgotten = Forgotten { windows: self, url: &url };
        let world = page::CreateIsolatedWorld {
            frame_id: page.target().to_owned(),
            world_name: Some("tabmux".into()),
            ..page::CreateIsolatedWorld::default()
        };
        let world = self.connection.call(Some(page.session()), &world).await?.execution_context_id;
        let modifier = if cfg!(target_os = "macos") { "metaKey" } else { "ctrlKey" };
        let click = runtime::Evaluate {
            expression: format!(
                "{{ const link = document.createElementNS('http://www.w3.org/1999/xhtml', 'a'); link.href = '{url}'; \
                 link.rel = 'noopener noreferrer'; link.dispatchEvent(new MouseEvent('click', {{ {modifier}: true, cancelable: true }})); }}"
            ),
            context_id: Some(world),
            user_gesture: Some(true),
            ..runtime::Evaluate::default()
        };
        self.connection.call(Some(page.session()), &click).await?;
        coming.await.map_err(|_| DriverError::PageGone)
    }

    /// A target came up, or went elsewhere. Whether it is one that was asked for here; if so, nobody else need look at it.
    pub(crate) fn came_up(&self, info: &target::TargetInfo) -> bool {
        if !info.url.starts_with(MARK) {
            return false;
        }
        let waiter = self.awaited().remove(&info.url);
        let made = self.made().contains(&info.target_id);
        if let Some(waiter) = waiter
            && waiter.send(info.target_id.clone()).is_ok()
        {
            self.take(&info.target_id);
        } else if !made {
            // Whoever asked for it gave up.
            self.take(&info.target_id);
            let (connection, target_id) = (self.connection.clone(), info.target_id.clone());
            tokio::spawn(async move { connection.call_in(None, &target::CloseTarget { target_id }, HOUSEKEEPING).await });
        }
        true
    }
}

struct Forgotten<'a> {
    windows: &'a Windows,
    url: &'a str,
}

impl Drop for Forgotten<'_> {
    fn drop(&mut self) {
        self.windows.awaited().remove(self.url);
    }
}

/// The page becomes as one that was opened blank: with the origin of nobody, and no history.
pub(super) async fn forget_the_way(page: &CdpPage, windows: &Windows) -> Result<()> {
    page.navigate(Navigation::To("about:blank")).await?;
    match windows.connection.call_in(Some(page.session()), &page::ResetNavigationHistory::default(), HOUSEKEEPING).await {
        // A step back is all that is left of it then, and leads to a blank page.
        Ok(_) | Err(CdpError::Refused { .. }) => Ok(()),
        Err(other) => Err(other.into()),
    }
}
