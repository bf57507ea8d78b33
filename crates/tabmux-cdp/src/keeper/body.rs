//! The keeper's own process: one thread, one `poll`, no runtime. It waits for the browser's end, for its claimant, for the
//! next claimant, and for the end of the grace time.

use std::fs;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitCode};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::sockopt::socket_peercred;
use rustix::process::{Pid, Signal, pidfd_send_signal};

use super::address::socket_address;
use super::group::{Group, gone_by, timespec};
use super::handover::{self, END, Handles, Inbox, Order, SETTLED, Word};
use super::nest::{Nest, draft};
use super::spawn::{Spawned, Tail, spawn};
use super::{About, Exit};
use crate::launch::{Launch, LaunchError};

/// How long the one who started a keeper may take to say what for.
const ORDER_WITHIN: Duration = Duration::from_secs(10);
/// How long a browser may be unclaimed that never was anybody's.
const FIRST_CLAIM_WITHIN: Duration = Duration::from_secs(10);
/// How long a browser may take to end when asked.
const GOODBYE: Duration = Duration::from_secs(2);
/// How long its other processes may take to die.
const BURIAL: Duration = Duration::from_secs(2);

struct Keeper {
    about: About,
    /// Absent when adopted: then the browser is not our child.
    child: Option<Child>,
    handles: Handles,
    tail: Tail,
    nest: Nest,
    listener: UnixListener,
    claim: Claim,
    patience: Patience,
    grace: Option<Duration>,
}

enum Claim {
    Held { stream: UnixStream, pid: u32 },
    Free { until: Option<Instant> },
}

/// How long to wait for the next claimant.
enum Patience {
    /// Nobody has settled yet.
    FirstClaim,
    Grace,
}

enum Over {
    Exited,
    Unwanted,
}

/// The body of the keeper's process. What it is to do comes over its stdin, which is a socket.
#[must_use]
pub fn run() -> ExitCode {
    let Ok(stream) = detach() else { return ExitCode::FAILURE };
    match Keeper::begin(&stream) {
        Ok(mut keeper) => {
            keeper.hand_over(stream);
            keeper.keep();
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = handover::send(stream.as_fd(), &Word::Failed(error), None);
            ExitCode::FAILURE
        }
    }
}

/// Leaves the terminal and the directory of whoever started this process, and takes its socket.
fn detach() -> io::Result<UnixStream> {
    // Refused only to a group's leader, which a child of the daemon is not.
    let _ = rustix::process::setsid();
    std::env::set_current_dir("/")?;
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(fs::File::open("/dev/null")?)?;
    Ok(stream)
}

impl Keeper {
    fn begin(stream: &UnixStream) -> Result<Self, LaunchError> {
        let system = LaunchError::system;
        let mut inbox = Inbox::default();
        match read_order(stream, &mut inbox).map_err(system("The keeper was not told what to do"))? {
            Order::Launch { launch, runtime_dir, profiles_dir, grace_ms } => {
                let nest = Nest::make(&runtime_dir, &profiles_dir).map_err(system("No place for the browser's files"))?;
                Self::launch(launch, nest, grace_ms)
            }
            Order::Adopt { about, grace_ms } => {
                let handles = inbox.handles().map_err(system("Nothing to adopt"))?;
                let nest = Nest::join(&about.id, &about.nest, &about.socket).map_err(system("The browser's files are gone"))?;
                let listener = listen(&nest.socket).map_err(system("The keeper cannot listen"))?;
                // Whoever brings the browser goes on with it: handing it back is no new generation.
                let about = About { keeper_pid: std::process::id(), generation: about.generation.saturating_sub(1), ..about };
                Ok(Self::new(about, None, handles, nest, listener, grace_ms))
            }
        }
    }

    fn launch(launch: Launch, nest: Nest, grace_ms: Option<u64>) -> Result<Self, LaunchError> {
        // Orphans of the browser come to us, and can be found at its end.
        let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
        let listening = listen(&nest.socket).map_err(LaunchError::system("The keeper cannot listen"));
        let started = listening.and_then(|listener| Ok((listener, spawn(&launch, &nest)?)));
        let (listener, Spawned { child, handles, profile }) = match started {
            Ok(started) => started,
            Err(error) => {
                nest.remove();
                return Err(error);
            }
        };
        let about = About {
            id: nest.id.clone(),
            keeper_pid: std::process::id(),
            browser_pid: child.id(),
            generation: 0,
            launch,
            profile,
            nest: nest.dir.clone(),
            socket: nest.socket.clone(),
            process_session: rustix::process::getsid(None).map_or(0, number),
        };
        Ok(Self::new(about, Some(child), handles, nest, listener, grace_ms))
    }

    fn new(about: About, child: Option<Child>, handles: Handles, nest: Nest, listener: UnixListener, grace_ms: Option<u64>) -> Self {
        let (claim, grace) = (Claim::Free { until: None }, grace_ms.map(Duration::from_millis));
        Self { about, child, handles, tail: Tail::default(), nest, listener, claim, patience: Patience::FirstClaim, grace }
    }

