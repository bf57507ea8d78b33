//! Contexts that are slow, fail or panic: the session is over, its seat is free and nothing is left.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde_json::{Map, json};
use tabmux_core::Code;
use tabmux_tools::{OpenSession, Run};

use crate::hub::CallerOf;
use crate::testing::{House, Mood, eventually};

/// S3.25
#[tokio::test]
async fn a_context_that_fails_to_open_ends_the_session_for_every_waiting_call() {
    let (house, browser) = House::stubborn();
    browser.opens(&[Mood::Fail, Mood::Panic]);
    let agent = house.agent("a");
    let first = agent.begin("navigate", json!({"url": "http://a.test/"})).await;
    let second = agent.begin("navigate", json!({"url": "http://b.test/"})).await;
    assert_eq!(first.await.unwrap().unwrap_err().code, Code::BrowserCrashed);
    assert_eq!(second.await.unwrap().unwrap_err().code, Code::BrowserCrashed);
    assert_eq!((house.sessions(), browser.open()), (0, 0));
    assert_eq!(agent.code("start_browser", json!({"sessionId": "s"})).await, Code::Internal, "a panic in the driver");
    assert_eq!((house.sessions(), browser.open()), (0, 0));
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    eventually("the tasks of the failed ones are gone", || house.hub.lock().sessions.len() == 1).await;
}

/// S3.25
#[tokio::test]
async fn a_failed_first_navigation_rolls_the_session_back() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    let fault = agent.fault("start_browser", json!({"sessionId": "s", "navigationUrl": "http://fail.test/"})).await;
    assert_eq!(
        fault.to_string(),
        "[navigation_failed] net::ERR_NAME_NOT_RESOLVED at http://fail.test/. No session was started. Check the URL, then open it again."
    );
    assert_eq!(agent.fault("read_text", json!({})).await.message, "No session: none active.");
    eventually("nothing is left", || house.sessions() == 0 && browser.open() == 0).await;
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
}

/// A page that is there to go on with is not a failed opening: what the fault says to do next can be done.
#[tokio::test(start_paused = true)]
async fn a_session_whose_first_page_asks_loads_long_or_downloads_is_kept() {
    let house = House::new();
    let agent = house.agent("a");
    let fault = agent.fault("start_browser", json!({"sessionId": "asks", "navigationUrl": "http://a.test/?alert=hi"})).await;
    assert_eq!(
        fault.to_string(),
        "[dialog_open] A dialog is open (alert): \"hi\". Session 'asks' was started and is kept. Answer it with handle_dialog, then go on."
    );
    agent.ok("handle_dialog", json!({"sessionId": "asks", "accept": true})).await;
    let slow = json!({"sessionId": "slow", "navigationUrl": "http://a.test/?delay=60000", "timeout": 1000});
    let fault = agent.fault("start_browser", slow).await;
    assert_eq!((fault.code, fault.message.ends_with("Session 'slow' was started and is kept.")), (Code::Timeout, true), "{fault}");
    agent.ok("snapshot", json!({"sessionId": "slow"})).await;
    let fault = agent.fault("start_browser", json!({"sessionId": "file", "navigationUrl": "http://a.test/download"})).await;
    assert_eq!(fault.code, Code::NavigationFailed);
    let listed = agent.ok("downloads", json!({"sessionId": "file", "wait": true})).await;
    assert!(listed.text.contains("1 download"), "{}", listed.text);
}

/// With no page at all, the way out does not lead into a session that is gone.
#[tokio::test]
async fn a_session_that_was_not_there_in_time_is_undone_and_says_so() {
    let (house, browser) = House::stubborn();
    browser.opens(&[Mood::Hang]);
    let agent = house.agent("a");
    let late = agent.begin("start_browser", json!({"sessionId": "s", "navigationUrl": "http://a.test/", "timeout": 1000})).await;
    eventually("the browser was asked", || browser.asked() == 1).await;
    tokio::time::pause();
    let fault = late.await.unwrap().unwrap_err();
    assert_eq!((fault.code, fault.hint.as_str()), (Code::Timeout, "Start it again with a longer timeout (ms, at most 600000)."));
    assert!(fault.message.ends_with("No session was started."), "{fault}");
    assert_eq!(agent.fault("read_text", json!({})).await.message, "No session: none active.");
}

