//! Waiting on real pages: what counts as seen, and what is left in the page afterwards.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::find::Want;
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

/// A page with a frame of its own site, one of another, and an element that keeps its inside to itself.
async fn framed(want: Want) -> (Arc<CdpBrowser>, Arc<dyn Page>) {
    let site = support::site(|path| match path {
        "/" => "<p>outer</p><iframe src=/near></iframe><x-own></x-own><script>const far = document.createElement('iframe'); \
                far.src = location.origin.replace('127.0.0.1', 'localhost') + '/far'; document.body.append(far); \
                customElements.define('x-own', class extends HTMLElement { constructor() { super(); \
                  window.inside = this.attachShadow({ mode: 'closed' }); inside.innerHTML = '<b>closed words</b>'; } })</script>"
            .into(),
        // It says of itself what comes later, when it is told to.
        path => format!("<p id=words>text of {path}</p><script>onmessage = ({{ data }}) => {{ words.textContent = data; }}</script>"),
    })
    .await;
    let browser = support::chromium_for(want).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
    (browser, page)
}

/// Also what comes later, and what goes.
#[tokio::test]
async fn what_is_in_frames_of_any_site_and_in_closed_shadow_roots_is_waited_for() {
    for want in [Want::Plain, Want::Full] {
        let (_browser, page) = framed(want).await;
        for words in ["outer", "text of /near", "text of /far", "closed words"] {
            soon(page.wait_for(&text(words))).await.unwrap_or_else(|error| panic!("{want:?}, {words}: {error}"));
        }
        for there in ["text=\"text of /far\"", "text=\"closed words\"", "role=paragraph", "b"] {
            soon(page.wait_for(&selector(there))).await.unwrap_or_else(|error| panic!("{want:?}, {there}: {error}"));
        }
        let cases = [
            (text("near later"), "frames[0].postMessage('near later', '*')"),
            (text("far later"), "frames[1].postMessage('far later', '*')"),
            (text("closed later"), "inside.firstChild.textContent = 'closed later'"),
            (gone("far later"), "frames[1].postMessage('far again', '*')"),
            (gone("closed later"), "inside.firstChild.remove()"),
            (gone("near later"), "document.querySelector('iframe').remove()"),
        ];
        for (awaited, script) in cases {
            let early = tokio::time::timeout(Duration::from_millis(100), page.wait_for(&awaited)).await;
            assert!(early.is_err(), "{want:?}: {awaited:?} was so before {script}");
            let run = format!("{{ {script} }} 0");
            let (waited, ran) = soon(async { tokio::join!(page.wait_for(&awaited), page.evaluate(&run)) }).await;
            assert_eq!((waited, ran), (Ok(()), Ok(json!(0))), "{want:?}: {script}");
        }
    }
}

/// Until it is shown, nobody reads what is in a frame.
#[tokio::test]
async fn what_is_in_frames_that_nobody_sees_is_not_there() {
    for want in [Want::Plain, Want::Full] {
        let (_browser, page) = framed(want).await;
        for words in ["text of /near", "text of /far"] {
            soon(page.wait_for(&text(words))).await.expect("they are there");
        }
        for (at, words) in [(0, "text of /near"), (1, "text of /far")] {
            for how in ["display: none", "visibility: hidden", "width: 0", "height: 0"] {
                let frame = format!("document.querySelectorAll('iframe')[{at}]");
                soon(page.evaluate(&format!("{frame}.style = '{how}'; 0"))).await.expect("it runs");
                let (said, there) = (text(words), selector(&format!("text={words:?}")));
                for awaited in [&said, &there] {
                    let early = tokio::time::timeout(Duration::from_millis(150), page.wait_for(awaited)).await;
                    assert!(early.is_err(), "{want:?}, {words}: {how} and there");
                }
                soon(page.wait_for(&gone(words))).await.unwrap_or_else(|error| panic!("{want:?}, {words}, {how}: {error}"));
                let shows = format!("setTimeout(() => {{ {frame}.style = '' }}, 150); 0");
                let (one, other, _) =
                    soon(async { tokio::join!(page.wait_for(&said), page.wait_for(&there), page.evaluate(&shows)) }).await;
                assert_eq!((one, other), (Ok(()), Ok(())), "{want:?}, {words}: {how} no more");
                let early = tokio::time::timeout(Duration::from_millis(150), page.wait_for(&gone(words))).await;
                assert!(early.is_err(), "{want:?}, {words}: it was shown again");
            }
        }
    }
}

