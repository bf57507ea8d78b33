//! The start lock in the hands of the daemon that is being started. It comes as the standard input, which a daemon has no other use for:
//! passing a descriptor by any other number needs unsafe code.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

/// Held until this is dropped.
#[derive(Debug)]
pub(crate) struct Inherited {
    _lock: OwnedFd,
}

impl Inherited {
    /// Takes the standard input to itself, before anything is started: a browser that had it would hold the lock for life.
    pub(crate) fn take() -> io::Result<Self> {
        let stdin = io::stdin();
        // The duplicate is closed on exec.
        let lock = stdin.as_fd().try_clone_to_owned()?;
        rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
        Ok(Self { _lock: lock })
    }
}
