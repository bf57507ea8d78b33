//! The contract of every driver, kept by the fake; then what is the fake's own.

use std::time::Duration;

use serde_json::json;
use tokio::time::{Instant, timeout};

use super::*;
use crate::contract::soon;
use crate::{DialogAnswer, Navigation, PageEvent};

crate::contract_tests!((FakeBrowser::new() as Arc<dyn Browser>, "http://site.test".to_owned()));

async fn page() -> Arc<dyn Page> {
    let browser = FakeBrowser::new();
    let context = browser.open_context(&ContextSpec::default()).await.unwrap();
    context.open_page().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_sleep_takes_its_time_and_runs_beside_others() {
    let (one, other) = (page().await, page().await);
    let start = Instant::now();
    let slept = tokio::join!(one.evaluate("sleep(20000)"), other.evaluate("sleep(20000)"));
    assert_eq!(slept, (Ok(json!("slept 20000")), Ok(json!("slept 20000"))));
    assert_eq!(start.elapsed(), Duration::from_secs(20));
}

#[tokio::test(start_paused = true)]
async fn a_delayed_navigation_arrives_late_or_not_at_all() {
    let page = page().await;
    let start = Instant::now();
    page.navigate(Navigation::To("http://a.test/?delay=3000")).await.unwrap();
    assert_eq!((start.elapsed(), page.url().as_str()), (Duration::from_secs(3), "http://a.test/?delay=3000"));
    let given_up = timeout(Duration::from_secs(1), page.navigate(Navigation::To("http://b.test/?delay=3000"))).await;
    assert!(given_up.is_err());
    assert_eq!(page.url(), "http://a.test/?delay=3000");
    let (gone, _) = tokio::join!(page.navigate(Navigation::Reload), page.close());
    assert_eq!(gone, Err(DriverError::PageGone));
}

#[tokio::test(start_paused = true)]
async fn a_page_that_awaits_something_is_there_and_never_at_rest() {
    let page = page().await;
    let half = "http://a.test/?awaits=http://b.test/x";
    assert!(timeout(Duration::from_secs(9), page.navigate(Navigation::To(half))).await.is_err());
    assert_eq!((page.url().as_str(), page.waits_for().as_deref()), (half, Some("http://b.test/x")));
    assert!(timeout(Duration::from_secs(9), page.changes(1)).await.is_err());
    page.navigate(Navigation::To("http://a.test/")).await.unwrap();
    assert!(page.changes(1).await.is_ok() && page.waits_for().is_none());
}

#[tokio::test]
async fn the_counter_shows_the_order_of_calls_even_over_a_navigation() {
    let page = page().await;
    assert_eq!(page.evaluate("count()").await, Ok(json!(1)));
    page.navigate(Navigation::To("http://a.test/")).await.unwrap();
    assert_eq!(page.evaluate("count()").await, Ok(json!(2)));
}

#[tokio::test]
async fn a_crashed_page_stays_crashed_until_it_is_navigated() {
    let page = page().await;
    page.navigate(Navigation::To("http://a.test/")).await.unwrap();
    let mut events = page.events();
    let (hung, crashed) = soon(async { tokio::join!(page.evaluate("hang()"), page.evaluate("crash()")) }).await;
    assert_eq!((hung, crashed), (Err(DriverError::PageCrashed), Err(DriverError::PageCrashed)));
    assert_eq!(soon(events.recv()).await, Some(PageEvent::Crashed));
    assert_eq!(page.evaluate("1").await, Err(DriverError::PageCrashed));
    assert_eq!(page.text().await, Err(DriverError::PageCrashed));
    page.navigate(Navigation::Reload).await.unwrap();
    assert_eq!(page.text().await, Ok("The fake page at http://a.test/.".to_owned()));
}

#[tokio::test]
async fn a_page_that_closes_itself_says_so_once() {
    let page = page().await;
    let mut events = page.events();
    assert_eq!(page.evaluate("window.close()").await, Ok(json!(null)));
    assert_eq!((soon(events.recv()).await, soon(events.recv()).await), (Some(PageEvent::Closed), None));
    assert_eq!(page.evaluate("1").await, Err(DriverError::PageGone));
}

#[tokio::test]
async fn a_panic_in_a_script_leaves_the_page_usable() {
    let page = page().await;
    let beside = Arc::clone(&page);
    let panicked = tokio::spawn(async move { beside.evaluate("panic(\"on purpose\")").await }).await;
    assert!(panicked.unwrap_err().is_panic());
    assert_eq!(page.evaluate("count()").await, Ok(json!(1)));
}

#[tokio::test]
async fn a_script_ends_when_its_page_is_navigated_away() {
    let page = page().await;
    let (ended, _) = soon(async { tokio::join!(page.evaluate("hang()"), page.navigate(Navigation::To("http://a.test/"))) }).await;
    assert_eq!(ended, Err(DriverError::Navigated));
}

#[tokio::test]
async fn a_dialog_outlives_the_call_that_opened_it() {
    let page = page().await;
    assert!(timeout(Duration::from_millis(5), page.evaluate("confirm(\"sure?\")")).await.is_err());
    let open = DriverError::DialogOpen { kind: "confirm".into(), text: "sure?".into() };
    assert_eq!(page.navigate(Navigation::To("http://a.test/")).await, Err(open.clone()));
    assert_eq!(page.text().await, Err(open));
    page.answer_dialog(DialogAnswer::Dismiss).await.unwrap();
    assert_eq!(page.evaluate("1").await, Ok(json!(1)));
}

#[tokio::test]
async fn what_nobody_listens_to_is_bounded_and_blocks_nothing() {
    let page = page().await;
    for _ in 0..200 {
        assert_eq!(page.evaluate("crash()").await, Err(DriverError::PageCrashed));
        page.navigate(Navigation::Reload).await.unwrap();
    }
    let mut events = page.events();
    let mut heard = 0;
    while let Ok(event) = events.try_recv() {
        assert_eq!(event, PageEvent::Crashed);
        heard += 1;
    }
    assert_eq!(heard, 64);
}

#[tokio::test]
async fn a_new_daemon_gets_its_contexts_and_pages_back_at_their_urls() {
    let handle = |name: &str| Handle(name.to_owned());
    let record = |name: &str, url: &str| PageRecord { handle: handle(name), url: url.to_owned(), memento: None };
    let browser = FakeBrowser::new();
    let records = [record("fake-page-1", "https://a.test/x"), record("fake-page-2", "chrome://settings")];
    let found = browser.adopt_context(&handle("fake-ctx-old"), &ContextSpec::default(), &records).await.unwrap();
    assert_eq!(found.context.handle(), &handle("fake-ctx-old"));
    let pages: Vec<_> = found.pages.iter().map(|(name, page)| (name.0.as_str(), page.url())).collect();
    assert_eq!(pages, [("fake-page-1", "https://a.test/x".to_owned()), ("fake-page-2", "about:blank".to_owned())]);
    assert_eq!(found.pages[0].1.evaluate("count()").await, Ok(json!(1)));
}

#[tokio::test]
async fn windows_and_tabs_share_the_profiles_cookies() {
    let browser = FakeBrowser::new();
    let mut pages = Vec::new();
    for isolation in [Isolation::Window, Isolation::Tab, Isolation::Browser] {
        let context = browser.open_context(&ContextSpec { isolation, ..ContextSpec::default() }).await.unwrap();
        pages.push(context.open_page().await.unwrap());
    }
    pages[0].evaluate("document.cookie = \"a=1; path=/\"").await.unwrap();
    pages[1].evaluate("document.cookie = 'b=2'").await.unwrap();
    pages[1].evaluate("document.cookie = 'a=3'").await.unwrap();
    assert_eq!(pages[0].evaluate("document.cookie").await, Ok(json!("a=3; b=2")));
    assert_eq!(pages[2].evaluate("document.cookie").await, Ok(json!("")));
}

#[test]
fn cookies_are_bounded_in_number_and_size() {
    let jar = CookieJar::default();
    for n in 0..200 {
        jar.set(&format!("k{n}=v"), "a.test");
    }
    jar.set(&format!("big={}", "x".repeat(5000)), "a.test");
    let text = jar.text();
    assert!(text.starts_with("k20=v; ") && text.ends_with("; k199=v"), "{text}");
}
