//! A session's downloads: the directory that is its own, and what is said when a file comes. The directory ends with the session.

use std::collections::HashMap;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use tabmux_core::{Code, Fault, SessionId};
use tabmux_driver::{Download, DownloadState};
use tabmux_tools::visible_line;

/// How often a directory is emptied before it is left to the next daemon.
const REMOVALS: usize = 3;

/// Which downloads were said, and how far they were.
#[derive(Debug, Default)]
pub(super) struct Told(HashMap<String, DownloadState>);

impl Told {
    /// Those that are there already are no news.
    pub(super) fn knowing(list: &[Download]) -> Self {
        Self(list.iter().map(|download| (download.id.clone(), download.state)).collect())
    }

    /// What is new since the last time.
    pub(super) fn news(&mut self, list: &[Download]) -> Vec<String> {
        let news = list.iter().filter(|download| self.0.get(&download.id) != Some(&download.state)).map(said).collect();
        *self = Self::knowing(list);
        news
    }
}

fn said(download: &Download) -> String {
    let name = visible_line(&download.name);
    match (download.state, &download.path) {
        (DownloadState::InProgress, _) => format!("A download began: {name}; downloads with wait tells when it is whole."),
        (DownloadState::Completed, Some(path)) => format!("Downloaded {name}: {}", visible_line(&path.to_string_lossy())),
        (DownloadState::Completed, None) => format!("Downloaded {name}."),
        (DownloadState::Canceled, _) => format!("The download of {name} failed."),
    }
}

fn all(state_dir: &Path) -> PathBuf {
    state_dir.join("downloads")
}

pub(super) fn directory(state_dir: &Path, id: SessionId) -> PathBuf {
    all(state_dir).join(id.to_string())
}

/// For its owner alone.
pub(super) fn make(directory: &Path) -> Result<(), Fault> {
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| unmade(directory, &error))
}

fn unmade(directory: &Path, error: &std::io::Error) -> Fault {
    let code = if error.kind() == std::io::ErrorKind::StorageFull { Code::NoSpace } else { Code::Internal };
    let message = format!("{} cannot be made: {error}.", directory.display());
    Fault::new(code, message, "See whether the state directory can be written, or set TABMUX_STATE_DIR.")
}

/// On a thread of its own: it may hold much. Again where a file arrived while it was emptied.
pub(super) async fn remove(directory: PathBuf) {
    let removed = tokio::task::spawn_blocking(move || {
        let mut tries = (1..REMOVALS).map(|_| std::fs::remove_dir_all(&directory));
        tries.find(Result::is_ok).unwrap_or_else(|| std::fs::remove_dir_all(&directory))
    });
    match removed.await {
        Ok(Err(error)) if error.kind() != std::io::ErrorKind::NotFound => tracing::warn!(%error, "a session's downloads are left"),
        _ => {}
    }
}

/// Removes what sessions left that this daemon does not know.
pub(crate) fn sweep_downloads(state_dir: &Path, known: impl Iterator<Item = SessionId>) {
    let known: Vec<String> = known.map(|id| id.to_string()).collect();
    let Ok(entries) = std::fs::read_dir(all(state_dir)) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        // What arrives for sessions that share a profile has no owner's name.
        let kept = if name.to_string_lossy().starts_with('.') { !known.is_empty() } else { known.iter().any(|id| name == id.as_str()) };
        if !kept && let Err(error) = std::fs::remove_dir_all(entry.path()) {
            tracing::warn!(%error, path = %entry.path().display(), "downloads of a former session are left");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_of_a_download_is_said_once() {
        let mut download = Download::begun("1", "http://a.test/", "a.txt");
        let mut told = Told::knowing(&[]);
        let said = |told: &mut Told, download: &Download| told.news(std::slice::from_ref(download));
        assert_eq!(said(&mut told, &download), ["A download began: a.txt; downloads with wait tells when it is whole."]);
        download.bytes = 7;
        assert_eq!(said(&mut told, &download), Vec::<String>::new());
        download.state = DownloadState::Completed;
        download.path = Some("/d/a.txt".into());
        assert_eq!(said(&mut told, &download), ["Downloaded a.txt: /d/a.txt"]);
        assert_eq!(said(&mut told, &download), Vec::<String>::new());
        assert_eq!(said(&mut Told::knowing(&[download.clone()]), &download), Vec::<String>::new());
    }

    #[test]
    fn a_full_disk_is_told_from_other_faults() {
        let code = |kind: std::io::ErrorKind| unmade(Path::new("/d"), &kind.into()).code;
        assert_eq!(code(std::io::ErrorKind::StorageFull), Code::NoSpace);
        assert_eq!(code(std::io::ErrorKind::PermissionDenied), Code::Internal);
    }
}
