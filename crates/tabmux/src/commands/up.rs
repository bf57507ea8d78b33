//! `tabmux up`: runs the daemon as its child and starts it again when it dies. A daemon that already runs is
//! watched instead, so that its sessions live on. Ends when the daemon is stopped on purpose, or ends it itself on Ctrl-C.

mod succession;

use std::fs::File;
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tabmux_core::Code;
use tabmux_daemon::Found;
use tabmux_daemon::rundir::{self, LockError};
use tabmux_wire::control::Ask;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::JoinHandle;

use super::connect_help;
use super::format::show;
use super::server::await_gone;
use crate::control::{Control, End};
use crate::failure::{Failure, Outcome};
use crate::output::{self, Form};
use crate::settings::Config;
use crate::start::{Led, Starter, own_program};
use succession::Deposed;

/// So many starts in a row may fail before the next one waits.
const FREE_RESTARTS: u32 = 3;
/// After a daemon that lived shorter than this, the next one is given a breath; it is still back within a second.
const SHORT_LIFE: Duration = Duration::from_secs(1);
const BREATH: Duration = Duration::from_millis(250);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// The kernel needs no more, unless the process hangs in it.
const KILLED_WITHIN: Duration = Duration::from_secs(5);
/// A former `tabmux up` ends with its daemon.
const FORMER_UP: Duration = Duration::from_secs(10);
const BEGIN_WITHIN: Duration = Duration::from_secs(60);

/// The daemon that is supervised.
enum Watched {
    Child(Child),
    /// Started by somebody else; its connection says when it ends.
    Adopted(Box<Control>),
}

enum Ended {
    OnPurpose,
    /// A newer `tabmux up` has taken over.
    Replaced,
    /// A daemon of somebody else's had nothing to do, or made way for another.
    Left,
    Died(String),
}

struct Supervisor {
    config: Arc<Config>,
    form: Form,
    /// Ctrl-C, a polite kill, a terminal that was closed.
    told_to_stop: [Signal; 3],
}

