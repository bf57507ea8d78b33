//! The downloads of one context. Chromium names each file by an id of its own; once it is whole it gets its name here. A small
//! list beside the files tells the next daemon which they are. Writing happens on threads of its own, in order.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tabmux_driver::{Download, DownloadState, MAX_DOWNLOADS, settle};
use tokio::sync::watch;

use crate::protocol::browser::DownloadProgress;

/// What the next daemon reads.
const LIST: &str = ".downloads.json";

/// What Chromium calls a file that is not whole.
const PARTIAL: &str = "crdownload";

#[derive(Clone, Debug)]
pub(crate) struct Downloads(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    directory: Option<PathBuf>,
    list: watch::Sender<Vec<Download>>,
    /// Held while the list is written.
    writing: Mutex<()>,
}

/// Where the files of contexts that share a profile arrive before their owner gets them.
pub(crate) fn staging(directory: &Path) -> PathBuf {
    directory.with_file_name(".arriving")
}

impl Downloads {
    pub(super) fn in_directory(directory: Option<PathBuf>) -> Self {
        Self(Arc::new(Inner { directory, list: watch::Sender::default(), writing: Mutex::default() }))
    }

    pub(crate) fn directory(&self) -> Option<&Path> {
        self.0.directory.as_deref()
    }

    pub(crate) fn list(&self) -> watch::Receiver<Vec<Download>> {
        self.0.list.subscribe()
    }

    pub(crate) fn knows(&self, id: &str) -> bool {
        self.0.list.borrow().iter().any(|download| download.id == id)
    }

    pub(crate) fn began(&self, id: &str, url: &str, suggested: &str) {
        if self.directory().is_none() || self.knows(id) {
            return;
        }
        self.0.list.send_modify(|list| {
            if list.len() >= MAX_DOWNLOADS {
                let ended = list.iter().position(|download| download.state != DownloadState::InProgress);
                list.remove(ended.unwrap_or(0));
            }
            list.push(Download::begun(id, url, suggested));
        });
        self.aside(|inner| inner.write_list());
    }

    pub(crate) fn progressed(&self, event: &DownloadProgress) {
        let bytes = event.received_bytes.max(0.0) as u64;
        self.0.change(&event.guid, |download| download.bytes = bytes);
        let (guid, file) = (event.guid.clone(), event.file_path.clone());
        match event.state.as_str() {
            "completed" => self.aside(move |inner| inner.finish(&guid, file.map(PathBuf::from))),
            "canceled" => self.aside(move |inner| {
                inner.change(&guid, |download| download.state = DownloadState::Canceled);
                inner.write_list();
            }),
            _ => {}
        }
    }

    /// Finds what a former daemon's pages downloaded, also what became whole while nobody listened.
    pub(crate) async fn find_again(&self) {
        let inner = Arc::clone(&self.0);
        // It only fails when it panics; then nothing is found.
        drop(tokio::task::spawn_blocking(move || inner.read_list()).await);
    }

    fn aside(&self, work: impl FnOnce(&Inner) + Send + 'static) {
        let inner = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || work(&inner));
    }
}

impl Inner {
    fn change(&self, id: &str, change: impl FnOnce(&mut Download)) {
        self.list.send_if_modified(|list| {
            let known = list.iter_mut().find(|download| download.id == id && download.state == DownloadState::InProgress);
            known.map(change).is_some()
        });
    }

    fn waits_for(&self, id: &str) -> Option<Download> {
        self.list.borrow().iter().find(|download| download.id == id && download.state == DownloadState::InProgress).cloned()
    }

    /// The file is whole: it gets its name. `file` is where the browser says it is; where it cannot be brought from there (somebody else's browser may be
    /// on another machine) that place is told.
    fn finish(&self, id: &str, file: Option<PathBuf>) {
        let (Some(directory), Some(download)) = (&self.directory, self.waits_for(id)) else { return };
        let settled = match file.or_else(|| arrived(directory, id)) {
            Some(file) => {
                settle(&file, directory, &download.name).or_else(|error| if is_near(&file, directory) { Err(error) } else { Ok(file) })
            }
            None => Err(std::io::ErrorKind::NotFound.into()),
        };
        match settled {
            Ok(path) => self.change(id, |download| {
                download.name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                download.bytes = std::fs::metadata(&path).map_or(download.bytes, |found| found.len());
                download.path = Some(path);
                download.state = DownloadState::Completed;
            }),
            Err(error) => {
                tracing::warn!(%error, "a download could not be put in its place");
                self.change(id, |download| download.state = DownloadState::Canceled);
            }
        }
        self.write_list();
    }

