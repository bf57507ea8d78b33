//! A session given to others with the shipped binary on a real Chromium: read, act, hand over; and that the capability is told once.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::site::Site;
use support::{Door, Http, Lab, Mcp, SOON, until};

fn site() -> Site {
    Site::start(|path| {
        format!(
            "<!doctype html><title>{path}</title><h1>The page {path}</h1><button id=b onclick='document.querySelector(\"h1\").textContent += \"!\"'>Press</button>\
             <a id=away href='/two'>two</a>"
        )
    })
}

fn share(client: &Mcp, args: &Value) -> String {
    client.ok("share_session", args).result()["capability"].as_str().unwrap().to_owned()
}

fn with(capability: &str, mut args: Value) -> Value {
    args["sessionId"] = json!(capability);
    args
}

/// S1.42
#[test]
fn several_clients_use_one_tab_each_as_far_as_it_was_let() {
    let (lab, site) = (Lab::real(), site());
    let (owner, actor, reader) = (lab.ready_client(), lab.ready_client(), lab.ready_client());
    owner.ok("navigate", &json!({"url": site.at("/one")}));
    let (act, read) = (share(&owner, &json!({"mode": "act"})), share(&owner, &json!({})));
    actor.ok("click_element", &with(&act, json!({"selector": "#b"})));
    assert!(reader.ok("snapshot", &with(&read, json!({}))).text().contains("The page /one"));
    assert!(reader.ok("read_text", &with(&read, json!({}))).text().contains("The page /one!"), "it sees what the other did");
    reader.ok("screenshot", &with(&read, json!({})));
    for (tool, args) in
        [("click_element", json!({"selector": "#b"})), ("evaluate", json!({"script": "1"})), ("navigate", json!({"url": site.at("/x")}))]
    {
        reader.fails(tool, &with(&read, args), "policy_denied");
    }
    assert_eq!(owner.ok("evaluate", &json!({"script": "document.querySelector('h1').textContent"})).result()["value"], "The page /one!");
    let listed = owner.ok("share_session", &json!({"list": true})).structured()["grants"].clone();
    assert_eq!(listed.as_array().map(Vec::len), Some(2), "{listed}");
    owner.ok("share_session", &json!({"revoke": act}));
    actor.fails("click_element", &with(&act, json!({"selector": "#b"})), "session_not_found");
    reader.ok("read_text", &with(&read, json!({})));
    owner.ok("close_session", &json!({}));
    reader.fails("read_text", &with(&read, json!({})), "session_not_found");
}