pub(super) fn run(config: &Config, form: Form) -> Outcome {
    // A capability could not stop the daemon; whoever runs `up` is its operator.
    let config = &Config { token: None, ..config.clone() };
    config.places.prepare()?;
    let deposed = match succession::depose_older(config)? {
        Deposed::Nobody => None,
        Deposed::Place(starting) => Some(starting),
        Deposed::Stopped => {
            output::note("The daemon was stopped while it made way.");
            return Ok(());
        }
    };
    let patience = if deposed.is_some() { FORMER_UP } else { Duration::ZERO };
    let _only = rundir::take_lock(&config.places.up_lock, patience).map_err(|error| match error {
        LockError::Held { .. } => Failure::unavailable(
            Code::Capacity,
            "Another `tabmux up` supervises this daemon already.",
            "Look at it with `tabmux status`, or use a private daemon: `tabmux -L NAME up`.",
        ),
        other => other.into(),
    })?;
    let io = |error| Failure::io("The supervisor cannot start", &error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
    let done = runtime.block_on(async {
        let hear = |kind| signal(kind).map_err(io);
        let told_to_stop = [hear(SignalKind::interrupt())?, hear(SignalKind::terminate())?, hear(SignalKind::hangup())?];
        Supervisor { config: Arc::new(config.clone()), form, told_to_stop }.supervise(deposed).await
    });
    // Threads that wait for a daemon must not keep us.
    runtime.shutdown_background();
    done
}

impl Supervisor {
    async fn supervise(mut self, deposed: Option<File>) -> Outcome {
        output::note(&format!("Browser: {}", browser_of(&self.config)));
        let mut watched = self.begin(deposed).await?;
        let mut is_introduced = false;
        loop {
            let since = Instant::now();
            if !is_introduced {
                is_introduced = self.introduce(&watched).await?;
            }
            let child = if let Watched::Child(child) = &watched { Some(child.id()) } else { None };
            let mut watching = tokio::task::spawn_blocking(move || watch(watched));
            let ended = tokio::select! {
                ended = &mut watching => ended.unwrap_or_else(|panic| Ended::Died(panic.to_string())),
                () = told_to_stop(&mut self.told_to_stop) => {
                    return match (self.stop().await, child) {
                        (Err(failure), Some(pid)) => end_by_force(pid, watching, failure).await,
                        (done, _) => done,
                    };
                }
            };
            match ended {
                Ended::OnPurpose => {
                    output::note("The daemon was stopped.");
                    return Ok(());
                }
                Ended::Replaced => {
                    output::note("A newer `tabmux up` has taken over.");
                    return Ok(());
                }
                Ended::Left => output::note("The daemon that ran here has ended; starting one of our own."),
                Ended::Died(why) => {
                    output::note(&format!("The daemon died ({why}); starting it again."));
                    if since.elapsed() < SHORT_LIFE && !self.pause(BREATH).await {
                        return self.stop().await;
                    }
                }
            }
            watched = match self.begin_again().await {
                Some(watched) => watched,
                None => return self.stop().await,
            };
        }
    }

    /// Tries until a daemon is ready; `None` when told to stop meanwhile.
    async fn begin_again(&mut self) -> Option<Watched> {
        let mut failed_starts = 0;
        loop {
            let failure = match self.begin(None).await {
                Ok(watched) => return Some(watched),
                Err(failure) => failure,
            };
            failed_starts += 1;
            let wait = wait_after(failed_starts);
            output::note(&format!(
                "The daemon did not start, for the {failed_starts}. time ({}); trying again in {} s.",
                failure.fault,
                wait.as_secs()
            ));
            if !self.pause(wait).await {
                return None;
            }
        }
    }

    /// Starts a daemon, or finds one; in the place of one that was deposed, the start lock is held already.
    async fn begin(&self, deposed: Option<File>) -> Outcome<Watched> {
        let config = Arc::clone(&self.config);
        blocking(move || {
            let (starter, deadline) = (Starter::supervising(&config)?, Instant::now() + BEGIN_WITHIN);
            let mut starting = deposed;
            loop {
                match starter.supervise(starting.take(), deadline)? {
                    Led::Launched(child) => return Ok(Watched::Child(child)),
                    // One that has gone meanwhile is not there to be found.
                    Led::To(_) => {
                        if let Some(control) = Control::find_at_once(&config)? {
                            return Ok(Watched::Adopted(Box::new(control)));
                        }
                    }
                }
            }
        })
        .await
    }

    /// `false` where the daemon says nothing of itself: mostly it has ended already, and whoever watches it sees how.
    async fn introduce(&self, watched: &Watched) -> Outcome<bool> {
        let config = Arc::clone(&self.config);
        let asked = move || Control::find_at_once(&config)?.map(|mut control| control.ask(&Ask::Status)).transpose();
        let status = match blocking(asked).await {
            Ok(Some(status)) => status,
            Ok(None) => return Ok(false),
            Err(failure) => {
                output::note(&format!("The daemon says nothing of itself: {}", failure.fault.message));
                return Ok(false);
            }
        };
        if matches!(watched, Watched::Adopted(_)) {
            output::note(
                "A daemon already runs. Its sessions stay; it is watched from now on, and started again when it dies. \
                 Settings given here hold from that start on.",
            );
        }
        self.check_attached(&status)?;
        let (program, http) = (own_program()?, http_of(&status));
        let mut document = connect_help::document(&self.config, &program, http.as_deref());
        document["browser"] = browser_of(&self.config).into();
        document["pid"] = status["pid"].clone();
        document["socket"] = status["socket"].clone();
        output::report(self.form, &document, || connect_help::text(&self.config, &program, http.as_deref()))?;
        if let Some(why) = status["listen_error"].as_str() {
            output::note(&format!("Without the HTTP door: {why}"));
        }
        output::note("tabmux is up. Ctrl-C stops it.");
        Ok(true)
    }

    /// A daemon that already runs is not moved to another browser under its sessions.
    fn check_attached(&self, status: &Value) -> Outcome {
        let (wanted, is) = (self.config.settings.attach.endpoint.as_deref(), status["attach"].as_str());
        if wanted.is_none() || wanted == is {
            return Ok(());
        }
        let message = format!(
            "A daemon already runs, and it is {}.",
            is.map_or("not attached to a browser".into(), |is| format!("attached to {is}"))
        );
        Err(Failure::unavailable(Code::Capacity, message, "Run `tabmux stop` first, or use a private daemon: `tabmux -L NAME up`."))
    }

    /// `false` when told to stop meanwhile.
    async fn pause(&mut self, wait: Duration) -> bool {
        tokio::select! {
            () = tokio::time::sleep(wait) => true,
            () = told_to_stop(&mut self.told_to_stop) => false,
        }
    }

    async fn stop(&self) -> Outcome {
        output::note("Stopping the daemon.");
        let config = Arc::clone(&self.config);
        blocking(move || {
            let Some(mut control) = Control::find(&config)? else { return Ok(()) };
            let pid = control.welcome.pid;
            control.ask(&Ask::Stop)?;
            await_gone(&config, pid)
        })
        .await
    }
}

/// Ends a child that does not end when it is asked to. As long as nobody has waited for it, its id is its own.
async fn end_by_force(pid: u32, watching: JoinHandle<Ended>, failure: Failure) -> Outcome {
    let id = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    let Some(id) = id.filter(|_| !watching.is_finished()) else { return Err(failure) };
    output::note(&format!(
        "{} It is our own child, so it is killed (pid {pid}); the next daemon closes what it left.",
        failure.fault.message
    ));
    // Gone meanwhile is as good; the wait below tells.
    rustix::process::kill_process(id, rustix::process::Signal::KILL).ok();
    match tokio::time::timeout(KILLED_WITHIN, watching).await {
        Ok(_) => Ok(()),
        Err(_) => Err(failure),
    }
}

async fn told_to_stop([interrupt, terminate, hangup]: &mut [Signal; 3]) {
    tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {}, _ = hangup.recv() => {} }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Outcome<T> + Send + 'static) -> Outcome<T> {
    let panicked = |panic| Failure::unavailable(Code::Internal, format!("The supervisor failed: {panic}."), "Run `tabmux up` again.");
    tokio::task::spawn_blocking(work).await.map_err(panicked)?
}

