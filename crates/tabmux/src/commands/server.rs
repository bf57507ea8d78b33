//! The daemon as a whole: status, stop, logs.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::time::{Duration, Instant};

use rustix::fs::inotify;
use serde_json::{Value, json};
use tabmux_core::Code;
use tabmux_daemon::rundir::{self, LockState};
use tabmux_wire::control::Ask;

use super::format::show;
use crate::control::Control;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Form};
use crate::settings::Config;

/// Draining takes up to 5 s.
const GONE_WITHIN: Duration = Duration::from_secs(10);
/// How long a daemon that lives without listening is left to itself before it is looked for again; each time longer.
const GLANCE: Duration = Duration::from_millis(20);
const LONGEST_GLANCE: Duration = Duration::from_millis(250);

pub(super) fn status(config: &Config, form: Form) -> Outcome {
    let mut control = match (Control::find(config)?, form) {
        (Some(control), _) => control,
        (None, Form::Json) => return output::say_json(&json!({"running": false})),
        (None, Form::Text) => return Control::open(config).map(drop),
    };
    let status = control.ask(&Ask::Status)?;
    output::report(form, &status, || described(&status))
}

fn described(status: &Value) -> String {
    let listen = match &status["listen"] {
        Value::Null => status["listen_error"].as_str().map_or_else(|| "off".to_owned(), |why| format!("off: {why}")),
        listen => format!("http://{}:{}", show(&listen["addr"]), show(&listen["port"])),
    };
    let counts = &status["sessions"];
    let mut sessions = format!("{} active, {} orphaned", show(&counts["active"]), show(&counts["orphaned"]));
    if counts["lost"].as_u64().is_some_and(|lost| lost > 0) {
        sessions.push_str(&format!(", {} lost", show(&counts["lost"])));
    }
    let rows = [
        ("version", show(&status["version"])),
        ("pid", show(&status["pid"])),
        ("up for", format!("{} s", show(&status["uptime_s"]))),
        ("socket", show(&status["socket"])),
        ("http", listen),
        ("sessions", sessions),
        ("clients", show(&status["clients"])),
        (
            "calls",
            format!(
                "{} running, {} queued, {} in all",
                show(&status["calls"]["running"]),
                show(&status["calls"]["queued"]),
                show(&status["calls"]["total"])
            ),
        ),
        ("tokens", tokens(&status["tokens"])),
        ("browsers", status["browsers"].as_array().map_or(0, Vec::len).to_string()),
        ("memory", format!("{} kB", show(&status["memory_kb"]))),
    ];
    rows.map(|(name, value)| format!("{name:9} {value}\n")).concat()
}

/// `about 1200 in all replies; alice 800, bob 400`.
fn tokens(tokens: &Value) -> String {
    let sessions: Vec<String> = tokens_by_session(tokens).into_iter().map(|(name, count)| format!("{name} {count}")).collect();
    let total = format!("about {} in all replies", show(&tokens["total"]));
    if sessions.is_empty() { total } else { format!("{total}; {}", sessions.join(", ")) }
}

/// What each session's replies had, by its name; where two callers have one of that name, by its id as well.
pub(super) fn tokens_by_session(tokens: &Value) -> Vec<(String, String)> {
    let sessions: Vec<_> = tokens["sessions"].as_object().into_iter().flatten().collect();
    let named = |(id, session): &(&String, &Value)| {
        let name = show(&session["name"]);
        let is_only = sessions.iter().filter(|(_, other)| other["name"] == session["name"]).count() == 1;
        (if is_only { name } else { format!("{name} ({id})") }, show(&session["tokens"]))
    };
    sessions.iter().map(named).collect()
}

/// Ends the daemon and returns when it is really gone.
pub(super) fn stop(config: &Config, form: Form) -> Outcome {
    let (found, left) = find_for_good(config)?;
    let stopped = match found {
        Some(control) => end(config, control)?,
        // A killed daemon's browsers live on for the grace time, and its sessions would come back. Its successor ends them, as every daemon
        // does at its end.
        None if is_anything_left(config) => end(config, Control::open_or_start(config)?)?,
        None => left,
    };
    if form == Form::Text && !stopped {
        output::note("No daemon was running.");
    }
    output::report(form, &json!({"stopped": stopped}), String::new)
}

