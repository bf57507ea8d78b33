//! What changed since somebody looked. The page itself says when it rests (`changes.js`); one that goes elsewhere is waited for
//! until the next document is there. Every wait here has an end: an act is answered, whatever the page does.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tabmux_driver::{Changes, DriverError, Result};

use super::CdpPage;
use super::script::failed;
use super::state::{Life, Progress};
use super::world::Failure;

/// How long a page that never rests is waited for.
const RESTLESS_MS: u32 = 1000;

/// How long a navigation that began is waited for.
const ARRIVAL: Duration = Duration::from_secs(5);

/// How often a page may send itself on.
const HOPS: usize = 4;

#[derive(Serialize)]
struct Wish {
    most: u32,
    patience: u32,
    /// It is another document than the one somebody saw last.
    fresh: bool,
}

#[derive(Deserialize)]
struct Difference {
    /// Nobody looked at this document before.
    first: bool,
    text: String,
}

impl CdpPage {
    pub(super) async fn compare(&self, budget: u32) -> Result<Changes> {
        let mut changes = Changes { unsettled: true, ..Changes::default() };
        // Whatever holds the page up, the act itself was done.
        if let Ok(found) = tokio::time::timeout(ARRIVAL, self.difference(budget)).await {
            let found = found?;
            changes.unsettled = self.state.watch().borrow().underway;
            changes.moved = self.state.looked();
            // Of a page that stays where it is, nobody asked for the beginning.
            changes.text = if found.first && !changes.moved { String::new() } else { found.text };
        }
        (changes.errors, changes.more_errors) = self.state.take_errors();
        Ok(changes)
    }

    async fn difference(&self, budget: u32) -> Result<Difference> {
        let mut found = Err(DriverError::Navigated);
        for _ in 0..HOPS {
            let mut progress = self.state.watch();
            let seen = self.state.looked_commits();
            let there = |now: &Progress| !now.underway && (now.loaded || seen.is_none_or(|seen| seen == now.commits));
            self.reached(&mut progress, |now| now.life != Life::Alive || there(now)).await?;
            let commits = progress.borrow().commits;
            let wish = Wish { most: budget, patience: RESTLESS_MS, fresh: seen.is_some_and(|seen| seen != commits) };
            found = match self.script("changes", &wish).await {
                Err(Failure::NoDocument | Failure::Cut) => Err(DriverError::Navigated),
                other => other.map_err(failed),
            };
            let now = self.state.watch().borrow().clone();
            if found.is_ok() && !now.underway && now.commits == commits {
                break;
            }
        }
        found
    }
}
