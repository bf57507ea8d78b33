//! Where the files of a context go, and whose a download is that the page itself did not tell of.

use std::collections::VecDeque;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tabmux_driver::{DriverError, HOUSEKEEPING, Result};

use super::CdpContext;
use crate::protocol::browser::{DownloadProgress, DownloadWillBegin, SetDownloadBehavior};
use crate::world::staging;

/// How many downloads are remembered whose page is nobody's.
const MAX_STRAYS: usize = 64;

/// Downloads whose page is nobody's yet, newest last: where the file ends up says whose it is.
#[derive(Debug, Default)]
pub(crate) struct Strays(Mutex<VecDeque<DownloadWillBegin>>);

impl Strays {
    fn all(&self) -> MutexGuard<'_, VecDeque<DownloadWillBegin>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page itself said so already, unless it was gone too soon to be listened to.
    pub(crate) fn began(&self, contexts: &[Arc<CdpContext>], event: DownloadWillBegin) {
        if contexts.iter().any(|context| context.world.downloads.knows(&event.guid)) {
            return;
        }
        if let Some(owner) = contexts.iter().find(|context| context.has(&event.frame_id)) {
            return owner.world.downloads.began(&event.guid, &event.url, &event.suggested_filename);
        }
        let mut strays = self.all();
        if strays.len() == MAX_STRAYS {
            strays.pop_front();
        }
        strays.push_back(event);
    }

    pub(crate) fn progressed(&self, contexts: &[Arc<CdpContext>], event: &DownloadProgress) {
        if let Some(owner) = contexts.iter().find(|context| context.world.downloads.knows(&event.guid)) {
            return owner.world.downloads.progressed(event);
        }
        let Some(place) = event.file_path.as_ref().and_then(|file| Path::new(file).parent()) else { return };
        let stray = {
            let mut strays = self.all();
            let at = strays.iter().position(|stray| stray.guid == event.guid);
            at.and_then(|at| strays.remove(at))
        };
        let owner = contexts.iter().find(|context| context.world.downloads.directory() == Some(place));
        if let (Some(owner), Some(stray)) = (owner, stray) {
            owner.world.downloads.began(&stray.guid, &stray.url, &stray.suggested_filename);
            owner.world.downloads.progressed(event);
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
    /// A profile that several share has one place for all, from which each file goes to its owner. In a browser that is not
    /// ours files stay where its person wants them.
    pub(crate) async fn place_downloads(&self, browser: Whose) -> Result<()> {
        let Some(directory) = self.world.downloads.directory() else { return Ok(()) };
        let browser_context_id = self.browser_context();
        let place = match (&browser_context_id, browser) {
            (Some(_), _) => directory.to_owned(),
            (None, Whose::Ours) => staging(directory),
            (None, Whose::Theirs) => return Ok(()),
        };
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&place);
        made.map_err(|error| DriverError::Unsupported(format!("{} cannot be made: {error}.", place.display())))?;
        let behavior = SetDownloadBehavior {
            behavior: "allowAndName".into(),
            browser_context_id,
            download_path: Some(place.to_string_lossy().into_owned()),
            events_enabled: Some(true),
        };
        self.connection.call_in(None, &behavior, HOUSEKEEPING).await?;
        Ok(())
    }
}
