//! The command line as people and scripts use it: exit codes, one JSON document, tmux's words.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::collections::BTreeSet;

use serde_json::json;
use support::{Lab, Printed};

fn assert_code(printed: &Printed, code: i32) {
    assert_eq!(printed.code, code, "{printed:?}");
}

#[test]
fn without_a_daemon_each_command_says_so_with_69() {
    let lab = Lab::new();
    for arguments in [
        &["ls"][..],
        &["has-session", "-t", "x"],
        &["kill-session", "-t", "x"],
        &["rename-session", "-t", "x", "y"],
        &["status"],
        &["token", "ls"],
        &["agent-session", "list"],
        &["agent-session", "tab", "--session", "x"],
        &["fork", "-t", "x"],
        &["share", "-t", "x"],
        &["restore", "-t", "x"],
        &["migrate", "-t", "x"],
        &["profile", "save", "x", "-t", "x"],
    ] {
        let printed = lab.run(arguments);
        assert_eq!(printed.code, 69, "{arguments:?}: {printed:?}");
        assert_eq!(printed.stdout, "", "{arguments:?}");
        assert_eq!(printed.stderr.trim().lines().count(), 1, "one sentence: {printed:?}");
    }
    assert_eq!(lab.json(&["status", "--json"]), json!({"running": false}));
    assert_code(&lab.run(&["stop"]), 0);
    assert_code(&lab.run(&["kill-server"]), 0);
    let bare = lab.run(&[]);
    assert!(bare.code == 0 && bare.stdout.contains("tabmux up"), "bare tabmux says how to begin: {bare:?}");
    assert_eq!(lab.daemons(), Vec::<u32>::new());
}

#[test]
fn wrong_usage_is_2_and_names_what_was_wrong() {
    let lab = Lab::new();
    for arguments in [&["no-such-command"][..], &["new", "--no-such-flag"], &["has-session"], &["mcp", "--tools", "everything"], &["call"]]
    {
        let printed = lab.run(arguments);
        assert_eq!(printed.code, 2, "{arguments:?}: {printed:?}");
        assert_eq!(printed.stdout, "", "{arguments:?}");
    }
}

/// S0.20
#[test]
fn bad_configuration_is_78_and_names_key_value_and_choices() {
    for (variable, value) in
        [("TABMUX_SESSION_IDLE", "soon"), ("TABMUX_LISTEN", "everywhere"), ("TABMUX_CALL_DEADLINE", "-1s"), ("TABMUX_HEADLESS", "maybe")]
    {
        let lab = Lab::with(&[(variable, value)]);
        let printed = lab.run(&["status"]);
        assert_eq!(printed.code, 78, "{variable}: {printed:?}");
        assert!(printed.stderr.contains(variable) && printed.stderr.contains(value), "{printed:?}");
    }
    let lab = Lab::new();
    let file = lab.path().join("config.toml");
    for (text, named) in [
        ("[session]\nidel = \"5m\"\n", "idel"),
        ("[limits]\nwarn_sessions = \"many\"\n", "warn_sessions"),
        ("[listen]\non_conflict = \"kill\"\n", "kill"),
    ] {
        std::fs::write(&file, text).unwrap();
        let printed = lab.run_command(lab.command(&["status"]).env("TABMUX_CONFIG", &file));
        assert_eq!(printed.code, 78, "{text}: {printed:?}");
        assert!(printed.stderr.contains(named), "{text}: {printed:?}");
    }
}

/// S1.40
#[test]
fn sessions_in_tmuxs_words() {
    let lab = Lab::new();
    assert_code(&lab.run(&["new", "-s", "work", "https://example.test/"]), 0);
    assert_code(&lab.run(&["new-session", "-s", "play"]), 0);
    let again = lab.run(&["new", "-s", "work"]);
    assert_code(&again, 1);
    assert!(again.stderr.contains("session_exists") && again.stderr.contains("Session 'work' already exists"), "{again:?}");
    assert!(again.stderr.contains("`tabmux kill-session -t NAME`") && !again.stderr.contains("sessionId"), "{again:?}");
    assert_code(&lab.run(&["has-session", "-t", "work"]), 0);
    assert_code(&lab.run(&["has-session", "-t", "nope"]), 1);
    let listed = lab.run(&["ls"]);
    assert!(listed.stdout.contains("work") && listed.stdout.contains("play"), "{listed:?}");
    assert_eq!(lab.run(&["list-sessions"]).stdout.lines().count(), listed.stdout.lines().count());
    assert_code(&lab.run(&["rename-session", "-t", "play", "rest"]), 0);
    assert_code(&lab.run(&["has-session", "-t", "rest"]), 0);
    assert_code(&lab.run(&["kill-session", "-t", "rest"]), 0);
    assert_code(&lab.run(&["has-session", "-t", "rest"]), 1);
    assert_code(&lab.run(&["kill-server"]), 0);
    lab.assert_nothing_left();
}

