//! Where logins come from, as the command line is told: files are read here, because the daemon runs elsewhere and because a bad
//! file is better said now than at the first call. Sessions and profiles the daemon knows.

use std::path::Path;

use serde_json::Value;
use tabmux_daemon::storage_state as format;

use crate::failure::{Failure, Outcome};
use crate::settings::Config;

/// A storage state as the daemon is given it.
#[derive(Debug)]
pub(super) enum Given {
    Whole(Value),
    /// Too large to be sent: the daemon reads it itself.
    Path(String),
}

/// `--from` as the daemon takes it.
pub(super) fn given(config: &Config, from: Option<String>) -> Outcome<Option<String>> {
    match from {
        Some(text) if tabmux_daemon::sources::is_file(&text) => {
            let path = config.env.cwd.join(&text);
            let state = state("--from", &path)?.to_string();
            if format::can_be_sent(&state) { Ok(Some(state)) } else { named("--from", &path).map(Some) }
        }
        other => Ok(other),
    }
}

/// `--storage-state` as the daemon takes it.
pub(super) fn storage_state(flag: &str, path: &Path) -> Outcome<Given> {
    let state = state(flag, path)?;
    if format::can_be_sent(&state.to_string()) { Ok(Given::Whole(state)) } else { named(flag, path).map(Given::Path) }
}

/// What a storage-state file holds.
pub(super) fn state(flag: &str, path: &Path) -> Outcome<Value> {
    format::checked_file(path).map_err(|why| unusable(flag, path, &why))
}

/// The file from the root, where links lead.
fn named(flag: &str, path: &Path) -> Outcome<String> {
    let real = path.canonicalize().map_err(|error| unusable(flag, path, &error.to_string()))?;
    real.to_str().map(str::to_owned).ok_or_else(|| unusable(flag, path, "its path is no UTF-8"))
}

fn unusable(flag: &str, path: &Path, why: &str) -> Failure {
    let message = format!("{flag} {}: {why}.", path.display());
    Failure::configuration(message, "Give a file as Playwright's storageState() writes it: {\"cookies\": […], \"origins\": […]}.")
}
