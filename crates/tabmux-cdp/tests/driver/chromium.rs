//! What only a real browser does: spinning and crashing pages, death of the browser, and what is sent over the wire.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::find::Want;
use tabmux_driver::{
    Area, Browser, ContextSpec, DriverError, Emulation, ImageFormat, Isolation, Navigation, Page, PageEvent, PageRecord, Reading, Shot,
    Sight, StorageArea, StorageItem,
};

use crate::support;

const PATIENCE: Duration = Duration::from_secs(20);

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("a browser answers in time")
}

async fn page(browser: &Arc<CdpBrowser>) -> Arc<dyn Page> {
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    soon(context.open_page()).await.expect("a page opens")
}

/// People and models write scripts in many shapes; each gives its value.
#[tokio::test]
async fn scripts_of_every_shape_give_their_value() {
    let browser = support::chromium().await;
    let page = page(&browser).await;
    let cases = [
        ("1 + 1", json!(2)),
        ("let x = 2; x * 2", json!(4)),
        ("let x = 3; x * 2", json!(6)),
        ("return 5", json!(5)),
        ("const a = 1; return a + 1;", json!(2)),
        ("() => 7", json!(7)),
        ("async () => { return 8 }", json!(8)),
        ("function named() { return 9 }", json!(9)),
        ("// why\nasync function later() { return await 9 } // so", json!(9)),
        ("function helper() { return 9 } helper", json!({})),
        ("function helper() { return 9 } helper() + 1", json!(10)),
        ("function helper() { return 9 } undefined", json!(null)),
        ("window.f = 1; window.g = () => 2", json!({})),
        ("function () { return 9 }", json!(9)),
        ("async function () { return await 9 }", json!(9)),
        ("(() => NaN)", json!("NaN")),
        ("// why\n() => ({ d: [new Date(0)] });", json!({ "d": ["1970-01-01T00:00:00.000Z"] })),
        ("window.n = 0", json!(0)),
        ("(() => { n++; return () => { n = 'called' } })()", json!({})),
        ("n", json!(1)),
        ("() => ++n", json!(2)),
        ("await Promise.resolve(10)", json!(10)),
        ("const r = await Promise.resolve(11); return r", json!(11)),
        ("Promise.resolve({ a: [1, null] })", json!({ "a": [1, null] })),
        ("({ b: 2 })", json!({ "b": 2 })),
        ("undefined", json!(null)),
        ("NaN", json!("NaN")),
        ("10n", json!("10n")),
        ("12 // a remark", json!(12)),
    ];
    for (script, value) in cases {
        assert_eq!(soon(page.evaluate(script)).await, Ok(value), "{script}");
    }
    let error = soon(page.evaluate("window")).await.expect_err("a window is no JSON");
    assert!(matches!(&error, DriverError::ScriptFailed(text) if text.contains("JSON")), "{error:?}");
    let error = soon(page.evaluate("syntax error here")).await.expect_err("no script");
    assert!(matches!(&error, DriverError::ScriptFailed(text) if text.contains("SyntaxError")), "{error:?}");
}

