//! Versioned hellos: shims, whose stream is MCP afterwards.

use serde_json::{Value, json};

use super::{Peer, Street, code};
use crate::testing::eventually;

const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

fn shim(key: &str) -> Value {
    json!({"role": "mcp", "program": "tabmux 0.1.0", "pid": 42, "key": key})
}

fn tool(id: u64, name: &str, args: Value) -> Value {
    let params = Value::from_iter([("name", name.into()), ("arguments", args)]);
    Value::from_iter([("jsonrpc", "2.0".into()), ("id", id.into()), ("method", "tools/call".into()), ("params", params)])
}

async fn initialized(street: &Street, key: &str) -> Peer {
    let mut peer = street.greeted(shim(key)).await;
    let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let answer = peer.ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})).await;
    assert_eq!(answer["result"]["serverInfo"]["name"], "tabmux");
    peer.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    peer
}

#[tokio::test]
async fn another_version_is_refused_with_both_versions() {
    let street = Street::new();
    for version in [json!(2), json!(0), json!("1"), json!(null)] {
        let mut peer = street.connect();
        let answer = peer.ask(json!({"tabmux": version, "hello": shim(KEY)})).await;
        assert_eq!(code(&answer), "protocol_version", "{version}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("version 1"), "{answer}");
        assert!(peer.next().await.is_none(), "the connection ends");
    }
}

#[tokio::test]
async fn a_short_key_an_unknown_token_and_an_unknown_field_are_refused() {
    let street = Street::new();
    for (hello, expected) in [
        (shim("short"), "bad_argument"),
        (json!({"role": "mcp", "program": "x", "pid": 1, "token": "made-up"}), "unauthorized"),
        (json!({"role": "mcp", "program": "x", "pid": 1, "colour": "red"}), "bad_argument"),
        (json!({"role": "king", "program": "x", "pid": 1}), "bad_argument"),
        (json!({}), "bad_argument"),
    ] {
        let mut peer = street.connect();
        assert_eq!(code(&peer.ask(json!({"tabmux": 1, "hello": hello})).await), expected, "{hello}");
        assert!(peer.next().await.is_none());
    }
    assert_eq!(street.house.hub.look(|registry| registry.counts().clients), 0);
}

#[tokio::test]
async fn a_welcome_says_version_pid_and_which_tools_only_read() {
    let street = Street::new();
    let mut peer = street.connect();
    let answer = peer.ask(json!({"tabmux": 1, "hello": shim(KEY)})).await;
    let welcome = &answer["welcome"];
    assert_eq!((&answer["tabmux"], &welcome["pid"]), (&json!(1), &json!(std::process::id())));
    assert_eq!(welcome["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!(
        welcome["read_only_tools"],
        json!(["list_sessions", "list_pages", "snapshot", "get_visible_elements", "read_text", "network", "wait_for", "downloads"])
    );
    assert_eq!(street.house.sessions(), 0, "coming makes no session");
}

/// S2.31: the same key is the same caller, also without a second handshake.
#[tokio::test]
async fn a_re_joined_shim_is_the_same_caller() {
    let street = Street::new();
    let mut peer = initialized(&street, KEY).await;
    let answer = peer.ask(tool(1, "navigate", json!({"url": "http://a.test/"}))).await;
    let id = answer["result"]["_meta"]["tabmux/result"]["id"].clone();
    drop(peer);
    eventually("it is lost", || street.house.hub.look(|registry| registry.counts().orphaned) == 1).await;
    let mut hello = shim(KEY);
    hello["initialize"] = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    let mut again = street.greeted(hello).await;
    let answer = again.ask(tool(7, "evaluate", json!({"script": "location.href"}))).await;
    assert_eq!((&answer["id"], &answer["result"]["_meta"]["tabmux/result"]["id"]), (&json!(7), &id));
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("\"http://a.test/\""));
}

#[tokio::test]
async fn a_second_live_shim_with_the_same_key_waits_its_turn() {
    let street = Street::new();
    let mut first = initialized(&street, KEY).await;
    first.ask(tool(1, "navigate", json!({"url": "http://a.test/"}))).await;
    let mut second = initialized(&street, KEY).await;
    for (id, name, args) in [(1, "list_sessions", json!({})), (2, "navigate", json!({"url": "http://b.test/"}))] {
        let answer = second.ask(tool(id, name, args)).await;
        assert_eq!(answer["result"]["_meta"]["tabmux/error"]["code"], "session_exists", "{answer}");
    }
    drop(first);
    eventually("the first is gone", || street.house.hub.look(|registry| registry.counts().clients) == 1).await;
    let answer = second.ask(tool(3, "evaluate", json!({"script": "location.href"}))).await;
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("\"http://a.test/\""), "{answer}");
}

