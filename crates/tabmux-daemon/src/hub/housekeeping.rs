//! What nobody asks for: the clocks, the snapshots, and the end.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::Hub;

/// How long running calls may go on once the daemon stops, and how long sessions may take to close.
const DRAIN: Duration = Duration::from_secs(5);

/// Looked at this often even when nothing is due.
const PULSE: Duration = Duration::from_secs(60);

impl Hub {
    /// Runs the clocks until the daemon stops.
    pub(crate) async fn keep_time(self: Arc<Self>) {
        while !self.stopping.is_cancelled() {
            let due = self.look(tabmux_core::Registry::next_due).map(|due| self.clock.instant(due));
            let wake = due.unwrap_or_else(|| Instant::now() + PULSE).min(Instant::now() + PULSE);
            tokio::select! {
                () = tokio::time::sleep_until(wake) => {}
                () = self.changed.notified() => {}
                () = self.stopping.cancelled() => return,
            }
            self.decide_now(|registry, now| registry.tick(now));
            self.compact_when_long();
        }
    }

    fn compact_when_long(self: &Arc<Self>) {
        if !self.store.wants_snapshot() {
            return;
        }
        let mut state = self.lock();
        let before = self.carry_out(&mut state);
        let safe = self.store.snapshot(&state.registry);
        drop(state);
        self.watch_over(before);
        self.watch_over(safe);
    }

    /// The graceful end: running calls may finish, then every session closes. At most `DRAIN` in all.
    pub(crate) async fn drain(self: &Arc<Self>) {
        let ends = Instant::now() + DRAIN;
        let calls_left = || {
            self.look(|registry| {
                let counts = registry.counts();
                counts.running + counts.waiting
            })
        };
        while calls_left() > 0 && Instant::now() < ends {
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep(Duration::from_millis(50)) => {}
            }
        }
        self.decide_now(|registry, _| registry.close_everything());
        let closing: Vec<_> = self.lock().sessions.values().map(|handle| handle.done.clone().cancelled_owned()).collect();
        let closed = tokio::time::timeout_at(ends.max(Instant::now() + Duration::from_secs(1)), futures::future::join_all(closing));
        if closed.await.is_err() {
            tracing::warn!("some sessions did not close in time; the next daemon finishes them");
        }
    }
}
