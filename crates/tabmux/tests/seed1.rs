//! Seed 1's newline JSON on the daemon's Unix socket: REGISTER, REQUEST, PING, DISCONNECT, STATUS. A peer that
//! says no version speaks version 1.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::{Door, Lab, SOON, until, wait};

/// A home with a running daemon, and a door to it.
fn lab_and_door() -> (Lab, Door) {
    let lab = Lab::new();
    drop(lab.ready_client());
    let door = Door::open(&lab.socket());
    (lab, door)
}

fn register(door: &mut Door) -> String {
    let answer = door.ask(&json!({"type": "REGISTER", "id": "r1"}));
    assert_eq!((&answer["type"], &answer["id"]), (&json!("REGISTER_OK"), &json!("r1")), "{answer}");
    answer["sessionId"].as_str().unwrap_or_else(|| panic!("a session id: {answer}")).to_owned()
}

fn request(door: &mut Door, session: &str, action: &str, params: &Value) -> Value {
    let answer =
        door.ask(&json!({"type": "REQUEST", "id": format!("{session}:1"), "sessionId": session, "action": action, "params": params}));
    assert_eq!((&answer["type"], &answer["id"]), (&json!("RESPONSE"), &json!(format!("{session}:1"))), "{answer}");
    assert_eq!(answer["sessionId"], session, "{answer}");
    answer["payload"].clone()
}

fn active(lab: &Lab) -> u64 {
    lab.status()["sessions"]["active"].as_u64().unwrap()
}

/// S1.13, S1.14, S1.20
#[test]
fn register_reserves_a_session_id_and_opens_nothing_yet() {
    let (lab, mut door) = lab_and_door();
    let session = register(&mut door);
    let hex = session.strip_prefix("sess_").unwrap_or_else(|| panic!("{session}"));
    assert!(hex.len() == 8 && hex.bytes().all(|byte| byte.is_ascii_hexdigit()), "{session}");
    let listed = lab.json(&["ls", "--all", "--json"]);
    assert_eq!((&listed["sessions"], active(&lab)), (&json!([]), 0), "the first request makes the session");
    let other = register(&mut Door::open(&lab.socket()));
    assert_ne!(session, other);
    let (_elsewhere, mut first) = lab_and_door();
    assert_ne!(session, register(&mut first), "drawn at random, not counted: every daemon's first differs");
}

/// S1.15, S1.21, S2.26
#[test]
fn the_first_request_makes_the_session_and_its_tab() {
    let (lab, mut door) = lab_and_door();
    let session = register(&mut door);
    let opened = request(&mut door, &session, "navigate", &json!({"url": "https://one.test/"}));
    assert_eq!(opened["success"], true, "{opened}");
    assert_eq!((&opened["data"]["tabId"], &opened["data"]["url"]), (&json!("t1"), &json!("https://one.test/")), "{opened}");
    assert_eq!(active(&lab), 1);
    let listed = lab.json(&["ls", "--all", "--json"]);
    assert_eq!((&listed["sessions"][0]["id"], &listed["sessions"][0]["tabs"]), (&json!(session), &json!(1)), "{listed}");
    let here = request(&mut door, &session, "evaluate", &json!({"script": "location.href"}));
    assert!(here["success"] == true && here["data"].to_string().contains("https://one.test/"), "{here}");
    let pages = request(&mut door, &session, "list_pages", &json!({}));
    assert_eq!((&pages["data"]["pages"][0]["tabId"], &pages["data"]["pages"][1]), (&json!("t1"), &Value::Null), "{pages}");
    assert_eq!(pages["data"]["pages"][0]["url"], "https://one.test/", "{pages}");
    let failed = request(&mut door, &session, "evaluate", &json!({"script": "throw(\"no\")"}));
    assert!(failed["success"] == false && failed.to_string().contains("bad_argument"), "{failed}");
}

/// S1.22: whatever tabs others open, use and select, requests go to the tab that was bound first.
#[test]
fn later_requests_stay_in_the_bound_tab() {
    let (lab, mut door) = lab_and_door();
    let session = register(&mut door);
    request(&mut door, &session, "navigate", &json!({"url": "https://bound.test/"}));
    let other = lab.ready_client();
    for url in ["https://other.test/0", "https://other.test/1"] {
        other.ok("new_page", &json!({"url": url}));
        assert_eq!(lab.run(&["open", "https://operator.test/"]).code, 0);
        other.ok("select_page", &json!({"pageIdx": 0}));
        let here = request(&mut door, &session, "evaluate", &json!({"script": "location.href"}));
        assert_eq!((&here["data"]["value"], &here["data"]["tabId"]), (&json!("https://bound.test/"), &json!("t1")), "{here}");
    }
}

