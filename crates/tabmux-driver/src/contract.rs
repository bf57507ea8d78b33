//! What every driver must keep, as tests that take any browser. A driver runs them all with `contract_tests!`;
//! the scripts here are JavaScript that the fake browser understands too.
//!
//! `site` is the base of a web site, `http://host:port`, on which every path answers at once with a page whose cookies can be
//! set and whose title is the value of `?title=`, but `/download`, which is a file called `a.bin`. The fake browser needs no server for it.

mod copy;
mod storage;
mod wait;
mod worlds;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    Area, Browser, Context, ContextSpec, Cookie, Dialog, DialogAnswer, DriverError, ImageFormat, Navigation, Orientation, Page, PageEvent,
    PageRecord, Selector, Shot,
};

pub use copy::*;
pub use storage::*;
pub use wait::*;
pub use worlds::*;

/// How long any step may take. Generous, because it only matters when something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A script that never ends and leaves its page alive.
const HANG: &str = "new Promise(() => {})";

/// A selector that is one.
fn selector(text: &str) -> Selector {
    Selector::parse(text).expect("a selector")
}

/// Writes one `#[tokio::test]` per rule. Takes an expression that gives `(Arc<dyn Browser>, String)`, browser and site, and may await.
#[macro_export]
macro_rules! contract_tests {
    ($start:expr) => {
        $crate::contract_tests!($start;
            a_new_page_is_blank_and_handles_differ
            a_page_goes_where_it_is_sent
            history_goes_back_and_forward_and_no_further
            a_failed_navigation_says_why_and_the_page_lives_on
            cookies_stay_in_their_context
            pages_of_one_context_share_its_cookies
            a_script_that_throws_fails_with_its_text
            a_hanging_script_delays_no_other_page
            a_script_given_up_leaves_its_page_usable
            closing_never_waits_for_a_hanging_script
            closing_a_context_closes_its_pages_and_no_others
            a_closed_page_says_that_it_is_gone
            a_dialog_freezes_its_own_page_only
            a_dialog_is_answered_with_what_was_said
            a_dialog_that_is_not_open_cannot_be_answered
            the_log_is_taken_once_and_in_order
            a_living_context_is_found_again_with_its_pages
            a_page_that_a_page_opens_joins_its_context
            pages_opened_by_us_are_no_popups
            only_known_contexts_are_kept
            cookies_are_set_listed_and_forgotten_per_context
            a_page_can_be_pictured_and_printed
            what_a_page_asked_the_network_for_is_listed
            waiting_ends_when_the_page_shows_it
            waiting_goes_on_in_the_next_document
            waiting_ends_with_its_page_and_is_given_up_without_a_trace
            waiting_ends_when_a_script_holds_or_the_network_is_quiet
            waiting_tells_what_does_not_hold_yet
            storage_is_kept_per_origin_and_context
            a_context_begins_with_the_state_it_is_given
            downloads_go_to_their_contexts_own_directory
            two_contexts_can_see_opposite_worlds
            what_is_copied_stays_in_its_context
            files_need_a_chooser_or_an_input
            a_copy_is_logged_in_and_goes_its_own_way
            copies_that_open_at_once_share_one_reading
            a_copy_of_a_copy_is_one_of_the_first
            a_context_that_is_closed_is_no_source_any_more
            a_page_is_opened_as_another_was
            a_context_knows_where_it_has_been
        );
    };
    ($start:expr; $($rule:ident)+) => {
        $(
            #[tokio::test]
            async fn $rule() {
                let (browser, site) = $start;
                $crate::contract::$rule(browser, &site).await;
            }
        )+
    };
}

pub async fn a_new_page_is_blank_and_handles_differ(browser: Arc<dyn Browser>, _site: &str) {
    let (one, other) = (context(&browser).await, context(&browser).await);
    let pages = [page(&one).await, page(&one).await, page(&other).await];
    assert!(pages.iter().all(|page| page.url() == "about:blank"));
    assert_ne!(one.handle(), other.handle());
    for (at, page) in pages.iter().enumerate() {
        assert!(pages[at + 1..].iter().all(|later| later.handle() != page.handle()));
    }
}

