//! Waits for what no event of the document says: a network at rest, and a script of the caller's that holds.

use serde::Deserialize;
use tabmux_driver::{DriverError, NETWORK_QUIET, Result};

use super::given_up::GivenUp;
use super::wait::Waited;
use super::{CdpPage, console};
use crate::CdpError;
use crate::protocol::runtime::Evaluate;

/// Asks again and again for a while, then answers with what it was given last: so it ends by itself in a page nobody waits for any more, and
/// leaves nothing there that the page could see. A script's variables say nothing when they change, so there is no event to wait for.
/// Few values do not hold, and all of them are short.
const HOLDS: &str = "(async () => {
  const given = async () => {
    const value = (FUNCTION
    );
    return typeof value === 'function' ? value() : value;
  };
  const ends = performance.now() + PATIENCE;
  for (;;) {
    const value = await given();
    if (value) return { holds: true };
    if (performance.now() >= ends) return { holds: false, given: value === '' ? '\"\"' : String(value) };
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
})()";

/// The first look is answered at once, so that something is known of what does not hold however short the wait is.
const PATIENCE: [&str; 2] = ["0", "1000"];

/// What came of a look.
#[derive(Deserialize)]
struct Look {
    holds: bool,
    #[serde(default)]
    given: String,
}

impl CdpPage {
    /// Comes when nothing was asked of the network for a while. The clock starts anew with every event; nobody polls.
    pub(super) async fn wait_for_quiet(&self) -> Result<Waited> {
        let mut progress = self.state.watch();
        let mut traffic = self.state.watch_traffic();
        let mut waited = Waited::NotAtAll;
        loop {
            traffic.borrow_and_update();
            let quiet = self.state.quiet_for();
            if quiet.is_some_and(|quiet| quiet >= NETWORK_QUIET) {
                return Ok(waited);
            }
            waited = Waited::ForIt;
            let rest = quiet.map(|quiet| NETWORK_QUIET.saturating_sub(quiet));
            tokio::select! {
                // Only a page that ends comes here.
                ended = self.until(&mut progress, |_| false) => ended?,
                Ok(()) = traffic.changed() => {}
                () = tokio::time::sleep(rest.unwrap_or_default()), if rest.is_some() => {}
            }
        }
    }

    /// Whether the caller's script holds, in the page's own world, in this document or a later one.
    pub(super) async fn holds(&self, function: &str) -> Result<Waited> {
        let mut progress = self.state.watch();
        self.state.function_gave(None);
        let mut waited = Waited::NotAtAll;
        loop {
            let patience = PATIENCE[usize::from(waited == Waited::ForIt)];
            let expression = HOLDS.replace("PATIENCE", patience).replace("FUNCTION", function);
            let before = progress.borrow_and_update().commits;
            let evaluate = Evaluate { expression, return_by_value: Some(true), await_promise: Some(true), ..Evaluate::default() };
            let given_up = GivenUp::unless_done(self);
            let another_document = self.until(&mut progress, |now| now.commits > before);
            let answer = tokio::select! {
                // A document that is kept for going back never answers.
                another = another_document => return another.map(|()| Waited::ForIt),
                answer = self.call(&evaluate) => answer,
            };
            given_up.done();
            let reply = match answer {
                Ok(reply) => reply,
                // Its document is gone, or going.
                Err(CdpError::Refused { .. }) => {
                    return self.until(&mut progress, |now| now.commits > before).await.map(|()| Waited::ForIt);
                }
                Err(other) => return Err(other.into()),
            };
            if let Some(details) = reply.exception_details {
                // It stands within ours, so the stack says nothing of where.
                let thrown = console::thrown(&details);
                let why = thrown.split("\n    at ").next().unwrap_or_default();
                return Err(DriverError::ScriptFailed(why.to_owned()));
            }
            match reply.result.value.map(Look::deserialize) {
                Some(Ok(Look { holds: true, .. })) => return Ok(waited),
                Some(Ok(Look { given, .. })) => self.state.function_gave(Some((function.to_owned(), given))),
                // The page has meddled with what it was asked.
                _ => {}
            }
            waited = Waited::ForIt;
        }
    }
}
