//! `tabmux mcp` as its client sees it, against a double of the daemon that comes and goes.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod double;

use double::{Home, call, done};
use serde_json::{Value, json};

/// A call that was sent again, without the word for how long its client has waited for it.
fn without_wait(mut line: Value) -> Value {
    let meta = line["params"].as_object_mut().unwrap().remove("_meta").expect("it says how long it was waited for");
    assert!(meta["tabmux/waitedMs"].as_u64().is_some_and(|waited| waited < 60_000), "{meta}");
    line
}

#[test]
fn lines_pass_both_ways_unchanged() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    let hello = &daemon.first["hello"];
    assert_eq!((&hello["role"], hello["key"].as_str().unwrap().len()), (&json!("mcp"), 64));
    mcp.say_bytes(b"{\"id\" : 1, \"method\":\"x/y\",  \"params\":{\"big\":12345678901234567890}}\n");
    assert_eq!(daemon.hear().unwrap()["params"]["big"], json!(12_345_678_901_234_567_890_u64));
    daemon.say(&done(&json!(1)));
    assert_eq!(mcp.hear(), done(&json!(1)));
    daemon.say(&json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert_eq!(mcp.hear()["method"], "ping");
    mcp.say(&json!({"jsonrpc": "2.0", "id": 1, "result": {}}));
    assert_eq!(daemon.hear().unwrap()["result"], json!({}));
}

/// S1.26
#[test]
fn when_the_daemon_dies_in_mid_call_reads_are_sent_again_and_writes_have_an_unknown_outcome() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&["--session", "work", "--tools", "slim", "--headed"]);
    let mut daemon = double.welcome();
    let hello = daemon.first["hello"].clone();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
    mcp.say(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
    daemon.hear().unwrap();
    daemon.say(&json!({"jsonrpc": "2.0", "id": 0, "result": {}}));
    mcp.hear();
    for line in
        [call(1, "navigate"), call(2, "list_sessions"), json!({"jsonrpc": "2.0", "id": "l", "method": "tools/list"}), call(3, "answered")]
    {
        mcp.say(&line);
        daemon.hear().unwrap();
    }
    daemon.say(&done(&json!(3)));
    assert_eq!(mcp.hear()["id"], 3);
    drop(daemon);

    let answer = mcp.hear();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(true)));
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("[outcome_unknown] "));
    let mut next = double.welcome();
    let mut expected = hello;
    expected["initialize"] = params;
    assert_eq!(next.first["hello"], expected, "the same key, session, tools and defaults, and the remembered initialize");
    assert_eq!(
        (&expected["session"], &expected["tools"], &expected["defaults"]),
        (&json!("work"), &json!("slim"), &json!({"headless": false}))
    );
    assert_eq!(without_wait(next.hear().unwrap()), call(2, "list_sessions"));
    assert_eq!(next.hear().unwrap()["id"], "l");
    next.say(&done(&json!(2)));
    assert_eq!(mcp.hear()["id"], 2);
    mcp.say(&call(4, "navigate"));
    assert_eq!(next.hear().unwrap(), call(4, "navigate"));
}

#[test]
fn a_read_that_an_upgrade_cut_off_goes_to_the_next_daemon() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    mcp.say(&call(1, "list_sessions"));
    daemon.hear().unwrap();
    daemon.say(&json!({"tabmux": 1, "goodbye": "cut_off"}));
    assert_eq!(without_wait(double.welcome().hear().unwrap()), call(1, "list_sessions"));
}

/// Whoever stops the next daemon at that moment has stopped it: nobody starts another for a call that is over.
#[test]
fn a_call_that_an_upgrade_cut_off_has_an_unknown_outcome_and_starts_no_daemon() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    mcp.say(&call(1, "navigate"));
    daemon.hear().unwrap();
    std::fs::remove_file(home.path().join("run/tabmux.sock")).unwrap();
    daemon.say(&json!({"tabmux": 1, "goodbye": "cut_off"}));
    let answer = mcp.hear();
    assert!(answer["result"]["content"][0]["text"].as_str().unwrap().starts_with("[outcome_unknown] "), "{answer}");
    // It leaves once it has looked for the next daemon; one that it had started would have made its pid file by then.
    drop(mcp.stdin.take());
    assert!(mcp.child.wait().unwrap().success());
    assert!(!home.path().join("run/tabmux.pid").exists(), "nobody was started");
}

