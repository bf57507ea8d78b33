//! A newer `tabmux up` takes the place of an older daemon, whoever started that one. No session is lost: the old daemon finishes
//! what runs while it serves on, leaves sessions and browsers as they are and ends; whoever needs a daemon then waits for the new one.

use std::fs::File;
use std::time::{Duration, Instant};

use tabmux_daemon::rundir;
use tabmux_wire::control::Ask;

use crate::build::Build;
use crate::control::{Control, End};
use crate::failure::Outcome;
use crate::output;
use crate::settings::Config;
use crate::start::Starter;

/// For whoever is starting a daemon at this very moment.
const START_LOCK: Duration = Duration::from_secs(60);
/// Longer than the old daemon waits for its calls.
const GONE_WITHIN: Duration = Duration::from_secs(45);

/// What became of an older daemon that was asked for its place.
pub(super) enum Deposed {
    /// There is none, or it is as new, or it stays.
    Nobody,
    /// The place is ours. The start lock keeps others from starting a daemon until the successor runs.
    Place(File),
    /// Somebody stopped it meanwhile, and meant it.
    Stopped,
}

/// Makes an older daemon that runs here give up its place.
pub(super) fn depose_older(config: &Config) -> Outcome<Deposed> {
    if older(Control::find(config)?).is_none() {
        return Ok(Deposed::Nobody);
    }
    let starting = Starter::supervising(config)?.take_start_lock(Instant::now() + START_LOCK)?;
    // It may have ended, or been replaced, while we waited for the lock.
    let Some(mut control) = older(Control::find_at_once(config)?) else { return Ok(Deposed::Nobody) };
    output::note(&format!("Taking over from tabmux {} (pid {}).", control.welcome.version, control.welcome.pid));
    if let Err(failure) = control.ask(&Ask::MakeWay) {
        output::note(&format!("It does not make way ({}); it is watched instead.", failure.fault.message));
        return Ok(Deposed::Nobody);
    }
    let end = control.await_end(Some(GONE_WITHIN));
    rundir::await_free(&config.settings.paths.lock, GONE_WITHIN)?;
    Ok(match end {
        End::Goodbye(why) if why == "stop" => Deposed::Stopped,
        End::Goodbye(_) | End::Crash => Deposed::Place(starting),
    })
}

fn older(found: Option<Control>) -> Option<Control> {
    found.filter(|control| Build::own().is_newer_than(&Build::of(&control.welcome)))
}
