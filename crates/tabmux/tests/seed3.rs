//! Seed 3's `browser.agent_session.*` methods on the daemon's Unix socket.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::site::Site;
use support::{Display, Door, Lab, SOON, at_once, process, until};

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

/// A token of its own, as `caller` shows it.
fn caller(lab: &Lab, name: &str) -> Value {
    let made = lab.run(&["token", "new", name]);
    assert_eq!(made.code, 0, "{made:?}");
    json!({"token": made.stdout.trim()})
}

fn code(answer: &Value) -> &str {
    answer["error"]["code"].as_str().unwrap_or_else(|| panic!("an error: {answer}"))
}

/// `2026-11-15T23:05:33.775Z`
fn is_iso_8601(text: &str) -> bool {
    let shape = |byte: u8| if byte.is_ascii_digit() { b'0' } else { byte };
    let shape: Vec<u8> = text.bytes().map(shape).collect();
    shape.starts_with(b"0000-00-00T00:00:00") && shape.ends_with(b"Z")
}

/// S3.6, S3.27, S3.28, S3.34, S3.35
#[test]
fn open_tab_list_and_dispose() {
    let (_lab, mut door) = lab_and_door();
    let session = open(&mut door, "https://one.test/");
    let tab = ask(&mut door, "tab", &json!({"session_id": session, "url": "https://two.test/"}));
    assert_eq!((&tab["result"]["session_id"], &tab["result"]["tab_id"]), (&json!(session), &json!("t2")), "{tab}");
    let sessions = list(&mut door);
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    let row = &sessions[0];
    assert_eq!((&row["session_id"], &row["tabCount"]), (&json!(session), &json!(2)), "{row}");
    assert_eq!(row["short_id"], json!(session[..8]), "the short form is the first 8 hex digits: {row}");
    assert!(row["created_at"].as_str().is_some_and(is_iso_8601), "{row}");
    assert_eq!((&row["agent_id"], row.get("profile_id")), (&json!("operator"), Some(&Value::Null)), "{row}");
    assert!(row["data_store_id"].as_str().is_some_and(|store| !store.is_empty()), "{row}");
    let gone = ask(&mut door, "dispose", &json!({"session_id": session}));
    assert_eq!(gone["result"]["disposed"], true, "{gone}");
    assert_eq!(list(&mut door), Vec::<Value>::new());
    assert_eq!(code(&ask(&mut door, "tab", &json!({"session_id": session}))), "session_not_found");
}

