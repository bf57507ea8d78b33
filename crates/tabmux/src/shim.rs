//! `tabmux mcp`: passes an MCP client's lines to the daemon and back, and joins the next daemon when one is gone.
//! It knows which requests are unanswered and nothing else of MCP: tools, sessions and schemas are deliberately absent.

mod answer;
mod glimpse;
mod key;
mod ledger;
mod outbox;
mod pulse;
mod stdio;

use std::collections::HashSet;
use std::future::Future;
use std::io::{Cursor, ErrorKind, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use tabmux_core::{Code, Fault};
use tabmux_wire::MAX_FRAME_BYTES;
use tabmux_wire::edges::find_id;
use tabmux_wire::hello::{GoodbyeLine, Hello, Role};
use tabmux_wire::lines::{Line, LineReader};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader, Chain};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinHandle;

use crate::failure::{Failure, Outcome};
use crate::settings::Config;
use crate::start::{Absent, Joined, Starter};
use glimpse::{Glimpse, glimpse};
use ledger::{Ledger, Outgoing, Parting, Tail};
use outbox::Outbox;
use pulse::{Beat, Pulse};
use stdio::Stdio;

/// A daemon that was joined for less and said nothing has lived shortly.
const SHORT_LIFE: Duration = Duration::from_secs(1);
/// So many such daemons may die in a row before the shim stops joining the next one by itself.
const MAX_SHORT_LIVES: u32 = 3;
/// How long a daemon may take to start that its client no longer waits for.
const STARTED_WITHIN: Duration = Duration::from_secs(2);
/// For answers that are already here when the client leaves.
const LAST_WORDS_WITHIN: Duration = Duration::from_secs(1);
/// Longer than any call may take.
const PIPED_WITHIN: Duration = Duration::from_secs(11 * 60);

/// What `tabmux mcp` was told on its command line.
#[derive(Debug, Default)]
pub(crate) struct Endpoint {
    pub(crate) session: Option<String>,
    pub(crate) tools: Option<String>,
    /// What `start_browser` takes when the call does not say.
    pub(crate) defaults: Map<String, Value>,
}

struct Shim {
    starter: Arc<Starter>,
    hello: Hello,
    /// Parameters of an `initialize` that is on its way.
    initialize: Option<Value>,
    ledger: Ledger,
    up: Outbox,
    down: Outbox,
    link: Link,
    short_lives: u32,
    pulse: Pulse,
    input: Input,
}

/// How far the client has spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// It has not been answered yet.
    Fresh,
    Answered,
    /// It wrote everything and closed its end before anything could be answered, as `echo … | tabmux mcp` does: nobody is lost, and it waits for its
    /// answers.
    Piped,
}

enum Link {
    /// Until the client's next line.
    Apart,
    Joining(JoinHandle<Outcome<Option<Joined>>>),
    Joined(Box<Connection>),
}

struct Connection {
    reader: LineReader<BufReader<Chain<Cursor<Vec<u8>>, OwnedReadHalf>>>,
    /// `None` once a write failed; what the daemon said before it left can still be read.
    writer: Option<OwnedWriteHalf>,
    read_only_tools: HashSet<String>,
    since: Instant,
}

enum Event {
    FromClient(std::io::Result<Line>),
    FromDaemon(std::io::Result<Line>),
    Joined(Outcome<Option<Joined>>),
    WroteUp(std::io::Result<usize>),
    WroteDown(std::io::Result<usize>),
    /// Nothing was heard of the daemon for a while, and somebody waits.
    Quiet,
    Stop,
}

/// Serves this process's standard input and output until the client leaves.
pub(crate) fn serve(config: &Config, endpoint: Endpoint) -> Outcome {
    config.places.prepare()?;
    let key = match &endpoint.session {
        Some(name) => key::named(&config.settings.paths.state_dir, name)?,
        None => key::fresh()?,
    };
    let hello = Hello {
        role: Role::Mcp,
        program: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        key: Some(key),
        session: endpoint.session,
        token: config.token.clone(),
        initialize: None,
        tools: endpoint.tools,
        defaults: endpoint.defaults,
    };
    let shim = Shim::new(Starter::of(config)?, hello, config.settings.clocks.call_deadline);
    let io = |error| Failure::io("The shim cannot start", &error);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(io)?;
    runtime.block_on(async {
        let mut signals = [SignalKind::terminate(), SignalKind::interrupt(), SignalKind::hangup()].map(signal).into_iter();
        let mut next = || signals.next().expect("three signals were asked for").map_err(io);
        let (mut terminate, mut interrupt, mut hangup) = (next()?, next()?, next()?);
        let stop = async move {
            tokio::select! { _ = terminate.recv() => {}, _ = interrupt.recv() => {}, _ = hangup.recv() => {} }
        };
        let mut stdio = Stdio::take();
        shim.run(&mut stdio.input, &mut stdio.output, Box::pin(stop)).await;
        Outcome::Ok(())
    })?;
    // A read of the standard input that never ends must not keep us.
    runtime.shutdown_background();
    Ok(())
}