/// S3.23: closing a session that is being opened leaves nothing, whether the opening ends or not.
#[tokio::test]
async fn closing_during_the_opening_leaves_no_session_and_no_context() {
    for mood in [Mood::Wait, Mood::Hang] {
        let (house, browser) = House::stubborn();
        browser.opens(&[mood]);
        let agent = house.agent("a");
        let opening = agent.begin("start_browser", json!({"sessionId": "s"})).await;
        eventually("the browser was asked", || browser.asked() == 1).await;
        let closing = agent.begin("close_session", json!({"sessionId": "s"})).await;
        assert_eq!(opening.await.unwrap().unwrap_err().code, Code::SessionClosed);
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
        if mood == Mood::Wait {
            browser.let_go();
        }
        closing.await.unwrap().unwrap();
        eventually("only the second one is left", || house.sessions() == 1 && browser.open() == 1).await;
        eventually("its task too", || house.hub.lock().sessions.len() == 1).await;
    }
}

/// S3.23: also in the moment between the session and its first page, and when its name is another's by then.
#[tokio::test]
async fn what_is_closed_before_its_first_page_is_told_as_closed() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    let (caller, named) = (CallerOf::of(agent.client), OpenSession { name: Some("s".into()), ..OpenSession::default() });
    let Some(Run::Page(new_page)) = tabmux_tools::find("new_page").map(|tool| tool.run) else { panic!("new_page is a page's tool") };
    for taken in [false, true] {
        let first = house.hub.reserve(&caller, &named).unwrap().uuid;
        agent.ok("close_session", json!({"sessionId": "s"})).await;
        if taken {
            agent.ok("start_browser", json!({"sessionId": "s"})).await;
        }
        let deadline = tokio::time::Instant::now() + Duration::from_secs(30);
        let fault = house.hub.run_inside(&caller, first, new_page, Map::new(), deadline).await.unwrap_err();
        assert_eq!((fault.code, browser.open()), (Code::SessionClosed, usize::from(taken)), "{fault}");
    }
    let listed = agent.ok("list_pages", json!({})).await.structured.unwrap();
    assert_eq!(listed["pages"].as_array().map(Vec::len), Some(1), "the other one has its own page only: {listed}");
}

/// A slow browser does not hold up other sessions, and the call that waits for it keeps its deadline.
#[tokio::test]
async fn a_slow_opening_holds_up_nobody_else() {
    let (house, browser) = House::stubborn();
    browser.opens(&[Mood::Wait]);
    let agent = house.agent("a");
    let slow = agent.begin("navigate", json!({"url": "http://a.test/", "timeout": 1000})).await;
    eventually("the browser was asked", || browser.asked() == 1).await;
    let other = house.agent("b");
    other.ok("navigate", json!({"url": "http://b.test/"})).await;
    tokio::time::pause();
    assert_eq!(slow.await.unwrap().unwrap_err().code, Code::Timeout);
    tokio::time::resume();
    browser.let_go();
    let next = agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    assert_eq!(next.result["tabId"], "t1", "the browser went on starting for the next call");
    assert_eq!(browser.asked(), 2);
}

/// An opening that never ends is given up after a minute.
#[tokio::test]
async fn an_opening_that_hangs_is_given_up() {
    let (house, browser) = House::stubborn();
    browser.opens(&[Mood::Hang]);
    let agent = house.agent("a");
    let hangs = agent.begin("navigate", json!({"url": "http://a.test/", "timeout": 600_000})).await;
    eventually("the browser was asked", || browser.asked() == 1).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    assert_eq!(hangs.await.unwrap().unwrap_err().code, Code::Timeout);
    assert!((59..=60).contains(&began.elapsed().as_secs()));
    eventually("nothing is left", || house.sessions() == 0).await;
}

/// A driver that hangs, fails or panics in closing does not keep its caller waiting, nor is what it holds forgotten:
/// it is tried again, ever less often, until it is gone.
#[tokio::test]
async fn a_context_that_does_not_close_is_tried_again_and_stays_on_record() {
    use Mood::{Fail, Good, Hang, Panic, Refuse};
    let all = [
        (vec![Good], 0, 0),
        (vec![Fail], 0, 1), // The browser is gone, and the context with it.
        (vec![Hang], 5 + 1, 0),
        (vec![Panic, Refuse], 1 + 2, 0),
        (vec![Hang, Panic, Hang], 5 + 1 + 2 + 5 + 4, 0),
        (vec![Refuse; 9], 1 + 2 + 4 + 8 + 16 + 32 + 60 + 60 + 60, 0),
    ];
    for (moods, seconds, left) in all {
        let (house, browser) = House::stubborn();
        browser.closes(&moods);
        let agent = house.agent("a");
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
        house.on_disk().await;
        tokio::time::pause();
        let began = tokio::time::Instant::now();
        agent.ok("close_session", json!({})).await;
        assert_eq!(began.elapsed().as_secs(), seconds.min(5), "{moods:?}");
        assert_eq!(house.sessions(), usize::from(seconds > 5), "{moods:?}");
        let gone = house.hub.lock().sessions.values().next().map(|handle| handle.done.clone());
        if let Some(gone) = gone {
            gone.cancelled().await;
        }
        assert_eq!((began.elapsed().as_secs(), house.sessions(), browser.open()), (seconds, 0, left), "{moods:?}");
        tokio::time::resume();
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
    }
}

