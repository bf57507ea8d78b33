//! Each session its own world, from outside, on a real Chromium: downloads, what pages see, logins, proxies, files and what
//! is copied; two sessions with opposite settings side by side, and what is left of them after the daemon died.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::site::{self, Site};
use support::{Lab, Mcp, SOON, process, until};

/// `/file…` is a download, `/secret` wants `ann:right`, everything else is a page.
fn site() -> String {
    Site::hearing(|path, request| {
        if path.starts_with("/file") {
            site::with("200 OK", "text/plain", "Content-Disposition: attachment; filename=\"report.txt\"\r\n", path)
        } else if path.starts_with("/secret") && !request.contains("Authorization: Basic YW5uOnJpZ2h0") {
            site::with("401 Unauthorized", "text/html", "WWW-Authenticate: Basic realm=\"r\"\r\n", "who are you")
        } else {
            site::html(&format!("<!doctype html><title>{path}</title><h1>The page {path}</h1><input type=file id=file>"))
        }
    })
    .at("")
}

fn eval(client: &Mcp, script: &str) -> Value {
    client.ok("evaluate", &json!({"script": script})).result()["value"].clone()
}

fn kill_daemon(lab: &Lab) {
    let pid = lab.daemon_pid();
    process::kill(pid);
    until("it is dead", SOON, || (!process::is_alive(pid)).then_some(()));
}

fn downloads(client: &Mcp) -> Value {
    client.ok("downloads", &json!({"wait": true})).structured()["downloads"].clone()
}

/// Two sessions download a file of the same name: each has its own, before and after the daemon died, and it goes with the session.
#[test]
fn downloads_of_the_same_name_stay_apart_and_survive_the_daemon() {
    let (lab, site) = (Lab::real(), site());
    let clients = [lab.ready_client(), lab.ready_client()];
    for (number, client) in clients.iter().enumerate() {
        client.ok("navigate", &json!({"url": site}));
        eval(client, &format!("location = '/file{number}'; 1"));
        let listed = downloads(client);
        assert_eq!(
            (listed.as_array().unwrap().len(), &listed[0]["name"], &listed[0]["state"]),
            (1, &json!("report.txt"), &json!("completed"))
        );
        assert_eq!(listed[0]["url"], json!(format!("{site}/file{number}")));
        assert_eq!(std::fs::read_to_string(listed[0]["path"].as_str().unwrap()).unwrap(), format!("/file{number}"));
    }
    let before: Vec<Value> = clients.iter().map(downloads).collect();
    assert_ne!(before[0][0]["path"], before[1][0]["path"]);
    kill_daemon(&lab);
    for (client, before) in clients.iter().zip(&before) {
        assert_eq!(&downloads(client), before);
    }
    let fault = clients[0].fails("navigate", &json!({"url": format!("{site}/file-again")}), "navigation_failed");
    assert!(fault.contains("download"), "{fault}");
    let again = downloads(&clients[0]);
    assert_eq!(again[1]["name"], json!("report (1).txt"));
    assert_eq!(downloads(&clients[1]).as_array().unwrap().len(), 1);
    clients[0].ok("close_session", &json!({}));
    assert!(!std::path::Path::new(again[0]["path"].as_str().unwrap()).exists());
    assert!(std::path::Path::new(before[1][0]["path"].as_str().unwrap()).exists());
}

/// The contract: news of a download comes first in the next reply.
#[test]
fn a_download_is_said_first_in_the_next_reply() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site}));
    let mut said = client.ok("evaluate", &json!({"script": "location = '/file'; 1"})).text();
    until("it is said", SOON, || {
        said += &client.ok("evaluate", &json!({"script": "1"})).text();
        said.contains("Downloaded report.txt: /").then_some(())
    });
}