/// A script that the parser refuses ran nothing; no other is run again.
#[tokio::test]
async fn await_may_stand_anywhere_in_a_script() {
    let cases = [
        ("document.title = 'home'", json!("home")),
        ("const r = await fetch('/b'); r.status", json!(200)),
        ("const r = await fetch('/b'); r.status + 1", json!(201)),
        ("let r = await fetch('/b'); r.status + 2", json!(202)),
        ("(await fetch('/b')).status", json!(200)),
        ("(await fetch('/b')).text().then((text) => text.slice(-4))", json!("milk")),
        ("await fetch('/b'); document.title", json!("home")),
        ("document.title.length + await 1", json!(5)),
        ("const f = async () => 3; await f()", json!(3)),
        ("await 1; 'done'", json!("done")),
        ("await 1; ({ a: [1, Promise] })", json!({ "a": [1, null] })),
        ("[await 1, await 2]", json!([1, 2])),
        ("`${await 1}`", json!("1")),
        ("if (true) { await 1 } 7", json!(7)),
        ("JSON.stringify(await 5)", json!("5")),
        ("let t = 0; for await (const x of [1, 2]) t += x; t", json!(3)),
        ("var x = await new Promise((done) => setTimeout(() => done(3), 1))\nx", json!(3)),
        ("await 1; return 4", json!(4)),
        ("let k = await fetch('/b'); return k.status", json!(200)),
        ("await Promise.resolve(10) // a remark", json!(10)),
        ("const plain = 1; plain", json!(1)),
        ("const plain = await 2; plain", json!(2)),
        ("window.runs = 0", json!(0)),
    ];
    let failing = [
        ("runs++; throw new SyntaxError('await')", "SyntaxError: await"),
        ("runs++; (async () => { await 1; JSON.parse('{') })()", "SyntaxError"),
        ("await 1; runs++; JSON.parse('{')", "SyntaxError"),
        ("runs++; new Response('<').json().then(async () => await 1)", "not valid JSON"),
        ("await 1; runs++; eval('return 1')", "Illegal return"),
        ("await 1; runs++; throw 'no milk'", "no milk"),
        ("(async () => { await 1; runs++; throw 5 })()", "5"),
        ("async () => { await 1; runs++; throw new Error('no milk') }", "no milk"),
        ("function f() { runs++; await 1 } f()", "await is only valid"),
    ];
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let site = support::site(|_| "no milk".into()).await;
        let page = page(&browser).await;
        soon(page.navigate(Navigation::To(&site))).await.expect("it goes");
        for (script, value) in &cases {
            assert_eq!(soon(page.evaluate(script)).await.as_ref(), Ok(value), "{script}");
        }
        for (script, why) in failing {
            let error = soon(page.evaluate(script)).await.expect_err("it fails").to_string();
            assert!(error.contains(why) && !error.contains("toldAsJson") && !error.contains('\n'), "{script}: {error}");
        }
        assert_eq!(soon(page.evaluate("runs")).await, Ok(json!(failing.len() - 1)), "each that ran did once");
    }
}

/// Its value is lost with its document; where the page is by then is known.
#[tokio::test]
async fn a_script_whose_page_goes_elsewhere_says_so_when_it_is_there() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let site = support::site(|_| "hello".into()).await;
        let page = page(&browser).await;
        soon(page.navigate(Navigation::To(&site))).await.expect("it goes");
        for (script, path) in [
            ("location.href = '/b'; new Promise(() => {})", "/b"),
            ("location.reload(); await new Promise(() => {})", "/b"),
            ("() => { location.href = '/c'; return new Promise(() => {}) }", "/c"),
        ] {
            assert_eq!(soon(page.evaluate(script)).await, Err(DriverError::Navigated), "{script}");
            assert_eq!(page.url(), format!("{}{path}", site.trim_end_matches('/')), "{script}");
        }
    }
}

