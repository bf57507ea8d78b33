//! Seed 3's methods, in their exact shapes.

use serde_json::{Value, json};

use super::{Peer, Street, code};
use crate::testing::eventually;

fn method(id: u64, name: &str, params: Value) -> Value {
    Value::from_iter([("id", id.into()), ("method", format!("browser.agent_session.{name}").into()), ("params", params)])
}

async fn opened(peer: &mut Peer, params: Value) -> String {
    let answer = peer.ask(method(1, "open", params)).await;
    assert_eq!(answer["ok"], true, "{answer}");
    answer["result"]["session_id"].as_str().unwrap().to_owned()
}

/// S3.6, S3.27, S3.28, S3.34, S3.35
#[tokio::test]
async fn open_tab_list_and_dispose_work_and_have_their_shapes() {
    let street = Street::new();
    let mut peer = street.connect();
    let answer = peer.ask(method(1, "open", json!({"url": "http://a.test/"}))).await;
    let opened = &answer["result"];
    let uuid = opened["session_id"].as_str().unwrap().to_owned();
    assert!(uuid.parse::<tabmux_core::Uuid>().is_ok(), "{uuid}");
    assert_eq!((&answer["id"], &answer["ok"], &opened["short_id"]), (&json!(1), &json!(true), &json!(uuid[..8])));
    assert_eq!((&opened["tab_id"], &opened["url"], &opened["name"]), (&json!("t1"), &json!("http://a.test/"), &json!("browser-1")));
    let tab = peer.ask(method(2, "tab", json!({"session_id": uuid, "url": "http://b.test/"}))).await;
    assert_eq!(tab, json!({"id": 2, "ok": true, "result": {"session_id": uuid, "tab_id": "t2", "url": "http://b.test/"}}));
    let list = peer.ask(method(3, "list", json!({}))).await;
    let rows = list["result"]["sessions"].as_array().unwrap();
    let row = &rows[0];
    assert_eq!((rows.len(), &row["session_id"], &row["tabCount"], &row["agent_id"]), (1, &json!(uuid), &json!(2), &json!("operator")));
    let [created, used] = ["created_at", "lastActiveAt"].map(|time| row[time].as_str().unwrap().parse::<jiff::Timestamp>().unwrap());
    assert!(created <= used, "{row}");
    assert!(row.get("profile_id").is_some() && row["data_store_id"].is_string(), "{row}");
    peer.ask(json!({"id": 4, "method": "browser.agent_session.dispose", "params": {"session_id": uuid}})).await;
    assert_eq!(peer.ask(method(5, "list", json!({}))).await["result"]["sessions"], json!([]));
    assert_eq!(street.house.sessions(), 0);
    assert_eq!(code(&peer.ask(method(6, "dispose", json!({"session_id": uuid}))).await), "session_not_found");
}

/// S3.12
#[tokio::test]
async fn a_made_up_caller_is_refused() {
    let street = Street::new();
    let mut peer = street.connect();
    for caller in [
        json!({"surface_id": "made-up"}),
        json!("c1"),
        json!({"client": "c1"}),
        json!({"token": "made-up"}),
        json!({"token": 5}),
        json!([]),
    ] {
        let answer = peer.ask(method(1, "open", json!({"caller": caller}))).await;
        assert!(["unauthorized", "bad_argument"].contains(&code(&answer)), "{caller}: {answer}");
    }
    assert_eq!(street.house.sessions(), 0);
}

/// S3.13, S3.14: a capability's holder and the operator do not see each other's by listing.
#[tokio::test]
async fn an_agent_lists_and_touches_only_its_own() {
    let street = Street::new();
    let (one, two) = (street.door.tokens.new_token("one").unwrap(), street.door.tokens.new_token("two").unwrap());
    let as_agent = |token: &str| json!({"token": token});
    let mut peer = street.connect();
    let mine = opened(&mut peer, json!({"caller": as_agent(&one)})).await;
    let list = peer.ask(method(2, "list", json!({"caller": as_agent(&one)}))).await;
    assert_eq!(list["result"]["sessions"][0]["agent_id"], "token:one");
    assert_eq!(peer.ask(method(3, "list", json!({"caller": as_agent(&two)}))).await["result"]["sessions"], json!([]));
    let filtered = peer.ask(method(4, "list", json!({"caller": as_agent(&two), "agent_id": "token:one"}))).await;
    assert_eq!(code(&filtered), "policy_denied");
    for name in ["tab", "dispose"] {
        let answer = peer.ask(method(5, name, json!({"caller": as_agent(&two), "session_id": mine}))).await;
        assert_eq!(code(&answer), "session_not_found", "{name}");
    }
    assert_eq!(street.house.sessions(), 1);
}

