//! Pages that spin in their own scripts: their owner leaves, reloads or closes them, and nobody else notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_driver::{Browser, ContextSpec, Dialog, DialogAnswer, Navigation, Page, PageEvent};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use crate::support::{self, page, response, serve};

/// A page that is not freed stays as it is for ever, so this may be long.
const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("a browser answers in time")
}

/// Says so before it begins.
const SPIN: &str = "const ask = new XMLHttpRequest(); ask.open('GET', '/spins', false); ask.send(); while (true);";

/// `/inline` spins while it is read, `/timer` once it is loaded, each only when it is asked for the first time.
async fn site() -> (String, Arc<Notify>) {
    let (spins, inline, timer) = (Arc::new(Notify::new()), AtomicUsize::new(0), AtomicUsize::new(0));
    let said = Arc::clone(&spins);
    let url = serve(move |request| {
        let first = |asked: &AtomicUsize| asked.fetch_add(1, Ordering::SeqCst) == 0;
        match request.split(' ').nth(1).unwrap_or_default() {
            "/spins" => {
                said.notify_one();
                response("200 OK", "")
            }
            "/inline" if first(&inline) => page(&format!("<script>{SPIN}</script>")),
            "/timer" if first(&timer) => page(&format!("<script>onload = () => setTimeout(() => {{ {SPIN} }})</script>")),
            "/calm?script" => page("calm<script>first = 'ran'</script>"),
            _ => page("calm"),
        }
    });
    (url.await, spins)
}

async fn new_page(browser: &dyn Browser) -> Arc<dyn Page> {
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    soon(context.open_page()).await.expect("a page opens")
}

/// Whoever called is told by the deadline; here it has passed as soon as the page spins.
async fn made_to_spin(page: &dyn Page, url: &str, spins: &Notify) {
    let going = async {
        // One that spins while it is read never arrives.
        let _ = page.navigate(Navigation::To(url)).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = going => {}
        () = soon(spins.notified()) => {}
    }
}

#[tokio::test]
async fn a_page_that_spins_in_its_own_script_can_be_left_reloaded_and_closed() {
    let browser = support::chromium().await;
    for script in ["inline", "timer"] {
        for way in ["there", "reload", "back", "close"] {
            let (site, spins) = site().await;
            let (stuck, calm) = (new_page(&*browser).await, new_page(&*browser).await);
            for page in [&stuck, &calm] {
                soon(page.navigate(Navigation::To(&format!("{site}/before")))).await.expect("the page goes there");
            }
            made_to_spin(&*stuck, &format!("{site}/{script}"), &spins).await;
            assert_eq!(soon(calm.evaluate("1 + 1")).await, Ok(json!(2)), "others do not notice");
            let there = format!("{site}/there");
            let (gone, at) = match way {
                "there" => (soon(stuck.navigate(Navigation::To(&there))).await, "/there"),
                "reload" => (soon(stuck.navigate(Navigation::Reload)).await, if script == "timer" { "/timer" } else { "/inline" }),
                "back" => (soon(stuck.navigate(Navigation::Back)).await, "/before"),
                _ => {
                    soon(stuck.close()).await.expect("it closes");
                    continue;
                }
            };
            assert_eq!((gone, soon(stuck.evaluate("location.pathname")).await), (Ok(()), Ok(json!(at))), "{script}, {way}");
        }
    }
}

/// It does not answer either, and yet nothing spins: its scripts, and those of the page it is sent to, are left alone.
/// To end the script that runs is not enough there: the next one begins before anything else can be done to the page.
#[tokio::test]
async fn a_page_whose_spinning_begins_again_and_again_can_be_left_and_reloaded() {
    let (site, spins) = site().await;
    let loops = [
        format!("setInterval(() => {{ {SPIN} }}, 1); 1"),
        format!("(function again() {{ setTimeout(again); setTimeout(() => {{ {SPIN} }}) }})(); 1"),
        format!("onmessage = () => {{ postMessage(1); {SPIN} }}; postMessage(1); 1"),
    ];
    let elsewhere = format!("{}/calm?script", site.replace("127.0.0.1", "localhost"));
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let page = new_page(&*browser).await;
        soon(page.navigate(Navigation::To(&format!("{site}/calm?script")))).await.expect("it goes there");
        for script in &loops {
            for to in [Navigation::Reload, Navigation::To(&elsewhere), Navigation::Back] {
                soon(page.evaluate(script)).await.expect("it begins");
                soon(spins.notified()).await;
                soon(page.navigate(to)).await.unwrap_or_else(|error| panic!("{want:?} {to:?} {script}: {error}"));
                assert_eq!(soon(page.evaluate("first")).await, Ok(json!("ran")), "{want:?} {to:?} {script}");
            }
        }
    }
}

/// The script that held up the call was ended, and its timer began it again; between the two the page answers.
#[tokio::test]
async fn a_page_that_goes_on_spinning_after_a_call_was_given_up_can_be_left() {
    let (site, _) = site().await;
    let browser = support::chromium().await;
    let page = new_page(&*browser).await;
    let there = format!("{site}/calm?script");
    for to in [Navigation::To(&there), Navigation::Reload] {
        soon(page.navigate(Navigation::To(&there))).await.expect("it goes there");
        soon(page.evaluate(&format!("setInterval(() => {{ {SPIN} }}, 1); 1"))).await.expect("it begins");
        // Until it spins it answers.
        soon(async { while tokio::time::timeout(Duration::from_millis(100), page.evaluate("1")).await.is_ok() {} }).await;
        soon(page.navigate(to)).await.unwrap_or_else(|error| panic!("{to:?}: {error}"));
        assert_eq!(soon(page.evaluate("first")).await, Ok(json!("ran")), "{to:?}");
    }
}

