//! What every request must pass.

use super::*;

const ASK: &str = r#"{"method":"x"}"#;

/// A page that rebinds its name to 127.0.0.1 sends its own name as Host, and no Origin.
#[tokio::test]
async fn only_our_own_address_is_a_host() {
    let door = TestDoor::open().await;
    let port = door.addr.port();
    for path in ["GET /health", "POST /mcp", "POST /commands", "GET /nothing"] {
        for host in [format!("evil.example:{port}"), "127.0.0.1".into(), format!("127.0.0.1:{}", port ^ 1)] {
            let answer = door.send(path, &[("Host", &host)], ASK).await;
            assert_eq!((answer.status, answer.code()), (403, "policy_denied"), "{path} {host}");
        }
    }
    for host in [format!("127.0.0.1:{port}"), format!("localhost:{port}"), format!("[::1]:{port}")] {
        assert_eq!(door.send("GET /health", &[("Host", &host)], "").await.status, 200, "{host}");
    }
    let absolute = door.send(&format!("GET http://evil.example:{port}/health"), &[], "").await;
    assert_eq!(absolute.status, 403, "the request line names another host");
}

#[tokio::test]
async fn a_request_without_exactly_one_host_is_refused() {
    let door = TestDoor::open().await;
    let none = door.send("GET /health", &[("Host", LEFT_OUT)], "").await;
    assert_eq!((none.status, none.code()), (400, "bad_argument"));
    let ours = door.addr.to_string();
    assert_eq!(door.send("GET /health", &[("Host", &ours), ("Host", "evil.example")], "").await.status, 400);
}

#[tokio::test]
async fn a_web_page_is_refused_by_its_origin_on_every_path() {
    let door = TestDoor::open().await;
    for path in ["GET /health", "POST /mcp", "POST /commands"] {
        let port = door.addr.port();
        let strangers =
            ["null", "https://evil.example", "chrome-extension://abc", &format!("https://127.0.0.1:{port}"), "http://127.0.0.1:1"];
        for origin in strangers {
            let answer = door.send(path, &[("Origin", origin)], ASK).await;
            assert_eq!((answer.status, answer.code()), (403, "policy_denied"), "{path} {origin}");
        }
    }
    for origin in [format!("http://{}", door.addr), format!("http://localhost:{}", door.addr.port())] {
        assert_eq!(door.send("GET /health", &[("Origin", &origin)], "").await.status, 200, "{origin}");
    }
}

#[tokio::test]
async fn options_is_refused_and_nothing_ever_allows_another_origin() {
    let door = TestDoor::open().await;
    let origin = format!("http://{}", door.addr);
    let answers = [
        door.send("OPTIONS /mcp", &[("Origin", &origin), ("Authorization", LEFT_OUT), ("Access-Control-Request-Method", "POST")], "").await,
        door.send("GET /health", &[("Origin", &origin)], "").await,
        door.send("POST /mcp", &[("Origin", &origin)], ASK).await,
    ];
    assert_eq!(answers.each_ref().map(|answer| answer.status), [405, 200, 200]);
    assert!(answers[0].header("allow").is_some());
    assert!(answers.iter().all(|answer| !answer.headers.to_lowercase().contains("access-control")), "{answers:?}");
}

#[tokio::test]
async fn without_a_right_token_everything_but_health_is_unauthorized() {
    let door = TestDoor::open().await;
    for path in ["POST /mcp", "GET /mcp/x", "POST /commands", "GET /nothing", "POST /health"] {
        let answer = door.send(path, &[("Authorization", LEFT_OUT)], ASK).await;
        assert_eq!((answer.status, answer.code()), (401, "unauthorized"), "{path}");
        assert!(answer.header("www-authenticate").is_some_and(|value| value.starts_with("Bearer")), "{answer:?}");
    }
    let health = door.send("GET /health", &[("Authorization", LEFT_OUT)], "").await;
    assert_eq!((health.status, health.body), (200, json!({"status": "ok", "extensionConnected": true, "sessions": 3})));
    for wrong in [format!("Basic {}", door.main), door.main.clone(), format!("Bearer {}x", door.main)] {
        assert_eq!(door.send("POST /mcp", &[("Authorization", &wrong)], ASK).await.status, 401, "{wrong}");
    }
    let (right, wrong) = (format!("Bearer {}", door.main), "Bearer tmx_0");
    assert_eq!(door.send("POST /mcp", &[("Authorization", wrong), ("Authorization", &right)], ASK).await.status, 401);
    assert!(door.hub.clients.lock().unwrap().is_empty(), "nobody was attached");
    assert_eq!(door.send("POST /mcp", &[("Authorization", &right.replace("Bearer", "bearer"))], ASK).await.status, 200);
}

