//! Coming back to a session, on every door that knows who comes: by `--session NAME`, by a capability, by an HTTP id. With nothing
//! to show, with what is another's, with one's own in time, and with one's own too late: no, no, yes, no (and why).
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};
use support::site::Site;
use support::{Http, Lab, Mcp, Reply, SOON, process, until};

fn site() -> Site {
    Site::start(|path| format!("<!doctype html><title>{path}</title><h1>The page {path}</h1>"))
}

fn named(lab: &Lab, name: &str) -> Mcp {
    let client = lab.client_with(&["mcp", "--session", name]);
    client.initialize();
    client
}

fn holding(lab: &Lab, capability: &str) -> Mcp {
    let client = Mcp::start(lab, lab.command(&["mcp"]).env("TABMUX_TOKEN", capability));
    client.initialize();
    client
}

fn lose(lab: &Lab, client: &Mcp) {
    process::kill(client.pid());
    client.wait_exit(SOON);
    until("the session is an orphan", SOON, || (lab.status()["sessions"]["orphaned"] == json!(1)).then_some(()));
}

fn gone(lab: &Lab) {
    until("the session is over", SOON, || {
        let sessions = lab.status()["sessions"].clone();
        (sessions["active"] == json!(0) && sessions["orphaned"] == json!(0)).then_some(())
    });
}

fn share(client: &Mcp, args: &Value) -> String {
    client.ok("share_session", args).result()["capability"].as_str().unwrap().to_owned()
}

/// Whoever it is, it does not get in, and reads what is read of a session that is not there.
fn refused(call: impl Fn(&str, &Value) -> Reply, handles: &[&str]) {
    for handle in handles {
        for (tool, args) in [("list_pages", json!({"sessionId": handle})), ("close_session", json!({"sessionId": handle}))] {
            let reply = call(tool, &args);
            assert_eq!(reply.code(), "session_not_found", "{tool} {handle}: {reply:?}");
        }
    }
    let listed = call("list_sessions", &json!({})).structured();
    assert_eq!(listed["sessions"], json!([]), "{listed}");
}

/// Two tabs, the first one current, with something in page and cookies that no new page has.
fn settle_in(call: impl Fn(&str, &Value) -> Reply, site: &Site) -> [String; 3] {
    call("navigate", &json!({"url": site.at("/one")}));
    call("evaluate", &json!({"script": "window.kept = 7; document.cookie = 'login=yes'; 1"}));
    call("new_page", &json!({"url": site.at("/two")}));
    call("select_page", &json!({"tabId": "t1"}));
    let listed = call("list_sessions", &json!({})).structured()["sessions"][0].clone();
    ["sessionId", "id", "uuid"].map(|handle| listed[handle].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned())
}

/// It is as it was left.
fn is_home(call: impl Fn(&str, &Value) -> Reply, site: &Site) {
    let pages = call("list_pages", &json!({})).structured()["pages"].clone();
    let seen: Vec<_> = pages.as_array().unwrap().iter().map(|page| [&page["tabId"], &page["url"], &page["current"]]).collect();
    let (one, two) = (json!(site.at("/one")), json!(site.at("/two")));
    assert_eq!(seen, [[&json!("t1"), &one, &json!(true)], [&json!("t2"), &two, &json!(false)]], "{pages}");
    let kept = call("evaluate", &json!({"script": "[window.kept, document.cookie]"}));
    assert_eq!(kept.result()["value"], json!([7, "login=yes"]), "{kept:?}");
}

/// S1.40, S2.23, S2.31
#[test]
fn by_the_name_of_the_session() {
    let (lab, site) = (Lab::real(), site());
    let client = named(&lab, "mine");
    let handles = settle_in(|tool, args| client.ok(tool, args), &site);
    let handles = handles.each_ref().map(String::as_str);
    lose(&lab, &client);
    let (nobody, other) = (lab.ready_client(), named(&lab, "other"));
    refused(|tool, args| nobody.call(tool, args), &handles);
    refused(|tool, args| other.call(tool, args), &handles);
    let back = named(&lab, "mine");
    let first = back.ok("list_pages", &json!({})).text();
    assert!(!first.contains("While nobody"), "nothing happened, nothing is said: {first}");
    is_home(|tool, args| back.ok(tool, args), &site);
    let twice = named(&lab, "mine");
    twice.fails("list_pages", &json!({}), "session_exists");
}

