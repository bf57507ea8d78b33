//! The command line's side of the daemon's control door: one question, one answer.

use std::io::{BufRead, BufReader, Chain, Cursor, ErrorKind, Read, Take, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use serde_json::Value;
use tabmux_core::{Code, Fault};
use tabmux_wire::MAX_FRAME_BYTES;
use tabmux_wire::control::{Ask, Request, Response};
use tabmux_wire::hello::{GoodbyeLine, Hello, Role, Welcome};

use crate::failure::{Exit, Failure, Outcome};
use crate::settings::Config;
use crate::start::{Absent, Joined, Starter};

/// For what the daemon answers at once.
const PROMPT: Duration = Duration::from_secs(30);
/// For what only looks.
const LOOK: Duration = Duration::from_secs(5);
/// A call may ask for up to ten minutes; the daemon keeps that deadline, this one only guards against a dead daemon.
const PATIENT: Duration = Duration::from_secs(11 * 60);

/// So long such a call hears nothing before it is looked whether the daemon answers anybody: one that is suspended for less keeps its calls.
const QUIET: Duration = Duration::from_secs(20);
/// The same for a call that may take less, beyond its own time.
const BEYOND: Duration = Duration::from_secs(1);

/// A daemon that ends because it is empty is asked for so often; each time it is another one.
const MAX_DAEMONS: u32 = 3;

#[derive(Debug)]
pub(crate) struct Control {
    starter: Starter,
    hello: Hello,
    absent: Absent,
    line: Line,
    pub(crate) welcome: Welcome,
    asked: u64,
}

/// The connection to one daemon, line by line.
#[derive(Debug)]
struct Line {
    reader: BufReader<Take<Chain<Cursor<Vec<u8>>, UnixStream>>>,
    writer: UnixStream,
    /// The beginning of a line whose rest has not come.
    begun: String,
}

/// What came instead of an answer, or the answer.
enum Said {
    Answer(Outcome<Value>),
    Goodbye(String),
}

/// What the daemon says without being asked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum End {
    Goodbye(String),
    Crash,
}

pub(crate) fn hello(config: &Config) -> Hello {
    Hello {
        role: Role::Cli,
        program: env!("CARGO_PKG_VERSION").into(),
        pid: std::process::id(),
        key: None,
        session: None,
        token: config.token.clone(),
        initialize: None,
        tools: None,
        defaults: serde_json::Map::default(),
    }
}

impl Control {
    /// Starts a daemon where none runs.
    pub(crate) fn open_or_start(config: &Config) -> Outcome<Self> {
        Self::open_or(config, Absent::Start)
    }

    /// Fails where no daemon runs.
    pub(crate) fn open(config: &Config) -> Outcome<Self> {
        Self::open_or(config, Absent::Say)
    }

    pub(crate) fn open_or(config: &Config, absent: Absent) -> Outcome<Self> {
        Self::join(config, absent).and_then(|(starter, found)| found.ok_or_else(|| starter.no_daemon()))
    }

    /// `None` where no daemon runs. One that is just being started is waited for.
    pub(crate) fn find(config: &Config) -> Outcome<Option<Self>> {
        Self::join(config, Absent::Say).map(|(_, found)| found)
    }

    /// The same at once, for one who starts daemons itself: it holds a lock that the next daemon needs, and so asks this one only.
    pub(crate) fn find_at_once(config: &Config) -> Outcome<Option<Self>> {
        Self::join(config, Absent::SayAtOnce).map(|(_, found)| found)
    }

    fn join(config: &Config, absent: Absent) -> Outcome<(Starter, Option<Self>)> {
        let (starter, hello) = (Starter::of(config)?, hello(config));
        let Some(joined) = starter.join(&hello, absent)? else { return Ok((starter, None)) };
        let (line, welcome) = Line::of(joined)?;
        let control = Self { starter: starter.clone(), hello, absent, line, welcome, asked: 0 };
        Ok((starter, Some(control)))
    }

    /// Asks, and asks the next daemon where this one ended because it was empty or made way: that one has begun nothing.
    pub(crate) fn ask(&mut self, ask: &Ask) -> Outcome<Value> {
        let stops = matches!(ask, Ask::Stop);
        for _ in 0..MAX_DAEMONS {
            match self.ask_once(ask)? {
                Said::Answer(answer) => return answer,
                Said::Goodbye(_) if stops => return Ok(Value::Null),
                Said::Goodbye(why) if self.absent != Absent::SayAtOnce && (why == "empty" || why == "upgrade") => {
                    // A successor is on its way.
                    let absent = if why == "upgrade" { Absent::Start } else { self.absent };
                    let joined = self.starter.join(&self.hello, absent)?.ok_or_else(|| self.starter.no_daemon())?;
                    (self.line, self.welcome) = Line::of(joined)?;
                }
                Said::Goodbye(why) => return Err(left(&why)),
            }
        }
        Err(left("empty"))
    }