/// S1.25: the id, the tab, when it was made and when it was last used are in the list, and the latter decides when it ends.
#[test]
fn a_binding_keeps_its_ids_and_times() {
    // Long enough that on a busy machine the used one is never left alone for so long.
    let lab = Lab::with(&[("TABMUX_SESSION_IDLE", "6s")]);
    drop(lab.ready_client());
    let mut door = Door::open(&lab.socket());
    let (used, unused) = (register(&mut door), register(&mut door));
    for session in [&used, &unused] {
        request(&mut door, session, "navigate", &json!({"url": "https://one.test/"}));
    }
    let listed = || lab.json(&["ls", "--all", "--json"])["sessions"].as_array().unwrap().clone();
    let row = listed().into_iter().find(|row| row["id"] == used.as_str()).unwrap();
    assert_eq!(row["tabId"], "t1", "{row}");
    let created = row["createdAt"].as_str().unwrap();
    assert!(created.len() >= 20 && created.as_bytes()[10] == b'T' && created.ends_with('Z'), "{created}");
    until("the unused one is gone", SOON, || {
        let here = request(&mut door, &used, "evaluate", &json!({"script": "1"}));
        assert_eq!(here["success"], true, "a session in use is not idle: {here}");
        (door.ask(&json!({"type": "STATUS", "id": 1}))["activeSessions"] == json!(1)).then_some(())
    });
    let later = &listed()[0];
    assert_eq!(later["createdAt"], created, "use does not make it younger");
    let [before, after] = [&row, later].map(|row| row["lastActiveAt"].as_str().unwrap().get(..19).unwrap());
    assert!(created[..19] <= *before && before < after, "the last call is what counts: {row} {later}");
}

/// S1.35
#[test]
fn a_request_without_a_session_serves_a_single_client() {
    let (lab, mut door) = lab_and_door();
    let mut ask = |action: &str, params: Value| door.ask(&json!({"type": "REQUEST", "id": 1, "action": action, "params": params}));
    let none = ask("evaluate", json!({"script": "1"}));
    assert_eq!(none["payload"]["error"]["code"], "session_required", "{none}");
    let opened = ask("navigate", json!({"url": "https://only.test/"}));
    let session = opened["sessionId"].as_str().unwrap_or_else(|| panic!("the reply says which it is: {opened}")).to_owned();
    assert!(session.starts_with("sess_"), "{opened}");
    let here = ask("evaluate", json!({"script": "location.href"}));
    assert_eq!((&here["sessionId"], &here["payload"]["data"]["value"]), (&json!(session), &json!("https://only.test/")), "{here}");
    assert_eq!(active(&lab), 1);
}

/// S1.46: a request that gets no answer ends at the deadline that is set.
#[test]
fn a_request_times_out() {
    let lab = Lab::with(&[("TABMUX_CALL_DEADLINE", "500ms")]);
    drop(lab.ready_client());
    let mut door = Door::open(&lab.socket());
    let session = register(&mut door);
    request(&mut door, &session, "navigate", &json!({"url": "https://one.test/"}));
    let late = request(&mut door, &session, "evaluate", &json!({"script": "hang()"}));
    assert_eq!((&late["success"], &late["error"]["code"]), (&json!(false), &json!("timeout")), "{late}");
    assert_eq!(request(&mut door, &session, "evaluate", &json!({"script": "1"}))["success"], true);
}

/// S1.16, S1.45
#[test]
fn ping_and_status_are_answered() {
    let (_lab, mut door) = lab_and_door();
    let session = register(&mut door);
    let pong = door.ask(&json!({"type": "PING", "id": "p1", "sessionId": session}));
    assert_eq!((&pong["type"], &pong["id"]), (&json!("PONG"), &json!("p1")), "{pong}");
    request(&mut door, &session, "navigate", &json!({"url": "https://one.test/"}));
    let status = door.ask(&json!({"type": "STATUS", "id": "s1"}));
    assert_eq!((&status["type"], &status["id"]), (&json!("STATUS_OK"), &json!("s1")), "{status}");
    assert_eq!((&status["extensionConnected"], &status["activeSessions"]), (&json!(false), &json!(1)), "{status}");
}

/// S1.17, S2.22
#[test]
fn disconnect_ends_the_session_at_once() {
    let (lab, mut door) = lab_and_door();
    let session = register(&mut door);
    request(&mut door, &session, "navigate", &json!({"url": "https://one.test/"}));
    door.send(&json!({"type": "DISCONNECT", "sessionId": session}));
    until("the session is gone", SOON, || (active(&lab) == 0).then_some(()));
    assert_eq!(lab.status()["sessions"]["orphaned"], 0, "a goodbye leaves no orphan");
}

