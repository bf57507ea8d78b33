//! Starts Chromium and finds again what a former daemon left running.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tabmux_cdp::CdpBrowser;
use tabmux_cdp::find::{Places, Want};
use tabmux_cdp::keeper::{self, KeeperHome, Kept};
use tabmux_cdp::launch::{Launch, LaunchError, Mode, Profile, Sharing};
use tabmux_core::{Code, Fault};
use tabmux_driver::{Browser, ContextSpec, Isolation};

use super::{Found, Wanted};
use crate::settings::Chromium;

/// As long, together, as a keeper may take to end a browser that does not end by itself.
const LAST_SWEEPS_MS: [u64; 8] = [0, 50, 150, 500, 500, 500, 500, 500];
/// After so many of them whoever is left is killed: a process that is suspended ends at nobody's word.
const GENTLE_SWEEPS: usize = 4;
const SWEEPS: [Duration; 4] = [Duration::ZERO, Duration::from_millis(500), Duration::from_secs(1), Duration::from_secs(10)];

#[derive(Debug)]
pub(super) struct Starter {
    /// What `TABMUX_BROWSER` names.
    named: Option<PathBuf>,
    settings: Chromium,
}

impl Starter {
    pub(super) fn new(named: Option<PathBuf>, settings: Chromium) -> Self {
        Self { named, settings }
    }

    /// Windows need a full browser, also where nobody sees them; everything else that nobody sees has the small one.
    pub(super) fn wanted(&self, spec: &ContextSpec) -> Result<Wanted, Fault> {
        let mode = if spec.headless.unwrap_or(self.settings.headless) { Mode::Headless } else { Mode::Headed };
        let want = if mode == Mode::Headed || spec.isolation == Isolation::Window { Want::Full } else { Want::Plain };
        let binary = Places::here(self.named.clone()).find(want).map_err(|error| fault(&error))?;
        let sharing = if spec.isolation == Isolation::Browser { Sharing::One } else { Sharing::Many };
        Ok(Wanted { binary, mode, sharing })
    }

    pub(super) fn check(&self, spec: &ContextSpec) -> Result<(), Fault> {
        self.wanted(spec).map(|_| ())
    }

    pub(super) fn found(&self) -> Result<Found, Fault> {
        self.wanted(&ContextSpec::default()).map(|wanted| Found::Installed { path: wanted.binary.path })
    }

    pub(super) async fn start(&self, wanted: &Wanted) -> Result<Arc<dyn Browser>, Fault> {
        let mut launch = Launch::new(wanted.binary.clone(), wanted.mode);
        launch.args.clone_from(&self.settings.args);
        launch.window = Some(self.settings.window);
        launch.sharing = wanted.sharing;
        if let Some(profile) = self.settings.profile.as_ref().filter(|_| wanted.sharing == Sharing::Many) {
            launch.profile = Profile::Named(profile.clone());
        }
        launch.domains.clone_from(&self.settings.domains);
        let browser = CdpBrowser::launch(&self.home(), &launch).await.map_err(|error| fault(&error))?;
        tracing::info!(browser = browser.info().id, pid = browser.info().pid, binary = %launch.binary.path.display(), "browser started");
        Ok(browser)
    }

    /// The keepers of browsers whose daemon is gone.
    pub(super) fn left(&self) -> Vec<PathBuf> {
        keeper::keepers(&self.settings.runtime_dir)
    }

    /// What is kept there, which a keeper says from memory however its browser is.
    pub(super) async fn claim(&self, socket: &Path) -> Option<Kept> {
        let claimed = keeper::claim(socket).await;
        claimed.inspect_err(|error| tracing::warn!(%error, socket = %socket.display(), "a browser could not be claimed")).ok()
    }

    /// Goes on with a browser of a former daemon, once it answers.
    pub(super) async fn go_on_with(&self, kept: Kept) -> Option<Arc<dyn Browser>> {
        let browser = match CdpBrowser::go_on_with(&self.home(), kept).await {
            Ok(browser) => browser,
            Err(error) => {
                tracing::warn!(%error, "a browser could not be taken over");
                return None;
            }
        };
        tracing::info!(browser = browser.info().id, pid = browser.info().pid, "browser of the former daemon taken over");
        if browser.launched().is_some_and(|launch| launch.domains != self.settings.domains) {
            tracing::warn!(browser = browser.info().id, "the domains it may reach were changed, so it is ended");
            drop(browser.end().await);
            return None;
        }
        Some(browser)
    }

