//! Every process a contender started: its memory, its number, its end. This process adopts orphans, so daemons that
//! detach stay in the tree; the measuring client is this process and is not counted.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process, set_child_subreaper, waitpid};

use crate::bench::memory;

/// What of /proc/PID/stat matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    pid: i32,
    parent: i32,
    alive: bool,
}

/// The tree at one moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Weight {
    /// Proportional set size of all processes.
    pub(super) memory_kb: u64,
    pub(super) processes: usize,
    /// Executables of browsers in the tree.
    pub(super) browsers: BTreeSet<PathBuf>,
}

const END_LIMIT: Duration = Duration::from_secs(10);

pub(super) fn adopt_orphans() -> Result<()> {
    Ok(set_child_subreaper(Some(getpid()))?)
}

pub(super) fn weigh() -> Result<Weight> {
    let mut weight = Weight::default();
    for process in ours()?.into_iter().filter(|process| process.alive) {
        // One that ended since weighs nothing.
        let Ok(kilobytes) = memory::pss_kb(process.pid.unsigned_abs()) else { continue };
        weight.memory_kb += kilobytes;
        weight.processes += 1;
        if let Ok(program) = std::fs::read_link(format!("/proc/{}/exe", process.pid)) {
            let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
            // chrome-devtools-mcp is run by node, so no executable of a peer looks like a browser.
            if name.starts_with("chrom") && !name.contains("crashpad") {
                weight.browsers.insert(program);
            }
        }
    }
    Ok(weight)
}

/// The flags of the browser in the tree, but for where its profile is.
pub(super) fn browser_flags() -> Result<Vec<String>> {
    let all = ours()?.into_iter().filter_map(|process| std::fs::read(format!("/proc/{}/cmdline", process.pid)).ok());
    all.filter_map(|line| flags_of_browser(&line)).next().context("no browser runs")
}

fn flags_of_browser(command_line: &[u8]) -> Option<Vec<String>> {
    let words: Vec<_> = command_line.split(|byte| *byte == 0).map(String::from_utf8_lossy).filter(|word| !word.is_empty()).collect();
    let piped = words.iter().any(|word| word == "--remote-debugging-pipe");
    let flags = words.iter().skip(1).filter(|word| word.starts_with("--") && !word.starts_with("--user-data-dir="));
    // Its other processes say of which type they are.
    (piped && !words.iter().any(|word| word.starts_with("--type="))).then(|| flags.map(ToString::to_string).collect())
}

/// Kills and reaps the whole tree.
pub(super) fn end() -> Result<()> {
    let began = Instant::now();
    loop {
        let all = ours()?;
        if all.is_empty() {
            return Ok(());
        }
        for process in &all {
            let pid = Pid::from_raw(process.pid).context("a process has a number")?;
            if process.alive {
                // It may have ended by itself meanwhile.
                let _ = kill_process(pid, Signal::KILL);
            } else if process.parent == getpid().as_raw_nonzero().get() {
                let _ = waitpid(Some(pid), WaitOptions::NOHANG);
            }
        }
        if began.elapsed() > END_LIMIT {
            bail!("{} processes survive SIGKILL: {all:?}", all.len());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn ours() -> Result<Vec<Process>> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir("/proc").context("this benchmark reads Linux's /proc")?.flatten() {
        let stat = std::fs::read_to_string(entry.path().join("stat"));
        all.extend(stat.ok().and_then(|stat| Process::of(&stat)));
    }
    Ok(below(getpid().as_raw_nonzero().get(), &all))
}

fn below(root: i32, all: &[Process]) -> Vec<Process> {
    let mut found = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        let children = all.iter().copied().filter(|process| process.parent == parent);
        for child in children {
            found.push(child);
            parents.push(child.pid);
        }
    }
    found
}

impl Process {
    /// `12 (name) S 1 …`; a name may hold spaces and brackets.
    fn of(stat: &str) -> Option<Self> {
        let (pid, rest) = stat.split_once(" (")?;
        let mut fields = rest.rsplit_once(") ")?.1.split(' ');
        let alive = !matches!(fields.next()?, "Z" | "X");
        Some(Self { pid: pid.parse().ok()?, parent: fields.next()?.parse().ok()?, alive })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_of_a_browser_are_those_of_its_first_process_without_the_profile() {
        let flags = |line: &str| flags_of_browser(line.replace(' ', "\0").as_bytes());
        let own = flags("/usr/bin/shell --remote-debugging-pipe --lean --user-data-dir=/tmp/x ");
        assert_eq!(own, Some(vec!["--remote-debugging-pipe".to_owned(), "--lean".to_owned()]));
        assert_eq!((flags("/usr/bin/shell --type=zygote --remote-debugging-pipe"), flags("tabmux keeper")), (None, None));
    }

    #[test]
    fn a_process_is_read_from_stat_whatever_its_name() {
        let read = Process::of("12 (a) b (c)) S 7 12 12 0 -1").unwrap();
        assert_eq!(read, Process { pid: 12, parent: 7, alive: true });
        assert!(!Process::of("13 (gone) Z 7 1").unwrap().alive);
        assert_eq!(Process::of("no process"), None);
    }

    #[test]
    fn a_tree_holds_children_of_children_and_nobody_else() {
        let process = |pid, parent| Process { pid, parent, alive: true };
        let all = [process(1, 0), process(2, 1), process(3, 2), process(4, 3), process(5, 1)];
        let mut pids: Vec<_> = below(2, &all).into_iter().map(|process| process.pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [3, 4]);
    }
}
