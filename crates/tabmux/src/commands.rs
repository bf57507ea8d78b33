//! One command line, one command. Each does its work through the daemon's doors; none knows how the daemon does it.

mod agent_session;
mod arguments;
mod call;
mod connect_help;
mod doctor;
mod fork;
mod format;
mod mcp;
mod profile;
mod server;
mod sessions;
mod share;
mod source;
mod token;
mod tools;
mod up;

use clap::CommandFactory;
use tabmux_core::{Code, Fault};

use crate::cli::{Cli, Command};
use crate::daemon;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{self, Form};
use crate::settings::{Config, Environment, Flags};
use crate::start::Absent;

/// How a command that said its result itself ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Done {
    Well,
    /// It ran, and what it found is bad: exit status 1.
    Badly,
}

pub(crate) fn run(cli: Cli, form: Form) -> Outcome<Done> {
    let command = match cli.command {
        // These two need no configuration, and must work where it is broken.
        Some(Command::Completions { .. } | Command::Man | Command::Logs { follow: true }) if form == Form::Json => {
            return Err(Failure::usage("What this command prints is no JSON document.", "Leave --json away."));
        }
        Some(Command::Completions { shell }) => return completions(shell).map(|()| Done::Well),
        Some(Command::Man) => return man().map(|()| Done::Well),
        other => other,
    };
    let mut flags = cli.flags;
    if let Some(Command::Up { attach, scope }) = &command {
        flags.set.extend(attach.iter().map(|endpoint| format!("attach={endpoint}")));
        flags.set.extend(scope.settings());
    }
    let (config, broken) = configuration(&flags, command.as_ref())?;
    let done = match command {
        None => sessions::ls_or_begin(&config, form),
        Some(Command::Mcp(args)) => mcp::run(&config, *args),
        Some(Command::Up { .. }) => up::run(&config, form),
        Some(Command::Status) => server::status(&config, form),
        Some(Command::Stop) => server::stop(&config, form),
        Some(Command::Logs { follow }) => server::logs(&config, form, follow),
        Some(Command::Doctor { isolation, same_session }) => {
            let patient = match &isolation {
                Some(units) => doctor::Patient::Sessions { units, same_session },
                None => doctor::Patient::Machine,
            };
            return doctor::run(&config, form, patient, broken);
        }
        Some(Command::New { session, make, url }) => sessions::new(&config, form, session, make, url),
        Some(Command::Ls(ls)) => sessions::ls(&config, form, &ls),
        Some(Command::HasSession { target }) => sessions::has(&config, form, &target),
        Some(Command::KillSession { target }) => sessions::kill(&config, form, target),
        Some(Command::RenameSession { target, name }) => sessions::rename(&config, form, target, name),
        Some(Command::Fork(fork)) => return fork::run(&config, form, fork),
        Some(Command::Share(args)) => share::run(&config, form, args),
        Some(Command::Attach { .. }) => {
            Err(not_built("attach", "See what a session does with `tabmux ls` and `tabmux call list_pages -t NAME`."))
        }
        Some(Command::Call { tool, pairs, args, at }) => {
            let args = arguments::gather(&tool, &pairs, args.as_deref())?;
            call::run(&config, form, Absent::Start, tool, args, at)
        }
        Some(Command::Short(short)) => call::short(&config, form, short),
        Some(Command::Tools { cost }) => tools::run(&config, form, cost),
        Some(Command::Token(token)) => token::run(&config, form, token),
        Some(Command::Profile(verb)) => profile::run(&config, form, verb),
        Some(Command::AgentSession(verb)) => agent_session::run(&config, form, verb),
        Some(Command::Daemon { supervised }) => daemon::serve(config, supervised),
        Some(Command::Completions { .. } | Command::Man) => unreachable!("answered above"),
    };
    done.map(|()| Done::Well)
}

/// A daemon can be stopped, and looked at by `doctor`, where the settings are broken; `doctor` then says what is wrong with them.
fn configuration(flags: &Flags, command: Option<&Command>) -> Outcome<(Config, Option<Failure>)> {
    let env = Environment::of_process();
    match Config::resolve(flags, env.clone()) {
        Ok(config) => Ok((config, None)),
        Err(failure) if failure.exit == Exit::BadConfiguration && matches!(command, Some(Command::Stop | Command::Doctor { .. })) => {
            Ok((Config::of_places(flags, env)?, Some(failure)))
        }
        Err(failure) => Err(failure),
    }
}

fn not_built(what: &str, instead: &str) -> Failure {
    Fault::new(Code::Unsupported, format!("`tabmux {what}` is not built yet."), instead).into()
}

fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tabmux", &mut script);
    output::say(&String::from_utf8_lossy(&script))
}

fn man() -> Outcome {
    let mut page = Vec::new();
    let rendered = clap_mangen::Man::new(Cli::command()).render(&mut page);
    rendered.map_err(|error| Failure::io("The man page cannot be made", &error))?;
    output::say(&String::from_utf8_lossy(&page))
}
