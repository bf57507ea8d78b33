//! Seed 1's frames, in their exact shapes.

use serde_json::{Value, json};

use super::{Peer, Street, code};
use crate::testing::eventually;

async fn registered(street: &Street) -> (Peer, String) {
    let mut peer = street.connect();
    let answer = peer.ask(json!({"type": "REGISTER", "id": "r"})).await;
    (peer, answer["sessionId"].as_str().unwrap().to_owned())
}

fn request(id: &str, session: Option<&str>, action: &str, params: Value) -> Value {
    let mut frame = json!({"type": "REQUEST", "id": id, "action": action});
    frame["params"] = params;
    if let Some(session) = session {
        frame["sessionId"] = session.into();
    }
    frame
}

/// S1.13, S1.14, S1.20
#[tokio::test]
async fn register_reserves_a_random_id_and_makes_nothing_yet() {
    let street = Street::new();
    let mut ids = std::collections::BTreeSet::new();
    for n in 0..20 {
        let mut peer = street.connect();
        let answer = peer.ask(json!({"type": "REGISTER", "id": n})).await;
        let id = answer["sessionId"].as_str().unwrap().to_owned();
        assert_eq!(answer, json!({"type": "REGISTER_OK", "id": n, "sessionId": id}));
        let hex = id.strip_prefix("sess_").unwrap();
        assert!(hex.len() == 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        ids.insert(id);
        let made = street.house.hub.browsers.described().await.len();
        assert_eq!(made, 0, "no browser is started for a reservation");
    }
    assert_eq!(ids.len(), 20);
}

/// S1.15, S1.21, S1.46: ids are the caller's and come back as they are.
#[tokio::test]
async fn a_request_runs_in_its_session_and_answers_with_its_own_id() {
    let street = Street::new();
    let (mut peer, session) = registered(&street).await;
    for id in [json!("sess_x:1"), json!(7), json!({"odd": [1]}), json!(null)] {
        let mut frame = request("", Some(&session), "navigate", json!({"url": "http://a.test/"}));
        frame["id"] = id.clone();
        let answer = peer.ask(frame).await;
        assert_eq!((&answer["type"], &answer["id"], &answer["sessionId"]), (&json!("RESPONSE"), &id, &json!(session)));
        assert_eq!(answer["payload"]["success"], true);
        let data = &answer["payload"]["data"];
        assert_eq!((&data["tabId"], &data["url"]), (&json!("t1"), &json!("http://a.test/")));
        assert!(data["text"].as_str().unwrap().starts_with("Navigated to http://a.test/"), "{data}");
    }
    let answer = peer.ask(request("f", Some(&session), "evaluate", json!({"script": "throw(\"x\")"}))).await;
    assert_eq!((&answer["payload"]["success"], code(&answer)), (&json!(false), "bad_argument"));
}

/// S1.16
#[tokio::test]
async fn ping_is_answered_with_pong_also_while_a_request_runs() {
    let street = Street::new();
    let (mut peer, session) = registered(&street).await;
    peer.send(request("slow", Some(&session), "evaluate", json!({"script": "sleep(100)"}))).await;
    assert_eq!(peer.ask(json!({"type": "PING", "id": "p", "sessionId": session})).await, json!({"type": "PONG", "id": "p"}));
    assert_eq!(peer.read().await["id"], "slow");
}

/// S1.17
#[tokio::test]
async fn disconnect_ends_the_session() {
    let street = Street::new();
    let (mut peer, session) = registered(&street).await;
    peer.ask(request("1", Some(&session), "navigate", json!({"url": "http://a.test/"}))).await;
    peer.send(json!({"type": "DISCONNECT", "sessionId": session})).await;
    let answer = peer.ask(request("2", Some(&session), "read_text", json!({}))).await;
    assert_eq!((&answer["id"], code(&answer)), (&json!("2"), "session_not_found"), "without an id nothing else was answered");
    assert_eq!(street.house.sessions(), 0);
    let answer = peer.ask(json!({"type": "DISCONNECT", "id": "d", "sessionId": session})).await;
    assert_eq!((answer["type"].as_str(), code(&answer)), (Some("ERROR"), "session_not_found"));
}

/// S1.35: a request that names no session is the connection's own, made by the first that may.
#[tokio::test]
async fn a_request_without_a_session_works_as_for_a_single_client() {
    let street = Street::new();
    let mut peer = street.connect();
    let answer = peer.ask(request("0", None, "read_text", json!({}))).await;
    assert_eq!(answer["payload"]["error"]["message"], "No session: none active.");
    let answer = peer.ask(request("1", None, "navigate", json!({"url": "http://a.test/"}))).await;
    assert!(answer["sessionId"].as_str().unwrap().starts_with("sess_"), "{answer}");
    let answer = peer.ask(request("2", None, "evaluate", json!({"script": "location.href"}))).await;
    assert!(answer["payload"]["data"]["text"].as_str().unwrap().starts_with("\"http://a.test/\""));
}

/// S1.45
#[tokio::test]
async fn status_says_whether_the_extension_is_connected() {
    let street = Street::new();
    let (mut peer, session) = registered(&street).await;
    let status = async |peer: &mut Peer| peer.ask(json!({"type": "STATUS", "id": "s"})).await;
    let of = |active: usize| json!({"type": "STATUS_OK", "id": "s", "extensionConnected": false, "activeSessions": active});
    assert_eq!(status(&mut peer).await, of(0), "what is only reserved is no session yet");
    peer.ask(request("1", Some(&session), "navigate", json!({"url": "http://a.test/"}))).await;
    assert_eq!(status(&mut peer).await, of(1));
    drop(peer);
    let hub = &street.house.hub;
    eventually("it is an orphan", || hub.look(|registry| registry.counts().orphaned) == 1).await;
    assert_eq!(status(&mut street.connect()).await, of(0), "an orphan is not active");
}

/// S1.14: REGISTER reserves an id, the first REQUEST makes the session.
#[tokio::test]
async fn what_was_only_reserved_is_not_listed_and_ends_with_its_connection() {
    let street = Street::new();
    let (mut peer, session) = registered(&street).await;
    peer.ask(json!({"type": "REGISTER", "id": "r2"})).await;
    let operator = street.house.operator();
    let listed = async || {
        let all = street.house.hub.sessions(operator.client, true).await.unwrap();
        all["sessions"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!((listed().await.len(), street.house.sessions()), (0, 2));
    peer.ask(request("1", Some(&session), "navigate", json!({"url": "http://a.test/"}))).await;
    assert_eq!(listed().await, [session.as_str()]);
    drop(peer);
    eventually("the reservation is gone", || street.house.sessions() == 1).await;
    assert_eq!(listed().await, [session]);
    let orphaned = || street.house.hub.look(|registry| registry.counts().orphaned);
    eventually("what was made waits for the grace time", || orphaned() == 1).await;
}

/// S1.15: as `/commands` has it.
#[tokio::test]
async fn a_screenshot_brings_its_picture() {
    let street = Street::new();
    let (mut peer, session) = registered(&street).await;
    peer.ask(request("1", Some(&session), "navigate", json!({"url": "http://a.test/"}))).await;
    let answer = peer.ask(request("2", Some(&session), "screenshot", json!({}))).await;
    let picture = &answer["payload"]["data"]["images"][0];
    assert!(picture["mimeType"].as_str().is_some_and(|mime| mime.starts_with("image/")), "{answer}");
    assert!(picture["data"].as_str().is_some_and(|data| !data.is_empty()), "{answer}");
    let none = peer.ask(request("3", Some(&session), "read_text", json!({}))).await;
    assert_eq!(none["payload"]["data"].get("images"), None);
}

/// S1.46
#[tokio::test]
async fn an_id_that_no_number_can_hold_comes_back_digit_by_digit() {
    let street = Street::new();
    let mut peer = street.connect();
    for frame in [r#""type":"PING""#, r#""type":"REQUEST","action":"read_text""#, r#""type":"NONE""#] {
        peer.send_bytes(format!("{{\"id\":123456789012345678901234567890,{frame}}}\n").as_bytes()).await;
        let line = peer.next_line().await.unwrap();
        assert!(line.contains("\"id\":123456789012345678901234567890"), "{line}");
    }
}

/// S1.37: another connection's session is not there.
#[tokio::test]
async fn connections_cannot_reach_each_other() {
    let street = Street::new();
    let ((mut one, session), (mut two, _)) = (registered(&street).await, registered(&street).await);
    one.ask(request("1", Some(&session), "navigate", json!({"url": "http://a.test/"}))).await;
    let answer = two.ask(request("1", Some(&session), "read_text", json!({}))).await;
    assert_eq!(code(&answer), "session_not_found");
    assert_eq!(code(&two.ask(json!({"type": "DISCONNECT", "id": 1, "sessionId": session})).await), "session_not_found");
}

/// S2.15: pipelined requests run in the order they were sent.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pipelined_requests_keep_their_order() {
    let street = Street::new();
    let (mut peer, session) = registered(&street).await;
    let script = json!({"script": "count()"});
    let lines: String = (1..=60).map(|n| format!("{}\n", request(&n.to_string(), Some(&session), "evaluate", script.clone()))).collect();
    peer.send_bytes(lines.as_bytes()).await;
    for _ in 1..=60 {
        let answer = peer.read().await;
        let text = answer["payload"]["data"]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned();
        assert_eq!(text.lines().next(), answer["id"].as_str(), "{answer}");
    }
}

/// S1.23, S2.23: a lost connection makes orphans; its running request still finishes.
#[tokio::test]
async fn a_lost_connection_leaves_an_orphan() {
    let street = Street::new();
    let (mut peer, session) = registered(&street).await;
    peer.send(request("1", Some(&session), "evaluate", json!({"script": "sleep(20)"}))).await;
    let hub = &street.house.hub;
    eventually("it runs", || hub.look(|registry| registry.counts().running) == 1).await;
    drop(peer);
    eventually("it is an orphan", || hub.look(|registry| registry.counts().orphaned) == 1).await;
    eventually("its call has ended", || hub.look(tabmux_core::Registry::visits) == 0).await;
    assert_eq!(hub.look(|registry| registry.counts().clients), 0);
}

/// C10: no version is version 1; another one is refused and named.
#[tokio::test]
async fn frames_that_cannot_be_served_are_answered_one_by_one() {
    let street = Street::new();
    let (mut peer, _) = registered(&street).await;
    for (frame, expected) in [
        (json!({"type": "PING", "id": 1, "version": 2}), "protocol_version"),
        (json!({"type": "REQUEST", "id": 2, "action": "read_text", "version": 9}), "protocol_version"),
        (json!({"type": "HELLO", "id": 3}), "bad_argument"),
        (json!({"type": 5, "id": 4}), "bad_argument"),
        (json!({"type": "REQUEST", "id": 5}), "bad_argument"),
        (json!({"type": "REQUEST", "id": 6, "action": "navigate", "params": [1]}), "bad_argument"),
        (json!({"type": "REQUEST", "id": 7, "action": 1}), "bad_argument"),
        (json!({"type": "REQUEST", "id": 8, "action": "fly"}), "bad_argument"),
        (json!({"type": "DISCONNECT", "id": 9, "sessionId": 1}), "bad_argument"),
        (json!({"id": 10}), "bad_argument"),
    ] {
        let id = frame["id"].clone();
        let answer = peer.ask(frame).await;
        assert_eq!((code(&answer), &answer["id"]), (expected, &id), "{answer}");
    }
    assert_eq!(peer.ask(json!({"type": "PING", "id": 11, "version": 1})).await["type"], "PONG");
}
