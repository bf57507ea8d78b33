//! The directories a daemon lives in: made private, checked before they are trusted, and reached by a socket
//! even where their path is longer than a socket address can be (C6). Also the file locks that say who is alive.
//! Which directory it is, is decided elsewhere; nothing here looks at the environment.

use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;

use rustix::fs::OFlags;
use tabmux_core::{Code, Fault};

pub use tabmux_cdp::keeper::{SocketAddress, socket_address};

/// Why a directory is not trusted.
#[derive(Debug, thiserror::Error)]
pub enum DirError {
    #[error("{} is a symbolic link, and whoever made it could point it elsewhere.", path.display())]
    Symlink { path: PathBuf },
    #[error("{} is not a directory.", path.display())]
    NotADirectory { path: PathBuf },
    #[error("{} belongs to user {owner}, not to you (user {me}).", path.display())]
    Foreign { path: PathBuf, owner: u32, me: u32 },
    #[error("{} has mode {mode:04o}, so other users can put files there.", path.display())]
    TooOpen { path: PathBuf, mode: u32 },
    #[error("{} cannot be used: {source}.", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// Why a lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    #[error("Another process holds {}.", path.display())]
    Held { path: PathBuf },
    #[error("The lock {} cannot be used: {source}.", path.display())]
    Io { path: PathBuf, source: io::Error },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    Free,
    Held,
}

/// Makes `dir` with mode 0700 where it is missing, then checks it like [`check_private`].
pub fn prepare_private(dir: &Path) -> Result<(), DirError> {
    match DirBuilder::new().recursive(true).mode(0o700).create(dir) {
        Ok(()) => {}
        // What stands in the way is said better by the check.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(DirError::Io { path: dir.into(), source }),
    }
    check_private(dir)
}

/// Trusts `dir` only if it is a real directory, the caller's own, and nobody else can write to it (C6). Others may
/// be able to look in: what stands there is closed to them by its own mode.
pub fn check_private(dir: &Path) -> Result<(), DirError> {
    let path = || dir.to_path_buf();
    let meta = std::fs::symlink_metadata(dir).map_err(|source| DirError::Io { path: path(), source })?;
    let me = rustix::process::geteuid().as_raw();
    let mode = meta.mode() & 0o7777;
    if meta.is_symlink() {
        return Err(DirError::Symlink { path: path() });
    }
    if !meta.is_dir() {
        return Err(DirError::NotADirectory { path: path() });
    }
    if meta.uid() != me {
        return Err(DirError::Foreign { path: path(), owner: meta.uid(), me });
    }
    if mode & 0o022 != 0 {
        return Err(DirError::TooOpen { path: path(), mode });
    }
    Ok(())
}

/// Takes the lock of the file at `path` and keeps it as long as the file is open. Lock files are never removed:
/// a removed one could be held by one process and made anew by another.
pub fn take_lock(path: &Path, wait: Duration) -> Result<File, LockError> {
    lock_within(path, wait, File::try_lock, File::lock)
}

/// Waits until nobody holds the lock. Asks for a shared lock, so that two who wait do not take each other for the holder.
pub fn await_free(path: &Path, wait: Duration) -> Result<(), LockError> {
    lock_within(path, wait, File::try_lock_shared, File::lock_shared).map(drop)
}

/// Whether anybody holds the lock now. Makes no file: who only looks leaves nothing.
pub fn lock_state(path: &Path) -> Result<LockState, LockError> {
    let io = |source| LockError::Io { path: path.into(), source };
    let file = match lock_file().open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LockState::Free),
        opened => opened.map_err(io)?,
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(LockState::Free),
        Err(TryLockError::WouldBlock) => Ok(LockState::Held),
        Err(TryLockError::Error(source)) => Err(io(source)),
    }
}

fn lock_within(
    path: &Path,
    wait: Duration,
    try_lock: fn(&File) -> Result<(), TryLockError>,
    lock: fn(&File) -> io::Result<()>,
) -> Result<File, LockError> {
    let io = |source| LockError::Io { path: path.into(), source };
    let file = lock_file().create(true).open(path).map_err(io)?;
    match try_lock(&file) {
        Ok(()) => return Ok(file),
        Err(TryLockError::WouldBlock) if wait.is_zero() => return Err(LockError::Held { path: path.into() }),
        Err(TryLockError::WouldBlock) => {}
        Err(TryLockError::Error(source)) => return Err(io(source)),
    }
    // flock has no time limit of its own, so a thread waits; when it comes too late, the file is dropped and with it the lock.
    let (taken, waiting) = mpsc::sync_channel(0);
    let waiter = move || {
        let outcome = lock(&file).map(|()| file);
        taken.send(outcome).ok();
    };
    std::thread::Builder::new().name("lock".into()).stack_size(64 * 1024).spawn(waiter).map_err(io)?;
    match waiting.recv_timeout(wait) {
        Ok(outcome) => outcome.map_err(io),
        Err(_) => Err(LockError::Held { path: path.into() }),
    }
}

