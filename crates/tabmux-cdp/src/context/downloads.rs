//! Where the files of a context go, and whose a download is that the page itself did not tell of.

use std::collections::VecDeque;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tabmux_driver::{DriverError, HOUSEKEEPING, Result};

use super::CdpContext;
use crate::protocol::browser::{DownloadProgress, DownloadWillBegin, SetDownloadBehavior};
use crate::world::{Downloads, staging};

/// How many downloads are remembered whose page is nobody's.
const MAX_STRAYS: usize = 64;

/// Downloads whose page is nobody's yet, newest last. Whose it is becomes clear when the page is somebody's, if only for as long as it takes to see
/// that it is gone, or by where the file ends up.
#[derive(Debug, Default)]
pub(crate) struct Strays(Mutex<VecDeque<Stray>>);

#[derive(Debug)]
struct Stray {
    begun: DownloadWillBegin,
    /// How far it was when the browser last spoke of it.
    progress: Option<DownloadProgress>,
}

impl Stray {
    fn belongs_to(self, downloads: &Downloads) {
        downloads.began(&self.begun.guid, &self.begun.url, &self.begun.suggested_filename);
        self.progress.iter().for_each(|progress| downloads.progressed(progress));
    }
}

impl Strays {
    fn all(&self) -> MutexGuard<'_, VecDeque<Stray>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page itself said so already, unless it was gone too soon to be listened to.
    pub(crate) fn began(&self, contexts: &[Arc<CdpContext>], event: DownloadWillBegin) {
        if contexts.iter().any(|context| context.world.downloads.knows(&event.guid)) {
            return;
        }
        // Held while the owner is looked for: nobody claims the page in between.
        let mut strays = self.all();
        if let Some(owner) = contexts.iter().find(|context| context.has(&event.frame_id) || context.had(&event.frame_id)) {
            return owner.world.downloads.began(&event.guid, &event.url, &event.suggested_filename);
        }
        if strays.len() == MAX_STRAYS {
            strays.pop_front();
        }
        strays.push_back(Stray { begun: event, progress: None });
    }

    pub(crate) fn progressed(&self, contexts: &[Arc<CdpContext>], event: DownloadProgress) {
        let mut strays = self.all();
        if let Some(owner) = contexts.iter().find(|context| context.world.downloads.knows(&event.guid)) {
            return owner.world.downloads.progressed(&event);
        }
        let Some(at) = strays.iter().position(|stray| stray.begun.guid == event.guid) else { return };
        let place = event.file_path.as_ref().and_then(|file| Path::new(file).parent());
        let owner = contexts.iter().find(|context| place.is_some() && context.world.downloads.directory() == place);
        strays[at].progress = Some(event);
        if let Some((owner, stray)) = owner.and_then(|owner| Some((owner, strays.remove(at)?))) {
            stray.belongs_to(&owner.world.downloads);
        }
    }

    /// A page came up that is this context's: so is what it downloads, and what it has downloaded.
    fn claim(&self, context: &CdpContext, target: &str) {
        let mut strays = self.all();
        context.inner().came_up(target);
        while let Some(at) = strays.iter().position(|stray| stray.begun.frame_id == target) {
            strays.remove(at).into_iter().for_each(|stray| stray.belongs_to(&context.world.downloads));
        }
    }
}

/// Whether a browser was started by tabmux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Whose {
    Ours,
    Theirs,
}

impl CdpContext {
    /// Called before it is attached to: one that only downloads something is gone by then.
    pub(super) fn owns_downloads_of(&self, target: &str) {
        self.strays.claim(self, target);
    }

    /// A profile that several share has one place for all, from which each file goes to its owner. In a browser that is not ours that is where its person
    /// wants files: nothing is changed there, and only what agents' pages downloaded is brought from it.
    pub(crate) async fn place_downloads(&self, browser: Whose) -> Result<()> {
        let Some(directory) = self.world.downloads.directory() else { return Ok(()) };
        let browser_context_id = self.browser_context();
        let place = match (&browser_context_id, browser) {
            (Some(_), _) => Some(directory.to_owned()),
            (None, Whose::Ours) => Some(staging(directory)),
            (None, Whose::Theirs) => None,
        };
        for made in std::iter::once(directory).chain(place.as_deref()) {
            let made_it = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(made);
            made_it.map_err(|error| DriverError::Unsupported(format!("{} cannot be made: {error}.", made.display())))?;
        }
        let behavior = SetDownloadBehavior {
            behavior: if place.is_some() { "allowAndName" } else { "default" }.into(),
            browser_context_id,
            download_path: place.map(|place| place.to_string_lossy().into_owned()),
            events_enabled: Some(true),
        };
        self.connection.call_in(None, &behavior, HOUSEKEEPING).await?;
        Ok(())
    }
}
