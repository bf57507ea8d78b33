//! The browsers that a former daemon left. Each is gone on with by itself: one that is stuck keeps nobody from the others.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tabmux_cdp::keeper::Kept;
use tabmux_driver::Handle;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::attached::Attached;
use super::chromium::Starter;
use super::{Running, Vacant, Wanted, add, shut_doors};

/// A browser that lost its pipe ends by itself, half a second later.
const ENDS_BY_ITSELF: Duration = Duration::from_secs(3);

#[derive(Debug)]
pub(super) struct Former {
    coming: watch::Sender<Vec<Coming>>,
}

/// One that has not answered yet.
#[derive(Clone, Debug)]
pub(super) struct Coming {
    socket: PathBuf,
    /// What it was started as, once its keeper has said so.
    wanted: Option<Wanted>,
}

/// What it takes to go on with them.
#[derive(Clone, Debug)]
pub(super) struct Heir {
    pub(super) starter: Arc<Starter>,
    pub(super) running: Arc<Mutex<Vec<Running>>>,
    pub(super) attached: Arc<Attached>,
    /// The contexts of the sessions that were left.
    pub(super) known: Arc<[Handle]>,
    /// The daemon ends, and all of them with it.
    pub(super) ending: CancellationToken,
}

impl Former {
    pub(super) fn none() -> Self {
        Self { coming: watch::Sender::new(Vec::new()) }
    }

    pub(super) fn begin(heir: &Heir) -> Self {
        let nests = heir.starter.nests();
        let coming: Vec<Coming> = heir.starter.left().into_iter().map(|socket| Coming { socket, wanted: None }).collect();
        let former = Self { coming: watch::Sender::new(coming.clone()) };
        for Coming { socket, .. } in coming {
            let (heir, coming) = (heir.clone(), former.coming.clone());
            tokio::spawn(async move {
                tokio::select! {
                    () = heir.go_on_with(&socket, &coming) => {}
                    () = heir.ending.cancelled() => heir.starter.end_left(&socket).await,
                }
                coming.send_modify(|coming| coming.retain(|one| one.socket != socket));
            });
        }
        heir.starter.begin_to_sweep();
        tokio::spawn(heir.clone().end_lost(nests, former.coming()));
        former
    }

    /// Changes with each that has come, or is known never to.
    pub(super) fn coming(&self) -> watch::Receiver<Vec<Coming>> {
        self.coming.subscribe()
    }

    /// Waits for all of them, but not for ever.
    pub(super) async fn all_come(&self, within: Duration) {
        self.come(within, |_| true).await;
    }

    /// Waits for those that such a session could have.
    pub(super) async fn have_come_for(&self, wanted: Option<&Wanted>, within: Duration) {
        self.come(within, |coming| coming.wanted.is_none() || coming.wanted.as_ref() == wanted).await;
    }

    async fn come(&self, within: Duration, awaited: impl Fn(&Coming) -> bool) {
        let mut coming = self.coming();
        // Who waits goes on without those that are late.
        let _ = tokio::time::timeout(within, coming.wait_for(|coming| !coming.iter().any(&awaited))).await;
    }
}

impl Heir {
    async fn go_on_with(&self, socket: &PathBuf, coming: &watch::Sender<Vec<Coming>>) {
        let Some(kept) = self.starter.claim(socket).await else { return };
        let wanted = Wanted::of(&kept);
        coming.send_modify(|coming| {
            coming.iter_mut().filter(|one| one.socket == *socket).for_each(|one| one.wanted = Some(wanted.clone()));
        });
        let Some(browser) = self.starter.go_on_with(kept).await else { return };
        match browser.keep_only(&self.known).await {
            // It was started for a session that never came to be.
            Ok(0) if wanted.is_for_one() => return drop(Vacant::new(Some(browser))),
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "what a former daemon was making may be left in its browser"),
        }
        add(&self.running, Some(wanted), &browser);
        if let Err(error) = shut_doors(&*browser, &self.attached.endpoints()).await {
            tracing::warn!(%error, "its pages are not yet kept from a debugging port; the next session in it tries again");
        }
    }
}

impl Heir {
    /// Of those that were there at the start: whom nobody goes on with. Keeper and browser are suspended, or the one is and the other dead; their
    /// sessions have begun anew, so nobody wants them when they wake up.
    async fn end_lost(self, mut nests: Vec<String>, mut coming: watch::Receiver<Vec<Coming>>) {
        let lost = async {
            // It closes with the daemon.
            coming.wait_for(Vec::is_empty).await.ok()?;
            tokio::time::sleep(ENDS_BY_ITSELF).await;
            Some(())
        };
        let Some(Some(())) = self.ending.run_until_cancelled(lost).await else { return };
        let here = self.running.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|one| one.browser.info().id).collect::<Vec<_>>();
        nests.retain(|id| !here.contains(id));
        self.starter.kill(nests).await;
    }
}

impl Wanted {
    fn of(kept: &Kept) -> Self {
        let launch = &kept.claim.about.launch;
        Self { binary: launch.binary.clone(), mode: launch.mode, sharing: launch.sharing }
    }
}
