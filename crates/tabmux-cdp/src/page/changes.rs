//! What changed since somebody looked. The page itself says when it rests (`changes.js`); one that goes elsewhere is waited for
//! until the next document is there. Every wait here has an end: an act is answered, whatever the page does.

use std::time::Duration;

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use tabmux_driver::{Changes, DriverError, Result, Stage};
use tokio::time::Instant;

use super::CdpPage;
use super::script::{Numbers, failed};
use super::state::{Life, Progress};
use super::world::Failure;

/// How long a page that never rests is waited for.
const RESTLESS_MS: u32 = 1000;

/// How long a navigation that began is waited for.
const ARRIVAL: Duration = Duration::from_secs(6);

/// How long what the act asked the network for is waited for, and then its end.
const ANSWERS: Duration = Duration::from_secs(3);
const ENDS: Duration = Duration::from_millis(300);

/// How long a frame of another site may take.
const FRAME_PATIENCE: Duration = Duration::from_secs(3);

/// How often a page may send itself on.
const HOPS: usize = 4;

#[derive(Serialize)]
struct Wish {
    most: u32,
    patience: u32,
    /// It is another document than the one somebody saw last.
    fresh: bool,
    /// It was asked already, before all answers had come.
    again: bool,
    /// It has workers, whose answers nothing announces.
    workers: bool,
}

#[derive(Deserialize)]
struct Difference {
    /// Nobody looked at this document before.
    first: bool,
    text: String,
    /// Where the document is from, for people.
    site: String,
}

impl CdpPage {
    pub(super) async fn compare(&self, budget: u32) -> Result<Changes> {
        let mut changes = Changes { unsettled: true, ..Changes::default() };
        // Whatever holds the page up, the act itself was done.
        let found = tokio::time::timeout(ARRIVAL, self.difference(budget)).await;
        if let Some(why) = self.state.failed_to_go() {
            self.state.looked();
            return Ok(Changes { failed: Some(why), ..Changes::default() });
        }
        if let Ok(found) = found {
            let found = found?;
            changes.unsettled = self.state.watch().borrow().underway || self.state.awaits(Stage::Answer);
            let nobody_looked = self.state.looked_commits().is_none();
            changes.stayed = self.state.stayed();
            changes.opened = self.state.opened_by_act();
            changes.moved = self.state.looked() || (nobody_looked && self.state.moved_by_act());
            // Of a page that stays where it is, nobody asked for the beginning.
            changes.text = if found.first && !changes.moved { String::new() } else { found.text };
            if !changes.moved {
                changes.text += &self.changes_beyond(budget / 2, changes.text.is_empty()).await;
            }
        }
        (changes.errors, changes.more_errors) = self.state.take_errors();
        Ok(changes)
    }

    async fn difference(&self, budget: u32) -> Result<Difference> {
        let mut found = Err(DriverError::Navigated);
        let (until, mut again) = (Instant::now() + ANSWERS, false);
        for _ in 0..HOPS {
            let mut progress = self.state.watch();
            let seen = self.state.looked_commits();
            let there = |now: &Progress| !now.underway && (now.loaded || now.unreachable || seen.is_none_or(|seen| seen == now.commits));
            self.reached(&mut progress, |now| now.life != Life::Alive || there(now)).await?;
            let commits = progress.borrow().commits;
            let wish = Wish {
                most: budget,
                patience: RESTLESS_MS,
                fresh: seen.is_some_and(|seen| seen != commits),
                again,
                workers: self.state.has_workers(),
            };
            found = match self.script("changes", &wish).await {
                Err(Failure::NoDocument | Failure::Cut) => Err(DriverError::Navigated),
                other => other.map_err(failed),
            };
            let now = self.state.watch().borrow().clone();
            let settled = found.is_ok() && !now.underway && now.commits == commits;
            if now.unreachable || (settled && !self.answers_came(until).await) {
                break;
            }
            again = found.is_ok();
        }
        found
    }

    /// Waits for what scripts asked for because of the act; whether there was something, and it came.
    async fn answers_came(&self, until: Instant) -> bool {
        let mut traffic = self.state.watch_traffic();
        let mut waited = false;
        for stage in [Stage::Answer, Stage::End] {
            let until = if stage == Stage::End { Instant::now() + ENDS } else { until };
            while self.state.awaits(stage) {
                waited = true;
                traffic.borrow_and_update();
                if !self.state.awaits(stage) {
                    break;
                }
                if !matches!(tokio::time::timeout_at(until, traffic.changed()).await, Ok(Ok(()))) {
                    // One that nobody reads to its end is there all the same.
                    return stage == Stage::End;
                }
            }
        }
        // Over a socket nobody says which answer is to what, or that there is one.
        while let Some(until) = self.state.awaits_socket() {
            traffic.borrow_and_update();
            let none_came = self.state.awaits_socket().is_some();
            if none_came && !matches!(tokio::time::timeout_at(until.into(), traffic.changed()).await, Ok(Ok(()))) {
                break;
            }
            waited |= self.state.awaits_socket().is_none() && Instant::now() < until.into();
        }
        waited
    }

    /// What changed in frames of other sites that somebody has seen.
    async fn changes_beyond(&self, budget: u32, is_first: bool) -> String {
        let strangers = self.state.frames().strangers(&self.handle.0);
        let (first, step) = (self.state.frames().next_ref(), u32::try_from(strangers.len()).unwrap_or(u32::MAX).max(1));
        let wish = Wish { most: budget, patience: RESTLESS_MS, fresh: false, again: false, workers: false };
        let asked = strangers.iter().zip(first..).map(|(frame, first)| {
            let wish = &wish;
            async move {
                let asked = self.script_numbered::<Difference>(frame, "changes", wish, Numbers { first, step });
                let found = tokio::time::timeout(FRAME_PATIENCE, asked).await.ok()?.ok()?;
                let indented: String = found.text.lines().map(|line| format!("\n {line}")).collect();
                (!found.first && !indented.is_empty()).then(|| format!("in a frame of {}:{indented}", found.site))
            }
        });
        let told = join_all(asked).await.into_iter().flatten().collect::<Vec<_>>().join("\n");
        if is_first || told.is_empty() { told } else { format!("\n{told}") }
    }
}