impl Shim {
    fn new(starter: Starter, hello: Hello, deadline: Duration) -> Self {
        Self {
            starter: Arc::new(starter),
            hello,
            initialize: None,
            ledger: Ledger::new(deadline),
            up: Outbox::default(),
            down: Outbox::default(),
            link: Link::Apart,
            short_lives: 0,
            pulse: Pulse::new(Instant::now()),
            input: Input::Fresh,
        }
    }

    async fn run(
        mut self,
        stdin: impl AsyncRead + Unpin,
        mut stdout: impl AsyncWrite + Unpin,
        mut stop: Pin<Box<dyn Future<Output = ()>>>,
    ) {
        let mut stdin = LineReader::new(BufReader::new(stdin), MAX_FRAME_BYTES);
        self.join(Absent::Start);
        while !self.is_done() {
            match self.next_event(&mut stdin, &mut stdout, &mut stop).await {
                Event::FromClient(Ok(Line::Whole(line))) => self.client_said(line),
                Event::FromClient(Ok(Line::TooLong { bytes, head, tail })) => {
                    let id = find_id(&head, &tail).unwrap_or(Value::Null);
                    self.down.push_line(answer::too_long(&id, bytes));
                }
                Event::FromDaemon(Ok(Line::Whole(line))) => self.daemon_said(line),
                Event::FromDaemon(Ok(Line::TooLong { bytes, head, tail })) => {
                    if let Some(id) = find_id(&head, &tail) {
                        self.ledger.settle(&id);
                        self.down.push_line(answer::too_long(&id, bytes));
                    }
                }
                Event::FromDaemon(Err(error)) if error.kind() == ErrorKind::ConnectionReset => self.daemon_lost(Tail::Unread),
                Event::FromDaemon(Ok(Line::End) | Err(_)) => self.daemon_lost(Tail::Read),
                Event::Joined(Ok(Some(joined))) => self.joined(joined),
                Event::Joined(Ok(None)) => self.nobody_came(),
                Event::Joined(Err(failure)) => self.without_daemon(&failure.fault),
                Event::WroteUp(Ok(bytes)) if bytes > 0 => {
                    if let Some(Outgoing { key, .. }) = self.up.wrote(bytes) {
                        self.ledger.written(key);
                    }
                }
                Event::WroteUp(_) => {
                    if let Link::Joined(connection) = &mut self.link {
                        connection.writer = None;
                    }
                }
                Event::WroteDown(Ok(bytes)) if bytes > 0 => {
                    self.down.wrote(bytes);
                    if self.input == Input::Fresh {
                        self.input = Input::Answered;
                    }
                }
                Event::Quiet => self.daemon_quiet(),
                Event::FromClient(Ok(Line::End)) if self.input == Input::Fresh && !self.ledger.is_empty() => {
                    self.input = Input::Piped;
                    let limit = tokio::time::sleep(PIPED_WITHIN);
                    stop = Box::pin(async move {
                        tokio::select! { () = stop => {}, () = limit => {} }
                    });
                }
                Event::FromClient(Ok(Line::End) | Err(_)) | Event::WroteDown(_) | Event::Stop => break,
            }
        }
        // A daemon that is just being started is waited for: who stops it right behind us must find it.
        if let Link::Joining(joining) = &mut self.link {
            tokio::time::timeout(STARTED_WITHIN, joining).await.ok();
        }
        let last_words = async {
            while !self.down.is_empty() {
                let bytes = stdout.write(self.down.chunk()).await?;
                self.down.wrote(bytes);
            }
            stdout.flush().await
        };
        // A client that left does not read; then there is nothing left to do.
        tokio::time::timeout(LAST_WORDS_WITHIN, last_words).await.ok();
    }

