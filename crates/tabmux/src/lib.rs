//! The command line and the stdio shim. It finds or starts the daemon, talks to its doors, and prints. Sessions,
//! ownership, browsers and MCP's meaning are deliberately absent: they are the daemon's.

mod build;
mod cli;
mod commands;
mod control;
mod daemon;
mod failure;
mod output;
mod settings;
mod shim;
mod start;

use std::process::ExitCode;

use clap::error::ErrorKind;

use cli::Cli;
use commands::Done;
use failure::{Exit, Failure};
use output::Form;

/// The whole program.
pub fn main() -> ExitCode {
    // Not one of the commands: the daemon starts it, and it stays as small as it can.
    let words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "keeper") {
        return tabmux_daemon::keep_browser();
    }
    let cli = match Cli::read(&words) {
        Ok(cli) => cli,
        Err(error) => return wrong_usage(&error),
    };
    let form = if cli.json { Form::Json } else { Form::Text };
    match commands::run(cli, form) {
        Ok(Done::Well) => ExitCode::SUCCESS,
        Ok(Done::Badly) => ExitCode::from(Exit::CallFailed as u8),
        Err(failure) => {
            output::fail(form, &failure);
            ExitCode::from(failure.exit as u8)
        }
    }
}

/// Help and version are results; everything else clap says is an error, and with `--json` one document as well.
fn wrong_usage(error: &clap::Error) -> ExitCode {
    let asked_for_json = std::env::args_os().any(|arg| arg == "--json");
    let wanted = matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
    if asked_for_json && !wanted {
        output::fail(Form::Json, &Failure::usage(sentence(&error.render().to_string()), "`tabmux --help` shows what there is."));
    } else {
        // Where it cannot be printed, the exit status still says it.
        error.print().ok();
    }
    ExitCode::from(if wanted { 0 } else { Exit::WrongUsage as u8 })
}

/// What clap says before its hints, in one line: the arguments it names stand below its first one.
fn sentence(text: &str) -> String {
    let lines: Vec<&str> = text.lines().take_while(|line| !line.trim().is_empty()).map(str::trim).collect();
    format!("{}.", lines.join(" ").trim_start_matches("error: ").trim_end_matches('.'))
}
