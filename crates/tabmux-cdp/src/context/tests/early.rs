//! A document that came before what its origin keeps.

use async_trait::async_trait;
use tabmux_driver::{Beginning, Cookie, Navigation, OriginStorage, Result, Source};
use tokio::sync::Semaphore;

use super::*;

pub(super) const ORIGIN: &str = "http://a.test";

/// Something whose only origin is told when it is let go.
#[derive(Clone, Debug)]
pub(super) struct Slow(pub(super) Arc<Semaphore>);

impl Default for Slow {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(0)))
    }
}

#[async_trait]
impl Source for Slow {
    async fn cookies(&self) -> Result<Vec<Cookie>> {
        Ok(Vec::new())
    }

    async fn origins(&self) -> Result<Vec<String>> {
        Ok(vec![ORIGIN.into()])
    }

    async fn kept(&self, origin: &str) -> Result<OriginStorage> {
        self.0.acquire().await.expect("it stays open").forget();
        Ok(OriginStorage { origin: origin.into(), ..OriginStorage::default() })
    }
}

impl Played {
    /// Answers what shows, and nothing else that it withheld.
    async fn answers_about_history(&self) {
        let asked = |command: &Value| command["method"] == "Page.getNavigationHistory";
        let withheld: Vec<Value> = self.0.inner.lock().unwrap().withheld.iter().filter(|command| asked(command)).cloned().collect();
        for command in withheld {
            self.answer(&command).await;
        }
    }

    /// How often this came, whatever it was about.
    fn heard(&self, method: &str) -> usize {
        self.0.inner.lock().unwrap().commands.iter().filter(|command| command["method"] == method).count()
    }
}

/// It is loaded again then, unless somebody sends the page elsewhere while the browser is still asked what is shown.
#[tokio::test(start_paused = true)]
async fn an_early_document_is_loaded_again_but_not_on_top_of_one_that_is_asked_for() {
    for is_sent_elsewhere in [false, true] {
        let (browser, played) = Played::start().await;
        let slow = Slow::default();
        let spec = ContextSpec { source: Some(Beginning::with(slow.clone())), ..ContextSpec::default() };
        let context = browser.open_context(&spec).await.expect("a context opens");
        let page = context.open_page().await.expect("a page opens");
        played.withholds("Page.getNavigationHistory");
        played.withholds("Page.navigate");
        let shown = json!({"id": "T1", "loaderId": "early", "url": "http://a.test/", "securityOrigin": ORIGIN, "domainAndRegistry": "a.test",
            "mimeType": "text/html", "secureContextType": "InsecureScheme", "crossOriginIsolatedContextType": "NotIsolated", "gatedAPIFeatures": []});
        let navigated = json!({"frame": shown, "type": "Navigation"});
        played.say(&json!({"method": "Page.frameNavigated", "params": navigated, "sessionId": "of T1"})).await;
        slow.0.add_permits(1);
        played.hears("Page.getNavigationHistory").await;
        let mut sent = Box::pin(page.navigate(Navigation::To("http://b.test/")));
        if is_sent_elsewhere {
            given_up_once(&mut sent, played.hears("Page.navigate")).await;
        }
        played.answers_about_history().await;
        // What the early one did about it was sent before this is answered.
        context.open_page().await.expect("another page opens");
        assert_eq!(played.heard("Page.reload"), usize::from(!is_sent_elsewhere), "sent elsewhere: {is_sent_elsewhere}");
    }
}
