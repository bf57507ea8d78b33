//! What an agent pays for: the tool lists as they cross the wire, counted with the vocabulary of a real model.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use serde_json::json;
use support::{Lab, SOON};

/// What a client is sent, in o200k tokens: the whole result, not only what a model is shown of it.
fn listed(lab: &Lab, arguments: &[&str]) -> (usize, Vec<String>) {
    let client = lab.client_with(arguments);
    client.initialize();
    let reply = client.reply(&client.send("tools/list", &json!({})), SOON);
    let names = reply["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    (tiktoken_rs::o200k_base_singleton().encode_ordinary(&reply["result"].to_string()).len(), names)
}

#[test]
fn every_tool_list_keeps_its_budget_and_every_tool_stays_callable() {
    let lab = Lab::new();
    let (core, core_names) = listed(&lab, &["mcp"]);
    let (slim, slim_names) = listed(&lab, &["mcp", "--tools", "slim"]);
    let (full, full_names) = listed(&lab, &["mcp", "--tools", "full"]);
    assert!(slim <= 900 && core <= 2500 && full <= 5000, "slim {slim}, core {core}, full {full}");
    assert!(slim_names.iter().all(|name| core_names.contains(name)) && core_names.iter().all(|name| full_names.contains(name)));
    assert!(slim_names.len() < core_names.len() && core_names.len() < full_names.len());
    assert_eq!(listed(&lab, &["mcp", "--tools", "core"]).1, core_names, "core is what is listed without a word");
    let client = lab.client_with(&["mcp", "--tools", "slim"]);
    client.initialize();
    client.ok("navigate", &json!({"url": "https://a.test/"}));
    assert!(!slim_names.contains(&"cookies".to_owned()));
    client.ok("cookies", &json!({}));
}

#[test]
fn what_replies_cost_is_counted_for_each_session_and_shown() {
    let lab = Lab::new();
    let run = |arguments: &[&str]| {
        let printed = lab.run(arguments);
        assert_eq!(printed.code, 0, "{arguments:?}: {printed:?}");
        printed
    };
    for name in ["short", "long"] {
        run(&["new", "-s", name]);
        let script = if name == "long" { "script=\"x\".repeat(9000)" } else { "script=1" };
        run(&["call", "evaluate", "-t", name, script]);
    }
    let tokens = lab.status()["tokens"].clone();
    let sessions: Vec<_> = tokens["sessions"].as_object().into_iter().flatten().map(|(_, session)| session).collect();
    let of = |name: &str| {
        let session = sessions.iter().find(|session| session["name"] == name);
        session.and_then(|session| session["tokens"].as_u64()).unwrap_or_else(|| panic!("{tokens}"))
    };
    assert!(of("long") > 1000 && of("short") < 200 && of("short") > 0, "{tokens}");
    assert!(tokens["total"].as_u64().unwrap() >= of("long") + of("short"), "{tokens}");
    let listed = run(&["ls", "--json"]).json();
    let sessions = listed["sessions"].as_array().unwrap_or_else(|| panic!("{listed}"));
    let counted = sessions.iter().find(|session| session["sessionId"] == "long").unwrap_or_else(|| panic!("{listed}"));
    assert_eq!(counted["tokens"], json!(of("long")), "{listed}");
    assert!(run(&["status"]).stdout.contains(&format!("long {}", of("long"))));
}
