//! Copies of a logged-in session, from outside, on a real Chromium: logged in at the first navigation by every kind of cookie and
//! storage, each its own from then on; forks with their pages; a person's own profile; and what survives what.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};
use support::site::{self, Site};
use support::{Display, Lab, Mcp, SOON, at_once, process, until};

/// What one document learns when it is opened: the cookies its request had, and what its origin keeps. `/login` logs in, `/logout` out,
/// everything else only looks, and `/done` says that it has. `/login#many` goes on to another site, which sets many cookies. A frame of
/// another site (`localhost` in a page of `127.0.0.1`) has a partitioned cookie.
const PAGE: &str = "<!doctype html><title>PATH</title><pre id=sent>SENT</pre><script>
    const database = new Promise((done, fail) => {
      const opening = indexedDB.open('kept', 1);
      opening.onupgradeneeded = () => opening.result.createObjectStore('keys');
      opening.onsuccess = () => done(opening.result);
      opening.onerror = () => fail(opening.error);
    });
    const keys = async (how, ask) => new Promise((done, fail) => {
      const asked = ask((window.db.transaction('keys', how)).objectStore('keys'));
      asked.onsuccess = () => done(asked.result ?? null);
      asked.onerror = () => fail(asked.error);
    });
    const widget = new Promise((done) => addEventListener('message', (event) => done(event.data)));
    const first = localStorage.getItem('user');
    const ready = (async () => {
      window.db = await database;
      if (location.pathname === '/login') { localStorage.user = 'ann'; await keys('readwrite', (store) => store.put('key1', 'id')); }
      if (location.pathname === '/logout') { localStorage.clear(); await keys('readwrite', (store) => store.clear()); }
      return { sent: sent.textContent, local: first, database: await keys('readonly', (store) => store.get('id')), widget: await widget };
    })();
    ready.then(() => fetch('/done')).then(() => { if (location.hash === '#many') location = 'http://localhost:PORT/many'; });
    if (location.pathname === '/many') for (let at = 0; at < 600; at++) document.cookie = 'many' + at + '=1; max-age=1000';
</script><iframe src='http://localhost:PORT/widgetPATH'></iframe>";

fn shop() -> Site {
    Site::hearing(|path, request| {
        let sent = request.lines().find_map(|line| line.strip_prefix("Cookie: ")).unwrap_or_default();
        let port = request.lines().find_map(|line| line.strip_prefix("Host: ")?.rsplit_once(':')).map(|(_, port)| port).unwrap_or_default();
        if let Some(page) = path.strip_prefix("/widget") {
            let cookie = match page {
                "/login" => "Set-Cookie: part=p1; Secure; HttpOnly; SameSite=None; Partitioned; Path=/\r\n",
                _ => "",
            };
            return site::with("200 OK", "text/html", cookie, &format!("<script>parent.postMessage({sent:?}, '*')</script>"));
        }
        let cookies = match path {
            "/login" => {
                "Set-Cookie: sid=s1; HttpOnly; Path=/\r\nSet-Cookie: __Host-id=h1; Secure; HttpOnly; Path=/\r\n\
                 Set-Cookie: lasting=l1; HttpOnly; Max-Age=100000; Path=/\r\n"
            }
            "/logout" => {
                "Set-Cookie: sid=; Max-Age=0; Path=/\r\nSet-Cookie: __Host-id=; Max-Age=0; Secure; Path=/\r\n\
                 Set-Cookie: lasting=; Max-Age=0; Path=/\r\n"
            }
            _ => "",
        };
        let body = PAGE.replace("PATH", path).replace("SENT", sent).replace("PORT", port);
        site::with("200 OK", "text/html", cookies, &body)
    })
}

fn eval(client: &Mcp, session: Option<&str>, script: &str) -> Value {
    let mut args = json!({"script": script});
    if let Some(session) = session {
        args["sessionId"] = session.into();
    }
    client.ok("evaluate", &args).result()["value"].clone()
}

/// What a document finds that is opened now: as one value, in an order of its own.
fn opened_at(client: &Mcp, session: Option<&str>, url: &str) -> Value {
    let mut args = json!({"url": url});
    if let Some(session) = session {
        args["sessionId"] = session.into();
    }
    client.ok("navigate", &args);
    found(eval(client, session, "ready"))
}

fn found(mut ready: Value) -> Value {
    let mut sent: Vec<String> = ready["sent"].as_str().unwrap_or_default().split("; ").map(str::to_owned).collect();
    sent.sort();
    ready["sent"] = json!(sent.join("; "));
    ready
}

