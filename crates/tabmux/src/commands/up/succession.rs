//! A newer `tabmux up` takes the place of an older daemon, whoever started that one. No session is lost: the old daemon finishes
//! what runs, leaves sessions and browsers as they are and ends; whoever needs a daemon meanwhile waits for the new one.

use std::fs::File;
use std::time::{Duration, Instant};

use tabmux_daemon::rundir;
use tabmux_wire::control::Ask;

use crate::build::Build;
use crate::control::Control;
use crate::failure::Outcome;
use crate::output;
use crate::settings::Config;
use crate::start::Starter;

/// For whoever is starting a daemon at this very moment.
const START_LOCK: Duration = Duration::from_secs(60);
/// Longer than the old daemon waits for its calls.
const GONE_WITHIN: Duration = Duration::from_secs(45);

/// Makes an older daemon that runs here give up its place. The start lock that comes back keeps others from starting one until
/// the successor runs. `None` where there is none, or one that is as new.
pub(super) fn depose_older(config: &Config) -> Outcome<Option<File>> {
    let Some(control) = older(config)? else { return Ok(None) };
    drop(control);
    let starting = Starter::supervising(config)?.take_start_lock(Instant::now() + START_LOCK)?;
    // It may have ended, or been replaced, while we waited for the lock.
    let Some(mut control) = older(config)? else { return Ok(None) };
    output::note(&format!("Taking over from tabmux {} (pid {}).", control.welcome.version, control.welcome.pid));
    if let Err(failure) = control.ask(&Ask::MakeWay) {
        output::note(&format!("It does not make way ({}); it is watched instead.", failure.fault.message));
        return Ok(None);
    }
    drop(control);
    rundir::await_free(&config.settings.paths.lock, GONE_WITHIN)?;
    Ok(Some(starting))
}

fn older(config: &Config) -> Outcome<Option<Control>> {
    let found = Control::find(config)?;
    Ok(found.filter(|control| Build::own().is_newer_than(&Build::of(&control.welcome))))
}
