//! What the pages of one context share and no other context gets to know: what they see, whom they log in to, what was
//! copied, where downloads go. Pages hold it; the connection's reader writes to it and must never wait.

mod clipboard;
mod downloads;

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tabmux_driver::{Certificates, ContextSpec, Credentials, Emulation, Origins};

use crate::protocol::fetch::AuthChallenge;

pub(crate) use clipboard::Clipboard;
pub(crate) use downloads::{Downloads, staging};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) certificates: Certificates,
    pub(crate) build: Build,
    pub(crate) clipboard: Clipboard,
    pub(crate) downloads: Downloads,
    /// Where its pages have been, and what is still on its way to them.
    pub(crate) origins: Arc<Origins>,
    /// The first number that no element of its pages has.
    pub(crate) next_ref: Arc<AtomicU32>,
    emulation: Mutex<Emulation>,
    /// The CDP sessions of its pages.
    pages: Mutex<BTreeSet<String>>,
    proxy: Option<Credentials>,
}

/// Which of the two kinds of Chromium it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// Headless-shell: every page is in front, and a server's question for a login shows the server's own page.
    Shell,
    /// Tabs may be in the background, where nothing is drawn unless it is asked for; a question for a login opens a window over the
    /// page, which then answers nothing: it must be kept from that.
    Full,
}

impl World {
    /// `handle` names the context, also for the next daemon.
    pub(crate) fn new(handle: &str, spec: &ContextSpec, build: Build) -> Self {
        Self {
            certificates: spec.certificates,
            build,
            clipboard: Clipboard::new(handle),
            downloads: Downloads::in_directory(spec.downloads.clone()),
            origins: Arc::new(Origins::found(&spec.footprint, spec.source.as_ref())),
            next_ref: Arc::new(AtomicU32::new(1)),
            emulation: Mutex::new(spec.emulation.clone()),
            pages: Mutex::default(),
            proxy: spec.proxy.as_ref().and_then(|proxy| proxy.credentials.clone()),
        }
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn locked(&self) -> MutexGuard<'_, Emulation> {
        self.emulation.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn emulation(&self) -> Emulation {
        self.locked().clone()
    }

    pub(crate) fn set_emulation(&self, emulation: Emulation) {
        *self.locked() = emulation;
    }

    /// Whether requests must be looked at: only then can a server's question be answered.
    pub(crate) fn watches_logins(&self, emulation: &Emulation) -> bool {
        self.build == Build::Full || self.proxy.is_some() || emulation.credentials.is_some()
    }

    /// What is shown to who asks.
    pub(crate) fn credentials(&self, asked: &AuthChallenge) -> Option<Credentials> {
        if asked.source.as_deref() == Some("Proxy") {
            return self.proxy.clone();
        }
        let meant = |known: &Credentials| known.origin.as_ref().is_none_or(|origin| *origin == asked.origin);
        self.locked().credentials.clone().filter(meant)
    }
}
