//! The command line's requests.

use serde_json::{Value, json};

use super::{Street, code};
use crate::testing::eventually;

fn call(id: u64, tool: &str, args: Value) -> Value {
    Value::from_iter([("id", id.into()), ("do", "call".into()), ("tool", tool.into()), ("args", args)])
}

#[tokio::test]
async fn the_operator_calls_lists_renames_and_kills() {
    let street = Street::new();
    let mut cli = street.cli().await;
    let answer = cli.ask(call(1, "start_browser", json!({"sessionId": "web"}))).await;
    assert_eq!((&answer["id"], &answer["ok"]["result"]["sessionId"]), (&json!(1), &json!("web")));
    assert_eq!(answer["ok"]["content"][0], json!({"type": "text", "text": "Started browser session web. Tab t1 is at about:blank."}));
    assert_eq!(cli.ask(json!({"id": 2, "do": "rename", "session": "web", "name": "shop"})).await["ok"]["sessionId"], "shop");
    let list = cli.ask(json!({"id": 3, "do": "sessions"})).await;
    assert_eq!(list["ok"]["sessions"][0]["sessionId"], "shop");
    drop(cli);
    let mut cli = street.cli().await;
    assert_eq!(cli.ask(call(4, "read_text", json!({}))).await["ok"]["result"]["sessionId"], "shop", "it lasts between commands");
    assert_eq!(cli.ask(json!({"id": 5, "do": "kill", "session": "shop"})).await["ok"]["closed"], "shop");
    assert_eq!(code(&cli.ask(json!({"id": 6, "do": "kill", "session": "shop"})).await), "session_not_found");
}

#[tokio::test]
async fn status_has_what_the_contract_names() {
    let street = Street::new();
    let status = street.cli().await.ask(json!({"id": 1, "do": "status"})).await["ok"].clone();
    for key in [
        "running",
        "version",
        "pid",
        "uptime_s",
        "socket",
        "listen",
        "extension",
        "browsers",
        "sessions",
        "clients",
        "calls",
        "counters",
        "memory_kb",
    ] {
        assert!(status.get(key).is_some(), "{key}: {status}");
    }
    assert_eq!((&status["listen"], &status["clients"]), (&json!(null), &json!(1)));
}

/// Contract: with `TABMUX_TOKEN` the command line is that identity, not the operator.
#[tokio::test]
async fn a_token_holder_is_not_the_operator() {
    let street = Street::new();
    let token = street.cli().await.ask(json!({"id": 1, "do": "token_new", "name": "ci"})).await["ok"]["token"].clone();
    street.cli().await.ask(call(2, "start_browser", json!({"sessionId": "own"}))).await;
    let mut ci = street.greeted(json!({"role": "cli", "program": "x", "pid": 1, "token": token})).await;
    for request in [
        json!({"id": 1, "do": "sessions", "all": true}),
        json!({"id": 2, "do": "stop"}),
        json!({"id": 3, "do": "token_new", "name": "x"}),
        json!({"id": 4, "do": "token_list"}),
        json!({"id": 5, "do": "token_revoke", "name": "ci"}),
    ] {
        assert_eq!(code(&ci.ask(request.clone()).await), "policy_denied", "{request}");
    }
    assert_eq!(code(&ci.ask(json!({"id": 6, "do": "kill", "session": "own"})).await), "session_not_found");
    assert_eq!(ci.ask(json!({"id": 7, "do": "sessions"})).await["ok"]["sessions"], json!([]));
    let mut operator = street.cli().await;
    assert_eq!(operator.ask(json!({"id": 1, "do": "token_list"})).await["ok"]["tokens"][0]["name"], "ci");
    assert_eq!(operator.ask(json!({"id": 2, "do": "token_revoke", "name": "ci"})).await["ok"]["revoked"], "ci");
    let mut revoked = street.connect();
    let hello = json!({"tabmux": 1, "hello": {"role": "cli", "program": "x", "pid": 1, "token": token}});
    assert_eq!(code(&revoked.ask(hello).await), "unauthorized");
}

