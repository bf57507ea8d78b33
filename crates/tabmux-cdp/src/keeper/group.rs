//! The processes of one browser: its process group, and what was started below it. Signals go through descriptors of
//! processes, never to bare numbers that may by now be somebody else's.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    /// The browser's own pid, which names its group.
    pub(super) leader: u32,
    pub(super) session: u32,
}

/// A line of `/proc/PID/stat`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stat {
    pid: u32,
    state: char,
    parent: u32,
    group: u32,
    session: u32,
}

impl Group {
    /// Kills every process that is left, and waits until they are dead or the time is over.
    pub(super) fn kill(self, within: Duration) {
        let deadline = Instant::now() + within;
        // Again, since a dying process may have started another, and orphans come to us.
        loop {
            let members = self.members();
            if members.is_empty() || Instant::now() >= deadline {
                return;
            }
            for member in &members {
                let _ = pidfd_send_signal(member, Signal::KILL);
            }
            for member in &members {
                let _ = gone_by(member, deadline);
            }
        }
    }

    fn members(self) -> Vec<OwnedFd> {
        let found = members_of(&processes(), self, std::process::id());
        // Opened first, looked at again: the second look proves that the descriptor is of the process that was meant.
        let open = |pid| Some((pid, pidfd_open(Pid::from_raw(i32::try_from(pid).ok()?)?, PidfdFlags::empty()).ok()?));
        let opened: Vec<_> = found.into_iter().filter_map(open).collect();
        let still = members_of(&processes(), self, std::process::id());
        opened.into_iter().filter(|(pid, _)| still.contains(pid)).map(|(_, process)| process).collect()
    }
}

/// Waits until the process behind this descriptor has ended.
pub(super) fn gone_by(process: impl AsFd, deadline: Instant) -> io::Result<bool> {
    loop {
        let left = timespec(deadline.saturating_duration_since(Instant::now()));
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&left)) {
            Err(Errno::INTR) => {}
            polled => return Ok(polled? > 0),
        }
    }
}

pub(super) fn timespec(time: Duration) -> Timespec {
    Timespec::try_from(time).unwrap_or(Timespec { tv_sec: i64::from(i32::MAX), tv_nsec: 0 })
}

/// The living processes of the group, the orphans that came to `keeper`, and all their descendants.
fn members_of(all: &[Stat], group: Group, keeper: u32) -> HashSet<u32> {
    let belongs = |stat: &Stat| (stat.group == group.leader && stat.session == group.session) || stat.parent == keeper;
    let mut members: HashSet<u32> = all.iter().filter(|stat| belongs(stat)).map(|stat| stat.pid).collect();
    loop {
        let children: Vec<_> =
            all.iter().filter(|stat| members.contains(&stat.parent) && !members.contains(&stat.pid)).map(|stat| stat.pid).collect();
        if children.is_empty() {
            break;
        }
        members.extend(children);
    }
    members.remove(&keeper);
    members.retain(|pid| all.iter().any(|stat| stat.pid == *pid && !matches!(stat.state, 'Z' | 'X')));
    members
}

fn processes() -> Vec<Stat> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok());
    pids.filter_map(|pid| parse(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)).collect()
}

/// `pid (name) state parent group session …`, where the name may contain anything.
fn parse(pid: u32, stat: &str) -> Option<Stat> {
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let mut number = || fields.next()?.parse().ok();
    Some(Stat { pid, state, parent: number()?, group: number()?, session: number()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(pid: u32, parent: u32, group: u32, session: u32) -> Stat {
        Stat { pid, state: 'S', parent, group, session }
    }

    #[test]
    fn a_process_whose_name_is_a_trap_is_read_right() {
        let line = "42 (a) b) S 7 8 9 0 -1";
        assert_eq!(parse(42, line), Some(stat(42, 7, 8, 9)));
    }

    #[test]
    fn members_are_the_group_its_descendants_and_our_orphans_only() {
        let zombie = Stat { state: 'Z', ..stat(14, 10, 10, 5) };
        let all = [
            stat(5, 1, 5, 5),
            stat(10, 5, 10, 5),
            stat(11, 10, 10, 5),
            stat(12, 11, 12, 12),
            stat(13, 5, 13, 13),
            zombie,
            stat(20, 1, 10, 99),
            stat(21, 1, 21, 5),
        ];
        let members = members_of(&all, Group { leader: 10, session: 5 }, 5);
        assert_eq!(members, HashSet::from([10, 11, 12, 13]));
    }
}