#[tokio::test]
async fn a_token_in_the_query_string_is_refused_with_a_sentence() {
    let door = TestDoor::open().await;
    for query in [format!("token={}", door.main), format!("a=b&access_token={}", door.main), format!("x={}", door.main)] {
        let answer = door.send(&format!("POST /mcp?{query}"), &[], ASK).await;
        assert_eq!((answer.status, answer.code()), (400, "bad_argument"), "{query}");
        assert!(answer.body["error"]["message"].as_str().unwrap().contains("query string"));
    }
    assert_eq!(door.send("POST /mcp?a=b", &[], ASK).await.status, 200);
}

#[tokio::test]
async fn guessing_is_slowed_down_and_a_right_token_always_passes() {
    let door = TestDoor::open().await;
    let mut statuses = Vec::new();
    for guess in 0..15 {
        let answer = door.send("POST /mcp", &[("Authorization", &format!("Bearer tmx_{guess}"))], ASK).await;
        assert_eq!(answer.code(), "unauthorized");
        statuses.push(answer.status);
    }
    assert_eq!(statuses, [[401; 10].as_slice(), &[429; 5]].concat());
    assert_eq!(door.send("POST /mcp", &[], ASK).await.status, 200);
}

#[tokio::test]
async fn a_revoked_token_is_refused_at_once() {
    let door = TestDoor::open().await;
    let token = format!("Bearer {}", door.tokens.new_token("ci").unwrap());
    assert_eq!(door.send("POST /mcp", &[("Authorization", &token)], ASK).await.status, 200);
    door.tokens.revoke("ci").unwrap();
    assert_eq!(door.send("POST /mcp", &[("Authorization", &token)], ASK).await.status, 401);
}

/// A form of a web page can send text/plain without asking first.
#[tokio::test]
async fn a_post_that_is_not_json_by_its_content_type_is_refused() {
    let door = TestDoor::open().await;
    let id = door.initialize("/mcp", &door.main).await;
    for kind in [LEFT_OUT, "text/plain", "application/x-www-form-urlencoded", "application/jsonp"] {
        let mcp = door.send("POST /mcp", &[("Content-Type", kind)], ASK).await;
        let commands = door.send("POST /commands", &[("Content-Type", kind), ("X-Instance-ID", &id)], ASK).await;
        assert_eq!((mcp.status, commands.status), (415, 415), "{kind}");
    }
    assert_eq!(door.send("POST /mcp", &[("Content-Type", "Application/JSON; charset=utf-8")], ASK).await.status, 200);
}

#[tokio::test]
async fn unknown_paths_list_the_known_ones_and_wrong_methods_the_right_ones() {
    let door = TestDoor::open().await;
    for path in ["GET /", "GET /mcpx", "GET /commands/x"] {
        let answer = door.send(path, &[], "").await;
        assert_eq!(answer.status, 404, "{path}");
        assert!(answer.body["error"]["hint"].as_str().unwrap().contains("/commands"), "{answer:?}");
    }
    for (path, allow) in
        [("GET /commands", "POST"), ("POST /health", "GET, HEAD"), ("PUT /mcp", "GET, POST, DELETE"), ("PATCH /mcp/a", "GET, POST, DELETE")]
    {
        let answer = door.send(path, &[], "").await;
        assert_eq!((answer.status, answer.header("allow")), (405, Some(allow)), "{path}");
    }
}

/// A watchdog that only asks whether it is there.
#[tokio::test]
async fn health_answers_head_without_a_body() {
    let door = TestDoor::open().await;
    let answer = door.send("HEAD /health", &[("Authorization", LEFT_OUT)], "").await;
    assert_eq!((answer.status, &answer.body), (200, &Value::Null));
}
