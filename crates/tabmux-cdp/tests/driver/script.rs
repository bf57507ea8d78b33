//! The page script: where it runs, what it costs, and that the page cannot see it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_driver::{Browser, Context, ContextSpec, Navigation, Page};

use crate::support;

/// A page with a frame of its own site and one of another, which full Chromium keeps in another process.
async fn framed() -> String {
    support::site(|path| match path {
        "/" => "<p>outer<iframe src=/near></iframe><script>const far = document.createElement('iframe'); \
                far.src = location.origin.replace('127.0.0.1', 'localhost') + '/far'; document.body.append(far);</script>"
            .into(),
        path => format!("<p>text of {path}"),
    })
    .await
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("a browser answers in time")
}

/// The load of a page does not wait for the worlds of frames in other processes; each question gives them time.
async fn read_until(page: &Arc<dyn Page>, words: &str) -> String {
    loop {
        let text = page.text().await.expect("it can be read");
        if text.contains(words) {
            return text;
        }
    }
}

async fn opened(browser: &dyn Browser) -> (Arc<dyn Context>, Arc<dyn Page>) {
    let context = browser.open_context(&ContextSpec::default()).await.expect("a context opens");
    let page = context.open_page().await.expect("a page opens");
    (context, page)
}

#[tokio::test]
async fn the_script_reads_frames_of_its_own_site_of_others_and_of_other_processes() {
    let site = framed().await;
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let (_context, page) = opened(&*browser).await;
        page.navigate(Navigation::To(&site)).await.expect("it goes there");
        let text = soon(read_until(&page, "text of /far")).await;
        assert_eq!(text.split_whitespace().collect::<Vec<_>>().join(" "), "outer text of /near text of /far", "{want:?}");
    }
}

/// Only the first one of all makes the worlds it runs in, which is one round trip more: until then a page has none.
#[tokio::test]
async fn a_call_of_the_script_is_one_message_in_the_first_document_and_in_later_ones() {
    let site = support::site(|path| format!("<p>{path}")).await;
    let browser = support::chromium().await;
    let (_context, page) = opened(&*browser).await;
    let tap = browser.connection().tap(1000);
    page.evaluate("1").await.expect("it runs");
    page.text().await.expect("it can be read");
    let sent: Vec<_> = tap.sent().iter().map(|sent| sent.method).collect();
    assert_eq!(sent, ["Runtime.evaluate", "Runtime.addBinding", "Page.addScriptToEvaluateOnNewDocument", "Runtime.callFunctionOn"]);
    for path in ["/one", "/one", "/two"] {
        page.navigate(Navigation::To(&format!("{site}{path}"))).await.expect("it goes there");
        for _ in 0..2 {
            let before = tap.sent().len();
            assert_eq!(page.text().await.expect("it can be read"), path);
            let sent: Vec<_> = tap.sent()[before..].iter().map(|sent| sent.method).collect();
            assert_eq!(sent, ["Runtime.callFunctionOn"]);
        }
    }
}

#[tokio::test]
async fn a_page_sees_nothing_of_the_script_and_cannot_mislead_it() {
    let site = support::site(|_| {
        "<p>the truth<script>for (const name of ['innerText', 'textContent']) Object.defineProperty(HTMLElement.prototype, name, { value: 'a lie' }); \
         window.tabmux = { call: () => ({ value: 'a lie', next: 7 }) }; Array.prototype.join = () => 'a lie';</script>"
            .into()
    })
    .await;
    let browser = support::chromium().await;
    let (_context, page) = opened(&*browser).await;
    let before = page.evaluate("Object.getOwnPropertyNames(window).length").await.expect("it runs");
    page.text().await.expect("it can be read");
    assert_eq!(page.evaluate("Object.getOwnPropertyNames(window).length").await, Ok(before));
    page.navigate(Navigation::To(&site)).await.expect("it goes there");
    assert_eq!(page.text().await.expect("it can be read"), "the truth");
    assert_eq!(page.evaluate("Object.keys(window.tabmux)").await, Ok(json!(["call"])));
}
