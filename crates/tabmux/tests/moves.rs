//! On a real Chromium: a session moves into a browser of its own and back, and comes back after its browser was killed.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::site::Site;
use support::{Lab, Mcp, SOON, process, until};

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
    let said = client.fails("evaluate", &json!({"script": "1"}), "browser_crashed");
    assert!(said.contains("restore brings back"), "{said}");
    let said = client.ok("restore", &json!({})).text();
    assert!(said.contains("Brought back 2 pages."), "{said}");
    assert_logged_in(&client, &site);
    client.ok("close_session", &json!({}));
    until("nothing of it is left on disk", SOON, || saved().is_empty().then_some(()));
}
