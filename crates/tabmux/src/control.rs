//! The command line's side of the daemon's control door: one question, one answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

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
/// A call may ask for up to ten minutes; the daemon keeps that deadline, this one only guards against a dead daemon.
const PATIENT: Duration = Duration::from_secs(11 * 60);

#[derive(Debug)]
pub(crate) struct Control {
    reader: BufReader<std::io::Take<UnixStream>>,
    writer: UnixStream,
    pub(crate) welcome: Welcome,
    asked: u64,
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
        let starter = Starter::of(config)?;
        starter.join(&hello(config), Absent::Start)?.map_or_else(|| Err(starter.no_daemon()), Self::of)
    }

    /// Fails where no daemon runs.
    pub(crate) fn open(config: &Config) -> Outcome<Self> {
        let starter = Starter::of(config)?;
        starter.join(&hello(config), Absent::Say)?.map_or_else(|| Err(starter.no_daemon()), Self::of)
    }

    /// `None` where no daemon runs.
    pub(crate) fn find(config: &Config) -> Outcome<Option<Self>> {
        Starter::of(config)?.join(&hello(config), Absent::Say)?.map(Self::of).transpose()
    }

    fn of(joined: Joined) -> Outcome<Self> {
        let writer = joined.stream.try_clone().map_err(|error| Failure::io("The daemon's connection cannot be used", &error))?;
        // Nothing but a goodbye can come before the first question, and then the question fails as it should.
        let reader = BufReader::new(joined.stream.take(u64::MAX));
        Ok(Self { reader, writer, welcome: joined.welcome, asked: 0 })
    }

    pub(crate) fn ask(&mut self, ask: Ask) -> Outcome<Value> {
        let within = if matches!(ask, Ask::Call { .. }) { PATIENT } else { PROMPT };
        let io = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                let message = format!("The daemon did not answer within {} s.", within.as_secs());
                Failure::unavailable(Code::Timeout, message, "Look at `tabmux logs`, or end it with `tabmux stop`.")
            }
            _ => gone(),
        };
        self.asked += 1;
        let request = serde_json::to_string(&Request { id: self.asked, ask }).expect("a request is plain JSON");
        self.writer.set_write_timeout(Some(within)).map_err(io)?;
        self.writer.set_read_timeout(Some(within)).map_err(io)?;
        self.writer.write_all(format!("{request}\n").as_bytes()).map_err(io)?;
        loop {
            let line = self.line().map_err(io)?;
            if line.is_empty() || line.starts_with(GoodbyeLine::PREFIX) {
                return Err(gone());
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
            return match response.error {
                Some(fault) => Err(Failure { exit: Exit::CallFailed, fault: fault.into() }),
                None => Ok(response.ok.unwrap_or(Value::Null)),
            };
        }
    }

    /// Waits, however long it takes, until the daemon ends.
    pub(crate) fn await_end(mut self) -> End {
        if self.writer.set_read_timeout(None).is_err() {
            return End::Crash;
        }
        loop {
            match self.line() {
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

    /// Empty at the end.
    fn line(&mut self) -> std::io::Result<String> {
        self.reader.get_mut().set_limit(MAX_FRAME_BYTES as u64);
        let mut line = String::new();
        loop {
            match self.reader.read_line(&mut line) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                other => return other.map(|_| line),
            }
        }
    }
}

fn gone() -> Failure {
    let message = "The daemon ended before it answered.";
    Failure {
        exit: Exit::Unavailable,
        fault: Fault::new(Code::OutcomeUnknown, message, "See `tabmux ls` for what is left, then try again."),
    }
}
