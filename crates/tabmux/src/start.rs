//! The start dance: connect; else lock, connect again, else start a daemon and connect. Whether a daemon lives is
//! said by its lock and by its listening socket, never by how fast it answers, and no leftover file matters.
//! Everything here blocks, within a deadline; the shim runs it beside its loop.

mod inherited;
mod knock;
mod launch;

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Child;
use std::time::{Duration, Instant};

use tabmux_core::Code;
use tabmux_daemon::rundir::{self, LockError, LockState};
use tabmux_wire::hello::{Hello, HelloLine, Welcome, WelcomeLine};
use tabmux_wire::{MAX_FRAME_BYTES, VERSION};

use crate::failure::{Failure, Outcome};
use crate::settings::{Config, Places, Wishes};
pub(crate) use inherited::Inherited;
use knock::{Refusal, knock};
use launch::{Launcher, Parent, Stillborn, reap};
pub(crate) use launch::{ReadyReport, Report, own_program};

/// For the whole dance and the welcome: a daemon that was stopped for 20 s must still be waited for.
const JOIN_WITHIN: Duration = Duration::from_secs(60);
/// For commands that start nothing and only look: a daemon that does not answer is what they have to tell.
const LOOK_WITHIN: Duration = Duration::from_secs(5);
/// They wait so long for a daemon that is being started, also in the place of an older one, which has calls to finish.
const COMES_WITHIN: Duration = Duration::from_secs(15);
/// A daemon that dies at once after it was ready is not started more often than this.
const MAX_LAUNCHES: u32 = 3;
/// How long a daemon that holds its lock without listening is left to itself before it is looked at again.
const GLANCE: Duration = Duration::from_millis(20);

/// How long a peer may say nothing before it is asked whether it is a daemon at all.
const SILENCE: Duration = Duration::from_secs(2);

/// What to do when no daemon runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Absent {
    Start,
    /// One that is just being started is waited for.
    Say,
    /// For one who holds the start lock itself.
    SayAtOnce,
}

#[derive(Clone, Debug)]
pub(crate) struct Starter {
    pub(crate) places: Places,
    launcher: Launcher,
    wishes: Wishes,
}

/// A connection whose hello was answered with a welcome.
#[derive(Debug)]
pub(crate) struct Joined {
    pub(crate) stream: UnixStream,
    /// What the daemon sent behind its welcome.
    pub(crate) early: Vec<u8>,
    pub(crate) welcome: Welcome,
}

/// Where the start dance led to.
#[derive(Debug)]
pub(crate) enum Led {
    To(UnixStream),
    /// It was ready a moment ago.
    Launched(Child),
}

enum Greeting {
    Welcome(Box<Joined>),
    /// The daemon left before it said anything: it was on its way out.
    Closed,
}

impl Starter {
    pub(crate) fn of(config: &Config) -> Outcome<Self> {
        Ok(Self { places: config.places.clone(), launcher: Launcher::of(config, Parent::Client)?, wishes: Wishes::of(config) })
    }

    /// For `tabmux up`, whose daemon is its own child.
    pub(crate) fn supervising(config: &Config) -> Outcome<Self> {
        Ok(Self { places: config.places.clone(), launcher: Launcher::of(config, Parent::Supervisor)?, wishes: Wishes::default() })
    }

    /// Connects and says hello; `None` where no daemon runs and none is to be started. A daemon that leaves before its
    /// welcome is danced around again.
    pub(crate) fn join(&self, hello: &Hello, absent: Absent) -> Outcome<Option<Joined>> {
        let patience = match absent {
            Absent::Start => JOIN_WITHIN,
            Absent::Say | Absent::SayAtOnce => LOOK_WITHIN,
        };
        let deadline = Instant::now() + patience;
        let mut glance = GLANCE;
        loop {
            let Some(stream) = self.connect(absent, deadline)? else { return Ok(None) };
            // Who waited for it to come has time left to hear it.
            match self.greet(stream, hello, deadline.max(Instant::now() + SILENCE))? {
                Greeting::Welcome(joined) => {
                    // Who only looks needs no settings.
                    if let (Absent::Start, Some(running)) = (absent, &joined.welcome.settings) {
                        self.wishes.check(running, crate::output::note)?;
                    }
                    return Ok(Some(*joined));
                }
                Greeting::Closed if Instant::now() >= deadline => {
                    let message = "The daemon closes every connection before it says anything.";
                    return Err(Failure::unavailable(Code::Timeout, message, "Look at `tabmux logs`, or end it with `tabmux stop`."));
                }
                Greeting::Closed => {
                    // Its end is the event to wait for; a daemon that lives on is asked again, ever less often.
                    rundir::await_free(&self.places.paths.lock, glance).ok();
                    glance = (glance * 2).min(Duration::from_secs(1));
                }
            }
        }
    }

