//! Seed 3's `browser.agent_session.*` methods on the daemon's Unix socket, without a profile to clone.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::{Door, Lab, SOON, until};

fn lab_and_door() -> (Lab, Door) {
    let lab = Lab::new();
    drop(lab.ready_client());
    let door = Door::open(&lab.socket());
    (lab, door)
}

fn ask(door: &mut Door, method: &str, params: &Value) -> Value {
    let answer = door.ask(&json!({"id": 7, "method": format!("browser.agent_session.{method}"), "params": params}));
    assert_eq!(answer["id"], 7, "{answer}");
    answer
}

fn open(door: &mut Door, url: &str) -> String {
    let answer = ask(door, "open", &json!({"url": url}));
    let id = answer["result"]["session_id"].as_str().unwrap_or_else(|| panic!("a session id: {answer}"));
    assert_eq!(id.len(), 36, "a UUID: {answer}");
    id.to_owned()
}

fn list(door: &mut Door) -> Vec<Value> {
    let answer = ask(door, "list", &json!({}));
    answer["result"]["sessions"].as_array().unwrap_or_else(|| panic!("sessions: {answer}")).clone()
}

/// S3.6, S3.27, S3.28, S3.34
#[test]
fn open_tab_list_and_dispose() {
    let (_lab, mut door) = lab_and_door();
    let session = open(&mut door, "https://one.test/");
    let tab = ask(&mut door, "tab", &json!({"session_id": session, "url": "https://two.test/"}));
    assert!(tab.get("error").is_none(), "{tab}");
    let sessions = list(&mut door);
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    assert_eq!((&sessions[0]["session_id"], &sessions[0]["tabCount"]), (&json!(session), &json!(2)), "{sessions:?}");
    assert!(sessions[0].to_string().contains('T') && sessions[0].to_string().contains("Z\""), "ISO-8601: {sessions:?}");
    let gone = ask(&mut door, "dispose", &json!({"session_id": session}));
    assert!(gone.get("error").is_none(), "{gone}");
    assert_eq!(list(&mut door), Vec::<Value>::new());
}

/// S3.4, S3.32: the manifest is the journal, and it stands where the state directory was put.
#[test]
fn the_journal_lists_sessions_and_their_stores_in_the_directory_it_was_given() {
    let (lab, mut door) = lab_and_door();
    let session = open(&mut door, "https://one.test/");
    let store = list(&mut door)[0]["data_store_id"].as_str().unwrap().to_owned();
    let journal = std::fs::read_to_string(lab.state_dir().join("journal.jsonl")).unwrap();
    let records = journal.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["rec"]["session"].clone());
    let last = records.rev().find(|record| record["uuid"] == session.as_str()).unwrap();
    assert_eq!((&last["context"], &last["phase"]), (&json!(store), &json!("open")), "{last}");
}

/// S3.13, S3.14
#[test]
fn one_agent_cannot_list_use_or_dispose_anothers_session() {
    let (lab, mut owner) = lab_and_door();
    let session = open(&mut owner, "https://one.test/");
    // An agent behind MCP, whose identity is its connection.
    let agent = lab.ready_client();
    assert_eq!(agent.sessions(), Vec::<String>::new());
    agent.fails("close_session", &json!({"sessionId": session}), "session_not_found");
    let mut stranger = Door::open(&lab.socket());
    stranger.ask(&json!({"type": "REGISTER", "id": "1"}));
    let answer =
        stranger.ask(&json!({"type": "REQUEST", "id": "2", "sessionId": session, "action": "evaluate", "params": {"script": "1"}}));
    assert!(answer.to_string().contains("session_not_found"), "{answer}");
    assert_eq!(list(&mut owner).len(), 1);
}

/// S3.12
#[test]
fn a_made_up_caller_is_refused() {
    let (_lab, mut door) = lab_and_door();
    let answer = ask(&mut door, "open", &json!({"url": "https://one.test/", "caller": "00000000-0000-4000-8000-000000000000"}));
    assert!(answer.get("error").is_some(), "{answer}");
}

/// S3.25
#[test]
fn a_session_whose_tab_fails_is_rolled_back() {
    let (lab, mut door) = lab_and_door();
    let answer = ask(&mut door, "open", &json!({"url": "https://unreachable.test/"}));
    assert_eq!(answer["error"]["code"], "navigation_failed", "{answer}");
    assert_eq!(list(&mut door), Vec::<Value>::new());
    assert_eq!(lab.status()["sessions"]["active"], 0);
}

/// S3.6
#[test]
fn a_profile_cannot_be_cloned_yet_and_that_is_said() {
    let (_lab, mut door) = lab_and_door();
    let answer = ask(&mut door, "open", &json!({"profile_id": "11111111-2222-4333-8444-555555555555", "url": "https://one.test/"}));
    assert_eq!(answer["error"]["code"], "unsupported", "{answer}");
    assert_eq!(list(&mut door), Vec::<Value>::new());
}

/// S3.18: a method's name inside a string means nothing.
#[test]
fn a_method_name_elsewhere_in_the_text_has_no_effect() {
    let (lab, mut door) = lab_and_door();
    let answer = ask(&mut door, "list", &json!({}));
    assert!(answer.get("error").is_none(), "{answer}");
    let wrong = door.ask(&json!({"id": 8, "method": "browser.agent_session.opening", "params": {"url": "browser.agent_session.open"}}));
    assert!(wrong.get("error").is_some(), "{wrong}");
    assert_eq!(lab.status()["sessions"]["active"], 0);
}

/// S3.17: a one-shot command's connection ends, and its session stays.
#[test]
fn a_one_shot_connection_does_not_end_its_session() {
    let (lab, mut door) = lab_and_door();
    let session = open(&mut door, "https://one.test/");
    drop(door);
    let listed = until("the operator's list answers", SOON, || Some(lab.run(&["agent-session", "list", "--json"])));
    assert!(listed.stdout.contains(&session), "{listed:?}");
    assert_eq!(lab.status()["sessions"]["orphaned"], 0);
}