    /// Everything that was piped in is answered.
    fn is_done(&self) -> bool {
        self.input == Input::Piped && self.ledger.is_empty() && self.down.is_empty()
    }

    /// Waits for whatever comes first. Every branch is cancel-safe: what it has not done, it does next time.
    async fn next_event(
        &mut self,
        stdin: &mut LineReader<impl tokio::io::AsyncBufRead + Unpin>,
        stdout: &mut (impl AsyncWrite + Unpin),
        stop: &mut Pin<Box<dyn Future<Output = ()>>>,
    ) -> Event {
        let room = (self.up.has_room(), self.down.has_room());
        let (mut reader, mut writer, mut joining) = (None, None, None);
        // Who does not read what the daemon says cannot tell whether it says something.
        let quiet = self.ledger.waiting_since().filter(|_| room.1).map(|since| self.pulse.due(since).into());
        match &mut self.link {
            Link::Apart => {}
            Link::Joining(handle) => joining = Some(handle),
            Link::Joined(connection) => {
                reader = Some(&mut connection.reader);
                writer = connection.writer.as_mut();
            }
        }
        let (up, down) = (self.up.chunk(), self.down.chunk());
        let (can_read, can_write, is_joining) = (reader.is_some(), writer.is_some(), joining.is_some());
        tokio::select! {
            line = stdin.next(), if room.0 && room.1 && self.input != Input::Piped => Event::FromClient(line),
            Some(line) = async { Some(reader?.next().await) }, if can_read && room.1 => Event::FromDaemon(line),
            Some(wrote) = async { Some(writer?.write(up).await) }, if can_write && !up.is_empty() => Event::WroteUp(wrote),
            wrote = stdout.write(down), if !down.is_empty() => Event::WroteDown(wrote),
            Some(joined) = async { Some(joining?.await) }, if is_joining => Event::Joined(joined.unwrap_or_else(|panic| {
                Err(Failure::unavailable(Code::Internal, format!("Joining the daemon failed: {panic}."), "Try again."))
            })),
            () = tokio::time::sleep_until(quiet.unwrap_or_else(tokio::time::Instant::now)), if can_read && quiet.is_some() => Event::Quiet,
            () = stop.as_mut() => Event::Stop,
        }
    }

    fn client_said(&mut self, line: Vec<u8>) {
        if line.trim_ascii().is_empty() {
            return;
        }
        match glimpse::batch(&line) {
            // Each request of a batch is answered for itself, whatever becomes of the daemon.
            Some(messages) => messages.into_iter().for_each(|message| self.client_said_one(message)),
            None => self.client_said_one(line),
        }
    }

    fn client_said_one(&mut self, mut line: Vec<u8>) {
        line.push(b'\n');
        match glimpse(&line) {
            Glimpse::Request { id, method } => {
                if method == "initialize" {
                    self.initialize = glimpse::params_of(&line);
                }
                match self.ledger.note(id, method, &line) {
                    Ok(key) => self.up.push(Outgoing { key: Some(key), line }),
                    Err(refused) => return self.down.push_line(refused),
                }
            }
            Glimpse::Cancelled { id } => {
                self.ledger.settle(&id);
                self.up.push_line(line);
            }
            Glimpse::Answer { .. } | Glimpse::Other => self.up.push_line(line),
        }
        if matches!(self.link, Link::Apart) {
            self.join(Absent::Start);
        }
    }

    fn daemon_said(&mut self, mut line: Vec<u8>) {
        if line.starts_with(GoodbyeLine::PREFIX.as_bytes()) {
            return self.daemon_left(&line);
        }
        // A daemon that answers is alive, however short its life turns out.
        self.short_lives = 0;
        self.pulse.heard(Instant::now());
        if let Glimpse::Answer { id, failed } = glimpse(&line) {
            if pulse::is_ours(&id) || self.ledger.came_too_late(&id) {
                return;
            }
            if self.ledger.settle(&id).as_deref() == Some("initialize") && !failed {
                self.hello.initialize = self.initialize.take();
            }
        }
        line.push(b'\n');
        self.down.push_line(line);
    }

    fn join(&mut self, absent: Absent) {
        let (starter, hello) = (Arc::clone(&self.starter), self.hello.clone());
        self.link = Link::Joining(tokio::task::spawn_blocking(move || starter.join(&hello, absent)));
    }