fn watch(watched: Watched) -> Ended {
    match watched {
        Watched::Child(mut child) => match child.wait() {
            Ok(status) if status.success() => Ended::OnPurpose,
            Ok(status) => Ended::Died(status.to_string()),
            Err(error) => Ended::Died(error.to_string()),
        },
        Watched::Adopted(control) => match control.await_end(None) {
            End::Goodbye(why) if why == "stop" => Ended::OnPurpose,
            End::Goodbye(why) if why == "upgrade" => Ended::Replaced,
            End::Goodbye(_) => Ended::Left,
            End::Crash => Ended::Died("it is gone".into()),
        },
    }
}

fn wait_after(failed_starts: u32) -> Duration {
    match failed_starts.checked_sub(FREE_RESTARTS) {
        None => Duration::ZERO,
        Some(more) => Duration::from_secs(1 << more.min(5)).min(LONGEST_WAIT),
    }
}

fn http_of(status: &Value) -> Option<String> {
    let listen = status["listen"].as_object()?;
    Some(format!("http://{}:{}", show(&listen["addr"]), show(&listen["port"])))
}

fn browser_of(config: &Config) -> String {
    match tabmux_daemon::find_browser(&config.settings) {
        Ok(None) => "the built-in fake one, for tests.".to_owned(),
        Ok(Some(Found::Installed { path })) => format!("{}.", path.display()),
        Ok(Some(Found::Running { endpoint, asks_its_user: false })) => format!("{endpoint}, attached to."),
        Ok(Some(Found::Running { endpoint, asks_its_user: true })) => {
            format!("{endpoint}, attached to. Click Allow when it asks: now, and again should the daemon crash.")
        }
        Err(fault) => format!("none. {} {}", fault.message, fault.hint),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restarts_are_immediate_and_later_ones_wait_ever_longer() {
        let waits: Vec<u64> = (0..12).map(|deaths| wait_after(deaths).as_secs()).collect();
        assert_eq!(waits, [0, 0, 0, 1, 2, 4, 8, 16, 30, 30, 30, 30]);
    }
}
