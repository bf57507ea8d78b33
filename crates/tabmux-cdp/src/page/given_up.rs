//! A script that nobody waits for any more. It may still spin in the page and would hold up every later call, so it is
//! ended; a page that merely waits for a promise is left alone, or the next script would be the one that is ended.

use std::time::Duration;

use tabmux_driver::HOUSEKEEPING;

use super::CdpPage;
use crate::CdpError;
use crate::connection::Connection;
use crate::protocol::runtime::{Evaluate, TerminateExecution};

/// How long a page that is not spinning takes at most to answer nothing.
const PROBE: Duration = Duration::from_millis(500);

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
        let Ok(freeing) = self.page.freeing.clone().try_lock_owned() else { return };
        tokio::spawn(async move {
            free(&connection, &session).await;
            drop(freeing);
        });
    }
}

impl CdpPage {
    /// Once a navigation has begun, Chromium passes nothing on to the page, the order to end a script included. So whoever goes
    /// somewhere waits until the page is free.
    pub(super) async fn freed(&self) {
        drop(self.freeing.lock().await);
    }
}

async fn free(connection: &Connection, session: &str) {
    let probe = Evaluate { expression: "0".into(), ..Evaluate::default() };
    if let Err(CdpError::Late { .. }) = connection.call_in(Some(session), &probe, PROBE).await {
        // Whatever comes of it, the page's next call says how the page is.
        let _ = connection.call_in(Some(session), &TerminateExecution::default(), HOUSEKEEPING).await;
    }
}
