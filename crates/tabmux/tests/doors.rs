//! The HTTP door: who is let in, and Seed 2's `/commands` and `/health`.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::port::quiet_port;
use support::{Http, Lab, SOON, until};

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

/// S2.2, S2.12: a client's id is a UUID, the same from the first answer to the last frame; a frame that is for nobody, or for
/// two, is refused.
#[test]
fn a_frame_is_for_exactly_one_session() {
    let (lab, http) = lab_and_http();
    let instance = http.initialize("/mcp");
    assert_eq!((instance.len(), instance.as_bytes()[14]), (36, b'4'), "a UUID v4: {instance}");
    let body = json!({"type": "command", "sessionId": instance, "name": "navigate", "payload": {"url": "https://one.test/"}});
    let nobody = http.post("/commands", &[], &body);
    assert!(nobody.status == 400 && nobody.body.contains("X-Instance-ID"), "{nobody:?}");
    for (key, wrong) in [("sessionId", json!("another")), ("type", json!("event")), ("name", json!(7)), ("bogus", json!(1))] {
        let mut body = body.clone();
        body[key] = wrong;
        let refused = command(&http, &instance, &body);
        assert!(refused.status == 400 && refused.body.contains(key) && refused.body.contains("bad_argument"), "{key}: {refused:?}");
    }
    assert_eq!(lab.status()["sessions"]["active"], 0, "nothing of it ran");
    let answer = command(&http, &instance, &body).json();
    let mut members: Vec<_> = answer.as_object().unwrap().keys().map(String::as_str).collect();
    members.sort_unstable();
    assert_eq!(members, ["data", "name", "sessionId", "type", "wireId"], "{answer}");
    assert_eq!((&answer["sessionId"], &answer["name"]), (&json!(instance), &json!("navigate")));
}

/// S2.19, S2.20, S2.21, S2.36: where a command without a tab goes.
#[test]
fn a_command_without_a_tab_goes_to_the_last_one_used() {
    let (_lab, http) = lab_and_http();
    let instance = http.initialize("/mcp");
    let run = |body: Value| {
        let answer = command(&http, &instance, &body);
        assert_eq!(answer.status, 200, "{body}: {answer:?}");
        answer.json()["data"].clone()
    };
    let here = |tab: Value| {
        let mut body = json!({"name": "browser_evaluate", "payload": {"expression": "location.href"}});
        if !tab.is_null() {
            body["tabId"] = tab;
        }
        let data = run(body);
        (data["value"].clone(), data["tabId"].clone())
    };
    let first = run(json!({"name": "browser_navigate", "payload": {"url": "https://first.test/"}}))["tabId"].clone();
    assert!(first.is_u64(), "without a tab one was made: {first}");
    let second = run(json!({"name": "browser_tab_new", "payload": {"url": "https://second.test/"}}))["tabId"].clone();
    assert_ne!(first, second);
    assert_eq!(here(second.clone()), (json!("https://second.test/"), second.clone()), "it is in the books before the reply");
    assert_eq!(here(first.clone()), (json!("https://first.test/"), first.clone()));
    assert_eq!(here(Value::Null), (json!("https://first.test/"), first), "the tab that was named is current now");
}

/// S2.16, S2.34
#[test]
fn a_late_or_failed_command_names_itself_and_its_session_and_holds_nothing_up() {
    let (_lab, http) = lab_and_http();
    let instance = http.initialize("/mcp");
    command(&http, &instance, &json!({"name": "navigate", "payload": {"url": "https://one.test/"}}));
    for (script, status, code) in [("hang()", 504, "timeout"), ("throw(\"no\")", 400, "bad_argument")] {
        let body = json!({"name": "evaluate", "payload": {"script": script, "timeout": 300}, "originId": "mine"});
        let failed = command(&http, &instance, &body);
        assert_eq!(failed.status, status, "{failed:?}");
        let failed = failed.json();
        assert_eq!((&failed["error"]["code"], &failed["data"]["success"]), (&json!(code), &json!(false)), "{failed}");
        assert_eq!((&failed["sessionId"], &failed["originId"]), (&json!(instance), &json!("mine")), "{failed}");
        assert_eq!(failed["wireId"].as_str().map(str::len), Some(36), "{failed}");
    }
    let next = command(&http, &instance, &json!({"name": "evaluate", "payload": {"script": "\"next\""}}));
    assert!(next.status == 200 && next.json()["data"]["value"] == "next", "{next:?}");
}

