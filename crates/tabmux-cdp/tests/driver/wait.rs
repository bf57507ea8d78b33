//! Waiting on real pages: what counts as seen, and what is left in the page afterwards.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::CdpBrowser;
use tabmux_driver::{Awaited, Browser, ContextSpec, DriverError, Navigation, Page, UrlPattern};

use crate::support;

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("a browser answers in time")
}

async fn page_at(browser: &Arc<CdpBrowser>, body: &'static str) -> Arc<dyn Page> {
    let site = support::site(move |_| body.to_owned()).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
    page
}

fn selector(css: &str) -> Awaited {
    Awaited { selector: Some(css.to_owned()), ..Awaited::default() }
}

fn text(text: &str) -> Awaited {
    Awaited { text: Some(text.to_owned()), ..Awaited::default() }
}

fn gone(what: &str) -> Awaited {
    Awaited { gone: Some(what.to_owned()), ..Awaited::default() }
}

fn url(pattern: &str) -> Awaited {
    Awaited { url: Some(UrlPattern(pattern.to_owned())), ..Awaited::default() }
}

/// Each wait is not over before its script ran, and is over soon after it.
#[tokio::test]
async fn waiting_ends_with_the_very_change_that_makes_it_so() {
    let browser = support::chromium().await;
    let page =
        page_at(&browser, "<p id=hidden style='display:none'>Secret</p><p id=spinner>Loading  <b>now</b>…</p><div class=x></div>").await;
    let cases = [
        (selector("#late"), "document.body.innerHTML += '<i id=late>'"),
        (selector("#hidden"), "hidden.style.display = 'block'"),
        (text("secret shown"), "hidden.firstChild.data = 'Secret   SHOWN'"),
        (gone("loading now"), "spinner.lastChild.remove(); spinner.textContent = 'Ready'"),
        (gone("#spinner"), "spinner.style.visibility = 'hidden'"),
        (gone(".x"), "document.querySelector('.x').className = 'y'"),
        (url("*/pushed#*"), "history.pushState(null, '', '/pushed#here')"),
        (text("written anew"), "document.open(); document.write('<p>Written anew'); document.close()"),
        (Awaited { url: Some(UrlPattern("/next".into())), ..text("loading now") }, "location = '/next'"),
        (selector("#fed"), "setTimeout(() => document.body.append(Object.assign(document.createElement('p'), { id: 'fed' })), 300)"),
    ];
    for (awaited, script) in cases {
        let early = tokio::time::timeout(Duration::from_millis(100), page.wait_for(&awaited)).await;
        assert!(early.is_err(), "{awaited:?} was so before {script}");
        let run = format!("{{ {script} }} 0");
        let both = async { tokio::join!(page.wait_for(&awaited), page.evaluate(&run)) };
        let Ok((waited, ran)) = tokio::time::timeout(Duration::from_secs(10), both).await else { panic!("not in time: {script}") };
        assert_eq!((waited, ran), (Ok(()), Ok(json!(0))), "{script}");
    }
}

#[tokio::test]
async fn what_is_no_selector_is_said_and_a_text_may_look_like_none() {
    let browser = support::chromium().await;
    let page = page_at(&browser, "<p>50 % [off]<button>Go on</button>").await;
    for there in ["text=\"Go on\"", "role=button[name=go]", "//button", "~Go on"] {
        assert_eq!(soon(page.wait_for(&selector(there))).await, Ok(()), "{there}");
    }
    assert_eq!(soon(page.wait_for(&gone("role=link"))).await, Ok(()));
    assert!(matches!(soon(page.wait_for(&selector("p[["))).await, Err(DriverError::BadSelector { .. })));
    assert_eq!(soon(page.wait_for(&gone("p[["))).await, Ok(()), "as a text it is not there");
    assert_eq!(soon(page.wait_for(&text("50 % [off]"))).await, Ok(()));
}

/// A wait that nobody waits for any more does no work in the page, and one that is over neither.
#[tokio::test]
async fn nothing_of_a_wait_is_left_in_the_page() {
    let browser = support::chromium().await;
    let page = page_at(&browser, "<p>here").await;
    let never = text("never");
    assert!(tokio::time::timeout(Duration::from_millis(200), page.wait_for(&never)).await.is_err());
    soon(page.wait_for(&text("here"))).await.expect("it is there");
    assert_eq!(soon(page.evaluate("typeof tabmux")).await, Ok(json!("undefined")));
    let left = support::in_our_world(&browser, &page, "tabmux.watching()").await;
    assert_eq!(left, json!(0));
}

/// A page that changes without end is still looked at, and still answers others.
#[tokio::test]
async fn a_page_that_never_rests_is_watched_without_being_held_up() {
    let browser = support::chromium().await;
    let busy = "<p id=n></p><script>let n = 0; const more = () => { document.getElementById('n').textContent = 'step ' + n++; \
                const m = new MessageChannel(); m.port1.onmessage = more; m.port2.postMessage(0) }; more()</script>";
    let page = page_at(&browser, busy).await;
    soon(page.wait_for(&Awaited { text: Some("step".into()), ..gone("step 7x") })).await.expect("it is there");
    let never = text("never");
    let (waited, value) = soon(async {
        tokio::join!(tokio::time::timeout(Duration::from_millis(300), page.wait_for(&never)), page.evaluate("document.title"))
    })
    .await;
    assert!(waited.is_err() && value.is_ok());
}

#[tokio::test]
async fn a_crash_ends_the_wait() {
    let browser = support::chromium().await;
    let page = page_at(&browser, "<p>here").await;
    let never = text("never");
    let (waited, ()) = soon(async { tokio::join!(page.wait_for(&never), support::kill_renderers(&browser)) }).await;
    assert_eq!(waited, Err(DriverError::PageCrashed));
}