fn inside() -> Value {
    json!({"sent": "__Host-id=h1; lasting=l1; sid=s1", "local": "ann", "database": "key1", "widget": "part=p1"})
}

fn outside() -> Value {
    json!({"sent": "", "local": null, "database": null, "widget": ""})
}

/// The operator's session `main`, logged in.
fn logged_in(lab: &Lab, site: &Site) {
    let made = lab.run(&["new", "-s", "main", &site.at("/login")]);
    assert_eq!(made.code, 0, "{made:?}");
    let ready = lab.run(&["eval", "-t", "main", "ready.then(() => 1)"]);
    assert_eq!(ready.stdout.trim(), "1", "{ready:?}");
}

fn client(lab: &Lab, flags: &[&str]) -> Mcp {
    let client = lab.client_with(&[&["mcp"], flags].concat());
    client.initialize();
    client
}

/// An agent logs in once and fans out, over MCP alone: the copies are its own, with pages, logins and what each page keeps for itself.
#[test]
fn an_agent_logs_in_once_and_forks_itself() {
    let (lab, site) = (Lab::real(), shop());
    let (agent, stranger) = (client(&lab, &["--tools", "full"]), client(&lab, &[]));
    agent.ok("start_browser", &json!({"sessionId": "main", "navigationUrl": site.at("/login")}));
    eval(&agent, Some("main"), "ready.then(() => { sessionStorage.step = 'two'; return 1; })");
    let said = agent.ok("fork", &json!({"sessionId": "main", "count": 3}));
    assert!(said.text().contains("main-1, main-2, main-3"), "{}", said.text());
    for copy in ["main-1", "main-2", "main-3"] {
        assert_eq!(eval(&agent, Some(copy), "[location.pathname, sessionStorage.step]"), json!(["/login", "two"]), "{copy}");
        assert_eq!(opened_at(&agent, Some(copy), &site.at("/look")), inside(), "{copy}");
        assert_eq!(eval(&agent, Some(copy), "sessionStorage.step"), json!("two"), "{copy}");
        stranger.fails("evaluate", &json!({"sessionId": copy, "script": "1"}), "session_not_found");
    }
    opened_at(&agent, Some("main-1"), &site.at("/logout"));
    assert_eq!(opened_at(&agent, Some("main-1"), &site.at("/look"))["local"], Value::Null);
    assert_eq!(opened_at(&agent, Some("main-2"), &site.at("/look")), inside(), "each is its own");
    assert_eq!(lab.status()["sessions"]["clones"], json!(3));
}

/// A fork is whole when it is said to be made: whoever then closes the session it was made of takes nothing from the copies.
#[test]
fn a_fork_misses_nothing_of_a_session_that_is_closed_at_once() {
    let (lab, site) = (Lab::real(), Site::start(|path| format!("<title>{path}</title>")));
    let operator = |args: &[&str]| {
        let done = lab.run(args);
        assert_eq!(done.code, 0, "{args:?}: {done:?}");
        done.stdout.trim().to_owned()
    };
    let places: Vec<String> = (0..6).map(|number| site.at("/").replace("127.0.0.1", &format!("s{number}.localhost"))).collect();
    operator(&["new", "-s", "main"]);
    for place in &places {
        operator(&["open", "-t", "main", place]);
        operator(&["eval", "-t", "main", "localStorage.user = location.host"]);
    }
    operator(&["fork", "-t", "main", "-n", "2"]);
    operator(&["kill-session", "-t", "main"]);
    for copy in ["main-1", "main-2"] {
        for place in &places {
            operator(&["open", "-t", copy, place]);
            assert_eq!(operator(&["eval", "-t", copy, "localStorage.user === location.host"]), "true", "{copy} at {place}");
        }
    }
}

