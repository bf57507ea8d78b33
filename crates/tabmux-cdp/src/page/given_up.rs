//! A script that nobody waits for any more: one of a call that was given up, or whatever a page does that is being left. It may
//! still spin in the page and would hold up every later call, so it is ended; a page that merely waits for a promise is left
//! alone, or the next script would be the one that is ended.

use std::sync::Arc;
use std::time::Duration;

use tabmux_driver::HOUSEKEEPING;

use super::CdpPage;
use crate::CdpError;
use crate::connection::Connection;
use crate::protocol::emulation::SetScriptExecutionDisabled;
use crate::protocol::page::StopLoading;
use crate::protocol::runtime::{Evaluate, TerminateExecution};

/// How long a page that is not spinning takes at most to answer nothing.
const PROBE: Duration = Duration::from_millis(500);

/// How often a script is ended that begins again.
const AGAIN: Duration = Duration::from_millis(50);

/// Ends the timers of a page and of the frames it may touch.
const END_TIMERS: &str = "(function still(scope) {
  try {
    for (let timer = scope.setTimeout(() => {}); timer > 0; timer--) scope.clearTimeout(timer);
    for (let at = 0; at < scope.length; at++) still(scope[at]);
  } catch {}
})(window)";

/// What became of the last script that was ended in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Freed {
    #[default]
    Calm,
    /// A timer may have begun it again.
    Once,
}

pub(super) struct GivenUp<'a> {
    page: &'a CdpPage,
    armed: bool,
}

impl<'a> GivenUp<'a> {
    pub(super) fn unless_done(page: &'a CdpPage) -> Self {
        Self { page, armed: true }
    }

    pub(super) fn done(mut self) {
        self.armed = false;
    }
}

impl Drop for GivenUp<'_> {
    fn drop(&mut self) {
        if !self.armed || self.page.state.usable().is_err() {
            return;
        }
        let (connection, session) = (self.page.connection.clone(), self.page.session.clone());
        // Held already: the page is being freed.
        let Ok(mut freeing) = self.page.freeing.clone().try_lock_owned() else { return };
        tokio::spawn(async move {
            if free(&connection, &session).await {
                *freeing = Freed::Once;
            }
        });
    }
}

impl CdpPage {
    /// Once a navigation has begun, Chromium passes nothing on to the page, the order to end a script included. So whoever goes
    /// somewhere asks first whether the page answers, and frees it if not: nobody wants what it does there any more. A script that was ended
    /// may begin again at once (a timer), so nothing of that is left either.
    pub(super) async fn freed(&self) {
        let mut freeing = Arc::clone(&self.freeing).lock_owned().await;
        if self.state.usable().is_err() {
            return;
        }
        let session = Some(self.session.as_str());
        let mut answer = std::pin::pin!(self.connection.send(session, &probe()));
        let mut calm = tokio::time::timeout(PROBE, &mut answer).await.is_ok();
        if calm && std::mem::take(&mut *freeing) == Freed::Once {
            // It may have answered between two rounds.
            tokio::time::sleep(AGAIN).await;
            answer.set(self.connection.send(session, &probe()));
            calm = tokio::time::timeout(PROBE, &mut answer).await.is_ok();
        }
        if calm {
            return;
        }
        // A page that is on its way elsewhere does not answer either, until that is called off.
        let _ = self.connection.call_in(session, &StopLoading::default(), PROBE).await;
        if tokio::time::timeout(PROBE, answer).await.is_ok() || self.state.usable().is_err() {
            return;
        }
        // What is begun is ended, also when nobody waits for it any more: till then no script may run in the page, and a loop that was ended once
        // begins again. The next one to come meets a page that is calm.
        let (connection, session) = (self.connection.clone(), self.session.clone());
        let stilled = tokio::spawn(async move {
            still(&connection, &session).await;
            *freeing = Freed::Calm;
        });
        // Whatever comes of it, the navigation says how the page is.
        let _ = stilled.await;
    }

    /// Scripts may run again, where a former daemon was killed while it freed the page.
    pub(super) fn let_scripts_run(&self) {
        drop(self.connection.send(Some(&self.session), &SetScriptExecutionDisabled { value: false }));
    }
}

/// Ends the script that runs, and all that would begin it again.
async fn still(connection: &Connection, session: &str) {
    let session = Some(session);
    let mut hushed = std::pin::pin!(connection.send(session, &SetScriptExecutionDisabled { value: true }));
    let ended = async {
        loop {
            drop(connection.send(session, &TerminateExecution::default()));
            // The next script may begin before the page is hushed.
            if tokio::time::timeout(AGAIN, &mut hushed).await.is_ok() {
                break;
            }
        }
        // An order to end a script that comes when none runs ends the next one. It must not be that of the next document, nor ours.
        let _ = connection.call_in(session, &probe(), PROBE).await;
        let timers = Evaluate { expression: END_TIMERS.into(), ..Evaluate::default() };
        let _ = connection.call_in(session, &timers, PROBE).await;
    };
    let _ = tokio::time::timeout(HOUSEKEEPING, ended).await;
    // Else it would hold for every later document.
    let _ = connection.call_in(session, &SetScriptExecutionDisabled { value: false }, PROBE).await;
}

/// Ends the script of a page that answers nothing, and where one was ended before and began again, also what begins it. Comes when all that it
/// said till then is heard.
pub(super) async fn end_flood(connection: &Connection, session: &str, before: Freed) -> Freed {
    let freed = if before == Freed::Once {
        still(connection, session).await;
        Freed::Calm
    } else {
        let _ = connection.call_in(Some(session), &TerminateExecution::default(), HOUSEKEEPING).await;
        Freed::Once
    };
    // Behind it all; and should the order have come too late, this is what it ends.
    let _ = connection.call_in(Some(session), &probe(), HOUSEKEEPING).await;
    freed
}

/// Says whether there was a script to end.
async fn free(connection: &Connection, session: &str) -> bool {
    let spins = matches!(connection.call_in(Some(session), &probe(), PROBE).await, Err(CdpError::Late { .. }));
    if spins {
        // Whatever comes of it, the page's next call says how the page is.
        let _ = connection.call_in(Some(session), &TerminateExecution::default(), HOUSEKEEPING).await;
    }
    spins
}

pub(super) fn probe() -> Evaluate {
    Evaluate { expression: "0".into(), ..Evaluate::default() }
}
