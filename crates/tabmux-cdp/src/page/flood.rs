//! A page that logs without end and without a pause. What it logs passes through the thread of the browser that serves all others too, so they
//! wait behind it and the browser's memory fills; nothing but the end of that script helps. A page that answers between its lines is left alone,
//! however much it logs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tabmux_driver::HOUSEKEEPING;

use super::PageState;
use super::given_up::{Freed, end_flood, probe};
use crate::connection::{Connection, WeakConnection};
use crate::protocol::{Event, runtime};

/// So many lines within `WITHIN` are more than anybody reads, and more than a page has to say while it loads. One page alone gets 58,000 a second
/// through, and twelve on two processors log some 6,000 a second each.
const LINES: u64 = 6000;

const WITHIN: f64 = 2000.0;

/// How many bytes count as one line more: a few long ones fill the browser as well.
const LINE_BYTES: usize = 4096;

/// How often it is looked whether a page goes on that does not answer.
const LOOK: Duration = Duration::from_millis(500);

/// How much longer a page logs that is no dump which has come to its end, in milliseconds.
const ON: f64 = 250.0;

/// What one session logs, by the clock of the page: what waits in the browser comes much later, and at its pace.
#[derive(Debug, Default)]
pub(super) struct Flood {
    counted: Arc<Mutex<Counted>>,
    /// Held while a script of the page is ended.
    freeing: Arc<tokio::sync::Mutex<Freed>>,
}

#[derive(Debug, Default)]
struct Counted {
    began: f64,
    newest: f64,
    lines: u64,
    /// Somebody looks after it already.
    watched: bool,
}

impl Counted {
    /// Whether these are too many.
    fn line(&mut self, at: f64, bytes: usize) -> bool {
        if !(self.began..=self.began + WITHIN).contains(&at) {
            (self.began, self.lines) = (at, 0);
        }
        self.newest = at;
        self.lines += 1 + (bytes / LINE_BYTES) as u64;
        self.lines >= LINES
    }
}

impl Flood {
    pub(super) fn new(freeing: Arc<tokio::sync::Mutex<Freed>>) -> Self {
        Self { counted: Arc::default(), freeing }
    }

    /// The session logged something. Called by the reader: nothing is waited for.
    pub(super) fn heard(&self, method: &str, params: &RawValue, state: &Arc<PageState>, connection: &WeakConnection, session: &str) {
        if method != runtime::ConsoleAPICalled::METHOD && method != runtime::ExceptionThrown::METHOD {
            return;
        }
        let Some(at) = logged_at(params.get()) else { return };
        let since = {
            let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
            if !counted.line(at, params.get().len()) || counted.watched {
                return;
            }
            counted.watched = true;
            at
        };
        let Some(connection) = connection.upgrade() else { return };
        let watch = Watch { counted: Arc::clone(&self.counted), since, state: Arc::clone(state), session: session.to_owned() };
        let freeing = Arc::clone(&self.freeing);
        tokio::spawn(async move {
            // Whoever has a script run waits for this, so that theirs is not the one that is ended.
            let mut freeing = freeing.lock_owned().await;
            if watch.is_without_end(&connection).await {
                *freeing = end_flood(&connection, &watch.session, *freeing).await;
                watch.tell();
            }
        });
    }
}

/// A page that logged too much, until it is known to answer or ended.
struct Watch {
    counted: Arc<Mutex<Counted>>,
    since: f64,
    state: Arc<PageState>,
    session: String,
}

impl Watch {
    /// Whether the page gives no sign of life and logs on; by its own clock, since what it logged before may still be on its way.
    async fn is_without_end(&self, connection: &Connection) -> bool {
        let mut answer = std::pin::pin!(connection.send(Some(&self.session), &probe()));
        let goes_on = async {
            loop {
                tokio::time::sleep(LOOK).await;
                if self.newest() > self.since + ON {
                    return self.state.usable().is_ok();
                }
            }
        };
        let looked = tokio::time::timeout(HOUSEKEEPING, async {
            tokio::select! {
                biased;
                _ = &mut answer => false,
                goes_on = goes_on => goes_on,
            }
        });
        looked.await.unwrap_or(false)
    }

    fn newest(&self) -> f64 {
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).newest
    }

    fn tell(&self) {
        self.state.flood_ended(&format!(
            "tabmux ended a script of this page: it logged {LINES} lines within {} s, went on and answered nothing meanwhile, which held up all that \
             use this browser. What came after it in that script did not run.",
            WITHIN / 1000.0
        ));
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        *counted = Counted::default();
    }
}

/// When the page logged it, in milliseconds. Found and not decoded: there are many, and some are long. In what a page says every quote is escaped.
fn logged_at(params: &str) -> Option<f64> {
    const KEY: &str = "\"timestamp\":";
    let value = &params[params.rfind(KEY)? + KEY.len()..];
    value[..value.find([',', '}'])?].trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_comes_close_together_is_too_much() {
        let mut counted = Counted::default();
        assert!(!(0..LINES * 3).any(|n| counted.line(n as f64, 100)), "a line each millisecond");
        let at = |n| 1e6 + n as f64 / 10.0;
        assert!(!(0..5000).any(|n| counted.line(at(n), 100)), "what a page says while it loads");
        assert!((5000..LINES).any(|n| counted.line(at(n), 100)));
        let mut counted = Counted::default();
        assert!((0..5).any(|n| counted.line(n as f64, 5_000_000)), "few lines, but long");
    }

    #[test]
    fn a_page_does_not_choose_when_it_said_something() {
        let params = r#"{"type":"log","args":[{"type":"string","value":"\"timestamp\":1,"}],"executionContextId":1,"timestamp":1.795126e+12,"stackTrace":{}}"#;
        assert_eq!(logged_at(params), Some(1.795126e12));
        assert_eq!(logged_at(r#"{"timestamp":5.5,"exceptionDetails":{"text":"a"}}"#), Some(5.5));
        assert_eq!(logged_at("{}"), None);
    }
}