/// What `JSON.stringify` makes an empty object of is told as what it is. Plain data, dates, maps and sets cost no round trip more.
#[tokio::test]
async fn values_that_json_has_no_form_for_are_told_as_what_they_are() {
    let browser = support::chromium().await;
    let site = support::site(|_| "<p id=p class=c>words</p>".into()).await;
    let page = page(&browser).await;
    soon(page.navigate(Navigation::To(&site))).await.expect("it goes");
    let tap = browser.connection().tap(100);
    let cases = [
        (1, "6 * 7", json!(42)),
        (1, "document.querySelector('p').textContent", json!("words")),
        (1, "Promise.resolve(true)", json!(true)),
        (1, "new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        (1, "new Date(NaN)", json!(null)),
        (
            1,
            "({ when: new Date(0), gone: undefined, f: () => 1, list: [undefined, NaN, -0] })",
            json!({ "when": "1970-01-01T00:00:00.000Z", "list": [null, null, 0] }),
        ),
        (1, "new Map([['a', 1], [{ k: 2 }, new Set([3])]])", json!([["a", 1], [{ "k": 2 }, [3]]])),
        (1, "/x+/gi", json!("/x+/gi")),
        (1, "[10n]", json!(["10n"])),
    ];
    for (trips, script, value) in cases {
        let before = tap.sent().len();
        assert_eq!(soon(page.evaluate(script)).await, Ok(value), "{script}");
        let waited = tap.sent().into_iter().skip(before).filter(|sent| sent.method != "Runtime.releaseObject").count();
        assert_eq!(waited, trips, "{script}");
    }
    let own = [
        ("new URL('http://a.test/b')", json!("http://a.test/b")),
        ("const one = { x: 1 }; [one, one]", json!([{ "x": 1 }, { "x": 1 }])),
        ("[new Uint8Array([1, 2])]", json!([[1, 2]])),
        ("Array.prototype.toJSON = () => 'old'; [[1], { a: [2] }]", json!([[1], { "a": [2] }])),
        ("delete Array.prototype.toJSON", json!(true)),
        ("({ toJSON: () => 5 })", json!(5)),
        ("document.querySelector('p')", json!("<p id=\"p\" class=\"c\"></p>")),
        ("document.querySelectorAll('p')", json!(["<p id=\"p\" class=\"c\"></p>"])),
        ("new DOMPoint(1, 2)", json!({ "x": 1, "y": 2, "z": 0, "w": 1 })),
        ("({ failed: new TypeError('no milk') }).failed.message", json!("no milk")),
    ];
    for (script, value) in own {
        assert_eq!(soon(page.evaluate(script)).await, Ok(value), "{script}");
    }
    let error = soon(page.evaluate("({ failed: new TypeError('no milk') })")).await.expect("it is told");
    assert_eq!((&error["failed"]["name"], &error["failed"]["message"]), (&json!("TypeError"), &json!("no milk")));
    for depth in [500, 50_000] {
        let deep = format!("let deep = []; for (let i = 0; i < {depth}; i++) deep = [deep]; deep");
        let error = soon(page.evaluate(&deep)).await.expect_err("nobody reads it").to_string();
        assert!(error.contains("nested too deeply"), "{error}");
    }
    let error = soon(page.evaluate("const ring = {}; ring.ring = ring; ring")).await.expect_err("it has no end");
    assert!(error.to_string().contains("JSON"), "{error}");
}

/// Reading it would hold up everybody else's pages.
#[tokio::test]
async fn a_value_that_nobody_could_be_told_is_refused_by_its_length() {
    let browser = support::chromium().await;
    let page = page(&browser).await;
    for script in ["'x'.repeat(20_000_000)", "[new URL('http://a.test/'), 'x'.repeat(20_000_000)]"] {
        let error = soon(page.evaluate(script)).await.expect_err("it is too long").to_string();
        assert!(error.contains("too long") && error.contains("MB"), "{error}");
    }
    assert_eq!(soon(page.evaluate("1")).await, Ok(json!(1)));
}

#[tokio::test]
async fn a_spinning_script_that_is_given_up_frees_its_page_and_disturbs_no_other() {
    let browser = support::chromium().await;
    let (spinning, beside) = (page(&browser).await, page(&browser).await);
    let given_up = tokio::time::timeout(Duration::from_millis(200), spinning.evaluate("for (;;) {}")).await;
    assert!(given_up.is_err(), "an endless loop ended with {given_up:?}");
    assert_eq!(soon(beside.evaluate("1")).await, Ok(json!(1)));
    assert_eq!(soon(spinning.evaluate("2")).await, Ok(json!(2)));
}

#[tokio::test]
async fn a_crashed_page_says_so_at_once_and_comes_back_with_a_navigation() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let crashing = page(&browser).await;
    soon(crashing.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
    let mut events = crashing.events();
    let waiting = crashing.evaluate("new Promise(() => {})");
    let crash = async {
        support::kill_renderers(&browser).await;
        events.recv().await
    };
    let (ended, event) = soon(async { tokio::join!(waiting, crash) }).await;
    assert_eq!((ended, event), (Err(DriverError::PageCrashed), Some(PageEvent::Crashed)));
    assert_eq!(soon(crashing.evaluate("1")).await, Err(DriverError::PageCrashed));
    assert_eq!(soon(page(&browser).await.evaluate("1")).await, Ok(json!(1)), "the browser lives on");
    soon(crashing.navigate(Navigation::Reload)).await.expect("a reload brings it back");
    assert_eq!(soon(crashing.evaluate("document.body.innerText")).await, Ok(json!("hello")));
}

#[tokio::test]
async fn when_the_browser_dies_every_call_says_so() {
    let browser = support::chromium().await;
    let page = page(&browser).await;
    let waiting = page.evaluate("new Promise(() => {})");
    let kill = async { support::kill(browser.info().pid.expect("the browser has a pid")) };
    let (ended, ()) = soon(async { tokio::join!(waiting, kill) }).await;
    assert!(matches!(ended, Err(DriverError::BrowserGone(_))), "{ended:?}");
    assert!(matches!(soon(page.navigate(Navigation::Reload)).await, Err(DriverError::BrowserGone(_))));
    assert!(matches!(soon(browser.open_context(&ContextSpec::default())).await.map(|_| ()), Err(DriverError::BrowserGone(_))));
    soon(browser.gone()).await;
}

/// JavaScript cuts texts where it likes, and no Rust string holds half a character.
#[tokio::test]
async fn half_a_character_costs_no_answer() {
    let browser = support::chromium().await;
    let half = "'Nice day \u{1f600}'.substring(0, 10)";
    let site = support::site(move |_| format!("<p id=p></p><a id=a href=/>on</a><script>a.title = document.title = a.ariaLabel = p.textContent = {half}; localStorage.note = {half}</script>")).await;
    let page = page(&browser).await;
    soon(page.navigate(Navigation::To(&site))).await.expect("it goes");
    let read = "Nice day \u{fffd}";
    assert_eq!(soon(page.evaluate(&format!("console.log({half}), [{half}]"))).await, Ok(json!([read])));
    let own_form = format!("({{ toJSON: () => {half} }})");
    assert_eq!(soon(page.evaluate(&own_form)).await, Ok(json!(read)));
    let text = soon(page.read(&Reading { selector: None, budget: 1000, cursor: None })).await.expect("it is read").text;
    assert!(text.contains(read), "{text:?}");
    let seen = soon(page.snapshot(&Sight::default())).await.expect("it is seen").text;
    assert!(seen.contains("Nice day"), "{seen:?}");
    soon(page.elements()).await.expect("it is seen");
    let kept = soon(page.storage(StorageArea::Local)).await.expect("it is read");
    assert_eq!(kept, [StorageItem { name: "note".into(), value: read.into() }]);
    let (logged, _) = page.take_log();
    assert!(logged.iter().any(|entry| entry.text == read), "{logged:?}");
}

/// Counts are exact, so that nobody makes a tool slower without noticing.
#[tokio::test]
async fn each_verb_costs_the_round_trips_it_should() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let page = page(&browser).await;
    let url = format!("{site}/");
    let spent = async |verb: &str, work: futures::future::BoxFuture<'_, ()>, most: u64| {
        let before = browser.connection().counts().calls;
        soon(work).await;
        let spent = browser.connection().counts().calls - before;
        assert!(spent <= most, "{verb} took {spent} round trips, not {most}");
    };
    spent("evaluate", Box::pin(async { drop(page.evaluate("1").await.expect("it runs")) }), 1).await;
    // One to see that the page does not spin, one to go, and after the load one for the title.
    spent("navigate", Box::pin(async { page.navigate(Navigation::To(&url)).await.expect("it goes") }), 3).await;
    let shot = Shot { area: Area::Viewport, format: ImageFormat::Png, max_side: None };
    spent("screenshot", Box::pin(async { drop(page.screenshot(&shot).await.expect("it is seen")) }), 2).await;
}