/// S1.42: the session goes over with its page as it is; the former driver is told, on every door.
#[test]
fn a_session_is_handed_over_with_its_page_and_the_former_driver_is_told() {
    let (lab, site) = (Lab::real(), site());
    let (former, next) = (lab.ready_client(), lab.ready_client());
    former.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": site.at("/one")}));
    former.ok("evaluate", &json!({"script": "window.kept = 7; document.cookie = 'login=yes'; 1"}));
    let capability = share(&former, &json!({"mode": "hand_over"}));
    let running = former.start_call("evaluate", &json!({"script": "new Promise(done => window.done = done)"}));
    until("it runs", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
    let queued = former.start_call("evaluate", &json!({"script": "window.kept = 8"}));
    until("it waits", SOON, || (lab.status()["calls"]["queued"] == json!(1)).then_some(()));
    // What takes the session over waits for its turn behind what runs, which therefore must be let go.
    let taking = next.start_call("evaluate", &with(&capability, json!({"script": "[window.kept, document.cookie]"})));
    until("it waits too", SOON, || (lab.status()["calls"]["queued"] == json!(2)).then_some(()));
    former.write(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": running}}));
    let stale = former.finish_call(&queued, SOON);
    assert_eq!(stale.code(), "stale_epoch", "{stale:?}");
    let taken = next.finish_call(&taking, SOON);
    assert_eq!(taken.result()["value"], json!([7, "login=yes"]), "{taken:?}");
    for args in [json!({}), json!({"sessionId": "web"})] {
        former.fails("read_text", &args, "stale_epoch");
        former.fails(
            "navigate",
            &{
                let mut args = args;
                args["url"] = json!(site.at("/x"));
                args
            },
            "stale_epoch",
        );
    }
    assert_eq!((former.sessions(), next.sessions()), (vec![], vec!["web".to_owned()]));
    next.ok("click_element", &json!({"selector": "#b"}));
    former.ok("start_browser", &json!({"sessionId": "web"}));
    assert_eq!(former.ok("evaluate", &json!({"sessionId": "web", "script": "location.href"})).result()["value"], "about:blank");
}

/// S1.42: `HTTP 409`, where a refusal has a status.
#[test]
fn over_http_a_session_that_was_handed_over_is_a_conflict() {
    let lab = Lab::new();
    let next = lab.ready_client();
    let http = lab.http();
    let id = http.initialize("/mcp");
    let opened = http.call("/mcp", &id, "start_browser", &json!({"sessionId": "web"}));
    assert!(!opened.failed(), "{opened:?}");
    let given = http.call("/mcp", &id, "share_session", &json!({"mode": "hand_over"}));
    let capability = given.result()["capability"].as_str().unwrap().to_owned();
    next.ok("evaluate", &with(&capability, json!({"script": "1"})));
    let command =
        |name: &str, payload: Value| http.post("/commands", &[("x-instance-id", &id)], &json!({"name": name, "payload": payload}));
    for payload in [json!({"script": "1"}), json!({"script": "1", "sessionId": "web"})] {
        let refused = command("evaluate", payload);
        assert_eq!((refused.status, refused.body.contains("stale_epoch")), (409, true), "{refused:?}");
    }
    let by_grant = share(&next, &json!({"mode": "act"}));
    let reached = command("evaluate", json!({"script": "location.href", "sessionId": by_grant}));
    assert!(reached.status == 200 && !reached.body.contains(&by_grant), "{reached:?}");
}

/// S1.42, S3.12: whoever bears a capability is its holder, on every path, and can do nothing else; once it is revoked, nothing.
#[test]
fn over_http_a_capability_is_for_its_session_and_nothing_else() {
    let lab = Lab::new();
    let owner = lab.ready_client();
    let opened = owner.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": "https://a.test/"})).result();
    let other = owner.ok("start_browser", &json!({"sessionId": "other"})).result();
    let capability = share(&owner, &json!({"sessionId": "web", "mode": "act"}));
    let (main, bearer) = (lab.http(), Http::new(lab.http().port, &capability));
    let mut ids = Vec::new();
    for path in ["/mcp", "/mcp/anything"] {
        let id = bearer.initialize(path);
        let call = |tool: &str, args: Value| bearer.call(path, &id, tool, &args);
        assert_eq!(call("evaluate", json!({"script": "location.href"})).result()["value"], "https://a.test/");
        let listed = call("list_sessions", json!({})).structured();
        assert_eq!((&listed["sessions"][0]["sessionId"], listed["sessions"].as_array().unwrap().len()), (&json!("web"), 1), "{listed}");
        for (tool, args) in [("start_browser", json!({})), ("close_session", json!({})), ("migrate", json!({"isolation": "browser"}))] {
            assert_eq!(call(tool, args).code(), "policy_denied", "{tool}");
        }
        for handle in ["other".to_owned(), other["uuid"].as_str().unwrap().to_owned()] {
            assert_eq!(call("evaluate", json!({"sessionId": handle, "script": "1"})).code(), "session_not_found");
        }
        let stolen = main.post(path, &[("mcp-session-id", &id), ("mcp-protocol-version", "2025-11-25")], &json!({"method": "ping"}));
        assert_eq!(stolen.status, 404, "the id is its own: {stolen:?}");
        ids.push(id);
    }
    let uuid = |session: &Value| session["uuid"].as_str().unwrap().to_owned();
    let command = |instance: &str| {
        bearer.post("/commands", &[("x-instance-id", instance)], &json!({"name": "evaluate", "payload": {"script": "location.href"}}))
    };
    for (instance, status) in [(&ids[0], 200), (&uuid(&opened), 200), (&"web".to_owned(), 200), (&uuid(&other), 404)] {
        let said = command(instance);
        assert_eq!((said.status, said.body.contains("https://a.test/")), (status, status == 200), "{said:?}");
        assert!(!said.body.contains(&capability), "{said:?}");
    }
    let before = owner.ok("share_session", &json!({"list": true})).structured();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| bearer.call("/mcp", &ids[0], "evaluate", &json!({"script": "hang()"})));
        until("it runs", SOON, || (lab.status()["calls"]["running"] == json!(1)).then_some(()));
        owner.ok("share_session", &json!({"revoke": before["grants"][0]["grant"]}));
        assert_eq!(running.join().unwrap().code(), "outcome_unknown", "what runs by it ends with it, and may have changed something");
    });
    let refused = [
        bearer.post("/mcp", &[("mcp-session-id", &ids[0])], &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"})),
        command(&ids[0]),
        bearer.get("/mcp/anything", &[]),
    ];
    let made_up = Http::new(bearer.port, &format!("tmx_{}", "0".repeat(64))).get("/mcp/anything", &[]);
    for said in refused.iter().chain([&made_up]) {
        assert!(said.status == 401 && !said.body.contains(&capability), "{said:?}");
    }
    assert_eq!(refused[2].body, made_up.body, "as if it had never been");
    owner.ok("evaluate", &json!({"sessionId": "web", "script": "1"}));
}

