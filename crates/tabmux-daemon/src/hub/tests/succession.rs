//! A daemon that makes way for a newer one, or has nothing left to do: what still comes is the next one's.

use std::sync::Arc;

use serde_json::json;
use tabmux_core::{Code, Identity, Leave, Link, Millis};
use tokio::time::{Instant, pause};
use tokio_util::sync::CancellationToken;

use crate::backend::HubBackend;
use crate::http::{Backend, Command, CommandRefusal, HttpIdentity};
use crate::testing::House;

/// Ends as one that is empty does.
fn runs_out(house: &House) {
    house.hub.decide_now(|registry, now| registry.tick(Millis(now.0 + 61_000)));
    assert_eq!(house.hub.farewell(), "empty");
}

/// Whoever is on the socket sends its calls again, whatever it showed to get in; over HTTP nobody does, and is told.
#[tokio::test]
async fn a_call_that_comes_too_late_is_held_for_the_next_daemon_or_answered_where_nobody_asks_again() {
    for ends in [runs_out, |house: &House| house.hub.hold_back()] {
        let house = House::new();
        let key = crate::hub::digest("tmx_one");
        let peers = [Identity::Secret("a".into()), Identity::Operator, Identity::Token("ci".into()), Identity::Grant(key)]
            .map(|identity| house.agent_as(identity, Link::Connection));
        let backend = HubBackend::new(Arc::clone(&house.hub));
        let web = || [HttpIdentity::Token("ci".into()), HttpIdentity::Grant(key), HttpIdentity::Anonymous];
        let known = web().map(|who| backend.http_client(who));
        ends(&house);
        for peer in &peers {
            for _ in 0..2 {
                peer.begin("list_sessions", json!({})).await;
            }
            assert_eq!(house.hub.held().borrow().get(&peer.client), Some(&2));
        }
        let stranger = backend.http_client(HttpIdentity::Path("new".into()));
        for client in known.into_iter().chain([stranger]) {
            let command = Command { tool: "list_sessions".into(), args: serde_json::Map::new(), tab: None };
            match backend.command(client, command, CancellationToken::new()).await {
                Err(CommandRefusal::Fault(fault)) => assert_eq!(fault.message, "The daemon is stopping; the call was not run."),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(house.hub.held().borrow().len(), peers.len());
    }
}

/// What ran when it was asked for is finished first, for as long as a call may take; then what began meanwhile, for a moment.
#[tokio::test]
async fn a_newer_daemon_waits_for_the_calls_that_run_and_no_longer() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    house.on_disk().await;
    pause();
    let began = Instant::now();
    let running = agent.begin("evaluate", json!({"script": "sleep(2000)"})).await;
    let hangs = agent.begin("evaluate", json!({"script": "hang()", "timeout": 600_000})).await;
    house.hub.make_way();
    Arc::clone(&house.hub).give_way().await;
    assert!(running.is_finished() && !hangs.is_finished());
    assert_eq!(began.elapsed().as_secs(), 30);
    house.hub.finish_calls().await;
    assert_eq!(began.elapsed().as_secs(), 33);
    hangs.abort();
    assert!(hangs.await.is_err());
    house.hub.finish_calls().await;
    assert_eq!(began.elapsed().as_secs(), 33, "nothing runs any more");
}

/// A call that takes long is no other session's affair.
#[tokio::test]
async fn while_a_newer_daemon_waits_for_a_long_call_all_others_are_served() {
    let house = House::new();
    let (long, other) = (house.agent("a"), house.agent("b"));
    long.ok("start_browser", json!({"sessionId": "long"})).await;
    other.ok("start_browser", json!({"sessionId": "other"})).await;
    house.on_disk().await;
    pause();
    let began = Instant::now();
    let running = long.begin("evaluate", json!({"script": "sleep(20000)", "timeout": 60_000})).await;
    house.hub.make_way();
    let giving = tokio::spawn(Arc::clone(&house.hub).give_way());
    for _ in 0..10 {
        other.ok("evaluate", json!({"script": "sleep(100)", "timeout": 2000})).await;
    }
    assert_eq!((began.elapsed().as_secs(), giving.is_finished(), running.is_finished()), (1, false, false));
    house.agent("newcomer").ok("list_sessions", json!({})).await;
    // One that begins meanwhile is not waited for before, but after.
    let began_late = other.begin("evaluate", json!({"script": "sleep(21000)", "timeout": 60_000})).await;
    giving.await.unwrap();
    assert_eq!((began.elapsed().as_secs(), running.is_finished(), began_late.is_finished()), (20, true, false));
    house.hub.finish_calls().await;
    assert_eq!((began.elapsed().as_secs(), began_late.is_finished()), (22, true));
}

/// What is held back ends at its own deadline, and its connection waits for that answer again.
#[tokio::test]
async fn a_call_that_is_held_back_ends_at_its_own_deadline() {
    let house = House::new();
    let agent = house.agent("a");
    house.hub.hold_back();
    pause();
    let (began, held) = (Instant::now(), house.hub.held());
    let call = agent.begin("list_sessions", json!({"timeout": 2000})).await;
    assert_eq!(held.borrow().get(&agent.client), Some(&1));
    let fault = call.await.unwrap().unwrap_err();
    assert_eq!((fault.code, began.elapsed().as_secs()), (Code::Timeout, 2), "{fault}");
    assert_eq!(held.borrow().get(&agent.client), Some(&0));
    let waited = agent.fault_after(std::time::Duration::from_millis(1500), "list_sessions", json!({"timeout": 2000})).await;
    assert!(waited.code == Code::Timeout && began.elapsed().as_millis() < 2600, "{waited}");
}

/// Who stops the daemon then means it: nothing is left to a successor.
#[tokio::test]
async fn a_daemon_that_is_stopped_while_it_makes_way_stops_for_good() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let _running = agent.begin("evaluate", json!({"script": "hang()"})).await;
    house.hub.make_way();
    let giving = tokio::spawn(Arc::clone(&house.hub).give_way());
    house.hub.say_farewell("stop");
    giving.await.unwrap();
    assert_eq!((house.hub.farewell(), house.hub.is_yielding()), ("stop", false));
}

/// Its peers go over to the next daemon: their sessions are no orphans.
#[tokio::test]
async fn nobody_is_lost_when_a_newer_daemon_takes_over() {
    for (upgrade, orphans) in [(true, 0), (false, 1)] {
        let house = House::new();
        let agent = house.agent("a");
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
        if upgrade {
            house.hub.hold_back();
        }
        house.hub.detach(agent.client, Leave::Lost);
        assert_eq!(house.hub.look(|registry| registry.counts().orphaned), orphans);
    }
}
