//! The clocks of C1, as the hub runs them.

use std::time::Duration;

use serde_json::json;
use tabmux_core::Code;
use tokio::time::{advance, pause, resume};

use crate::testing::{House, eventually};

const HALF_HOUR: Duration = Duration::from_secs(30 * 60);

/// S0.20, S1.28: the idle clock, whatever it is set to.
#[tokio::test]
async fn an_idle_session_is_closed_when_its_time_is_over_and_not_before() {
    for idle in [HALF_HOUR, Duration::from_secs(5 * 60), Duration::from_secs(2)] {
        let house = House::with(|settings| settings.clocks.session_idle = Some(idle));
        house.keep_time();
        let agent = house.agent("a");
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
        pause();
        agent.ok("evaluate", json!({"script": "1"})).await;
        tokio::time::sleep(idle - Duration::from_millis(10)).await;
        assert_eq!(house.sessions(), 1);
        tokio::time::sleep(Duration::from_millis(20)).await;
        assert_eq!(house.hub.look(|registry| registry.counts().sessions), 0);
        resume();
        eventually("it is gone", || house.sessions() == 0).await;
        let fault = agent.fault("evaluate", json!({"sessionId": "s", "script": "1"})).await;
        assert!(fault.message.starts_with("No session: s. Session 's' was closed after "), "{fault}");
        let fault = agent.fault("evaluate", json!({"sessionId": "s", "script": "1"})).await;
        assert_eq!(fault.message, "No session: s.", "said once");
    }
}

/// S0.20, C8: `navigate` makes a new session, and says what became of the old one.
#[tokio::test]
async fn a_session_made_in_place_of_an_idle_one_says_so() {
    let house = House::with(|settings| settings.limits.warn_sessions = 1);
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let id = house.hub.look(|registry| registry.records().next().map(|session| session.id.to_string())).unwrap();
    house.operator().ok("close_session", json!({"sessionId": id})).await;
    let said = agent.ok("navigate", json!({"url": "http://a.test/"})).await.text;
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[1..],
        [
            "Session 's' was closed by the operator.",
            "1 sessions of yours are open now; close those you no longer need.",
            "[sessionId: browser-1, sessionType: browser]"
        ]
    );
    assert_eq!(agent.ok("navigate", json!({"url": "http://a.test/"})).await.text.lines().count(), 2, "once");
}

/// S0.20, C1: a call that runs or waits keeps its session.
#[tokio::test]
async fn a_session_is_not_idle_while_a_call_runs() {
    let house = House::with(|settings| settings.clocks.session_idle = Some(Duration::from_secs(60)));
    house.keep_time();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    pause();
    let slow = agent.begin("evaluate", json!({"script": "sleep(300000)", "timeout": 400_000})).await;
    tokio::time::sleep(Duration::from_secs(299)).await;
    assert_eq!(house.sessions(), 1);
    slow.await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert_eq!(house.sessions(), 1, "the clock began when the call ended");
    tokio::time::sleep(Duration::from_secs(2)).await;
    resume();
    eventually("it is gone", || house.sessions() == 0).await;
}

/// C1: `0` turns a clock off.
#[tokio::test]
async fn a_clock_that_is_off_ends_nothing() {
    let house = House::with(|settings| {
        settings.clocks.session_idle = None;
        settings.clocks.exit_when_empty = None;
    });
    house.keep_time();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    pause();
    advance(Duration::from_secs(100 * 24 * 3600)).await;
    assert_eq!(agent.eval("s", "1").await.unwrap(), "1");
}

/// S1.10
#[tokio::test(start_paused = true)]
async fn an_empty_daemon_decides_to_exit_after_a_minute() {
    let house = House::new();
    house.keep_time();
    let agent = house.agent("a");
    agent.ok("list_sessions", json!({})).await;
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(!house.hub.stopping.is_cancelled());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(house.hub.stopping.is_cancelled());
    assert_eq!(house.hub.farewell(), "empty");
    let identity = tabmux_core::Identity::Secret("b".into());
    assert!(house.hub.attach(identity, tabmux_core::Link::Connection, Default::default()).is_none());
    let late = agent.begin("navigate", json!({"url": "http://a.test/"})).await;
    let waits = house.hub.settings.clocks.call_deadline - Duration::from_secs(1);
    tokio::time::sleep(waits).await;
    assert!(!late.is_finished() && house.sessions() == 0, "a late call is neither run nor answered: the next daemon serves it");
    assert_eq!(late.await.unwrap().unwrap_err().code, Code::Timeout, "unless its time is over first");
}