/// S2.23: what happened meanwhile is said first, once.
#[test]
fn who_comes_back_is_told_what_happened() {
    let lab = Lab::real();
    let page = "<!doctype html><title>one</title><script>if (location.pathname == '/one') { const again = () => fetch('/go').then(r => \
                r.text()).then(t => { if (t == 'go') { console.error('lost it'); location = '/elsewhere'; } else { setTimeout(again, 50); } }); again(); }</script>";
    let go = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let told = std::sync::Arc::clone(&go);
    let site = Site::start(move |path| match path {
        "/go" if told.load(std::sync::atomic::Ordering::SeqCst) => "go".to_owned(),
        "/go" => "wait".to_owned(),
        _ => page.to_owned(),
    });
    let client = named(&lab, "mine");
    client.ok("navigate", &json!({"url": site.at("/one")}));
    lose(&lab, &client);
    site.asked();
    go.store(true, std::sync::atomic::Ordering::SeqCst);
    until("the page went", SOON, || site.asked().contains(&"/elsewhere".to_owned()).then_some(()));
    let back = named(&lab, "mine");
    // The browser has asked; when the page has arrived is its own affair.
    until("it has arrived", SOON, || {
        let all = lab.json(&["ls", "--all", "--json"]);
        (all["sessions"][0]["url"] == json!(site.at("/elsewhere"))).then_some(())
    });
    let first = back.ok("list_pages", &json!({})).text();
    let line = first.lines().next().unwrap();
    assert!(line.starts_with("While nobody drove this session ("), "{first}");
    assert!(line.contains(&format!("t1 went to {}", site.at("/elsewhere"))), "{first}");
    assert!(!back.ok("list_pages", &json!({})).text().contains("While nobody"), "once");
}

/// S2.23
#[test]
fn too_late_by_the_name_of_the_session() {
    let lab = Lab::with(&[("TABMUX_ORPHAN_GRACE", "1s")]);
    let client = named(&lab, "mine");
    client.ok("navigate", &json!({"url": "https://example.test/"}));
    process::kill(client.pid());
    client.wait_exit(SOON);
    gone(&lab);
    let stranger = lab.ready_client();
    refused(|tool, args| stranger.call(tool, args), &["mine"]);
    let back = named(&lab, "mine");
    let told = back.call("list_pages", &json!({"sessionId": "mine"}));
    assert_eq!(told.code(), "session_closed", "why is said once: {told:?}");
    assert!(told.text().contains("Session 'mine' expired: its client was away for longer than the grace time of 1s."), "{told:?}");
    refused(|tool, args| back.call(tool, args), &["mine"]);
    back.fails("list_pages", &json!({}), "session_required");
    back.ok("navigate", &json!({"url": "https://new.test/"}));
    assert_eq!(back.ok("list_pages", &json!({})).structured()["pages"].as_array().map(Vec::len), Some(1), "it is a new one");
}

/// S1.42, S2.31, S3.12
#[test]
fn by_a_capability() {
    let (lab, site) = (Lab::real(), site());
    let (owner, stranger) = (lab.ready_client(), lab.ready_client());
    let handles = settle_in(|tool, args| owner.ok(tool, args), &site);
    stranger.ok("navigate", &json!({"url": site.at("/theirs")}));
    let (own, others) = (share(&owner, &json!({"mode": "act"})), share(&stranger, &json!({"mode": "act"})));
    let holder = holding(&lab, &own);
    is_home(|tool, args| holder.ok(tool, args), &site);
    process::kill(holder.pid());
    holder.wait_exit(SOON);
    let nobody = lab.ready_client();
    refused(|tool, args| nobody.call(tool, args), &handles.each_ref().map(String::as_str));
    let elsewhere = holding(&lab, &others);
    let reached = elsewhere.ok("list_pages", &json!({})).text();
    assert!(reached.contains("/theirs") && !reached.contains("/one"), "{reached}");
    elsewhere.fails("list_pages", &json!({"sessionId": handles[1]}), "session_not_found");
    let back = holding(&lab, &own);
    is_home(|tool, args| back.ok(tool, args), &site);
    is_home(
        |tool, args| {
            let mut args = args.clone();
            args["sessionId"] = json!(own);
            nobody.ok(tool, &args)
        },
        &site,
    );
    // Over HTTP too, where the id it was given is worth nothing with another's.
    let bearer = |capability: &str| Http::new(lab.http().port, capability);
    let id = bearer(&own).initialize("/mcp");
    is_home(|tool, args| bearer(&own).call("/mcp", &id, tool, args), &site);
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let headers = [("mcp-session-id", id.as_str()), ("mcp-protocol-version", "2025-11-25")];
    assert_eq!([bearer(&others), lab.http()].map(|with| with.post("/mcp", &headers, &ping).status), [404; 2]);
    assert_eq!(lab.status()["sessions"]["orphaned"], 0, "who holds a capability leaves nothing behind");
}