/// What spins in a frame of another process keeps nobody from what is elsewhere, and a wait can be given up.
#[tokio::test]
async fn a_frame_that_never_answers_holds_up_only_who_waits_for_it() {
    let site = support::site(|path| match path {
        "/" => "<p>outer</p><script>const far = document.createElement('iframe'); \
                far.src = location.origin.replace('127.0.0.1', 'localhost') + '/far'; document.body.append(far); \
                onmessage = () => { document.body.append('It spins'); };</script>"
            .into(),
        _ => "<p>spinning</p><script>parent.postMessage(0, '*'); onmessage = () => { for (;;); };</script>".into(),
    })
    .await;
    let browser = support::chromium_for(Want::Full).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
    soon(page.wait_for(&text("It spins"))).await.expect("the frame is there");
    soon(page.wait_for(&text("spinning"))).await.expect("it can be seen");
    soon(page.evaluate("frames[0].postMessage(0, '*'); document.body.append('Later'); 0")).await.expect("it runs");
    soon(page.wait_for(&text("Later"))).await.expect("the page itself is seen");
    soon(page.wait_for(&selector("body"))).await.expect("the page itself is seen");
    let gone = gone("nowhere");
    assert!(tokio::time::timeout(Duration::from_millis(300), page.wait_for(&gone)).await.is_err(), "who knows what is in it");
    soon(context.close()).await.expect("it closes");
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

/// Something on the page never comes, so only the crash can end it.
#[tokio::test]
async fn a_crash_ends_a_navigation() {
    let browser = support::chromium().await;
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let picture = format!("<p>here<img src=http://{}/>", silent.local_addr().expect("its address"));
    let site = support::site(move |_| picture.clone()).await;
    let page = page_at(&browser, "<p>before").await;
    for to in [Navigation::To(&format!("{site}/")), Navigation::Back] {
        let here = text("here");
        let crash = async {
            page.wait_for(&here).await.expect("the page shows");
            support::kill_renderers(&browser).await;
        };
        let (went, ()) = soon(async { tokio::join!(page.navigate(to), crash) }).await;
        assert_eq!(went, Err(DriverError::PageCrashed));
        assert_eq!(soon(page.evaluate("1")).await, Err(DriverError::PageCrashed));
        soon(page.navigate(Navigation::To("data:text/html,<p>after"))).await.expect("it comes back");
    }
}

#[tokio::test]
async fn a_function_that_throws_is_told_without_our_part_in_it() {
    let browser = support::chromium().await;
    let page = page_at(&browser, "hello").await;
    for (function, why) in
        [("foo.bar", "ReferenceError: foo is not defined"), ("() => { throw new Error('no\\nmilk') }", "Error: no\nmilk")]
    {
        let error = soon(page.wait_for(&Awaited { function: Some(function.into()), ..Awaited::default() })).await;
        assert_eq!(error, Err(DriverError::ScriptFailed(why.into())));
    }
}

/// Chromium does not tell a page of the end of what its workers begin with.
#[tokio::test]
async fn the_network_is_quiet_on_a_page_with_workers() {
    const PAGE: &str = "<script>new Worker('/a.js'); new Worker('/b.js', { type: 'module' }); new SharedWorker('/c.js'); \
                        new Worker(URL.createObjectURL(new Blob(['0'])))</script>";
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let site = support::serve(|request| match request.contains(".js ") {
            true => support::response("200 OK\r\nContent-Type: text/javascript", "0"),
            false => support::page(PAGE),
        });
        let site = site.await;
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let page = soon(context.open_page()).await.expect("a page opens");
        soon(page.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
        soon(page.wait_for(&Awaited { network_idle: true, ..Awaited::default() })).await.expect("it becomes quiet");
        let workers: Vec<_> = page.requests().0.into_iter().filter(|request| request.kind == "worker").collect();
        assert_eq!(workers.len(), 4, "{workers:?}");
        // Of the one that comes from nowhere only the worker itself tells.
        assert!(workers.iter().filter(|request| request.status == Some(200)).count() >= 3, "{workers:?}");
        assert!(workers.iter().all(|request| request.duration_ms.is_some()), "{workers:?}");
    }
}

/// Chromium reads no further in such a document, and never says of it that it has loaded.
#[tokio::test]
async fn a_page_that_asks_for_a_file_or_for_nothing_while_it_loads_has_arrived() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let site = support::site(|path| format!("<script>location = '{}'</script>", path.split_once("to=").map_or("", |(_, to)| to))).await;
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let page = soon(context.open_page()).await.expect("a page opens");
        for to in ["/download", "/nothing"] {
            soon(page.navigate(Navigation::To(&format!("{site}/?to={to}")))).await.expect("it arrives");
            assert_eq!(soon(page.evaluate("document.readyState")).await.expect("a value"), json!("complete"), "{to}");
        }
    }
}