#[test]
fn each_request_of_a_batch_is_answered_when_the_daemon_dies() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    mcp.say(&json!([call(1, "navigate"), call(2, "list_sessions")]));
    assert_eq!((daemon.hear(), daemon.hear()), (Some(call(1, "navigate")), Some(call(2, "list_sessions"))));
    drop(daemon);
    assert_eq!(mcp.hear()["id"], 1);
    assert_eq!(without_wait(double.welcome().hear().unwrap()), call(2, "list_sessions"));
}

#[test]
fn an_initialize_that_was_not_answered_is_sent_again_and_not_remembered() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    mcp.say(&initialize);
    daemon.hear().unwrap();
    drop(daemon);
    let mut next = double.welcome();
    assert_eq!(next.first["hello"].get("initialize"), None);
    assert_eq!(next.hear().unwrap(), initialize);
}

/// A suspended daemon keeps its socket and says nothing: no wait is without an end, and none ends before its time.
#[test]
fn a_daemon_that_is_there_and_silent_is_asked_twice_and_then_those_are_answered_whose_time_is_over() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    let mut brief = call(1, "navigate");
    brief["params"]["arguments"]["timeout"] = 1000.into();
    mcp.say(&brief);
    mcp.say(&call(2, "list_sessions"));
    assert_eq!((daemon.hear(), daemon.hear()), (Some(brief), Some(call(2, "list_sessions"))));
    let question = daemon.hear().unwrap();
    assert_eq!((&question["method"], daemon.hear()), (&json!("ping"), Some(question.clone())));
    let answer = mcp.hear();
    let text = answer["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!((&answer["id"], &answer["result"]["_meta"]["tabmux/error"]["code"]), (&json!(1), &json!("timeout")));
    assert!(text.contains("does not answer") && text.contains("may still happen"), "{text}");
    let cancel = daemon.hear().unwrap();
    assert_eq!((&cancel["method"], &cancel["params"]["requestId"]), (&json!("notifications/cancelled"), &json!(1)));
    // It goes on: what was given up is not answered twice, nor are our questions passed on, and who had time is answered.
    daemon.say(&done(&json!(1)));
    daemon.say(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {}}));
    daemon.say(&done(&json!(2)));
    assert_eq!(mcp.hear(), done(&json!(2)));
}

#[test]
fn a_call_the_client_gave_up_is_neither_answered_nor_sent_again() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    mcp.say(&call(1, "list_sessions"));
    mcp.say(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}));
    daemon.hear().unwrap();
    daemon.hear().unwrap();
    drop(daemon);
    let mut next = double.welcome();
    mcp.say(&call(2, "list_sessions"));
    assert_eq!(next.hear().unwrap()["id"], 2);
}

#[test]
fn after_a_goodbye_the_shim_answers_what_is_open_and_waits_for_the_next_line() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    mcp.say(&call(1, "list_sessions"));
    daemon.hear().unwrap();
    daemon.say(&json!({"tabmux": 1, "goodbye": "stop"}));
    drop(daemon);
    let answer = mcp.hear();
    assert_eq!(answer["result"]["_meta"]["tabmux/error"]["code"], "outcome_unknown");
    mcp.say(&call(2, "navigate"));
    let mut next = double.welcome();
    assert_eq!(next.hear().unwrap(), call(2, "navigate"), "the connection was made for this line");
}

#[test]
fn a_client_that_leaves_ends_the_shim_and_its_connection() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    drop(mcp.stdin.take());
    assert_eq!(daemon.hear(), None);
    assert!(mcp.child.wait().unwrap().success());
}

/// `echo … | tabmux mcp`: it closed its end before anything could be answered, and reads on.
#[test]
fn who_pipes_everything_in_gets_every_answer() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    mcp.say(&call(1, "a"));
    mcp.say(&call(2, "b"));
    drop(mcp.stdin.take());
    let mut daemon = double.welcome();
    for id in [1, 2] {
        assert_eq!(daemon.hear().unwrap()["id"], id);
    }
    for id in [2, 1] {
        daemon.say(&json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        assert_eq!(mcp.hear()["id"], id);
    }
    assert_eq!(daemon.hear(), None, "and then it leaves");
    assert!(mcp.child.wait().unwrap().success());
}

