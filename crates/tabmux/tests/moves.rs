//! On a real Chromium: a session moves into a browser of its own and back, and comes back after its browser was killed.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::site::Site;
use support::{Lab, Mcp, Person, SOON, Shown, process, until};

fn site() -> Site {
    Site::start(|path| format!("<title>{path}</title><h1>The page {path}</h1>"))
}

fn eval(client: &Mcp, script: &str) -> Value {
    client.ok("evaluate", &json!({"script": script})).result()["value"].clone()
}

/// A cookie no script can read, one of a page's, and every kind of storage.
const LOGIN: &str = "new Promise(done => {
    document.cookie = 'seen=1; max-age=1000';
    localStorage.user = 'ann';
    sessionStorage.step = location.pathname;
    const open = indexedDB.open('app', 1);
    open.onupgradeneeded = () => open.result.createObjectStore('keys');
    open.onsuccess = () => {
        const writing = open.result.transaction('keys', 'readwrite');
        writing.objectStore('keys').put({ token: 'deep' }, 'main');
        writing.oncomplete = () => { open.result.close(); done(1); };
    };
})";

const LOOK: &str = "new Promise(done => {
    const open = indexedDB.open('app', 1);
    open.onupgradeneeded = () => open.result.createObjectStore('keys');
    open.onsuccess = () => {
        const asked = open.result.transaction('keys').objectStore('keys').get('main');
        asked.onsuccess = () => {
            open.result.close();
            done([location.pathname, document.cookie, localStorage.user, sessionStorage.step, asked.result?.token]);
        };
    };
})";

fn log_in(client: &Mcp, site: &Site) {
    client.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": site.at("/one")}));
    eval(client, LOGIN);
    let secret = json!({"name": "sid", "value": "hidden", "url": site.at("/"), "httpOnly": true});
    client.ok("cookies", &json!({"set": [secret]}));
    client.ok("new_page", &json!({"url": site.at("/two")}));
    client.ok("select_page", &json!({"pageIdx": 0}));
}

fn assert_logged_in(client: &Mcp, site: &Site) {
    assert_eq!(eval(client, LOOK), json!(["/one", "seen=1", "ann", "/one", "deep"]));
    let cookies = client.ok("cookies", &json!({})).structured()["cookies"].clone();
    let hidden = cookies.as_array().unwrap().iter().find(|cookie| cookie["name"] == json!("sid")).unwrap().clone();
    assert_eq!((&hidden["value"], &hidden["httpOnly"]), (&json!("hidden"), &json!(true)));
    let pages = client.ok("list_pages", &json!({})).structured()["pages"].clone();
    let urls: Vec<_> = pages.as_array().unwrap().iter().map(|page| (page["url"].clone(), page["current"].clone())).collect();
    assert_eq!(urls, [(json!(site.at("/one")), json!(true)), (json!(site.at("/two")), json!(false))]);
}

/// S1.43
#[test]
fn a_session_moves_into_a_browser_of_its_own_and_back() {
    let (lab, site) = (Lab::real(), site());
    let (client, other) = (lab.ready_client(), lab.ready_client());
    log_in(&client, &site);
    other.ok("navigate", &json!({"url": site.at("/other")}));
    client.ok("migrate", &json!({"isolation": "browser"}));
    assert_logged_in(&client, &site);
    assert_eq!(lab.status()["browsers"].as_array().unwrap().len(), 2);
    process::kill(lab.daemon_pid());
    assert_logged_in(&client, &site);
    client.ok("migrate", &json!({"isolation": "context"}));
    assert_logged_in(&client, &site);
    until("its own browser ends", SOON, || (lab.status()["browsers"].as_array().unwrap().len() == 1).then_some(()));
    assert_eq!(eval(&other, "[location.pathname, document.cookie]"), json!(["/other", ""]));
}

/// S1.43: into the profile that others share only when it is told to; within that it goes as it is, and its windows are its own.
#[test]
fn a_session_moves_into_a_shared_profile_by_force_and_between_window_and_tab_as_it_is() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    log_in(&client, &site);
    let said = client.fails("migrate", &json!({"isolation": "window"}), "unsupported");
    assert!(said.contains("would be merged") && said.contains("force"), "{said}");
    assert_logged_in(&client, &site);
    let said = client.ok("migrate", &json!({"isolation": "window", "force": true})).text();
    assert!(said.contains("shared with every session of the isolation window or tab"), "{said}");
    assert_logged_in(&client, &site);
    for unit in ["tab", "window"] {
        let said = client.ok("migrate", &json!({"isolation": unit})).text();
        assert!(said.contains("Moved 2 pages.") && !said.contains("shared with"), "{unit}: {said}");
        assert_logged_in(&client, &site);
        process::kill(lab.daemon_pid());
        assert_logged_in(&client, &site);
    }
}

