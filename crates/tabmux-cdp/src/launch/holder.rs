//! Who holds a user data directory. Chromium marks it with a symlink `SingletonLock` to `host-pid`, which stays after a
//! crash, and listens on the socket behind `SingletonSocket`. The mark alone proves nothing: pids are used again.

use std::fmt;
use std::fs;
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Holder {
    Process {
        name: String,
        pid: u32,
    },
    /// The mark names another machine, whose processes cannot be seen from here.
    Host {
        host: String,
        pid: u32,
    },
}

/// The process that holds this user data directory; none when it is free or the mark is stale.
#[must_use]
pub fn holder(profile: &Path) -> Option<Holder> {
    let mark = fs::read_link(profile.join("SingletonLock")).ok()?;
    let (host, pid) = mark.to_str()?.rsplit_once('-')?;
    let pid = pid.parse().ok()?;
    let here = rustix::system::uname().nodename().to_string_lossy().into_owned();
    if host != here {
        return Some(Holder::Host { host: host.to_owned(), pid });
    }
    let alive = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?).is_some_and(|pid| match rustix::process::test_kill_process(pid) {
        Ok(()) | Err(rustix::io::Errno::PERM) => true,
        Err(_) => false,
    });
    let answers = || UnixStream::connect(profile.join("SingletonSocket")).is_ok();
    (alive && answers()).then(|| Holder::Process { name: process_name(pid), pid })
}

pub(crate) fn process_name(pid: u32) -> String {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    if name.trim().is_empty() { "a process".to_owned() } else { name.trim().to_owned() }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { name, pid } => write!(f, "{name} (pid {pid})"),
            Self::Host { host, pid } => write!(f, "the process {pid} of the machine {host}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::os::unix::net::UnixListener;

    use super::*;

    fn mark(profile: &Path, host: &str, pid: u32) {
        let _ = fs::remove_file(profile.join("SingletonLock"));
        symlink(format!("{host}-{pid}"), profile.join("SingletonLock")).unwrap();
    }

    #[test]
    fn a_mark_counts_only_while_its_process_lives_and_answers() {
        let profile = tempfile::tempdir().unwrap();
        let here = rustix::system::uname().nodename().to_str().unwrap().to_owned();
        let me = std::process::id();
        assert_eq!(holder(profile.path()), None);

        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        mark(profile.path(), &here, child.id());
        assert_eq!(holder(profile.path()), None, "its process is dead");

        mark(profile.path(), &here, me);
        assert_eq!(holder(profile.path()), None, "the pid was used again by something that is no browser");

        let _listener = UnixListener::bind(profile.path().join("SingletonSocket")).unwrap();
        let found = holder(profile.path()).unwrap();
        assert!(matches!(&found, Holder::Process { pid, .. } if *pid == me), "{found:?}");
        assert!(found.to_string().ends_with(&format!("(pid {me})")));

        mark(profile.path(), "elsewhere-1", 7);
        assert_eq!(holder(profile.path()), Some(Holder::Host { host: "elsewhere-1".into(), pid: 7 }));
    }
}
