//! Pages that log without end: others do not wait behind them, and whoever has the page is told what became of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tabmux_driver::{Browser, ContextSpec, LogEntry, Page};

use crate::support;

const PATIENCE: Duration = Duration::from_secs(30);

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("a browser answers in time")
}

async fn new_page(browser: &dyn Browser) -> Arc<dyn Page> {
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    soon(context.open_page()).await.expect("a page opens")
}

fn is_ours(entry: &LogEntry) -> bool {
    entry.level == "error" && entry.text.starts_with("tabmux ended a script of this page")
}

/// Both one loop and one that a timer begins again. Nobody calls the page meanwhile.
#[tokio::test]
async fn a_page_that_logs_without_a_pause_is_ended_and_says_so_and_others_go_on() {
    let browser = support::chromium().await;
    let (loud, other) = (new_page(&*browser).await, new_page(&*browser).await);
    for script in ["setTimeout(() => { for (;;) console.error('l') }), 1", "setInterval(() => { for (;;) console.log('l') }), 1"] {
        soon(loud.evaluate(script)).await.expect("it begins");
        let ended = async {
            while !loud.take_log().0.iter().any(is_ours) {
                assert_eq!(other.evaluate("1 + 1").await, Ok(json!(2)));
            }
        };
        soon(ended).await;
        assert_eq!(soon(loud.evaluate("1 + 1")).await, Ok(json!(2)), "{script}");
    }
}

/// It logs more than anybody reads, and answers.
#[tokio::test]
async fn a_page_that_logs_much_at_once_or_pauses_between_its_lines_is_left_alone() {
    let browser = support::chromium().await;
    let page = new_page(&*browser).await;
    let dump = "for (let n = 0; n < 5000; n++) console.log(n); const end = Date.now() + 1500; while (Date.now() < end); 'done'";
    assert_eq!(soon(page.evaluate(dump)).await, Ok(json!("done")));
    let pauses = "new Promise(done => { let n = 0; const more = setInterval(() => {
        for (let line = 0; line < 50; line++) console.log(line);
        if (++n === 600) { clearInterval(more); done(n); }
    }, 1) })";
    assert_eq!(soon(page.evaluate(pauses)).await, Ok(json!(600)));
    let (log, lost) = page.take_log();
    assert_eq!((log.len() as u64 + lost, log.iter().any(is_ours)), (35_000, false));
}