/// The contract's browser crash, and the way back.
#[test]
fn what_was_lost_with_a_killed_browser_comes_back() {
    let (mut lab, site) = (Lab::real(), site());
    lab.set("TABMUX_SESSION_SAVE", "200ms");
    let client = lab.ready_client();
    log_in(&client, &site);
    let saved =
        || std::fs::read_dir(lab.state_dir().join("saved")).into_iter().flatten().flatten().map(|entry| entry.path()).collect::<Vec<_>>();
    until("it is saved", SOON, || {
        let text: String = saved()
            .iter()
            .filter(|path| path.extension().is_some_and(|end| end == "json"))
            .filter_map(|path| std::fs::read_to_string(path).ok())
            .collect();
        ["hidden", "ann", "deep", "/two", "\"current\":0"].iter().all(|word| text.contains(word)).then_some(())
    });
    let browser = u32::try_from(lab.status()["browsers"][0]["pid"].as_u64().unwrap()).unwrap();
    process::kill(browser);
    until("it is listed as lost", SOON, || {
        let session = client.ok("list_sessions", &json!({})).structured()["sessions"][0].clone();
        (session["state"] == json!("lost") && session["hint"].as_str().unwrap().contains("restore brings back")).then_some(())
    });
    let listed = lab.run(&["ls", "--all"]);
    assert!(listed.stdout.contains("\tlost\t") && listed.stderr.contains("web: Its browser was lost; restore brings back"), "{listed:?}");
    let said = client.fails("evaluate", &json!({"script": "1"}), "browser_crashed");
    assert!(said.contains("restore brings back"), "{said}");
    let said = client.ok("restore", &json!({})).text();
    assert!(said.contains("Brought back 2 pages."), "{said}");
    assert_logged_in(&client, &site);
    client.ok("close_session", &json!({}));
    until("nothing of it is left on disk", SOON, || saved().is_empty().then_some(()));
}

/// All the texts that are saved.
fn saved(lab: &Lab) -> String {
    let files = std::fs::read_dir(lab.state_dir().join("saved")).into_iter().flatten().flatten().map(|entry| entry.path());
    let whole = files.filter(|path| path.extension().is_some_and(|end| end == "json"));
    whole.filter_map(|path| std::fs::read_to_string(path).ok()).collect()
}

/// A reboot: nobody is left, and the next daemon knows before anybody calls which sessions lost their browser.
#[test]
fn sessions_that_nothing_survived_of_are_named_lost_at_once_and_restore_simply_brings_them_back() {
    let (mut lab, site) = (Lab::real(), site());
    lab.set("TABMUX_SESSION_SAVE", "200ms");
    for name in ["a", "b", "c"] {
        assert_eq!(lab.run(&["new", "-s", name, &site.at(&format!("/{name}"))]).code, 0);
    }
    until("they are saved", SOON, || ["/a\"", "/b\"", "/c\""].iter().all(|page| saved(&lab).contains(page)).then_some(()));
    let status = lab.status();
    let pid = |value: &Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    for victim in [&status["pid"], &status["browsers"][0]["keeper_pid"], &status["browsers"][0]["pid"]] {
        process::kill(pid(victim));
    }
    let back = lab.run(&["call", "restore", "-t", "a"]);
    assert!(back.code == 0 && back.stdout.contains("Brought back 1 page."), "{back:?}");
    let listed = lab.json(&["ls", "--json"])["sessions"].clone();
    let states: Vec<&Value> = listed.as_array().unwrap().iter().map(|session| &session["state"]).collect();
    assert_eq!(states, [&json!("active"), &json!("lost"), &json!("lost")], "{listed}");
    assert_eq!(lab.status()["sessions"], json!({"active": 1, "orphaned": 0, "lost": 2, "clones": 0}));
    let told = lab.run(&["eval", "-t", "b", "1"]);
    assert!(told.code == 1 && told.stderr.contains("restore brings back"), "{told:?}");
}