#[test]
fn a_signal_ends_the_shim_with_status_zero() {
    let home = Home::new();
    let double = home.double();
    for signal in [rustix::process::Signal::TERM, rustix::process::Signal::INT] {
        let mut mcp = home.mcp(&[]);
        let mut daemon = double.welcome();
        // An answered call says that the loop, and with it the handler, is running.
        mcp.say(&call(1, "x"));
        daemon.hear().unwrap();
        let pid = rustix::process::Pid::from_child(&mcp.child);
        rustix::process::kill_process(pid, signal).unwrap();
        assert_eq!(daemon.hear(), None);
        assert!(mcp.child.wait().unwrap().success());
    }
}

#[test]
fn a_line_that_is_too_long_is_answered_by_id_and_the_next_one_works() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    let mut long = b"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"tools/call\",\"params\":{\"x\":\"".to_vec();
    long.resize(5 * 1024 * 1024, b'x');
    long.extend(b"\"}}\n");
    mcp.say_bytes(&long);
    let answer = mcp.hear();
    assert_eq!((&answer["id"], &answer["error"]["data"]["code"]), (&json!(7), &json!("frame_too_large")));
    mcp.say(&call(8, "x"));
    assert_eq!(daemon.hear().unwrap()["id"], 8);
}

#[test]
fn a_daemon_that_reads_nothing_does_not_keep_its_answers_from_the_client() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let mut daemon = double.welcome();
    let mut stdin = mcp.stdin.take().unwrap();
    let flood = std::thread::spawn(move || {
        let line = format!("{}\n", json!({"jsonrpc": "2.0", "method": "note", "params": {"x": "y".repeat(100_000)}}));
        for _ in 0..100 {
            std::io::Write::write_all(&mut stdin, line.as_bytes()).unwrap();
        }
        stdin
    });
    for id in 0..50 {
        daemon.say(&json!({"jsonrpc": "2.0", "id": id, "result": "z".repeat(10_000)}));
        assert_eq!(mcp.hear()["id"], id);
    }
    for _ in 0..100 {
        assert_eq!(daemon.hear().unwrap()["method"], "note");
    }
    drop(flood.join().unwrap());
}

/// S1.30
#[test]
fn without_a_daemon_every_request_says_why_and_the_next_one_tries_again() {
    let home = Home::new();
    // A directory that is not empty stands where the socket should be: no daemon can listen there.
    std::fs::create_dir_all(home.path().join("run/tabmux.sock/x")).unwrap();
    std::fs::set_permissions(home.path().join("run"), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
    let mut mcp = home.mcp(&[]);
    mcp.say(&call(1, "navigate"));
    let answer = mcp.hear();
    assert_eq!((&answer["id"], &answer["result"]["isError"]), (&json!(1), &json!(true)));
    assert!(!answer["result"]["_meta"]["tabmux/error"]["code"].as_str().unwrap().is_empty());
    mcp.say(&json!({"jsonrpc": "2.0", "id": 2, "method": "initialize", "params": {}}));
    assert!(mcp.hear()["error"]["message"].as_str().unwrap().starts_with('['));
    std::fs::remove_dir_all(home.path().join("run/tabmux.sock")).unwrap();
    let double = home.double();
    mcp.say(&call(3, "navigate"));
    assert_eq!(double.welcome().hear().unwrap()["id"], 3);
}

#[test]
fn a_daemon_that_refuses_the_hello_is_heard_on_every_request() {
    let home = Home::new();
    let double = home.double();
    let mut mcp = home.mcp(&[]);
    let refuse = |double: &double::Double| {
        let mut peer = double.accept();
        peer.say(&json!({"tabmux": 1, "error": {"code": "protocol_version", "message": "Too new.", "hint": "Update."}}));
    };
    refuse(&double);
    assert!(mcp.complaint().contains("[protocol_version] Too new. Update."));
    mcp.say(&call(1, "x"));
    refuse(&double);
    assert_eq!(mcp.hear()["result"]["content"][0]["text"], "[protocol_version] Too new. Update.");
}