    /// Gives the browser to the process at the other end, which holds it for as long as the connection is open.
    fn hand_over(&mut self, stream: UnixStream) {
        let pid = socket_peercred(&stream).map_or(0, |peer| number(peer.pid));
        self.about.generation += 1;
        let said = handover::send(stream.as_fd(), &Word::Yours(Box::new(self.about.clone())), Some(&self.handles));
        match said.and_then(|()| stream.set_nonblocking(true)) {
            Ok(()) => self.claim = Claim::Held { stream, pid },
            Err(_) => self.let_go(),
        }
    }

    fn let_go(&mut self) {
        let patience = match self.patience {
            Patience::FirstClaim => Some(self.grace.map_or(FIRST_CLAIM_WITHIN, |grace| grace.min(FIRST_CLAIM_WITHIN))),
            Patience::Grace => self.grace,
        };
        self.claim = Claim::Free { until: patience.map(|patience| Instant::now() + patience) };
    }

    fn keep(mut self) {
        let over = loop {
            match self.step() {
                Ok(None) => {}
                Ok(Some(over)) => break over,
                // Better no browser than one that nobody watches.
                Err(_) => break Over::Unwanted,
            }
        };
        self.finish(&over);
    }

    /// Waits until something happens, then looks at everything: nothing here blocks.
    fn step(&mut self) -> io::Result<Option<Over>> {
        if self.wait()? {
            return Ok(Some(Over::Exited));
        }
        self.tail.pull(&self.handles.stderr);
        if self.ordered_to_end() {
            return Ok(Some(Over::Unwanted));
        }
        // After the claimant, so that the next one is not refused because of one that is already gone.
        if let Ok((stream, _)) = self.listener.accept() {
            self.answer(stream);
        }
        let over = matches!(self.claim, Claim::Free { until: Some(until) } if Instant::now() >= until);
        Ok(over.then_some(Over::Unwanted))
    }

    /// True when the browser has ended.
    fn wait(&self) -> io::Result<bool> {
        let mut watched = vec![PollFd::new(&self.handles.process, PollFlags::IN), PollFd::new(&self.listener, PollFlags::IN)];
        if self.tail.open {
            watched.push(PollFd::new(&self.handles.stderr, PollFlags::IN));
        }
        let mut timeout = None;
        match &self.claim {
            Claim::Held { stream, .. } => watched.push(PollFd::new(stream, PollFlags::IN)),
            Claim::Free { until } => timeout = until.map(|until| timespec(until.saturating_duration_since(Instant::now()))),
        }
        match poll(&mut watched, timeout.as_ref()) {
            Ok(_) => Ok(!watched[0].revents().is_empty()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Hears the claimant out.
    fn ordered_to_end(&mut self) -> bool {
        let Claim::Held { stream, .. } = &mut self.claim else { return false };
        let mut bytes = [0; 64];
        match stream.read(&mut bytes) {
            Ok(0) => self.let_go(),
            Ok(count) => {
                if bytes[..count].contains(&SETTLED) {
                    self.patience = Patience::Grace;
                }
                return bytes[..count].contains(&END);
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => self.let_go(),
        }
        false
    }

    /// Somebody knocked.
    fn answer(&mut self, stream: UnixStream) {
        if !socket_peercred(&stream).is_ok_and(|peer| peer.uid == rustix::process::geteuid()) {
            return;
        }
        match self.claim {
            Claim::Held { pid, .. } => drop(handover::send(stream.as_fd(), &Word::Claimed { pid }, None)),
            Claim::Free { .. } => self.hand_over(stream),
        }
    }

    /// Ends what is left of the browser and removes its traces; the claimant hears of the first at once, and of the second
    /// by the end of the connection.
    fn finish(mut self, over: &Over) {
        if matches!(over, Over::Unwanted) {
            let asked = pidfd_send_signal(&self.handles.process, Signal::TERM);
            if asked.is_err() || !gone_by(&self.handles.process, Instant::now() + GOODBYE).unwrap_or(false) {
                let _ = pidfd_send_signal(&self.handles.process, Signal::KILL);
                let _ = gone_by(&self.handles.process, Instant::now() + BURIAL);
            }
        }
        let status = self.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
        let exit = status.map_or(Exit::default(), |status| Exit { code: status.code(), signal: status.signal() });
        self.tail.pull(&self.handles.stderr);
        if let Claim::Held { stream, .. } = &self.claim {
            let _ = handover::send(stream.as_fd(), &Word::Exited { exit, words: self.tail.words() }, None);
        }
        Group { leader: self.about.browser_pid, session: self.about.process_session }.kill(BURIAL);
        self.nest.remove();
    }
}

/// Waits for the first line.
fn read_order(stream: &UnixStream, inbox: &mut Inbox) -> io::Result<Order> {
    stream.set_read_timeout(Some(ORDER_WITHIN))?;
    loop {
        if let Some(order) = inbox.line()? {
            return Ok(order);
        }
        if !inbox.pull(stream.as_fd())? {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Listens under a name that appears only once it is private and answers.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let draft = draft(path);
    let _ = fs::remove_file(&draft);
    let listener = UnixListener::bind(socket_address(&draft)?.path())?;
    let ready = fs::set_permissions(&draft, fs::Permissions::from_mode(0o600))
        .and_then(|()| listener.set_nonblocking(true))
        .and_then(|()| fs::rename(&draft, path));
    if let Err(error) = ready {
        let _ = fs::remove_file(&draft);
        return Err(error);
    }
    Ok(listener)
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().unsigned_abs()
}