    /// No successor came, perhaps because somebody stopped it. Who wants nothing of a daemon starts none.
    fn nobody_came(&mut self) {
        self.link = Link::Apart;
        if !self.up.is_empty() {
            self.join(Absent::Start);
        }
    }

    fn joined(&mut self, joined: Joined) {
        match Connection::of(joined) {
            Ok(connection) => {
                self.pulse.heard(Instant::now());
                self.link = Link::Joined(Box::new(connection));
            }
            Err(error) => self.without_daemon(&Failure::io("The daemon's connection cannot be used", &error).fault),
        }
    }

    /// The daemon said goodbye. Another one is joined when the client wants something, or at once if it already does.
    fn daemon_left(&mut self, line: &[u8]) {
        let Ok(GoodbyeLine { goodbye, .. }) = serde_json::from_slice(line) else { return };
        let Link::Joined(connection) = std::mem::replace(&mut self.link, Link::Apart) else { return };
        let replaced = goodbye == "upgrade" || goodbye == GoodbyeLine::CUT_OFF;
        let parting = match goodbye.as_str() {
            "empty" | "upgrade" => Parting::Empty,
            GoodbyeLine::CUT_OFF => Parting::Crash { read_only_tools: &connection.read_only_tools, tail: Tail::Read },
            _ => Parting::Goodbye,
        };
        self.settle_all(parting);
        self.short_lives = 0;
        if !self.up.is_empty() {
            self.join(Absent::Start);
        } else if replaced {
            // The next one has the same sessions and is joined at once, to own them; where somebody stopped it meanwhile, there is none to be started.
            self.join(Absent::Say);
        }
    }

    /// The daemon is gone without a word: join the next one at once.
    fn daemon_lost(&mut self, tail: Tail) {
        let Link::Joined(connection) = std::mem::replace(&mut self.link, Link::Apart) else { return };
        self.short_lives = if connection.since.elapsed() < SHORT_LIFE { self.short_lives + 1 } else { 0 };
        self.settle_all(Parting::Crash { read_only_tools: &connection.read_only_tools, tail });
        if self.short_lives < MAX_SHORT_LIVES {
            self.join(Absent::Start);
        } else {
            self.short_lives = 0;
            let message = format!("The daemon died {MAX_SHORT_LIVES} times in a row within a second of being joined.");
            self.without_daemon(&Fault::new(Code::Internal, message, "Look at `tabmux logs`, then try again."));
        }
    }

    /// One that is suspended takes calls and never answers. Whose time is over is told, and what it did not begin it is asked to leave.
    fn daemon_quiet(&mut self) {
        match self.pulse.beat(Instant::now()) {
            Beat::Ask => self.up.push_line(pulse::question()),
            Beat::Silent => {
                let given_up = self.ledger.give_up(Instant::now(), &pulse::silence(&self.starter.silent().fault));
                given_up.cancels.into_iter().for_each(|line| self.up.push_line(line));
                given_up.answers.into_iter().for_each(|line| self.down.push_line(line));
            }
        }
    }

    fn without_daemon(&mut self, fault: &Fault) {
        self.link = Link::Apart;
        // Standard error is all there is for a client that asked nothing yet; where it is closed, nobody listens.
        writeln!(std::io::stderr(), "tabmux mcp: {fault}").ok();
        self.settle_all(Parting::NoDaemon { fault });
    }

    fn settle_all(&mut self, parting: Parting<'_>) {
        self.up.clear();
        let verdict = self.ledger.judge(parting);
        verdict.again.into_iter().for_each(|outgoing| self.up.push(outgoing));
        verdict.answers.into_iter().for_each(|line| self.down.push_line(line));
    }
}

impl Connection {
    fn of(joined: Joined) -> std::io::Result<Self> {
        joined.stream.set_nonblocking(true)?;
        let (reader, writer) = tokio::net::UnixStream::from_std(joined.stream)?.into_split();
        let source = BufReader::new(Cursor::new(joined.early).chain(reader));
        Ok(Self {
            reader: LineReader::new(source, MAX_FRAME_BYTES),
            writer: Some(writer),
            read_only_tools: joined.welcome.read_only_tools.into_iter().collect(),
            since: Instant::now(),
        })
    }
}