/// Nothing a session does takes the person's focus or looks at targets that are not ours.
#[tokio::test]
async fn nothing_is_brought_to_the_front_and_no_foreign_target_is_attached() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let tap = browser.connection().tap(1000);
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(&site))).await.expect("it goes");
    drop(soon(page.evaluate(&format!("window.open('{site}/x')"))).await);
    soon(context.popups().recv()).await.expect("a popup joins");
    soon(context.close()).await.expect("it closes");
    let sent = tap.sent();
    assert!(sent.len() > 5, "{sent:?}");
    for sent in &sent {
        assert!(!["Page.bringToFront", "Target.activateTarget"].contains(&sent.method), "{sent:?}");
    }
    let attached = sent.iter().filter(|sent| sent.method == "Target.attachToTarget").count();
    assert_eq!(attached, 1, "the page and nothing else: the browser attaches us to what pages of ours open");
}

#[tokio::test]
async fn the_pages_of_a_context_have_its_viewport_also_popups() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let spec = ContextSpec { emulation: Emulation { viewport: Some((500, 300)), ..Emulation::default() }, ..ContextSpec::default() };
    let context = soon(browser.open_context(&spec)).await.expect("a context opens");
    let mut popups = context.popups();
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(&site))).await.expect("it goes");
    assert_eq!(soon(page.evaluate("[innerWidth, innerHeight]")).await, Ok(json!([500, 300])));
    drop(soon(page.evaluate(&format!("window.open('{site}/x')"))).await);
    let popup = soon(popups.recv()).await.expect("a popup joins").page;
    assert_eq!(soon(popup.evaluate("[innerWidth, innerHeight]")).await, Ok(json!([500, 300])));
    let image = soon(page.screenshot(&Shot { area: Area::Viewport, format: ImageFormat::Png, max_side: None })).await.expect("it is seen");
    assert_eq!((image.width, image.height), (500, 300));
}