/// A daemon that was killed over such a context: the next one goes on.
#[tokio::test]
async fn the_next_daemon_closes_what_this_one_could_not() {
    let (house, browser) = House::stubborn();
    browser.closes(&[Mood::Hang]);
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let closing = agent.begin("close_session", json!({})).await;
    eventually("it was tried", || browser.closes_left() == 0).await;
    let next = house.killed_and_started_beside(&browser).await;
    eventually("it is gone", || next.sessions() == 0).await;
    assert_eq!(browser.open(), 0);
    closing.abort();
}

/// A full disk: what cannot be written down is not begun, nothing is left of it, and the rest goes on.
#[tokio::test]
async fn on_a_full_disk_no_session_opens_and_the_others_are_served() {
    let room = Arc::new(AtomicI64::new(1 << 20));
    let (house, browser) = House::cramped(&room);
    house.keep_time();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "before"})).await;
    house.on_disk().await;
    room.store(0, Ordering::SeqCst);
    let fault = agent.fault("start_browser", json!({"sessionId": "full"})).await;
    assert_eq!(fault.code, Code::NoSpace, "{fault}");
    assert_eq!(agent.code("navigate", json!({"sessionId": "full", "url": "http://a.test/"})).await, Code::SessionNotFound);
    eventually("nothing is left", || house.sessions() == 1 && browser.open() == 1).await;
    assert_eq!(browser.asked(), 1, "no context was made for it");
    agent.ok("navigate", json!({"sessionId": "before", "url": "http://b.test/"})).await;
    assert_eq!(agent.ok("close_session", json!({"sessionId": "before"})).await.text, "Closed session before (1 tab).");
    let faults = || house.hub.counters.journal_faults.load(Ordering::Relaxed);
    eventually("the log says so", || faults() >= 3).await;
    // With room again everything is as if it had been written: a snapshot makes good what is missing.
    room.store(1 << 20, Ordering::SeqCst);
    agent.ok("start_browser", json!({"sessionId": "after"})).await;
    let snapshot = house.dir.path().join("state/journal.snapshot");
    // A snapshot that fails just now is made again at the next change, or when the clock is looked at.
    for change in 0.. {
        if snapshot.exists() {
            break;
        }
        assert!(change < 1_000, "no snapshot was taken");
        agent.ok("navigate", json!({"url": format!("http://{change}.test/")})).await;
        house.on_disk().await;
    }
    let next = house.killed_and_started_again().await;
    let names: Vec<String> = next.hub.look(|registry| registry.records().map(|session| session.name.clone()).collect());
    assert_eq!(names, ["after"]);
}

/// S3.25: a caller that gives up while its session opens.
#[tokio::test]
async fn an_abandoned_start_gives_its_seat_back() {
    let (house, browser) = House::stubborn();
    browser.opens(&[Mood::Wait]);
    let agent = house.agent("a");
    let opening = agent.begin("start_browser", json!({"sessionId": "s"})).await;
    eventually("the browser was asked", || browser.asked() == 1).await;
    opening.abort();
    browser.let_go();
    eventually("nothing is left", || house.sessions() == 0 && browser.open() == 0).await;
}

/// S3.25: a caller that gives up on a call that makes its session.
#[tokio::test]
async fn an_abandoned_call_leaves_no_session_behind() {
    let (house, browser) = House::stubborn();
    browser.opens(&[Mood::Wait]);
    let agent = house.agent("a");
    let opening = agent.begin("navigate", json!({"url": "http://a.test/"})).await;
    eventually("the browser was asked", || browser.asked() == 1).await;
    opening.abort();
    browser.let_go();
    eventually("nothing is left", || house.sessions() == 0 && browser.open() == 0).await;
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    agent.begin("evaluate", json!({"script": "hang()"})).await.abort();
    agent.ok("evaluate", json!({"script": "1"})).await;
}
