//! Real MCP clients, unmodified, against the shipped binary: the Python SDK, the TypeScript SDK, the inspector,
//! and the conformance suite. They live in target/clients, where `make test` puts them.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use support::{Lab, Printed};

const TABMUX: &str = env!("CARGO_BIN_EXE_tabmux");
const NEW_ERA: &str = "2026-07-28";

/// Where the clients are. A missing one is a failure, never a silent pass.
fn installed() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let home = root.join("target/clients");
    assert!(home.join("stamp").exists(), "the MCP clients are not installed: run make test");
    home.canonicalize().unwrap()
}

fn script(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/clients").join(name).canonicalize().unwrap()
}

fn run(lab: &Lab, program: &str, arguments: &[&str]) -> Printed {
    let mut command = Command::new(installed().join(program));
    lab.environment(&mut command);
    lab.run_within(command.args(arguments).current_dir(installed()), Duration::from_secs(150))
}

/// Runs a driver and gives the JSON line it prints.
fn drive(lab: &Lab, driver: &str, mode: &str, door: &[&str]) -> Value {
    let path = script(driver);
    let program = if driver.ends_with(".py") { "python/bin/python" } else { "node" };
    let printed = run(lab, program, &[&[path.to_str().unwrap(), mode], door].concat());
    assert_eq!(printed.code, 0, "{driver} {mode} {door:?}:\n{}\n{}", printed.stdout, printed.stderr);
    serde_json::from_str(printed.stdout.trim().lines().last().unwrap_or_default()).unwrap_or_else(|_| panic!("{printed:?}"))
}

fn drive_http(lab: &Lab, driver: &str, mode: &str) -> Value {
    let http = lab.http();
    drive(lab, driver, mode, &["http", &format!("http://127.0.0.1:{}/mcp", http.port), &http.token])
}

/// A home whose daemon runs already.
fn lab_with_daemon() -> Lab {
    let lab = Lab::new();
    drop(lab.ready_client());
    lab
}

/// S2.32
#[test]
fn the_python_sdk_drives_it_over_stdio_in_every_mode() {
    let lab = Lab::new();
    for (mode, version) in [("auto", NEW_ERA), ("legacy", "2025-11-25"), (NEW_ERA, NEW_ERA)] {
        let found = drive(&lab, "drive.py", mode, &["stdio", TABMUX]);
        assert_eq!((&found["version"], &found["listed"]), (&json!(version), &json!(1)), "{mode}: {found}");
    }
}

/// S2.8, S2.32
#[test]
fn the_python_sdk_drives_it_over_http_in_every_mode() {
    let lab = lab_with_daemon();
    for (mode, version) in [("auto", NEW_ERA), ("legacy", "2025-11-25"), (NEW_ERA, NEW_ERA)] {
        let found = drive_http(&lab, "drive.py", mode);
        assert_eq!(found["version"], version, "{mode}: {found}");
        // In the new era a caller behind the shared token has no identity: its handle is the uuid, and nothing is listed.
        let anonymous = version == NEW_ERA;
        assert_eq!(found["listed"], json!(if anonymous { 0 } else { 1 }), "{mode}: {found}");
        assert_eq!(found["session"].as_str().unwrap().len() == 36, anonymous, "{mode}: {found}");
    }
}

/// S2.32
#[test]
fn the_typescript_sdk_drives_it_over_stdio_in_every_mode() {
    let lab = Lab::new();
    for mode in ["legacy", "auto", NEW_ERA] {
        let found = drive(&lab, "drive.mjs", mode, &["stdio", TABMUX]);
        assert_eq!(found["listed"], 1, "{mode}: {found}");
    }
    assert_eq!(lab.status()["sessions"]["active"], 0, "probing made no session");
}

/// S2.8, S2.32
#[test]
fn the_typescript_sdk_drives_it_over_http_in_every_mode() {
    let lab = lab_with_daemon();
    for mode in ["legacy", "auto", NEW_ERA] {
        drive_http(&lab, "drive.mjs", mode);
    }
}

