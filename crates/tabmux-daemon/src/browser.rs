//! Which browser serves the sessions. One for all of them; started by the first session that needs it.

use std::sync::Arc;

use tabmux_core::{Code, Fault};
use tabmux_driver::{Browser, fake::FakeBrowser};
use tokio::sync::OnceCell;

use crate::settings::BrowserChoice;

#[derive(Debug)]
pub(crate) struct Browsers {
    choice: BrowserChoice,
    running: OnceCell<Arc<dyn Browser>>,
}

impl Browsers {
    pub(crate) fn new(choice: BrowserChoice) -> Self {
        Self { choice, running: OnceCell::new() }
    }

    /// A browser that is there already.
    #[cfg(test)]
    pub(crate) fn given(browser: Arc<dyn Browser>) -> Self {
        Self { choice: BrowserChoice::Fake, running: OnceCell::new_with(Some(browser)) }
    }

    /// Whether a browser can be had at all, said before a seat is taken.
    pub(crate) fn check(&self) -> Result<(), Fault> {
        match self.choice {
            BrowserChoice::Fake => Ok(()),
            BrowserChoice::Named(_) => {
                let message = "This version of tabmux drives only its built-in fake browser; real Chromium comes with the next one.";
                Err(Fault::new(Code::Unsupported, message, "Set TABMUX_BROWSER=fake to try everything else."))
            }
        }
    }

    /// The browser, started when it is not running yet.
    pub(crate) async fn get(&self) -> Result<Arc<dyn Browser>, Fault> {
        self.check()?;
        let browser = self.running.get_or_init(|| async { FakeBrowser::new() as Arc<dyn Browser> }).await;
        Ok(Arc::clone(browser))
    }

    /// Those that run now, for `status`.
    pub(crate) fn running(&self) -> Vec<tabmux_driver::BrowserInfo> {
        self.running.get().map(|browser| browser.info()).into_iter().collect()
    }
}