/// Its daemon died before it had rested: the next one saves it, although nobody calls it.
#[test]
fn a_session_that_was_not_saved_before_its_daemon_died_is_saved_by_the_next_one() {
    let (mut lab, site) = (Lab::real(), site());
    lab.set("TABMUX_SESSION_SAVE", "1h");
    assert_eq!(lab.run(&["new", "-s", "web", &site.at("/one")]).code, 0);
    process::kill(lab.daemon_pid());
    lab.set("TABMUX_SESSION_SAVE", "100ms");
    let _somebody_else = lab.ready_client();
    until("it is saved", SOON, || saved(&lab).contains("/one").then_some(()));
}

/// The same in the command line's words, where the browser is the built-in one.
#[test]
fn people_move_a_session_and_bring_it_back_on_the_command_line() {
    let mut lab = Lab::new();
    lab.set("TABMUX_SESSION_SAVE", "50ms");
    let ok = |args: &[&str]| {
        let done = lab.run(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        done.stdout
    };
    ok(&["new", "-s", "web", "https://a.test/"]);
    ok(&["eval", "-t", "web", "document.cookie = \"token=1\""]);
    let moved = ok(&["migrate", "-t", "web", "--isolation", "browser"]);
    assert!(moved.contains("Moved 1 page.\nt2 https://a.test/ (current)"), "{moved}");
    assert_eq!(lab.json(&["ls", "--json"])["sessions"][0]["isolation"], json!("browser"));
    until("it is saved", SOON, || {
        let files = std::fs::read_dir(lab.state_dir().join("saved")).into_iter().flatten().flatten();
        files.filter_map(|file| std::fs::read_to_string(file.path()).ok()).any(|text| text.contains("token")).then_some(())
    });
    let crashed = lab.run(&["eval", "-t", "web", "endBrowser()"]);
    assert!(crashed.code == 1 && crashed.stderr.contains("browser_crashed"), "{crashed:?}");
    let back = ok(&["restore", "-t", "web"]);
    assert!(back.contains("Brought back 1 page."), "{back}");
    assert_eq!(ok(&["eval", "-t", "web", "document.cookie"]).trim(), "\"token=1\"");
}

/// S1.43: also a session among a person's pages can be copied, kept and moved: with a copy of their logins, of which they notice nothing.
#[test]
fn a_session_in_a_persons_browser_is_forked_kept_and_moved_with_a_copy_of_their_logins() {
    let (lab, person) = (Lab::real(), Person::new(Shown::Headless));
    let theirs = person.pages();
    let client = lab.client_with(&["mcp", "--cdp-endpoint", &person.port.to_string()]);
    client.initialize();
    client.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": person.site.page("one")}));
    let at =
        |session: &str, script: &str| client.ok("evaluate", &json!({"sessionId": session, "script": script})).result()["value"].clone();
    at("web", "document.cookie = 'seen=1; max-age=1000'; localStorage.user = 'ann'; sessionStorage.step = 'two'");
    let look = "[document.cookie, localStorage.user, sessionStorage.step ?? null]";
    let (logged_in, whole) = (json!(["seen=1", "ann", null]), json!(["seen=1", "ann", "two"]));
    client.ok("fork", &json!({"sessionId": "web"}));
    assert_eq!(at("web-1", look), whole, "forked");
    client.ok(
        "start_browser",
        &json!({"sessionId": "copy", "from": "web", "isolation": "context", "navigationUrl": person.site.page("two")}),
    );
    assert_eq!(at("copy", look), logged_in, "copied");
    let saved = lab.run(&["profile", "save", "work", "-t", "web"]);
    assert_eq!(saved.code, 0, "{saved:?}");
    let exported = lab.path().join("work.json");
    assert_eq!(lab.run(&["profile", "export", "work", exported.to_str().unwrap()]).code, 0);
    let kept = std::fs::read_to_string(exported).unwrap();
    assert!(kept.contains("\"seen\"") && kept.contains("\"ann\""), "{kept}");
    for unit in ["context", "browser"] {
        client.ok("migrate", &json!({"sessionId": "web", "isolation": unit}));
        assert_eq!(at("web", look), whole, "moved to {unit}");
    }
    assert_eq!(at("web", "document.cookie = 'seen=2; max-age=1000'; document.cookie"), json!("seen=2"));
    client.ok("start_browser", &json!({"sessionId": "beside", "isolation": "tab", "navigationUrl": person.site.page("three")}));
    assert_eq!(at("beside", look), logged_in, "the person's own are as they were");
    client.ok("close_all_sessions", &json!({}));
    until("only the person's pages are left", SOON, || (person.pages() == theirs).then_some(()));
}