/// S3.1, S3.2, S3.30: two clones of one logged-in profile and an isolated session. A logout in one changes nothing elsewhere, and a token
/// that one agent's page sets is its own.
#[test]
fn two_clones_of_a_profile_are_logged_in_and_an_isolated_session_is_not() {
    let (lab, site) = (Lab::real(), shop());
    logged_in(&lab, &site);
    let saved = lab.run(&["profile", "save", "work", "-t", "main"]);
    assert_eq!((saved.code, saved.stderr.as_str()), (0, ""), "nothing is lost: {saved:?}");
    let clones = [client(&lab, &["--from", "work"]), client(&lab, &[])];
    let isolated = client(&lab, &[]);
    clones[1].ok("start_browser", &json!({"sessionId": "second", "from": "work"}));
    for clone in &clones {
        assert_eq!(opened_at(clone, None, &site.at("/home")), inside(), "at its first navigation");
    }
    assert_eq!(opened_at(&isolated, None, &site.at("/home")), outside());
    for (clone, token) in clones.iter().zip(["agent1_token=secret123", "agent2_token=xyz789"]) {
        eval(clone, None, &format!("document.cookie = {token:?}"));
    }
    assert_eq!(eval(&clones[0], None, "document.cookie"), json!("agent1_token=secret123"));
    assert_eq!(eval(&clones[1], None, "document.cookie"), json!("agent2_token=xyz789"));
    assert_eq!(eval(&isolated, None, "document.cookie"), json!(""));
    opened_at(&clones[0], None, &site.at("/logout"));
    let left = opened_at(&clones[0], None, &site.at("/home"));
    assert_eq!((&left["sent"], &left["local"], &left["database"]), (&json!("agent1_token=secret123"), &Value::Null, &Value::Null));
    let kept = opened_at(&clones[1], None, &site.at("/home"));
    assert_eq!(kept["sent"], json!("__Host-id=h1; agent2_token=xyz789; lasting=l1; sid=s1"));
    assert_eq!((&kept["local"], &kept["database"], &kept["widget"]), (&json!("ann"), &json!("key1"), &json!("part=p1")));
    clones[1].ok("start_browser", &json!({"sessionId": "third", "from": "profile:work"}));
    assert_eq!(opened_at(&clones[1], Some("third"), &site.at("/home")), inside(), "the profile is as it was");
    let main = lab.run(&["eval", "-t", "main", "document.cookie + localStorage.user"]);
    assert_eq!(main.stdout.trim(), "\"ann\"", "and so is the session it was taken from: {main:?}");
    assert_eq!(lab.status()["sessions"]["clones"], 3);
}

/// S3.2: from a live session, without a profile in between; also where the source is closed right after.
#[test]
fn a_copy_of_a_live_session_is_logged_in_when_its_source_is_gone_too() {
    let (lab, site) = (Lab::real(), shop());
    let agent = client(&lab, &[]);
    agent.ok("start_browser", &json!({"sessionId": "main", "navigationUrl": site.at("/login")}));
    eval(&agent, Some("main"), "ready.then(() => 1)");
    let said = agent.ok("start_browser", &json!({"sessionId": "copy", "from": "main", "navigationUrl": site.at("/home")}));
    assert!(said.text().starts_with("Started browser session copy, a copy of session:main."), "{}", said.text());
    assert_eq!(found(eval(&agent, Some("copy"), "ready")), inside());
    agent.ok("close_session", &json!({"sessionId": "main"}));
    assert_eq!(opened_at(&agent, Some("copy"), &site.at("/home")), inside());
    agent.fails("start_browser", &json!({"from": "main"}), "session_not_found");
}

/// The same with logins at six origins, of which nobody has asked for five when the source is closed.
#[test]
fn a_copy_has_every_origin_of_a_source_that_is_closed_at_once() {
    let (lab, site) = (Lab::real(), Site::start(|path| format!("<title>{path}</title>")));
    let agent = client(&lab, &[]);
    let hosts = ["a", "b", "c", "d", "e", "f"].map(|host| site.at("/").replace("127.0.0.1", &format!("{host}.localhost")));
    agent.ok("start_browser", &json!({"sessionId": "main"}));
    for host in &hosts {
        agent.ok("navigate", &json!({"sessionId": "main", "url": host}));
        assert_eq!(eval(&agent, Some("main"), "localStorage.user = location.host"), json!(host.trim_matches('/').replace("http://", "")));
    }
    agent.ok("start_browser", &json!({"sessionId": "copy", "from": "main"}));
    agent.ok("close_session", &json!({"sessionId": "main"}));
    for host in &hosts {
        let said = agent.ok("navigate", &json!({"sessionId": "copy", "url": host})).text();
        assert!(!said.contains("Not copied"), "{said}");
        assert_eq!(eval(&agent, Some("copy"), "localStorage.user === location.host"), json!(true), "{host}");
    }
}

