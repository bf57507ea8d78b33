//! `kill -9` of the daemon, at rest and in mid-call: clients go on as themselves, and nothing is done twice
//! without saying so.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::port::quiet_port;
use support::{Lab, Mcp, SOON, amount, at_once, is_soak, process, until};

/// Within a second, where nothing else uses the machine.
fn back() -> Duration {
    Duration::from_secs(if is_soak("TABMUX_SOAK_ROUNDS") { 1 } else { 5 })
}

/// The client's one session by all that it is called.
fn who(client: &Mcp) -> [Value; 3] {
    let listed = client.ok("list_sessions", &json!({})).structured()["sessions"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(1), "{listed}");
    ["sessionId", "id", "uuid"].map(|name| listed[0][name].clone())
}

/// S1.26, S1.41
#[test]
fn after_a_kill_every_clients_next_call_works() {
    let (rounds, clients) = (amount("TABMUX_SOAK_ROUNDS", 2), amount("TABMUX_SOAK_CLIENTS", 10));
    let lab = Lab::new();
    let attached = at_once((0..clients).collect(), |number| {
        let client = lab.ready_client();
        client.ok(
            "start_browser",
            &json!({"sessionId": format!("kept-{number}"), "navigationUrl": format!("https://example.test/{number}")}),
        );
        let known = who(&client);
        (number, client, known)
    });
    for round in 1..=rounds {
        let killed = lab.daemon_pid();
        process::kill(killed);
        let times = at_once(attached.iter().collect(), |(number, client, known)| {
            let began = Instant::now();
            let pages = client.ok("list_pages", &json!({}));
            let took = began.elapsed();
            assert!(pages.text().contains(&format!("https://example.test/{number}")), "{pages:?}");
            assert_eq!(who(client), *known);
            took
        });
        let slowest = times.into_iter().max().unwrap();
        println!("round {round}: after kill -9 of {killed} the slowest of {clients} clients had its next answer in {slowest:?}");
        assert!(slowest < back(), "{slowest:?}");
        until("one daemon is back", SOON, || (lab.daemons().len() == 1).then_some(()));
        assert_ne!(lab.daemon_pid(), killed);
    }
}

/// S1.26
#[test]
fn in_mid_call_a_read_is_sent_again_and_a_write_is_unknown() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "work", "navigationUrl": "https://example.test/here"}));
    let write = client.start_call("evaluate", &json!({"sessionId": "work", "script": "sleep(25000)"}));
    // Waits behind the write, so it is unanswered too.
    let read = client.start_call("list_pages", &json!({"sessionId": "work"}));
    until("the write runs", SOON, || (lab.status()["calls"]["running"].as_u64() >= Some(1)).then_some(()));
    process::kill(lab.daemon_pid());
    let unknown = client.finish_call(&write, back());
    assert_eq!(unknown.code(), "outcome_unknown", "{unknown:?}");
    let again = client.finish_call(&read, back());
    assert!(!again.failed() && again.text().contains("https://example.test/here"), "{again:?}");
    client.ok("evaluate", &json!({"sessionId": "work", "script": "1"}));
}

/// S1.41, S2.6: under `up` an HTTP client goes on with the same mcp-session-id.
#[test]
fn under_up_an_http_client_goes_on_after_a_kill() {
    let port = quiet_port();
    let lab = Lab::with(&[("TABMUX_LISTEN", &format!("127.0.0.1:{port}"))]);
    let mut up = lab.spawn(lab.command(&["up"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    until("up has started the daemon", SOON, || (lab.status()["running"] == json!(true)).then_some(()));
    let http = lab.http();
    let session = http.initialize("/mcp");
    let opened = http.call("/mcp", &session, "start_browser", &json!({"sessionId": "web", "navigationUrl": "https://example.test/"}));
    assert!(!opened.failed(), "{opened:?}");
    let killed = lab.daemon_pid();
    process::kill(killed);
    let began = Instant::now();
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_sessions", "arguments": {}}});
    let headers = [("mcp-session-id", session.as_str()), ("mcp-protocol-version", "2025-11-25")];
    let answer = until("HTTP answers again", back(), || http.try_request("POST", "/mcp", &headers, body.to_string().as_bytes()).ok());
    println!("HTTP was back {:?} after kill -9 of {killed}", began.elapsed());
    assert_eq!(answer.status, 200, "{answer:?}");
    let names = answer.message()["result"]["structuredContent"]["sessions"][0]["sessionId"].clone();
    assert_eq!(names, "web", "{answer:?}");
    assert_ne!(lab.daemon_pid(), killed);
    process::signal(up.id(), rustix::process::Signal::INT);
    until("up ends", SOON, || up.try_wait().unwrap());
    lab.assert_nothing_left();
}

/// S2.31: a client that was killed leaves an orphan, and coming back under its name it finds the session.
#[test]
fn a_client_with_a_name_that_was_killed_gets_its_session_back() {
    let lab = Lab::new();
    let first = lab.client_with(&["mcp", "--session", "mine"]);
    first.initialize();
    first.ok("navigate", &json!({"url": "https://example.test/state"}));
    process::kill(first.pid());
    first.wait_exit(SOON);
    until("the session is an orphan", SOON, || (lab.status()["sessions"]["orphaned"] == json!(1)).then_some(()));
    let second = lab.client_with(&["mcp", "--session", "mine"]);
    second.initialize();
    assert_eq!(second.sessions(), ["mine"]);
    let pages = second.ok("list_pages", &json!({})).structured()["pages"].clone();
    assert_eq!((&pages[0]["tabId"], &pages[0]["url"]), (&json!("t1"), &json!("https://example.test/state")), "{pages}");
    let third = lab.client_with(&["mcp", "--session", "mine"]);
    third.initialize();
    third.fails("list_pages", &json!({}), "session_exists");
}
