//! The command line as scripts see it: exit status, standard output, standard error.
#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod double;

use std::process::{Output, Stdio};

use double::Home;
use serde_json::{Value, json};

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn ran(output: Output) -> Ran {
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

fn run(home: &Home, args: &[&str]) -> Ran {
    ran(home.tabmux(args).output().unwrap())
}

/// Runs the command line against a double that answers its one question.
fn asked(args: &[&str], answer: &Value) -> (Value, Ran) {
    let home = Home::new();
    let double = home.double();
    std::thread::scope(|scope| {
        let command = scope.spawn(|| run(&home, args));
        (double.answer(answer), command.join().unwrap())
    })
}

#[test]
fn wrong_usage_is_status_two_and_with_json_one_document() {
    let home = Home::new();
    for args in [
        &["no-such-command"][..],
        &["kill-session"],
        &["ls", "--bogus"],
        &["call"],
        &["mcp", "--tools", "all"],
        &["mcp", "--session", ""],
        &["mcp", "--from", "work", "--storage-state", "state.json"],
        &["fork", "-n", "0"],
        &["fork", "-n", "101"],
        &["-L", "../x", "status"],
    ] {
        let plain = run(&home, args);
        assert_eq!((plain.code, plain.out.as_str()), (2, ""), "{args:?}: {}", plain.err);
        assert!(!plain.err.is_empty());
        let json = run(&home, &[args, &["--json"]].concat());
        let document: Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!((json.code, &document["error"]["code"]), (2, &json!("bad_argument")), "{args:?}");
    }
}

#[test]
fn without_a_daemon_commands_that_start_none_end_with_69_and_one_sentence() {
    let home = Home::new();
    for args in [
        &["status"][..],
        &["ls"],
        &["has-session", "-t", "x"],
        &["kill-session", "-t", "x"],
        &["rename-session", "-t", "x", "y"],
        &["token", "ls"],
        &["agent-session", "list"],
        &["logs"],
    ] {
        let plain = run(&home, args);
        assert_eq!((plain.code, plain.out.as_str(), plain.err.lines().count()), (69, "", 1), "{args:?}: {}", plain.err);
    }
    let listed = run(&home, &["ls", "--json"]);
    let document: Value = serde_json::from_str(&listed.out).unwrap();
    assert_eq!((listed.code, &document["error"]["code"]), (69, &json!("session_not_found")), "tabmux itself has no fault");
    let status = run(&home, &["status", "--json"]);
    assert_eq!((status.code, status.out.as_str()), (0, "{\"running\":false}\n"));
    assert_eq!(run(&home, &["stop"]).code, 0);
    assert_eq!(run(&home, &["kill-server"]).code, 0);
    let bare = run(&home, &[]);
    assert!(bare.code == 0 && bare.out.contains("tabmux up"));
    assert!(!home.path().join("run").exists(), "nothing was made by asking");
}

#[test]
fn bad_configuration_is_status_78_whatever_the_command() {
    let home = Home::new();
    let failed = ran(home.tabmux(&["status"]).env("TABMUX_SESSION_IDLE", "soon").output().unwrap());
    assert_eq!((failed.code, failed.out.as_str()), (78, ""));
    assert!(failed.err.contains("TABMUX_SESSION_IDLE") && failed.err.contains("30s"), "{}", failed.err);
    let failed = run(&home, &["--set", "sesion.idle=1", "ls", "--json"]);
    assert_eq!(failed.code, 78);
    assert!(serde_json::from_str::<Value>(&failed.out).unwrap()["error"]["hint"].as_str().unwrap().contains("session.idle"));
}

#[test]
fn no_home_names_the_variable_to_set() {
    let home = Home::new();
    let failed = ran(home.tabmux(&["status"]).env_remove("HOME").env_remove("TABMUX_STATE_DIR").output().unwrap());
    assert_eq!(failed.code, 78);
    assert!(failed.err.contains("TABMUX_STATE_DIR"), "{}", failed.err);
}

#[test]
fn a_runtime_directory_that_others_can_enter_is_refused_with_69() {
    let home = Home::new();
    let run_dir = home.path().join("run");
    std::fs::create_dir(&run_dir).unwrap();
    std::fs::set_permissions(&run_dir, std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    for args in [&["ls"][..], &["new"], &["mcp"]] {
        let failed = run(&home, args);
        assert_eq!((failed.code, failed.out.as_str()), (69, ""), "{args:?}");
        assert!(failed.err.contains("mode 0777") && failed.err.contains("chmod 700"), "{}", failed.err);
    }
}

#[test]
fn what_is_not_built_yet_says_so() {
    let home = Home::new();
    let failed = run(&home, &["attach", "-t", "x"]);
    assert_eq!(failed.code, 1);
    assert!(failed.err.contains("[unsupported]") && failed.err.contains("attach"), "{}", failed.err);
}

#[test]
fn tools_of_a_later_version_are_said_to_be_that_and_start_nothing() {
    let home = Home::new();
    let failed = run(&home, &["call", "start_app_session"]);
    assert_eq!((failed.code, failed.out.as_str()), (1, ""));
    assert!(failed.err.contains("[unsupported]") && failed.err.contains("is not in this version yet"), "{}", failed.err);
    assert!(!home.path().join("run").exists());
}

#[test]
fn with_json_wrong_usage_names_the_arguments_and_what_is_no_json_is_refused() {
    let home = Home::new();
    let message = |args: &[&str]| {
        let failed = run(&home, args);
        assert_eq!(failed.code, 2, "{args:?}");
        serde_json::from_str::<Value>(&failed.out).unwrap()["error"]["message"].as_str().unwrap().to_owned()
    };
    assert!(message(&["call", "--json"]).ends_with("were not provided: <TOOL>."));
    assert!(message(&["completions", "bash", "--json"]).contains("no JSON"));
    assert!(message(&["logs", "-f", "--json"]).contains("no JSON"));
    assert!(message(&["new", "--isolation", "zzz", "--json"]).contains("zzz"));
    std::fs::create_dir(home.path().join("state")).unwrap();
    std::fs::write(home.path().join("state/daemon.log"), "one\ntwo\n").unwrap();
    let log: Value = serde_json::from_str(&run(&home, &["logs", "--json"]).out).unwrap();
    assert_eq!(log["lines"], json!(["one", "two"]));
}

#[test]
fn a_log_whose_reader_left_ends_silently() {
    let home = Home::new();
    std::fs::create_dir(home.path().join("state")).unwrap();
    std::fs::write(home.path().join("state/daemon.log"), "a line\n".repeat(100_000)).unwrap();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let ended = home.tabmux(&["logs"]).stdout(writer).output().unwrap();
    assert_eq!((ended.status.code(), ended.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn a_broken_configuration_does_not_keep_stop_and_is_what_doctor_reports() {
    let home = Home::new();
    let broken = |args: &[&str]| ran(home.tabmux(args).env("TABMUX_SESSION_IDLE", "soon").output().unwrap());
    assert_eq!(broken(&["stop"]).code, 0);
    let doctor = broken(&["doctor"]);
    assert!(doctor.code == 1 && doctor.out.starts_with("problem  configuration: session.idle"), "{}", doctor.out);
}

#[test]
fn a_command_that_met_a_daemon_on_its_way_out_asks_the_next_one() {
    let home = Home::new();
    let double = home.double();
    std::thread::scope(|scope| {
        let command = scope.spawn(|| run(&home, &["eval", "1"]));
        let mut leaving = double.welcome();
        leaving.hear();
        leaving.say(&json!({"tabmux": 1, "goodbye": "empty"}));
        drop(leaving);
        double.answer(&json!({"ok": {"content": [{"type": "text", "text": "1"}]}}));
        assert_eq!(command.join().unwrap().out, "1\n");
        let command = scope.spawn(|| run(&home, &["eval", "1"]));
        double.welcome().say(&json!({"tabmux": 1, "goodbye": "stop"}));
        let ended = command.join().unwrap();
        assert!(ended.code == 69 && ended.err.contains("[cancelled]") && ended.err.contains("(stop)"), "{}", ended.err);
    });
}

/// Runs `tabmux up` beside a daemon it adopts, which then leaves with this word.
fn adopted(home: &Home, goodbye: &str) -> std::process::Child {
    adopted_by(home, &["up"], goodbye)
}

fn adopted_by(home: &Home, up: &[&str], goodbye: &str) -> std::process::Child {
    let double = home.double();
    let (out, err) = (std::process::Stdio::piped(), std::process::Stdio::piped());
    let up = home.tabmux(up).stdout(out).stderr(err).spawn().unwrap();
    // It looks whether that one is older, then whether anybody listens.
    drop(double.welcome());
    double.knocked();
    let mut watched = double.welcome();
    double.answer(&json!({"ok": {"listen": null}}));
    std::fs::remove_file(home.path().join("run/tabmux.sock")).unwrap();
    watched.say(&json!({"tabmux": 1, "goodbye": goodbye}));
    up
}

#[test]
fn up_ends_when_the_daemon_it_adopted_is_stopped() {
    let ended = ran(adopted(&Home::new(), "stop").wait_with_output().unwrap());
    assert!(ended.code == 0 && ended.err.contains("was stopped"), "{}", ended.err);
}

#[test]
fn up_says_in_one_json_document_how_clients_connect() {
    let ended = ran(adopted_by(&Home::new(), &["up", "--json"], "stop").wait_with_output().unwrap());
    assert_eq!(ended.code, 0, "{}", ended.err);
    let document: Value = serde_json::from_str(&ended.out).unwrap_or_else(|error| panic!("{error}: {}", ended.out));
    let server = &document["clients"]["mcpServers"]["tabmux"];
    assert!(server["command"].is_string() && server["args"].as_array().unwrap().contains(&json!("mcp")), "{document}");
    assert!(document["browser"].is_string() && document["http"].is_null(), "{document}");
}

#[test]
fn up_goes_on_with_a_daemon_of_its_own_when_the_one_it_adopted_was_empty() {
    let home = Home::new();
    let up = adopted(&home, "empty");
    let begun = std::time::Instant::now();
    while serde_json::from_str::<Value>(&run(&home, &["status", "--json"]).out).unwrap()["pid"].is_null() {
        assert!(begun.elapsed().as_secs() < 20, "up starts its own");
    }
    assert_eq!(run(&home, &["stop"]).code, 0);
    let ended = ran(up.wait_with_output().unwrap());
    assert!(ended.code == 0 && ended.err.contains("one of our own") && !ended.err.contains("died"), "{}", ended.err);
}

#[test]
fn a_daemon_that_does_not_answer_is_named_by_its_pid() {
    let home = Home::new();
    let double = home.double();
    let run_dir = home.path().join("run");
    let lock = std::fs::File::create(run_dir.join("tabmux.lock")).unwrap();
    lock.lock().unwrap();
    std::fs::write(run_dir.join("tabmux.pid"), "4194303\n").unwrap();
    let begun = std::time::Instant::now();
    let failed = run(&home, &["status"]);
    assert!(failed.code == 69 && failed.err.contains("pid 4194303 does not answer"), "{}", failed.err);
    assert!(begun.elapsed().as_secs() < 10);
    drop(double);
}

/// A call may take long; only a daemon that does not even welcome anybody is given up.
#[test]
fn a_call_is_waited_for_as_long_as_its_daemon_answers_others() {
    let home = Home::new();
    let double = home.double();
    let lock = std::fs::File::create(home.path().join("run/tabmux.lock")).unwrap();
    lock.lock().unwrap();
    let slow = || home.tabmux(&["call", "navigate", "url=https://a.test", "--timeout", "500"]);
    let piped = |mut command: std::process::Command| command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();

    let called = piped(slow());
    let mut asked = double.welcome();
    asked.hear().expect("a question");
    asked.say_bytes(b"{\"id\":1,\"ok\":{\"content\":[{\"type\":\"text\",");
    drop(double.welcome());
    asked.say_bytes(b"\"text\":\"Went there.\"}]}}\n");
    let done = ran(called.wait_with_output().unwrap());
    assert_eq!((done.code, done.out.as_str()), (0, "Went there.\n"), "{}", done.err);

    let called = piped(slow());
    let mut asked = double.welcome();
    asked.hear().expect("a question");
    let given_up = ran(called.wait_with_output().unwrap());
    assert!(given_up.code == 69 && given_up.err.contains("does not answer"), "{}", given_up.err);
}

#[test]
fn a_door_that_could_not_open_is_shown_with_its_reason() {
    let why = "127.0.0.1:3026 is taken by process 7 (nc).";
    let (_, status) = asked(&["status"], &json!({"ok": {"listen": null, "listen_error": why}}));
    assert!(status.out.contains(&format!("off: {why}")), "{}", status.out);
}

#[test]
fn completions_and_the_man_page_need_no_configuration() {
    let home = Home::new();
    for (args, part) in [(&["completions", "bash"][..], "_tabmux"), (&["completions", "zsh"], "#compdef"), (&["man"], ".TH tabmux")] {
        let output = ran(home.tabmux(args).env("TABMUX_SESSION_IDLE", "soon").output().unwrap());
        assert!(output.code == 0 && output.out.contains(part), "{args:?}: {}", output.err);
    }
}

#[test]
fn the_tool_table_needs_no_daemon_and_says_what_it_costs() {
    let home = Home::new();
    let tools: Value = serde_json::from_str(&run(&home, &["tools", "--cost", "--json"]).out).unwrap();
    let costs: u64 = tools["tools"].as_array().unwrap().iter().map(|tool| tool["tokens"].as_u64().unwrap()).sum();
    assert!(costs > 100 && tools["tokens"] == costs);
    assert!(run(&home, &["tools"]).out.contains("navigate\t"));
}

#[test]
fn sessions_are_listed_in_any_format_that_was_asked_for() {
    let sessions = json!({"ok": {"sessions": [{"sessionId": "web", "id": "sess_1", "uuid": "u", "type": "browser", "tabs": 2}], "currentSession": "web"}});
    let (ask, listed) = asked(&["ls", "-F", "#{session_name}:#{session_tabs}"], &sessions);
    assert_eq!((&ask["do"], &ask["all"], listed.out.as_str()), (&json!("sessions"), &json!(false), "web:2\n"));
    let (ask, listed) = asked(&["list-sessions", "--all", "--json"], &sessions);
    assert_eq!((&ask["all"], serde_json::from_str::<Value>(&listed.out).unwrap()), (&json!(true), sessions["ok"].clone()));
    assert_eq!(asked(&["ls"], &sessions).1.out, "web\tsess_1\tbrowser\t\t2\t\t\n");
    for (name, code) in [("web", 0), ("sess_1", 0), ("u", 0), ("other", 1)] {
        assert_eq!(asked(&["has-session", "-t", name], &sessions).1.code, code, "{name}");
    }
}

#[test]
fn a_call_carries_its_arguments_and_prints_its_text() {
    let reply = json!({"ok": {"content": [{"type": "text", "text": "Went there."}]}});
    let (ask, called) = asked(&["call", "navigate", "url=https://a.test", "-t", "web", "--timeout", "500"], &reply);
    assert_eq!(
        ask,
        json!({"id": 1, "do": "call", "tool": "navigate", "args": {"url": "https://a.test", "sessionId": "web", "timeout": 500}})
    );
    assert_eq!((called.code, called.out.as_str(), called.err.as_str()), (0, "Went there.\n", ""));
    let (ask, called) = asked(&["open", "https://a.test", "--json"], &reply);
    assert_eq!((&ask["tool"], serde_json::from_str::<Value>(&called.out).unwrap()), (&json!("navigate"), reply["ok"].clone()));
    let (ask, _) = asked(&["eval", "1"], &reply);
    assert_eq!((&ask["tool"], &ask["args"]), (&json!("evaluate"), &json!({"script": "1"})));
}

#[test]
fn a_failed_call_is_status_one_with_code_and_text() {
    let reply = json!({"error": {"code": "session_not_found", "message": "No session: x", "hint": "Call list_sessions."}});
    let (_, plain) = asked(&["call", "navigate", "-t", "x"], &reply);
    assert_eq!(
        (plain.code, plain.out.as_str(), plain.err.as_str()),
        (1, "", "tabmux: [session_not_found] No session: x Call list_sessions.\n")
    );
    let (_, json) = asked(&["call", "navigate", "-t", "x", "--json"], &reply);
    assert_eq!((json.code, serde_json::from_str::<Value>(&json.out).unwrap()), (1, reply));
}

#[test]
fn new_prints_the_name_it_was_given() {
    let reply = json!({"ok": {"content": [], "result": {"sessionId": "web"}, "structured": null}});
    let (ask, made) = asked(&["new-session", "-s", "web", "--isolation", "window", "https://a.test"], &reply);
    assert_eq!((&ask["tool"], made.out.as_str()), (&json!("start_browser"), "web\n"));
    assert_eq!(ask["args"], json!({"sessionId": "web", "isolation": "window", "navigationUrl": "https://a.test"}));
}

#[test]
fn tokens_and_sessions_are_asked_for_by_their_verbs() {
    let ok = json!({"ok": {"token": "secret"}});
    let (ask, made) = asked(&["token", "new", "ci"], &ok);
    assert_eq!((&ask["do"], &ask["name"], made.out.as_str()), (&json!("token_new"), &json!("ci"), "secret\n"));
    for (args, expected) in [
        (&["kill-session", "-t", "web"][..], json!({"id": 1, "do": "kill", "session": "web"})),
        (&["rename-session", "-t", "web", "shop"], json!({"id": 1, "do": "rename", "session": "web", "name": "shop"})),
        (&["token", "revoke", "ci"], json!({"id": 1, "do": "token_revoke", "name": "ci"})),
    ] {
        let (ask, done) = asked(args, &json!({"ok": {}}));
        assert_eq!((ask, done.code, done.out.as_str()), (expected, 0, ""));
    }
}

#[test]
fn identities_are_listed_with_their_age() {
    let tokens = json!({"ok": {"tokens": [{"name": "ci", "created_at": "2026-11-15T00:00:00Z"}]}});
    assert_eq!(asked(&["token", "ls"], &tokens).1.out, "ci\t2026-11-15T00:00:00Z\n");
}

#[test]
fn a_capability_goes_with_every_hello() {
    let home = Home::new();
    let double = home.double();
    std::thread::scope(|scope| {
        let command = scope.spawn(|| home.tabmux(&["ls"]).env("TABMUX_TOKEN", "cap").output().unwrap());
        let mut peer = double.welcome();
        assert_eq!((&peer.first["hello"]["token"], &peer.first["hello"]["role"]), (&json!("cap"), &json!("cli")));
        peer.hear();
        peer.say(&json!({"id": 1, "error": {"code": "policy_denied", "message": "No.", "hint": ""}}));
        assert_eq!(command.join().unwrap().status.code(), Some(1));
    });
}

/// Runs an agent-session verb against a double; gives the verb's request.
fn agent_session(args: &[&str], answer: &Value) -> (Value, Ran) {
    let home = Home::new();
    let double = home.double();
    std::thread::scope(|scope| {
        let command = home
            .tabmux(&[&["agent-session"], args].concat())
            .env("TABMUX_SURFACE_ID", "s1")
            .env("TABMUX_WORKSPACE_ID", "w1")
            .env("TABMUX_TOKEN", "cap")
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let running = scope.spawn(|| ran(command.wait_with_output().unwrap()));
        let _held = double.welcome();
        let mut peer = double.accept();
        let mut answer = answer.clone();
        answer["id"] = peer.first["id"].clone();
        peer.say(&answer);
        (peer.first.clone(), running.join().unwrap())
    })
}

/// S3.7, S3.11, S3.33
#[test]
fn agent_session_open_prints_the_session_and_says_who_asks() {
    let (request, opened) =
        agent_session(&["open", "--profile", "p-1", "--url", "https://a.test"], &json!({"result": {"session_id": "uuid-1"}}));
    assert_eq!((opened.code, opened.out.as_str()), (0, "uuid-1\n"));
    assert_eq!(request["method"], "browser.agent_session.open");
    let caller = json!({"surface_id": "s1", "workspace_id": "w1", "token": "cap"});
    assert_eq!(request["params"], json!({"profile_id": "p-1", "url": "https://a.test", "caller": caller}));
}

/// S3.8, S3.9, S3.10
#[test]
fn agent_session_tab_dispose_and_list_speak_their_methods() {
    let (request, _) = agent_session(&["tab", "--session", "u", "--url", "https://b.test"], &json!({"result": {"tab_id": "t2"}}));
    assert_eq!(
        (&request["method"], &request["params"]["session_id"], &request["params"]["url"]),
        (&json!("browser.agent_session.tab"), &json!("u"), &json!("https://b.test"))
    );
    let (request, disposed) = agent_session(&["dispose", "--session", "u"], &json!({"result": {}}));
    assert_eq!((&request["method"], disposed.code), (&json!("browser.agent_session.dispose"), 0));
    let sessions = json!({"sessions": [{"session_id": "u", "tabCount": 1, "created_at": "2026-11-15T00:00:00Z"}]});
    let (request, listed) = agent_session(&["list", "--json"], &json!({"result": sessions}));
    assert_eq!((&request["method"], serde_json::from_str::<Value>(&listed.out).unwrap()), (&json!("browser.agent_session.list"), sessions));
    let refusal = json!({"error": {"code": "policy_denied", "message": "Not yours.", "hint": "Ask its owner."}});
    let (_, refused) = agent_session(&["dispose", "--session", "u"], &refusal);
    assert_eq!((refused.code, refused.err.as_str()), (1, "tabmux: [policy_denied] Not yours. Ask its owner.\n"));
}

#[test]
fn doctor_says_what_is_wrong_and_ends_with_one() {
    let home = Home::new();
    let well = run(&home, &["doctor"]);
    assert_eq!(well.code, 0, "{}", well.out);
    std::fs::create_dir(home.path().join("run")).unwrap();
    std::fs::set_permissions(home.path().join("run"), std::os::unix::fs::PermissionsExt::from_mode(0o775)).unwrap();
    let ill = run(&home, &["doctor"]);
    assert!(ill.code == 1 && ill.out.contains("problem  runtime directory") && ill.out.contains("chmod 700"), "{}", ill.out);
    let document: Value = serde_json::from_str(&run(&home, &["doctor", "--json"]).out).unwrap();
    assert_eq!((&document["ok"], document["checks"].as_array().unwrap().len()), (&json!(false), 5));
}