#[tokio::test]
async fn an_address_without_a_page_fails_at_once_and_leaves_the_page_where_it_was() {
    let browser = support::chromium().await;
    let site = support::serve(|request| match request.split(' ').nth(1).unwrap_or_default() {
        "/nothing" => support::response("204 No Content", ""),
        "/file" => support::response("200 OK\r\nContent-Disposition: attachment; filename=a.bin", "x"),
        "/pdf" => support::response("200 OK\r\nContent-Type: application/pdf", "%PDF-1.4\n%%EOF"),
        _ => support::page("hello"),
    });
    let site = site.await;
    let page = page(&browser).await;
    soon(page.navigate(Navigation::To(&format!("{site}/here")))).await.expect("it goes");
    for path in ["/nothing", "/file", "/pdf"] {
        let url = format!("{site}{path}");
        let why = if path == "/nothing" { DriverError::NoDocument } else { DriverError::BecameDownload };
        assert_eq!(soon(page.navigate(Navigation::To(&url))).await, Err(why(url)));
        assert_eq!(page.url(), format!("{site}/here"));
    }
    assert_eq!(soon(page.navigate(Navigation::Forward)).await, Err(DriverError::NoHistory("later")));
}

/// S4.23: whatever way a page opens another one, it joins, and says where it is.
#[tokio::test]
async fn links_and_scripts_that_open_pages_open_them_in_the_same_context() {
    let browser = support::chromium().await;
    let site =
        support::site(|_| "<a id=blank target=_blank href=/blank>x</a><a id=opener target=_blank rel=opener href=/opener>x</a>".into())
            .await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let mut popups = context.popups();
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(&site))).await.expect("it goes");
    let ways = [
        ("document.querySelector('#blank').click()", "/blank"),
        ("document.querySelector('#opener').click()", "/opener"),
        ("window.open('/noopener', '_blank', 'noopener'); 1", "/noopener"),
        ("window.open('/window', 'name', 'width=300,height=200'); 1", "/window"),
    ];
    for (script, path) in ways {
        soon(page.evaluate(script)).await.expect("the script runs");
        let popup = soon(popups.recv()).await.expect("it joins").page;
        let expected = format!("{site}{path}");
        soon(async {
            // The browser says where it went a moment later; each question gives it time.
            while popup.url() != expected {
                drop(popup.evaluate("0").await);
            }
        })
        .await;
    }
}

/// C12: tabs of one profile share its cookies, and still nobody gets another's pages.
#[tokio::test]
async fn tabs_of_the_shared_profile_share_cookies_and_nothing_else() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let spec = ContextSpec { isolation: Isolation::Tab, ..ContextSpec::default() };
    let one = soon(browser.open_context(&spec)).await.expect("it opens");
    let other = soon(browser.open_context(&spec)).await.expect("it opens");
    let apart = page(&browser).await;
    let (mut popups, mut elsewhere) = (one.popups(), other.popups());
    let first = soon(one.open_page()).await.expect("a page opens");
    let second = soon(other.open_page()).await.expect("a page opens");
    for page in [&first, &second, &apart] {
        soon(page.navigate(Navigation::To(&site))).await.expect("it goes");
    }
    soon(first.evaluate("document.cookie = 'shared=yes'")).await.expect("it runs");
    assert_eq!(soon(second.evaluate("document.cookie")).await, Ok(json!("shared=yes")));
    assert_eq!(soon(apart.evaluate("document.cookie")).await, Ok(json!("")));
    soon(first.evaluate("window.open('/x'); 1")).await.expect("it runs");
    assert_eq!(soon(popups.recv()).await.expect("it joins its opener").opener.as_ref(), Some(first.handle()));
    assert!(elsewhere.try_recv().is_err());
    let records = [PageRecord::of(&*first)];
    let found = soon(browser.adopt_context(one.handle(), &ContextSpec::default(), &records)).await.expect("it lives");
    assert_eq!(found.pages.len(), 1);
    soon(one.close()).await.expect("it closes");
    assert_eq!(soon(first.evaluate("1")).await, Err(DriverError::PageGone));
    assert_eq!(soon(second.evaluate("1")).await, Ok(json!(1)));
    let foreign = tabmux_driver::Handle("tabs-another-0000000000000000".into());
    assert!(matches!(
        soon(browser.adopt_context(&foreign, &ContextSpec::default(), &[])).await.map(|_| ()),
        Err(DriverError::BrowserGone(_))
    ));
}

