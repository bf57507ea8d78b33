//! Sends a page somewhere and waits until it is there. Settled means: the document that was asked for, or the one it
//! sent the page on to, fired `load`. No fixed wait; whoever asks has the deadline.

use std::time::Duration;

use tabmux_driver::{DriverError, HOUSEKEEPING, Navigation, Result};
use tokio::sync::watch;

use super::CdpPage;
use super::arrival::{ARRIVE, BEGIN};
use super::state::{Life, Progress};
use crate::CdpError;
use crate::protocol::page::{GetNavigationHistory, Navigate, NavigateToHistoryEntry, NavigationEntry, Reload};

/// How long after its load a document may take to say that it has stopped loading.
const TURN: Duration = Duration::from_millis(100);

/// How often a page may send itself on before it is where it is.
const HOPS: usize = 4;

impl CdpPage {
    pub(super) async fn go(&self, to: Navigation<'_>) -> Result<()> {
        let mut progress = self.state.watch();
        let before = progress.borrow_and_update().clone();
        // A move within the document is its scripts' own business.
        let stays = matches!(to, Navigation::To(url) if is_within(&self.state.url(), url));
        if !stays {
            // First, or a document that came early is loaded again on top of the one that is asked for here.
            self.state.goes_elsewhere();
        }
        match to {
            Navigation::To(url) => {
                if !stays {
                    self.freed().await;
                }
                self.go_to(url).await?;
            }
            Navigation::Back => self.step(-1).await?,
            Navigation::Forward => self.step(1).await?,
            Navigation::Reload => {
                self.freed().await;
                let mut progress = self.state.watch();
                let before = mark(&mut progress);
                self.call(&Reload::default()).await?;
                self.settle(&mut progress, before).await?;
            }
        }
        let commits = progress.borrow_and_update().commits;
        self.heard_out(&mut progress).await?;
        self.read_place().await?;
        // By then a document that sends the page on has said so.
        self.sent_on(&mut progress, &before).await?;
        if progress.borrow().commits != commits {
            self.check_reached()?;
            self.read_place().await?;
        }
        // One that said so in the last moment may be where nothing is by now.
        if stays { Ok(()) } else { self.check_reached() }
    }

    async fn go_to(&self, url: &str) -> Result<()> {
        let mut progress = self.state.watch();
        let before = progress.borrow_and_update().clone();
        let reply = self.call(&Navigate { url: url.to_owned(), ..Navigate::default() }).await?;
        if let Some(error) = reply.error_text {
            if reply.is_download == Some(true) {
                // Told by itself, and after the answer. Whoever hears of it next can wait for it.
                let listed = self.reached(&mut progress, |now| now.downloads > before.downloads);
                let _ = tokio::time::timeout(HOUSEKEEPING, listed).await;
                return Err(DriverError::BecameDownload(url.to_owned()));
            }
            return Err(if error == "net::ERR_ABORTED" {
                self.aborted(url, &mut progress, before.started).await
            } else {
                self.failed(&error, url, reply.loader_id, &mut progress).await
            });
        }
        let Some(loader) = reply.loader_id else {
            // A move within the document, told by itself and perhaps after the answer.
            let moved = self.reached(&mut progress, |now| now.moves > before.moves);
            let _ = tokio::time::timeout(BEGIN, moved).await;
            return Ok(());
        };
        self.committed(&mut progress, &loader).await?;
        self.reached(&mut progress, Progress::is_over).await?;
        self.check_reached()
    }

    /// A document may send the page on as soon as it is there: where that leads belongs to where it was sent. Not for long, and not for
    /// ever.
    async fn sent_on(&self, progress: &mut watch::Receiver<Progress>, before: &Progress) -> Result<()> {
        for _ in 0..HOPS {
            let now = progress.borrow_and_update().clone();
            // The first one begun was ours.
            let begins = now.scheduled || now.requested - before.requested > (now.started - before.started).saturating_sub(1);
            // A move within a document does not wait for the rest of it.
            let rests = now.is_over() || now.commits == before.commits;
            if !now.underway && !begins && rests {
                break;
            }
            if !now.underway && begins {
                let on = self.reached(progress, |then| then.started > now.started || then.commits > now.commits);
                if tokio::time::timeout(BEGIN, on).await.is_err() {
                    break;
                }
            }
            let there = self.reached(progress, |then| !then.underway && (then.is_over() || then.unreachable));
            if let Ok(gone) = tokio::time::timeout(ARRIVE, there).await {
                gone?;
            }
        }
        Ok(())
    }

    /// What a document has scheduled by its load is told before it is said to have stopped loading. Not for long, where it asks something then.
    async fn heard_out(&self, progress: &mut watch::Receiver<Progress>) -> Result<()> {
        let stopped = self.reached(progress, |now| now.stopped || now.underway || now.scheduled || !now.is_over());
        tokio::time::timeout(TURN, stopped).await.unwrap_or(Ok(()))
    }

    fn check_reached(&self) -> Result<()> {
        if let Some(why) = self.state.broke_off() {
            let here = self.state.url();
            return Err(DriverError::NavigationFailed(format!("{why} at {here}: it broke off, and the page shows what came of it")));
        }
        self.state.unreachable().map_or(Ok(()), |why| Err(DriverError::NavigationFailed(format!("{why} at {}", self.state.url()))))
    }