pub async fn a_page_goes_where_it_is_sent(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    let url = format!("{site}/one?title=One");
    go(&page, Navigation::To(&url)).await;
    assert_eq!((page.url(), page.title()), (url.clone(), "One".to_owned()));
    assert_eq!(run(&page, "location.href").await, json!(url));
    assert_eq!(run(&page, "document.title").await, json!("One"));
    assert!(!soon(page.text()).await.expect("a page has a text").is_empty());
}

pub async fn history_goes_back_and_forward_and_no_further(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    let (one, two) = (format!("{site}/one"), format!("{site}/two"));
    go(&page, Navigation::To(&one)).await;
    go(&page, Navigation::To(&two)).await;
    for (step, url) in [(Navigation::Back, &one), (Navigation::Forward, &two), (Navigation::Reload, &two)] {
        go(&page, step).await;
        assert_eq!(&page.url(), url, "{step:?}");
    }
    let error = soon(page.navigate(Navigation::Forward)).await.expect_err("there is nothing ahead");
    assert!(matches!(error, DriverError::NoHistory(_)), "{error:?}");
    assert_eq!(page.url(), two);
}

pub async fn a_failed_navigation_says_why_and_the_page_lives_on(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    let error = soon(page.navigate(Navigation::To("https://unreachable.test/"))).await.expect_err("there is no such host");
    assert!(matches!(&error, DriverError::NavigationFailed(text) if text.contains("net::ERR_")), "{error:?}");
    go(&page, Navigation::To(&format!("{site}/after"))).await;
}

pub async fn cookies_stay_in_their_context(browser: Arc<dyn Browser>, site: &str) {
    let (one, other) = (page(&context(&browser).await).await, page(&context(&browser).await).await);
    for (page, cookie) in [(&one, "document.cookie = \"agent1_token=secret123\""), (&other, "document.cookie = \"agent2_token=xyz789\"")] {
        go(page, Navigation::To(&format!("{site}/"))).await;
        run(page, cookie).await;
    }
    assert_eq!(run(&one, "document.cookie").await, json!("agent1_token=secret123"));
    assert_eq!(run(&other, "document.cookie").await, json!("agent2_token=xyz789"));
}

pub async fn pages_of_one_context_share_its_cookies(browser: Arc<dyn Browser>, site: &str) {
    let context = context(&browser).await;
    let (one, other) = (page(&context).await, page(&context).await);
    for page in [&one, &other] {
        go(page, Navigation::To(&format!("{site}/"))).await;
    }
    run(&one, "document.cookie = \"seen=yes\"").await;
    assert_eq!(run(&other, "document.cookie").await, json!("seen=yes"));
}

pub async fn a_script_that_throws_fails_with_its_text(browser: Arc<dyn Browser>, _site: &str) {
    let page = page(&context(&browser).await).await;
    for script in ["throw(\"no milk today\")", "throw('no milk today')"] {
        let error = soon(page.evaluate(script)).await.expect_err("the script throws");
        assert!(matches!(&error, DriverError::ScriptFailed(text) if text.contains("no milk today")), "{error:?}");
    }
    assert_eq!(run(&page, "7").await, json!(7));
}

pub async fn a_hanging_script_delays_no_other_page(browser: Arc<dyn Browser>, _site: &str) {
    let one = context(&browser).await;
    let (hung, beside, elsewhere) = (page(&one).await, page(&one).await, page(&context(&browser).await).await);
    tokio::select! {
        value = hung.evaluate(HANG) => panic!("a hanging script ended with {value:?}"),
        () = async {
            assert_eq!(run(&beside, "1").await, json!(1));
            assert_eq!(run(&elsewhere, "2").await, json!(2));
        } => {}
    }
}

