//! Who a caller of `/mcp` is, and whose an `mcp-session-id` is.

use super::*;

const ASK: &str = r#"{"method":"x"}"#;

/// S2.6
#[tokio::test]
async fn the_first_post_gets_a_session_id_and_later_ones_with_it_are_the_same_caller() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let other = door.initialize("/mcp", &door.main).await;
    for id in [&id, &other, &id] {
        let answer = door.send("POST /mcp", &[("Mcp-Session-Id", id)], ASK).await;
        assert_eq!(answer.body["who"], format!("McpSession({id:?})"));
        assert_eq!(answer.body["mcp-session-id"], **id);
    }
    assert_eq!(*door.hub.bound.lock().unwrap(), [format!("+{id} main"), format!("+{other} main")]);
}

/// S2.7
#[tokio::test]
async fn x_instance_id_stands_for_the_session_id() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let answer = door.send("POST /mcp", &[("X-Instance-ID", &id)], ASK).await;
    assert_eq!(answer.body["who"], format!("McpSession({id:?})"));
    assert_eq!((&answer.body["mcp-session-id"], &answer.body["x-instance-id"]), (&json!(id), &Value::Null));
    assert_eq!(door.send("POST /mcp", &[("X-Instance-ID", "mcp-77")], ASK).await.status, 404);
    let torn = door.send("POST /mcp", &[("X-Instance-ID", "mcp-77"), ("Mcp-Session-Id", &id)], ASK).await;
    assert_eq!(torn.status, 400, "two ids that differ");
}

#[tokio::test]
async fn token_and_path_give_an_identity_and_nothing_gives_none() {
    let door = TestDoor::open().await;
    let named = format!("Bearer {}", door.tokens.new_token("ci").unwrap());
    let who = async |path: &str, headers: &[(&str, &str)]| door.send(path, headers, ASK).await.body["who"].clone();
    assert_eq!(who("POST /mcp", &[]).await, "Anonymous");
    assert_eq!(who("POST /mcp/web.1", &[]).await, "Path(\"web.1\")");
    assert_eq!(who("POST /mcp", &[("Authorization", &named)]).await, "Token(\"ci\")");
    assert_eq!(who("POST /mcp/ci", &[("Authorization", &named)]).await, "Token(\"ci\")");
    let capability = format!("Bearer {CAPABILITY}");
    for path in ["POST /mcp", "POST /mcp/web"] {
        assert_eq!(who(path, &[("Authorization", &capability)]).await, format!("Grant({GRANT})"), "whatever the path");
    }
    assert_eq!(door.send("POST /mcp", &[("Authorization", "Bearer tmx_give")], ASK).await.status, 401);
    let elsewhere = door.send("POST /mcp/web", &[("Authorization", &named)], ASK).await;
    assert_eq!((elsewhere.status, &elsewhere.body["error"]["data"]["code"]), (403, &json!("policy_denied")));
    for name in ["", "a/b", "%41", &"x".repeat(65)] {
        assert_eq!(door.send(&format!("POST /mcp/{name}"), &[], ASK).await.status, 400, "{name}");
    }
}

#[tokio::test]
async fn the_handler_never_sees_the_token() {
    let door = TestDoor::open().await;
    assert_eq!(door.send("POST /mcp", &[], ASK).await.body["authorization"], Value::Null);
}

#[tokio::test]
async fn a_session_id_with_another_token_or_path_is_as_good_as_none() {
    let door = TestDoor::open().await;
    let (a, b) = (door.tokens.new_token("a").unwrap(), door.tokens.new_token("b").unwrap());
    let owners = [("/mcp", &door.main), ("/mcp/p", &door.main), ("/mcp/q", &door.main), ("/mcp", &a), ("/mcp", &b)];
    let unknown = door.send("POST /mcp", &[("Mcp-Session-Id", "mcp-77")], ASK).await;
    for (owner, (path, token)) in owners.iter().enumerate() {
        let id = door.initialize(path, token).await;
        for (asker, (path, token)) in owners.iter().enumerate() {
            let token = format!("Bearer {token}");
            let answer = door.send(&format!("POST {path}"), &[("Mcp-Session-Id", &id), ("Authorization", &token)], ASK).await;
            if owner == asker {
                assert_eq!(answer.status, 200);
            } else {
                assert_eq!((answer.status, &answer.body), (404, &unknown.body), "{owner} {asker}");
            }
        }
    }
}