/// S2.15: calls of one connection are admitted in the order they came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_calls_run_in_the_order_they_were_sent() {
    let street = Street::new();
    let mut peer = initialized(&street, KEY).await;
    peer.ask(tool(1, "navigate", json!({"url": "http://a.test/"}))).await;
    let lines: String = (10..50).map(|id| format!("{}\n", tool(id, "evaluate", json!({"script": "count()"})))).collect();
    peer.send_bytes(lines.as_bytes()).await;
    for _ in 10..50 {
        let answer = peer.read().await;
        let text = answer["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        let count: u64 = text.lines().next().unwrap().parse().unwrap();
        assert_eq!(count + 9, answer["id"].as_u64().unwrap(), "{answer}");
    }
}

/// A daemon that stops answers what it drained, says goodbye and closes.
#[tokio::test]
async fn a_stopping_daemon_answers_and_says_goodbye() {
    let street = Street::new();
    let mut peer = initialized(&street, KEY).await;
    peer.ask(tool(1, "navigate", json!({"url": "http://a.test/"}))).await;
    peer.send(tool(2, "evaluate", json!({"script": "sleep(100)"}))).await;
    let hub = &street.house.hub;
    eventually("it runs", || hub.look(|registry| registry.counts().running) == 1).await;
    hub.say_farewell("stop");
    hub.drain().await;
    street.door.closing.cancel();
    assert!(peer.read().await["result"]["content"][0]["text"].as_str().unwrap().starts_with("\"slept 100\""));
    assert_eq!(peer.read().await, json!({"tabmux": 1, "goodbye": "stop"}));
    assert!(peer.next().await.is_none());
}

/// Who comes when the daemon has decided to exit sees the end before any welcome.
#[tokio::test]
async fn a_peer_that_comes_too_late_is_not_welcomed() {
    let street = Street::new();
    let mut silent = street.connect();
    tokio::task::yield_now().await;
    street.house.hub.say_farewell("empty");
    assert!(silent.next().await.is_none());
    let mut late = street.connect();
    drop(late.write.try_write(format!("{}\n", json!({"tabmux": 1, "hello": shim(KEY)})).as_bytes()));
    assert!(late.next().await.is_none());
}

/// S2.23, S2.31: lost is lost at once, also while a call of the lost client still runs.
#[tokio::test]
async fn a_killed_shims_session_is_free_at_once_and_what_it_had_queued_is_not_run() {
    let street = Street::new();
    let mut first = initialized(&street, KEY).await;
    first.ask(tool(1, "navigate", json!({"url": "https://one.test/"}))).await;
    first.send(tool(2, "evaluate", json!({"script": "hang()", "timeout": 500}))).await;
    first.send(tool(3, "navigate", json!({"url": "https://queued.test/"}))).await;
    let hub = &street.house.hub;
    eventually("one runs, one waits", || hub.look(|registry| registry.counts().running == 1 && registry.counts().waiting == 1)).await;
    drop(first);
    eventually("the session is free", || hub.look(|registry| registry.counts().orphaned == 1 && registry.counts().waiting == 0)).await;
    let mut second = initialized(&street, KEY).await;
    let answer = second.ask(tool(1, "evaluate", json!({"script": "location.href"}))).await;
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().contains("one.test"), "{answer}");
}