/// S2.11: one session's slow command fills its own queue and nobody else's.
#[test]
fn commands_of_two_sessions_have_each_their_own_queue() {
    let (lab, http) = lab_and_http();
    let [slow, quick] = [(); 2].map(|()| {
        let instance = http.initialize("/mcp");
        command(&http, &instance, &json!({"name": "navigate", "payload": {"url": "https://one.test/"}}));
        instance
    });
    let run = |instance: &str, script: &str| command(&http, instance, &json!({"name": "evaluate", "payload": {"script": script}})).json();
    std::thread::scope(|scope| {
        let sleeping = scope.spawn(|| run(&slow, "sleep(3000)"));
        until("the slow command runs", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
        let behind = scope.spawn(|| run(&slow, "count()"));
        until("the next one waits behind it", SOON, || (lab.status()["calls"]["queued"] == json!(1)).then_some(()));
        assert_eq!(run(&quick, "count()")["data"]["value"], 1);
        assert!(!sleeping.is_finished() && !behind.is_finished(), "the other session did not wait");
        assert_eq!(sleeping.join().unwrap()["data"]["value"], "slept 3000");
        assert_eq!(behind.join().unwrap()["data"]["value"], 1);
    });
}

/// S2.13: another client's session is not connected for this one, by whatever name.
#[test]
fn a_command_for_anothers_session_is_404_and_reaches_nobody() {
    let (lab, http) = lab_and_http();
    let token = lab.run(&["token", "new", "bot"]).stdout.trim().to_owned();
    let owner = http.initialize("/mcp");
    command(&http, &owner, &json!({"name": "navigate", "payload": {"url": "https://mine.test/"}}));
    let listed = http.call("/mcp", &owner, "list_sessions", &json!({})).structured()["sessions"][0].clone();
    let bot = Http::new(http.port, &token);
    for handle in [owner.as_str(), listed["uuid"].as_str().unwrap(), listed["id"].as_str().unwrap(), "browser-1"] {
        let refused = command(&bot, handle, &json!({"name": "navigate", "payload": {"url": "https://stolen.test/"}}));
        assert!(refused.status == 404 && refused.body.contains("Session not connected"), "{handle}: {refused:?}");
    }
    let here = command(&http, &owner, &json!({"name": "evaluate", "payload": {"script": "location.href"}})).json();
    assert_eq!(here["data"]["value"], "https://mine.test/");
}

/// S2.8, S2.9: further ports offer the same paths.
#[test]
fn every_port_that_is_set_serves_the_same_paths() {
    let further = quiet_port();
    let settings = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(settings.path(), format!("[listen]\nalso = [{further}]\n")).unwrap();
    let lab = Lab::with(&[("TABMUX_CONFIG", settings.path().to_str().unwrap())]);
    drop(lab.ready_client());
    let first = lab.http();
    let second = Http::new(further, &first.token);
    let instance = second.initialize("/mcp");
    for http in [&first, &second] {
        let answer = command(http, &instance, &json!({"name": "navigate", "payload": {"url": "https://one.test/"}}));
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(http.get("/health", &[]).json(), json!({"status": "ok", "extensionConnected": false, "sessions": 1}));
    }
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

/// S2.5, S2.14, S2.26: a list over `/commands` says the numbers that count there.
#[test]
fn the_numbers_of_listed_pages_name_tabs_in_commands() {
    let (_lab, http) = lab_and_http();
    let (one, two) = (http.initialize("/mcp"), http.initialize("/mcp"));
    let urls = ["https://first.test/", "https://second.test/"];
    for url in urls {
        command(&http, &two, &json!({"name": "new_page", "payload": {"url": "https://other.test/"}}));
        command(&http, &one, &json!({"name": "new_page", "payload": {"url": url}}));
    }
    let listed = command(&http, &one, &json!({"name": "list_pages"})).json();
    let pages = listed["data"]["pages"].as_array().unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(pages.len(), 2, "{listed}");
    assert!(listed["data"]["success"] == true && listed["data"]["text"].is_string(), "{listed}");
    for ((page, url), local) in pages.iter().zip(urls).zip(["t1", "t2"]) {
        assert_eq!((&page["tabId"], &page["url"]), (&json!(local), &json!(url)), "{page}");
        let script = json!({"name": "evaluate", "payload": {"script": "location.href"}, "tabId": page["tabNumber"]});
        let here = command(&http, &one, &script).json();
        assert_eq!((&here["data"]["value"], &here["data"]["tabId"]), (&json!(url), &page["tabNumber"]), "{here}");
        let refused = command(&http, &two, &script);
        assert!(refused.status == 409 && refused.body.contains("Tab owned by another session"), "{refused:?}");
    }
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