/// Domains are checked where the page is, before the call and after it: a link, a redirect, the way back and a popup end there.
#[test]
fn a_grant_for_one_site_ends_at_its_border() {
    let lab = Lab::real();
    // Two sites: one by its address, one by a name for the same address.
    let port = std::sync::Arc::new(std::sync::OnceLock::new());
    let known = std::sync::Arc::clone(&port);
    let site = Site::answering(move |path| {
        let other = format!("http://localhost:{}", known.get().copied().unwrap_or(0u16));
        match path {
            "/redirect" => support::site::with("302 Found", "text/plain", &format!("Location: {other}/secret\r\n"), ""),
            _ => support::site::html(&format!(
                "<!doctype html><title>{path}</title><h1>At {path}</h1><a id=link href='{other}/secret'>over</a><a id=popup target=_blank href='{other}/secret'>pop</a>"
            )),
        }
    });
    port.set(site.port()).unwrap();
    let (owner, other) = (lab.ready_client(), lab.ready_client());
    owner.ok("navigate", &json!({"url": site.at("/one")}));
    let capability = share(&owner, &json!({"mode": "act", "domains": ["127.0.0.1"]}));
    let refused = |tool: &str, args: Value| {
        let said = other.fails(tool, &with(&capability, args), "policy_denied");
        assert!(!said.contains("secret"), "{said}");
    };
    let home = || drop(owner.ok("navigate", &json!({"url": site.at("/one")})));
    other.ok("read_text", &with(&capability, json!({})));
    refused("navigate", json!({"url": format!("http://localhost:{}/secret", site.port())}));
    refused("navigate", json!({"url": site.at("/redirect")}));
    refused("read_text", json!({}));
    home();
    refused("click_element", json!({"selector": "#link"}));
    refused("snapshot", json!({}));
    home();
    other.ok("click_element", &with(&capability, json!({"selector": "#popup"})));
    until("the popup is there", SOON, || {
        (owner.ok("list_pages", &json!({})).structured()["pages"].as_array().map(Vec::len) == Some(2)).then_some(())
    });
    until("it is where it goes", SOON, || owner.ok("list_pages", &json!({})).text().contains("/secret").then_some(()));
    refused("read_text", json!({"tabId": "t2"}));
    refused("select_page", json!({"tabId": "t2"}));
    refused("cookies", json!({}));
    let pages = other.ok("list_pages", &with(&capability, json!({})));
    assert_eq!(pages.structured()["pages"].as_array().map(Vec::len), Some(1), "{pages:?}");
}

/// What `--tool` and `--once` promise, they keep.
#[test]
fn on_the_command_line_a_capability_is_for_one_tool_or_one_call() {
    let lab = Lab::new();
    assert_eq!(lab.run(&["new", "-s", "web", "https://a.test/"]).code, 0);
    let share = |flags: &[&str]| lab.run(&[&["share", "-t", "web", "--mode", "act"], flags].concat()).stdout.trim().to_owned();
    let holder = |capability: &str, arguments: &[&str]| lab.run_command(lab.command(arguments).env("TABMUX_TOKEN", capability));
    let one_tool = share(&["--tool", "evaluate", "--tool", "snapshot"]);
    assert_eq!(holder(&one_tool, &["eval", "1"]).stdout.trim(), "1");
    assert_eq!(holder(&one_tool, &["snapshot"]).code, 0);
    let refused = holder(&one_tool, &["open", "https://a.test/"]);
    assert!(refused.code == 1 && refused.stderr.contains("policy_denied"), "{refused:?}");
    let once = share(&["--once"]);
    assert_eq!(holder(&once, &["eval", "2"]).stdout.trim(), "2");
    let again = holder(&once, &["eval", "2"]);
    assert!(again.code == 1 && again.stdout.is_empty(), "{again:?}");
}

