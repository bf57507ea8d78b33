//! The daemon's side: starts keepers, claims what they keep, and hears how it ends.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as Socket;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use rustix::net::SendFlags;
use rustix::process::{Signal, pidfd_send_signal};
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use super::address::socket_address;
use super::group::gone_by;
use super::handover::{self, END, Handles, Inbox, Order, SETTLED, Word};
use super::nest::sweep_one;
use super::{About, End, KeeperHome, Kept, Pipe};
use crate::launch::{Launch, LaunchError, Profile, holder};

/// The right to a browser, for as long as it is not dropped. It holds duplicates of all that keeps the browser, so that
/// it can be given to a new keeper.
#[derive(Debug)]
pub struct Claim {
    pub about: About,
    handles: Handles,
    line: Line,
    ended: Option<End>,
}

/// A connection to a keeper.
#[derive(Debug)]
struct Line {
    stream: UnixStream,
    inbox: Inbox,
}

/// A claim to a browser that has not answered yet. Given up, the browser ends at once; its keeper alone would wait a while for somebody else.
struct Unborn(Option<Claim>);

/// A keeper answers from memory; only a machine on its knees takes longer.
const KEEPER_WITHIN: Duration = Duration::from_secs(10);
/// A cold start from a slow disk beside ten others.
const BROWSER_WITHIN: Duration = Duration::from_secs(30);
/// A dying daemon's connection closes a little after its lock.
const CLAIM_PATIENCE: Duration = Duration::from_secs(1);
const CLAIM_PAUSE: Duration = Duration::from_millis(20);
/// One start of Chromium in a few thousand ends in a crash of its own making; it has done nothing by then.
const MAX_ATTEMPTS: u32 = 3;
const END_WITHIN: Duration = Duration::from_secs(5);
const KILL_WITHIN: Duration = Duration::from_secs(2);

/// A complete exchange that leaves nothing in the pipe; ids of calls begin above it.
const FIRST_QUESTION: &[u8] = b"{\"id\":0,\"method\":\"Browser.getVersion\"}\0";
/// Chromium's way to say that another process uses the profile.
const EXIT_PROFILE_IN_USE: i32 = 21;

/// Starts a keeper and its browser, and returns once the browser answers.
pub async fn launch(home: &KeeperHome, launch: &Launch) -> Result<Kept, LaunchError> {
    // A keeper leaves the directory it was started in.
    let absolute = |path: &Path| std::path::absolute(path).map_err(LaunchError::system("A path cannot be resolved"));
    let mut launch = launch.clone();
    if let Profile::Named(profile) = &mut launch.profile {
        *profile = absolute(profile)?;
    }
    let (runtime_dir, profiles_dir) = (absolute(&home.runtime_dir)?, absolute(&home.profiles_dir)?);
    let order = Order::Launch { launch, runtime_dir, profiles_dir, grace_ms: grace_ms(home) };
    let mut attempts = 0;
    loop {
        attempts += 1;
        let claim = match Claim::of_new_keeper(home, &order, None).await {
            Err(LaunchError::KeeperGone(_)) if attempts < MAX_ATTEMPTS => continue,
            claim => claim?,
        };
        let pipe = claim.handles.pipe().map_err(LaunchError::system("The pipe cannot be shared"))?;
        let (claim, answered) = Unborn(Some(claim)).first_answer(&pipe).await;
        let Err(error) = answered else {
            claim.settle()?;
            return Ok(Kept { pipe, claim });
        };
        let crashed = claim.has_crashed();
        // The error is the news; that the rest ends too is the keeper's care.
        let _ = claim.end().await;
        if !crashed || attempts == MAX_ATTEMPTS {
            return Err(error);
        }
        tracing::warn!(%error, "the browser crashed while it started and is started again");
    }
}

/// Takes over a browser that nobody holds.
pub async fn claim(socket: &Path) -> Result<Kept, LaunchError> {
    let deadline = Instant::now() + CLAIM_PATIENCE;
    loop {
        let gone = |error: io::Error| LaunchError::KeeperGone(format!("{}: {error}", socket.display()));
        let address = socket_address(socket).map_err(gone)?;
        let stream = timeout(KEEPER_WITHIN, UnixStream::connect(address.path())).await.map_err(|late| gone(late.into()))?.map_err(gone)?;
        if stream.peer_cred().map_err(gone)?.uid() != rustix::process::geteuid().as_raw() {
            return Err(LaunchError::System(format!("{} belongs to another user", socket.display())));
        }
        match Claim::taken(Line { stream, inbox: Inbox::default() }).await {
            Err(LaunchError::Claimed { .. }) if Instant::now() < deadline => sleep(CLAIM_PAUSE).await,
            Err(error) => return Err(error),
            Ok(claim) => {
                claim.settle()?;
                let pipe = claim.handles.pipe().map_err(LaunchError::system("The pipe cannot be shared"))?;
                return Ok(Kept { pipe, claim });
            }
        }
    }
}

