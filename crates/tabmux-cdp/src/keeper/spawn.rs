//! Starts the browser with its pipe on descriptors 3 and 4, and remembers its last words.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use command_fds::{CommandFdExt, FdMapping};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::handover::Handles;
use super::nest::Nest;
use crate::launch::{Holder, Launch, LaunchError, Mode, Profile, Surroundings, holder, process_name};

/// A browser that was just started.
#[derive(Debug)]
pub(super) struct Spawned {
    pub(super) child: Child,
    pub(super) handles: Handles,
    pub(super) profile: PathBuf,
}

/// The end of the browser's stderr. Read by the keeper for as long as the browser lives, so it never blocks on it.
#[derive(Debug)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    /// Whether a process is left that could say more.
    pub(super) open: bool,
}

const TAIL: usize = 2048;
/// Where the inherited locks stay in the browser, beside the pipe's 3 and 4.
const LOCK_DESCRIPTORS: std::ops::Range<i32> = 5..7;
/// Secrets of the daemon's that are none of a browser's business.
const NOT_FOR_BROWSERS: [&str; 1] = ["TABMUX_TOKEN"];

pub(super) fn spawn(launch: &Launch, nest: &Nest) -> Result<Spawned, LaunchError> {
    if launch.mode == Mode::Headed && !Surroundings::here().display {
        return Err(LaunchError::NoDisplay);
    }
    let system = LaunchError::system;
    let mut locks = vec![nest.lock().map_err(system("The nest's lock cannot be shared"))?];
    let profile = match &launch.profile {
        Profile::Fresh => nest.fresh_profile(),
        Profile::Named(path) => {
            locks.push(hold(path)?);
            path.clone()
        }
    };
    let pipe = |doing| pipe_with(PipeFlags::CLOEXEC).map_err(std::io::Error::from).map_err(system(doing));
    let (browser_reads, write) = pipe("No pipe to the browser")?;
    let (read, browser_writes) = pipe("No pipe from the browser")?;
    let (stderr, browser_stderr) = pipe("No pipe for the browser's stderr")?;

    let mut command = Command::new(&launch.binary.path);
    command.args(launch.arguments(&profile, Surroundings::here())).current_dir("/").process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(browser_stderr);
    // Without keys Chromium shows a bar in every window; "no" says that none are wanted.
    command.envs(["GOOGLE_API_KEY", "GOOGLE_DEFAULT_CLIENT_ID", "GOOGLE_DEFAULT_CLIENT_SECRET"].map(|key| (key, "no")));
    command.env("TMPDIR", nest.temporary());
    for secret in NOT_FOR_BROWSERS {
        command.env_remove(secret);
    }
    let locks = locks.into_iter().map(OwnedFd::from).zip(LOCK_DESCRIPTORS);
    let ends = [(browser_reads, 3), (browser_writes, 4)];
    let mappings = ends.into_iter().chain(locks).map(|(parent_fd, child_fd)| FdMapping { parent_fd, child_fd }).collect();
    command.fd_mappings(mappings).expect("each number is used once");

    let unusable = |error: std::io::Error| LaunchError::Unusable { path: launch.binary.path.clone(), why: error.to_string() };
    let child = command.spawn().map_err(unusable)?;
    // The child is not reaped yet, so the pid is its own.
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).expect("a child has a pid");
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| LaunchError::System(format!("No pidfd: {error}")))?;
    for end in [&read, &write, &stderr] {
        rustix::fs::fcntl_setfl(end, OFlags::NONBLOCK).map_err(|error| LaunchError::System(format!("A pipe that blocks: {error}")))?;
    }
    Ok(Spawned { child, handles: Handles { read, write, stderr, process }, profile })
}

/// Takes a named profile for this browser alone. The headless shell does not look whether somebody else uses it, so there
/// is a lock of ours beside Chromium's.
fn hold(profile: &Path) -> Result<File, LaunchError> {
    let held = |holder| LaunchError::ProfileHeld { profile: profile.to_owned(), holder };
    let system = LaunchError::system("The profile cannot be used");
    DirBuilder::new().recursive(true).mode(0o700).create(profile).map_err(&system)?;
    let path = profile.join("tabmux.lock");
    let mut file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(&path).map_err(&system)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::Error(error)) => return Err(system(error)),
        Err(TryLockError::WouldBlock) => {
            let pid = fs::read_to_string(&path).ok().and_then(|pid| pid.trim().parse().ok()).unwrap_or_default();
            return Err(held(Holder::Process { name: process_name(pid), pid }));
        }
    }
    if let Some(holder) = holder(profile) {
        return Err(held(holder));
    }
    file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())).map_err(&system)?;
    Ok(file)
}

impl Default for Tail {
    fn default() -> Self {
        Self { bytes: VecDeque::new(), open: true }
    }
}

impl Tail {
    /// Reads what is there.
    pub(super) fn pull(&mut self, stderr: impl AsFd) {
        let mut chunk = [0; 4096];
        match rustix::io::read(stderr, &mut chunk) {
            Ok(0) => self.open = false,
            Ok(count) => {
                self.bytes.extend(&chunk[..count]);
                let surplus = self.bytes.len().saturating_sub(TAIL);
                self.bytes.drain(..surplus);
            }
            Err(error) => self.open = matches!(error, Errno::AGAIN | Errno::INTR),
        }
    }

    /// Whole lines only, once the beginning is lost.
    pub(super) fn words(&self) -> String {
        let bytes: Vec<u8> = self.bytes.iter().copied().collect();
        let from = if bytes.len() == TAIL { bytes.iter().position(|&byte| byte == b'\n').map_or(0, |at| at + 1) } else { 0 };
        String::from_utf8_lossy(&bytes[from..]).trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_last_whole_lines_are_remembered() {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC).unwrap();
        let mut write = File::from(write);
        let mut tail = Tail::default();
        for number in 0..1000 {
            writeln!(write, "line {number}").unwrap();
            tail.pull(&read);
        }
        drop(write);
        assert!(tail.open);
        tail.pull(&read);
        assert!(!tail.open);
        let words = tail.words();
        assert!(words.len() <= TAIL && words.starts_with("line ") && words.ends_with("line 999"));
    }

    #[test]
    fn a_named_profile_is_held_by_one_and_the_other_hears_by_whom() {
        let profile = tempfile::tempdir().unwrap();
        let first = hold(profile.path()).unwrap();
        let LaunchError::ProfileHeld { holder: Holder::Process { pid, .. }, .. } = hold(profile.path()).unwrap_err() else { panic!() };
        assert_eq!(pid, std::process::id());
        drop(first);
        hold(profile.path()).unwrap();
    }
}
