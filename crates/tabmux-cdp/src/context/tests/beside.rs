//! Pages that are made beside each other in one profile: the browser lists each before it says whom it made it for.

use super::*;

/// One of ours is being made, and the browser lists it already; also a page that one of ours opened, which has not joined yet.
async fn being_made(browser: &Arc<CdpBrowser>, played: &Played) -> tokio::task::JoinHandle<Arc<dyn Context>> {
    let context = context(browser, Isolation::Tab).await;
    context.open_page().await.expect("a page opens");
    let unnamed = |mut info: Value| {
        info["url"] = json!("");
        info
    };
    played.0.inner.lock().unwrap().targets = vec![unnamed(info("T2", None)), unnamed(info("P9", Some("T1")))];
    played.withholds("Target.createTarget");
    let opening = tokio::spawn(async move {
        context.open_page().await.expect("another page opens");
        context
    });
    played.hears_times("Target.createTarget", 2).await;
    opening
}

/// Whoever looks too early has looked by then, since time passes only while everybody waits.
async fn relents_late(played: &Played) {
    let _ = tokio::time::timeout(Duration::from_secs(1), std::future::pending::<()>()).await;
    played.relents().await;
}

/// S2.5, S4.8: a window that somebody else's page is just coming up in is not the browser's first one.
#[tokio::test(start_paused = true)]
async fn the_page_that_another_session_is_just_getting_is_not_the_browsers_first_window() {
    let (browser, played) = Played::start().await;
    browser.is_fresh();
    let opening = being_made(&browser, &played).await;
    let beside = context(&browser, Isolation::Window).await;
    let windows = async { beside.windows().expect("it has windows").open_page_at(Place::New(WindowBounds::default())).await };
    let (opened, ()) = futures::join!(windows, relents_late(&played));
    let (page, _) = opened.expect("a window opens");
    assert_eq!(page.handle().0, "T3");
    drop(opening.await.expect("it goes on"));
}

/// S2.5, S4.18
#[tokio::test(start_paused = true)]
async fn without_window_scope_pages_of_other_sessions_are_no_strangers_while_they_are_made() {
    let (browser, played) = Played::start().await;
    let opening = being_made(&browser, &played).await;
    let beside = context(&browser, Isolation::Window).await;
    let taking = async { beside.windows().expect("it has windows").take_strangers(Strangers::default()).await };
    let (taken, ()) = futures::join!(taking, relents_late(&played));
    assert_eq!(taken.expect("it looks").len(), 0);
    drop(opening.await.expect("it goes on"));
}