    fn ask_once(&mut self, ask: &Ask) -> Outcome<Said> {
        let within = match ask {
            Ask::Call { .. } | Ask::Fork { .. } | Ask::ProfileSave { .. } => PATIENT,
            Ask::Status | Ask::Sessions { .. } => LOOK,
            _ => PROMPT,
        };
        let quiet = within.min(quiet_for(ask));
        let io = |error: std::io::Error| match error.kind() {
            _ if is_late(&error) => {
                let message = format!("The daemon did not answer within {} s.", within.as_secs());
                Failure::unavailable(Code::Timeout, message, "Look at `tabmux logs`, or end it with `tabmux stop`.")
            }
            _ => gone(),
        };
        self.asked += 1;
        let request = serde_json::to_string(&Request { id: self.asked, ask: ask.clone() }).expect("a request is plain JSON");
        let writer = &mut self.line.writer;
        writer.set_write_timeout(Some(within)).map_err(io)?;
        writer.set_read_timeout(Some(quiet)).map_err(io)?;
        match writer.write_all(format!("{request}\n").as_bytes()) {
            // It may have said goodbye before it closed.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
            written => written.map_err(io)?,
        }
        let deadline = Instant::now() + within;
        loop {
            let line = match self.line.next() {
                Err(error) if is_late(&error) && Instant::now() < deadline => {
                    // It may work on it for long; one that does not even welcome anybody does not.
                    self.starter.join(&self.hello, Absent::SayAtOnce)?;
                    continue;
                }
                line => line.map_err(io)?,
            };
            if line.is_empty() {
                return Err(gone());
            }
            if line.starts_with(GoodbyeLine::PREFIX) {
                return Ok(Said::Goodbye(serde_json::from_str(&line).map_or_else(|_| String::new(), |line: GoodbyeLine| line.goodbye)));
            }
            let response: Response = serde_json::from_str(&line).map_err(|error| {
                Failure::unavailable(
                    Code::ProtocolVersion,
                    format!("The daemon's answer cannot be read: {error}."),
                    "Restart it: `tabmux stop`.",
                )
            })?;
            if response.id != self.asked {
                continue;
            }
            return Ok(Said::Answer(match response.error {
                Some(fault) => Err(Fault::from(fault).into()),
                None => Ok(response.ok.unwrap_or(Value::Null)),
            }));
        }
    }

    /// Waits until the daemon ends, as long as is said or however long it takes.
    pub(crate) fn await_end(mut self, within: Option<Duration>) -> End {
        if self.line.writer.set_read_timeout(within).is_err() {
            return End::Crash;
        }
        loop {
            match self.line.next() {
                Ok(line) if line.is_empty() => return End::Crash,
                Ok(line) => {
                    if let Ok(GoodbyeLine { goodbye, .. }) = serde_json::from_str(&line) {
                        return End::Goodbye(goodbye);
                    }
                }
                Err(_) => return End::Crash,
            }
        }
    }
}

impl Line {
    fn of(joined: Joined) -> Outcome<(Self, Welcome)> {
        let writer = joined.stream.try_clone().map_err(|error| Failure::io("The daemon's connection cannot be used", &error))?;
        let reader = BufReader::new(Cursor::new(joined.early).chain(joined.stream).take(u64::MAX));
        Ok((Self { reader, writer, begun: String::new() }, joined.welcome))
    }

    /// Empty at the end. What came of a line before its time was over is there the next time.
    fn next(&mut self) -> std::io::Result<String> {
        self.reader.get_mut().set_limit(MAX_FRAME_BYTES as u64);
        loop {
            match self.reader.read_line(&mut self.begun) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                other => return other.map(|_| std::mem::take(&mut self.begun)),
            }
        }
    }
}

fn is_late(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}

/// How long a daemon that works on this may say nothing.
fn quiet_for(ask: &Ask) -> Duration {
    let timeout = match ask {
        Ask::Call { args, .. } => args.get("timeout").and_then(Value::as_u64),
        _ => None,
    };
    timeout.map_or(QUIET, |timeout| (Duration::from_millis(timeout) + BEYOND).min(QUIET))
}

/// It said that it ends, and so it has not begun what it was asked.
fn left(why: &str) -> Failure {
    let message = format!("The daemon ended ({why}) instead of answering.");
    Failure::unavailable(Code::Cancelled, message, "Try again; where none runs, `tabmux new` or `tabmux up` starts one.")
}

fn gone() -> Failure {
    let message = "The daemon ended before it answered.";
    Failure {
        exit: Exit::Unavailable,
        fault: Fault::new(Code::OutcomeUnknown, message, "See `tabmux ls` for what is left, then try again."),
    }
}
