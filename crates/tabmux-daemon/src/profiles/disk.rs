//! Files of the owner's alone, each written beside its place and renamed into it.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use tabmux_core::{Code, Fault};
use tempfile::TempDir;

/// Larger than any state a browser keeps for long. The same for what is kept, exported and named by others: so what is written
/// can be read.
const MAX_BYTES: u64 = 256 * 1024 * 1024;

/// What is being made, and what is being removed; a name of a profile begins with no dot.
const MAKING: &str = ".new-";
const GOING: &str = ".gone-";

/// A private directory that goes with whoever holds it. It is locked as long as its process lives: one that is not, is swept.
#[derive(Debug)]
pub(super) struct Private {
    dir: TempDir,
    _lock: File,
}

impl Private {
    /// Made and locked while nobody sweeps.
    fn make(parent: &Path) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        let alone = File::open(parent)?;
        alone.lock()?;
        let dir = tempfile::Builder::new().prefix(MAKING).permissions(Permissions::from_mode(0o700)).tempdir_in(parent)?;
        let lock = File::open(dir.path())?;
        lock.lock()?;
        Ok(Self { dir, _lock: lock })
    }

    pub(super) fn path(&self) -> &Path {
        self.dir.path()
    }

    pub(super) fn close(self) -> io::Result<()> {
        self.dir.close()
    }

    /// What a process leaves that is killed.
    #[cfg(test)]
    pub(super) fn abandon(self) -> std::path::PathBuf {
        self.dir.keep()
    }
}

/// Makes a directory with these files, whole or not at all. False when there is one of that name.
pub(super) fn make(parent: &Path, name: &str, files: &[(&str, String)]) -> Result<bool, Fault> {
    let made = Private::make(parent).and_then(|new| {
        for (file, text) in files {
            put(new.path(), file, text)?;
        }
        let target = parent.join(name);
        // An empty directory in its place would be replaced.
        if target.symlink_metadata().is_ok() {
            return Ok(false);
        }
        match fs::rename(new.path(), target) {
            Ok(()) => {
                drop(new.dir.keep());
                sync(parent).map(|()| true)
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::AlreadyExists | io::ErrorKind::DirectoryNotEmpty) => Ok(false),
            Err(error) => Err(error),
        }
    });
    made.map_err(|error| unusable(&parent.join(name), "be made", &error))
}

/// A private directory for what is read of a browser. What others left of theirs goes first.
pub(super) fn private(parent: &Path) -> Result<Private, Fault> {
    sweep(parent);
    Private::make(parent).map_err(|error| unusable(parent, "be used", &error))
}

/// Puts a file in the place of one, or where there is none.
pub(crate) fn replace(directory: &Path, name: &str, text: &str) -> Result<(), Fault> {
    put(directory, name, text).map_err(|error| unusable(&directory.join(name), "be written", &error))
}

/// A file of ours, links not followed. `None` where there is none.
pub(crate) fn read(path: &Path) -> Result<Option<String>, Fault> {
    match ordinary(path, OFlags::NOFOLLOW) {
        Ok(text) => Ok(Some(text)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(unusable(path, "be read", &error)),
    }
}

/// A file that somebody names, who may name anything: what has no end, or nobody who writes to it, is not waited for.
pub(crate) fn read_named(path: &Path) -> io::Result<String> {
    if tabmux_tools::is_system_file(&path.canonicalize()?) {
        return Err(io::Error::other("it is a file of the system, and only ordinary ones are read"));
    }
    ordinary(path, OFlags::empty())
}

fn ordinary(path: &Path, how: OFlags) -> io::Result<String> {
    // Opening a pipe waits for who writes to it, unless told not to.
    let how = how | OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(how.bits().cast_signed()).open(path)?;
    let about = file.metadata()?;
    if !about.is_file() {
        return Err(io::Error::other("it is no ordinary file"));
    }
    let too_large = |bytes: u64| io::Error::other(format!("it has {bytes} bytes, and at most {MAX_BYTES} are read"));
    if about.len() > MAX_BYTES {
        return Err(too_large(about.len()));
    }
    let mut text = String::new();
    // It may grow, and not every file says how long it is.
    let bytes = file.take(MAX_BYTES + 1).read_to_string(&mut text)? as u64;
    if bytes > MAX_BYTES { Err(too_large(bytes)) } else { Ok(text) }
}

/// Takes a directory out of sight at once, then apart.
pub(super) fn remove(parent: &Path, name: &str) -> Result<(), Fault> {
    let removed = || {
        let going = tempfile::Builder::new().prefix(GOING).tempdir_in(parent)?;
        fs::rename(parent.join(name), going.path().join(name))?;
        sync(parent)?;
        going.close()
    };
    removed().map_err(|error| unusable(&parent.join(name), "be removed", &error))
}

/// Whether one is there, and no link to one.
pub(super) fn is_directory(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|about| about.is_dir())
}

/// The directories here, links left out.
pub(super) fn directories(parent: &Path) -> Result<Vec<String>, Fault> {
    let names = || -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(parent) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries?,
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                names.extend(entry.file_name().into_string());
            }
        }
        Ok(names)
    };
    names().map_err(|error| unusable(parent, "be listed", &error))
}

/// Removes what a process left that died while it made or removed a profile.
pub(super) fn sweep(parent: &Path) {
    // Nobody is between making a directory and locking it.
    let Ok(alone) = File::open(parent) else { return };
    if alone.lock().is_err() {
        return;
    }
    for name in directories(parent).unwrap_or_default() {
        let path = parent.join(&name);
        let abandoned = || File::open(&path).is_ok_and(|directory| directory.try_lock().is_ok());
        if name.starts_with(GOING) || (name.starts_with(MAKING) && abandoned()) {
            // Somebody else may be at it; what is left is swept the next time.
            drop(fs::remove_dir_all(&path));
        }
    }
}

fn put(directory: &Path, name: &str, text: &str) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".part-").permissions(Permissions::from_mode(0o600)).tempfile_in(directory)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    file.persist(directory.join(name)).map_err(|error| error.error)?;
    sync(directory)
}

fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

fn unusable(path: &Path, verb: &str, error: &io::Error) -> Fault {
    let code = if error.kind() == io::ErrorKind::StorageFull { Code::NoSpace } else { Code::BadArgument };
    let message = format!("{} cannot {verb}: {error}.", path.display());
    Fault::new(code, message, "See that the directory is yours and has room.")
}