/// S2.15: a call that ends before its turn holds nobody up and lets nobody overtake.
#[tokio::test]
async fn a_tool_that_is_none_does_not_disturb_the_order() {
    let street = Street::new();
    let mut peer = initialized(&street, KEY).await;
    // Fewer at once than may wait in one session, many times.
    for batch in 0..10u64 {
        for round in 0..20u64 {
            let page = format!("https://page{batch}-{round}.test/");
            peer.send(tool(3 * round + 1, "navigate", json!({"url": page}))).await;
            peer.send(tool(3 * round + 2, "nope", json!({}))).await;
            peer.send(tool(3 * round + 3, "evaluate", json!({"script": "location.href"}))).await;
        }
        for _ in 0..60 {
            let answer = peer.read().await;
            let id = answer["id"].as_u64().unwrap();
            if id.is_multiple_of(3) {
                let page = format!("\"https://page{batch}-{}.test/\"", id / 3 - 1);
                assert_eq!(answer["result"]["content"][0]["text"], page, "{answer}");
            }
        }
    }
}

/// C5: rights end with what gave them.
#[tokio::test]
async fn a_revoked_token_is_out_and_the_next_of_its_name_inherits_nothing() {
    let street = Street::new();
    let token = street.door.tokens.new_token("ci").unwrap();
    let mut agent = street.greeted(json!({"role": "cli", "program": "x", "pid": 1, "token": token})).await;
    let call = json!({"id": 1, "do": "call", "tool": "start_browser", "args": {"sessionId": "mine"}});
    assert!(agent.ask(call.clone()).await.get("ok").is_some());
    street.cli().await.ask(json!({"id": 1, "do": "token_revoke", "name": "ci"})).await;
    assert_eq!(code(&agent.ask(call).await), "unauthorized");
    let next = street.door.tokens.new_token("ci").unwrap();
    let mut heir = street.greeted(json!({"role": "cli", "program": "x", "pid": 1, "token": next})).await;
    let listed = heir.ask(json!({"id": 1, "do": "sessions"})).await;
    assert_eq!(listed["ok"]["sessions"], json!([]), "{listed}");
}

/// The flags of `tabmux mcp` hold for whichever tool makes the session, and what cannot be had is said.
#[tokio::test]
async fn what_a_shim_asks_for_holds_for_navigate_too() {
    let street = Street::new();
    for (defaults, expected) in [
        (json!({"isolation": "window"}), "window"),
        (json!({"isolation": "zz"}), "bad_argument"),
        (json!({"from": "work"}), "session_not_found"),
        (json!({"cdpEndpoint": "nowhere"}), "bad_argument"),
    ] {
        let mut peer = street.greeted(json!({"role": "mcp", "program": "x", "pid": 1, "defaults": defaults})).await;
        let client = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        peer.ask(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})).await;
        let answer = peer.ask(tool(1, "navigate", json!({"url": "https://one.test/"}))).await;
        if answer["result"]["isError"] == true {
            assert_eq!(answer["result"]["_meta"]["tabmux/error"]["code"], expected, "{answer}");
        } else {
            let listed = peer.ask(tool(2, "list_sessions", json!({}))).await;
            assert_eq!(listed["result"]["structuredContent"]["sessions"][0]["isolation"], expected, "{listed}");
            peer.ask(tool(3, "start_browser", json!({"sessionId": "other", "isolation": "tab"}))).await;
            let listed = peer.ask(tool(4, "list_sessions", json!({}))).await;
            let sessions = listed["result"]["structuredContent"]["sessions"].as_array().unwrap().clone();
            let other = sessions.iter().find(|session| session["sessionId"] == "other").unwrap();
            assert_eq!(other["isolation"], "tab", "what the call says wins: {listed}");
        }
    }
}
