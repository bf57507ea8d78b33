//! What the fake browser keeps per context beside cookies: emulation, the copied text, downloads.

use std::path::PathBuf;
use std::sync::Mutex;

use tokio::sync::watch;

use super::{locked, mint};
use crate::{ContextSpec, Download, DownloadState, DriverError, Emulation, Result, settle};

#[derive(Debug)]
pub(super) struct FakeWorld {
    emulation: Mutex<Emulation>,
    copied: Mutex<String>,
    directory: Option<PathBuf>,
    downloads: watch::Sender<Vec<Download>>,
}

impl FakeWorld {
    pub(super) fn new(spec: &ContextSpec) -> Self {
        Self {
            emulation: Mutex::new(spec.emulation.clone()),
            copied: Mutex::default(),
            directory: spec.downloads.clone(),
            downloads: watch::Sender::default(),
        }
    }

    pub(super) fn emulation(&self) -> Emulation {
        locked(&self.emulation).clone()
    }

    pub(super) fn emulate(&self, wanted: &Emulation) -> Result<()> {
        if let Some(zone) = wanted.timezone.as_ref().filter(|zone| zone.contains(' ')) {
            return Err(DriverError::EmulationRefused(format!("the timezone {zone:?}")));
        }
        *locked(&self.emulation) = wanted.clone();
        Ok(())
    }

    pub(super) fn timezone(&self) -> String {
        locked(&self.emulation).timezone.clone().unwrap_or_else(|| "UTC".to_owned())
    }

    pub(super) fn copy(&self, text: String) {
        *locked(&self.copied) = text;
    }

    pub(super) fn copied(&self) -> String {
        locked(&self.copied).clone()
    }

    pub(super) fn downloads(&self) -> watch::Receiver<Vec<Download>> {
        self.downloads.subscribe()
    }

    /// A whole file at once.
    pub(super) fn download(&self, url: &str) -> Result<()> {
        let mut download = Download::begun(&mint("fake-file")?.0, url, "a.bin");
        let failed = |error: std::io::Error| DriverError::NavigationFailed(format!("the download failed: {error}"));
        if let Some(directory) = &self.directory {
            let arriving = directory.join(&download.id);
            std::fs::write(&arriving, url).map_err(failed)?;
            let path = settle(&arriving, directory, &download.name).map_err(failed)?;
            download.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            download.path = Some(path);
        }
        download.bytes = url.len() as u64;
        download.state = DownloadState::Completed;
        self.downloads.send_modify(|list| list.push(download));
        Ok(())
    }
}