impl Claim {
    async fn of_new_keeper(home: &KeeperHome, order: &Order, handles: Option<&Handles>) -> Result<Self, LaunchError> {
        Self::taken(start_keeper(home, order, handles).await?).await
    }

    /// Reads the keeper's answer to a claim.
    async fn taken(mut line: Line) -> Result<Self, LaunchError> {
        let gone = |why: &str| LaunchError::KeeperGone(why.to_owned());
        let word = timeout(KEEPER_WITHIN, line.word()).await.map_err(|_| gone("it does not answer"))?;
        match word.map_err(hung_up("The keeper cannot be understood"))? {
            Some(Word::Yours(about)) => {
                let handles = line.inbox.handles().map_err(LaunchError::system("The keeper kept the pipe"))?;
                Ok(Self { about: *about, handles, line, ended: None })
            }
            Some(Word::Claimed { pid }) => Err(LaunchError::Claimed { pid }),
            Some(Word::Failed(error)) => Err(error),
            Some(Word::Exited { exit, words }) => Err(LaunchError::died(exit.to_string(), words)),
            None => Err(gone("it hung up")),
        }
    }

    /// Waits for the end of the browser or of its keeper, whichever is first. May be dropped and called again.
    pub async fn ended(&mut self) -> End {
        if let Some(end) = &self.ended {
            return end.clone();
        }
        let end = match self.line.word().await {
            Ok(Some(Word::Exited { exit, words })) => End::BrowserExited { exit, words },
            Ok(_) | Err(_) => End::KeeperGone,
        };
        self.ended.insert(end).clone()
    }

    /// Whether a signal ended the browser, or something its keeper, rather than the browser itself.
    fn has_crashed(&self) -> bool {
        match &self.ended {
            Some(End::BrowserExited { exit, .. }) => exit.signal.is_some(),
            Some(End::KeeperGone) => true,
            None => false,
        }
    }

    /// Gives the browser to a new keeper, after the old one died. The pipe stays in use meanwhile.
    pub async fn replace_keeper(&mut self, home: &KeeperHome) -> Result<(), LaunchError> {
        let order = Order::Adopt { about: self.about.clone(), grace_ms: grace_ms(home) };
        let adopted = Self::of_new_keeper(home, &order, Some(&self.handles)).await?;
        adopted.settle()?;
        *self = adopted;
        Ok(())
    }

    /// Ends the browser, and returns when it and all its traces are gone.
    pub async fn end(mut self) -> Result<(), LaunchError> {
        // Refused only when nobody is there to read it.
        let _ = self.line.tell(END);
        let deadline = Instant::now() + END_WITHIN;
        let last_word = matches!(timeout_at(deadline, self.ended()).await, Ok(End::BrowserExited { .. }));
        if last_word && timeout_at(deadline, self.line.closed()).await.is_ok() {
            return Ok(());
        }
        self.end_without_keeper().await
    }

    /// The keeper is dead or stuck: what it would have done.
    async fn end_without_keeper(self) -> Result<(), LaunchError> {
        let Self { about, handles, .. } = self;
        let Handles { process, .. } = handles;
        let _ = pidfd_send_signal(&process, Signal::KILL);
        let dead = tokio::task::spawn_blocking(move || gone_by(&process, std::time::Instant::now() + KILL_WITHIN)).await;
        if !matches!(dead, Ok(Ok(true))) {
            return Err(LaunchError::System(format!("The browser {} does not end", about.browser_pid)));
        }
        // Its other processes follow it when they notice; if they are late, the next sweep finds the nest.
        if let (Some(runtime), Some(profiles)) = (about.socket.parent(), about.nest.parent()) {
            sweep_one(runtime, profiles, &about.id);
        }
        Ok(())
    }

    /// Tells the keeper that the browser is in good hands.
    fn settle(&self) -> Result<(), LaunchError> {
        self.line.tell(SETTLED).map_err(|error| LaunchError::KeeperGone(error.to_string()))
    }

