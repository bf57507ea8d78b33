//! Seed 2's surface.

use std::collections::HashSet;

use tabmux_core::Uuid;

use super::*;

const NAVIGATE: &str = r#"{"name":"browser_navigate","payload":{"url":"http://a/"},"originId":"1"}"#;
const SOME_UUID: &str = "12345678-9abc-4ef0-9234-56789abcdef0";

/// S2.4, S2.10, S2.12, S2.26
#[tokio::test]
async fn a_command_runs_for_the_session_it_names_and_its_answer_echoes_the_envelope() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let answer = door.send("POST /commands", &[("X-Instance-ID", &id)], NAVIGATE).await;
    let mut body = answer.body;
    assert!(body.as_object_mut().unwrap().remove("wireId").unwrap().as_str().unwrap().parse::<Uuid>().is_ok());
    let data = json!({"success": true, "tabId": 7, "url": "http://a/", "text": "Done.", "title": "T"});
    assert_eq!(body, json!({"originId": "1", "sessionId": id, "type": "response", "name": "browser_navigate", "data": data}));
    let args = json!({"url": "http://a/"}).as_object().unwrap().clone();
    let expected = Command { tool: "navigate".into(), args, tab: None };
    assert_eq!(*door.hub.commands.lock().unwrap(), [(HttpIdentity::McpSession(id), expected)]);
}

