//! `tabmux doctor`: looks at everything a daemon needs and says, for each, that it is well or how to put it right.

mod attached;
mod isolation;
mod trial;

use std::io::IsTerminal;
use std::net::TcpListener;

use serde_json::{Value, json};
use tabmux_daemon::http::ListenError;
use tabmux_daemon::{Found, rundir};
use tabmux_wire::control::Ask;

use super::Done;
use super::format::show;
use crate::control::Control;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Form};
use crate::settings::Config;

/// One line of the report.
struct Check {
    what: &'static str,
    finding: Result<String, Problem>,
}

struct Problem {
    message: String,
    cure: String,
}

/// What `doctor` is asked to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patient<'a> {
    /// This machine; nothing that was started for it is left.
    Machine,
    /// What sessions see of each other, in the named unit of isolation or in all.
    Sessions { units: &'a str, same_session: bool },
}

pub(super) fn run(config: &Config, form: Form, patient: Patient<'_>, broken: Option<Failure>) -> Outcome<Done> {
    match (patient, broken) {
        (Patient::Machine, broken) => machine(config, form, broken),
        (Patient::Sessions { .. }, Some(broken)) => Err(broken),
        (Patient::Sessions { units, same_session }, None) => {
            let partner = if same_session { isolation::Partner::Itself } else { isolation::Partner::Stranger };
            isolation::run(config, form, &isolation::Unit::chosen(units), partner)
        }
    }
}

fn machine(config: &Config, form: Form, broken: Option<Failure>) -> Outcome<Done> {
    let (daemon, status) = daemon(config);
    let configuration = broken.map(|failure| Check { what: "configuration", finding: Err(failure.into()) });
    let rest = [
        directory("runtime directory", &config.settings.paths.runtime_dir),
        directory("state directory", &config.settings.paths.state_dir),
        daemon,
        http(config, status.as_ref()),
        browser(config, status.as_ref()),
    ];
    let checks: Vec<Check> = configuration.into_iter().chain(rest).chain(attached::check(config, status.as_ref())).collect();
    let well = checks.iter().all(|check| check.finding.is_ok());
    output::report(form, &json!({"ok": well, "checks": checks.iter().map(Check::document).collect::<Vec<_>>()}), || {
        checks.iter().map(Check::line).collect()
    })?;
    Ok(if well { Done::Well } else { Done::Badly })
}

fn directory(what: &'static str, dir: &std::path::Path) -> Check {
    let finding = if dir.symlink_metadata().is_err() {
        Ok(format!("{} is not there yet and will be made", dir.display()))
    } else {
        rundir::check_private(dir)
            .map(|()| format!("{} is yours alone", dir.display()))
            .map_err(|error| Problem { cure: error.hint(), message: error.to_string() })
    };
    Check { what, finding }
}

/// Also gives the daemon's status, for the checks behind it.
fn daemon(config: &Config) -> (Check, Option<Value>) {
    let check = |finding| Check { what: "daemon", finding };
    let asked = Control::find(config).and_then(|found| found.map(|mut control| control.ask(&Ask::Status)).transpose());
    match asked {
        Err(failure) => (check(Err(failure.into())), None),
        Ok(None) => (check(Ok("none runs; it is started when needed".into())), None),
        Ok(Some(status)) => {
            let (theirs, ours) = (show(&status["version"]), env!("CARGO_PKG_VERSION"));
            let finding = if theirs == ours {
                Ok(format!("version {theirs} runs, pid {}", show(&status["pid"])))
            } else {
                let message = format!("version {theirs} runs, and this is version {ours}.");
                Err(Problem { message, cure: "Run `tabmux stop`; the next client starts the new one.".into() })
            };
            (check(finding), Some(status))
        }
    }
}

fn http(config: &Config, status: Option<&Value>) -> Check {
    let finding = match (config.settings.listen.addr, status) {
        (None, _) => Ok("off".into()),
        (Some(_), Some(status)) if !status["listen"].is_null() => {
            Ok(format!("http://{}:{}", show(&status["listen"]["addr"]), show(&status["listen"]["port"])))
        }
        (Some(addr), Some(status)) => {
            let why = status["listen_error"].as_str().map_or_else(String::new, |why| format!(" {why}"));
            let cure = "End that process, set TABMUX_LISTEN to another port, or listen.on_conflict = \"next\"; then `tabmux stop`.";
            Err(Problem { message: format!("The daemon runs without its HTTP door at {addr}.{why}"), cure: cure.into() })
        }
        (Some(addr), None) => match TcpListener::bind(addr) {
            Ok(_) => Ok(format!("{addr} is free")),
            Err(error) => Err(ListenError::of_bind(addr, error).into()),
        },
    };
    Check { what: "HTTP door", finding }
}

fn browser(config: &Config, status: Option<&Value>) -> Check {
    let finding = match tabmux_daemon::find_browser(&config.settings) {
        Ok(None) => Ok("the built-in fake one, for tests".into()),
        Ok(Some(Found::Installed { path })) => {
            let how = if config.settings.chromium.headless { "headless" } else { "with windows" };
            let tried = profile(config, status).and_then(|()| trial::starts(config, &browsers(status)).map_err(Problem::from));
            tried.map(|()| format!("{}, {how}; it starts and shows a page", path.display()))
        }
        Ok(Some(Found::Running { endpoint, asks_its_user: false })) => Ok(format!("{endpoint} runs and can be attached to")),
        Ok(Some(Found::Running { endpoint, asks_its_user: true })) => {
            Ok(format!("{endpoint} runs; it asks its user once, who must click Allow"))
        }
        Err(fault) => Err(Problem { message: fault.message, cure: fault.hint }),
    };
    Check { what: "browser", finding }
}

/// Whether the profile is free, or our own browser's: that of the daemon that runs, or of one that died.
fn profile(config: &Config, status: Option<&Value>) -> Result<(), Problem> {
    if status.is_none() && tabmux_daemon::browsers_are_left(&config.settings) {
        return Ok(());
    }
    tabmux_daemon::check_profile(&config.settings, &browsers(status)).map_err(|fault| Problem { message: fault.message, cure: fault.hint })
}

/// Those of the daemon that runs, by their processes.
fn browsers(status: Option<&Value>) -> Vec<u32> {
    let browsers = status.and_then(|status| status["browsers"].as_array()).map_or(&[][..], Vec::as_slice);
    browsers.iter().filter_map(|browser| browser["pid"].as_u64()?.try_into().ok()).collect()
}

impl Check {
    fn document(&self) -> Value {
        match &self.finding {
            Ok(found) => json!({"check": self.what, "ok": true, "found": found}),
            Err(problem) => json!({"check": self.what, "ok": false, "problem": problem.message, "cure": problem.cure}),
        }
    }

    fn line(&self) -> String {
        let (green, red, plain) = if std::io::stdout().is_terminal() { ("\x1b[32m", "\x1b[31m", "\x1b[0m") } else { ("", "", "") };
        match &self.finding {
            Ok(found) => format!("{green}ok{plain}       {}: {found}\n", self.what),
            Err(problem) => format!("{red}problem{plain}  {}: {} {}\n", self.what, problem.message, problem.cure),
        }
    }
}

impl From<ListenError> for Problem {
    fn from(error: ListenError) -> Self {
        let fault = error.fault();
        Self { message: fault.message, cure: fault.hint }
    }
}

impl From<Failure> for Problem {
    fn from(failure: Failure) -> Self {
        Self { message: failure.fault.message, cure: failure.fault.hint }
    }
}
