//! The HTTP door: who is let in, and Seed 2's `/commands` and `/health`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::{Http, Lab};

fn lab_and_http() -> (Lab, Http) {
    let lab = Lab::new();
    drop(lab.ready_client());
    let http = lab.http();
    (lab, http)
}

fn command(http: &Http, instance: &str, body: &Value) -> support::http::Answer {
    http.post("/commands", &[("X-Instance-ID", instance)], body)
}

fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
           "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "e2e", "version": "0"}}})
}

/// S2.8
#[test]
fn strangers_are_kept_out_on_every_path() {
    let (_lab, http) = lab_and_http();
    for path in ["/mcp", "/mcp/someone", "/commands"] {
        let instance = if path == "/commands" { http.initialize("/mcp") } else { String::new() };
        let status =
            |headers: &[(&str, &str)]| http.post(path, &[&[("X-Instance-ID", &*instance)], headers].concat(), &initialize()).status;
        assert_eq!(status(&[("Authorization", "")]), 401, "{path}: no token");
        assert_eq!(status(&[("Authorization", "Bearer nonsense")]), 401, "{path}: wrong token");
        assert_eq!(status(&[("Host", "evil.test")]), 403, "{path}: a rebinding page");
        assert_eq!(status(&[("Origin", "https://evil.test")]), 403, "{path}: another origin");
        assert_eq!(status(&[("Content-Type", "text/plain")]), 415, "{path}: a form could send this");
    }
    let query = http.post(&format!("/mcp?token={}", http.token), &[("Authorization", "")], &initialize());
    assert!([400, 401].contains(&query.status), "a token in the URL does not count: {query:?}");
    assert_eq!(http.get("/health", &[("Host", "evil.test")]).status, 403);
    let cross = http.request("OPTIONS", "/mcp", &[("Origin", "https://evil.test"), ("Access-Control-Request-Method", "POST")], b"");
    assert!(cross.header("access-control-allow-origin").is_none(), "no CORS: {cross:?}");
}

/// S2.9
#[test]
fn health_says_what_it_is_asked() {
    let (lab, http) = lab_and_http();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({}));
    let health = http.get("/health", &[]);
    assert_eq!(health.status, 200, "{health:?}");
    let health = health.json();
    assert!(health["status"].is_string(), "{health}");
    assert_eq!((&health["extensionConnected"], &health["sessions"]), (&json!(false), &json!(1)), "{health}");
}

/// S2.6, S2.7, S2.8
#[test]
fn the_first_post_gives_an_identity_and_later_ones_are_it() {
    let (_lab, http) = lab_and_http();
    let (one, two) = (http.initialize("/mcp"), http.initialize("/mcp"));
    assert_ne!(one, two);
    let opened = http.call("/mcp", &one, "start_browser", &json!({"sessionId": "web"}));
    assert!(!opened.failed(), "{opened:?}");
    let names = |session: &str| http.call("/mcp", session, "list_sessions", &json!({})).structured()["sessions"].as_array().unwrap().len();
    assert_eq!((names(&one), names(&two)), (1, 0));
    let call = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {}}});
    let instance = http.post("/mcp", &[("x-instance-id", &one), ("mcp-protocol-version", "2025-11-25")], &call);
    assert_eq!(instance.message()["result"]["structuredContent"]["sessions"].as_array().map(Vec::len), Some(1), "{instance:?}");
    let ended = http.request("DELETE", "/mcp", &[("mcp-session-id", &one)], b"");
    assert!((200..300).contains(&ended.status), "{ended:?}");
    let after = http.post("/mcp", &[("mcp-session-id", &one), ("mcp-protocol-version", "2025-11-25")], &call);
    assert_eq!(after.status, 404, "{after:?}");
}

/// S2.22: DELETE is a goodbye.
#[test]
fn delete_closes_the_callers_sessions() {
    let (lab, http) = lab_and_http();
    let id = http.initialize("/mcp");
    http.call("/mcp", &id, "start_browser", &json!({}));
    assert_eq!(lab.status()["sessions"]["active"], 1);
    http.request("DELETE", "/mcp", &[("mcp-session-id", &id)], b"");
    let status = lab.status();
    assert_eq!((&status["sessions"]["active"], &status["sessions"]["orphaned"]), (&json!(0), &json!(0)), "{status}");
}

