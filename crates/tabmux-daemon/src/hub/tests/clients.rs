//! Peers that leave, come back, or come twice (C7).

use std::time::Duration;

use serde_json::json;
use tabmux_core::{Code, Identity, Link};
use tokio::time::{pause, resume};

use crate::settings::OnLost;
use crate::testing::{House, eventually};

/// S2.22
#[tokio::test]
async fn a_goodbye_closes_the_sessions_at_once() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    agent.ok("start_browser", json!({"sessionId": "y"})).await;
    agent.goodbye();
    eventually("all is closed", || house.sessions() == 0 && browser.open() == 0).await;
}

/// S1.23, C7: what a lost connection does is a setting.
#[tokio::test]
async fn a_lost_connection_closes_keeps_or_waits_as_set() {
    for (on_lost, left) in [(OnLost::Close, 0), (OnLost::Keep, 1), (OnLost::Grace, 1)] {
        let house = House::with(|settings| settings.on_lost = on_lost);
        house.keep_time();
        let agent = house.agent("a");
        agent.ok("start_browser", json!({"sessionId": "x"})).await;
        agent.lost();
        if left == 0 {
            eventually("closed", || house.sessions() == 0).await;
            continue;
        }
        let orphaned = house.hub.look(|registry| registry.counts().orphaned);
        assert_eq!((house.sessions(), orphaned), (1, usize::from(on_lost == OnLost::Grace)));
    }
}

/// S2.23: back within the grace time the agent finds its session, tabs and state; after it they are gone.
#[tokio::test]
async fn an_agent_that_comes_back_in_time_has_its_session_again() {
    let (house, browser) = House::stubborn();
    house.keep_time();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
    agent.eval("x", "document.cookie = \"k=v\"").await.unwrap();
    agent.lost();
    pause();
    tokio::time::sleep(Duration::from_secs(299)).await;
    let back = house.agent("a");
    assert_eq!(back.eval("x", "document.cookie").await.unwrap(), "\"k=v\"");
    assert_eq!(back.eval("x", "location.href").await.unwrap(), "\"http://a.test/\"");
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(back.eval("x", "1").await.unwrap(), "1", "the grace clock has stopped");
    back.lost();
    tokio::time::sleep(Duration::from_secs(301)).await;
    resume();
    eventually("it is gone", || house.sessions() == 0 && browser.open() == 0).await;
    let late = house.agent("a");
    for told in [Code::SessionClosed, Code::SessionNotFound] {
        assert_eq!(late.code("read_text", json!({"sessionId": "x"})).await, told, "why is said once");
    }
}

/// C7: the running call finishes, those that wait are cancelled.
#[tokio::test]
async fn a_lost_clients_running_call_finishes_and_its_waiting_ones_do_not() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    let running = agent.begin("evaluate", json!({"script": "sleep(50)"})).await;
    let waiting = agent.begin("evaluate", json!({"script": "count()"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    agent.lost();
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::Cancelled);
    assert_eq!(running.await.unwrap().unwrap().text.lines().next(), Some("\"slept 50\""));
    assert_eq!(agent.code("read_text", json!({})).await, Code::Unauthorized, "who has left may not act");
    assert_eq!(house.agent("a").eval("x", "count()").await.unwrap().lines().last(), Some("1"), "what waited did not run");
}

/// Contract: `session_exists` on each call of a second live client, also where no session is needed.
#[tokio::test]
async fn a_second_live_client_is_refused_until_the_first_is_gone() {
    let house = House::new();
    let first = house.agent("a");
    first.ok("start_browser", json!({"sessionId": "web"})).await;
    let second = house.agent("a");
    for (tool, args) in [
        ("list_sessions", json!({})),
        ("start_browser", json!({})),
        ("navigate", json!({"url": "http://a.test/"})),
        ("close_all_sessions", json!({})),
        ("set_current_session", json!({"sessionId": "web"})),
    ] {
        let fault = second.fault(tool, args).await;
        assert_eq!(fault.code, Code::SessionExists, "{tool}");
        assert!(fault.hint.contains("share"), "{fault}");
    }
    assert_eq!(first.eval("web", "1").await.unwrap(), "1");
    first.lost();
    assert_eq!(second.eval("web", "1").await.unwrap(), "1");
}

/// A hand-over while calls wait: they answer `stale_epoch` and are not run.
#[tokio::test]
async fn what_waited_while_the_session_changed_hands_is_stale() {
    let house = House::new();
    let (agent, operator) = (house.agent("a"), house.operator());
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    let running = agent.begin("evaluate", json!({"script": "sleep(50)"})).await;
    let waiting = agent.begin("evaluate", json!({"script": "count()"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    agent.ok("close_all_sessions", json!({"detach": true})).await;
    assert!(running.await.unwrap().is_ok());
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::StaleEpoch);
    assert_eq!(operator.eval("x", "count()").await.unwrap(), "1", "the stale call was not run");
}

/// C7: a caller without a connection has none to lose.
#[tokio::test]
async fn a_caller_without_a_connection_leaves_its_session_in_place() {
    let house = House::new();
    for (identity, name) in [(Identity::Operator, "o"), (Identity::Token("ci".into()), "t")] {
        let agent = house.agent_as(identity.clone(), Link::None);
        agent.ok("start_browser", json!({"sessionId": name})).await;
        agent.lost();
        let again = house.agent_as(identity, Link::None);
        assert_eq!(again.eval(name, "1").await.unwrap(), "1");
    }
    assert_eq!(house.hub.look(|registry| registry.counts().orphaned), 0);
}

/// What is kept of a client goes with it.
#[tokio::test]
async fn nothing_is_kept_of_a_client_that_left() {
    let house = House::new();
    for n in 0..100 {
        house.agent(&format!("agent-{n}")).lost();
    }
    let state = house.hub.lock();
    assert_eq!((state.profiles.len(), state.registry.counts().clients, state.sessions.len()), (0, 0, 0));
}