/// S2.4
#[tokio::test]
async fn an_origin_id_comes_back_unchanged_or_is_refused() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    for origin in ["\"\"", "\"é\\n\"", "0", "-5", "18446744073709551615"] {
        let body = format!(r#"{{"name":"snapshot","originId":{origin}}}"#);
        let answer = door.send("POST /commands", &[("X-Instance-ID", &id)], &body).await;
        assert_eq!(answer.body["originId"], serde_json::from_str::<Value>(origin).unwrap());
    }
    let none = door.send("POST /commands", &[("X-Instance-ID", &id)], r#"{"name":"snapshot"}"#).await;
    assert!(!none.body.as_object().unwrap().contains_key("originId"));
    for origin in ["1.5", "{}", "null", "123456789012345678901234567890"] {
        let body = format!(r#"{{"name":"snapshot","originId":{origin}}}"#);
        assert_eq!(door.send("POST /commands", &[("X-Instance-ID", &id)], &body).await.status, 400, "{origin}");
    }
}

/// S2.3
#[tokio::test]
async fn wire_ids_are_version_4_uuids_and_never_come_twice() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let mut seen = HashSet::new();
    for _ in 0..50 {
        let answer = door.send("POST /commands", &[("X-Instance-ID", &id)], NAVIGATE).await;
        let wire_id = answer.body["wireId"].as_str().unwrap().to_owned();
        let uuid: Uuid = wire_id.parse().unwrap();
        assert_eq!(Uuid::from_random(uuid.0), uuid, "version and variant bits of a v4");
        assert!(seen.insert(wire_id));
    }
}

/// S2.13
#[tokio::test]
async fn a_session_that_is_not_the_senders_is_not_connected_and_nothing_runs() {
    let door = TestDoor::open().await;
    let (a, b) = (door.tokens.new_token("a").unwrap(), door.tokens.new_token("b").unwrap());
    let (of_main, of_a) = (door.initialize("/mcp", &door.main).await, door.initialize("/mcp", &a).await);
    let (given, too) = (CAPABILITY.to_owned(), ANOTHER.to_owned());
    let of_grant = door.initialize("/mcp", &given).await;
    door.hub.sessions.lock().unwrap().push((HttpIdentity::Token("a".into()), "web".into()));
    door.hub.sessions.lock().unwrap().push((HttpIdentity::Anonymous, SOME_UUID.into()));
    let foreign = [
        (&door.main, "nobody"),
        (&door.main, &of_a),
        (&b, &of_a),
        (&b, &of_main),
        (&b, "web"),
        (&door.main, "web"),
        (&b, SOME_UUID),
        (&too, &of_grant),
        (&door.main, &of_grant),
        (&given, &of_main),
        (&given, "web"),
        (&given, SOME_UUID),
    ];
    for (token, id) in foreign {
        let headers = [("X-Instance-ID", id), ("Authorization", &format!("Bearer {token}"))];
        let answer = door.send("POST /commands", &headers, NAVIGATE).await;
        assert_eq!((answer.status, answer.code()), (404, "session_not_found"), "{id}");
        assert_eq!(answer.body["error"]["message"], "Session not connected");
    }
    assert!(door.hub.commands.lock().unwrap().is_empty());
    let missing = door.send("POST /commands", &[], NAVIGATE).await;
    assert_eq!((missing.status, missing.code()), (400, "bad_argument"));
}

/// S2.10
#[tokio::test]
async fn a_session_is_also_named_by_its_uuid_or_by_its_owner() {
    let door = TestDoor::open().await;
    let a = format!("Bearer {}", door.tokens.new_token("a").unwrap());
    door.hub.sessions.lock().unwrap().push((HttpIdentity::Token("a".into()), "web".into()));
    door.hub.sessions.lock().unwrap().push((HttpIdentity::Anonymous, SOME_UUID.into()));
    let path_id = door.initialize("/mcp/p", &door.main).await;
    let send = async |headers: &[(&str, &str)]| assert_eq!(door.send("POST /commands", headers, NAVIGATE).await.status, 200);
    send(&[("X-Instance-ID", SOME_UUID)]).await;
    send(&[("X-Instance-ID", "web"), ("Authorization", &a)]).await;
    send(&[("X-Instance-ID", &path_id)]).await;
    let ran: Vec<_> =
        door.hub.commands.lock().unwrap().iter().map(|(who, command)| (who.clone(), command.args.get("sessionId").cloned())).collect();
    let expected = [
        (HttpIdentity::Anonymous, Some(json!(SOME_UUID))),
        (HttpIdentity::Token("a".into()), Some(json!("web"))),
        (HttpIdentity::Path("p".into()), None),
    ];
    assert_eq!(ran, expected);
    let body = r#"{"name":"navigate","payload":{"sessionId":"other"}}"#;
    assert_eq!(door.send("POST /commands", &[("X-Instance-ID", SOME_UUID)], body).await.status, 400, "a handle for one session only");
}

/// S2.14
#[tokio::test]
async fn a_tab_of_another_session_is_a_conflict() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let answer = door.send("POST /commands", &[("X-Instance-ID", &id)], r#"{"name":"click_element","tabId":42}"#).await;
    assert_eq!((answer.status, &answer.body["error"]["message"]), (409, &json!("Tab owned by another session")));
    let own = door.send("POST /commands", &[("X-Instance-ID", &id)], r#"{"name":"click_element","tabId":7}"#).await;
    assert_eq!(own.status, 200);
    assert_eq!(door.hub.commands.lock().unwrap()[1].1.tab, Some(TabNumber(7)));
    let none = door.send("POST /commands", &[("X-Instance-ID", &id)], r#"{"name":"click_element","tabId":null}"#).await;
    assert_eq!((none.status, door.hub.commands.lock().unwrap()[2].1.tab), (200, None), "null is absent");
}

/// S2.34
#[tokio::test]
async fn a_failed_command_has_its_codes_status_and_names_wire_id_and_session() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    for (name, status, code) in [("fail", 409, "stale_epoch"), ("browser_fly", 400, "bad_argument")] {
        let body = format!(r#"{{"name":"{name}","originId":9}}"#);
        let answer = door.send("POST /commands", &[("X-Instance-ID", &id)], &body).await;
        assert_eq!((answer.status, answer.code()), (status, code));
        assert!(answer.body["wireId"].as_str().unwrap().parse::<Uuid>().is_ok());
        assert_eq!((&answer.body["sessionId"], &answer.body["originId"]), (&json!(id), &json!(9)));
        assert_eq!((&answer.body["data"], &answer.body["type"]), (&json!({"success": false}), &json!("response")));
    }
}

/// S2.34
#[tokio::test]
async fn a_command_without_an_answer_ends_and_its_error_names_wire_id_and_session() {
    let door = TestDoor::with(Bounds { command: Duration::from_millis(50), ..Bounds::default() }, &[("s", SessionOwner::Main)]).await;
    let answer = door.send("POST /commands", &[("X-Instance-ID", "s")], r#"{"name":"hang"}"#).await;
    assert_eq!((answer.status, answer.code()), (504, "timeout"));
    let message = answer.body["error"]["message"].as_str().unwrap();
    assert!(message.contains(answer.body["wireId"].as_str().unwrap()) && message.contains("session s"), "{message}");
    tokio::time::timeout(PATIENCE, door.hub.command_cancelled.notified()).await.expect("the hub is told");
}

#[tokio::test]
async fn a_command_whose_sender_goes_away_is_cancelled() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let body = r#"{"name":"hang"}"#;
    let mut stream = TcpStream::connect(door.addr).await.unwrap();
    let text = format!(
        "POST /commands HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nX-Instance-ID: {id}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        door.addr,
        door.main,
        body.len()
    );
    stream.write_all(text.as_bytes()).await.unwrap();
    tokio::time::timeout(PATIENCE, door.hub.command_began.notified()).await.expect("it runs");
    drop(stream);
    tokio::time::timeout(PATIENCE, door.hub.command_cancelled.notified()).await.expect("and is cancelled");
}

/// S2.12
#[tokio::test]
async fn an_envelope_that_is_not_one_is_refused_with_what_is_wrong() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let wrong = [
        ("[]", "object"),
        ("{}", "name"),
        (r#"{"name":1}"#, "name"),
        (r#"{"name":"snapshot","payload":[]}"#, "payload"),
        (r#"{"name":"snapshot","tabId":"t1"}"#, "tabId"),
        (r#"{"name":"snapshot","tabId":-1}"#, "tabId"),
        (r#"{"name":"snapshot","type":"event"}"#, "type"),
        (r#"{"name":"snapshot","sessionId":"other"}"#, "sessionId"),
        (r#"{"name":"snapshot","colour":1}"#, "colour"),
    ];
    for (body, word) in wrong {
        let answer = door.send("POST /commands", &[("X-Instance-ID", &id)], body).await;
        assert_eq!((answer.status, answer.code()), (400, "bad_argument"), "{body}");
        assert!(answer.body["error"]["message"].as_str().unwrap().contains(word), "{answer:?}");
    }
    assert!(door.hub.commands.lock().unwrap().is_empty());
    let whole = format!(r#"{{"name":"snapshot","type":"command","sessionId":"{id}"}}"#);
    assert_eq!(door.send("POST /commands", &[("X-Instance-ID", &id)], &whole).await.status, 200);
}