    /// A connection without a hello, for the doors that need none.
    pub(crate) fn connect(&self, absent: Absent, deadline: Instant) -> Outcome<Option<UnixStream>> {
        self.places.check()?;
        match self.knock(deadline) {
            Ok(stream) => Ok(Some(stream)),
            Err(Refusal::NoDaemon) if absent == Absent::SayAtOnce => Ok(None),
            Err(Refusal::NoDaemon) if absent == Absent::Say => self.connect_to_coming(),
            Err(Refusal::NoDaemon) => self.connect_or_launch(deadline).map(Some),
            Err(refusal) => Err(self.failure(&refusal)),
        }
    }

    /// Connects to a daemon that somebody is starting; `None` where nobody is.
    fn connect_to_coming(&self) -> Outcome<Option<UnixStream>> {
        let (lock, deadline) = (&self.places.start_lock, Instant::now() + COMES_WITHIN);
        if rundir::lock_state(lock)? == LockState::Free {
            return Ok(None);
        }
        if let Err(LockError::Held { .. }) = rundir::await_free(lock, COMES_WITHIN) {
            let message = format!("A daemon is being started, but it did not listen within {} s.", COMES_WITHIN.as_secs());
            return Err(Failure::unavailable(Code::Timeout, message, "Try again; `tabmux logs` and `tabmux doctor` say more."));
        }
        match self.knock(deadline) {
            Ok(stream) => Ok(Some(stream)),
            Err(Refusal::NoDaemon) => Ok(None),
            Err(refusal) => Err(self.failure(&refusal)),
        }
    }

    /// Under the start lock: connects to whoever listens by now, else to the daemon it starts.
    fn connect_or_launch(&self, deadline: Instant) -> Outcome<UnixStream> {
        self.places.prepare()?;
        let mut starting = self.take_start_lock(deadline)?;
        for _ in 0..MAX_LAUNCHES {
            match self.find_or_launch(&mut starting, deadline)? {
                Led::To(stream) => return Ok(stream),
                Led::Launched(child) => reap(child),
            }
            match self.knock(deadline) {
                Ok(stream) => return Ok(stream),
                Err(Refusal::NoDaemon) => {}
                Err(refusal) => return Err(self.failure(&refusal)),
            }
        }
        Err(self.no_daemon())
    }

    /// For `tabmux up`, which may hold the start lock already. What becomes of a daemon that it has started is its business from then on.
    pub(crate) fn supervise(&self, starting: Option<File>, deadline: Instant) -> Outcome<Led> {
        self.places.prepare()?;
        let mut starting = starting.map_or_else(|| self.take_start_lock(deadline), Ok)?;
        self.find_or_launch(&mut starting, deadline)
    }

    /// Under the start lock, which is only let go of for a supervisor.
    fn find_or_launch(&self, starting: &mut File, deadline: Instant) -> Outcome<Led> {
        let mut launches = 0;
        loop {
            match self.knock(deadline) {
                Ok(stream) => return Ok(Led::To(stream)),
                Err(Refusal::NoDaemon) if launches < MAX_LAUNCHES => {}
                Err(refusal) => return Err(self.failure(&refusal)),
            }
            if self.is_supervised()? {
                // Its `up` starts the daemon, with its own settings, and needs the start lock for that.
                starting.unlock().map_err(|error| Failure::io("The start lock is stuck", &error))?;
                self.outwait_supervisor(deadline)?;
                *starting = self.take_start_lock(deadline)?;
                continue;
            }
            if rundir::lock_state(&self.places.paths.lock)? == LockState::Held {
                self.outwait(deadline)?;
                continue;
            }
            launches += 1;
            match self.launcher.launch(starting) {
                Ok(child) => return Ok(Led::Launched(child)),
                // Somebody else's daemon may have been faster; then ours was rightly refused.
                Err(_) if rundir::lock_state(&self.places.paths.lock)? == LockState::Held => {}
                Err(Stillborn::Killed(_)) if launches < MAX_LAUNCHES => {}
                Err(Stillborn::Killed(failure) | Stillborn::Refused(failure)) => return Err(failure),
            }
        }
    }

    /// What to say where a daemon was needed and none runs.
    pub(crate) fn no_daemon(&self) -> Failure {
        self.failure(&Refusal::NoDaemon)
    }

    /// The daemon lives and says nothing. Its pid is what helps then.
    pub(crate) fn silent(&self) -> Failure {
        let pid = std::fs::read_to_string(&self.places.paths.pid_file).ok().and_then(|text| text.trim().parse::<u32>().ok());
        let (message, hint) = match pid {
            Some(pid) => (
                format!("The daemon is running, but pid {pid} does not answer."),
                format!("It may be suspended (`kill -CONT {pid}`) or overloaded; try again, or end it with `kill -9 {pid}`."),
            ),
            None => ("The daemon is running, but it does not answer.".into(), "It may be suspended or overloaded; try again.".into()),
        };
        Failure::unavailable(Code::Timeout, message, hint)
    }

    fn failure(&self, refusal: &Refusal) -> Failure {
        if matches!(refusal, Refusal::Busy) {
            return self.silent();
        }
        refusal.failure(&self.places.paths.socket)
    }