/// A cookie that the browser refuses loses itself and no other, and that is said where the copy is opened, by every door, and once.
#[test]
fn a_cookie_that_is_lost_is_named_where_the_copy_is_opened() {
    let (lab, site) = (Lab::real(), shop());
    let cookie = |name: &str| json!({"name": name, "value": "1", "domain": "127.0.0.1", "path": "/", "expires": -1, "httpOnly": true});
    let state = json!({"cookies": [cookie("one"), cookie("__Host-bad"), cookie("two")], "origins": []}).to_string();
    let file = lab.path().join("bad.json");
    std::fs::write(&file, &state).unwrap();
    let said = "Not copied into this session: cookie __Host-bad of 127.0.0.1: the browser does not take it.";
    let sent = "one=1; two=1";

    let agent = client(&lab, &[]);
    let reply = agent.ok("start_browser", &json!({"from": state, "navigationUrl": site.at("/home")}));
    assert!(reply.text().ends_with(said) && reply.result()["warning"] == said, "{reply:?}");
    let next = agent.ok("evaluate", &json!({"script": "sent.textContent"}));
    assert!(next.result()["value"] == sent && !next.text().contains("Not copied"), "{next:?}");

    let new = lab.run(&["new", "-s", "cli", "--from", file.to_str().unwrap(), &site.at("/home")]);
    assert_eq!((new.code, new.stdout.trim(), new.stderr.trim()), (0, "cli", said), "{new:?}");
    assert_eq!(lab.run(&["eval", "-t", "cli", "sent.textContent"]).json(), json!(sent));

    assert_eq!(lab.run(&["profile", "new", "bad", "--from", file.to_str().unwrap()]).code, 0);
    let open = lab.run(&["agent-session", "open", "--profile", "bad", "--url", &site.at("/home")]);
    assert_eq!((open.code, open.stderr.trim()), (0, said), "{open:?}");
    assert_eq!(lab.run(&["eval", "-t", open.stdout.trim(), "sent.textContent"]).json(), json!(sent));
    let open = lab.run(&["agent-session", "open", "--profile", "bad", "--json"]);
    assert_eq!((open.code, &open.json()["warning"]), (0, &json!(said)), "{open:?}");
}

/// Log in once, fan out: pages, their order and what each keeps for itself come along.
#[test]
fn forks_have_their_sources_pages_and_are_their_own() {
    let (lab, site) = (Lab::real(), shop());
    logged_in(&lab, &site);
    lab.run(&["eval", "-t", "main", "sessionStorage.step = 'one'"]);
    assert_eq!(lab.run(&["call", "new_page", "-t", "main", &format!("url={}", site.at("/second"))]).code, 0);
    lab.run(&["eval", "-t", "main", "sessionStorage.step = 'two'"]);
    let made = lab.run(&["fork", "-t", "main", "-n", "3"]);
    assert_eq!((made.code, made.stdout.as_str()), (0, "main-1\nmain-2\nmain-3\n"), "{made:?}");
    at_once(vec!["main-1", "main-2", "main-3"], |name| {
        for (index, path, step) in [(0, "/login", "one"), (1, "/second", "two")] {
            assert_eq!(lab.run(&["call", "select_page", "-t", name, &format!("pageIdx={index}")]).code, 0);
            let page = lab.run(&["eval", "-t", name, "[location.pathname, sessionStorage.step, localStorage.user]"]);
            assert_eq!(page.json(), json!([path, step, "ann"]), "{name}");
        }
        let ready = lab.run(&["eval", "-t", name, "ready"]);
        assert_eq!(found(ready.json())["sent"], inside()["sent"], "{name}");
    });
    assert_eq!(lab.run(&["eval", "-t", "main-1", "localStorage.clear()"]).code, 0);
    assert_eq!(lab.run(&["eval", "-t", "main-2", "localStorage.user"]).stdout.trim(), "\"ann\"");
    assert_eq!(lab.run(&["eval", "-t", "main", "[location.pathname, sessionStorage.step]"]).json(), json!(["/second", "two"]));
}

/// A site that does not answer any more holds no copy up: each is there, can be used, and says which page it has not got.
#[test]
fn a_fork_does_not_wait_for_a_site_that_has_fallen_silent() {
    let silent = Arc::new(AtomicBool::new(false));
    let silenced = Arc::clone(&silent);
    let site = Site::start(move |path| {
        while silenced.load(Ordering::SeqCst) {
            std::thread::park();
        }
        format!("<title>{path}</title>")
    });
    let lab = Lab::real();
    assert_eq!(lab.run(&["new", "-s", "main", &site.at("/slow")]).code, 0);
    silent.store(true, Ordering::SeqCst);
    let made = lab.run(&["fork", "-t", "main", "-n", "2"]);
    assert_eq!((made.code, made.stdout.as_str()), (0, "main-1\nmain-2\n"), "{made:?}");
    silent.store(false, Ordering::SeqCst);
    let said = format!("The page {} was not copied: its site did not answer in time.", site.at("/slow"));
    for name in ["main-1", "main-2"] {
        assert!(made.stderr.contains(&format!("{name}: {said}")), "{made:?}");
        let pages = lab.run(&["call", "list_pages", "-t", name]);
        assert!(pages.stderr.contains(&said) && pages.stdout.contains("about:blank"), "{pages:?}");
        assert_eq!(lab.run(&["open", "-t", name, &site.at("/again")]).code, 0);
    }
}

