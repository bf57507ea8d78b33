//! Profiles, sources and forks on the command line, with the fake browser: what is printed, what is on disk, what is refused.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use support::{Lab, at_once};

fn cookie(lab: &Lab, session: &str) -> String {
    let printed = lab.run(&["eval", "-t", session, "document.cookie"]);
    assert_eq!(printed.code, 0, "{printed:?}");
    printed.stdout.trim().trim_matches('"').to_owned()
}

/// An operator's session that is logged in at https://one.test/.
fn logged_in(lab: &Lab, name: &str) {
    assert_eq!(lab.run(&["new", "-s", name, "https://one.test/"]).code, 0);
    assert_eq!(lab.run(&["eval", "-t", name, "document.cookie = \"token=secret123\""]).code, 0);
}

fn names(lab: &Lab) -> Vec<String> {
    let listed = lab.json(&["profile", "ls", "--json"]);
    listed["profiles"].as_array().unwrap().iter().map(|row| row["name"].as_str().unwrap().to_owned()).collect()
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn profiles_are_made_listed_saved_exported_and_removed() {
    let lab = Lab::new();
    assert_eq!(lab.run(&["profile", "ls"]).stdout, "", "and no daemon is needed or started");
    assert_eq!(lab.run(&["profile", "new", "empty"]).stdout, "empty\n");
    assert!(lab.daemons().is_empty());
    let unavailable = lab.run(&["profile", "save", "work"]);
    assert_eq!(unavailable.code, 69, "what a session holds only a daemon knows: {unavailable:?}");
    logged_in(&lab, "web");
    assert_eq!(lab.run(&["profile", "save", "work", "-t", "web"]).stdout, "work\n");
    assert_eq!(lab.run(&["profile", "new", "again", "--from", "web"]).stdout, "again\n");
    assert_eq!(lab.run(&["profile", "new", "third", "--from", "profile:work"]).code, 0);
    assert_eq!(lab.run(&["profile", "new", "fourth", "--from", "work"]).code, 0);
    assert_eq!(names(&lab), ["again", "empty", "fourth", "third", "work"]);
    let home = lab.state_dir().join("profiles/work");
    assert_eq!((mode(&home), mode(&home.join("state.json")), mode(&home.join("profile.json"))), (0o700, 0o600, 0o600));
    let file = lab.path().join("out.json");
    assert_eq!(lab.run(&["profile", "export", "work", file.to_str().unwrap()]).code, 0);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!((&written["cookies"][0]["value"], &written["cookies"][0]["expires"]), (&json!("secret123"), &json!(-1)));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(lab.json(&["profile", "export", "work", "-"]), written, "on standard output");
    for source in ["work", "again", "third", "fourth", file.to_str().unwrap()] {
        let made = lab.run(&["new", "--from", source, "https://one.test/"]);
        assert_eq!(cookie(&lab, made.stdout.trim()), "token=secret123", "{source}: {made:?}");
    }
    assert_eq!(lab.status()["sessions"]["clones"], 5);
    for name in ["again", "empty", "fourth", "third", "work"] {
        assert_eq!(lab.run(&["profile", "rm", name]).code, 0);
    }
    assert_eq!(std::fs::read_dir(lab.state_dir().join("profiles")).unwrap().count(), 0, "nothing of them is left");
}

#[test]
fn what_is_wrong_is_said_and_changes_nothing() {
    let lab = Lab::new();
    assert_eq!(lab.run(&["profile", "new", "work"]).code, 0);
    let bad = lab.path().join("bad.json");
    std::fs::write(&bad, "{\"cookies\": [{\"name\": \"a\"}]}").unwrap();
    let bad = bad.to_str().unwrap();
    for (arguments, code, said) in [
        (&["profile", "new", "work"][..], 1, "A profile named 'work' already exists."),
        (
            &["profile", "import", "work"],
            1,
            "A profile named 'work' already exists. Choose another name, or replace what it holds with --replace.",
        ),
        (&["profile", "new", ".."], 1, "cannot be the name of a profile"),
        (&["profile", "rm", "../work"], 1, "There is no profile '../work'. Profiles: work."),
        (&["profile", "export", "home", "x.json"], 1, "There is no profile 'home'."),
        (&["profile", "new", "x", "--from", bad], 78, "cookies[0]: missing field `value`"),
        (&["profile", "new", "x", "--from", "nowhere"], 1, "There is no profile 'nowhere'."),
        (&["new", "--from", bad], 78, "cookies[0]: missing field `value`"),
        (&["new", "--from", "/dev/zero"], 78, "/dev/zero: it is a file of the system, and only ordinary ones are read."),
        (&["profile", "new", "x", "--from", "/proc/self/pagemap"], 78, "it is a file of the system"),
        (&["mcp", "--from", "./missing.json"], 78, "missing.json: No such file"),
        (&["new", "--from", "nowhere"], 1, "There is no session and no profile 'nowhere' to copy from. No sessions. Profiles: work."),
        (&["fork", "-t", "nowhere"], 1, "No session: nowhere."),
        (&["fork", "-n", "0"], 2, "0 is not in 1..=100"),
    ] {
        let failed = lab.run(arguments);
        assert_eq!((failed.code, failed.stdout.as_str()), (code, ""), "{arguments:?}: {failed:?}");
        assert!(failed.stderr.contains(said), "{arguments:?}: {failed:?}");
    }
    assert_eq!(names(&lab), ["work"]);
    let token = lab.run(&["token", "new", "ci"]).stdout.trim().to_owned();
    for arguments in [&["profile", "ls"][..], &["profile", "rm", "work"], &["profile", "save", "x"]] {
        let refused = lab.run_command(lab.command(arguments).env("TABMUX_TOKEN", &token));
        assert!(refused.code == 1 && refused.stderr.contains("[policy_denied]"), "{refused:?}");
    }
}

#[test]
fn a_damaged_profile_is_said_and_can_be_removed() {
    let lab = Lab::new();
    for name in ["whole", "work"] {
        assert_eq!(lab.run(&["profile", "new", name]).code, 0);
    }
    std::fs::write(lab.state_dir().join("profiles/work/profile.json"), "no JSON").unwrap();
    let listed = lab.run(&["profile", "ls"]);
    let rows: Vec<Vec<&str>> = listed.stdout.lines().map(|row| row.split('\t').collect()).collect();
    assert_eq!((listed.code, rows[0][0], &rows[1][..]), (0, "whole", &["work", "", "", "", "damaged", ""][..]), "{listed:?}");
    assert!(listed.stderr.contains("`tabmux profile rm work` removes it."), "{listed:?}");
    assert_eq!((names(&lab), &lab.json(&["profile", "ls", "--json"])["damaged"][0]["name"]), (vec!["whole".into()], &json!("work")));
    assert_eq!(lab.run(&["profile", "rm", "work"]).code, 0);
    assert_eq!(lab.run(&["profile", "ls"]).stderr, "");
}

/// S3.21: log in once, fan out; when the seats are used up, what was made is printed and the rest is said.
#[test]
fn a_session_is_forked_with_its_pages_until_the_seats_are_used_up() {
    let lab = Lab::new();
    logged_in(&lab, "web");
    assert_eq!(lab.run(&["call", "new_page", "-t", "web", "url=https://two.test/"]).code, 0);
    let made = lab.run(&["fork", "-t", "web", "-n", "3"]);
    assert_eq!((made.code, made.stdout.as_str()), (0, "web-1\nweb-2\nweb-3\n"), "{made:?}");
    for name in ["web-1", "web-3"] {
        let pages = lab.json(&["call", "list_pages", "-t", name, "--json"]);
        let urls: Vec<&Value> = pages["structured"]["pages"].as_array().unwrap().iter().map(|page| &page["url"]).collect();
        assert_eq!(urls, [&json!("https://one.test/"), &json!("https://two.test/")]);
        assert_eq!(lab.run(&["call", "select_page", "-t", name, "pageIdx=0"]).code, 0);
        assert_eq!(cookie(&lab, name), "token=secret123");
    }
    let listed = lab.run(&["ls", "-F", "#{session_name} #{session_from}"]).stdout;
    assert_eq!(listed, "web \nweb-1 session:web\nweb-2 session:web\nweb-3 session:web\n");
    let some = lab.run(&["fork", "-t", "web", "-n", "8", "-s", "more"]);
    assert_eq!((some.code, some.stdout.lines().count()), (1, 7), "{some:?}");
    assert!(some.stderr.contains("[capacity] 7 of 8 copies were made: All 10 cloned sessions are in use"), "{some:?}");
    let none = lab.run(&["fork", "-t", "web", "--json"]);
    assert_eq!((none.code, &none.json()["error"]["code"]), (1, &json!("capacity")), "{none:?}");
    assert_eq!((lab.status()["sessions"]["clones"].as_u64(), lab.status()["sessions"]["active"].as_u64()), (Some(10), Some(11)));
    assert_eq!(lab.run(&["kill-session", "-t", "web-2"]).code, 0);
    let json = lab.json(&["fork", "-t", "web", "--json"]);
    assert_eq!((&json["sessions"][0]["sessionId"], &json["sessions"][0]["tabs"]), (&json!("web-2"), &json!(2)), "{json}");
}

/// What is exported can be read again, however much it is: more than a frame takes, the daemon reads itself.
#[test]
fn a_state_that_is_larger_than_a_frame_is_a_source_too() {
    let lab = Lab::new();
    let file = lab.path().join("large.json");
    let large = json!({
        "cookies": [{"name": "token", "value": "kept", "domain": "one.test", "path": "/"}],
        "origins": [{"origin": "https://two.test", "localStorage": [{"name": "much", "value": "x".repeat(5_000_000)}]}],
    });
    std::fs::write(&file, large.to_string()).unwrap();
    assert_eq!(lab.run(&["profile", "new", "large", "--from", file.to_str().unwrap()]).code, 0);
    assert_eq!(lab.run_command(lab.command(&["profile", "export", "large", "out.json"]).current_dir(lab.path())).code, 0);
    let made = lab.run_command(lab.command(&["new", "--from", "out.json", "https://one.test/"]).current_dir(lab.path()));
    assert_eq!(cookie(&lab, made.stdout.trim()), "token=kept", "{made:?}");
    let out = lab.path().join("out.json");
    at_once(vec!["--from", "--storage-state"], |flag| {
        let client = lab.client_with(&["mcp", flag, out.to_str().unwrap()]);
        client.initialize();
        client.ok("navigate", &json!({"url": "https://one.test/"}));
        assert_eq!(client.ok("evaluate", &json!({"script": "document.cookie"})).result()["value"], json!("token=kept"), "{flag}");
    });
}

/// `tabmux mcp --from`: every session of that client begins so, whichever tool makes it.
#[test]
fn a_client_that_is_started_with_a_source_is_logged_in() {
    let lab = Lab::new();
    let file = lab.path().join("state.json");
    let state = json!({"cookies": [{"name": "token", "value": "kept", "domain": "one.test", "path": "/"}]});
    std::fs::write(&file, state.to_string()).unwrap();
    assert_eq!(lab.run(&["profile", "new", "work", "--from", file.to_str().unwrap()]).code, 0);
    at_once(vec!["work", file.to_str().unwrap()], |source| {
        let client = lab.client_with(&["mcp", "--from", source]);
        client.initialize();
        client.ok("navigate", &json!({"url": "https://one.test/"}));
        assert_eq!(client.ok("evaluate", &json!({"script": "document.cookie"})).result()["value"], json!("token=kept"));
        client.ok("start_browser", &json!({"sessionId": "second", "navigationUrl": "https://one.test/"}));
        let second = json!({"sessionId": "second", "script": "document.cookie"});
        assert_eq!(client.ok("evaluate", &second).result()["value"], json!("token=kept"));
    });
}