pub async fn a_script_given_up_leaves_its_page_usable(browser: Arc<dyn Browser>, _site: &str) {
    let page = page(&context(&browser).await).await;
    let given_up = tokio::time::timeout(Duration::from_millis(20), page.evaluate(HANG)).await;
    assert!(given_up.is_err(), "a hanging script ended with {given_up:?}");
    assert_eq!(run(&page, "[1, \"two\"]").await, json!([1, "two"]));
}

pub async fn closing_never_waits_for_a_hanging_script(browser: Arc<dyn Browser>, _site: &str) {
    let page = page(&context(&browser).await).await;
    let (ended, closed) = soon(async { tokio::join!(page.evaluate(HANG), page.close()) }).await;
    assert_eq!((ended, closed), (Err(DriverError::PageGone), Ok(())));
}

pub async fn closing_a_context_closes_its_pages_and_no_others(browser: Arc<dyn Browser>, _site: &str) {
    let (one, other) = (context(&browser).await, context(&browser).await);
    let (first, second, foreign) = (page(&one).await, page(&one).await, page(&other).await);
    let (ended, closed) = soon(async { tokio::join!(first.evaluate(HANG), one.close()) }).await;
    assert_eq!((ended, closed), (Err(DriverError::PageGone), Ok(())));
    assert_eq!(soon(second.evaluate("1")).await, Err(DriverError::PageGone));
    assert!(soon(one.open_page()).await.is_err(), "a closed context opens no page");
    assert_eq!(run(&foreign, "1").await, json!(1));
}

pub async fn a_closed_page_says_that_it_is_gone(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    let mut events = page.events();
    soon(page.close()).await.expect("a page closes");
    assert_eq!(soon(page.evaluate("1")).await, Err(DriverError::PageGone));
    assert_eq!(soon(page.text()).await, Err(DriverError::PageGone));
    assert_eq!(soon(page.navigate(Navigation::To(&format!("{site}/")))).await, Err(DriverError::PageGone));
    assert_eq!(soon(events.recv()).await, None, "the listener hears the end, and no news of what its own side did");
}

pub async fn a_dialog_freezes_its_own_page_only(browser: Arc<dyn Browser>, _site: &str) {
    let one = context(&browser).await;
    let (asking, beside) = (page(&one).await, page(&one).await);
    let mut events = asking.events();
    let expected = Dialog { kind: "alert".into(), text: "stop".into() };
    let (value, ()) = soon(async {
        tokio::join!(asking.evaluate("alert(\"stop\")"), async {
            assert_eq!(events.recv().await, Some(PageEvent::DialogOpened(expected.clone())));
            assert_eq!(asking.dialog(), Some(expected.clone()));
            let frozen = asking.evaluate("1").await;
            assert_eq!(frozen, Err(DriverError::DialogOpen { kind: "alert".into(), text: "stop".into() }));
            assert_eq!(run(&beside, "2").await, json!(2));
            assert_eq!(asking.answer_dialog(DialogAnswer::Accept { prompt: None }).await, Ok(expected.clone()));
        })
    })
    .await;
    assert_eq!((value, asking.dialog()), (Ok(Value::Null), None));
    assert_eq!(run(&asking, "3").await, json!(3));
}

pub async fn a_dialog_is_answered_with_what_was_said(browser: Arc<dyn Browser>, _site: &str) {
    let page = page(&context(&browser).await).await;
    let mut events = page.events();
    let accept = |prompt: Option<&str>| DialogAnswer::Accept { prompt: prompt.map(str::to_owned) };
    let cases = [
        ("confirm(\"sure?\")", accept(None), json!(true)),
        ("confirm(\"sure?\")", DialogAnswer::Dismiss, json!(false)),
        ("prompt(\"name?\")", accept(Some("Ann")), json!("Ann")),
        ("prompt(\"name?\")", DialogAnswer::Dismiss, Value::Null),
    ];
    for (script, answer, value) in cases {
        let (got, answered) = soon(async {
            tokio::join!(page.evaluate(script), async {
                events.recv().await;
                page.answer_dialog(answer).await
            })
        })
        .await;
        assert!(answered.is_ok(), "{answered:?}");
        assert_eq!(got, Ok(value), "{script}");
    }
}