fn is_anything_left(config: &Config) -> bool {
    let settings = &config.settings;
    tabmux_daemon::browsers_are_left(settings) || tabmux_daemon::journal::is_unfinished(&settings.paths.state_dir)
}

/// The daemon, also one that is just coming up. Where there is none: whether one was just leaving, and is gone now.
fn find_for_good(config: &Config) -> Outcome<(Option<Control>, bool)> {
    let (lock, deadline) = (&config.settings.paths.lock, Instant::now() + GONE_WITHIN);
    let (mut left, mut glance) = (false, GLANCE);
    loop {
        let found = Control::find(config)?;
        if found.is_some() || rundir::lock_state(lock)? == LockState::Free {
            return Ok((found, left));
        }
        if Instant::now() >= deadline {
            return Err(still_there(config));
        }
        // One that lives without listening leaves, or it began to listen since we looked; so it is looked for again.
        left = rundir::await_free(lock, glance).is_ok();
        glance = (glance * 2).min(LONGEST_GLANCE);
    }
}

fn end(config: &Config, mut control: Control) -> Outcome<bool> {
    let pid = control.welcome.pid;
    control.ask(&Ask::Stop)?;
    drop(control);
    await_gone(config, pid)?;
    Ok(true)
}

/// The lock says that nobody lives; where another daemon was started meanwhile, the old one's pid says it.
pub(super) fn await_gone(config: &Config, pid: u32) -> Outcome {
    let deadline = Instant::now() + GONE_WITHIN;
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    while Instant::now() < deadline {
        let free = rundir::await_free(&config.settings.paths.lock, Duration::from_millis(250)).is_ok();
        let dead = pid.is_some_and(|pid| rustix::process::test_kill_process(pid).is_err());
        if free || dead {
            return Ok(());
        }
    }
    Err(still_there(config))
}

fn still_there(config: &Config) -> Failure {
    let message = format!("The daemon did not end within {} s.", GONE_WITHIN.as_secs());
    let hint = format!(
        "Its process id is in {}; its log is {}.",
        config.settings.paths.pid_file.display(),
        config.settings.paths.log_file.display()
    );
    Failure::unavailable(Code::Timeout, message, hint)
}

/// Prints the log, also of a daemon that is gone: that is when it is wanted most.
pub(super) fn logs(config: &Config, form: Form, follow: bool) -> Outcome {
    let path = &config.settings.paths.log_file;
    let io = |error| Failure::io(&format!("The log {} cannot be read", path.display()), &error);
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let message = format!("There is no log yet: {} does not exist.", path.display());
            return Err(Failure::unavailable(Code::SessionNotFound, message, "Start the daemon with `tabmux up` or `tabmux new`."));
        }
        Err(error) => return Err(io(error)),
    };
    if form == Form::Json {
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(io)?;
        let text = String::from_utf8_lossy(&bytes);
        return output::say_json(&json!({"file": path, "lines": text.lines().collect::<Vec<_>>()}));
    }
    let watch = inotify::init(inotify::CreateFlags::CLOEXEC).map_err(|errno| io(errno.into()))?;
    if follow {
        inotify::add_watch(&watch, path, inotify::WatchFlags::MODIFY | inotify::WatchFlags::MOVE_SELF).map_err(|errno| io(errno.into()))?;
    }
    let mut space = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut space);
    loop {
        match copy(&mut file) {
            // Whoever read has seen enough, as in `tabmux logs | head -1`.
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
            copied => copied.map_err(io)?,
        }
        if !follow {
            return Ok(());
        }
        let moved = events.next().map_err(|errno| io(errno.into()))?.events().contains(inotify::ReadFlags::MOVE_SELF);
        if moved {
            // The log was full and a new one begins under the old name.
            copy(&mut file).map_err(io)?;
            return logs(config, form, follow);
        }
    }
}

/// Prints what is behind the file's position. A file that shrank is read from its start.
fn copy(file: &mut File) -> std::io::Result<()> {
    if file.stream_position()? > file.metadata()?.len() {
        file.seek(SeekFrom::Start(0))?;
    }
    let mut stdout = std::io::stdout().lock();
    std::io::copy(file, &mut stdout)?;
    stdout.flush()
}
