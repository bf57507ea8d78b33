//! A browser that was started for one session only, until the session is in it. Given up before, it ends: nobody else would
//! ever use it, or know of it.

use std::sync::Arc;

use tabmux_driver::{Browser, HOUSEKEEPING};

#[derive(Debug)]
pub(crate) struct Vacant(Option<Arc<dyn Browser>>);

impl Vacant {
    pub(super) fn new(browser: Option<Arc<dyn Browser>>) -> Self {
        Self(browser)
    }

    /// A session is in it.
    pub(crate) fn taken(mut self) {
        self.0 = None;
    }
}

impl Drop for Vacant {
    fn drop(&mut self) {
        if let Some(browser) = self.0.take() {
            tokio::spawn(async move {
                match tokio::time::timeout(HOUSEKEEPING, browser.end()).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(%error, "a browser that nobody is in did not end"),
                    Err(_) => tracing::warn!("a browser that nobody is in took too long to end"),
                }
            });
        }
    }
}
