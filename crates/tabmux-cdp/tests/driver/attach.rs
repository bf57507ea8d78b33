//! The driver in a browser that somebody else started, over its WebSocket: the same contract, and nothing of theirs touched.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::attach::{AttachError, Consent, Located};
use tabmux_cdp::protocol::browser::GetWindowForTarget;
use tabmux_cdp::protocol::target;
use tabmux_driver::{Browser, ContextSpec, DriverError, Ground, Isolation, PageRecord, Place, Spot, WindowBounds};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::support;

/// What browsers of other people stay open for: the whole test, and no longer.
static THEIRS: Mutex<Vec<Arc<CdpBrowser>>> = Mutex::new(Vec::new());

async fn start() -> (Arc<dyn Browser>, String) {
    let (theirs, located) = support::somebodys().await;
    THEIRS.lock().expect("nothing panics under this lock").push(theirs);
    (attach(&located).await, support::site(|path| format!("<p>The page at {path}.")).await)
}

async fn attach(located: &Located) -> Arc<CdpBrowser> {
    CdpBrowser::attach(located).await.expect("it lets us in")
}

mod contract {
    tabmux_driver::contract_tests!(super::start().await);
}

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("a browser answers in time")
}

/// Opens tabs of the person's own, at the site.
async fn open_tabs(theirs: &CdpBrowser, site: &str, count: usize) -> Vec<String> {
    let mut tabs = Vec::new();
    for number in 0..count {
        let create = target::CreateTarget { url: format!("{site}/theirs?title=t{number}"), ..target::CreateTarget::default() };
        tabs.push(soon(theirs.connection().call(None, &create)).await.expect("a tab opens").target_id);
    }
    soon(async {
        let loaded = |known: target::GetTargetsReply| known.target_infos.iter().filter(|info| info.title.starts_with('t')).count();
        while loaded(theirs.connection().call(None, &target::GetTargets::default()).await.expect("it answers")) < count {}
    })
    .await;
    tabs
}

/// How many commands a small session takes, by kind of isolation. Of what it hears, little is said; 300 tabs would say more.
async fn work(browser: &Arc<CdpBrowser>, isolation: Isolation) -> u64 {
    let before = browser.connection().counts();
    let spec = ContextSpec { isolation, ..ContextSpec::default() };
    let context = soon(browser.open_context(&spec)).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    let calls = browser.connection().counts().calls;
    assert_eq!(soon(page.evaluate("6 * 7")).await, Ok(json!(42)));
    assert_eq!(browser.connection().counts().calls - calls, 1, "evaluate is one command");
    soon(context.close()).await.expect("it closes");
    let now = browser.connection().counts();
    assert!(now.events - before.events < 150, "nobody else is heard, but there were {} events", now.events - before.events);
    now.calls - before.calls
}

/// Issue 3: 300 foreign tabs cost nothing but the browser's one list of them.
#[tokio::test]
async fn three_hundred_foreign_tabs_cost_one_line_each_at_the_start_and_nothing_later() {
    let (theirs, located) = support::somebodys().await;
    let site = support::site(|_| "theirs".into()).await;
    let alone = attach(&located).await;
    // To hear of tabs, and to shut its port to pages.
    assert_eq!((alone.connection().counts().calls, alone.connection().counts().events), (2, 0));
    let spent_alone = [work(&alone, Isolation::Context).await, work(&alone, Isolation::Tab).await];
    soon(alone.end()).await.expect("it is let go");
    let tabs = open_tabs(&theirs, &site, 300).await;
    let crowded = attach(&located).await;
    let tap = crowded.connection().tap(1000);
    let counts = crowded.connection().counts();
    assert!(counts.calls == 2 && (300..600).contains(&counts.events), "two commands, one line for each: {counts:?}");
    assert_eq!([work(&crowded, Isolation::Context).await, work(&crowded, Isolation::Tab).await], spent_alone);
    assert_eq!(tap.dropped(), 0);
    for sent in tap.sent() {
        assert!(!tabs.iter().any(|tab| sent.frame.contains(tab.as_str())), "{sent:?}");
        assert!(!["Page.bringToFront", "Target.activateTarget"].contains(&sent.method), "{sent:?}");
        // Within a page of ours it is about that page's frames; without one, about everybody's tabs.
        assert!(sent.method != "Target.setAutoAttach" || sent.session.is_some(), "{sent:?}");
        assert!(sent.method != "Target.createTarget" || sent.frame.contains("\"background\":true"), "{sent:?}");
    }
}