/// S0.19: a person is warned beside the result, not in it.
#[test]
fn the_fifth_new_session_comes_with_a_warning() {
    let lab = Lab::new();
    for number in 1..=6 {
        let made = lab.run(&["new"]);
        assert_eq!((made.code, made.stdout.as_str()), (0, format!("browser-{number}\n").as_str()));
        assert_eq!(made.stderr.contains(&format!("{number} sessions of yours")), number >= 5, "{made:?}");
    }
    let document = lab.json(&["new", "--json"]);
    assert!(document["result"]["warning"].is_string(), "{document}");
}

#[test]
fn any_tool_can_be_called_and_daily_ones_have_short_forms() {
    let lab = Lab::new();
    let opened = lab.run(&["open", "https://example.test/a"]);
    assert_code(&opened, 0);
    let here = lab.run(&["eval", "location.href"]);
    assert!(here.code == 0 && here.stdout.contains("https://example.test/a"), "{here:?}");
    let called = lab.run(&["call", "evaluate", "script=document.title"]);
    assert!(called.code == 0 && called.stdout.contains("example.test"), "{called:?}");
    let given = lab.run(&["call", "evaluate", "--args", r#"{"script":"\"two\""}"#, "--json"]);
    assert_code(&given, 0);
    assert!(given.json().to_string().contains("two"), "{given:?}");
    let failed = lab.run(&["call", "evaluate", "script=throw(\"no\")"]);
    assert_code(&failed, 1);
    assert!(failed.stdout.is_empty() && failed.stderr.contains("bad_argument"), "{failed:?}");
}

#[test]
fn with_json_an_error_is_one_document_on_stdout() {
    let lab = Lab::new();
    assert_code(&lab.run(&["new", "-s", "a"]), 0);
    let failed = lab.run(&["call", "evaluate", "-t", "ghost", "script=1", "--json"]);
    assert_code(&failed, 1);
    let document = failed.json();
    assert!(document.to_string().contains("session_not_found"), "{document}");
}

/// S1.39
#[test]
fn status_has_every_promised_member() {
    let lab = Lab::new();
    assert_code(&lab.run(&["new", "-s", "a"]), 0);
    let status = lab.status();
    let members = [
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
    ];
    for member in members {
        assert!(status.get(member).is_some(), "{member} is missing: {status}");
    }
    assert_eq!(status["socket"], json!(lab.socket()));
    assert_eq!(status["listen"]["addr"], "127.0.0.1");
    assert_eq!(status["extension"]["connected"], false);
    for (group, names) in [("sessions", &["active", "orphaned", "clones"][..]), ("calls", &["running", "queued", "total"])] {
        for name in names {
            assert!(status[group][name].is_u64(), "{group}.{name}: {status}");
        }
    }
    assert_eq!(status["sessions"]["active"], 1);
}

#[test]
fn the_operators_current_session_lasts_between_commands_and_is_never_an_orphan() {
    let lab = Lab::with(&[("TABMUX_ORPHAN_GRACE", "1s")]);
    assert_code(&lab.run(&["new", "-s", "mine", "https://mine.test/"]), 0);
    assert!(lab.run(&["eval", "location.href"]).stdout.contains("https://mine.test/"));
    let status = lab.status();
    assert_eq!((&status["sessions"]["active"], &status["sessions"]["orphaned"]), (&json!(1), &json!(0)), "{status}");
}

/// S3.13: a token is an identity of its own, and not the operator's.
#[test]
fn a_token_is_its_own_identity_and_may_not_see_all() {
    let lab = Lab::new();
    assert_code(&lab.run(&["new", "-s", "operators"]), 0);
    let made = lab.run(&["token", "new", "ci"]);
    assert_code(&made, 0);
    let token = made.stdout.split_whitespace().max_by_key(|word| word.len()).unwrap().to_owned();
    assert!(token.len() >= 43, "256 bits: {token}");
    let listed = lab.run(&["token", "ls"]);
    assert!(listed.stdout.contains("ci") && !listed.stdout.contains(&token), "a list shows no secrets: {listed:?}");
    let as_ci = |arguments: &[&str]| lab.run_command(lab.command(arguments).env("TABMUX_TOKEN", &token));
    assert!(!as_ci(&["ls"]).stdout.contains("operators"));
    let all = as_ci(&["ls", "--all"]);
    assert!(all.code == 1 && all.stderr.contains("policy_denied"), "{all:?}");
    assert_code(&as_ci(&["new", "-s", "cis"]), 0);
    assert!(as_ci(&["ls"]).stdout.contains("cis"));
    assert!(lab.run(&["ls", "--all"]).stdout.contains("cis"), "the operator sees all");
    assert_code(&lab.run(&["token", "revoke", "ci"]), 0);
    let revoked = as_ci(&["ls"]);
    assert!(revoked.code != 0 && revoked.stderr.contains("unauthorized"), "{revoked:?}");
}

/// S1.2, S1.4, S1.5: the document's own paths, by flags.
#[test]
fn flags_move_socket_pid_file_and_log() {
    let lab = Lab::new();
    let at = |name: &str| lab.path().join(name).to_str().unwrap().to_owned();
    let (socket, pid, log) = (at("agent.sock"), at("agent.pid"), at("agent.log"));
    let flags = ["--socket", &socket, "--pid-file", &pid, "--log-file", &log];
    let run = |arguments: &[&str]| lab.run(&[&flags[..], arguments].concat());
    assert_code(&run(&["new", "-s", "a"]), 0);
    let status = run(&["status", "--json"]).json();
    assert_eq!(status["socket"], json!(socket));
    assert_eq!(std::fs::read_to_string(&pid).unwrap().trim(), status["pid"].to_string());
    assert!(std::path::Path::new(&log).exists());
    assert_code(&run(&["stop"]), 0);
    lab.assert_nothing_left();
    assert!(!std::path::Path::new(&socket).exists());
}

/// A private daemon keeps everything in directories of its own.
#[test]
fn a_named_daemon_is_apart_from_the_plain_one() {
    let lab = Lab::new();
    assert_code(&lab.run(&["-L", "other", "new", "-s", "there"]), 0);
    assert!(lab.runtime_dir().join("other/tabmux.sock").exists());
    assert_eq!(lab.json(&["status", "--json"]), json!({"running": false}));
    assert!(lab.run(&["-L", "other", "ls"]).stdout.contains("there"));
    assert_code(&lab.run(&["-L", "other", "stop"]), 0);
    lab.assert_nothing_left();
}

#[test]
fn the_tool_table_and_completions_need_no_daemon() {
    let lab = Lab::new();
    let tools = lab.run(&["tools"]);
    assert!(tools.code == 0 && tools.stdout.contains("start_browser"), "{tools:?}");
    assert!(lab.json(&["tools", "--json"]).to_string().contains("list_sessions"));
    assert!(lab.run(&["tools", "--cost"]).stdout.contains("total"));
    for shell in ["bash", "zsh", "fish"] {
        let printed = lab.run(&["completions", shell]);
        assert!(printed.code == 0 && printed.stdout.contains("kill-session"), "{shell}");
    }
    assert_eq!(lab.daemons(), Vec::<u32>::new());
}

/// S4.21: what the README tells people to type exists.
#[test]
fn every_tabmux_command_in_the_documents_exists() {
    let lab = Lab::new();
    let mut seen = BTreeSet::new();
    for document in ["README.md", "CONTRIBUTING.md", "SECURITY.md"] {
        let path = format!("{}/../../{document}", env!("CARGO_MANIFEST_DIR"));
        let text = std::fs::read_to_string(&path).unwrap();
        let spans = text.split('`').skip(1).step_by(2).flat_map(str::lines);
        for span in spans {
            let mut words = span.split_whitespace().skip_while(|word| *word == "$");
            if words.next() != Some("tabmux") {
                continue;
            }
            let word = words.find(|word| !word.starts_with('-') && *word != "NAME");
            if let Some(verb) = word.filter(|verb| verb.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-')) {
                seen.insert(verb.to_owned());
            }
        }
    }
    assert!(seen.len() >= 5, "{seen:?}");
    let readme = std::fs::read_to_string(format!("{}/../../README.md", env!("CARGO_MANIFEST_DIR"))).unwrap();
    assert!(readme.contains("## Several sessions") && readme.contains("set_current_session"), "it says how several sessions behave");
    for verb in seen {
        let printed = lab.run(&[&verb, "--help"]);
        assert_eq!(printed.code, 0, "the documents name `tabmux {verb}`: {printed:?}");
    }
}

/// S3.6, S3.7, S3.8, S3.9, S3.10, S3.27, S3.33
#[test]
fn agent_sessions_open_tab_list_and_dispose() {
    let lab = Lab::new();
    let opened = lab.run(&["agent-session", "open", "--url", "https://example.test/"]);
    assert_code(&opened, 0);
    let id = opened.stdout.trim().to_owned();
    assert_eq!(id.len(), 36, "open prints the session's uuid: {opened:?}");
    assert_code(&lab.run(&["agent-session", "tab", "--session", &id, "--url", "https://example.test/2"]), 0);
    let listed = lab.json(&["agent-session", "list", "--json"]);
    let text = listed.to_string();
    assert!(text.contains(&id) && text.contains("\"tabCount\":2"), "{listed}");
    assert_code(&lab.run(&["agent-session", "dispose", "--session", &id]), 0);
    assert!(!lab.json(&["agent-session", "list", "--json"]).to_string().contains(&id));
    let gone = lab.run(&["agent-session", "dispose", "--session", &id]);
    assert!(gone.code == 1 && gone.stderr.contains("session_not_found"), "{gone:?}");
}