/// Not followed when it is a symlink; closed on exec, or a browser would inherit the lock.
fn lock_file() -> OpenOptions {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::CLOEXEC).bits()).expect("open flags fit into an int");
    let mut options = OpenOptions::new();
    options.read(true).write(true).truncate(false).mode(0o600).custom_flags(flags);
    options
}

impl DirError {
    /// What to do about it.
    pub fn hint(&self) -> String {
        const ELSEWHERE: &str = "set TABMUX_RUNTIME_DIR (or TABMUX_STATE_DIR) to a directory of your own";
        match self {
            Self::Symlink { path } => format!("Remove it with `rm {}`, or {ELSEWHERE}.", path.display()),
            Self::NotADirectory { path } => format!("Move {} away, or {ELSEWHERE}.", path.display()),
            Self::Foreign { .. } => format!("Do not use it: {ELSEWHERE}."),
            Self::TooOpen { path, .. } => format!("Run `chmod 700 {}`, or {ELSEWHERE}.", path.display()),
            Self::Io { .. } => format!("Make it writable for you, or {ELSEWHERE}."),
        }
    }
}

impl From<DirError> for Fault {
    fn from(error: DirError) -> Self {
        let code = match &error {
            DirError::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull => Code::NoSpace,
            DirError::Io { .. } => Code::Internal,
            _ => Code::PolicyDenied,
        };
        Self::new(code, error.to_string(), error.hint())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn mode_of(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    #[test]
    fn a_missing_directory_is_made_for_its_owner_alone() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/b");
        prepare_private(&dir).unwrap();
        assert_eq!((mode_of(&dir), mode_of(&home.path().join("a"))), (0o700, 0o700));
        prepare_private(&dir).unwrap();
    }

    #[test]
    fn a_symlink_is_refused_even_to_a_good_directory() {
        let home = tempfile::tempdir().unwrap();
        let (good, link) = (home.path().join("good"), home.path().join("link"));
        prepare_private(&good).unwrap();
        symlink(&good, &link).unwrap();
        let error = prepare_private(&link).unwrap_err();
        assert!(matches!(error, DirError::Symlink { .. }), "{error}");
        assert!(error.hint().contains("TABMUX_RUNTIME_DIR"));
    }

    #[test]
    fn a_directory_others_can_write_to_is_refused_with_its_mode_and_the_cure() {
        let home = tempfile::tempdir().unwrap();
        for mode in [0o770, 0o720, 0o702, 0o777] {
            std::fs::set_permissions(home.path(), PermissionsExt::from_mode(mode)).unwrap();
            let error = prepare_private(home.path()).unwrap_err();
            assert!(error.to_string().contains(&format!("mode {mode:04o}")), "{error}");
            assert!(error.hint().contains("chmod 700"));
        }
        for mode in [0o755, 0o700] {
            std::fs::set_permissions(home.path(), PermissionsExt::from_mode(mode)).unwrap();
            check_private(home.path()).unwrap();
        }
        prepare_private(home.path()).unwrap();
    }

    #[test]
    fn a_directory_of_another_user_is_refused() {
        let home = tempfile::tempdir().unwrap();
        // Only root can give a directory away; everybody else finds root's own directory foreign.
        let dir = if rustix::process::geteuid().is_root() {
            std::os::unix::fs::chown(home.path(), Some(12345), None).unwrap();
            home.path()
        } else {
            Path::new("/")
        };
        let error = prepare_private(dir).unwrap_err();
        assert!(matches!(error, DirError::Foreign { .. }), "{error}");
    }

    #[test]
    fn a_file_in_its_place_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(prepare_private(&file).unwrap_err(), DirError::NotADirectory { .. }));
    }

    #[test]
    fn a_lock_has_one_holder_and_is_free_when_its_file_closes() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("lock");
        assert_eq!(lock_state(&path).unwrap(), LockState::Free);
        assert!(!path.exists(), "who looks leaves nothing");
        let held = take_lock(&path, Duration::ZERO).unwrap();
        assert_eq!((lock_state(&path).unwrap(), mode_of(&path)), (LockState::Held, 0o600));
        assert!(matches!(take_lock(&path, Duration::ZERO), Err(LockError::Held { .. })));
        assert!(matches!(take_lock(&path, Duration::from_millis(5)), Err(LockError::Held { .. })));
        let waiter = std::thread::spawn({
            let path = path.clone();
            move || take_lock(&path, Duration::from_secs(30)).is_ok()
        });
        drop(held);
        assert!(waiter.join().unwrap());
    }

    #[test]
    fn a_lock_file_that_is_a_symlink_is_not_followed() {
        let home = tempfile::tempdir().unwrap();
        let (target, link) = (home.path().join("target"), home.path().join("link"));
        symlink(&target, &link).unwrap();
        assert!(matches!(take_lock(&link, Duration::ZERO), Err(LockError::Io { .. })));
        assert!(!target.exists());
    }
}