/// S1.42, S3.12
#[test]
fn too_late_by_a_capability() {
    let lab = Lab::new();
    let owner = lab.ready_client();
    owner.ok("navigate", &json!({"url": "https://example.test/"}));
    let capability = share(&owner, &json!({"mode": "act", "ttl": "1s"}));
    let other = lab.ready_client();
    until("it has run out", SOON, || {
        (other.call("list_pages", &json!({"sessionId": capability})).code() == "session_not_found").then_some(())
    });
    refused(|tool, args| other.call(tool, args), &[&capability]);
    for arguments in [&["ls"][..], &["call", "list_pages"], &["agent-session", "list"]] {
        let said = lab.run_command(lab.command(arguments).env("TABMUX_TOKEN", &capability));
        assert!(said.code != 0 && said.stdout.is_empty() && said.stderr.contains("unauthorized"), "{arguments:?}: {said:?}");
        assert!(!said.stderr.contains(&capability), "{said:?}");
    }
    let borne = Http::new(lab.http().port, &capability).post("/mcp", &[], &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}));
    assert!(borne.status == 401 && !borne.body.contains(&capability), "{borne:?}");
    owner.ok("list_pages", &json!({}));
}

/// S2.6, S2.31
#[test]
fn by_the_id_of_an_http_client() {
    let (lab, site) = (Lab::real(), site());
    assert_eq!(lab.run(&["call", "list_sessions"]).code, 0, "starts the daemon");
    let http = lab.http();
    let id = http.initialize("/mcp");
    let handles = settle_in(|tool, args| http.call("/mcp", &id, tool, args), &site);
    let other = http.initialize("/mcp");
    refused(|tool, args| http.call("/mcp", &other, tool, args), &handles.each_ref().map(String::as_str));
    let anonymous = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "list_pages", "arguments": {"sessionId": handles[2]}}});
    let nobody = http.post("/mcp", &[("mcp-protocol-version", "2025-11-25")], &anonymous);
    assert!(!nobody.body.contains("/one"), "{nobody:?}");
    // Another connection with the same id, and then another daemon too.
    is_home(|tool, args| http.call("/mcp", &id, tool, args), &site);
    let daemon = lab.daemon_pid();
    process::kill(daemon);
    until("the daemon is dead", SOON, || (!process::is_alive(daemon)).then_some(()));
    assert_eq!(lab.run(&["call", "list_sessions"]).code, 0, "starts the next one");
    let http = lab.http();
    is_home(|tool, args| http.call("/mcp", &id, tool, args), &site);
}

/// S1.28, S2.6
#[test]
fn too_late_by_the_id_of_an_http_client() {
    let lab = Lab::with(&[("TABMUX_SESSION_IDLE", "1s")]);
    assert_eq!(lab.run(&["call", "list_sessions"]).code, 0, "starts the daemon");
    let http = lab.http();
    let id = http.initialize("/mcp");
    let opened = http.call("/mcp", &id, "start_browser", &json!({"sessionId": "web"}));
    assert!(!opened.failed(), "{opened:?}");
    gone(&lab);
    let told = http.call("/mcp", &id, "list_pages", &json!({"sessionId": "web"}));
    assert_eq!(told.code(), "session_closed", "why is said once: {told:?}");
    refused(|tool, args| http.call("/mcp", &id, tool, args), &["web"]);
}

/// A page that keeps a request open for as long as it lives, and whoever hears of its end.
fn lifeline() -> (String, Receiver<()>, Receiver<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/", listener.local_addr().unwrap());
    let ((open, opened), (close, closed)) = (channel(), channel());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (open, close) = (open.clone(), close.clone());
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let read = stream.read(&mut request).unwrap_or(0);
                let body = "<!doctype html><title>alive</title><script>fetch('/hold?' + Math.random(), {cache: 'no-store'})</script>";
                if request[..read].starts_with(b"GET /hold") {
                    open.send(()).ok();
                    // Comes back when the browser lets go of it.
                    while stream.read(&mut request).is_ok_and(|read| read > 0) {}
                    close.send(()).ok();
                } else {
                    let head = format!(
                        "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    );
                    stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).ok();
                }
            });
        }
    });
    (address, opened, closed)
}

/// S2.22: a goodbye closes the tabs, each of them, and does not wait for any grace.
#[test]
fn a_goodbye_closes_every_tab_in_the_browser_at_once() {
    let lab = Lab::real();
    assert_eq!(lab.run(&["call", "list_sessions"]).code, 0, "starts the daemon");
    let http = lab.http();
    let (address, opened, closed) = lifeline();
    let (leaving, staying) = (http.initialize("/mcp"), http.initialize("/mcp"));
    for (id, tabs) in [(&leaving, 2), (&staying, 1)] {
        for _ in 0..tabs {
            let reply = http.call("/mcp", id, "new_page", &json!({"url": address}));
            assert!(!reply.failed(), "{reply:?}");
            opened.recv_timeout(SOON).expect("the page lives");
        }
    }
    let ended = http.request("DELETE", "/mcp", &[("mcp-session-id", &leaving)], b"");
    assert!((200..300).contains(&ended.status), "{ended:?}");
    for _ in 0..2 {
        closed.recv_timeout(SOON).expect("the tab is closed");
    }
    let alive = http.call("/mcp", &staying, "evaluate", &json!({"script": "document.title"}));
    assert_eq!(alive.result()["value"], "alive", "the other's is not: {alive:?}");
    assert!(closed.try_recv().is_err());
}