/// S1.23: what a lost connection does is set.
#[test]
fn a_dropped_connection_closes_or_keeps_the_session_where_that_is_set() {
    for (on_lost, left) in [("close", json!([0, 0])), ("keep", json!([1, 0]))] {
        let settings = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
        std::fs::write(settings.path(), format!("[session]\non_lost = \"{on_lost}\"\norphan_grace = \"1s\"\n")).unwrap();
        let lab = Lab::with(&[("TABMUX_CONFIG", settings.path().to_str().unwrap())]);
        drop(lab.ready_client());
        let mut door = Door::open(&lab.socket());
        let session = register(&mut door);
        request(&mut door, &session, "navigate", &json!({"url": "https://one.test/"}));
        let attached = lab.status()["clients"].clone();
        drop(door);
        let status = until("the connection is gone", SOON, || Some(lab.status()).filter(|status| status["clients"] != attached));
        let counts = |status: &Value| json!([status["sessions"]["active"], status["sessions"]["orphaned"]]);
        assert_eq!(counts(&status), left, "{on_lost}: {status}");
        wait::pass(std::time::Duration::from_millis(1500));
        assert_eq!(counts(&lab.status()), left, "{on_lost}: the grace time is for orphans");
    }
}

/// S1.23, S2.23: a lost connection is no goodbye.
#[test]
fn a_dropped_connection_makes_an_orphan() {
    let (lab, mut door) = lab_and_door();
    let session = register(&mut door);
    request(&mut door, &session, "navigate", &json!({"url": "https://one.test/"}));
    drop(door);
    until("the session is an orphan", SOON, || (lab.status()["sessions"]["orphaned"] == json!(1)).then_some(()));
}

/// S1.37, S2.13
#[test]
fn another_clients_session_answers_like_a_missing_one() {
    let (lab, mut door) = lab_and_door();
    let session = register(&mut door);
    request(&mut door, &session, "navigate", &json!({"url": "https://one.test/"}));
    let mut stranger = Door::open(&lab.socket());
    register(&mut stranger);
    let ask = |door: &mut Door, session: &str| {
        let answer =
            door.ask(&json!({"type": "REQUEST", "id": "x", "sessionId": session, "action": "evaluate", "params": {"script": "1"}}));
        answer.to_string().replace(session, "NAME")
    };
    let foreign = ask(&mut stranger, &session);
    assert!(foreign.contains("session_not_found"), "{foreign}");
    assert_eq!(foreign, ask(&mut stranger, "sess_00000000"));
}

/// S1.46, S2.25
#[test]
fn equal_request_ids_of_two_clients_do_not_meet() {
    let (lab, mut one) = lab_and_door();
    let mut two = Door::open(&lab.socket());
    let sessions = [register(&mut one), register(&mut two)];
    for (door, (session, text)) in [&mut one, &mut two].into_iter().zip(sessions.iter().zip(["\"first\"", "\"second\""])) {
        let request = |id: &str, action: &str, params: Value| json!({"type": "REQUEST", "id": id, "sessionId": session, "action": action, "params": params});
        door.send(&request("same-1", "navigate", json!({"url": "https://x.test/"})));
        door.send(&request("same-2", "evaluate", json!({"script": text})));
    }
    for (door, text) in [(&mut one, "first"), (&mut two, "second")] {
        let answers = [door.next().unwrap(), door.next().unwrap()];
        let evaluated = answers.iter().find(|answer| answer["id"] == "same-2").unwrap_or_else(|| panic!("{answers:?}"));
        assert!(evaluated.to_string().contains(text), "{evaluated}");
        assert_eq!(evaluated["payload"]["data"]["url"], "https://x.test/", "it ran after the navigation: {evaluated}");
    }
}

/// S1.13, S2.27
#[test]
fn a_wrong_frame_gets_a_clear_error_and_the_connection_goes_on() {
    let (_lab, mut door) = lab_and_door();
    let session = register(&mut door);
    for (message, named) in [
        (json!({"type": "REGSITER", "id": "1"}), "REGSITER"),
        (json!({"type": "REQUEST", "id": "1", "sessionId": session}), "action"),
        (json!({"type": "REQUEST", "id": "1", "sessionId": session, "action": "no_such_tool", "params": {}}), "no_such_tool"),
    ] {
        let answer = door.ask(&message);
        assert!(answer.to_string().contains(named), "{message} → {answer}");
    }
    let pong = door.ask(&json!({"type": "PING", "id": "after", "sessionId": session}));
    assert_eq!(pong["type"], "PONG", "{pong}");
}

/// S2.27
#[test]
fn an_unknown_version_is_refused() {
    let (_lab, mut door) = lab_and_door();
    let answer = door.ask(&json!({"type": "REGISTER", "id": "1", "version": 99}));
    assert!(answer.to_string().contains("protocol_version"), "{answer}");
}