#[tokio::test]
async fn a_page_that_is_on_its_way_to_a_silent_server_can_be_sent_elsewhere() {
    let browser = support::chromium().await;
    let (site, _) = site().await;
    let silent = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let nowhere = format!("http://{}/", silent.local_addr().expect("a bound socket has an address"));
    let page = new_page(&*browser).await;
    soon(page.navigate(Navigation::To(&format!("{site}/here")))).await.expect("the page goes there");
    soon(page.evaluate(&format!("setTimeout(() => location = '{nowhere}'), 0"))).await.expect("it runs");
    let connection = soon(silent.accept()).await.expect("the browser asks");
    let there = format!("{site}/there");
    assert_eq!(soon(page.navigate(Navigation::To(&there))).await, Ok(()));
    assert_eq!(soon(page.evaluate("location.pathname")).await, Ok(json!("/there")));
    drop(connection);
}

/// That no script may run meanwhile would hold for every later document; and a loop that was ended only once begins again.
#[tokio::test]
async fn a_page_whose_freeing_was_given_up_halfway_runs_its_scripts_again() {
    let (site, spins) = site().await;
    let browser = support::chromium().await;
    let tap = browser.connection().tap(1000);
    let page = new_page(&*browser).await;
    let there = format!("{site}/calm?script");
    soon(page.navigate(Navigation::To(&there))).await.expect("it goes there");
    soon(page.evaluate(&format!("setInterval(() => {{ {SPIN} }}, 1); 1"))).await.expect("it begins");
    soon(spins.notified()).await;
    let hushed = async {
        while !tap.sent().iter().any(|sent| sent.method == "Emulation.setScriptExecutionDisabled") {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        gone = page.navigate(Navigation::To(&there)) => panic!("it was being freed, and yet: {gone:?}"),
        () = soon(hushed) => {}
    }
    soon(page.navigate(Navigation::To(&there))).await.expect("it goes there");
    assert_eq!(soon(page.evaluate("first")).await, Ok(json!("ran")));
}

/// What a page does for half a second and more is not ended by a move within it.
#[tokio::test]
async fn a_busy_page_is_not_disturbed_by_a_move_within_it() {
    let browser = support::chromium().await;
    let (site, _) = site().await;
    let page = new_page(&*browser).await;
    soon(page.navigate(Navigation::To(&format!("{site}/here")))).await.expect("the page goes there");
    let busy = "setTimeout(() => { const end = Date.now() + 2500; while (Date.now() < end); document.title = 'done' }), 0";
    soon(page.evaluate(busy)).await.expect("it runs");
    soon(page.navigate(Navigation::To(&format!("{site}/here#part")))).await.expect("the page goes there");
    assert_eq!(soon(page.evaluate("[document.title, location.hash]")).await, Ok(json!(["done", "#part"])));
}

/// S4.23: nothing answers a dialog for its owner, and whoever has other pages does not wait.
#[tokio::test]
async fn a_page_that_asks_or_spins_while_it_comes_up_is_its_openers_and_holds_up_nobody() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let (spins, answered) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (says_spins, says_answered) = (Arc::clone(&spins), Arc::clone(&answered));
        let site = serve(move |request| match request.split(' ').nth(1).unwrap_or_default() {
            // A moment later: of a dialog that opened before anybody was attached the browser never tells.
            "/asks" => {
                page("<script>for (const end = Date.now() + 300; Date.now() < end;); fetch('/answered?' + confirm('Delete?'))</script>")
            }
            "/spins" => page(&format!("<script>{}</script>", SPIN.replace("/spins", "/says"))),
            path @ ("/says" | "/answered?true") => {
                if path == "/says" {
                    says_spins.notify_one();
                } else {
                    says_answered.notify_one();
                }
                response("200 OK", "")
            }
            _ => page("<a id=asks target=_blank href=/asks>asks</a> <a id=spins target=_blank href=/spins>spins</a>"),
        })
        .await;
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let mut popups = context.popups();
        let opener = soon(context.open_page()).await.expect("a page opens");
        soon(opener.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");

        soon(opener.evaluate("document.querySelector('#asks').click()")).await.expect("it runs");
        let asks = soon(popups.recv()).await.expect("it joins").page;
        let asked = Dialog { kind: "confirm".into(), text: "Delete?".into() };
        assert_eq!(soon(asks.events().recv()).await, Some(PageEvent::DialogOpened(asked.clone())), "{want:?}");
        assert_eq!(soon(asks.answer_dialog(DialogAnswer::Accept { prompt: None })).await, Ok(asked), "{want:?}");
        soon(answered.notified()).await;

        soon(opener.evaluate("document.querySelector('#spins').click()")).await.expect("it runs");
        soon(spins.notified()).await;
        soon(context.open_page()).await.expect("another page opens");
        let spins = soon(popups.recv()).await.expect("it joins").page;
        assert_eq!(spins.url(), format!("{site}/spins"), "{want:?}");
        assert_eq!(soon(opener.evaluate("1 + 1")).await, Ok(json!(2)), "{want:?}");
        soon(spins.close()).await.expect("it closes");
    }
}
