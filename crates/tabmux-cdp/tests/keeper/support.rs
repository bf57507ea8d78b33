//! A place for keepers, a raw wire to their browsers, and waits for the end of processes.

use std::fs::{self, File};
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tabmux_cdp::find::{Binary, Kind, Places, Want};
use tabmux_cdp::keeper::{KeeperHome, Pipe};
use tabmux_cdp::launch::{Launch, Mode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::pipe;

/// Longer than anything here takes on a busy machine.
pub(crate) const SOON: Duration = Duration::from_secs(20);

/// How long an end may take. The soak has the machine to itself and is held to the second; elsewhere it is only said.
pub(crate) fn promptly() -> Duration {
    if std::env::var_os("TABMUX_SOAK_ENDS").is_some() { Duration::from_secs(1) } else { SOON }
}

/// Directories and a home for the keepers of one test.
pub(crate) struct Stage {
    _directory: tempfile::TempDir,
    pub(crate) home: KeeperHome,
}

/// The browser's pipe, as bytes.
pub(crate) struct Wire {
    read: pipe::Receiver,
    write: pipe::Sender,
    buffer: Vec<u8>,
}

/// Processes by descriptor, so that their end can be awaited.
pub(crate) struct Family(Vec<(u32, OwnedFd)>);

impl Stage {
    pub(crate) fn new(grace: Option<Duration>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let (runtime_dir, profiles_dir) = (directory.path().join("run"), directory.path().join("profiles"));
        let exe = PathBuf::from(env!("CARGO_BIN_EXE_tabmux-test-keeper"));
        Self { _directory: directory, home: KeeperHome { exe, words: Vec::new(), runtime_dir, profiles_dir, grace } }
    }

    /// A shell script in place of a browser; `ANSWER` in it stands for answering the first question.
    pub(crate) fn script(&self, body: &str) -> Launch {
        let path = self._directory.path().join("browser.sh");
        let answer = "head -c 10 <&3 >/dev/null; printf '{}\\0' >&4";
        fs::write(&path, format!("#!/bin/sh\n{}\n", body.replace("ANSWER", answer))).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Launch::new(Binary { path, kind: Kind::HeadlessShell }, Mode::Headless)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self._directory.path().join(name)
    }

    /// Everything that keepers have left behind.
    pub(crate) fn leftovers(&self) -> Vec<PathBuf> {
        let directories = [&self.home.runtime_dir, &self.home.profiles_dir];
        directories.iter().flat_map(|directory| fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path())).collect()
    }

    /// Waits until no keeper and no process of a browser is left in the only nest.
    pub(crate) fn deserted(&self) {
        let is_lock = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "lock");
        let Some(lock) = self.leftovers().into_iter().find(is_lock) else { return };
        let (done, waiting) = std::sync::mpsc::channel();
        std::thread::spawn(move || done.send(File::open(lock).map(|lock| lock.lock())));
        waiting.recv_timeout(SOON).expect("a process of the browser or its keeper is left").ok();
    }
}

/// The headless browser that is installed here.
pub(crate) fn headless() -> Launch {
    Launch::new(Places::here(None).find(Want::Plain).unwrap(), Mode::Headless)
}

/// The full browser that is installed here.
pub(crate) fn full() -> Launch {
    Launch::new(Places::here(None).find(Want::Full).unwrap(), Mode::Headless)
}

impl Wire {
    pub(crate) fn new(pipe: Pipe) -> Self {
        let (read, write) = (pipe::Receiver::from_owned_fd(pipe.read).unwrap(), pipe::Sender::from_owned_fd(pipe.write).unwrap());
        Self { read, write, buffer: Vec::new() }
    }

    pub(crate) async fn ask(&mut self, id: u32, method: &str) {
        self.ask_with(id, method, &serde_json::json!({})).await;
    }

    pub(crate) async fn ask_with(&mut self, id: u32, method: &str, params: &serde_json::Value) {
        let line = format!("{{\"id\":{id},\"method\":\"{method}\",\"params\":{params}}}\0");
        tokio::time::timeout(SOON, self.write.write_all(line.as_bytes())).await.unwrap().unwrap();
    }

    /// The next message.
    pub(crate) async fn message(&mut self) -> serde_json::Value {
        loop {
            if let Some(end) = self.buffer.iter().position(|&byte| byte == 0) {
                let message: Vec<u8> = self.buffer.drain(..=end).collect();
                return serde_json::from_slice(&message[..end]).unwrap();
            }
            let count = tokio::time::timeout(SOON, self.read.read_buf(&mut self.buffer)).await.unwrap().unwrap();
            assert!(count > 0, "the pipe is closed");
        }
    }

    /// Whether the browser answers this question.
    pub(crate) async fn answers(&mut self, id: u32) -> bool {
        let version = self.result(id, "Browser.getVersion", &serde_json::json!({})).await;
        version["product"].as_str().is_some_and(|product| product.contains("Chrome"))
    }

    /// The result of a command; events and older replies are passed over.
    pub(crate) async fn result(&mut self, id: u32, method: &str, params: &serde_json::Value) -> serde_json::Value {
        self.ask_with(id, method, params).await;
        loop {
            let mut message = self.message().await;
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].take();
            }
        }
    }

    /// Waits until a reply is in the pipe, and leaves it there.
    pub(crate) async fn something_unread(&self) {
        tokio::time::timeout(SOON, self.read.readable()).await.unwrap().unwrap();
    }
}

impl Family {
    /// A process and all its descendants.
    pub(crate) fn of(ancestor: u32) -> Self {
        let mut pids = vec![ancestor];
        let mut at = 0;
        while let Some(pid) = pids.get(at) {
            pids.extend(children(*pid));
            at += 1;
        }
        Self(pids.into_iter().filter_map(|pid| Some((pid, pidfd_open(raw(pid), PidfdFlags::empty()).ok()?))).collect())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Kills the first, the ancestor.
    pub(crate) fn kill(&self) {
        pidfd_send_signal(&self.0[0].1, Signal::KILL).unwrap();
    }

    #[track_caller]
    pub(crate) fn gone_within(&self, time: Duration) {
        let began = Instant::now();
        let deadline = began + time;
        for (pid, process) in &self.0 {
            let left = Timespec::try_from(deadline.saturating_duration_since(Instant::now())).unwrap();
            let ended = rustix::io::retry_on_intr(|| poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&left))).unwrap();
            assert!(ended > 0, "{pid} lives: {}", fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default());
        }
        println!("{} processes were gone after {:?}", self.len(), began.elapsed());
    }
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| list.split_whitespace().map(|pid| pid.parse().unwrap()).collect::<Vec<u32>>()).collect()
}

fn raw(pid: u32) -> Pid {
    Pid::from_raw(pid.cast_signed()).unwrap()
}

/// The memory that is a process's own share, in kB.
pub(crate) fn proportional_kb(pid: u32) -> u64 {
    let rollup = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).unwrap();
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

pub(crate) fn session_of(pid: u32) -> u32 {
    rustix::process::getsid(Some(raw(pid))).unwrap().as_raw_nonzero().get().unsigned_abs()
}

/// What a process has open.
pub(crate) fn open_files(pid: u32) -> Vec<PathBuf> {
    let entries = fs::read_dir(Path::new("/proc").join(pid.to_string()).join("fd")).unwrap();
    entries.filter_map(|entry| fs::read_link(entry.unwrap().path()).ok()).collect()
}
