//! The project's own chores: tidy, generated files, benchmark, soak. Nothing here is shipped, and nothing
//! here is needed to build what is.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a chore speaks to the person who started it")]

mod bench;
mod cdp;
mod deny;
mod docs;
mod requirements;
mod soak;
mod tidy;
mod workspace;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

#[derive(Parser, Debug)]
#[command(name = "cargo xtask", about = "The chores of the tabmux workspace")]
enum Chore {
    /// Checks what the compiler cannot: edges between crates, file sizes, names, generated files
    Tidy,
    /// Rewrites the generated files in docs/
    Docs,
    /// Rewrites docs/requirements.md and says how much of it is covered
    Requirements,
    /// Rewrites the typed part of the DevTools protocol from its official description (needs npm)
    CdpGen,
    /// Checks licences, sources and known holes of the dependencies
    Deny,
    /// Measures memory and latency of the release build and writes docs/benchmarks.md
    Bench {
        #[command(subcommand)]
        what: Option<bench::Bench>,
    },
    /// Runs one heavy repetition in full
    Soak { name: soak::Name },
    #[command(hide = true)]
    EchoServer { socket: PathBuf },
    #[command(hide = true)]
    EchoShim { socket: PathBuf },
}

fn main() -> ExitCode {
    let done = match Chore::parse() {
        Chore::Tidy => tidy::run(),
        Chore::Docs => docs::write_all(),
        Chore::Requirements => requirements::run(),
        Chore::CdpGen => cdp::run(),
        Chore::Deny => deny::run(),
        Chore::Bench { what } => bench::run(what.as_ref()),
        Chore::Soak { name } => soak::run(name),
        Chore::EchoServer { socket } => bench::echo::serve(&socket),
        Chore::EchoShim { socket } => bench::echo::shim(&socket),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
