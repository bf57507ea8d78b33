//! Browsers that somebody else started. However many sessions and agents use one, and whichever way they name it, it has
//! one connection: an everyday browser asks its user about each, and that may take minutes.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::attach::{AttachError, Consent, Endpoint, Located, Profiles, locate, usual_profiles};
use tabmux_cdp::find::Os;
use tabmux_core::{Code, Fault};
use tabmux_driver::{Browser, BrowserInfo, ContextSpec, Isolation};
use tokio::sync::watch;

use crate::settings::Attach;

/// How long a call waits for a person; less than most calls' deadline, so that it can say what it waits for.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long finding out what listens where may take.
const LOOKING: Duration = Duration::from_secs(15);
/// A browser that has not answered by then is probably asking its user.
const SURELY_ASKING: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Attached {
    profiles: Profiles,
    /// A private directory for what a browser is to load from us.
    helper: PathBuf,
    links: Arc<Mutex<Vec<Link>>>,
}

/// One connection, or the attempt at one.
#[derive(Debug)]
struct Link {
    located: Located,
    /// What users called it.
    names: Vec<String>,
    progress: watch::Receiver<Progress>,
}

#[derive(Clone, Debug)]
enum Progress {
    Knocking,
    Here(Arc<dyn Browser>),
    Failed(Fault),
}

impl Attached {
    pub(super) fn new(attach: &Attach, state_dir: &Path) -> Self {
        Self { profiles: profiles(attach), helper: state_dir.join("window-helper"), links: Arc::default() }
    }

    /// What can be said of a wish before anything is done for it.
    pub(super) fn check(endpoint: &str, spec: &ContextSpec) -> Result<(), Fault> {
        read(endpoint)?;
        if spec.isolation == Isolation::Browser {
            let message = "A browser that was attached to belongs to its user, so no session can have it to itself.";
            return Err(Fault::new(Code::Unsupported, message, "Use isolation window, context or tab, or leave it out."));
        }
        if spec.headless == Some(true) {
            let message = "A browser that was attached to belongs to its user, who decides whether it has windows.";
            return Err(Fault::new(Code::Unsupported, message, "Leave headless out."));
        }
        Ok(())
    }

    /// The browser of this name, connected to when it is not yet.
    pub(super) async fn get(&self, name: &str) -> Result<Arc<dyn Browser>, Fault> {
        self.links().retain(Link::may_live);
        let known = self.links().iter().find(|link| link.names.iter().any(|known| known == name)).map(|link| link.progress.clone());
        let progress = match known {
            Some(progress) => progress,
            None => self.link(name, self.locate(name).await?),
        };
        wait(progress, name).await
    }

    async fn locate(&self, name: &str) -> Result<Located, Fault> {
        let (endpoint, profiles) = (read(name)?, self.profiles.clone());
        let looking = tokio::task::spawn_blocking(move || locate(&endpoint, &profiles));
        match tokio::time::timeout(LOOKING, looking).await {
            Ok(Ok(located)) => located.map_err(|error| fault(&error)),
            Ok(Err(panicked)) => Err(Fault::new(Code::Internal, format!("Looking for a browser failed: {panicked}."), "Please report it.")),
            Err(_) => {
                let message = format!("Whether a browser listens at {name} could not be found out within {} s.", LOOKING.as_secs());
                Err(Fault::new(Code::Timeout, message, "Check the address and the network, then call again."))
            }
        }
    }

    /// The connection to that browser: the one there is, or a new one.
    fn link(&self, name: &str, located: Located) -> watch::Receiver<Progress> {
        let mut links = self.links();
        if let Some(link) = links.iter_mut().find(|link| link.located.id() == located.id()) {
            link.names.push(name.to_owned());
            return link.progress.clone();
        }
        let (sender, progress) = watch::channel(Progress::Knocking);
        links.push(Link { located: located.clone(), names: vec![name.to_owned()], progress: progress.clone() });
        let (all, helper, mine) = (Arc::clone(&self.links), self.helper.clone(), progress.clone());
        tokio::spawn(async move {
            let forget = || locked(&all).retain(|link| !link.progress.same_channel(&mine));
            match connect(&located).await {
                Ok(browser) => {
                    browser.keep_window_usher_in(helper);
                    sender.send_replace(Progress::Here(Arc::clone(&browser) as _));
                    let why = browser.gone().await;
                    tracing::warn!(browser = browser.info().id, why, "a browser that was attached to is gone");
                    forget();
                }
                Err(error) => {
                    tracing::warn!(%error, "a browser could not be attached to");
                    forget();
                    sender.send_replace(Progress::Failed(fault(&error)));
                }
            }
        });
        progress
    }

    /// Those that are connected or on their way, for `status`.
    pub(super) fn running(&self) -> Vec<BrowserInfo> {
        self.links().iter().map(|link| link.browser().map_or_else(|| link.located.unconnected(), |browser| browser.info())).collect()
    }

    /// Those that are connected.
    pub(super) fn here(&self) -> Vec<Arc<dyn Browser>> {
        self.links().iter().filter_map(Link::browser).collect()
    }

    /// Their addresses.
    pub(super) fn endpoints(&self) -> Vec<String> {
        self.links().iter().filter(|link| link.browser().is_some()).map(|link| link.located.url.clone()).collect()
    }