/// S3.16: a browser that was killed brings no agent's tabs back by itself.
#[test]
fn a_browser_that_is_started_again_restores_no_tabs_of_agents() {
    let (lab, site) = (Lab::real(), shop());
    logged_in(&lab, &site);
    assert_eq!(lab.run(&["fork", "-t", "main", "-n", "2"]).code, 0);
    let browser = lab.status()["browsers"][0]["pid"].as_u64().unwrap();
    process::kill(u32::try_from(browser).unwrap());
    until("its end is known", SOON, || (lab.status()["browsers"] == json!([])).then_some(()));
    site.asked();
    let agent = client(&lab, &[]);
    agent.ok("navigate", &json!({"url": site.at("/after")}));
    let asked = site.asked();
    assert!(asked.iter().all(|path| path.ends_with("/after") || path == "/done"), "nothing else was opened: {asked:?}");
    assert_eq!(agent.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().len(), 1);
    let lost = lab.run(&["call", "list_pages", "-t", "main-1"]);
    assert!(lost.code == 1 && lost.stderr.contains("[browser_crashed]"), "{lost:?}");
}

/// How a browser ends that agents have tabs in.
#[derive(Clone, Copy, Debug)]
enum End {
    Killed,
    Closed,
}

/// Also where the browser is started again on the same profile, whose person wants their windows back each time. That it has written
/// down the agents' windows is what makes this a test.
fn agents_tabs_are_not_restored_from_a_profile(end: End) {
    let (home, display, site) = (tempfile::tempdir().unwrap(), Display::new(), shop());
    let profile = home.path().join("work");
    std::fs::create_dir_all(profile.join("Default")).unwrap();
    std::fs::write(profile.join("Default/Preferences"), json!({"session": {"restore_on_startup": 1}}).to_string()).unwrap();
    let variables = [("TABMUX_BROWSER", ""), ("TABMUX_HEADLESS", "false"), ("DISPLAY", &display.name)];
    let mut lab = Lab::with(&variables);
    lab.set("TABMUX_BROWSER_PROFILE", profile.to_str().unwrap());
    let first = client(&lab, &["--isolation", "window"]);
    first.ok("navigate", &json!({"url": site.at("/before")}));
    first.ok("new_page", &json!({"url": site.at("/before/tab")}));
    first.ok("start_browser", &json!({"sessionId": "tab", "isolation": "tab", "navigationUrl": site.at("/before/alone")}));
    first.ok("start_browser", &json!({"sessionId": "context", "isolation": "context", "navigationUrl": site.at("/before/apart")}));
    until("the browser has written down which pages are open", SOON * 3, || {
        let written = |path: &str| !files_with(&site.at(path), &profile.join("Default/Sessions")).is_empty();
        (written("/before/tab") && written("/before/alone")).then_some(())
    });
    assert_eq!(
        files_with("/before/apart", &profile.join("Default/Sessions")),
        Vec::<std::path::PathBuf>::new(),
        "a context writes nothing"
    );
    match end {
        End::Killed => {
            let browser = lab.status()["browsers"][0]["pid"].as_u64().unwrap();
            process::kill(u32::try_from(browser).unwrap());
            until("its end is known", SOON, || (lab.status()["browsers"] == json!([])).then_some(()));
        }
        End::Closed => {
            drop(first);
            lab.stop();
        }
    }
    site.asked();
    let agent = client(&lab, &["--isolation", "window"]);
    for path in ["/after", "/after/second"] {
        agent.ok("new_page", &json!({"url": site.at(path)}));
        eval(&agent, None, "ready.then(() => 1)");
    }
    let asked = site.asked();
    assert!(asked.iter().all(|path| !path.contains("before")), "nothing else was opened: {asked:?}");
    let urls: Vec<Value> =
        agent.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().iter().map(|page| page["url"].clone()).collect();
    assert_eq!(urls, [site.at("/after"), site.at("/after/second")]);
}

/// S3.16
#[test]
fn a_browser_that_was_killed_restores_no_tabs_of_agents_from_its_profile() {
    agents_tabs_are_not_restored_from_a_profile(End::Killed);
}

/// S3.16
#[test]
fn a_browser_that_was_closed_restores_no_tabs_of_agents_from_its_profile() {
    agents_tabs_are_not_restored_from_a_profile(End::Closed);
}

