//! `tabmux doctor --isolation` of the shipped binary on a real Chromium: it finds nothing where nothing leaks, everything
//! where two agents are put into one session, and leaves nothing behind.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Lab, Printed, SOON, process, until};

/// Four units, two browsers among them, on a machine that may be busy.
const WHILE: Duration = Duration::from_secs(170);

/// Everything the issue names, and what is the daemon's to keep apart.
const OF_THE_PROFILE: [&str; 11] = [
    "cookies",
    "localStorage",
    "Cache API",
    "IndexedDB",
    "private files",
    "HTTP cache",
    "HTTP auth",
    "service worker",
    "SharedWorker",
    "BroadcastChannel",
    "web locks",
];
const OF_THE_SESSION: [&str; 11] =
    ["sessionStorage", "emulation", "clipboard", "downloads", "dialogs", "history", "window names", "sessions", "tabs", "news", "logs"];
fn doctor(lab: &Lab, arguments: &[&str]) -> Printed {
    lab.run_within(&mut lab.command(&[&["doctor"], arguments].concat()), WHILE)
}

/// What was found of each canary of a unit.
fn found(document: &Value, unit: &str) -> BTreeMap<String, String> {
    let judged = document["units"].as_array().unwrap().iter().find(|judged| judged["unit"] == unit).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    judged["canaries"].as_array().unwrap().iter().map(|row| (text(&row["canary"]), text(&row["found"]))).collect()
}

fn all_are(found: &BTreeMap<String, String>, canaries: &[&str], expected: &str) {
    for canary in canaries {
        assert_eq!(found.get(*canary).map(String::as_str), Some(expected), "{canary} in {found:#?}");
    }
}

/// Without what the user's own session is saved in when it rests.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "saved");
    names.sort();
    names
}