/// S4.6: closing, letting go and cleaning up end what is ours; the person's tabs, and what another program made, stay.
#[tokio::test]
async fn nothing_that_is_not_ours_is_ever_closed() {
    let (theirs, located) = support::somebodys().await;
    let site = support::site(|_| "theirs".into()).await;
    open_tabs(&theirs, &site, 2).await;
    let another = soon(theirs.open_context(&ContextSpec::default())).await.expect("another program's context");
    let foreign = soon(another.open_page()).await.expect("its page");
    let browser = attach(&located).await;
    let before = targets(&theirs).await;
    let mut ours = Vec::new();
    for isolation in [Isolation::Context, Isolation::Tab, Isolation::Window] {
        let spec = ContextSpec { isolation, ..ContextSpec::default() };
        let context = soon(browser.open_context(&spec)).await.expect("it opens");
        soon(context.open_page()).await.expect("a page opens");
        soon(context.close()).await.expect("it closes");
        let context = soon(browser.open_context(&spec)).await.expect("it opens");
        soon(context.open_page()).await.expect("a page opens");
        ours.push(context);
    }
    soon(browser.keep_only(&[])).await.expect("what is ours closes");
    let left = soon(async {
        loop {
            let left = targets(&theirs).await;
            if left.len() <= before.len() {
                break left;
            }
        }
    })
    .await;
    assert_eq!(left, before);
    soon(browser.end()).await.expect("it is let go");
    assert_eq!(targets(&theirs).await, before);
    assert_eq!(soon(foreign.evaluate("1")).await, Ok(json!(1)));
    let spec = ContextSpec { isolation: Isolation::Browser, ..ContextSpec::default() };
    let again = attach(&located).await;
    assert!(matches!(soon(again.open_context(&spec)).await.map(|_| ()), Err(DriverError::Unsupported(_))));
}

/// S4.5: each tab comes up in its session's window, also where no extension is let in over this wire (148 lets none in, 156 does). What
/// opens them is seen by nobody and gone with us.
#[tokio::test]
async fn thirty_tabs_at_once_come_up_in_their_sessions_windows() {
    let (theirs, located) = support::somebodys_with(&["--remote-debugging-port=0"]).await;
    let site = support::site(|_| "theirs".into()).await;
    open_tabs(&theirs, &site, 2).await;
    let before = targets(&theirs).await;
    let usher = async || {
        let known = soon(theirs.connection().call(None, &target::GetTargets::default())).await.expect("it answers").target_infos;
        known.into_iter().find(|info| info.url.starts_with("chrome://bookmarks") || info.url.ends_with("/tabmux-windows.html"))
    };
    for way in ["let go", "cut off"] {
        let browser = attach(&located).await;
        let usher_place = tempfile::tempdir().expect("a directory");
        browser.keep_window_usher_in(usher_place.path().to_owned());
        let mut contexts = Vec::new();
        for _ in 0..3 {
            let spec = ContextSpec { isolation: Isolation::Window, ..ContextSpec::default() };
            let context = soon(browser.open_context(&spec)).await.expect("it opens");
            let windows = context.windows().expect("it has windows");
            let (_, spot) =
                soon(windows.open_page_at(Place::New(WindowBounds { left: 0, top: 0, width: 800, height: 600 }))).await.expect("a window");
            windows.own(&BTreeSet::from([spot.window]));
            contexts.push((context, spot.window));
        }
        let opening = (0..30).map(|number| {
            let (context, window) = &contexts[number % 3];
            async move { (soon(context.windows().expect("windows").open_page_at(Place::In(*window))).await.expect("a tab"), *window) }
        });
        for ((page, spot), expected) in futures::future::join_all(opening).await {
            assert_eq!(spot, Spot { window: expected, ground: Ground::Old });
            let asked = GetWindowForTarget { target_id: Some(page.handle().0.clone()) };
            let found = soon(theirs.connection().call(None, &asked)).await.expect("it is in a window");
            assert_eq!((found.window_id, page.url().as_str()), (expected.0, "about:blank"));
        }
        assert_ne!(usher().await.expect("somebody opened them").kind, "page", "it is in no tab strip");
        for (context, _) in &contexts {
            soon(context.close()).await.expect("it closes");
        }
        if way == "let go" {
            soon(browser.end()).await.expect("it is let go");
        }
        drop((contexts, browser));
        // Whoever was cut off cannot wait until its tabs are gone.
        soon(async { while usher().await.is_some() || targets(&theirs).await != before {} }).await;
    }
}