/// A visible browser that comes up for a copy, and has no page yet.
#[test]
fn the_first_session_of_a_visible_browser_is_a_copy() {
    let (site, display) = (shop(), Display::new());
    let lab = Lab::with(&[("TABMUX_BROWSER", ""), ("DISPLAY", &display.name)]);
    logged_in(&lab, &site);
    assert_eq!(lab.run(&["profile", "save", "work", "-t", "main"]).code, 0);
    let agent = client(&lab, &["--headed", "--from", "work"]);
    let said = agent.ok("navigate", &json!({"url": site.at("/home")})).text();
    assert!(!said.contains("Not copied"), "{said}");
    assert_eq!(found(eval(&agent, None, "ready")), inside());
    assert_eq!(lab.status()["browsers"].as_array().unwrap().len(), 2, "one is visible");
}

/// S3.26: a page in another window is the same session's, with the same store, and stays so when the first window is closed.
#[test]
fn a_page_in_another_window_keeps_its_copys_store() {
    let (lab, site) = (Lab::real(), shop());
    logged_in(&lab, &site);
    let agent = client(&lab, &[]);
    lab.run(&["profile", "save", "work", "-t", "main"]);
    agent.ok("start_browser", &json!({"sessionId": "copy", "from": "work", "navigationUrl": site.at("/home")}));
    eval(&agent, Some("copy"), "localStorage.mine = 1; open('/other', '', 'popup,width=400,height=300'); 1");
    until("the other window's page is a tab", SOON, || {
        let pages = agent.ok("list_pages", &json!({"sessionId": "copy"})).structured()["pages"].clone();
        (pages.as_array().unwrap().len() == 2).then_some(())
    });
    agent.ok("select_page", &json!({"sessionId": "copy", "pageIdx": 1}));
    agent.ok("wait_for", &json!({"sessionId": "copy", "function": "location.pathname === '/other' && document.readyState === 'complete'"}));
    assert_eq!(found(eval(&agent, Some("copy"), "ready")), inside());
    agent.ok("close_page", &json!({"sessionId": "copy", "pageIdx": 0}));
    assert_eq!(eval(&agent, Some("copy"), "[location.pathname, localStorage.mine]"), json!(["/other", "1"]));
    assert_eq!(opened_at(&agent, Some("copy"), &site.at("/moved")), inside());
    let main = lab.run(&["eval", "-t", "main", "localStorage.mine ?? 'nothing'"]);
    assert_eq!(main.stdout.trim(), "\"nothing\"", "and it is no other's: {main:?}");
}

/// Every file below that has these words in it.
fn files_with(words: &str, below: &std::path::Path) -> Vec<std::path::PathBuf> {
    let holds = |path: &std::path::PathBuf| {
        let bytes = std::fs::read(path).unwrap_or_default();
        bytes.windows(words.len()).any(|window| window == words.as_bytes())
    };
    listing(below).into_iter().map(|(path, _)| path).filter(holds).collect()
}

/// S3.7, S3.8, S3.9, S3.24, S3.29: in Seed 3's words on the command line. The clone's tabs close, those in other windows too, and nothing
/// that was in it is on disk, neither before nor after; its profile and its sister go on.
#[test]
fn disposing_a_clone_closes_its_tabs_in_every_window_and_leaves_nothing() {
    let (lab, site) = (Lab::with(&[("TABMUX_BROWSER", ""), ("TABMUX_SESSION_SAVE", "1s")]), shop());
    logged_in(&lab, &site);
    assert_eq!(lab.run(&["profile", "save", "work", "-t", "main"]).code, 0);
    let opened = || lab.run(&["agent-session", "open", "--profile", "work", "--url", &site.at("/home")]).stdout.trim().to_owned();
    let (session, sister) = (opened(), opened());
    let looks = |session: &str, script: &str| lab.run(&["eval", "-t", session, script]).json();
    assert_eq!(looks(&session, "ready.then(found => found.local)"), json!("ann"));
    let mark = "only-in-this-clone-5f1c";
    looks(&session, &format!("document.cookie = 'mine={mark}'; localStorage.mine = '{mark}'; sessionStorage.mine = '{mark}'"));
    let added = lab.run(&["agent-session", "tab", "--session", &session, "--url", &site.at("/second")]);
    assert_eq!(added.code, 0, "{added:?}");
    looks(&session, "open('/third', '', 'popup,width=400,height=300'); 1");
    let rows = || lab.json(&["agent-session", "list", "--json"])["sessions"].as_array().cloned().unwrap_or_default();
    let row = |id: &str| rows().into_iter().find(|row| row["session_id"] == id);
    until("the other window's page is a tab", SOON, || (row(&session)?["tabCount"] == json!(3)).then_some(()));
    let contexts = || lab.status()["browsers"].as_array().unwrap().iter().filter_map(|browser| browser["contexts"].as_u64()).sum::<u64>();
    // A session that may come back is saved while it rests; so the search finds what there is.
    until("it is saved", SOON, || (!files_with(mark, lab.path()).is_empty()).then_some(()));
    let before = contexts();
    let disposed = lab.run(&["agent-session", "dispose", "--session", &session]);
    assert_eq!(disposed.code, 0, "{disposed:?}");
    assert_eq!(row(&session), None);
    until("its context went, and all that was in it", SOON, || (contexts() == before - 1).then_some(()));
    // Daemon and browser still run: what they have written is below this directory. What the browser's own processes keep of the context
    // until it is gone is memory: one that was made for a session writes no cookie and no storage to a disk.
    assert_eq!(files_with(mark, lab.path()), Vec::<std::path::PathBuf>::new());
    assert_eq!(looks(&sister, "[document.cookie, localStorage.user, localStorage.mine ?? null]"), json!(["", "ann", null]));
    let third = opened();
    assert_eq!(looks(&third, "ready.then(found => [found.local, localStorage.mine ?? null])"), json!(["ann", null]));
}

