//! What nobody asks for: the clocks, the snapshots, and the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Hub;

/// How long running calls may go on once the daemon stops, and how long sessions may take to close: 5 s in all, with what is swept then.
const FINISHING: Duration = Duration::from_millis(3500);
const CLOSING: Duration = Duration::from_secs(1);

/// Looked at this often at most, and at least.
const FAST: Duration = Duration::from_millis(10);
const SLOW: Duration = Duration::from_secs(60);

/// How long addresses and names of a session that is gone may stay in the journal (S3.29); many that end together go together.
const LEFT_OVER: Duration = Duration::from_secs(1);

impl Hub {
    /// Runs the clocks until the daemon stops.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        let pulse = self.pulse();
        let mut tidy: Option<Instant> = None;
        while !self.stopping.is_cancelled() {
            tidy = self.store.has_left_over().then(|| tidy.unwrap_or_else(|| Instant::now() + LEFT_OVER));
            let latest = tidy.into_iter().fold(Instant::now() + pulse, Instant::min);
            let due = self.look(tabmux_core::Registry::next_due).map(|due| self.clock.instant(due));
            tokio::select! {
                () = tokio::time::sleep_until(due.unwrap_or(latest).min(latest)) => {}
                () = self.untidy.notified() => {}
                () = self.stopping.cancelled() => return,
            }
            self.decide_now(|registry, now| registry.tick(now));
            if tidy.is_some_and(|tidy| tidy <= Instant::now()) {
                self.store.fell_behind();
                tidy = None;
            }
            self.compact_when_long();
        }
    }

    /// A quarter of the shortest clock: no clock can begin and run out unseen between two looks, so that no call
    /// needs to wake this task.
    fn pulse(&self) -> Duration {
        let clocks = &self.settings.clocks;
        let shortest = [clocks.session_idle, clocks.orphan_grace, clocks.exit_when_empty].into_iter().flatten().min();
        shortest.map_or(SLOW, |clock| clock / 4).clamp(FAST, SLOW)
    }

    pub(super) fn compact_when_long(self: &Arc<Self>) {
        if !self.store.begin_snapshot() {
            return;
        }
        let mut state = self.lock();
        let before = self.carry_out(&mut state);
        let safe = self.store.snapshot(&state.registry, self.clock.now());
        drop(state);
        self.watch_over(before);
        let hub = Arc::clone(self);
        tokio::spawn(async move {
            hub.settled(safe).await;
            hub.store.end_snapshot();
        });
    }

    /// The graceful end: calls that are here may finish, then every session closes.
    pub(crate) async fn drain(self: &Arc<Self>) {
        let ends = Instant::now() + FINISHING;
        while self.look(tabmux_core::Registry::visits) > 0 {
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(ends) => break,
            }
        }
        self.decide_now(|registry, _| registry.close_everything());
        let closing: Vec<_> = self.lock().sessions.values().map(|handle| handle.done.clone().cancelled_owned()).collect();
        if tokio::time::timeout(CLOSING, futures::future::join_all(closing)).await.is_err() {
            tracing::warn!("some sessions did not close in time; the next daemon finishes them");
        }
    }
}