#[tokio::test]
async fn an_interrupted_command_takes_its_call_along() {
    let street = Street::new();
    let mut cli = street.cli().await;
    cli.ask(call(1, "start_browser", json!({}))).await;
    cli.send(call(2, "evaluate", json!({"script": "hang()"}))).await;
    let hub = &street.house.hub;
    eventually("it runs", || hub.look(|registry| registry.counts().running) == 1).await;
    drop(cli);
    eventually("it has ended", || hub.look(tabmux_core::Registry::visits) == 0).await;
    assert_eq!(street.house.sessions(), 1);
}

#[tokio::test]
async fn stop_is_answered_before_the_daemon_closes() {
    let street = Street::new();
    let mut cli = street.cli().await;
    let hub = street.house.hub.clone();
    let door = street.door.clone();
    tokio::spawn(async move {
        hub.stopping.cancelled().await;
        door.closing.cancel();
    });
    assert_eq!(cli.ask(json!({"id": 1, "do": "stop"})).await, json!({"id": 1, "ok": {"stopping": true}}));
    assert_eq!(cli.next().await, Some(json!({"tabmux": 1, "goodbye": "stop"})));
    assert!(cli.next().await.is_none());
}

#[tokio::test]
async fn a_request_that_cannot_be_read_is_answered_and_the_next_one_served() {
    let street = Street::new();
    let mut cli = street.cli().await;
    for (line, id) in [("{\"id\":3,\"do\":\"fly\"}", 3), ("nonsense", 0), ("[]", 0), ("{\"id\":\"x\",\"do\":\"status\"}", 0)] {
        cli.send_bytes(format!("{line}\n").as_bytes()).await;
        let answer = cli.read().await;
        assert_eq!((code(&answer), &answer["id"]), ("bad_argument", &json!(id)), "{line}: {answer}");
    }
    assert!(cli.ask(json!({"id": 4, "do": "status"})).await.get("ok").is_some());
}

/// What the holder of a capability does or tries without a tool is in the audit log too.
#[tokio::test]
async fn what_is_asked_by_a_capability_is_in_the_audit_log() {
    let street = Street::new();
    let owner = street.house.agent("owner");
    owner.ok("start_browser", json!({"sessionId": "web"})).await;
    let shared = owner.ok("share_session", json!({"mode": "act"})).await;
    let capability = shared.result["capability"].as_str().unwrap();
    let mut cli = street.greeted(json!({"role": "cli", "program": "test", "pid": 1, "token": capability})).await;
    let asked = [
        (json!({"do": "sessions"}), "list-sessions ok"),
        (json!({"do": "kill", "session": "web"}), "kill-session policy_denied"),
        (json!({"do": "rename", "session": "web", "name": "x"}), "rename-session policy_denied"),
        (json!({"do": "fork", "session": "web", "count": 1}), "fork policy_denied"),
        (json!({"do": "profile_save", "session": "web", "name": "x"}), "profile save policy_denied"),
    ];
    let mut expected = Vec::new();
    for (number, (mut ask, noted)) in asked.into_iter().enumerate() {
        ask["id"] = number.into();
        cli.ask(ask).await;
        expected.push(format!("used {noted}"));
    }
    let mut seed3 = street.connect();
    for (verb, noted) in [("list", "agent_session.list ok"), ("dispose", "agent_session.dispose policy_denied")] {
        let mut params = json!({"caller": {"token": capability}});
        if verb == "dispose" {
            params["session_id"] = "web".into();
        }
        seed3.ask(json!({"id": 1, "method": format!("browser.agent_session.{verb}"), "params": params})).await;
        expected.push(format!("used {noted}"));
    }
    owner.ok("share_session", json!({"revoke": "all"})).await;
    let refused =
        street.connect().ask(json!({"id": 1, "method": "browser.agent_session.list", "params": {"caller": {"token": capability}}})).await;
    assert_eq!(code(&refused), "unauthorized");
    expected.push("used connect unauthorized".to_owned());
    let log = std::fs::read_to_string(street.house.dir.path().join("state/audit.jsonl")).unwrap();
    let used: Vec<String> = log
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["event"] == "used")
        .map(|line| ["event", "tool", "outcome"].map(|member| line[member].as_str().unwrap_or("-")).join(" "))
        .collect();
    assert_eq!(used, expected);
    assert!(!log.contains(capability), "only by its id");
}