/// A Chromium as its user starts it; its profile stays when it ends.
fn persons_browser(profile: &std::path::Path, temporary: &std::path::Path, url: &str) -> std::process::Child {
    let mut command = Command::new("/usr/lib/chromium/chromium");
    command.args(["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync", "--password-store=basic"]);
    command.args(["--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0"]);
    command.arg(format!("--user-data-dir={}", profile.display())).arg(url).env("TMPDIR", temporary);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the package chromium")
}

/// Whether any process of a browser runs that keeps its temporary files there.
fn in_use(temporary: &std::path::Path) -> bool {
    let mark = format!("TMPDIR={}", temporary.display()).into_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let environments = processes.filter_map(|entry| std::fs::read(entry.path().join("environ")).ok());
    environments.into_iter().any(|environment| environment.split(|byte| *byte == 0).any(|variable| variable == mark))
}

/// Logs in in a person's own browser, and closes it again once that is on its disk. Says what an import is answered with while it runs.
fn logged_in_and_closed(lab: &Lab, site: &Site, profile: &std::path::Path) -> (u32, support::Printed) {
    std::fs::create_dir_all(profile).unwrap();
    let mut person = persons_browser(profile, lab.path(), &site.at("/login#many"));
    until("it holds its profile", SOON, || profile.join("SingletonLock").symlink_metadata().ok());
    until("its storage is on its disk", SOON * 3, || {
        let logs = std::fs::read_dir(profile.join("Default/Local Storage/leveldb")).ok()?.flatten();
        let mut written = logs.filter_map(|entry| std::fs::read(entry.path()).ok());
        written.any(|bytes| bytes.windows(3).any(|bytes| bytes == b"ann")).then_some(())
    });
    // Chromium writes cookies 30 s after they are set, or when there are many.
    until("its cookies are on its disk", SOON * 3, || {
        let bytes = std::fs::read(cookie_file(profile)?).ok()?;
        ["sid", "lasting", "part"].iter().all(|name| bytes.windows(name.len()).any(|bytes| bytes == name.as_bytes())).then_some(())
    });
    let refused = lab.run(&["profile", "import", "mine"]);
    assert!(Command::new("kill").args(["-TERM", &person.id().to_string()]).status().unwrap().success());
    until("it has ended", SOON, || person.try_wait().unwrap());
    until("its last process has written what it had", SOON, || (!in_use(lab.path())).then_some(()));
    (person.id(), refused)
}

fn cookie_file(profile: &std::path::Path) -> Option<std::path::PathBuf> {
    ["Network/Cookies", "Cookies"].map(|file| profile.join("Default").join(file)).into_iter().find(|file| file.exists())
}

fn import(lab: &Lab, name: &str) -> Value {
    let imported = lab.run_within(&mut lab.command(&["profile", "import", name, "--browser", "chromium", "--json"]), SOON * 3);
    assert_eq!(imported.code, 0, "{imported:?}");
    imported.json()
}