    /// Nothing came of it: there is nothing to show, or the page was sent elsewhere before it came, which is told a moment later.
    async fn aborted(&self, url: &str, progress: &mut watch::Receiver<Progress>, begun_before: u64) -> DriverError {
        let overtaken = |now: &Progress| now.started > begun_before + 1;
        let told = self.reached(progress, |now| overtaken(now) || !now.underway);
        if let Ok(Err(gone)) = tokio::time::timeout(HOUSEKEEPING, told).await {
            return gone;
        }
        if !overtaken(&progress.borrow()) {
            return DriverError::NoDocument(url.to_owned());
        }
        // A slow one is told by where the page still is.
        let there = self.reached(progress, |now| !now.underway && now.is_over());
        if let Ok(Err(gone)) = tokio::time::timeout(ARRIVE, there).await {
            return gone;
        }
        DriverError::Overtaken { url: url.to_owned(), here: self.state.url() }
    }

    async fn failed(&self, error: &str, url: &str, loader: Option<String>, progress: &mut watch::Receiver<Progress>) -> DriverError {
        if progress.borrow().life == Life::Crashed {
            return DriverError::PageCrashed;
        }
        // Chromium shows its error page; what follows must not meet it half loaded.
        if let Some(loader) = loader
            && let Ok(Err(gone)) = tokio::time::timeout(HOUSEKEEPING, self.committed(progress, &loader)).await
        {
            return gone;
        }
        if error.starts_with("net::ERR_CERT_") {
            return DriverError::CertificateRefused(format!("{error} at {url}: its certificate cannot be verified"));
        }
        DriverError::NavigationFailed(format!("{error} at {url}"))
    }

    /// The reply comes before the commit. A document that sends the page on at once may be gone before we look.
    async fn committed(&self, progress: &mut watch::Receiver<Progress>, loader: &str) -> Result<()> {
        let (shown, before) = {
            let now = progress.borrow_and_update();
            (now.has_shown(loader), now.commits)
        };
        if shown {
            return Ok(());
        }
        self.reached(progress, |now| now.commits > before).await
    }

    async fn step(&self, by: i64) -> Result<()> {
        let asked = GetNavigationHistory::default();
        let (history, ()) = futures::join!(self.call(&asked), self.freed());
        let history = history?;
        let at = usize::try_from(history.current_index + by).ok();
        let Some(entry) = at.and_then(|at| history.entries.get(at)) else {
            let which = if by < 0 { "earlier" } else { "later" };
            return Err(DriverError::NoHistory(which));
        };
        let mut progress = self.state.watch();
        let before = mark(&mut progress);
        self.call(&NavigateToHistoryEntry { entry_id: entry.id }).await?;
        self.settle(&mut progress, before).await
    }

    /// Another document came and loaded, or the page moved within its document.
    async fn settle(&self, progress: &mut watch::Receiver<Progress>, before: (u64, u64)) -> Result<()> {
        self.reached(progress, |now| now.moves > before.1 || (now.commits > before.0 && now.is_over())).await?;
        self.check_reached()
    }

    /// A page that was let go is waited for, so that the next call does not meet the one it leaves. Not for long: a download
    /// leaves it where it is, and a server may be slow.
    pub(super) async fn left(&self, progress: &mut watch::Receiver<Progress>, before: (u64, u64)) {
        let there = self.reached(progress, |now| now.commits > before.0 && now.is_over());
        // Gone, or still on its way: the next call says how the page is.
        let _ = tokio::time::timeout(HOUSEKEEPING, there).await;
    }

    pub(super) async fn reached(&self, progress: &mut watch::Receiver<Progress>, done: impl Fn(&Progress) -> bool) -> Result<()> {
        let now = progress.wait_for(|now| done(now) || matches!(now.life, Life::Gone(_))).await;
        match now.as_deref().map(|now| &now.life) {
            Ok(Life::Gone(why)) => Err(why.clone()),
            Ok(Life::Crashed) => Err(DriverError::PageCrashed),
            Ok(Life::Alive) => Ok(()),
            Err(_) => Err(DriverError::PageGone),
        }
    }

    /// From the browser's own list, which answers even when the page's scripts do not.
    async fn read_place(&self) -> Result<()> {
        if let Some(entry) = self.current_entry().await? {
            self.state.set_place(entry.url, entry.title);
        }
        Ok(())
    }

    /// The title alone: of a page that is on its way the list may still name another place.
    pub(super) async fn read_title(&self) -> Result<()> {
        if let Some(entry) = self.current_entry().await? {
            self.state.has_title_at(&entry.url, entry.title);
        }
        Ok(())
    }

    async fn current_entry(&self) -> Result<Option<NavigationEntry>> {
        let history = match self.call(&GetNavigationHistory::default()).await {
            Ok(history) => history,
            // It is on its way elsewhere already, and what it tells by itself is known.
            Err(CdpError::Refused { .. }) => return Ok(None),
            Err(gone) => return Err(gone.into()),
        };
        Ok(usize::try_from(history.current_index).ok().and_then(|at| history.entries.into_iter().nth(at)))
    }
}

/// Whether only the fragment changes.
pub(super) fn is_within(here: &str, there: &str) -> bool {
    let document = |url: &str| url.split_once('#').map_or_else(|| url.to_owned(), |(document, _)| document.to_owned());
    there.contains('#') && document(here) == document(there)
}

pub(super) fn mark(progress: &mut watch::Receiver<Progress>) -> (u64, u64) {
    let now = progress.borrow_and_update();
    (now.commits, now.moves)
}
