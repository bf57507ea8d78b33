//! What sessions take, as far as pages say.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tabmux_driver::{Browser, ContextSpec, Navigation};
use tokio::sync::Notify;

use crate::support;

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("a browser answers in time")
}

/// S0.39: each context's own number; pages that share a heap are counted once, and one that spins holds nobody up.
#[tokio::test]
async fn a_context_takes_what_its_pages_hold() {
    let browser = support::chromium().await;
    let spins = Arc::new(Notify::new());
    let said = Arc::clone(&spins);
    let site = support::site(move |path| {
        if path == "/spins" {
            said.notify_one();
        }
        "hello".into()
    });
    let site = site.await;
    let spec = ContextSpec::default();
    let full = soon(browser.open_context(&spec)).await.expect("a context opens");
    let small = soon(browser.open_context(&spec)).await.expect("a context opens");
    assert_eq!(soon(full.memory_kb()).await, Some(0), "it has no pages");
    let (hoard, lean) = (soon(full.open_page()).await.expect("a page opens"), soon(small.open_page()).await.expect("a page opens"));
    for page in [&hoard, &lean] {
        soon(page.navigate(Navigation::To(&site))).await.expect("the page goes there");
    }
    let hold = "window.kept = new Uint8Array(40 * 1024 * 1024), window.popup = open('/popup'), 1";
    let mut popups = full.popups();
    assert_eq!(soon(hoard.evaluate(hold)).await, Ok(json!(1)));
    soon(popups.recv()).await.expect("the popup is in the context");
    // A page answers sooner or later, also on a busy machine.
    let known = async |context: &dyn tabmux_driver::Context| loop {
        if let Some(kb) = context.memory_kb().await {
            return kb;
        }
    };
    let (of_full, of_small) = (soon(known(&*full)).await, soon(known(&*small)).await);
    assert!((40 * 1024..80 * 1024).contains(&of_full), "{of_full} kB");
    assert!((100..40 * 1024).contains(&of_small), "{of_small} kB");

    let spin = "const ask = new XMLHttpRequest(); ask.open('GET', '/spins', false); ask.send(); while (true);";
    soon(lean.evaluate(&format!("setTimeout(() => {{ {spin} }}), 0"))).await.expect("it runs");
    soon(spins.notified()).await;
    assert_eq!(soon(small.memory_kb()).await, Some(of_small), "as it was");
}