    fn write_list(&self) {
        let Some(directory) = &self.directory else { return };
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let list = serde_json::to_vec(&*self.list.borrow()).expect("a list of texts is JSON");
        let new = directory.join(format!("{LIST}.new"));
        if let Err(error) = std::fs::write(&new, list).and_then(|()| std::fs::rename(&new, directory.join(LIST))) {
            tracing::warn!(%error, "the next daemon would not know of a download");
        }
    }

    fn read_list(&self) {
        let Some(directory) = &self.directory else { return };
        let Some(list) = std::fs::read(directory.join(LIST)).ok().and_then(|text| serde_json::from_slice::<Vec<Download>>(&text).ok())
        else {
            return;
        };
        let under_way: Vec<String> =
            list.iter().filter(|download| download.state == DownloadState::InProgress).map(|download| download.id.clone()).collect();
        self.list.send_replace(list);
        for id in under_way {
            if arrived(directory, &id).is_some() {
                self.finish(&id, None);
            } else if !places(directory, &id).any(|place| place.with_extension(PARTIAL).exists()) {
                self.change(&id, |download| download.state = DownloadState::Canceled);
            }
        }
    }
}

/// Whether a file was put there by us.
fn is_near(file: &Path, directory: &Path) -> bool {
    file.parent().is_some_and(|place| place == directory || place == staging(directory))
}

fn places(directory: &Path, id: &str) -> impl Iterator<Item = PathBuf> {
    [directory.join(id), staging(directory).join(id)].into_iter()
}

fn arrived(directory: &Path, id: &str) -> Option<PathBuf> {
    places(directory, id).find(|place| place.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the next daemon finds: a whole file, one that became whole meanwhile, one still on its way, one that is gone.
    #[tokio::test]
    async fn the_next_daemon_finds_what_was_downloaded_and_what_became_whole_meanwhile() {
        let home = tempfile::tempdir().unwrap();
        let own = home.path().join("own");
        let staging = staging(&own);
        for directory in [&own, &staging] {
            std::fs::create_dir(directory).unwrap();
        }
        let before = Downloads::in_directory(Some(own.clone()));
        for id in ["whole", "arrived", "staged", "coming", "gone"] {
            before.began(id, &format!("http://a.test/{id}"), "a.txt");
        }
        std::fs::write(own.join("whole"), "12345").unwrap();
        before.progressed(&DownloadProgress { guid: "whole".into(), state: "completed".into(), received_bytes: 5.0, ..Default::default() });
        let done = |list: &Vec<Download>| list[0].state == DownloadState::Completed;
        before.list().wait_for(done).await.unwrap();
        std::fs::write(own.join("arrived"), "1").unwrap();
        std::fs::write(staging.join("staged"), "22").unwrap();
        std::fs::write(own.join("coming.crdownload"), "").unwrap();
        // Whatever was being written is written.
        before.0.write_list();
        let after = Downloads::in_directory(Some(own.clone()));
        after.find_again().await;
        let told: Vec<_> =
            after.list().borrow().iter().map(|download| (download.id.clone(), download.name.clone(), download.state)).collect();
        let expected = |id: &str, name: &str, state| (id.to_owned(), name.to_owned(), state);
        use DownloadState::{Canceled, Completed, InProgress};
        assert_eq!(
            told,
            [
                expected("whole", "a.txt", Completed),
                expected("arrived", "a (1).txt", Completed),
                expected("staged", "a (2).txt", Completed),
                expected("coming", "a.txt", InProgress),
                expected("gone", "a.txt", Canceled),
            ]
        );
        assert_eq!(after.list().borrow()[2].path.as_deref(), Some(&*own.join("a (2).txt")));
    }

    #[test]
    fn the_list_is_bounded() {
        let home = tempfile::tempdir().unwrap();
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let downloads = Downloads::in_directory(Some(home.path().to_owned()));
            for number in 0..=MAX_DOWNLOADS {
                downloads.began(&number.to_string(), "http://a.test/", "a");
            }
            assert_eq!(downloads.list().borrow().len(), MAX_DOWNLOADS);
            assert!(!downloads.knows("0") && downloads.knows("1"));
        });
        // What is being written is written before its directory goes.
        drop(runtime);
    }
}
