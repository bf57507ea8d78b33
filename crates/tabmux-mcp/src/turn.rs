//! Calls of one connection reach the hub in the order they were read. rmcp starts a task per request, and tasks
//! may overtake each other; so each call is read with a turn, and hands it on once the hub has decided about it.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

/// Gives out turns, in order.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    last: Option<oneshot::Receiver<()>>,
}

/// A call's turn, as a request carries it. Requests are cloned, turns are not: the first who asks gets it. When a
/// request ends without asking, its turn passes on by being dropped.
#[derive(Clone, Debug)]
pub(crate) struct Ticket(Arc<Mutex<Option<Turn>>>);

/// Held until the hub has decided; dropping it lets the next call go.
#[derive(Debug)]
pub(crate) struct Turn {
    before: Option<oneshot::Receiver<()>>,
    after: Option<oneshot::Sender<()>>,
}

impl Drop for Turn {
    /// One that goes before its time has come still keeps its place: the next waits for those before it.
    fn drop(&mut self) {
        let (before, after) = (self.before.take(), self.after.take());
        if let (Some(before), Ok(runtime)) = (before, tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                drop(before.await);
                drop(after);
            });
        }
    }
}

impl Turns {
    pub(crate) fn next(&mut self) -> Ticket {
        let (after, last) = oneshot::channel();
        let before = self.last.replace(last);
        Ticket(Arc::new(Mutex::new(Some(Turn { before, after: Some(after) }))))
    }
}

impl Ticket {
    pub(crate) fn take(&self) -> Option<Turn> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl Turn {
    /// Waits until every call before this one was decided about, or has gone. They take turns at deciding only,
    /// which never waits, so this is short.
    pub(crate) async fn come(&mut self) {
        if let Some(before) = &mut self.before {
            // Nothing is ever sent: the turn before ends by being dropped.
            drop(before.await);
        }
        self.before = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;

    fn is_waiting(waiting: &mut std::pin::Pin<Box<impl Future<Output = Turn>>>) -> bool {
        waiting.as_mut().poll(&mut std::task::Context::from_waker(std::task::Waker::noop())).is_pending()
    }

    async fn come(ticket: Ticket) -> Turn {
        let mut turn = ticket.take().expect("a turn is taken once");
        turn.come().await;
        turn
    }

    /// S2.15
    #[tokio::test]
    async fn turns_come_in_order_and_a_dropped_one_passes_on() {
        let mut turns = Turns::default();
        let [first, dropped, last] = [turns.next(), turns.next(), turns.next()];
        let again = last.clone();
        let mut last = Box::pin(come(last));
        assert!(is_waiting(&mut last) && again.take().is_none());
        drop(dropped);
        tokio::task::yield_now().await;
        assert!(is_waiting(&mut last), "the second has gone, but the first has not been");
        drop(come(first).await);
        last.await;
    }
}