pub async fn a_dialog_that_is_not_open_cannot_be_answered(browser: Arc<dyn Browser>, _site: &str) {
    let page = page(&context(&browser).await).await;
    assert_eq!(page.dialog(), None);
    assert_eq!(soon(page.answer_dialog(DialogAnswer::Dismiss)).await, Err(DriverError::NoDialog));
}

pub async fn the_log_is_taken_once_and_in_order(browser: Arc<dyn Browser>, _site: &str) {
    let page = page(&context(&browser).await).await;
    run(&page, "console.log(\"first\")").await;
    run(&page, "console.error(\"second\")").await;
    let mut entries = Vec::new();
    soon(async {
        // The driver says nothing when a log line arrives, and it may arrive after its script ended.
        while entries.len() < 2 {
            entries.extend(page.take_log().0);
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    let read: Vec<_> = entries.iter().map(|entry| (entry.level.as_str(), entry.text.as_str())).collect();
    assert_eq!(read, [("log", "first"), ("error", "second")]);
    assert_eq!(page.take_log(), (vec![], 0));
}

pub async fn a_living_context_is_found_again_with_its_pages(browser: Arc<dyn Browser>, site: &str) {
    let made = context(&browser).await;
    let (kept, closed) = (page(&made).await, page(&made).await);
    let url = format!("{site}/kept");
    go(&kept, Navigation::To(&url)).await;
    run(&kept, "document.cookie = \"still=here\"").await;
    soon(closed.close()).await.expect("a page closes");
    let records = [&kept, &closed].map(|page| PageRecord::of(&**page));
    let found = soon(browser.adopt_context(made.handle(), &ContextSpec::default(), &records)).await.expect("the context lives");
    assert_eq!(found.context.handle(), made.handle());
    let [(handle, page)] = &found.pages[..] else { panic!("one page lives: {:?}", found.pages) };
    assert_eq!((handle, page.handle(), page.url()), (kept.handle(), kept.handle(), url));
    assert_eq!(run(page, "document.cookie").await, json!("still=here"));
}

pub async fn a_page_that_a_page_opens_joins_its_context(browser: Arc<dyn Browser>, site: &str) {
    let (one, other) = (context(&browser).await, context(&browser).await);
    let (mut popups, mut elsewhere) = (one.popups(), other.popups());
    let opener = page(&one).await;
    go(&opener, Navigation::To(&format!("{site}/opener"))).await;
    run(&opener, "document.cookie = \"of=opener\"").await;
    let url = format!("{site}/popup");
    // Its own value is a window, which is no JSON everywhere.
    let _ = soon(opener.evaluate(&format!("window.open(\"{url}\")"))).await;
    let popup = soon(popups.recv()).await.expect("the context hears of it");
    assert_eq!(popup.opener.as_ref(), Some(opener.handle()));
    assert_ne!(popup.page.handle(), opener.handle());
    go(&popup.page, Navigation::To(&url)).await;
    assert_eq!(run(&popup.page, "document.cookie").await, json!("of=opener"));
    assert!(elsewhere.try_recv().is_err(), "nobody else hears of it");
    soon(popup.page.close()).await.expect("a popup closes");
    assert_eq!(run(&opener, "1").await, json!(1));
}

pub async fn pages_opened_by_us_are_no_popups(browser: Arc<dyn Browser>, site: &str) {
    let context = context(&browser).await;
    let mut popups = context.popups();
    let pages: [Arc<dyn Page>; 3] = tokio::join!(page(&context), page(&context), page(&context)).into();
    go(&pages[0], Navigation::To(&format!("{site}/"))).await;
    // Whatever came of the three is before what this one opens.
    let _ = soon(pages[0].evaluate(&format!("window.open(\"{site}/popup\")"))).await;
    let popup = soon(popups.recv()).await.expect("the context hears of it");
    assert!(pages.iter().all(|page| page.handle() != popup.page.handle()));
}

pub async fn only_known_contexts_are_kept(browser: Arc<dyn Browser>, _site: &str) {
    let (known, other) = (context(&browser).await, context(&browser).await);
    let (kept, gone) = (page(&known).await, page(&other).await);
    let mut events = gone.events();
    assert_eq!(soon(browser.keep_only(std::slice::from_ref(known.handle()))).await, Ok(1), "the others close");
    // Their pages end, with or without a word of it.
    while soon(events.recv()).await.is_some() {}
    assert_eq!(soon(gone.evaluate("1")).await, Err(DriverError::PageGone));
    assert_eq!(run(&kept, "1").await, json!(1));
}

pub async fn cookies_are_set_listed_and_forgotten_per_context(browser: Arc<dyn Browser>, site: &str) {
    let (one, other) = (context(&browser).await, context(&browser).await);
    let host = site.trim_start_matches("http://").split(':').next().expect("a site has a host").to_owned();
    let cookie = Cookie { name: "agent".into(), value: "one".into(), domain: host, path: "/".into(), http_only: true, ..Cookie::default() };
    assert_eq!(soon(one.set_cookies(std::slice::from_ref(&cookie))).await, Ok(vec![]), "a good cookie is taken");
    let listed = soon(one.cookies()).await.expect("cookies are listed");
    assert_eq!(listed.iter().map(|cookie| (&*cookie.name, &*cookie.value, cookie.http_only)).collect::<Vec<_>>(), [("agent", "one", true)]);
    assert_eq!(soon(other.cookies()).await, Ok(vec![]));
    // A bad one loses itself only, also where one of its name is there.
    let bad = Cookie { value: "x".repeat(5000), ..cookie.clone() };
    let named = |name: &str| Cookie { name: name.into(), ..cookie.clone() };
    assert_eq!(soon(one.set_cookies(&[named("first"), bad, named("last")])).await, Ok(vec![1]));
    assert_eq!(soon(one.cookies()).await.expect("cookies are listed").len(), 3);
    soon(one.clear_cookies()).await.expect("cookies are forgotten");
    assert_eq!(soon(one.cookies()).await, Ok(vec![]));
}

pub async fn a_page_can_be_pictured_and_printed(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    go(&page, Navigation::To(&format!("{site}/"))).await;
    for (format, start) in [(ImageFormat::Png, "iVBOR"), (ImageFormat::Jpeg { quality: 60 }, "/9j/")] {
        for area in [Area::Viewport, Area::FullPage] {
            let image = soon(page.screenshot(&Shot { area, format, max_side: Some(100) })).await.expect("a page can be pictured");
            assert!(image.base64.starts_with(start) && (1..=100).contains(&image.width) && (1..=100).contains(&image.height), "{image:?}");
        }
    }
    let missing = Shot { area: Area::Element(selector("#nowhere")), format: ImageFormat::Png, max_side: None };
    assert!(matches!(soon(page.screenshot(&missing)).await, Err(DriverError::ElementNotFound { .. })));
    assert!(soon(page.pdf(Orientation::Portrait)).await.expect("a page can be printed").starts_with("JVBER"));
}

pub async fn what_a_page_asked_the_network_for_is_listed(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    let url = format!("{site}/listed");
    go(&page, Navigation::To(&url)).await;
    let (requests, lost) = page.requests();
    let document = requests.iter().find(|request| request.url == url).expect("the document was asked for");
    assert_eq!((&*document.method, &*document.kind, document.status, lost), ("GET", "document", Some(200), 0));
}

pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("a driver answers in time")
}

async fn context(browser: &Arc<dyn Browser>) -> Arc<dyn Context> {
    soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens")
}

async fn page(context: &Arc<dyn Context>) -> Arc<dyn Page> {
    soon(context.open_page()).await.expect("a page opens")
}

async fn go(page: &Arc<dyn Page>, to: Navigation<'_>) {
    soon(page.navigate(to)).await.expect("the page goes there");
}

async fn run(page: &Arc<dyn Page>, script: &str) -> Value {
    soon(page.evaluate(script)).await.expect("the script runs")
}