/// On the command line, and that its capability is told once: not in the log, the journal, the audit or any later answer.
#[test]
fn people_share_on_the_command_line_and_the_capability_is_told_once() {
    let mut lab = Lab::new();
    lab.set("TABMUX_LOG", "debug");
    assert_eq!(lab.run(&["new", "-s", "web", "https://a.test/"]).code, 0);
    let given = lab.run(&["share", "-t", "web", "--mode", "act", "--ttl", "1h", "--domain", "a.test"]);
    let capability = given.stdout.trim().to_owned();
    assert!(given.code == 0 && capability.starts_with("tmx_") && capability.len() == 68, "{given:?}");
    assert!(given.stderr.contains("not shown again") && !given.stderr.contains(&capability), "{given:?}");
    let holder = |arguments: &[&str]| lab.run_command(lab.command(arguments).env("TABMUX_TOKEN", &capability));
    assert_eq!(holder(&["eval", "location.href"]).stdout.trim(), "\"https://a.test/\"");
    assert!(holder(&["ls"]).stdout.contains("web"));
    assert_eq!(lab.run(&["eval", "-t", &capability, "1"]).stdout.trim(), "1", "also as the session's name");
    let mut answers = Vec::new();
    for arguments in [
        &["ls", "--all"][..],
        &["kill-session", "-t", "web"],
        &["new", "-s", "mine"],
        &["rename-session", "-t", "web", "mine"],
        &["stop"],
        &["token", "ls"],
        &["open", "https://b.test/"],
    ] {
        let refused = holder(arguments);
        assert!(refused.code != 0 && refused.stderr.contains("policy_denied"), "{arguments:?}: {refused:?}");
        answers.push(refused);
    }
    let list = lab.run(&["share", "--list", "--json"]);
    let grant = list.json()["structured"]["grants"][0]["grant"].as_str().unwrap().to_owned();
    answers.push(list);
    let mut door = Door::open(&lab.socket());
    door.ask(&json!({"type": "REGISTER", "id": "1"}));
    for action in ["evaluate", "nonsense"] {
        let frame = json!({"type": "REQUEST", "id": "2", "sessionId": capability, "action": action, "params": {"script": "1"}});
        assert!(!door.ask(&frame).to_string().contains(&capability));
    }
    answers.push(lab.run(&["share", "--revoke", &grant]));
    answers.push(holder(&["eval", "1"]));
    answers.push(lab.run(&["eval", "-t", &capability, "1"]));
    assert_eq!(answers.iter().rev().take(3).map(|said| said.code).collect::<Vec<_>>(), [1, 1, 0], "{answers:?}");
    assert!(answers.iter().all(|said| !format!("{said:?}").contains(&capability)), "{answers:?}");
    for file in ["journal.jsonl", "audit.jsonl", "daemon.log"] {
        let text = std::fs::read_to_string(lab.state_dir().join(file)).unwrap();
        assert!(!text.is_empty() && !text.contains(&capability), "{file}: {text}");
    }
    let audit = std::fs::read_to_string(lab.state_dir().join("audit.jsonl")).unwrap();
    assert!(audit.lines().count() >= 4 && audit.contains(&grant) && audit.contains("\"outcome\":\"ok\""), "{audit}");
}

/// S0.37: a parent gives each of its sub-agents what it needs, from what it was given itself.
#[test]
fn a_sub_agent_passes_on_less_than_it_has() {
    let lab = Lab::new();
    let (parent, child) = (lab.ready_client(), lab.ready_client());
    parent.ok("start_browser", &json!({"sessionId": "web", "navigationUrl": "https://a.test/"}));
    let act = share(&parent, &json!({"mode": "act"}));
    let read = share(&child, &with(&act, json!({"mode": "read", "tools": ["read_text"]})));
    let grandchild = lab.ready_client();
    grandchild.ok("read_text", &with(&read, json!({})));
    grandchild.fails("snapshot", &with(&read, json!({})), "policy_denied");
    grandchild.fails("share_session", &with(&read, json!({"mode": "act"})), "policy_denied");
    child.fails("share_session", &with(&act, json!({"mode": "hand_over"})), "policy_denied");
    parent.ok("share_session", &json!({"revoke": "all"}));
    grandchild.fails("read_text", &with(&read, json!({})), "session_not_found");
}