/// Several sessions at once in one call, as a client asks for it: alike, each of its own, and one that fails.
fn fans_out(driver: &str) {
    let found = drive(&Lab::new(), driver, TABMUX, &[]);
    let comparison = &found["same"]["comparison"];
    assert_eq!((&comparison[0]["what"], &comparison[0]["equal"]), (&json!("here"), &json!(false)), "{found}");
    let each = found["each"].as_str().unwrap();
    assert!(each.contains("https://one.test/own") && each.contains("https://two.test/own"), "{each}");
    let failed = found["failed"].as_str().unwrap();
    assert!(failed.contains("Step 1 of 1 in three failed.") && failed.contains("https://one.test/own"), "{failed}");
}

/// S0.37, S2.32
#[test]
fn the_python_sdk_lets_several_sessions_work_at_once() {
    fans_out("fan_out.py");
}

/// S0.37, S2.32
#[test]
fn the_typescript_sdk_lets_several_sessions_work_at_once() {
    fans_out("fan_out.mjs");
}

/// S2.32
#[test]
fn the_inspector_drives_it_over_stdio_and_http() {
    let lab = lab_with_daemon();
    let http = lab.http();
    let (url, header) = (format!("http://127.0.0.1:{}/mcp", http.port), format!("Authorization: Bearer {}", http.token));
    let variables = ["TABMUX_RUNTIME_DIR", "TABMUX_STATE_DIR"].map(|name| {
        let directory = if name == "TABMUX_RUNTIME_DIR" { lab.runtime_dir() } else { lab.state_dir() };
        format!("{name}={}", directory.display())
    });
    let stdio = [TABMUX, "mcp", "-e", &variables[0], "-e", &variables[1], "-e", "TABMUX_BROWSER=fake", "-e", "TABMUX_LISTEN=127.0.0.1:0"];
    let over_http = [&url, "--transport", "http", "--header", &header];
    for target in [&stdio[..], &over_http] {
        let inspect = |arguments: &[&str]| {
            let printed = run(&lab, "node", &[&["node_modules/.bin/mcp-inspector", "--cli"], target, arguments].concat());
            assert_eq!(printed.code, 0, "{target:?} {arguments:?}: {printed:?}");
            printed.stdout
        };
        assert!(inspect(&["--method", "tools/list"]).contains("start_browser"));
        assert!(inspect(&["--method", "tools/call", "--tool-name", "list_sessions"]).contains("currentSession"));
    }
}

/// S2.8, S2.32
#[test]
fn the_conformance_suite_passes_for_2025_11_25() {
    conforms("2025-11-25");
}

/// S2.8, S2.32
#[test]
fn the_conformance_suite_passes_for_2026_07_28() {
    conforms(NEW_ERA);
}

/// Every server scenario the revision requires, through a proxy that adds the token.
fn conforms(revision: &str) {
    let settings = tempfile::NamedTempFile::with_suffix(".toml").unwrap();
    std::fs::write(&settings, "[test]\nconformance_fixtures = true\n").unwrap();
    let lab = Lab::with(&[("TABMUX_CONFIG", settings.path().to_str().unwrap())]);
    drop(lab.ready_client());
    let http = lab.http();
    let mut command = Command::new(installed().join("node"));
    command.arg(script("proxy.mjs")).args([&http.port.to_string(), &http.token]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut proxy = lab.spawn(&mut command);
    let mut port = String::new();
    BufReader::new(proxy.stdout.take().unwrap()).read_line(&mut port).unwrap();
    let url = format!("http://127.0.0.1:{}/mcp", port.trim());
    let suite = "node_modules/@modelcontextprotocol/conformance/dist/index.js";
    let printed = run(&lab, "node", &[suite, "server", "--url", &url, "--requirements", revision]);
    drop(proxy.stdin.take());
    proxy.wait().unwrap();
    let summary: Vec<_> = printed.stdout.lines().rev().take(60).collect();
    println!("{}", summary.iter().rev().copied().collect::<Vec<_>>().join("\n"));
    assert_eq!(printed.code, 0, "conformance {revision}: {}\n{}", printed.stdout, printed.stderr);
    assert!(lab.status()["running"] == json!(true));
}