/// C11: a path of its own is an identity that lasts.
#[test]
fn a_path_of_its_own_is_an_identity() {
    let (_lab, http) = lab_and_http();
    let first = http.initialize("/mcp/alice");
    http.call("/mcp/alice", &first, "start_browser", &json!({"sessionId": "mine"}));
    let second = http.initialize("/mcp/alice");
    let again = http.call("/mcp/alice", &second, "list_sessions", &json!({})).structured();
    assert_eq!(again["sessions"][0]["sessionId"], "mine", "{again}");
    let bob = http.initialize("/mcp/bob");
    assert_eq!(http.call("/mcp/bob", &bob, "list_sessions", &json!({})).structured()["sessions"], json!([]));
}

/// S2.3, S2.4, S2.10, S2.26
#[test]
fn a_command_runs_for_its_instance_and_echoes_the_callers_id() {
    let (_lab, http) = lab_and_http();
    let instance = http.initialize("/mcp");
    let opened = command(&http, &instance, &json!({"name": "navigate", "payload": {"url": "https://one.test/"}, "originId": "mine-1"}));
    assert_eq!(opened.status, 200, "{opened:?}");
    let opened = opened.json();
    assert_eq!(
        (&opened["type"], &opened["originId"], &opened["sessionId"]),
        (&json!("response"), &json!("mine-1"), &json!(instance)),
        "{opened}"
    );
    assert_eq!((&opened["data"]["success"], &opened["data"]["url"]), (&json!(true), &json!("https://one.test/")), "{opened}");
    let here = command(&http, &instance, &json!({"name": "evaluate", "payload": {"script": "location.href"}})).json();
    assert!(here["data"].to_string().contains("https://one.test/"), "{here}");
    let wires = [&opened["wireId"], &here["wireId"]].map(|id| id.as_str().unwrap().to_owned());
    assert!(wires.iter().all(|id| id.len() == 36 && id.as_bytes()[14] == b'4'), "{wires:?}");
    assert_ne!(wires[0], wires[1]);
}

/// S2.13
#[test]
fn a_command_for_an_unknown_session_is_404_and_reaches_nobody() {
    let (lab, http) = lab_and_http();
    let answer = command(&http, "nobody", &json!({"name": "navigate", "payload": {"url": "https://one.test/"}}));
    assert_eq!(answer.status, 404, "{answer:?}");
    assert!(answer.body.contains("Session not connected"), "{answer:?}");
    assert_eq!(lab.status()["sessions"]["active"], 0);
}

/// S2.5, S2.14
#[test]
fn a_command_for_anothers_tab_is_409_and_does_nothing() {
    let (_lab, http) = lab_and_http();
    let (one, two) = (http.initialize("/mcp"), http.initialize("/mcp"));
    let open = |instance: &str, url: &str| command(&http, instance, &json!({"name": "navigate", "payload": {"url": url}})).json();
    let opened = open(&one, "https://one.test/");
    open(&two, "https://two.test/");
    let tab = &opened["data"]["tabId"];
    assert!(tab.is_u64(), "{opened}");
    let refused = command(&http, &two, &json!({"name": "navigate", "payload": {"url": "https://stolen.test/"}, "tabId": tab}));
    assert_eq!(refused.status, 409, "{refused:?}");
    assert!(refused.body.contains("Tab owned by another session"), "{refused:?}");
    let here = command(&http, &one, &json!({"name": "evaluate", "payload": {"script": "location.href"}})).json();
    assert!(here.to_string().contains("https://one.test/"), "{here}");
}

/// S2.8
#[test]
fn a_token_of_its_own_is_an_identity() {
    let (lab, http) = lab_and_http();
    let made = lab.run(&["token", "new", "bot"]);
    let token = made.stdout.split_whitespace().max_by_key(|word| word.len()).unwrap().to_owned();
    let bot = Http::new(http.port, &token);
    let id = bot.initialize("/mcp");
    assert!(!bot.call("/mcp", &id, "start_browser", &json!({"sessionId": "bots"})).failed());
    let again = bot.initialize("/mcp");
    assert_eq!(bot.call("/mcp", &again, "list_sessions", &json!({})).structured()["sessions"][0]["sessionId"], "bots");
    lab.run(&["token", "revoke", "bot"]);
    assert_eq!(bot.post("/mcp", &[], &initialize()).status, 401);
}