    /// Waits until the browser answers its first question, or is known never to.
    async fn first_answer(&mut self, pipe: &Pipe) -> Result<(), LaunchError> {
        let asked = tokio::select! {
            end = self.ended() => return Err(self.stillborn(end)),
            asked = timeout(BROWSER_WITHIN, ask(pipe)) => asked,
        };
        match asked {
            Ok(Ok(())) => Ok(()),
            Err(_) => Err(LaunchError::Late { seconds: BROWSER_WITHIN.as_secs() }),
            // The pipe is closed: the keeper is about to say why.
            Ok(Err(error)) => match timeout(KEEPER_WITHIN, self.ended()).await {
                Ok(end) => Err(self.stillborn(end)),
                Err(_) => Err(LaunchError::System(format!("The browser closed its pipe: {error}"))),
            },
        }
    }

    fn stillborn(&self, end: End) -> LaunchError {
        let End::BrowserExited { exit, words } = end else { return LaunchError::KeeperGone("it ended during the start".to_owned()) };
        let in_use = exit.code == Some(EXIT_PROFILE_IN_USE);
        match holder(&self.about.profile).filter(|_| in_use) {
            Some(holder) => LaunchError::ProfileHeld { profile: self.about.profile.clone(), holder },
            None => LaunchError::died(exit.to_string(), words),
        }
    }
}

impl Unborn {
    async fn first_answer(mut self, pipe: &Pipe) -> (Claim, Result<(), LaunchError>) {
        let answered = self.0.as_mut().expect("it is taken out only with self").first_answer(pipe).await;
        (self.0.take().expect("it is taken out only with self"), answered)
    }
}

impl Drop for Unborn {
    fn drop(&mut self) {
        if let Some(claim) = &self.0 {
            // Refused only when nobody is there to read it.
            let _ = claim.line.tell(END);
        }
    }
}

impl Line {
    /// Says one thing. Not through tokio, which would first have to learn that the socket can be written to.
    fn tell(&self, word: u8) -> io::Result<()> {
        rustix::net::send(&self.stream, &[word], SendFlags::NOSIGNAL)?;
        Ok(())
    }

    /// Waits until the keeper hangs up.
    async fn closed(&mut self) {
        while matches!(self.word().await, Ok(Some(_))) {}
    }

    /// The keeper's next word; none when it hung up. Nothing is lost when this is dropped.
    async fn word(&mut self) -> io::Result<Option<Word>> {
        loop {
            if let Some(word) = self.inbox.line()? {
                return Ok(Some(word));
            }
            self.stream.readable().await?;
            let Self { stream, inbox } = self;
            match stream.try_io(Interest::READABLE, || inbox.pull(stream.as_fd())) {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Starts a keeper whose stdin is our connection to it, so that it knows from its first moment whether we live.
async fn start_keeper(home: &KeeperHome, order: &Order, handles: Option<&Handles>) -> Result<Line, LaunchError> {
    let system = LaunchError::system("The keeper cannot be started");
    let (ours, theirs) = Socket::pair().map_err(&system)?;
    let mut command = tokio::process::Command::new(&home.exe);
    command.args(&home.words).stdin(OwnedFd::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    // Dropping the child leaves it running, and tokio reaps it when it ends.
    drop(command.spawn().map_err(&system)?);
    drop(command);
    handover::send(ours.as_fd(), order, handles).map_err(hung_up("The keeper cannot be told what to do"))?;
    ours.set_nonblocking(true).map_err(&system)?;
    Ok(Line { stream: UnixStream::from_std(ours).map_err(&system)?, inbox: Inbox::default() })
}

/// Asks the first question and reads its answer, on duplicates.
async fn ask(pipe: &Pipe) -> io::Result<()> {
    let mut write = pipe::Sender::from_owned_fd(pipe.write.try_clone()?)?;
    let mut read = pipe::Receiver::from_owned_fd(pipe.read.try_clone()?)?;
    write.write_all(FIRST_QUESTION).await?;
    let mut chunk = [0; 4096];
    loop {
        match read.read(&mut chunk).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count if chunk[..count].ends_with(&[0]) => return Ok(()),
            _ => {}
        }
    }
}

/// A keeper that was killed is gone; anything else is a fault of ours or of the system.
fn hung_up(doing: &'static str) -> impl Fn(io::Error) -> LaunchError {
    move |error| match error.kind() {
        io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => LaunchError::KeeperGone(error.to_string()),
        _ => LaunchError::system(doing)(error),
    }
}

fn grace_ms(home: &KeeperHome) -> Option<u64> {
    home.grace.map(|grace| u64::try_from(grace.as_millis()).unwrap_or(u64::MAX))
}