async fn targets(browser: &CdpBrowser) -> Vec<String> {
    let known = soon(browser.connection().call(None, &target::GetTargets::default())).await.expect("it answers").target_infos;
    let mut pages: Vec<String> = known.into_iter().filter(|info| info.kind == "page").map(|info| info.target_id).collect();
    pages.sort();
    pages
}

/// A daemon that died leaves its contexts and tabs in the browser; the next one finds exactly them.
#[tokio::test]
async fn the_next_connection_finds_contexts_and_tabs_again() {
    let (_theirs, located) = support::somebodys().await;
    let mut kept = Vec::new();
    let first = attach(&located).await;
    for isolation in [Isolation::Context, Isolation::Tab, Isolation::Window] {
        let spec = ContextSpec { isolation, ..ContextSpec::default() };
        let context = soon(first.open_context(&spec)).await.expect("it opens");
        let page = soon(context.open_page()).await.expect("a page opens");
        soon(page.evaluate("window.kept = 'yes'")).await.expect("it runs");
        kept.push((context.handle().clone(), PageRecord::of(&*page)));
    }
    first.connection().close("the daemon is killed");
    let second = attach(&located).await;
    assert_eq!(second.info().id, first.info().id);
    for (context, record) in kept {
        let adopted = soon(second.adopt_context(&context, &ContextSpec::default(), std::slice::from_ref(&record))).await.expect("it lives");
        let (_, page) = adopted.pages.first().expect("its page lives");
        assert_eq!(soon(page.evaluate("window.kept")).await, Ok(json!("yes")));
        soon(adopted.context.close()).await.expect("it closes");
    }
    // The browser's list names what is closed for a moment longer.
    soon(async { while !targets(&second).await.is_empty() {} }).await;
}

/// A page that was made and not yet on record when the daemon died is closed by the next one; a blank tab of the person's is not.
#[tokio::test]
async fn what_was_half_made_is_closed_and_a_blank_tab_of_the_persons_is_not() {
    let (theirs, located) = support::somebodys().await;
    let blank = target::CreateTarget { url: "about:blank".into(), ..target::CreateTarget::default() };
    let blank = soon(theirs.connection().call(None, &blank)).await.expect("a tab opens").target_id;
    let first = attach(&located).await;
    let mut handles = Vec::new();
    for isolation in [Isolation::Context, Isolation::Tab, Isolation::Window] {
        let spec = ContextSpec { isolation, ..ContextSpec::default() };
        let context = soon(first.open_context(&spec)).await.expect("it opens");
        let page = soon(context.open_page()).await.expect("a page opens");
        assert_eq!(page.url(), "about:blank");
        handles.push(context.handle().clone());
    }
    assert_eq!(targets(&theirs).await.len(), 4);
    first.connection().close("the daemon is killed");
    let second = attach(&located).await;
    for handle in handles {
        assert!(soon(second.adopt_context(&handle, &ContextSpec::default(), &[])).await.expect("it lives").pages.is_empty());
    }
    let left = soon(async {
        loop {
            let left = targets(&theirs).await;
            if left.len() == 1 {
                break left;
            }
        }
    });
    assert_eq!(left.await, [blank]);
}

/// Somebody in place of an everyday browser: takes the connection and answers it as told, after a while.
async fn doorman(answer: &'static str) -> Located {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("ws://{}/devtools/browser/x", listener.local_addr().expect("bound"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            drop(stream.read(&mut request).await);
            drop(stream.write_all(answer.as_bytes()).await);
        }
    });
    Located { url, consent: Consent::Asked }
}

#[tokio::test]
async fn a_person_who_clicks_cancel_and_a_browser_that_was_replaced_are_told_apart() {
    let cancelled = doorman("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n").await;
    let error = soon(CdpBrowser::attach(&cancelled)).await.expect_err("they said no");
    assert!(matches!(error, AttachError::Refused { .. }) && error.hint().contains("Allow"), "{error:?}");
    let replaced = doorman("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n").await;
    let error = soon(CdpBrowser::attach(&replaced)).await.expect_err("it is gone");
    assert!(matches!(error, AttachError::Gone { .. }), "{error:?}");
}
