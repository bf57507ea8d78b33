//! When a browser has time for what nobody waits for: while no session is on its way to its first page, and then for two
//! origins at once, however many copies are being filled.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// How long it may have none. Somebody who opens sessions without end must not keep the others' copies empty.
const AT_MOST: Duration = Duration::from_secs(5);

/// How many origins are brought at once.
const TURNS: usize = 2;

/// Of one browser.
#[derive(Clone, Debug)]
pub struct Leisure {
    opening: watch::Sender<usize>,
    turns: Arc<Semaphore>,
}

/// A session is on its way to its first page for as long as this lives.
#[derive(Debug)]
pub struct Opening(watch::Sender<usize>);

impl Default for Leisure {
    fn default() -> Self {
        Self { opening: watch::Sender::default(), turns: Arc::new(Semaphore::new(TURNS)) }
    }
}

impl Leisure {
    pub fn opening(&self) -> Opening {
        self.opening.send_modify(|count| *count += 1);
        Opening(self.opening.clone())
    }

    /// Comes when there is time, and ends with what it is for.
    pub(super) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        let turn = Arc::clone(&self.turns).acquire_owned().await.ok();
        let mut opening = self.opening.subscribe();
        // The sender lives as long as this; and late is late.
        drop(tokio::time::timeout(AT_MOST, opening.wait_for(|count| *count == 0)).await);
        turn
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_nobody_waits_for_waits_for_those_who_open_but_not_for_ever() {
        let leisure = Leisure::default();
        let began = Instant::now();
        let (one, two) = (leisure.opening(), leisure.opening());
        drop(one);
        assert!(leisure.turn().await.is_some());
        assert_eq!(began.elapsed(), AT_MOST, "the other is still opening");
        drop(two);
        let turns = (leisure.turn().await, leisure.turn().await);
        assert_eq!(began.elapsed(), AT_MOST, "nobody is");
        assert!(tokio::time::timeout(AT_MOST, leisure.turn()).await.is_err(), "two are all there are");
        drop(turns);
        assert!(leisure.turn().await.is_some());
    }
}
