//! A newer daemon takes the place of this one: what runs is finished, what comes is held back unanswered, and sessions and
//! browsers are left as they are for the successor, who finds them in the journal and at their keepers.

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

impl Hub {
    /// From here on no call begins. Under the lock, so that each call is either begun, and finished here, or held back.
    pub(crate) fn make_way(&self) {
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

    /// Never comes back: the call is the successor's.
    pub(super) async fn hold(&self, client: ClientId) -> std::convert::Infallible {
        self.held.send_modify(|held| *held.entry(client).or_default() += 1);
        std::future::pending().await
    }

    /// How many calls are held back, by client.
    pub(crate) fn held(&self) -> watch::Receiver<HashMap<ClientId, usize>> {
        self.held.subscribe()
    }

    /// Waits for what runs.
    pub(crate) async fn finish_calls(self: &Arc<Self>) {
        let ends = Instant::now() + FINISHING;
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
