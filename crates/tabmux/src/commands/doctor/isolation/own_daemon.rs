//! A daemon of the doctor's own, with the user's settings: nobody's session is disturbed, and nothing is left of it. What
//! a killed doctor left is removed by the next one.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use tabmux_core::Code;
use tabmux_daemon::rundir::{self, LockState};
use tabmux_wire::control::Ask;
use tokio::signal::unix::{SignalKind, signal};

use super::agent::Agent;
use crate::commands::server::await_gone;
use crate::control::Control;
use crate::failure::{Failure, Outcome};
use crate::settings::{Config, Flags};

const PREFIX: &str = "doctor-";

/// What differs from the user's settings: no port to quarrel about, no limit in the way, and a short life without a doctor.
const OWN: [&str; 4] = ["listen.addr=off", "limits.max_sessions=0", "session.idle=3m", "daemon.exit_when_empty=10s"];

pub(in crate::commands::doctor) struct OwnDaemon {
    config: Config,
    operator: Control,
    signals: Option<Signals>,
}

/// A thread that puts the daemon away and ends this process when it is told to stop.
struct Signals {
    told: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl OwnDaemon {
    pub(in crate::commands::doctor) fn start(users: &Config) -> Outcome<Self> {
        let own = OWN.map(ToOwned::to_owned);
        let flags = Flags {
            instance: Some(format!("{PREFIX}{}", std::process::id())),
            set: users.flags.set.iter().cloned().chain(own).collect(),
            ..Flags::default()
        };
        let config = Config { token: None, ..Config::resolve(&flags, users.env.clone())? };
        sweep(&config);
        let signals = Signals::await_them(config.clone())?;
        let operator = Control::open_or_start(&config).inspect_err(|_| put_away(&config))?;
        Ok(Self { config, operator, signals: Some(signals) })
    }

    /// A caller with an identity of its own.
    pub(in crate::commands::doctor) fn agent(&mut self, name: &str) -> Outcome<Agent> {
        let made = self.operator.ask(&Ask::TokenNew { name: name.into() })?;
        let token = made["token"].as_str().map(ToOwned::to_owned);
        Agent::of(Config { token, ..self.config.clone() })
    }

    /// Returns when nothing of it is left.
    pub(in crate::commands::doctor) fn end(mut self) -> Outcome {
        self.put_away();
        let left = dirs(&self.config).into_iter().find(|dir| dir.exists());
        left.map_or(Ok(()), |dir| {
            let message = format!("The doctor's own daemon left {} behind.", dir.display());
            Err(Failure::unavailable(Code::Internal, message, "Remove that directory, or run the doctor again, which does."))
        })
    }

    /// Once. Where a signal came first, its thread does it and ends the process.
    fn put_away(&mut self) {
        match self.signals.take() {
            Some(signals) if signals.told.load(Ordering::SeqCst) => signals.thread.join().unwrap_or_default(),
            Some(_) => put_away(&self.config),
            None => {}
        }
    }
}

impl Drop for OwnDaemon {
    fn drop(&mut self) {
        self.put_away();
    }
}

fn dirs(config: &Config) -> [&Path; 2] {
    [&config.settings.paths.runtime_dir, &config.settings.paths.state_dir]
}

/// Ends the daemon and removes what it had; also where it runs no more or never did. What fails here shows in what is left.
fn put_away(config: &Config) {
    if let Ok(Some(mut operator)) = Control::find(config) {
        let pid = operator.welcome.pid;
        operator.ask(&Ask::Stop).ok();
        drop(operator);
        await_gone(config, pid).ok();
    }
    for dir in dirs(config) {
        remove(dir);
    }
}

/// A browser that is just ending may still write, so a directory that was not empty is tried again.
fn remove(dir: &Path) {
    for pause in [0, 50, 200, 1000] {
        std::thread::sleep(Duration::from_millis(pause));
        if std::fs::remove_dir_all(dir).is_ok() || !dir.exists() {
            return;
        }
    }
}

/// Removes what doctors left that are dead, and whose daemons are.
fn sweep(config: &Config) {
    for parent in dirs(config).into_iter().filter_map(Path::parent) {
        for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw);
            let dead = |pid: Pid| pid.as_raw_nonzero().get().unsigned_abs() == std::process::id() || test_kill_process(pid).is_err();
            let runtime_dir = config.settings.paths.runtime_dir.with_file_name(&name);
            if pid.is_some_and(dead) && rundir::lock_state(&runtime_dir.join("tabmux.lock")).is_ok_and(|state| state == LockState::Free) {
                remove(&entry.path());
            }
        }
    }
}

impl Signals {
    /// Ctrl-C, or a closed terminal, takes the daemon along.
    fn await_them(config: Config) -> Outcome<Self> {
        let io = |error| Failure::io("Signals cannot be awaited", &error);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
        let entered = runtime.enter();
        let mut interrupt = signal(SignalKind::interrupt()).map_err(io)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(io)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(io)?;
        drop(entered);
        let told = Arc::new(AtomicBool::new(false));
        let tell = Arc::clone(&told);
        let wait = move || {
            let number = runtime.block_on(async {
                tokio::select! { _ = interrupt.recv() => 2, _ = terminate.recv() => 15, _ = hangup.recv() => 1 }
            });
            tell.store(true, Ordering::SeqCst);
            put_away(&config);
            std::process::exit(128 + number);
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(wait).map_err(io)?;
        Ok(Self { told, thread })
    }
}