    /// Ends one that was not gone on with, without asking it anything.
    pub(super) async fn end_left(&self, socket: &Path) {
        if let Some(kept) = self.claim(socket).await
            && let Err(error) = kept.claim.end().await
        {
            tracing::warn!(%error, "a browser of the former daemon did not end");
        }
    }

    /// Removes what dead browsers left.
    pub(super) fn begin_to_sweep(&self) {
        tokio::spawn(sweep(self.home()));
    }

    /// Whether keepers or what they keep are on disk.
    pub(super) fn has_leavings(&self) -> bool {
        let profiles = std::fs::read_dir(&self.settings.profiles_dir).is_ok_and(|mut entries| entries.next().is_some());
        profiles || !keeper::keepers(&self.settings.runtime_dir).is_empty()
    }

    /// At the end of the daemon: what is dead or just dying leaves nothing.
    pub(super) async fn sweep_all(&self) {
        let home = self.home();
        for (round, pause) in LAST_SWEEPS_MS.into_iter().enumerate() {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            keeper::sweep(&home.runtime_dir, &home.profiles_dir);
            if !self.has_leavings() {
                return;
            }
            if round >= GENTLE_SWEEPS {
                self.kill(self.nests()).await;
            }
        }
    }

    /// What browsers have on disk, dead or alive, by their names.
    pub(super) fn nests(&self) -> Vec<String> {
        keeper::nests(&self.settings.profiles_dir)
    }

    /// Ends those that nobody can be asked to end.
    pub(super) async fn kill(&self, nests: Vec<String>) {
        let home = self.home();
        let kill = move || nests.iter().filter_map(|id| keeper::end_left(&home.runtime_dir, &home.profiles_dir, id)).collect::<Vec<_>>();
        for ended in tokio::task::spawn_blocking(kill).await.unwrap_or_default() {
            tracing::warn!(path = %ended.display(), "a browser that nobody could end any more was killed");
        }
    }

    fn home(&self) -> KeeperHome {
        KeeperHome {
            exe: self.settings.keeper.clone(),
            words: vec!["keeper".into()],
            runtime_dir: self.settings.runtime_dir.clone(),
            profiles_dir: self.settings.profiles_dir.clone(),
            grace: self.settings.grace,
        }
    }
}

/// Removes what dead browsers left. Again a little later, because their last processes may still be on their way out.
async fn sweep(home: KeeperHome) {
    for pause in SWEEPS {
        tokio::time::sleep(pause).await;
        for left in keeper::sweep(&home.runtime_dir, &home.profiles_dir) {
            tracing::info!(path = %left.display(), "what a dead browser left was removed");
        }
    }
}

pub(super) fn fault(error: &LaunchError) -> Fault {
    let code = match error {
        // One that does not even start is none: nothing of anybody's was in it.
        LaunchError::NotFound { .. } | LaunchError::Unusable { .. } | LaunchError::Died { .. } | LaunchError::Late { .. } => {
            Code::BrowserNotFound
        }
        LaunchError::NoDisplay => Code::Unsupported,
        LaunchError::KeeperGone(_) => Code::BrowserCrashed,
        LaunchError::ProfileHeld { .. } | LaunchError::Claimed { .. } => Code::Capacity,
        LaunchError::System(_) => Code::Internal,
    };
    let mut message = error.to_string();
    if !message.ends_with('.') {
        message.push('.');
    }
    Fault::new(code, message, error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_browser_that_hangs_at_its_start_is_none_and_its_owner_is_told_to_look() {
        let fault = fault(&LaunchError::Late { seconds: 30 });
        assert_eq!(fault.code, Code::BrowserNotFound);
        assert!(fault.hint.contains("Start that browser by hand") && fault.hint.contains("TABMUX_BROWSER"), "{fault}");
    }
}