    /// As if that browser listened there.
    #[cfg(test)]
    pub(super) fn pretend(&self, url: &str, browser: Arc<dyn Browser>) {
        let located = Located { url: url.to_owned(), consent: Consent::NotNeeded };
        let (_, progress) = watch::channel(Progress::Here(browser));
        self.links().push(Link { located, names: vec![url.to_owned()], progress });
    }

    /// Lets go of all of them; they and their users' pages stay as they are.
    pub(super) async fn let_go(&self) {
        for browser in self.here() {
            if let Err(error) = browser.end().await {
                tracing::warn!(%error, "a browser was not let go of cleanly");
            }
        }
    }

    fn links(&self) -> MutexGuard<'_, Vec<Link>> {
        locked(&self.links)
    }
}

impl Link {
    fn browser(&self) -> Option<Arc<dyn Browser>> {
        match &*self.progress.borrow() {
            Progress::Here(browser) => Some(Arc::clone(browser)),
            Progress::Knocking | Progress::Failed(_) => None,
        }
    }

    /// Its task may not have seen yet that the browser is gone.
    fn may_live(&self) -> bool {
        !matches!(&*self.progress.borrow(), Progress::Here(browser) if browser.gone().now_or_never().is_some())
    }
}

fn locked(links: &Mutex<Vec<Link>>) -> MutexGuard<'_, Vec<Link>> {
    links.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn connect(located: &Located) -> Result<Arc<CdpBrowser>, AttachError> {
    let connecting = CdpBrowser::attach(located);
    tokio::pin!(connecting);
    let browser = match tokio::time::timeout(SURELY_ASKING, &mut connecting).await {
        Ok(connected) => connected?,
        Err(_) => {
            tracing::info!(
                endpoint = located.unconnected().endpoint,
                "waiting for the browser's user to allow the connection: click Allow there"
            );
            connecting.await?
        }
    };
    tracing::info!(browser = browser.info().id, endpoint = browser.info().endpoint, "attached to a browser");
    Ok(browser)
}

async fn wait(mut progress: watch::Receiver<Progress>, name: &str) -> Result<Arc<dyn Browser>, Fault> {
    let decided = tokio::time::timeout(PATIENCE, progress.wait_for(|progress| !matches!(progress, Progress::Knocking))).await;
    match decided.map(|decided| decided.map(|progress| progress.clone())) {
        Ok(Ok(Progress::Here(browser))) => Ok(browser),
        Ok(Ok(Progress::Failed(fault))) => Err(fault),
        // Its task is gone, which happens only when the daemon ends.
        Ok(Ok(Progress::Knocking) | Err(_)) => Err(Fault::new(Code::BrowserNotFound, "The browser is let go of.", "Call again.")),
        Err(_) => {
            let message = format!("The browser at {name} has not let tabmux in yet: it asks its user, and waits for them.");
            Err(Fault::new(Code::PausedByHuman, message, "Click Allow in the browser's dialog, then call again."))
        }
    }
}

/// What an endpoint of these settings leads to, without asking anybody; for `up` and `doctor`.
pub(super) fn look(endpoint: &str, attach: &Attach) -> Result<Located, Fault> {
    locate(&read(endpoint)?, &profiles(attach)).map_err(|error| fault(&error))
}

pub(super) fn read(endpoint: &str) -> Result<Endpoint, Fault> {
    endpoint.parse().map_err(|error| fault(&error))
}

fn profiles(attach: &Attach) -> Profiles {
    let os = if cfg!(target_os = "macos") { Os::Mac } else { Os::Linux };
    usual_profiles(os, attach.home.as_deref(), attach.config_home.as_deref())
}

fn fault(error: &AttachError) -> Fault {
    let code = match error {
        AttachError::Unreadable { .. } | AttachError::OfPage { .. } | AttachError::Several(_) => Code::BadArgument,
        AttachError::Tls { .. } => Code::Unsupported,
        AttachError::Refused { .. } => Code::PolicyDenied,
        AttachError::Late { consent: Consent::Asked, .. } => Code::PausedByHuman,
        AttachError::Late { consent: Consent::NotNeeded, .. } => Code::Timeout,
        AttachError::NotListening { .. }
        | AttachError::NotABrowser { .. }
        | AttachError::Withheld { .. }
        | AttachError::NoneFound
        | AttachError::Gone { .. }
        | AttachError::Unwelcome { .. } => Code::BrowserNotFound,
    };
    Fault::new(code, format!("{error}."), error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A window would open on its user's screen all the same.
    #[test]
    fn a_session_in_its_users_browser_cannot_be_without_windows() {
        let asked = |headless| {
            let spec = ContextSpec { isolation: Isolation::Window, headless, ..ContextSpec::default() };
            Attached::check("http://127.0.0.1:9222", &spec).map_err(|fault| fault.to_string())
        };
        let refused =
            "[unsupported] A browser that was attached to belongs to its user, who decides whether it has windows. Leave headless out.";
        assert_eq!([None, Some(false), Some(true)].map(asked), [Ok(()), Ok(()), Err(refused.to_owned())]);
    }
}
