//! A keeper is a tiny process that is parent of one browser, holds its pipe and hands duplicates of it to the daemon that
//! claims the browser. Daemon killed: the next one claims it and goes on. Keeper killed: the daemon makes a new one and
//! hands it the pipe. Both killed: the pipe closes and the browser ends by itself.
//!
//! The claim is the open connection to the keeper; nothing else says who owns the browser. A keeper reads no CDP.

mod address;
mod body;
mod claim;
mod group;
mod handover;
mod left;
mod nest;
mod spawn;

use std::ffi::OsString;
use std::fmt;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

pub use address::{SocketAddress, socket_address};
pub use body::run;
pub use claim::{Claim, claim, launch};
pub use left::{end_left, nests};
pub use nest::sweep;

use crate::launch::Launch;

/// How keepers are started and where they live.
#[derive(Clone, Debug)]
pub struct KeeperHome {
    /// The binary whose `main` calls [`run`] for `words`.
    pub exe: PathBuf,
    pub words: Vec<OsString>,
    /// Where the keeper's socket is; 0700.
    pub runtime_dir: PathBuf,
    /// Where fresh profiles are; on a disk, since they grow.
    pub profiles_dir: PathBuf,
    /// How long a browser may be unclaimed before it is ended; none is forever.
    pub grace: Option<Duration>,
}

/// A browser that is ours: its pipe, and the claim to it. They can go separate ways, but the claim must outlive the use of
/// the pipe: once it is dropped, another daemon may read from it.
#[derive(Debug)]
pub struct Kept {
    pub pipe: Pipe,
    pub claim: Claim,
}

/// Our ends of the browser's pipe, both non-blocking.
#[derive(Debug)]
pub struct Pipe {
    pub read: OwnedFd,
    pub write: OwnedFd,
}

/// A kept browser, as its keeper describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct About {
    /// Names the socket and the nest.
    pub id: String,
    pub keeper_pid: u32,
    pub browser_pid: u32,
    /// How often the pipe was handed over, this time included: 1 for the daemon that launched the browser.
    pub generation: u32,
    pub launch: Launch,
    /// The browser's user data directory.
    pub profile: PathBuf,
    /// What is removed when the browser ends: its temporary files, and its profile if that is a fresh one.
    pub nest: PathBuf,
    pub socket: PathBuf,
    /// The session (`setsid`) of the browser's processes.
    process_session: u32,
}

/// How a claim ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    BrowserExited {
        exit: Exit,
        /// The last lines of its stderr.
        words: String,
    },
    /// The keeper died; the browser need not have. See [`Claim::replace_keeper`].
    KeeperGone,
}

/// How the browser's process ended. Both are absent when the keeper was not its parent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Exit {
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Kept {
    #[must_use]
    pub fn into_parts(self) -> (Pipe, Claim) {
        (self.pipe, self.claim)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.code, self.signal) {
            (Some(code), _) => write!(f, "exit code {code}"),
            (_, Some(signal)) => write!(f, "signal {signal}"),
            _ => f.write_str("exit code unknown"),
        }
    }
}

/// The sockets of all keepers of this directory; that one is listed does not mean that it lives.
#[must_use]
pub fn keepers(runtime_dir: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(runtime_dir) else { return Vec::new() };
    let mut sockets: Vec<_> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(nest::SOCKET_PREFIX) && name.ends_with(nest::SOCKET_SUFFIX))
        })
        .collect();
    sockets.sort();
    sockets
}