/// The newest revision has no protocol sessions; an old id in the header must neither help nor hurt.
#[tokio::test]
async fn a_stateless_request_is_not_bound_to_a_session_id() {
    let door = TestDoor::open().await;
    let headers = [("Mcp-Session-Id", "mcp-77"), ("MCP-Protocol-Version", "2026-07-28")];
    let answer = door.send("POST /mcp", &headers, ASK).await;
    assert_eq!((answer.status, &answer.body["who"], &answer.body["mcp-session-id"]), (200, &json!("Anonymous"), &Value::Null));
    let headers = [("Mcp-Session-Id", "mcp-77"), ("MCP-Protocol-Version", "2025-11-25")];
    assert_eq!(door.send("POST /mcp", &headers, ASK).await.status, 404);
}

#[tokio::test]
async fn a_restarted_daemon_knows_its_callers_again() {
    let remembered = [("old", SessionOwner::Main), ("path", SessionOwner::Path("p".into()))];
    let door = TestDoor::with(Bounds::default(), &remembered).await;
    assert_eq!(door.send("POST /mcp", &[("Mcp-Session-Id", "old")], ASK).await.body["who"], "McpSession(\"old\")");
    assert_eq!(door.send("POST /mcp", &[("Mcp-Session-Id", "path")], ASK).await.status, 404);
    assert_eq!(door.send("POST /mcp/p", &[("Mcp-Session-Id", "path")], ASK).await.body["who"], "Path(\"p\")");
}

#[tokio::test]
async fn delete_is_a_goodbye_and_the_id_is_gone() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    let stays = door.initialize("/mcp", &door.main).await;
    assert_eq!(door.send("DELETE /mcp", &[("Mcp-Session-Id", &id)], "").await.status, 200);
    assert_eq!(*door.hub.goodbyes.lock().unwrap(), [HttpIdentity::McpSession(id.clone())]);
    assert_eq!(door.hub.bound.lock().unwrap().last(), Some(&format!("-{id}")));
    assert_eq!(door.send("POST /mcp", &[("Mcp-Session-Id", &id)], ASK).await.status, 404);
    assert_eq!(door.send("POST /mcp", &[("Mcp-Session-Id", &stays)], ASK).await.status, 200);
}

#[tokio::test]
async fn those_who_share_a_token_say_goodbye_with_the_last_of_them() {
    let door = TestDoor::open().await;
    let token = door.tokens.new_token("ci").unwrap();
    let bearer = format!("Bearer {token}");
    let ids = [door.initialize("/mcp", &token).await, door.initialize("/mcp", &token).await];
    door.initialize("/mcp", &door.main).await;
    for (id, goodbyes) in ids.iter().zip([&[][..], &[HttpIdentity::Token("ci".into())]]) {
        assert_eq!(door.send("DELETE /mcp", &[("Mcp-Session-Id", id), ("Authorization", &bearer)], "").await.status, 200);
        assert_eq!(*door.hub.goodbyes.lock().unwrap(), goodbyes);
    }
}

#[tokio::test]
async fn an_id_the_mcp_server_forgot_is_let_go() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    assert_eq!(door.send("POST /mcp", &[("Mcp-Session-Id", &id)], r#"{"method":"forgotten"}"#).await.status, 404);
    assert_eq!(door.hub.bound.lock().unwrap().last(), Some(&format!("-{id}")));
    assert!(door.hub.goodbyes.lock().unwrap().is_empty());
}