/// S3.27: a tab that closed itself is counted no more.
#[test]
fn the_listing_counts_the_tabs_there_are() {
    let (lab, mut door) = lab_and_door();
    let session = open(&mut door, "https://one.test/");
    ask(&mut door, "tab", &json!({"session_id": session}));
    assert_eq!(lab.run(&["eval", "-t", &session, "window.close()"]).code, 0);
    until("one tab is left", SOON, || (list(&mut door)[0]["tabCount"] == json!(1)).then_some(()));
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
    assert!(!lab.path().join(".local").exists(), "the place it has without a setting is left alone");
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

/// S3.13, S3.14: two agents that show who they are, through the same door.
#[test]
fn an_agent_lists_uses_and_disposes_its_own_sessions_and_no_others() {
    let (lab, mut door) = lab_and_door();
    let (one, two) = (caller(&lab, "one"), caller(&lab, "two"));
    let opened = ask(&mut door, "open", &json!({"url": "https://one.test/", "caller": one}));
    let session = opened["result"]["session_id"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned();
    let mut rows = |params: Value| ask(&mut door, "list", &params);
    let own = rows(json!({"caller": one}))["result"]["sessions"][0].clone();
    assert_eq!(own["session_id"], json!(session));
    assert_eq!(rows(json!({"caller": one, "agent_id": own["agent_id"]}))["result"]["sessions"][0], own, "its own id is no secret to it");
    assert_eq!(rows(json!({"caller": two}))["result"]["sessions"], json!([]));
    let filtered = rows(json!({"caller": two, "agent_id": own["agent_id"]}));
    assert_eq!(code(&filtered), "policy_denied", "{filtered}");
    for handle in ["session_id", "id", "name"] {
        for method in ["tab", "dispose"] {
            let refused = ask(&mut door, method, &json!({"caller": two, "session_id": own[handle]}));
            assert_eq!(code(&refused), "session_not_found", "{method} {handle}: {refused}");
        }
    }
    let left = ask(&mut door, "list", &json!({"caller": one}));
    assert_eq!((&left["result"]["sessions"][0]["session_id"], &left["result"]["sessions"][0]["tabCount"]), (&json!(session), &json!(1)));
}

/// S3.12
#[test]
fn a_made_up_caller_is_refused() {
    let (lab, mut door) = lab_and_door();
    let nobody = "00000000-0000-4000-8000-000000000000";
    for caller in [json!(nobody), json!({"client": "c1"}), json!({"surface_id": nobody, "workspace_id": nobody}), json!({"token": nobody})]
    {
        for method in ["open", "list"] {
            let answer = ask(&mut door, method, &json!({"caller": caller}));
            assert_eq!(code(&answer), "unauthorized", "{caller}: {answer}");
        }
    }
    assert_eq!(lab.status()["sessions"]["active"], 0);
    let known = door.ask(&json!({"id": 1, "method": "system.identify"}))["result"]["client"].clone();
    let own = ask(&mut door, "list", &json!({"caller": {"client": known}}));
    assert_eq!(own["result"]["sessions"], json!([]), "the id this connection was given is live: {own}");
    let other = ask(&mut door, "list", &json!({"caller": {"client": "c999"}}));
    assert_eq!(code(&other), "unauthorized", "any other is not: {other}");
    let borrowed = ask(&mut Door::open(&lab.socket()), "list", &json!({"caller": {"client": known}}));
    assert_eq!(code(&borrowed), "unauthorized", "and nobody else's: {borrowed}");
}

/// S3.11, S3.12: the command line shows what its environment says, and the daemon does not take its word for it.
#[test]
fn the_command_line_is_who_its_environment_proves() {
    let (lab, _door) = lab_and_door();
    let token = caller(&lab, "ci")["token"].as_str().unwrap().to_owned();
    let run = |arguments: &[&str], variables: &[(&str, &str)]| {
        let mut command = lab.command(&[&["agent-session"], arguments].concat());
        lab.run_command(command.envs(variables.iter().copied()))
    };
    let opened = run(&["open"], &[("TABMUX_TOKEN", &token), ("TABMUX_SURFACE_ID", "s1")]);
    assert_eq!(opened.code, 0, "{opened:?}");
    let id = opened.stdout.trim();
    assert!(run(&["list"], &[("TABMUX_TOKEN", &token)]).stdout.contains(id));
    assert!(!run(&["list"], &[]).stdout.contains(id), "the operator's list is its own");
    for made_up in [("TABMUX_SURFACE_ID", "s1"), ("TABMUX_WORKSPACE_ID", "w1"), ("TABMUX_TOKEN", "made-up")] {
        let refused = run(&["list"], &[made_up]);
        assert!(refused.code != 0 && refused.stdout.is_empty() && refused.stderr.contains("unauthorized"), "{made_up:?}: {refused:?}");
    }
    let named = run(&["list"], &[("TABMUX_SESSION", "mine")]);
    assert_eq!(named.code, 0, "the name of a session to use says nothing about who asks: {named:?}");
}

/// S3.23: what is disposed while it is being made does not come back.
#[test]
fn dispose_during_the_opening_cancels_it() {
    let (lab, mut door) = lab_and_door();
    let opening = Instant::now();
    let answer = std::thread::scope(|scope| {
        let answer = scope.spawn(|| ask(&mut Door::open(&lab.socket()), "open", &json!({"url": "https://slow.test/?delay=15000"})));
        let session = until("the session is listed", SOON, || Some(list(&mut door).first()?["session_id"].clone()));
        let disposed = ask(&mut door, "dispose", &json!({"session_id": session}));
        assert_eq!(disposed["result"]["disposed"], true, "{disposed}");
        answer.join().unwrap()
    });
    assert!(opening.elapsed() < Duration::from_secs(12), "the open was cancelled, not waited for");
    assert!(["session_closed", "cancelled"].contains(&code(&answer)), "{answer}");
    assert_eq!(list(&mut door), Vec::<Value>::new());
    assert_eq!(lab.status()["sessions"]["active"], 0);
}

/// S3.5, S3.23: a journal cut where a crash may cut it: in the making, and in the closing.
#[test]
fn what_a_crash_left_half_made_or_half_closed_is_removed_at_the_start() {
    for phase in ["opening", "closing"] {
        let (lab, mut door) = lab_and_door();
        let kept = open(&mut door, "https://kept.test/");
        let session = open(&mut door, "https://half.test/");
        let daemon = lab.daemon_pid();
        ask(&mut door, "dispose", &json!({"session_id": session}));
        // Before the journal is tidied.
        process::kill(daemon);
        until("the daemon is dead", SOON, || (!process::is_alive(daemon)).then_some(()));
        let journal = lab.state_dir().join("journal.jsonl");
        let text = std::fs::read_to_string(&journal).unwrap();
        let ends_here = |line: &&str| line.contains(&session) && line.contains(&format!("\"phase\":\"{phase}\""));
        let last = text.lines().position(|line| ends_here(&line)).unwrap_or_else(|| panic!("{phase}: {text}"));
        let cut: String = text.lines().take(last + 1).map(|line| format!("{line}\n")).collect();
        std::fs::write(&journal, cut).unwrap();
        lab.ready_client().ok("list_sessions", &json!({}));
        let listed = list(&mut Door::open(&lab.socket()));
        let ids: Vec<_> = listed.iter().map(|row| &row["session_id"]).collect();
        assert_eq!(ids, [&json!(kept)], "{phase}: {listed:?}");
        until("the manifest says that it is gone", SOON, || {
            let text = std::fs::read_to_string(&journal).unwrap();
            // Or has no word of it any more.
            (!text.contains(&session) || text.lines().last()?.contains("\"gone\":\"sess_")).then_some(())
        });
    }
}

/// S3.29: what a disposed session was and where it went is nowhere on disk soon after, while the daemon still runs; what lives is.
#[test]
fn after_the_end_nothing_of_a_session_is_on_disk() {
    let (lab, mut door) = lab_and_door();
    let session = open(&mut door, "https://private.test/path?key=secret123");
    let store = list(&mut door)[0]["data_store_id"].as_str().unwrap().to_owned();
    assert_eq!(lab.run(&["eval", "-t", &session, "document.cookie = \"token=secret456\""]).code, 0);
    let traces = || {
        let entries = std::fs::read_dir(lab.state_dir()).unwrap().map(|entry| entry.unwrap().path());
        // Of downloads there are none, and no directory of this session's is left.
        let files = entries.map(|path| {
            std::fs::read(&path).unwrap_or_else(|_| format!("{:?}", std::fs::read_dir(path).unwrap().collect::<Vec<_>>()).into())
        });
        let text: String = files.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect();
        [&session, &store, "private.test", "secret123", "secret456"].map(|trace| text.contains(trace))
    };
    assert_eq!(traces(), [true, true, true, true, false], "the manifest knows a live session, and never its cookies");
    ask(&mut door, "dispose", &json!({"session_id": session}));
    until("nothing is left while the daemon runs", SOON, || (traces() == [false; 5]).then_some(()));
    assert_eq!(lab.status()["running"], true);
    lab.stop();
    assert_eq!(traces(), [false; 5]);
}

/// S3.36, S3.14: what was opened is in every later list, what was disposed in none, whatever others do meanwhile.
#[test]
fn a_listing_taken_during_changes_is_consistent() {
    let (lab, _door) = lab_and_door();
    at_once((0..4).collect(), |_| {
        let mut door = Door::open(&lab.socket());
        for _ in 0..10 {
            let session = open(&mut door, "https://one.test/");
            ask(&mut door, "tab", &json!({"session_id": session}));
            let mut own = |wanted: usize| {
                let rows = list(&mut door);
                let mut ids: Vec<_> = rows.iter().map(|row| row["session_id"].to_string()).collect();
                ids.sort();
                ids.dedup();
                assert_eq!(ids.len(), rows.len(), "a session is listed twice: {rows:?}");
                let mine: Vec<_> = rows.iter().filter(|row| row["session_id"] == session.as_str()).collect();
                assert_eq!(mine.len(), wanted, "{rows:?}");
                assert!(mine.iter().all(|row| row["tabCount"] == 2), "{mine:?}");
            };
            own(1);
            ask(&mut Door::open(&lab.socket()), "dispose", &json!({"session_id": session}));
            own(0);
        }
    });
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

/// S3.2, S3.6, S3.35: a profile by name or uuid is what the session begins with; one that is not there is said.
#[test]
fn a_profile_is_cloned_by_name_or_uuid_and_a_missing_one_is_said() {
    let (lab, mut door) = lab_and_door();
    let state = json!({"cookies": [{"name": "token", "value": "kept", "domain": "one.test", "path": "/"}]});
    std::fs::write(lab.path().join("state.json"), state.to_string()).unwrap();
    let file = lab.path().join("state.json").display().to_string();
    let made = lab.json(&["profile", "new", "work", "--from", &file, "--json"]);
    let uuid = made["profile"]["uuid"].as_str().unwrap().to_owned();
    for profile in ["work", &uuid, &uuid.to_uppercase()] {
        let opened = ask(&mut door, "open", &json!({"profile_id": profile, "url": "https://one.test/"}));
        let session = opened["result"]["session_id"].as_str().unwrap_or_else(|| panic!("{opened}")).to_owned();
        assert_eq!(lab.run(&["eval", "-t", &session, "document.cookie"]).stdout.trim().trim_matches('"'), "token=kept");
        let rows = list(&mut door);
        let row = rows.last().unwrap();
        assert_eq!(
            (&row["profile_id"], &row["profile_name"], &row["from"]),
            (&json!(uuid), &json!("work"), &json!("profile:work")),
            "{row}"
        );
        assert_eq!(lab.run(&["eval", "-t", &session, "document.cookie = \"token=mine\""]).code, 0);
    }
    assert_eq!(lab.status()["sessions"]["clones"], 3);
    let missing = ask(&mut door, "open", &json!({"profile_id": "11111111-2222-4333-8444-555555555555", "url": "https://one.test/"}));
    assert_eq!(missing["error"]["code"], "session_not_found", "{missing}");
    assert!(missing["error"]["hint"].as_str().unwrap().contains("Profiles: work."), "{missing}");
    assert_eq!(list(&mut door).len(), 3);
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

/// S3.18: over a connection that identified itself, whose end would tell. Of all that it asks for, only what it opened ends with it: not what
/// it failed to open, nor what it reached with the method's name somewhere in the text.
#[test]
fn with_an_identified_connection_ends_only_what_it_opened() {
    const NAME: &str = "browser.agent_session.open";
    let lab = Lab::with(&[("TABMUX_ORPHAN_GRACE", "1s")]);
    drop(lab.ready_client());
    let one = caller(&lab, "one");
    let mut one_shot = Door::open(&lab.socket());
    let kept = ask(&mut one_shot, "open", &json!({"url": "https://kept.test/", "caller": one}))["result"]["session_id"].clone();
    drop(one_shot);
    let mut living = Door::open(&lab.socket());
    assert!(living.ask(&json!({"id": 1, "method": "system.identify"}))["result"]["client"].is_string());
    for (method, params) in [
        (NAME, json!({"url": "https://unreachable.test/"})),
        (NAME, json!({"url": "file:///etc/passwd", "caller": one})),
        ("browser.agent_session.opening", json!({"url": NAME})),
        ("browser.agent_session.list", json!({"method": NAME})),
    ] {
        let refused = living.ask(&json!({"id": 2, "method": method, "params": params}));
        assert!(refused["error"]["code"].is_string(), "{method} {params}: {refused}");
    }
    let reached = ask(&mut living, "tab", &json!({"session_id": kept, "url": format!("https://kept.test/?{NAME}"), "caller": one}));
    assert_eq!((&reached["result"]["session_id"], &reached["result"]["tab_id"]), (&kept, &json!("t2")), "{reached}");
    assert_eq!(list(&mut living), Vec::<Value>::new(), "it has none");
    let opened = open(&mut living, "https://own.test/");
    drop(living);
    let mut one_shot = Door::open(&lab.socket());
    until("what it opened is gone", SOON, || {
        let sessions = lab.status()["sessions"].clone();
        ((&sessions["active"], &sessions["orphaned"]) == (&json!(1), &json!(0))).then_some(())
    });
    assert_eq!(code(&ask(&mut one_shot, "dispose", &json!({"session_id": opened}))), "session_not_found");
    let rows = ask(&mut one_shot, "list", &json!({"caller": one}))["result"]["sessions"].clone();
    assert_eq!((&rows[0]["session_id"], &rows[0]["tabCount"], &rows[1]), (&kept, &json!(2), &Value::Null));
}

/// S3.17: a connection that identified itself is a caller of its own. Lost, it leaves orphans that end with the grace time;
/// what failed to open leaves none (S3.18).
#[test]
fn a_long_lived_connection_takes_its_sessions_with_it() {
    let lab = Lab::with(&[("TABMUX_ORPHAN_GRACE", "1s")]);
    drop(lab.ready_client());
    let mut operator = Door::open(&lab.socket());
    let kept = open(&mut operator, "https://operator.test/");
    let identified = || {
        let mut door = Door::open(&lab.socket());
        let known = door.ask(&json!({"id": 1, "method": "system.identify"}));
        assert!(known["result"]["client"].is_string(), "{known}");
        door
    };
    let mut failing = identified();
    assert_eq!(code(&ask(&mut failing, "open", &json!({"url": "https://unreachable.test/"}))), "navigation_failed");
    drop(failing);
    let mut living = identified();
    let session = open(&mut living, "https://agent.test/");
    assert_eq!(list(&mut living).len(), 1, "its own, and not the operator's");
    let counted = |lab: &Lab| (lab.status()["sessions"]["active"].clone(), lab.status()["sessions"]["orphaned"].clone());
    assert_eq!(counted(&lab), (json!(2), json!(0)));
    drop(living);
    until("the lost connection's session is gone", SOON, || (counted(&lab) == (json!(1), json!(0))).then_some(()));
    assert_eq!(code(&ask(&mut operator, "dispose", &json!({"session_id": session}))), "session_not_found");
    assert_eq!(list(&mut operator)[0]["session_id"], json!(kept));
}

/// S3.17: in a browser with windows. What ends with its connection ends in all of them; what a one-shot opened lives on in all of its own.
#[test]
fn a_lost_connection_takes_its_pages_in_every_window_with_it() {
    let display = Display::new();
    let windows = [("TABMUX_BROWSER", ""), ("TABMUX_HEADLESS", "false"), ("DISPLAY", &display.name), ("TABMUX_ORPHAN_GRACE", "1s")];
    let lab = Lab::with(&windows);
    // Every page says that it lives, again and again.
    let site = Site::start(|path| format!("<title>{path}</title><script>setInterval(() => fetch('/alive{path}'), 50)</script>"));
    drop(lab.ready_client());
    let mut one_shot = Door::open(&lab.socket());
    let kept = open(&mut one_shot, &site.at("/kept"));
    drop(one_shot);
    let mut living = Door::open(&lab.socket());
    assert!(living.ask(&json!({"id": 1, "method": "system.identify"}))["result"]["client"].is_string());
    let own = open(&mut living, &site.at("/own"));
    ask(&mut living, "tab", &json!({"session_id": own, "url": site.at("/own/tab")}));
    for (session, path) in [(&kept, "/kept/window"), (&own, "/own/window")] {
        let opened = lab.run(&["eval", "-t", session, &format!("open('{path}', '', 'popup,width=400,height=300'); 1")]);
        assert_eq!(opened.code, 0, "{opened:?}");
    }
    let wait_for = |wanted: &[&str]| {
        let mut heard = Vec::new();
        until(&format!("{wanted:?} live"), SOON, || {
            heard.extend(site.asked());
            wanted.iter().all(|path| heard.contains(&format!("/alive{path}"))).then_some(())
        });
        heard
    };
    wait_for(&["/kept", "/kept/window", "/own", "/own/tab", "/own/window"]);
    drop(living);
    until("the lost connection's session is gone", SOON, || {
        let status = lab.status();
        let counts = [&status["sessions"]["active"], &status["sessions"]["orphaned"], &status["browsers"][0]["contexts"]];
        (counts == [&json!(1), &json!(0), &json!(1)]).then_some(())
    });
    // What was on its way when the last of them closed.
    wait_for(&["/kept", "/kept/window"]);
    for _ in 0..5 {
        let heard = wait_for(&["/kept", "/kept/window"]);
        assert!(!heard.iter().any(|path| path.contains("/own")), "{heard:?}");
    }
    assert_eq!(list(&mut Door::open(&lab.socket()))[0]["tabCount"], json!(2), "and nothing of the one-shot's is gone");
}