/// S1.10: a call inside the daemon keeps it, also one that has no session yet.
#[tokio::test]
async fn a_daemon_with_a_call_inside_does_not_exit() {
    let (house, browser) = House::stubborn();
    house.keep_time();
    let agent = house.agent("a");
    browser.closes(&[crate::testing::Mood::Wait]);
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let closing = agent.begin("close_session", json!({})).await;
    eventually("the close began", || house.hub.look(|registry| registry.counts().sessions) == 0).await;
    house.on_disk().await;
    pause();
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(!closing.is_finished());
    browser.let_go();
    closing.await.unwrap().unwrap();
    tokio::time::sleep(Duration::from_secs(59)).await;
    assert!(!house.hub.stopping.is_cancelled());
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(house.hub.stopping.is_cancelled());
}

/// A supervised daemon never exits when empty.
#[tokio::test(start_paused = true)]
async fn a_supervised_daemon_stays() {
    let house = House::with(|settings| settings.supervised = true);
    house.keep_time();
    tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
    assert!(!house.hub.stopping.is_cancelled());
}

/// Running calls may finish, waiting ones too; everything closes.
#[tokio::test]
async fn draining_lets_calls_finish_and_closes_every_session() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("start_browser", json!({"sessionId": "t"})).await;
    pause();
    let began = tokio::time::Instant::now();
    let running = agent.begin("evaluate", json!({"sessionId": "s", "script": "sleep(2000)"})).await;
    let waiting = agent.begin("evaluate", json!({"sessionId": "s", "script": "7"})).await;
    house.hub.say_farewell("stop");
    let identity = tabmux_core::Identity::Secret("late".into());
    assert!(house.hub.attach(identity, tabmux_core::Link::Connection, Default::default()).is_none());
    let refused = agent.fault("evaluate", json!({"sessionId": "t", "script": "1"})).await;
    assert!(refused.message.contains("stopping"), "{refused}");
    house.hub.drain().await;
    assert_eq!(running.await.unwrap().unwrap().text.lines().next(), Some("\"slept 2000\""));
    assert_eq!(waiting.await.unwrap().unwrap().text.lines().next(), Some("7"));
    assert_eq!((browser.open(), house.sessions(), began.elapsed().as_secs()), (0, 0, 2));
}

#[tokio::test]
async fn draining_takes_less_than_five_seconds_whatever_hangs() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    browser.closes(&[crate::testing::Mood::Hang]);
    pause();
    let began = tokio::time::Instant::now();
    let hangs = agent.begin("evaluate", json!({"script": "hang()"})).await;
    house.hub.say_farewell("stop");
    house.hub.drain().await;
    assert_eq!(began.elapsed().as_secs(), 4);
    assert_eq!(hangs.await.unwrap().unwrap_err().code, tabmux_core::Code::SessionClosed);
}

/// What a browser that does not start leaves has to be swept within the five seconds too.
#[tokio::test]
async fn draining_waits_only_a_moment_longer_for_a_session_that_never_opens() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    browser.opens(&[crate::testing::Mood::Hang]);
    let hangs = agent.begin("start_browser", json!({"sessionId": "s"})).await;
    crate::testing::eventually("it opens", || browser.asked() == 1).await;
    pause();
    let began = tokio::time::Instant::now();
    house.hub.say_farewell("stop");
    house.hub.drain().await;
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(hangs.await.unwrap().unwrap_err().code, Code::SessionClosed);
}

/// C1: a laptop that slept for a night expires nobody: not the idle, not the orphan, not who holds a grant, and not the empty daemon.
#[tokio::test]
async fn a_suspended_laptop_expires_nobody() {
    let house = House::new();
    house.keep_time();
    let (lost, idle) = (house.agent("lost"), house.agent("idle"));
    for agent in [&lost, &idle] {
        agent.ok("start_browser", json!({"sessionId": "s", "navigationUrl": "http://a.test/"})).await;
    }
    let grant = idle.ok("share_session", json!({"ttl": "10m"})).await.result["capability"].as_str().unwrap().to_owned();
    lost.lost();
    crate::clock::machine_slept(Duration::from_secs(8 * 3600));
    house.hub.decide_now(|registry, now| registry.tick(now));
    assert_eq!((house.sessions(), house.hub.look(|registry| registry.counts().orphaned)), (2, 1));
    let listed = idle.ok("list_sessions", json!({})).await.structured.unwrap();
    assert!(listed["sessions"][0]["ageS"].as_u64().unwrap() >= 8 * 3600, "people read the wall's clock: {listed}");
    house.agent("other").ok("read_text", json!({"sessionId": grant})).await;
    assert_eq!(house.agent("lost").eval("s", "location.href").await.unwrap(), "\"http://a.test/\"", "back in time");
    assert_eq!(idle.eval("s", "1").await.unwrap(), "1");
    pause();
    tokio::time::sleep(Duration::from_secs(601)).await;
    resume();
    assert_eq!(idle.code("read_text", json!({"sessionId": grant})).await, Code::SessionNotFound, "time that is lived through counts");
    assert!(!house.hub.stopping.is_cancelled());
}
