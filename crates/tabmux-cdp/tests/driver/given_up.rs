//! Navigations that nobody waits for any more.

use std::time::Duration;

use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_driver::{Browser, ContextSpec, DialogAnswer, DriverError, Navigation, PageEvent};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::support;

const PATIENCE: Duration = Duration::from_secs(20);

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("a browser answers in time")
}

/// Chromium itself would let every later call wait until the server answers, which this one never does.
#[tokio::test]
async fn a_page_that_was_sent_to_a_silent_server_and_given_up_stays_where_it_was_and_answers() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let nowhere = format!("http://{}/", silent.local_addr().expect("a bound socket has an address"));
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(&format!("{site}/here")))).await.expect("the page goes there");
    for _ in 0..2 {
        let underway = page.navigate(Navigation::To(&nowhere));
        let asked = async { silent.accept().await.expect("the browser asks").0 };
        let connection = tokio::select! {
            gone = underway => panic!("nobody answered, and yet: {gone:?}"),
            connection = asked => connection,
        };
        assert_eq!(soon(page.evaluate("location.pathname")).await, Ok(json!("/here")));
        drop(connection);
    }
    soon(page.navigate(Navigation::To(&format!("{site}/there")))).await.expect("it can still go on");
    assert_eq!(soon(page.evaluate("location.pathname")).await, Ok(json!("/there")));
}

/// What has arrived goes on loading: only the caller has lost its patience.
#[tokio::test]
async fn a_page_that_has_arrived_and_only_loads_on_is_not_stopped() {
    let browser = support::chromium().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let picture = format!("http://{}/picture", silent.local_addr().expect("a bound socket has an address"));
    let site =
        support::site(move |_| format!("<script>console.log('here')</script><img src='{picture}' onerror='document.title = `stopped`'>"))
            .await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    let url = format!("{site}/here?title=loading");
    let arrived = async {
        let asked = silent.accept().await.expect("the browser asks for the picture");
        // What a document says comes after the news that it is there.
        while page.take_log().0.is_empty() {
            tokio::task::yield_now().await;
        }
        asked
    };
    let connection = tokio::select! {
        gone = page.navigate(Navigation::To(&url)) => panic!("its picture never came, and yet: {gone:?}"),
        connection = soon(arrived) => connection,
    };
    let state = "new Promise(done => setTimeout(() => done([document.title, document.readyState]), 300))";
    assert_eq!(soon(page.evaluate(state)).await, Ok(json!(["loading", "interactive"])));
    drop(connection);
}

/// Its `load` never comes, and nothing else does.
#[tokio::test]
async fn a_page_that_stops_loading_by_itself_has_arrived() {
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let picture = format!("http://{}/picture", silent.local_addr().expect("a bound socket has an address"));
    let site = support::site(move |path| {
        let when =
            if path.starts_with("/at-once") { "stop()" } else { "onclick = () => stop(); setTimeout(() => document.body.click(), 50)" };
        format!("<p>here<img src='{picture}'><script>{when}</script><p>never seen while it loads")
    })
    .await;
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let page = soon(context.open_page()).await.expect("a page opens");
        for path in ["/at-once", "/later"] {
            assert_eq!(soon(page.navigate(Navigation::To(&format!("{site}{path}")))).await, Ok(()), "{want:?} {path}");
            assert_eq!(soon(page.evaluate("document.querySelector('p').innerText")).await, Ok(json!("here")), "{want:?} {path}");
        }
    }
}

/// It is neither a download nor an empty answer, and the page does not stay where it was.
#[tokio::test]
async fn a_page_that_goes_elsewhere_while_it_is_sent_somewhere_is_told_as_that() {
    let [silent, word] =
        [TcpListener::bind("127.0.0.1:0").await, TcpListener::bind("127.0.0.1:0").await].map(|bound| bound.expect("a free port"));
    let [nowhere, signal] = [&silent, &word].map(|bound| format!("http://{}/", bound.local_addr().expect("a bound socket has an address")));
    let site = support::site(|_| "hello".into()).await;
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let page = soon(context.open_page()).await.expect("a page opens");
        soon(page.navigate(Navigation::To(&format!("{site}/here")))).await.expect("the page goes there");
        let script = format!("fetch('{signal}', {{ mode: 'no-cors' }}).then(() => {{ location = '/elsewhere' }}); 1");
        soon(page.evaluate(&script)).await.expect("the script runs");
        let mut signal = soon(word.accept()).await.expect("it waits for a word").0;
        let asked = async {
            let asked = silent.accept().await.expect("the browser asks").0;
            signal.write_all(support::response("200 OK", "").as_bytes()).await.expect("the page still waits");
            asked
        };
        let (gone, _asked) = soon(async { tokio::join!(page.navigate(Navigation::To(&nowhere)), asked) }).await;
        let here = format!("{site}/elsewhere");
        assert_eq!(gone, Err(DriverError::Overtaken { url: nowhere.clone(), here: here.clone() }), "{want:?}");
        assert_eq!(page.url(), here, "{want:?}");
    }
}

/// A page that only waits may be given a long script next, and nobody takes that for the one that was given up.
#[tokio::test]
async fn a_script_that_comes_after_one_that_was_given_up_runs_to_its_end() {
    let browser = support::chromium().await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    let waiting = page.evaluate("new Promise(() => {})");
    let given_up = tokio::time::timeout(Duration::from_millis(100), waiting).await;
    assert!(given_up.is_err(), "it ended with {given_up:?}");
    let long = "const end = performance.now() + 2000; while (performance.now() < end); 'done'";
    assert_eq!(soon(page.evaluate(long)).await, Ok(json!("done")));
}

/// Whoever goes elsewhere right after a navigation that was given up gets there.
#[tokio::test]
async fn a_navigation_that_comes_after_one_that_was_given_up_is_not_stopped_in_its_place() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    for number in 0..5 {
        let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let nowhere = format!("http://{}/", silent.local_addr().expect("a bound socket has an address"));
        let connection = tokio::select! {
            gone = page.navigate(Navigation::To(&nowhere)) => panic!("nobody answered, and yet: {gone:?}"),
            connection = soon(silent.accept()) => connection,
        };
        soon(page.navigate(Navigation::To(&format!("{site}/{number}")))).await.expect("it goes on");
        assert_eq!(soon(page.evaluate("location.pathname")).await, Ok(json!(format!("/{number}"))));
        drop(connection);
    }
}

/// Whoever lets a page go meets the next one, not the one that was asked whether it may be left.
#[tokio::test]
async fn a_page_that_was_allowed_to_leave_is_there_when_the_answer_comes() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    for number in 0..3 {
        let (here, there) = (format!("{site}/here{number}"), format!("{site}/there{number}"));
        soon(page.navigate(Navigation::To(&here))).await.expect("the page goes there");
        soon(page.evaluate("onbeforeunload = (event) => event.preventDefault(), 0")).await.expect("it runs");
        let mut events = page.events();
        tokio::select! {
            gone = page.navigate(Navigation::To(&there)) => panic!("it was to ask first: {gone:?}"),
            event = soon(events.recv()) => assert!(matches!(event, Some(PageEvent::DialogOpened(_))), "{event:?}"),
        }
        soon(page.answer_dialog(DialogAnswer::Accept { prompt: None })).await.expect("it is answered");
        assert_eq!(page.url(), there);
        assert_eq!(soon(page.evaluate("location.pathname")).await, Ok(json!(format!("/there{number}"))));
    }
}
