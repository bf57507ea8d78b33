//! A daemon that makes way for a newer one, or has nothing left to do: what still comes is the next one's.

use std::sync::Arc;

use serde_json::json;
use tabmux_core::{Identity, Leave, Link, Millis};
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
    for ends in [runs_out, |house: &House| house.hub.make_way()] {
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

/// What runs is finished first, for as long as a call may take, and nothing else is waited for.
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
    house.hub.finish_calls().await;
    assert!(running.is_finished() && !hangs.is_finished());
    assert_eq!(began.elapsed().as_secs(), 30);
    hangs.abort();
    assert!(hangs.await.is_err());
    house.hub.finish_calls().await;
    assert_eq!(began.elapsed().as_secs(), 30, "nothing runs any more");
}

/// Its peers go over to the next daemon: their sessions are no orphans.
#[tokio::test]
async fn nobody_is_lost_when_a_newer_daemon_takes_over() {
    for (upgrade, orphans) in [(true, 0), (false, 1)] {
        let house = House::new();
        let agent = house.agent("a");
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
        if upgrade {
            house.hub.make_way();
        }
        house.hub.detach(agent.client, Leave::Lost);
        assert_eq!(house.hub.look(|registry| registry.counts().orphaned), orphans);
    }
}
