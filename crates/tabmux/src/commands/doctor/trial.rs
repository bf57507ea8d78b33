//! Whether the browser that was found also starts and shows a page: that it is there says little where a library or a sandbox is missing. Tried in a
//! daemon of the doctor's own, so that nobody's is disturbed.

use super::isolation::{OwnDaemon, Unit};
use crate::failure::Outcome;
use crate::settings::Config;

/// One that runs for somebody needs no trial.
pub(super) fn starts(config: &Config, running: &[u32]) -> Outcome {
    if !running.is_empty() {
        return Ok(());
    }
    let mut daemon = OwnDaemon::start(config)?;
    let mut agent = daemon.agent("trial")?;
    agent.start(Unit::Context, "trial", "about:blank")?;
    agent.leave();
    daemon.end()
}