/// Opposite places, times and permissions side by side; kept by the next daemon, for pages that are there and for new ones.
#[test]
fn two_sessions_see_opposite_worlds_also_after_the_daemon_died() {
    let (lab, site) = (Lab::real(), site());
    let flagged = lab.client_with(&["mcp", "--viewport-size", "640x400"]);
    flagged.initialize();
    let clients = [flagged, lab.ready_client()];
    let worlds = [("Asia/Tokyo", 35, "grant", "granted"), ("America/New_York", 40, "deny", "denied")];
    for (client, (zone, latitude, permission, _)) in clients.iter().zip(worlds) {
        client.ok("navigate", &json!({"url": site}));
        let set =
            json!({"timezone": zone, "geolocation": {"latitude": latitude, "longitude": 1}, "permissions": {"notifications": permission}});
        client.ok("emulate", &json!({"set": set}));
    }
    let check = |new: bool| {
        for (client, (zone, latitude, _, state)) in clients.iter().zip(worlds) {
            if new {
                client.ok("new_page", &json!({"url": site}));
            }
            let script = "Promise.all([Intl.DateTimeFormat().resolvedOptions().timeZone, new Promise((done) => \
                          navigator.geolocation.getCurrentPosition((at) => done(at.coords.latitude), (error) => done(error.message))), \
                          navigator.permissions.query({ name: 'notifications' }).then((status) => status.state)])";
            assert_eq!(eval(client, script), json!([zone, latitude, state]));
        }
        assert_eq!(eval(&clients[0], "[innerWidth, innerHeight]"), json!([640, 400]));
    };
    check(false);
    kill_daemon(&lab);
    check(false);
    check(true);
    let fault = clients[0].fails("emulate", &json!({"set": {"timezone": "Mars/Olympus"}}), "bad_argument");
    assert!(fault.contains("Mars/Olympus"), "{fault}");
    clients[0].ok("emulate", &json!({"reset": true}));
    assert_ne!(eval(&clients[0], "Intl.DateTimeFormat().resolvedOptions().timeZone"), json!("Asia/Tokyo"));
    assert_eq!(eval(&clients[0], "innerWidth"), json!(640), "what its client was started with, by the next daemon too");
}

/// Right and wrong credentials side by side. They are nowhere on disk, and their loss with the daemon is said.
#[test]
fn credentials_are_each_sessions_own_and_end_with_the_daemon() {
    let (lab, site) = (Lab::real(), site());
    let clients = [lab.ready_client(), lab.ready_client(), lab.ready_client()];
    let passwords = [Some("right"), Some("wrong"), None];
    for (client, password) in clients.iter().zip(passwords) {
        client.ok("navigate", &json!({"url": site}));
        if let Some(password) = password {
            client.ok("emulate", &json!({"set": {"httpCredentials": {"username": "ann", "password": password}}}));
        }
        client.ok("navigate", &json!({"url": format!("{site}/secret")}));
        let expected = if password == Some("right") { "The page /secret" } else { "who are you" };
        assert!(client.ok("read_text", &json!({})).text().contains(expected), "{password:?}");
    }
    for entry in std::fs::read_dir(lab.state_dir()).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let written = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
        assert!(!written.contains("\"right\"") && !written.contains("\"wrong\""), "{}", entry.path().display());
    }
    kill_daemon(&lab);
    // What the former daemon looked at must not wait for it for ever.
    let said = clients[1].ok("navigate", &json!({"url": format!("{site}/after")})).text();
    assert!(said.starts_with("httpCredentials and the proxy's password were lost"), "{said}");
}

#[test]
fn a_session_has_the_proxy_it_was_started_with() {
    let (lab, proxy) = (Lab::real(), site());
    let client = lab.ready_client();
    let start = json!({"sessionId": "through", "proxy": proxy, "navigationUrl": "http://nowhere.test/proxied"});
    client.ok("start_browser", &start);
    assert!(client.ok("read_text", &json!({})).text().contains("The page http://nowhere.test/proxied"));
    client.fails("start_browser", &json!({"sessionId": "direct", "navigationUrl": "http://nowhere.test/"}), "navigation_failed");
    client.fails("start_browser", &json!({"sessionId": "tab", "isolation": "tab", "proxy": proxy}), "unsupported");
    client.fails("start_browser", &json!({"sessionId": "odd", "proxy": "nonsense"}), "bad_argument");
}

