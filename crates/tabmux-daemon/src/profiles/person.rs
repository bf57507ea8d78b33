//! A browser of its own for a profile: started by the command line, on private directories, and gone with it. The daemon has no
//! part in it: it may have no display, and its browsers are its sessions'.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tabmux_cdp::CdpBrowser;
use tabmux_cdp::find::{Places, Want};
use tabmux_cdp::keeper::KeeperHome;
use tabmux_cdp::launch::{Launch, Mode, Profile};
use tabmux_core::{Code, Fault};
use tabmux_driver::{Browser, HOUSEKEEPING};
use tempfile::TempDir;

use crate::settings::{BrowserChoice, Settings};

/// How long it outlives a command that was killed.
const GRACE: Duration = Duration::from_secs(2);

/// What comes of work in it, unless it is given up before. Either way the browser is still there to be ended, so that nothing is left.
pub(super) async fn unless<T>(given_up: impl Future<Output = ()>, work: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
    tokio::select! {
        biased;
        done = work => done,
        () = given_up => Err(Fault::new(Code::Cancelled, "It was interrupted, so nothing was kept.", "Start it again.")),
    }
}

/// A running browser and its directories.
#[derive(Debug)]
pub(super) struct OwnBrowser {
    browser: Arc<CdpBrowser>,
    /// Sockets, which must have short paths.
    _runtime: TempDir,
}

impl OwnBrowser {
    /// `place` is a private directory on a disk; it is the caller's to remove.
    pub(super) async fn start(settings: &Settings, place: &Path, mode: Mode, profile: Profile) -> Result<Self, Fault> {
        let named = match &settings.browser {
            BrowserChoice::Named(path) => path.clone(),
            BrowserChoice::Fake => {
                let message = "The fake browser has no profiles of people.";
                return Err(Fault::new(Code::Unsupported, message, "Unset TABMUX_BROWSER, or name a Chromium."));
            }
        };
        let failed = |error: std::io::Error| {
            Fault::new(Code::Internal, format!("A private directory cannot be made: {error}."), "See that the disk has room.")
        };
        let runtime = tempfile::Builder::new().prefix("tabmux-").permissions(Permissions::from_mode(0o700)).tempdir().map_err(failed)?;
        let binary = Places::here(named).find(Want::Full).map_err(|error| crate::browser::launch_fault(&error))?;
        let mut launch = Launch::new(binary, mode);
        launch.profile = profile;
        launch.args.clone_from(&settings.chromium.args);
        launch.window = Some(settings.chromium.window);
        launch.domains.clone_from(&settings.chromium.domains);
        let home = KeeperHome {
            exe: settings.chromium.keeper.clone(),
            words: vec!["keeper".into()],
            runtime_dir: runtime.path().to_owned(),
            profiles_dir: place.to_owned(),
            grace: Some(GRACE),
        };
        let browser = CdpBrowser::launch(&home, &launch).await.map_err(|error| crate::browser::launch_fault(&error))?;
        Ok(Self { browser, _runtime: runtime })
    }

    pub(super) fn browser(&self) -> &CdpBrowser {
        &self.browser
    }

    /// Ends it, and waits until its files are closed.
    pub(super) async fn end(self) {
        if !matches!(tokio::time::timeout(HOUSEKEEPING, self.browser.end()).await, Ok(Ok(()))) {
            tracing::warn!("the browser did not end in time; its keeper goes on with it");
        }
    }
}
