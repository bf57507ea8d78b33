//! Looking at processes from outside, through /proc, and sending them signals.

use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Every process of the given runtime directory, by the variable it inherited.
pub fn of_runtime_dir(directory: &Path) -> Vec<u32> {
    let wanted = format!("TABMUX_RUNTIME_DIR={}", directory.display());
    let environment_fits = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
    };
    all().into_iter().filter(|pid| is_alive(*pid)).filter(environment_fits).collect()
}

fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").expect("Linux has /proc");
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect()
}

/// Every living process that the given one started, and those that they started.
pub fn below(pid: u32) -> Vec<u32> {
    let parents: Vec<(u32, u32)> = all().into_iter().filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(parent) = found.get(next).copied() {
        found.extend(parents.iter().filter(|(_, of)| *of == parent).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

pub fn parent(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

/// A zombie does not count: it is only waiting for its parent to look.
pub fn is_alive(pid: u32) -> bool {
    state(pid).is_some_and(|state| state != 'Z' && state != 'X')
}

/// `R`, `S`, `T` (stopped), `Z` …
pub fn state(pid: u32) -> Option<char> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.chars().next()
}

/// Whether a thread of it waits for a file lock, by the name that the daemon gives such threads.
pub fn waits_for_a_lock(pid: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    threads.into_iter().any(|thread| std::fs::read_to_string(thread.path().join("comm")).is_ok_and(|name| name.trim() == "lock"))
}

pub fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Resident memory.
pub fn rss_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a live process has a VmRSS");
    line.trim().trim_end_matches("kB").trim().parse().expect("VmRSS is a number")
}

/// The most memory it ever had.
pub fn peak_rss_kb(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("the process lives");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a live process has a VmHWM");
    line.trim().trim_end_matches("kB").trim().parse().expect("VmHWM is a number")
}

pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("pids are small")).expect("pids are not zero");
    // Gone already is what was wanted.
    let _ = kill_process(pid, signal);
}

pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}