/// S1.37, S3.1: and the user's own daemon, its session and its directories are as they were.
#[test]
fn nothing_leaks_that_a_unit_promises_to_keep_apart_and_nobody_is_disturbed() {
    let lab = Lab::real();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": "data:text/html,mine"}));
    let before = (lab.status()["sessions"].clone(), names(&lab.runtime_dir()), names(&lab.state_dir()));
    let printed = doctor(&lab, &["--isolation", "--json"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    let document = printed.json();
    assert_eq!((&document["ok"], &document["leaks"]), (&json!(true), &json!([])));
    for unit in ["context", "browser"] {
        let found = found(&document, unit);
        all_are(&found, &OF_THE_PROFILE, "apart");
        all_are(&found, &OF_THE_SESSION, "apart");
        all_are(&found, &["permissions"], "apart");
        assert_eq!(found.len(), OF_THE_PROFILE.len() + OF_THE_SESSION.len() + 1, "no canary without an expectation: {found:#?}");
    }
    // Two strangers in one profile: there the canaries are found, and that is no leak.
    for unit in ["window", "tab"] {
        let found = found(&document, unit);
        // Nobody may grant anything in a profile that is not only theirs.
        all_are(&found, &["permissions"], "not_judged");
        all_are(&found, &OF_THE_PROFILE, "shared");
        all_are(&found, &OF_THE_SESSION, "apart");
    }
    assert_eq!((lab.status()["sessions"].clone(), names(&lab.runtime_dir()), names(&lab.state_dir())), before);
    assert_eq!(client.ok("evaluate", &json!({"script": "document.body.textContent"})).result()["value"], "mine");
}

/// Each canary can be found: the doctor is not blind to any of them.
#[test]
fn two_agents_in_one_session_are_reported_as_leaks_by_every_canary() {
    let lab = Lab::real();
    let printed = doctor(&lab, &["--isolation=context", "--same-session", "--json"]);
    assert_eq!(printed.code, 1, "{printed:?}");
    let document = printed.json();
    let found = found(&document, "context");
    all_are(&found, &OF_THE_PROFILE, "shared");
    all_are(&found, &OF_THE_SESSION, "shared");
    all_are(&found, &["permissions"], "shared");
    assert_eq!(document["leaks"].as_array().unwrap().len(), found.len(), "{document}");
    assert_eq!(document["ok"], false);
    lab.assert_nothing_left();
}

#[test]
fn an_interrupted_doctor_takes_its_daemon_and_its_browser_along() {
    let lab = Lab::real();
    let mut command = lab.command(&["doctor", "--isolation=context"]);
    let mut child = lab.spawn(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()));
    let is_browser = |pid: &u32| process::command_line(*pid).contains("--user-data-dir");
    until("its browser runs", SOON, || lab.daemons().iter().any(is_browser).then_some(()));
    process::signal(child.id(), rustix::process::Signal::INT);
    let status = until("it ends", SOON, || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(130));
    lab.assert_nothing_left();
    assert_eq!((names(&lab.runtime_dir()), names(&lab.state_dir())), (vec![], vec![]));
}

/// A doctor that was killed could tidy nothing; the next one does.
#[test]
fn what_a_killed_doctor_left_is_removed_by_the_next() {
    let lab = Lab::real();
    for directory in [lab.runtime_dir(), lab.state_dir()] {
        // No process has this id: it is above what Linux gives.
        std::fs::create_dir_all(directory.join("doctor-2000000000/left")).unwrap();
        std::fs::create_dir_all(directory.join("doctor-named-by-a-user")).unwrap();
        private(&directory);
    }
    let printed = doctor(&lab, &["--isolation=tab"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    assert!(printed.stdout.contains("tab\tcookies\tshared\tshared: "), "{printed:?}");
    for directory in [lab.runtime_dir(), lab.state_dir()] {
        assert_eq!(names(&directory), ["doctor-named-by-a-user"]);
    }
}

fn private(directory: &Path) {
    std::fs::set_permissions(directory, std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
}

/// The doctor's own site is on this machine; where pages may not go there, it says so and judges nothing.
#[test]
fn with_rules_that_keep_pages_from_the_doctors_site_nothing_is_judged_and_the_doctor_says_so() {
    let lab = Lab::with(&[("TABMUX_BROWSER", ""), ("TABMUX_DENY_DOMAINS", "127.0.0.1")]);
    let printed = doctor(&lab, &["--isolation=context"]);
    assert!(printed.code == 69 && printed.stderr.contains("[policy_denied]") && printed.stdout.is_empty(), "{printed:?}");
    lab.assert_nothing_left();
}

#[test]
fn without_a_real_browser_nothing_is_judged_and_the_doctor_says_so() {
    let lab = Lab::new();
    let printed = doctor(&lab, &["--isolation"]);
    assert!(printed.code == 1 && printed.stderr.contains("fake browser"), "{printed:?}");
    let lab = Lab::with(&[("TABMUX_BROWSER", "/nowhere/chromium")]);
    let printed = doctor(&lab, &["--isolation"]);
    assert!(printed.code == 69 && printed.stderr.contains("/nowhere/chromium"), "{printed:?}");
    assert!(!lab.runtime_dir().exists(), "nothing was started");
    assert_eq!(doctor(&lab, &["--isolation=planet"]).code, 2);
}

/// That a browser is there says little: a library may be missing, or its sandbox.
#[test]
fn the_doctor_starts_the_browser_and_leaves_nothing_of_it() {
    let browser = |printed: &Printed| printed.stdout.lines().find(|line| line.contains(" browser: ")).unwrap().to_owned();
    let lab = Lab::real();
    let well = doctor(&lab, &[]);
    assert!(well.code == 0 && browser(&well).ends_with("it starts and shows a page"), "{well:?}");
    lab.assert_nothing_left();
    let broken = lab.path().join("chromium");
    std::fs::write(&broken, "#!/bin/sh\necho 'libfoo.so.1: cannot open shared object file' >&2\nexit 127\n").unwrap();
    std::fs::set_permissions(&broken, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let ill = lab.run_within(lab.command(&["doctor"]).env("TABMUX_BROWSER", &broken), WHILE);
    assert!(ill.code == 1 && browser(&ill).contains("libfoo.so.1") && browser(&ill).contains("Install what it misses"), "{ill:?}");
    lab.assert_nothing_left();
}