/// A file chooser is news and opens no window; files go to it or to an input; secrets do not.
#[test]
fn files_are_given_to_pages_that_ask() {
    let (lab, site) = (Lab::real(), site());
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": site}));
    let file = lab.path().join("letter.txt");
    std::fs::write(&file, "dear page").unwrap();
    let mut said = client.ok("evaluate", &json!({"script": "document.querySelector('#file').click()"})).text();
    until("the chooser is news", SOON, || {
        said += &client.ok("evaluate", &json!({"script": "1"})).text();
        said.contains("Tab t1 asks for a file; upload_file gives it.").then_some(())
    });
    client.ok("upload_file", &json!({"paths": [file]}));
    assert_eq!(eval(&client, "document.querySelector('#file').files[0].text()"), json!("dear page"));
    client.ok("navigate", &json!({"url": site}));
    client.ok("upload_file", &json!({"paths": [file], "selector": "#file"}));
    assert_eq!(eval(&client, "document.querySelector('#file').files[0].name"), json!("letter.txt"));
    client.fails("upload_file", &json!({"paths": [lab.state_dir().join("token")], "selector": "#file"}), "policy_denied");
}

/// Chromium has one clipboard; sessions have one each, and keep working after the daemon died.
#[test]
fn what_one_session_copies_no_other_pastes() {
    let (lab, site) = (Lab::real(), site());
    let clients = [lab.ready_client(), lab.ready_client()];
    let read = "navigator.clipboard.readText().catch((error) => error.name)";
    for client in &clients {
        client.ok("navigate", &json!({"url": site}));
        client.ok("emulate", &json!({"set": {"permissions": {"clipboard-read": "grant"}}}));
    }
    eval(&clients[0], "navigator.clipboard.writeText('secret').then(() => 1)");
    assert_eq!((eval(&clients[0], read), eval(&clients[1], read)), (json!("secret"), json!("")));
    kill_daemon(&lab);
    assert_eq!(eval(&clients[1], read), json!(""));
    // In a document that the former daemon prepared, and in the next one.
    for text in ["old page", "new page"] {
        eval(&clients[0], &format!("navigator.clipboard.writeText('{text}').then(() => 1)"));
        assert_eq!((eval(&clients[0], read), eval(&clients[1], read)), (json!(text), json!("")));
        clients[0].ok("navigate", &json!({"url": site}));
        assert_eq!(eval(&clients[0], read), json!(text));
    }
}

/// Sessions isolated by tab are logged in as their profile is, from one daemon to the next; whoever holds it is named.
#[test]
fn a_named_profile_lasts_and_its_holder_is_named() {
    let (home, site) = (tempfile::tempdir().unwrap(), site());
    let profile = home.path().join("work").into_os_string().into_string().unwrap();
    let lab = || Lab::with(&[("TABMUX_BROWSER", ""), ("TABMUX_BROWSER_PROFILE", &profile)]);
    let open = |client: &Mcp| client.ok("start_browser", &json!({"isolation": "tab", "navigationUrl": site}));
    let first = lab();
    let client = first.ready_client();
    open(&client);
    eval(&client, "document.cookie = 'login=ann; max-age=1000'; localStorage.user = 'ann'; 0");
    let second = lab();
    let refused = second.ready_client().call("start_browser", &json!({"isolation": "tab"}));
    assert!(refused.failed() && refused.text().contains(&profile) && refused.text().contains("(pid "), "{refused:?}");
    assert_eq!(first.run(&["stop"]).code, 0);
    let client = second.ready_client();
    open(&client);
    assert_eq!(eval(&client, "[document.cookie, localStorage.user]"), json!(["login=ann", "ann"]));
    client.ok("start_browser", &json!({"sessionId": "own", "navigationUrl": site}));
    let own = client.ok("evaluate", &json!({"sessionId": "own", "script": "document.cookie"}));
    assert_eq!(own.result()["value"], "", "a context of its own has none of it");
}