/// It never fires `load`, so whoever waits for that waits for ever.
#[tokio::test]
async fn a_document_that_breaks_off_is_told_as_that_at_once() {
    let site = support::serve(|request| match request.split(' ').nth(1).unwrap_or_default() {
        "/part" => "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 9999\r\nConnection: close\r\n\r\n<p>part".into(),
        _ => support::page("<p>whole"),
    })
    .await;
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let page = page(&browser).await;
        let part = format!("{site}/part");
        let failed = soon(page.navigate(Navigation::To(&part))).await;
        let why = format!("net::ERR_CONTENT_LENGTH_MISMATCH at {part}: it broke off, and the page shows what came of it");
        assert_eq!(failed, Err(DriverError::NavigationFailed(why)), "{want:?}");
        assert_eq!(page.url(), part, "{want:?}");
        assert!(matches!(soon(page.navigate(Navigation::Reload)).await, Err(DriverError::NavigationFailed(_))), "{want:?}");
        assert_eq!(soon(page.navigate(Navigation::To(&format!("{site}/whole")))).await, Ok(()), "{want:?}");
        assert_eq!(soon(page.evaluate("document.body.innerText")).await, Ok(json!("whole")), "{want:?}");
    }
}

/// Headless-shell's renderer fell over popups that were set up while they moved into another process, and took their opener with it: 8 of 10 times.
#[tokio::test]
async fn popups_of_another_site_leave_their_opener_alive() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let elsewhere = site.replace("127.0.0.1", "localhost");
    for round in 0..5 {
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let mut popups = context.popups();
        let opener = soon(context.open_page()).await.expect("a page opens");
        soon(opener.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
        let open = format!("setTimeout(() => {{ for (let i = 0; i < 8; i++) open('{elsewhere}/' + i) }}, 50)");
        soon(opener.evaluate(&open)).await.expect("the script runs");
        for _ in 0..8 {
            let popup = soon(popups.recv()).await.expect("a popup joins").page;
            assert_eq!(soon(popup.evaluate("document.hasFocus()")).await, Ok(json!(true)), "{round}");
        }
        assert_eq!(soon(opener.evaluate("document.body.innerText")).await, Ok(json!("hello")), "{round}");
        soon(context.close()).await.expect("it closes");
    }
}

/// A browser that stands still makes what it was asked for when it goes on, and by then nobody wants it any more.
#[tokio::test]
async fn a_context_that_comes_too_late_is_not_left_behind() {
    let browser = support::chromium().await;
    let pid = i32::try_from(browser.info().pid.expect("a pid")).ok().and_then(rustix::process::Pid::from_raw).expect("not zero");
    let signal = |signal| rustix::process::kill_process(pid, signal).expect("our own browser");
    signal(rustix::process::Signal::STOP);
    let opened = soon(browser.open_context(&ContextSpec::default())).await;
    signal(rustix::process::Signal::CONT);
    assert!(opened.is_err());
    soon(async { while browser.contexts().await != Ok(0) {} }).await;
}

/// What pages send in to be drawn would run in the browser's own process, where pictures are put together; who wants it gets a process for it.
#[tokio::test]
async fn nothing_draws_for_pages_in_the_browsers_own_process() {
    const WEBGL: &str = "!!document.createElement('canvas').getContext('webgl')";
    for want in [Want::Plain, Want::Full] {
        let plain = support::chromium_for(want).await;
        assert_eq!(soon(page(&plain).await.evaluate(WEBGL)).await.expect("a value"), json!(false), "{want:?}");
        let asked = support::chromium_with(want, |launch| launch.args.push("--enable-unsafe-swiftshader".into())).await;
        assert_eq!(soon(page(&asked).await.evaluate(WEBGL)).await.expect("a value"), json!(true), "{want:?}");
    }
}
