//! Agents beside each other: on one connection, under one token, and in sessions that know nothing of each other.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::{Http, Lab, Mcp, Reply, SOON, until};

/// A call of one agent within a connection, as the client names it.
fn call_as(client: &Mcp, agent: &str, tool: &str, arguments: &Value) -> Reply {
    let id = client.send("tools/call", &json!({"name": tool, "arguments": arguments, "_meta": {"threadId": agent}}));
    client.finish_call(&id, SOON)
}

/// S0.35: agents that the client tells apart share the connection's sessions, and each has a current one of its own.
#[test]
fn each_agent_of_a_connection_has_its_own_current_session() {
    let lab = Lab::new();
    let client = lab.ready_client();
    for agent in ["shop", "bank"] {
        let url = format!("https://{agent}.test/");
        let started = call_as(&client, agent, "start_browser", &json!({"sessionId": agent, "navigationUrl": url}));
        assert!(!started.failed(), "{started:?}");
        let set = call_as(&client, agent, "set_current_session", &json!({"sessionId": agent}));
        assert!(!set.failed(), "{set:?}");
    }
    for agent in ["shop", "bank", "shop"] {
        let here = call_as(&client, agent, "evaluate", &json!({"script": "location.href"}));
        assert_eq!(here.result()["value"], json!(format!("https://{agent}.test/")), "{agent}: {here:?}");
        let list = call_as(&client, agent, "list_sessions", &json!({})).structured();
        assert_eq!((list["sessions"].as_array().map(Vec::len), &list["currentSession"]), (Some(2), &json!(agent)), "{list}");
    }
}

/// S0.37
#[test]
fn the_three_patterns_are_written_down_with_examples() {
    let [readme, agents] =
        ["README.md", "CLAUDE.md"].map(|file| std::fs::read_to_string(format!("{}/../../{file}", env!("CARGO_MANIFEST_DIR"))).unwrap());
    assert!(readme.contains("(CLAUDE.md)"), "the README says where the examples are");
    for (pattern, example) in
        [("| A:", "start_browser{sessionId:\"shop\"}"), ("| B:", "start_browser{}"), ("| C:", "three sessions, three sub-agents")]
    {
        let row = readme.lines().find(|line| line.starts_with(pattern)).unwrap_or_else(|| panic!("pattern {pattern} is not in the README"));
        assert!(row.contains(example), "{row}");
        let pattern = pattern.trim_matches(['|', ' ', ':']);
        let examples = agents.split("\n## ").find(|part| part.starts_with(&format!("Pattern {pattern}:")));
        let examples = examples.unwrap_or_else(|| panic!("pattern {pattern} is not in CLAUDE.md"));
        assert!(examples.contains("start_browser{") && examples.contains("close"), "{examples}");
    }
}

/// S1.1, S2.28: two clients navigate at once, and each is where it went, in its one tab.
#[test]
fn clients_that_navigate_at_once_have_each_their_own_tab() {
    let lab = Lab::new();
    let clients = [lab.ready_client(), lab.ready_client()];
    let urls = ["https://one.test/?delay=300", "https://two.test/?delay=300"];
    let asked: Vec<_> = clients.iter().zip(urls).map(|(client, url)| client.start_call("navigate", &json!({"url": url}))).collect();
    for ((client, url), id) in clients.iter().zip(urls).zip(&asked) {
        assert_eq!(client.finish_call(id, SOON).result()["url"], url);
        let pages = client.ok("list_pages", &json!({})).structured()["pages"].clone();
        assert_eq!((pages.as_array().map(Vec::len), &pages[0]["url"]), (Some(1), &json!(url)), "{pages}");
        assert_eq!(client.ok("evaluate", &json!({"script": "location.href"})).result()["value"], url);
    }
}

/// S2.24, S2.30, S1.37: what a page says on its console is for its own session.
#[test]
fn a_console_error_is_seen_by_its_own_session_only() {
    let lab = Lab::new();
    let (one, two) = (lab.ready_client(), lab.ready_client());
    one.ok("start_browser", &json!({"sessionId": "own"}));
    one.ok("start_browser", &json!({"sessionId": "beside"}));
    two.ok("start_browser", &json!({"sessionId": "own"}));
    let said = one.ok("evaluate", &json!({"sessionId": "own", "script": "console.error(\"boom 42\")"}));
    assert_eq!(said.result()["tabId"], "t1");
    let others = [two.ok("evaluate", &json!({"script": "1"})), one.ok("evaluate", &json!({"sessionId": "beside", "script": "1"}))];
    let consoles = [two.ok("console", &json!({"sessionId": "own"})), one.ok("console", &json!({"sessionId": "beside"}))];
    for reply in others.iter().chain(&consoles) {
        assert!(!reply.0.to_string().contains("boom"), "{reply:?}");
    }
    let mine = one.ok("console", &json!({"sessionId": "own"}));
    assert!(mine.text().contains("[error] boom 42"), "{mine:?}");
}

/// S1.42: clients that show the same token share its sessions and their tabs, at the same time and on every door.
#[test]
fn clients_of_one_token_share_a_session_and_its_tab() {
    let lab = Lab::new();
    drop(lab.ready_client());
    let token = lab.run(&["token", "new", "team"]).stdout.trim().to_owned();
    let shim = || {
        let client = Mcp::start(&lab, lab.command(&["mcp"]).env("TABMUX_TOKEN", &token));
        client.initialize();
        client
    };
    let (first, second) = (shim(), shim());
    first.ok("start_browser", &json!({"sessionId": "shared", "navigationUrl": "https://first.test/"}));
    assert_eq!(second.sessions(), ["shared"]);
    let here = |client: &Mcp| client.ok("evaluate", &json!({"script": "location.href"})).result();
    assert_eq!((&here(&second)["value"], &here(&second)["tabId"]), (&json!("https://first.test/"), &json!("t1")));
    second.ok("navigate", &json!({"url": "https://second.test/"}));
    assert_eq!(here(&first)["value"], "https://second.test/");
    let web = Http::new(lab.http().port, &token);
    let id = web.initialize("/mcp");
    let seen = web.call("/mcp", &id, "evaluate", &json!({"script": "location.href"}));
    assert_eq!(seen.result()["value"], "https://second.test/", "{seen:?}");
    let attached = lab.status()["clients"].clone();
    drop(first);
    let left = until("the first has left", SOON, || Some(lab.status()).filter(|status| status["clients"] != attached));
    assert_eq!(left["sessions"], json!({"active": 1, "orphaned": 0, "lost": 0, "clones": 0}), "one of them leaving ends nothing");
    assert_eq!(here(&second)["value"], "https://second.test/");
}