/// The person's own profile: refused while their browser runs, read while it is closed, also the cookies that would end with it, and left
/// as it is. What is locked there is said.
#[test]
fn a_persons_profile_is_imported_while_their_browser_is_closed() {
    let (lab, site) = (Lab::real(), shop());
    let profile = lab.path().join(".config/chromium");
    let (pid, refused) = logged_in_and_closed(&lab, &site, &profile);
    assert!(refused.code == 1 && refused.stderr.contains(&format!("(pid {pid})")), "{refused:?}");
    assert!(refused.stderr.contains("--attach"), "{refused:?}");
    let before = listing(&profile.join("Default"));
    let imported = import(&lab, "mine");
    assert_eq!(imported["losses"], json!([]));
    assert_eq!(listing(&profile.join("Default")), before, "the person's files are as they were");
    let names: Vec<_> = std::fs::read_dir(lab.state_dir().join("profiles")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["mine"], "nothing is left of the copy");
    let missing = lab.run(&["profile", "import", "none", "--browser", "edge"]);
    assert!(missing.code == 1 && missing.stderr.contains("No profile of edge was found."), "{missing:?}");
    let agent = client(&lab, &["--from", "mine"]);
    assert_eq!(opened_at(&agent, None, &site.at("/home")), inside());

    let file = cookie_file(&profile).unwrap();
    let mut bytes = std::fs::read(&file).unwrap();
    let keys: Vec<usize> = (0..bytes.len() - 3).filter(|at| bytes[*at..].starts_with(b"v10")).collect();
    // As on a desktop with a keyring.
    keys.into_iter().for_each(|at| bytes[at..at + 3].copy_from_slice(b"v11"));
    std::fs::write(&file, bytes).unwrap();
    let locked = import(&lab, "locked");
    let all = &imported["profile"]["cookies"];
    let said =
        format!("{all} of {all} cookies: {all} are encrypted with a key of the desktop's keyring; `tabmux up --attach auto` has them");
    assert_eq!((&locked["losses"], &locked["profile"]["cookies"]), (&json!([said]), &json!(0)));
    assert!(all.as_u64().unwrap() > 100, "they fill many pages of the file");
}

/// Names and sizes of all files below.
fn listing(directory: &std::path::Path) -> Vec<(std::path::PathBuf, u64)> {
    let mut all = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap().flatten() {
        match entry.metadata() {
            Ok(about) if about.is_dir() => all.extend(listing(&entry.path())),
            Ok(about) => all.push((entry.path(), about.len())),
            Err(_) => {}
        }
    }
    all.sort();
    all
}

/// A whole profile of a browser, with what the person typed, must not stay behind.
#[test]
fn a_login_that_is_interrupted_leaves_nothing() {
    let (lab, site, display) = (Lab::real(), shop(), Display::new());
    let mut command = lab.command(&["profile", "login", "work", &site.at("/login")]);
    command.env("DISPLAY", &display.name).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = lab.spawn(&mut command);
    until("its page has kept everything", SOON * 3, || site.asked().iter().any(|path| path == "/done").then_some(()));
    assert!(Command::new("kill").args(["-INT", &login.id().to_string()]).status().unwrap().success());
    let ended = until("it ends", SOON * 3, || login.try_wait().unwrap());
    assert_eq!(ended.code(), Some(1), "{ended:?}");
    assert_eq!(std::fs::read_dir(lab.state_dir().join("profiles")).unwrap().count(), 0);
}

/// A person logs in, in a window, and presses Enter.
#[test]
fn a_person_logs_in_in_a_window_and_it_is_kept() {
    let (lab, site, display) = (Lab::real(), shop(), Display::new());
    let nowhere = lab.run(&["profile", "login", "work", &site.at("/login")]);
    assert!(nowhere.code == 1 && nowhere.stderr.contains("There is no display here"), "{nowhere:?}");
    let mut command = lab.command(&["profile", "login", "work", &site.at("/login")]);
    command.env("DISPLAY", &display.name).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut login = lab.spawn(&mut command);
    until("its page has kept everything", SOON * 3, || site.asked().iter().any(|path| path == "/done").then_some(()));
    std::io::Write::write_all(login.stdin.as_mut().unwrap(), b"\n").unwrap();
    let ended = until("it is kept", SOON * 3, || login.try_wait().unwrap());
    assert!(ended.success(), "{ended:?}");
    let listed = lab.json(&["profile", "ls", "--json"]);
    let row = &listed["profiles"][0];
    assert_eq!((&row["name"], &row["from"]), (&json!("work"), &json!("login")), "{row}");
    assert!(row["last_login_at"].is_string() && row["cookies"].as_u64().unwrap() >= 2, "{row}");
    assert_eq!(std::fs::read_dir(lab.state_dir().join("profiles")).unwrap().count(), 1, "nothing else is left");
    let agent = client(&lab, &["--from", "work"]);
    assert_eq!(opened_at(&agent, None, &site.at("/home")), inside());
}
