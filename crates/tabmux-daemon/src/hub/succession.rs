//! A newer daemon takes the place of this one. What runs when it asks is finished, and meanwhile everybody is served as ever. Only then
//! what comes is held back unanswered, for a moment, and sessions and browsers are left as they are for the successor, who finds them in
//! the journal and at their keepers.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use tabmux_core::ClientId;
use tokio::sync::watch;
use tokio::time::Instant;

use super::Hub;

/// Why the daemon ends, as its goodbye says it.
const UPGRADE: &str = "upgrade";

/// As long as a call may take that does not ask for more. Later ones are cut off, and their callers told that they are.
const FINISHING: Duration = Duration::from_secs(30);

/// How long calls that began meanwhile may still take: everybody else's are held back for as long.
const LAST_CALLS: Duration = Duration::from_secs(3);

impl Hub {
    /// A newer daemon asks for the place, and gets it soon.
    pub(crate) fn make_way(&self) {
        tracing::info!("a newer daemon wants to take over");
        self.way_is_wanted.cancel();
    }

    /// Gives the place up once somebody asked for it and the calls that ran then have ended, or took too long. Whoever stops the daemon
    /// meanwhile stops it for good.
    pub(crate) async fn give_way(self: Arc<Self>) {
        self.way_is_wanted.cancelled().await;
        let running = std::mem::take(&mut self.lock().visits);
        running.close();
        tokio::select! {
            () = running.wait() => {}
            () = tokio::time::sleep(FINISHING) => tracing::warn!("some calls run on while a newer daemon wants to take over"),
            () = self.stopping.cancelled() => return,
        }
        self.hold_back();
    }

    /// From here on no call begins. Under the lock, so that each call is either begun, and finished here, or held back.
    pub(crate) fn hold_back(&self) {
        let _state = self.lock();
        self.say_farewell(UPGRADE);
    }

    pub(crate) fn is_yielding(&self) -> bool {
        self.stopping.is_cancelled() && self.farewell() == UPGRADE
    }

    /// Whether nobody would send this caller's call again that the goodbye left unanswered.
    pub(super) fn asks_once(&self, client: ClientId) -> bool {
        self.lock().profiles.get(&client).is_none_or(|profile| profile.asks_once)
    }

    /// Comes back only where the call's time is over first: it is the successor's.
    pub(super) async fn hold(&self, client: ClientId, until: Instant) {
        self.held.send_modify(|held| *held.entry(client).or_default() += 1);
        let _held = Held { hub: self, client };
        tokio::time::sleep_until(until).await;
    }

    /// How many calls are held back, by client.
    pub(crate) fn held(&self) -> watch::Receiver<HashMap<ClientId, usize>> {
        self.held.subscribe()
    }

    /// Waits for what runs still.
    pub(crate) async fn finish_calls(self: &Arc<Self>) {
        let ends = Instant::now() + LAST_CALLS;
        while self.look(tabmux_core::Registry::visits) > 0 {
            tokio::select! {
                () = self.changed.notified() => {}
                () = tokio::time::sleep_until(ends) => {
                    tracing::warn!("some calls did not finish before the newer daemon took over");
                    return;
                }
            }
        }
    }
}

/// One call that is held back. Where it is answered after all, its connection waits for that answer again.
struct Held<'a> {
    hub: &'a Hub,
    client: ClientId,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        self.hub.held.send_modify(|held| {
            if let Some(count) = held.get_mut(&self.client) {
                *count = count.saturating_sub(1);
            }
        });
    }
}
