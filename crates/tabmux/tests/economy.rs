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
fn what_replies_cost_is_counted_by_session_and_each_caller_sees_its_own() {
    let lab = Lab::new();
    let client = lab.ready_client();
    for (name, words) in [("small", 10), ("large", 1000)] {
        client.ok("start_browser", &json!({"sessionId": name, "navigationUrl": "https://a.test/"}));
        let script = format!("\"words and \".repeat({words})");
        client.ok("execute_sequence", &json!({"sessionId": name, "actions": [{"action": "evaluate", "script": script}]}));
    }
    let tokens = lab.status()["tokens"].clone();
    let of = |name: &str| tokens["sessions"][name].as_u64().unwrap();
    assert!(of("small") > 10 && (1800..3000).contains(&of("large")), "{tokens}");
    assert!(tokens["total"].as_u64().unwrap() >= of("small") + of("large"), "{tokens}");
    let rows = lab.json(&["ls", "--all", "--json"]);
    assert!(rows["sessions"].as_array().unwrap().iter().any(|row| row["tokens"] == of("large")), "{rows}");
    assert!(lab.run(&["tools", "--cost"]).stdout.contains("replies\tlarge\t"));
    let token = lab.json(&["token", "new", "other", "--json"])["token"].as_str().unwrap().to_owned();
    let other = lab.run_command(lab.command(&["status", "--json"]).env("TABMUX_TOKEN", token));
    let seen: serde_json::Value = serde_json::from_str(&other.stdout).unwrap();
    assert_eq!(seen["tokens"]["sessions"], json!({}), "nobody is told of another's sessions");
}