/// S3.17: a one-shot connection owns nothing; one that identified itself is lost with its sessions.
#[tokio::test]
async fn only_a_connection_that_identified_itself_loses_its_sessions() {
    let street = Street::new();
    let orphaned = || street.house.hub.look(|registry| registry.counts().orphaned);
    let mut one_shot = street.connect();
    opened(&mut one_shot, json!({})).await;
    drop(one_shot);
    eventually("the peer is gone", || street.house.hub.look(|registry| registry.counts().clients) == 0).await;
    assert_eq!((street.house.sessions(), orphaned()), (1, 0));
    let mut lasting = street.connect();
    let who = lasting.ask(json!({"id": 0, "method": "system.identify"})).await;
    let client = who["result"]["client"].as_str().unwrap().to_owned();
    opened(&mut lasting, json!({"caller": {"client": client}})).await;
    drop(lasting);
    eventually("its session is an orphan", || orphaned() == 1).await;
}

/// S3.18: a method's name elsewhere in a frame, or an open that failed, begins nothing.
#[tokio::test]
async fn only_an_open_that_succeeded_makes_a_session() {
    let street = Street::new();
    let mut peer = street.connect();
    let name = "browser.agent_session.open";
    for (frame, expected) in [
        (json!({"id": 1, "method": "list", "params": {"text": name}}), "bad_argument"),
        (json!({"id": 2, "method": 7, "params": {"method": name}}), "bad_argument"),
        (method(3, "open", json!({"url": "file:///etc/passwd"})), "policy_denied"),
        (method(4, "open", json!({"url": "http://fail.test/"})), "navigation_failed"),
        (method(5, "open", json!({"url": 5})), "bad_argument"),
        (method(6, "open", json!([name])), "bad_argument"),
        (method(7, "open", json!({"profile_id": "11111111-1111-4111-8111-111111111111"})), "session_not_found"),
        (method(8, "tab", json!({})), "bad_argument"),
    ] {
        let id = frame["id"].clone();
        let answer = peer.ask(frame).await;
        assert_eq!((code(&answer), &answer["id"], &answer["ok"]), (expected, &id, &json!(false)), "{answer}");
    }
    eventually("nothing is left", || street.house.sessions() == 0).await;
}

/// S3.33: what is no method is refused as such.
#[tokio::test]
async fn an_unknown_method_names_the_ones_there_are() {
    let street = Street::new();
    let answer = street.connect().ask(json!({"id": 1, "method": "agent-session"})).await;
    assert_eq!(code(&answer), "bad_argument");
    assert!(answer["error"]["hint"].as_str().unwrap().contains("browser.agent_session.open"), "{answer}");
}

/// S3.3, S3.14, S3.15, S3.22
#[tokio::test]
async fn open_with_a_session_id_is_that_session_of_the_caller_also_when_no_seat_is_free() {
    let street = Street::of(crate::testing::House::with(|settings| settings.limits.max_sessions = 1));
    let (one, two) = (street.door.tokens.new_token("one").unwrap(), street.door.tokens.new_token("two").unwrap());
    let params = |token: &str, more: Value| {
        let mut params = json!({"caller": {"token": token}});
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        params
    };
    let mut peer = street.connect();
    let mine = opened(&mut peer, params(&one, json!({"url": "http://a.test/"}))).await;
    assert_eq!(code(&peer.ask(method(2, "open", params(&one, json!({})))).await), "capacity");
    assert_eq!(opened(&mut peer, params(&one, json!({"session_id": mine}))).await, mine);
    let again = peer.ask(method(3, "open", params(&one, json!({"session_id": mine, "url": "http://b.test/"})))).await;
    let result = &again["result"];
    assert_eq!((&result["session_id"], &result["tab_id"], &result["url"]), (&json!(mine), &json!("t2"), &json!("http://b.test/")));
    let foreign = peer.ask(method(4, "open", params(&two, json!({"session_id": mine})))).await;
    assert_eq!(code(&foreign), "session_not_found");
    let none = peer.ask(method(5, "open", params(&one, json!({"session_id": "11111111-1111-4111-8111-111111111111"})))).await;
    assert_eq!(code(&none), "session_not_found");
    let other = peer.ask(method(6, "open", params(&one, json!({"session_id": mine, "profile_id": "work"})))).await;
    assert_eq!(code(&other), "policy_denied", "{other}");
    assert_eq!(street.house.sessions(), 1);
}

/// S3.12: an empty description is none.
#[tokio::test]
async fn who_identified_itself_and_says_nothing_more_is_not_the_operator() {
    let street = Street::new();
    let mut peer = street.connect();
    peer.ask(json!({"id": 0, "method": "system.identify"})).await;
    opened(&mut peer, json!({"caller": {}})).await;
    let list = peer.ask(method(2, "list", json!({}))).await;
    let rows = list["result"]["sessions"].as_array().unwrap();
    assert!(rows.len() == 1 && rows[0]["agent_id"] != "operator", "{list}");
}
