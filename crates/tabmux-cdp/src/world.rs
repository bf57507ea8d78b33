//! What the pages of one context share and no other context gets to know: what they see, whom they log in to, what was
//! copied, where downloads go. Pages hold it; the connection's reader writes to it and must never wait.

mod clipboard;
mod downloads;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tabmux_driver::{Certificates, ContextSpec, Credentials, Emulation, Origins};

use crate::protocol::fetch::AuthChallenge;

pub(crate) use clipboard::Clipboard;
pub(crate) use downloads::{Downloads, staging};

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) certificates: Certificates,
    pub(crate) build: Build,
    drawn: Drawn,
    /// It has had two pages at a time.
    crowded: AtomicBool,
    pub(crate) clipboard: Clipboard,
    pub(crate) downloads: Downloads,
    /// Where its pages have been, and what is still on its way to them.
    pub(crate) origins: Arc<Origins>,
    /// The first number that no element of its pages has.
    pub(crate) next_ref: Arc<AtomicU32>,
    emulation: Mutex<Emulation>,
    /// What its pages were told last to see, which they may still refuse.
    shown: Mutex<Emulation>,
    /// The CDP sessions of its pages.
    pages: Mutex<BTreeSet<String>>,
    /// Those of their frames that live in another process.
    frames: Mutex<BTreeSet<String>>,
    proxy: Option<Credentials>,
}

/// Which of the two kinds of Chromium it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Build {
    /// Headless-shell: every page is in front, and a server's question for a login shows the server's own page.
    Shell,
    /// Tabs may be in the background; a question for a login opens a window over the page, which then answers nothing: it must be kept from that.
    Full,
}

/// When Chromium draws a page by itself. A tab in the background is drawn only when it is asked for: its animations stand still and pictures of it
/// never come. Each page that is asked costs 3 MB, so those that are drawn anyway are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawn {
    /// Headless-shell: every page is in front.
    Always,
    /// Headless, in a browser context: its first page is in front of a window that nobody can cover, until another page is.
    WhileAlone,
    /// A person's windows and tabs are there too.
    WhenAsked,
}

impl World {
    /// `handle` names the context, also for the next daemon.
    pub(crate) fn new(handle: &str, spec: &ContextSpec, build: Build, drawn: Drawn) -> Self {
        Self {
            certificates: spec.certificates,
            build,
            drawn,
            crowded: AtomicBool::new(false),
            clipboard: Clipboard::new(handle),
            downloads: Downloads::in_directory(spec.downloads.clone()),
            origins: Arc::new(Origins::found(&spec.footprint, spec.source.as_ref())),
            next_ref: Arc::new(AtomicU32::new(1)),
            emulation: Mutex::new(spec.emulation.clone()),
            shown: Mutex::new(spec.emulation.clone()),
            pages: Mutex::default(),
            frames: Mutex::default(),
            proxy: spec.proxy.as_ref().and_then(|proxy| proxy.credentials.clone()),
        }
    }

    pub(crate) fn pages(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn frames(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a frame that comes now is to see. Held while frames are told, so that none is told of something older after something newer; telling
    /// is only queueing, and nobody waits.
    pub(crate) fn shown(&self) -> MutexGuard<'_, Emulation> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those of its pages that must be asked to draw, now that `newcomer` is one of them.
    pub(crate) fn to_draw(&self, newcomer: &str) -> Vec<String> {
        let pages = self.pages();
        match self.drawn {
            Drawn::Always => Vec::new(),
            Drawn::WhileAlone if pages.len() < 2 => Vec::new(),
            // Who was alone until now has not been asked.
            Drawn::WhileAlone if !self.crowded.swap(true, Ordering::Relaxed) => pages.iter().cloned().collect(),
            Drawn::WhileAlone | Drawn::WhenAsked => vec![newcomer.to_owned()],
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_asked_to_draw_only_where_it_would_not_by_itself() {
        let asked = |drawn, steps: [&[&str]; 4]| {
            let world = World::new("c", &ContextSpec::default(), Build::Full, drawn);
            steps.map(|pages| {
                *world.pages() = pages.iter().map(|&page| page.to_owned()).collect();
                world.to_draw(pages.last().unwrap()).join(" ")
            })
        };
        let steps: [&[&str]; 4] = [&["a"], &["a", "b", "c"], &["b", "c", "d"], &["e"]];
        assert_eq!(asked(Drawn::Always, steps), ["", "", "", ""]);
        assert_eq!(asked(Drawn::WhenAsked, steps), ["a", "c", "d", "e"]);
        assert_eq!(asked(Drawn::WhileAlone, steps), ["", "a b c", "d", ""], "two may come at a time, and neither is left out");
    }
}
