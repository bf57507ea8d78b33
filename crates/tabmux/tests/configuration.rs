//! Settings as they are felt: where the daemon lives, what it answers, how many sessions it takes.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::path::Path;
use std::process::Command;

use serde_json::json;
use support::{Lab, at_once};

/// A home whose every process reads this configuration file.
fn lab_with(text: &str) -> (Lab, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), text).unwrap();
    (Lab::with(&[("TABMUX_CONFIG", file.path().to_str().unwrap())]), file)
}

/// S1.2, S1.4, S1.5 (C6): where everything is when nobody says where.
#[test]
fn without_settings_the_daemon_lives_where_the_system_keeps_such_things() {
    let lab = Lab::new();
    let at = |name: &str| lab.path().join(name);
    for directory in ["xdg-run", "xdg-state", "tmp", "home"] {
        std::fs::create_dir(at(directory)).unwrap();
    }
    let uid = rustix::process::getuid().as_raw();
    let xdg = [("XDG_RUNTIME_DIR", at("xdg-run")), ("XDG_STATE_HOME", at("xdg-state"))];
    let plain = [("TMPDIR", at("tmp")), ("HOME", at("home"))];
    for (variables, runtime, state) in
        [(&xdg, at("xdg-run/tabmux"), at("xdg-state/tabmux")), (&plain, at(&format!("tmp/tabmux-{uid}")), at("home/.local/state/tabmux"))]
    {
        let command = |arguments: &[&str]| -> Command {
            let mut command = lab.command(arguments);
            command.env_remove("TABMUX_RUNTIME_DIR").env_remove("TABMUX_STATE_DIR").envs(variables.iter().cloned());
            command
        };
        let made = lab.run_command(&mut command(&["new", "-s", "a"]));
        let there = |directory: &Path, name: &str| directory.join(name).exists();
        let found = [there(&runtime, "tabmux.sock"), there(&runtime, "tabmux.pid"), there(&state, "daemon.log")];
        let stopped = lab.run_command(&mut command(&["stop"]));
        assert_eq!((made.code, found, stopped.code), (0, [true; 3], 0), "{}: {made:?} {stopped:?}", runtime.display());
    }
}

/// S0.23, S0.24: whether a reply says its session can be set.
#[test]
fn session_information_is_said_as_it_is_set() {
    for (value, said_when_named, said_when_picked) in [("always", true, true), ("never", false, false), ("auto", false, true)] {
        let (lab, _file) = lab_with(&format!("[reply]\nsession_info = \"{value}\"\n"));
        let client = lab.ready_client();
        client.ok("start_browser", &json!({"sessionId": "picked"}));
        let said =
            |arguments: &serde_json::Value| client.ok("evaluate", arguments).text().contains("sessionId: picked, sessionType: browser");
        assert_eq!(said(&json!({"script": "1", "sessionId": "picked"})), said_when_named, "{value}");
        assert_eq!(said(&json!({"script": "1"})), said_when_picked, "{value}");
    }
}

/// S3.20, S3.21, S3.22 for sessions of any kind (`limits.max_sessions`): those in the making count, a refused one leaves
/// nothing, and those there are go on.
#[test]
fn a_limit_is_kept_by_sessions_in_the_making_too() {
    let (lab, _file) = lab_with("[limits]\nmax_sessions = 10\n");
    let clients = at_once((0..20).collect(), |number: usize| {
        let client = lab.ready_client();
        let reply = client.call("start_browser", &json!({"navigationUrl": "https://one.test/?delay=300"}));
        (number, client, reply)
    });
    let (made, refused): (Vec<_>, Vec<_>) = clients.iter().partition(|(_, _, reply)| !reply.failed());
    assert_eq!((made.len(), refused.len()), (10, 10));
    for (_, client, reply) in &refused {
        assert!(reply.code() == "capacity" && reply.text().contains("limits.max_sessions"), "{reply:?}");
        assert_eq!(client.sessions(), Vec::<String>::new(), "nothing is left of it");
    }
    assert_eq!(lab.status()["sessions"]["active"], 10);
    for (number, client, _) in &made {
        let here = client.ok("evaluate", &json!({"script": number.to_string()}));
        assert_eq!(here.result()["value"], json!(number));
    }
    made[0].1.ok("close_session", &json!({}));
    refused[0].1.ok("start_browser", &json!({}));
    refused[1].1.fails("start_browser", &json!({}), "capacity");
}

/// S1.29 (C2): the next free port is taken only where that is set, and the holder of the first keeps it.
#[test]
fn on_a_conflict_the_next_port_is_taken_where_that_is_set() {
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = holder.local_addr().unwrap();
    let file = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(file.path(), format!("[listen]\naddr = \"{address}\"\non_conflict = \"next\"\n")).unwrap();
    let lab = Lab::with(&[("TABMUX_CONFIG", file.path().to_str().unwrap()), ("TABMUX_LISTEN", &address.to_string())]);
    drop(lab.ready_client());
    let http = lab.http();
    assert_ne!(http.port, address.port());
    assert_eq!(http.get("/health", &[]).status, 200);
    holder.set_nonblocking(true).unwrap();
    assert_eq!(holder.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "nobody was sent to the holder");
}
