//! What a kept browser leaves on disk: a directory, a socket, and a lock beside them that is held (shared) by the keeper
//! and, inherited, by every process of the browser. Who gets the lock for itself alone knows that all of them are dead,
//! whatever became of their pids.
//!
//! The lock is made first and removed last, so nothing is ever there that a sweep would not find.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(super) const SOCKET_PREFIX: &str = "keeper-";
pub(super) const SOCKET_SUFFIX: &str = ".sock";
const LOCK_SUFFIX: &str = ".lock";

#[derive(Debug)]
pub(super) struct Nest {
    pub(super) id: String,
    pub(super) dir: PathBuf,
    pub(super) socket: PathBuf,
    lock_path: PathBuf,
    lock: File,
}

/// Temporary directories in which Chromium would have to bind a longer name than a socket may have (107 bytes).
const LONGEST_TEMPORARY: usize = 107 - "/org.chromium.Chromium.XXXXXX/SingletonSocket".len();

impl Nest {
    /// A new one, empty.
    pub(super) fn make(runtime_dir: &Path, profiles_dir: &Path) -> io::Result<Self> {
        private_directory(runtime_dir)?;
        private_directory(profiles_dir)?;
        loop {
            let mut random = [0; 4];
            getrandom::fill(&mut random).map_err(io::Error::other)?;
            let id = format!("{:08x}", u32::from_ne_bytes(random));
            let lock_path = lock_path(profiles_dir, &id);
            let lock = match OpenOptions::new().write(true).create_new(true).mode(0o600).open(&lock_path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // A sweep may have come between the two, and taken it for a dead one's.
            match lock.try_lock_shared() {
                Ok(()) if lock.metadata()?.nlink() > 0 => {}
                Ok(()) | Err(TryLockError::WouldBlock) => continue,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let nest = Self { dir: profiles_dir.join(&id), socket: socket_path(runtime_dir, &id), id, lock_path, lock };
            DirBuilder::new().mode(0o700).create(&nest.dir)?;
            for inner in [nest.fresh_profile(), nest.temporary()] {
                DirBuilder::new().mode(0o700).create(inner)?;
            }
            return Ok(nest);
        }
    }

    /// The nest of a browser that lost its keeper.
    pub(super) fn join(id: &str, dir: &Path, socket: &Path) -> io::Result<Self> {
        let lock_path = lock_path(dir.parent().unwrap_or(dir), id);
        let lock = File::open(&lock_path)?;
        match lock.try_lock_shared() {
            Ok(()) => Ok(Self { id: id.to_owned(), dir: dir.to_owned(), socket: socket.to_owned(), lock_path, lock }),
            Err(TryLockError::WouldBlock) => Err(io::Error::other("the nest is being swept")),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Where a fresh profile goes.
    pub(super) fn fresh_profile(&self) -> PathBuf {
        self.dir.join("profile")
    }

    /// Where the browser's temporary files go, so that they vanish with the nest, also after `kill -9`.
    pub(super) fn temporary(&self) -> PathBuf {
        temporary(&self.dir, &self.socket)
    }

    /// The lock, for the browser to inherit.
    pub(super) fn lock(&self) -> io::Result<File> {
        self.lock.try_clone()
    }

    pub(super) fn remove(self) {
        remove(&self.dir, &self.socket, &self.lock_path);
    }
}

/// Removes what keepers and browsers that are all dead have left here, and says which nests those were.
pub fn sweep(runtime_dir: &Path, profiles_dir: &Path) -> Vec<PathBuf> {
    ids(profiles_dir).filter_map(|id| sweep_one(runtime_dir, profiles_dir, &id)).collect()
}

/// The names of all nests here.
pub(super) fn ids(profiles_dir: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(profiles_dir).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.file_name().to_str()?.strip_suffix(LOCK_SUFFIX)?.to_owned()))
}

/// Removes one nest, if nobody is left in it.
pub(super) fn sweep_one(runtime_dir: &Path, profiles_dir: &Path, id: &str) -> Option<PathBuf> {
    let (dir, lock_path) = (profiles_dir.join(id), lock_path(profiles_dir, id));
    let lock = File::open(&lock_path).ok()?;
    lock.try_lock().ok()?;
    remove(&dir, &socket_path(runtime_dir, id), &lock_path);
    Some(dir)
}

fn remove(dir: &Path, socket: &Path, lock: &Path) {
    let gone = |result: io::Result<()>| result.is_ok() || result.is_err_and(|error| error.kind() == io::ErrorKind::NotFound);
    // What cannot be removed keeps its lock, and with it the chance to be swept later.
    let directories = [dir.to_owned(), beside(socket)].into_iter().chain(own_afar(dir, socket));
    let directories = directories.map(fs::remove_dir_all).all(gone);
    if directories && gone(fs::remove_file(draft(socket))) && gone(fs::remove_file(socket)) {
        let _ = fs::remove_file(lock);
    }
}

pub(super) fn lock_path(profiles_dir: &Path, id: &str) -> PathBuf {
    profiles_dir.join(format!("{id}{LOCK_SUFFIX}"))
}

fn socket_path(runtime_dir: &Path, id: &str) -> PathBuf {
    runtime_dir.join(format!("{SOCKET_PREFIX}{id}{SOCKET_SUFFIX}"))
}

/// Beside its socket when the nest's own path is too long for it, and far from both when that is too.
fn temporary(dir: &Path, socket: &Path) -> PathBuf {
    let near = [dir.join("t"), beside(socket)].into_iter().find(|path| path.as_os_str().len() <= LONGEST_TEMPORARY);
    near.unwrap_or_else(|| afar(dir))
}

/// Temporary files that have no room in the nest.
fn beside(socket: &Path) -> PathBuf {
    socket.with_extension("t")
}

/// Where everything else is too long: by the nest's own name, so that who sweeps it finds this too. Whoever has such a name already keeps it, and the
/// nest is not made.
fn afar(dir: &Path) -> PathBuf {
    Path::new("/tmp").join(format!("tabmux-t-{}", dir.file_name().unwrap_or_default().display()))
}

/// That place, where this nest has one: everybody may make what they like in `/tmp`.
fn own_afar(dir: &Path, socket: &Path) -> Option<PathBuf> {
    let afar = afar(dir);
    let ours = |about: fs::Metadata| about.is_dir() && about.uid() == rustix::process::geteuid().as_raw();
    (temporary(dir, socket) == afar && fs::symlink_metadata(&afar).is_ok_and(ours)).then_some(afar)
}

/// The name of a socket that does not listen yet.
pub(super) fn draft(socket: &Path) -> PathBuf {
    socket.with_extension("draft")
}

fn private_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn everything(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.collect()
    }

    #[test]
    fn a_sweep_takes_the_nests_of_the_dead_and_leaves_those_of_the_living() {
        let (runtime, profiles) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let alive = Nest::make(runtime.path(), profiles.path()).unwrap();
        let dead = Nest::make(runtime.path(), profiles.path()).unwrap();
        let inherited = dead.lock().unwrap();
        fs::write(dead.fresh_profile().join("Cookies"), "x").unwrap();
        for left in [dead.socket.clone(), draft(&dead.socket)] {
            fs::write(left, "").unwrap();
        }
        let gone = dead.dir.clone();
        drop(dead);
        assert!(sweep(runtime.path(), profiles.path()).is_empty(), "its browser lives");
        drop(inherited);
        assert_eq!(sweep(runtime.path(), profiles.path()), [gone]);
        assert!(everything(runtime.path()).is_empty());
        assert_eq!(everything(profiles.path()).len(), 2, "the living one and its lock");
        alive.remove();
        assert!(everything(profiles.path()).is_empty());
    }

    /// A browser that is killed removes nothing itself, so what it has in `/tmp` would stay for ever.
    #[test]
    fn temporary_files_have_a_place_that_is_swept_also_below_a_long_path() {
        let (runtime, profiles) = (tempfile::tempdir_in("/tmp").unwrap(), tempfile::tempdir_in("/tmp").unwrap());
        let long = |directory: &tempfile::TempDir| directory.path().join("long/".repeat(12));
        for (runtime, directory) in [
            (runtime.path().to_owned(), profiles.path().to_owned()),
            (runtime.path().to_owned(), long(&profiles)),
            (long(&runtime), long(&profiles)),
        ] {
            let nest = Nest::make(&runtime, &directory).unwrap();
            let temporary = nest.temporary();
            assert!(temporary.is_dir() && temporary.as_os_str().len() <= LONGEST_TEMPORARY, "{}", temporary.display());
            fs::write(temporary.join("SingletonSocket"), "").unwrap();
            drop(nest);
            assert_eq!(sweep(&runtime, &directory).len(), 1);
            assert!(!temporary.exists() && everything(&runtime).iter().all(|left| left == "long"), "{:?}", everything(&runtime));
        }
    }

    #[test]
    fn what_others_have_in_the_common_place_stays_and_keeps_no_nest_from_being_swept() {
        let (runtime, profiles) = (tempfile::tempdir_in("/tmp").unwrap(), tempfile::tempdir_in("/tmp").unwrap());
        for far in ["", &"long/".repeat(12)] {
            let (runtime, profiles) = (runtime.path().join(far), profiles.path().join(far));
            let nest = Nest::make(&runtime, &profiles).unwrap();
            let theirs = afar(&nest.dir);
            if nest.temporary() == theirs {
                fs::remove_dir(&theirs).unwrap();
            }
            fs::write(&theirs, "theirs").unwrap();
            drop(nest);
            let swept = sweep(&runtime, &profiles).len();
            let (left, stays) = (everything(&profiles), fs::remove_file(&theirs).is_ok());
            assert_eq!((swept, stays, left.iter().all(|left| left == "long")), (1, true, true), "{left:?}");
        }
    }

    #[test]
    fn a_nest_is_private_and_can_be_joined_while_a_browser_lives_in_it() {
        let (runtime, profiles) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let nest = Nest::make(runtime.path(), profiles.path()).unwrap();
        assert_eq!(fs::metadata(&nest.dir).unwrap().mode() & 0o777, 0o700);
        let joined = Nest::join(&nest.id, &nest.dir, &nest.socket).unwrap();
        drop(nest);
        assert!(sweep(runtime.path(), profiles.path()).is_empty());
        joined.remove();
        assert!(everything(profiles.path()).is_empty());
    }
}
