//! The heavy repetitions in full. CI runs a sample of the same test code; here the numbers come from the
//! issue's "Must show", by way of environment variables the tests read.

use std::process::Command;
use std::time::Instant;

use anyhow::{Result, bail};
use clap::ValueEnum;

use crate::workspace;

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Name {
    /// 20 rounds of 100 clients started cold at the same moment
    Starts,
    /// The same over the leavings of a killed daemon
    Stale,
    /// 20 clients arrive while the daemon is stopped for 20 s
    Stopped,
    /// 200 clients arrive at the instant of the empty-exit
    EmptyExit,
    /// kill -9 with 50 clients attached, 20 rounds; then 20 times at every step of opening, binding and ending a session
    Kills,
    /// docs/kills.md in full: every combination of kills with every state of the page
    KillTable,
    /// 50 kills of anything at any time while agents work, with real Chromium
    RandomKills,
    /// Everything of a browser is gone within a second of its end
    Ends,
    /// A million random steps of the registry, 10,000 random histories of the daemon, 200 of them with Chromium
    Histories,
}

/// What one repetition runs: package, test target, test name, and the numbers.
type Plan = (&'static str, &'static [&'static str], &'static str, &'static [(&'static str, &'static str)]);

fn plan(name: Name) -> Plan {
    const LIFE: &[&str] = &["--test", "lifecycle"];
    match name {
        Name::Starts => {
            ("tabmux", LIFE, "clients_started_cold_share_one_daemon", &[("TABMUX_SOAK_ROUNDS", "20"), ("TABMUX_SOAK_CLIENTS", "100")])
        }
        Name::Stale => {
            ("tabmux", LIFE, "the_leavings_of_a_killed_daemon_do_no_harm", &[("TABMUX_SOAK_ROUNDS", "20"), ("TABMUX_SOAK_CLIENTS", "100")])
        }
        Name::Stopped => {
            ("tabmux", LIFE, "clients_wait_for_a_stopped_daemon", &[("TABMUX_SOAK_SECONDS", "20"), ("TABMUX_SOAK_CLIENTS", "20")])
        }
        Name::EmptyExit => (
            "tabmux",
            LIFE,
            "clients_that_arrive_at_the_empty_exit_are_served",
            &[("TABMUX_SOAK_ROUNDS", "12"), ("TABMUX_SOAK_CLIENTS", "200")],
        ),
        Name::Kills => ("tabmux", &["--test", "crash"], "after_a_kill", &[("TABMUX_SOAK_ROUNDS", "20"), ("TABMUX_SOAK_CLIENTS", "50")]),
        Name::KillTable => ("tabmux", &["--test", "deaths"], "what_is_left_after_any_death", &[("TABMUX_SOAK_STATES", "3")]),
        Name::RandomKills => ("tabmux", &["--test", "deaths"], "random_kills_make", &[("TABMUX_SOAK_KILLS", "50")]),
        Name::Ends => ("tabmux-cdp", &["--test", "keeper"], "", &[("TABMUX_SOAK_ENDS", "1")]),
        Name::Histories => ("tabmux-core", &["--test", "histories"], "", &[("TABMUX_HISTORY_STEPS", "1000000")]),
    }
}

/// The places where a daemon can be told to die are only in builds that check themselves.
const POINTS: Plan = ("tabmux", &["--test", "deaths"], "wherever_the_daemon_dies", &[("TABMUX_SOAK_POINTS", "20")]);

const DAEMON_HISTORIES: Plan =
    ("tabmux", &["--test", "histories"], "", &[("TABMUX_SOAK_HISTORIES", "10000"), ("TABMUX_SOAK_REAL_HISTORIES", "200")]);

pub(crate) fn run(name: Name) -> Result<()> {
    repeat(name, plan(name), "soak")?;
    match name {
        Name::Kills => repeat(name, POINTS, "dev"),
        Name::Histories => repeat(name, DAEMON_HISTORIES, "soak"),
        _ => Ok(()),
    }
}

fn repeat(name: Name, (package, target, test, numbers): Plan, profile: &str) -> Result<()> {
    let began = Instant::now();
    // Not nextest: its deadline is for the sample.
    let mut command = Command::new("cargo");
    command.args(["test", "--profile", profile, "--package", package]).args(target).args(["--", "--nocapture", test]);
    command.envs(numbers.iter().copied()).current_dir(workspace::root());
    println!("soak {name:?}: {numbers:?}");
    let status = command.status()?;
    println!("soak {name:?}: {} in {:.1} s", if status.success() { "passed" } else { "FAILED" }, began.elapsed().as_secs_f64());
    if status.success() { Ok(()) } else { bail!("soak {name:?} failed") }
}
