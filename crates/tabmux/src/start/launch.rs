//! Starts a daemon process and waits until it says that it is ready. The child says so in one line on its
//! standard output; nothing is polled.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tabmux_core::Code;
use tabmux_wire::control::WireFault;

use crate::failure::{Exit, Failure, Outcome};
use crate::settings::Config;

const READY_WITHIN: Duration = Duration::from_secs(30);
/// More than any sensible report; a child that says more is no daemon of ours.
const MAX_REPORT_BYTES: u64 = 64 * 1024;

/// How a daemon is started.
#[derive(Clone, Debug)]
pub(crate) struct Launcher {
    program: PathBuf,
    args: Vec<OsString>,
    /// Variables whose meaning would change with the child's working directory, as absolute paths.
    variables: Vec<(String, OsString)>,
    log_file: PathBuf,
    parent: Parent,
}

/// The line a daemon's parent waits for: `{"tabmux":1,"ready":{…}}` or `{"tabmux":1,"error":{…}}`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) tabmux: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ready: Option<ReadyReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<WireFault>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReadyReport {
    pub(crate) listen: Option<std::net::SocketAddr>,
}

/// Why there is no daemon.
#[derive(Debug)]
pub(crate) enum Stillborn {
    /// It said why, and would say so again.
    Refused(Failure),
    /// Something killed it before it could say anything.
    Killed(Failure),
}

/// Whose child the daemon is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Parent {
    /// Whoever came first; the daemon goes its own way.
    Client,
    /// `tabmux up`: the daemon never exits because it is empty.
    Supervisor,
}

impl Launcher {
    pub(crate) fn of(config: &Config, parent: Parent) -> Outcome<Self> {
        let program = own_program()?;
        let mut args: Vec<OsString> = Vec::new();
        let mut flag = |name: &str, value: Option<OsString>| {
            if let Some(value) = value {
                args.extend([name.into(), value]);
            }
        };
        let (flags, paths) = (&config.flags, &config.settings.paths);
        flag("-L", flags.instance.clone().map(Into::into));
        flag("--socket", flags.socket.is_some().then(|| paths.socket.clone().into()));
        flag("--pid-file", flags.pid_file.is_some().then(|| paths.pid_file.clone().into()));
        flag("--log-file", flags.log_file.is_some().then(|| paths.log_file.clone().into()));
        for pair in &flags.set {
            flag("--set", Some(pair.into()));
        }
        args.push("daemon".into());
        if parent == Parent::Supervisor {
            args.push("--supervised".into());
        }
        let variables =
            ["TABMUX_RUNTIME_DIR", "TABMUX_STATE_DIR", "TABMUX_CONFIG", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "HOME"]
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), config.env.cwd.join(config.env.get(name)?).into())))
                .collect();
        Ok(Self { program, args, variables, log_file: paths.log_file.clone(), parent })
    }

    pub(super) fn parent(&self) -> Parent {
        self.parent
    }

    #[cfg(test)]
    pub(super) fn double(program: PathBuf, args: Vec<OsString>, variables: Vec<(String, OsString)>) -> Self {
        Self { program, args, variables, log_file: "/dev/null".into(), parent: Parent::Client }
    }

    #[cfg(test)]
    pub(super) fn supervise(&mut self) {
        self.parent = Parent::Supervisor;
    }

    /// Starts the daemon and returns when it is ready, or with the reason why it is not. The daemon holds the start lock too until
    /// then, so that one whose starter was killed is still seen to be coming.
    pub(crate) fn launch(&self, starting: &File) -> Result<Child, Stillborn> {
        let io = |error| Stillborn::Refused(Failure::io("The daemon cannot be started", &error));
        let (mine, theirs) = UnixStream::pair().map_err(io)?;
        let starting = starting.try_clone().map_err(io)?;
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.variables.iter().map(|(name, value)| (name, value)));
        // Who started the daemon is not who it serves.
        command.env_remove("TABMUX_SESSION").env_remove("TABMUX_TOKEN");
        command.current_dir("/").stdin(starting).stdout(OwnedFd::from(theirs)).stderr(Stdio::null());
        let mut child = command.spawn().map_err(io)?;
        // The command holds the child's end; while it lives, the end of the child would not be seen.
        drop(command);
        match self.await_report(&mine) {
            Ok(()) => Ok(child),
            Err(stillborn) => {
                child.kill().ok();
                let status = child.wait();
                match stillborn {
                    Stillborn::Killed(failure) if status.is_ok_and(|status| status.code().is_some()) => Err(Stillborn::Refused(failure)),
                    other => Err(other),
                }
            }
        }
    }

    fn await_report(&self, stream: &UnixStream) -> Result<(), Stillborn> {
        let deadline = Instant::now() + READY_WITHIN;
        let mut reader = BufReader::new(stream.take(MAX_REPORT_BYTES));
        let mut line = String::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            let blind = |error| Stillborn::Refused(Failure::io("The daemon cannot be watched", &error));
            stream.set_read_timeout(Some(left)).map_err(blind)?;
            line.clear();
            let log = self.log_file.display();
            match reader.read_line(&mut line) {
                Ok(0) => {
                    let message = "The daemon ended before it was ready.";
                    return Err(Stillborn::Killed(Failure::unavailable(Code::Internal, message, format!("Its log, {log}, says why."))));
                }
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(_) => {
                    let message = format!("The daemon was not ready within {} s and was ended.", READY_WITHIN.as_secs());
                    return Err(Stillborn::Refused(Failure::unavailable(Code::Timeout, message, format!("Try again; its log is {log}."))));
                }
            }
            match serde_json::from_str::<Report>(&line) {
                Ok(Report { error: Some(fault), .. }) => {
                    return Err(Stillborn::Refused(Failure { exit: Exit::Unavailable, fault: fault.into() }));
                }
                Ok(Report { ready: Some(_), .. }) => return Ok(()),
                // Anything else on that stream is not for us.
                _ => {}
            }
        }
    }
}

/// This program, also where its file was replaced while it runs.
pub(crate) fn own_program() -> Outcome<PathBuf> {
    let program = std::env::current_exe().map_err(|error| Failure::io("This program cannot find itself", &error))?;
    let replaced = program.to_str().and_then(|path| path.strip_suffix(" (deleted)")).map(PathBuf::from);
    Ok(replaced.filter(|path| path.exists()).unwrap_or(program))
}

/// Waits for the child in the background, so that it leaves no zombie behind when it ends before us.
pub(crate) fn reap(mut child: Child) {
    let waiter = move || {
        child.wait().ok();
    };
    // Without a thread a zombie stays until we end; nothing else is lost.
    std::thread::Builder::new().name("reaper".into()).stack_size(64 * 1024).spawn(waiter).ok();
}
