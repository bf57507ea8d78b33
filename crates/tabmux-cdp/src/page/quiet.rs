//! Waits for what no event of the document says: a network at rest, and a script of the caller's that holds.

use tabmux_driver::{DriverError, NETWORK_QUIET, Result};

use super::given_up::GivenUp;
use super::wait::Waited;
use super::{CdpPage, console};
use crate::CdpError;
use crate::protocol::runtime::Evaluate;

/// Asks again and again for a second, then answers: so it ends by itself in a page nobody waits for any more, and leaves
/// nothing there that the page could see. A script's variables say nothing when they change, so there is no event to wait for.
const HOLDS: &str = "(async () => {
  const holds = async () => {
    const value = (FUNCTION
    );
    return Boolean(await (typeof value === 'function' ? value() : value));
  };
  if (await holds()) return 'at once';
  for (const ends = performance.now() + 1000; performance.now() < ends; ) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    if (await holds()) return 'later';
  }
  return 'not yet';
})()";

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
        let expression = HOLDS.replace("FUNCTION", function);
        loop {
            let before = progress.borrow_and_update().commits;
            let evaluate =
                Evaluate { expression: expression.clone(), return_by_value: Some(true), await_promise: Some(true), ..Evaluate::default() };
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
                return Err(DriverError::ScriptFailed(console::thrown(&details)));
            }
            match reply.result.value.as_ref().and_then(serde_json::Value::as_str) {
                Some("at once") => return Ok(Waited::NotAtAll),
                Some("later") => return Ok(Waited::ForIt),
                _ => {}
            }
        }
    }
}
