//! What is left of a browser that nobody can be asked to end: its keeper is dead or suspended, and so may it be. Its processes are known by
//! the lock of its nest, which all of them hold.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use super::group::gone_by;
use super::nest::{ids, lock_path, sweep_one};

/// A killed process is gone as soon as the kernel has the time.
const KILLED_WITHIN: Duration = Duration::from_secs(2);

/// The names of all nests, whoever lives in them.
#[must_use]
pub fn nests(profiles_dir: &Path) -> Vec<String> {
    ids(profiles_dir).collect()
}

/// Kills whoever lives in this nest and removes it. Only for one that nobody goes on with: nothing is asked and nothing saved.
pub fn end_left(runtime_dir: &Path, profiles_dir: &Path, id: &str) -> Option<PathBuf> {
    let deadline = Instant::now() + KILLED_WITHIN;
    let lock = (fs::metadata(lock_path(profiles_dir, id)).ok()).map(|lock| (lock.dev(), lock.ino()))?;
    // Again, since who was just being started is not seen at once.
    loop {
        let left = holders(lock);
        for process in &left {
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
        let gone = left.iter().all(|process| gone_by(process, deadline).unwrap_or(false));
        if let Some(swept) = sweep_one(runtime_dir, profiles_dir, id) {
            return Some(swept);
        }
        if left.is_empty() || !gone || Instant::now() >= deadline {
            return None;
        }
    }
}

/// Everybody but us who has this very file open.
fn holders(file: (u64, u64)) -> Vec<OwnedFd> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    let others = pids.filter(|pid| *pid != std::process::id() && has_open(*pid, file));
    // Opened first, looked at again: the second look proves that the descriptor is of the process that was meant.
    let open = |pid: u32| Some((pid, pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?));
    others.filter_map(open).filter(|(pid, _)| has_open(*pid, file)).map(|(_, process)| process).collect()
}

fn has_open(pid: u32, file: (u64, u64)) -> bool {
    let Ok(descriptors) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    descriptors.flatten().any(|one| fs::metadata(one.path()).is_ok_and(|about| (about.dev(), about.ino()) == file))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::process::ExitStatusExt;
    use std::process::{Child, Command, Stdio};

    use super::*;
    use crate::keeper::nest::Nest;

    /// A process that holds the lock as a browser does, and is suspended.
    fn frozen(lock: File) -> Child {
        let child = Command::new("sleep").arg("60").stdin(Stdio::from(lock)).spawn().unwrap();
        let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, Signal::STOP).unwrap();
        child
    }

    #[test]
    fn who_lives_in_the_nest_is_killed_also_when_suspended_and_nobody_else() {
        let (runtime, profiles) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let [nest, other] = [(); 2].map(|()| Nest::make(runtime.path(), profiles.path()).unwrap());
        let (id, dir) = (nest.id.clone(), nest.dir.clone());
        let (mut lives, mut stays) = (frozen(nest.lock().unwrap()), frozen(other.lock().unwrap()));
        drop(nest);
        assert_eq!(end_left(runtime.path(), profiles.path(), &id), Some(dir.clone()));
        assert_eq!((lives.wait().unwrap().signal(), dir.exists()), (Some(9), false));
        assert_eq!((stays.try_wait().unwrap(), nests(profiles.path())), (None, vec![other.id.clone()]));
        stays.kill().unwrap();
        stays.wait().unwrap();
        assert_eq!(end_left(runtime.path(), profiles.path(), "none"), None);
    }
}
