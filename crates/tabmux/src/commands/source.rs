//! Where logins come from, as the command line is told: files are read here, because the daemon runs elsewhere and because a bad
//! file is better said now than at the first call. Sessions and profiles the daemon knows.

use std::path::Path;

use serde_json::Value;

use crate::failure::{Failure, Outcome};
use crate::settings::Config;

/// `--from` as the daemon takes it.
pub(super) fn given(config: &Config, from: Option<String>) -> Outcome<Option<String>> {
    match from {
        Some(text) if tabmux_daemon::sources::is_file(&text) => {
            state("--from", &config.env.cwd.join(&text)).map(|state| Some(state.to_string()))
        }
        other => Ok(other),
    }
}

/// What a storage-state file holds.
pub(super) fn state(flag: &str, path: &Path) -> Outcome<Value> {
    let unusable = |why: String| {
        let message = format!("{flag} {}: {why}.", path.display());
        Failure::configuration(message, "Give a file as Playwright's storageState() writes it: {\"cookies\": […], \"origins\": […]}.")
    };
    let text = std::fs::read_to_string(path).map_err(|error| unusable(error.to_string()))?;
    tabmux_daemon::storage_state::checked(&text).map_err(unusable)
}