    fn knock(&self, deadline: Instant) -> Result<UnixStream, Refusal> {
        knock(&self.places.paths.socket, deadline)
    }

    pub(crate) fn take_start_lock(&self, deadline: Instant) -> Outcome<File> {
        Ok(rundir::take_lock(&self.places.start_lock, deadline.saturating_duration_since(Instant::now()))?)
    }

    /// Whether starting the daemon is the business of somebody else, a `tabmux up`.
    fn is_supervised(&self) -> Outcome<bool> {
        Ok(self.launcher.parent() == Parent::Client && rundir::lock_state(&self.places.up_lock)? == LockState::Held)
    }

    /// Gives the supervisor a moment to start its daemon, or to end.
    fn outwait_supervisor(&self, deadline: Instant) -> Outcome {
        if Instant::now() >= deadline {
            let message = "`tabmux up` runs, but its daemon does not listen.";
            return Err(Failure::unavailable(Code::Timeout, message, "See what that `tabmux up` says, or end it."));
        }
        rundir::await_free(&self.places.up_lock, GLANCE).ok();
        Ok(())
    }

    /// A daemon that lives without listening is just starting or just ending.
    fn outwait(&self, deadline: Instant) -> Outcome {
        if Instant::now() >= deadline {
            let message = format!("A daemon holds {} but does not listen.", self.places.paths.lock.display());
            return Err(Failure::unavailable(Code::Timeout, message, "Look at `tabmux logs`, or end that process."));
        }
        rundir::await_free(&self.places.paths.lock, GLANCE).ok();
        Ok(())
    }

    /// A daemon may be slow, stopped or busy; but it holds its lock.
    fn daemon_lives(&self) -> bool {
        rundir::lock_state(&self.places.paths.lock).is_ok_and(|state| state == LockState::Held)
    }

    fn greet(&self, stream: UnixStream, hello: &Hello, deadline: Instant) -> Outcome<Greeting> {
        let line = serde_json::to_string(&HelloLine { tabmux: VERSION, hello: hello.clone() }).expect("a hello is plain JSON");
        match exchange(&stream, &line, deadline, || self.daemon_lives()) {
            Ok((answer, early)) => {
                let answer: WelcomeLine = serde_json::from_slice(&answer).map_err(|_| not_a_daemon(&answer))?;
                if let Some(fault) = answer.error {
                    return Err(Failure::unwelcome(fault.into()));
                }
                let welcome = answer.welcome.ok_or_else(|| not_a_daemon(b""))?;
                Ok(Greeting::Welcome(Box::new(Joined { stream, early, welcome })))
            }
            Err(error) if is_closed(&error) => Ok(Greeting::Closed),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                let socket = self.places.paths.socket.display();
                let message = format!("What listens at {socket} is no tabmux daemon: it said nothing, and no daemon holds the lock.");
                Err(Failure::unavailable(Code::PolicyDenied, message, "End that process, or set TABMUX_RUNTIME_DIR to another directory."))
            }
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => Err(self.silent()),
            Err(error) => Err(Failure::io("The daemon's welcome cannot be read", &error)),
        }
    }
}

/// Writes one line and reads one; also gives back what came behind it. While nothing comes, `worthwhile` says now
/// and then whether waiting makes sense; where it does not, that is a refused connection.
pub(crate) fn exchange(
    stream: &UnixStream,
    line: &str,
    deadline: Instant,
    worthwhile: impl Fn() -> bool,
) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let left = || deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    stream.set_read_timeout(Some(SILENCE.min(left())))?;
    stream.set_write_timeout(Some(left()))?;
    let mut writer = stream;
    writer.write_all(format!("{line}\n").as_bytes())?;
    let mut reader = BufReader::new(stream.take(MAX_FRAME_BYTES as u64));
    let mut answer = Vec::new();
    while let Err(error) = reader.read_until(b'\n', &mut answer) {
        match error.kind() {
            std::io::ErrorKind::WouldBlock if !worthwhile() => return Err(std::io::ErrorKind::ConnectionRefused.into()),
            std::io::ErrorKind::WouldBlock if Instant::now() < deadline => stream.set_read_timeout(Some(SILENCE.min(left())))?,
            _ => return Err(error),
        }
    }
    if answer.pop() != Some(b'\n') {
        return Err(std::io::ErrorKind::UnexpectedEof.into());
    }
    stream.set_read_timeout(None)?;
    stream.set_write_timeout(None)?;
    Ok((answer, reader.buffer().to_vec()))
}

fn is_closed(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionReset, NotConnected, UnexpectedEof};
    matches!(error.kind(), BrokenPipe | ConnectionReset | NotConnected | UnexpectedEof)
}

fn not_a_daemon(answer: &[u8]) -> Failure {
    let shown = String::from_utf8_lossy(&answer[..answer.len().min(80)]).into_owned();
    let message = format!("What listens on the socket is no tabmux daemon of this version: it said {shown:?}.");
    Failure::unavailable(Code::ProtocolVersion, message, "Stop it, or use another TABMUX_RUNTIME_DIR.")
}

#[cfg(test)]
mod tests;
