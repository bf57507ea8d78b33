//! The session rules as an agent meets them over MCP: names, the current session, what is said and what is not.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod support;

use serde_json::{Value, json};
use support::{Lab, SOON};

/// S0.2, S0.4, S0.15
#[test]
fn a_call_acts_on_the_session_it_names_whatever_is_current() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "user-a", "headless": true, "navigationUrl": "https://a.test/"}));
    client.ok("start_browser", &json!({"sessionId": "user-b", "navigationUrl": "https://b.test/"}));
    client.ok("set_current_session", &json!({"sessionId": "user-b"}));
    let here = client.ok("evaluate", &json!({"sessionId": "user-a", "script": "location.href"}));
    assert!(here.text().contains("https://a.test/"), "{here:?}");
    assert_eq!(here.result()["sessionId"], "user-a");
    let other = client.ok("evaluate", &json!({"sessionId": "user-b", "script": "location.href"}));
    assert!(other.text().contains("https://b.test/"), "{other:?}");
}

/// S0.3, S0.38, S1.35, S2.19
#[test]
fn a_single_session_needs_no_session_id_anywhere() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": "https://only.test/"}));
    assert!(client.ok("evaluate", &json!({"script": "location.href"})).text().contains("https://only.test/"));
    client.ok("close_session", &json!({}));
    assert_eq!(client.sessions(), Vec::<String>::new());
}

/// S0.13
#[test]
fn the_session_that_was_set_is_where_unnamed_calls_go() {
    let lab = Lab::new();
    let client = lab.ready_client();
    for name in ["a", "b"] {
        client.ok("start_browser", &json!({"sessionId": name, "navigationUrl": format!("https://{name}.test/")}));
    }
    let refused = client.fails("evaluate", &json!({"script": "1"}), "session_required");
    assert!(refused.contains('a') && refused.contains('b'), "it lists them: {refused}");
    for name in ["b", "a"] {
        client.ok("set_current_session", &json!({"sessionId": name}));
        let here = client.ok("evaluate", &json!({"script": "location.href"}));
        assert!(here.text().contains(&format!("https://{name}.test/")), "{here:?}");
        assert_eq!(client.ok("list_sessions", &json!({})).structured()["currentSession"], name);
    }
}

/// S0.10, S0.11
#[test]
fn a_session_without_a_name_is_numbered_and_skips_taken_names() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "browser-2"}));
    for _ in 0..2 {
        client.ok("start_browser", &json!({}));
    }
    let mut names = client.sessions();
    names.sort();
    assert_eq!(names, ["browser-1", "browser-2", "browser-3"]);
}

/// S0.14
#[test]
fn no_session_and_an_unknown_session_say_which() {
    let lab = Lab::new();
    let client = lab.ready_client();
    let none = client.fails("evaluate", &json!({"script": "1"}), "session_required");
    assert!(none.starts_with("[session_required] No session: none active"), "{none}");
    let unknown = client.fails("evaluate", &json!({"sessionId": "ghost", "script": "1"}), "session_not_found");
    assert!(unknown.starts_with("[session_not_found] No session: ghost"), "{unknown}");
    let close = client.fails("close_session", &json!({"sessionId": "ghost"}), "session_not_found");
    assert!(close.contains("No session: ghost"), "{close}");
    assert_eq!(lab.status()["sessions"]["active"], 0, "a refused call makes no session");
}

#[test]
fn tools_of_a_later_version_answer_that_they_are_not_there_yet() {
    let lab = Lab::new();
    let client = lab.ready_client();
    for tool in ["start_app_session", "start_session"] {
        let text = client.fails(tool, &json!({"sessionId": "phone", "platform": "ios"}), "unsupported");
        assert!(text.contains("is not in this version yet"), "{text}");
    }
}

/// S0.18
#[test]
fn a_taken_name_is_refused_and_the_old_session_goes_on() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "test", "navigationUrl": "https://old.test/"}));
    let refused = client.fails("start_browser", &json!({"sessionId": "test"}), "session_exists");
    assert!(refused.contains("Session 'test' already exists"), "{refused}");
    assert!(client.ok("evaluate", &json!({"sessionId": "test", "script": "location.href"})).text().contains("https://old.test/"));
    assert_eq!(client.sessions(), ["test"]);
}

/// S0.19
#[test]
fn the_fifth_session_comes_with_a_warning_and_the_sixth_still_starts() {
    let lab = Lab::new();
    let client = lab.ready_client();
    let replies: Vec<_> = (1..=6).map(|n| client.ok("start_browser", &json!({"sessionId": format!("s{n}")}))).collect();
    for (at, reply) in replies.iter().enumerate() {
        let warning = reply.result()["warning"].as_str().unwrap_or_default().to_owned();
        assert_eq!(warning.contains(&format!("{} sessions", at + 1)), at >= 4, "{reply:?}");
        assert!(reply.text().contains(&warning), "the agent reads it too: {reply:?}");
    }
    assert_eq!(client.sessions().len(), 6);
}

/// S0.23, S0.24
#[test]
fn a_reply_names_the_session_only_when_it_was_picked_for_the_caller() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "picked"}));
    let auto = client.ok("evaluate", &json!({"script": "1"}));
    assert!(auto.text().contains("sessionId: picked, sessionType: browser"), "{auto:?}");
    let named = client.ok("evaluate", &json!({"sessionId": "picked", "script": "1"}));
    assert_eq!(named.text(), "1");
    for reply in [&auto, &named] {
        assert_eq!(reply.result()["sessionId"], "picked");
        assert_eq!(reply.result()["sessionType"], "browser");
    }
}

/// S0.6, S0.7
#[test]
fn closing_one_session_leaves_the_others_and_closing_all_leaves_none() {
    let lab = Lab::new();
    let (client, other) = (lab.ready_client(), lab.ready_client());
    for name in ["a", "b", "c"] {
        client.ok("start_browser", &json!({"sessionId": name}));
    }
    other.ok("start_browser", &json!({"sessionId": "mine"}));
    client.ok("close_session", &json!({"sessionId": "b"}));
    assert_eq!(client.sessions(), ["a", "c"]);
    client.fails("evaluate", &json!({"sessionId": "b", "script": "1"}), "session_not_found");
    client.ok("close_all_sessions", &json!({}));
    assert_eq!(client.sessions(), Vec::<String>::new());
    assert_eq!(other.sessions(), ["mine"], "all means all of the caller's");
}

/// S0.8
#[test]
fn detached_sessions_stay_registered_and_belong_to_the_operator() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "kept", "navigationUrl": "https://kept.test/"}));
    client.ok("close_all_sessions", &json!({"detach": true}));
    assert_eq!(client.sessions(), Vec::<String>::new());
    let listed = lab.json(&["ls", "--json"]);
    assert!(listed.to_string().contains("\"kept\""), "{listed}");
    let here = lab.run(&["eval", "-t", "kept", "location.href"]);
    assert!(here.code == 0 && here.stdout.contains("https://kept.test/"), "{here:?}");
}

/// S0.9, S0.12, S2.2, S3.28, S3.34
#[test]
fn the_list_says_what_each_session_is() {
    let lab = Lab::new();
    let client = lab.ready_client();
    let empty = client.ok("list_sessions", &json!({})).structured();
    assert_eq!((&empty["sessions"], &empty["currentSession"]), (&json!([]), &Value::Null));
    client.ok("start_browser", &json!({"sessionId": "one"}));
    let list = client.ok("list_sessions", &json!({})).structured();
    assert_eq!(list["currentSession"], "one");
    let session = &list["sessions"][0];
    assert_eq!((&session["sessionId"], &session["type"], &session["isolation"]), (&json!("one"), &json!("browser"), &json!("context")));
    assert_eq!(session["capabilities"]["browserName"], "fake", "{session}");
    let id = session["id"].as_str().unwrap();
    assert!(id.strip_prefix("sess_").is_some_and(|hex| hex.len() == 8 && hex.bytes().all(|b| b.is_ascii_hexdigit())), "{id}");
    let uuid = session["uuid"].as_str().unwrap().to_owned();
    assert_eq!((uuid.len(), uuid.as_bytes()[14]), (36, b'4'), "{uuid}");
    let created = session["createdAt"].as_str().unwrap();
    assert!(created.len() >= 20 && created.as_bytes()[10] == b'T' && created.ends_with('Z'), "ISO-8601: {created}");
    for handle in [id, &uuid] {
        assert!(client.ok("evaluate", &json!({"sessionId": handle, "script": "\"same\""})).text().contains("same"));
    }
}

/// S1.37, S3.13, S3.14
#[test]
fn a_foreign_session_answers_exactly_like_a_missing_one() {
    let lab = Lab::new();
    let (owner, stranger) = (lab.ready_client(), lab.ready_client());
    owner.ok("start_browser", &json!({"sessionId": "secret", "navigationUrl": "https://secret.test/"}));
    let list = owner.ok("list_sessions", &json!({})).structured();
    let handles = ["sessionId", "id", "uuid"].map(|key| list["sessions"][0][key].as_str().unwrap().to_owned());
    assert_eq!(stranger.sessions(), Vec::<String>::new());
    for (tool, arguments) in
        [("evaluate", json!({"script": "1"})), ("close_session", json!({})), ("set_current_session", json!({})), ("list_pages", json!({}))]
    {
        for handle in &handles {
            let ask = |session: &str| {
                let mut arguments = arguments.clone();
                arguments["sessionId"] = json!(session);
                stranger.fails(tool, &arguments, "session_not_found").replace(session, "NAME")
            };
            let missing = "x".repeat(handle.len());
            assert_eq!(ask(handle), ask(&missing), "{tool} {handle}");
        }
    }
    assert!(owner.ok("evaluate", &json!({"script": "location.href"})).text().contains("https://secret.test/"));
}

/// S0.1
#[test]
fn every_tool_takes_a_described_optional_session_id() {
    let lab = Lab::new();
    let client = lab.ready_client();
    let list = client.reply(&client.send("tools/list", &json!({})), SOON);
    let tools = list["result"]["tools"].as_array().unwrap();
    assert!(tools.len() >= 10, "{list}");
    for tool in tools {
        let schema = &tool["inputSchema"];
        let property = &schema["properties"]["sessionId"];
        assert_eq!(property["type"], "string", "{tool}");
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        if tool["name"] == "set_current_session" {
            assert_eq!(required, [json!("sessionId")]);
            continue;
        }
        assert_eq!(property["description"], "Target session ID. If omitted, uses current session.", "{tool}");
        assert!(!required.contains(&json!("sessionId")), "{tool}");
    }
}

/// S4.2, S4.3, S4.4, S2.11, S2.20
#[test]
fn pages_are_counted_within_the_session_and_no_other_can_be_reached() {
    let lab = Lab::new();
    let (a, b) = (lab.ready_client(), lab.ready_client());
    a.ok("navigate", &json!({"url": "https://a.test/0"}));
    a.ok("new_page", &json!({"url": "https://a.test/1"}));
    b.ok("navigate", &json!({"url": "https://b.test/0"}));
    let pages = |client: &support::Mcp| client.ok("list_pages", &json!({})).structured()["pages"].as_array().unwrap().clone();
    assert_eq!(pages(&a).iter().map(|page| page["pageIdx"].clone()).collect::<Vec<_>>(), [json!(0), json!(1)]);
    assert_eq!(pages(&b).len(), 1);
    assert_eq!(pages(&b)[0]["url"], "https://b.test/0");
    b.fails("select_page", &json!({"pageIdx": 1}), "tab_not_found");
    b.fails("close_page", &json!({"pageIdx": 1}), "tab_not_found");
    b.fails("close_page", &json!({"tabId": "t2"}), "tab_not_found");
    a.ok("select_page", &json!({"pageIdx": 0}));
    assert!(a.ok("evaluate", &json!({"script": "location.href"})).text().contains("https://a.test/0"));
    a.ok("evaluate", &json!({"tabId": "t2", "script": "1"}));
    assert_eq!(pages(&a)[1]["current"], json!(true), "a tab named by its owner becomes current");
    a.ok("close_page", &json!({"tabId": "t1"}));
    a.fails("select_page", &json!({"tabId": "t1"}), "tab_gone");
    a.ok("new_page", &json!({}));
    let ids: Vec<_> = pages(&a).iter().map(|page| page["tabId"].clone()).collect();
    assert_eq!(ids, [json!("t2"), json!("t3")], "tab ids are never used again");
}

/// S0.35, S0.37: pattern A, the parent makes the sessions and hands out their ids.
#[test]
fn sub_agents_on_one_connection_work_at_once_on_the_sessions_they_were_given() {
    let lab = Lab::new();
    let parent = lab.ready_client();
    for name in ["shop", "bank"] {
        parent.ok("start_browser", &json!({"sessionId": name, "navigationUrl": format!("https://{name}.test/")}));
    }
    let calls: Vec<_> = (0..40).map(|n| ["shop", "bank"][n % 2]).collect();
    let ids: Vec<_> =
        calls.iter().map(|name| parent.start_call("evaluate", &json!({"sessionId": name, "script": "location.href"}))).collect();
    for (name, id) in calls.iter().zip(&ids) {
        assert!(parent.finish_call(id, SOON).text().contains(&format!("https://{name}.test/")));
    }
}

/// S0.37: pattern B, a sub-agent makes its own session, uses it by the id it was told and closes it.
#[test]
fn a_sub_agent_makes_its_own_session_and_closes_it() {
    let lab = Lab::new();
    let shared = lab.ready_client();
    shared.ok("start_browser", &json!({"sessionId": "parent"}));
    let made = shared.ok("start_browser", &json!({"navigationUrl": "https://sub.test/"})).result()["sessionId"].clone();
    assert_eq!(made, "browser-1");
    assert!(shared.ok("evaluate", &json!({"sessionId": made, "script": "location.href"})).text().contains("https://sub.test/"));
    shared.ok("close_session", &json!({"sessionId": made}));
    assert_eq!(shared.sessions(), ["parent"]);
}

/// S0.37: pattern C, three sessions, three sub-agents, collect and compare.
#[test]
fn three_sessions_are_asked_at_once_and_compared() {
    let lab = Lab::new();
    let client = lab.ready_client();
    let names = ["chrome", "edge", "opera"];
    for (at, name) in names.iter().enumerate() {
        client.ok("start_browser", &json!({"sessionId": name, "navigationUrl": format!("https://price.test/{at}")}));
    }
    let asked: Vec<_> =
        names.iter().map(|name| client.start_call("evaluate", &json!({"sessionId": name, "script": "location.href"}))).collect();
    let answers: Vec<_> = asked.iter().map(|id| client.finish_call(id, SOON).text()).collect();
    for (at, answer) in answers.iter().enumerate() {
        assert!(answer.contains(&format!("https://price.test/{at}")), "{answer}");
    }
}

/// S3.30, S0.36: cookies of one session are not seen by another.
#[test]
fn sessions_have_their_own_cookies() {
    let lab = Lab::new();
    let (one, two) = (lab.ready_client(), lab.ready_client());
    for (client, cookie) in [(&one, "agent1_token=secret123"), (&two, "agent2_token=xyz789")] {
        client.ok("navigate", &json!({"url": "https://same.test/"}));
        client.ok("evaluate", &json!({"script": format!("document.cookie = \"{cookie}\"")}));
    }
    let jar = |client: &support::Mcp| client.ok("evaluate", &json!({"script": "document.cookie"})).text();
    assert!(jar(&one).contains("secret123") && !jar(&one).contains("xyz789"), "{}", jar(&one));
    assert!(jar(&two).contains("xyz789") && !jar(&two).contains("secret123"), "{}", jar(&two));
}

/// S0.22
#[test]
fn the_log_says_which_session_used_which_tool() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "logged"}));
    client.ok("evaluate", &json!({"sessionId": "logged", "script": "\"not for the log\""}));
    let logs = lab.run(&["logs"]);
    assert_eq!(logs.code, 0, "{logs:?}");
    let wanted = ["session=\"logged\"", "tool=\"evaluate\"", "outcome=\"ok\""];
    let line = logs.stdout.lines().find(|line| wanted.iter().all(|part| line.contains(part))).unwrap_or_else(|| panic!("{}", logs.stdout));
    assert!(line.starts_with("20") && line.as_bytes()[10] == b'T', "it says when: {line}");
    assert!(!logs.stdout.contains("not for the log"), "arguments may be secret: {}", logs.stdout);
}

/// S1.24, S4.14: the page closed itself.
#[test]
fn after_a_page_is_gone_the_next_call_gets_a_clear_answer() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": "https://first.test/"}));
    client.ok("new_page", &json!({"url": "https://second.test/"}));
    client.call("evaluate", &json!({"script": "window.close()"}));
    let gone = client.call("evaluate", &json!({"tabId": "t2", "script": "1"}));
    assert!(["tab_gone", "tab_not_found"].contains(&gone.code().as_str()), "{gone:?}");
    let here = client.ok("evaluate", &json!({"script": "location.href"}));
    assert!(here.text().contains("https://first.test/"), "{here:?}");
}

/// S2.16: a dialog ends the running call, is answered past the queue, and the session goes on.
#[test]
fn an_opening_dialog_ends_the_running_call_and_can_be_answered() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("navigate", &json!({"url": "https://a.test/"}));
    let text = client.fails("evaluate", &json!({"script": "confirm(\"Sure?\")"}), "dialog_open");
    assert!(text.contains("Sure?"), "{text}");
    client.ok("handle_dialog", &json!({"accept": true}));
    client.ok("evaluate", &json!({"script": "1"}));
}

/// S0.4, S3.25: a session whose first page fails is rolled back.
#[test]
fn a_session_whose_first_page_cannot_be_opened_is_not_left_behind() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.fails("start_browser", &json!({"sessionId": "never", "navigationUrl": "https://unreachable.test/"}), "navigation_failed");
    assert_eq!(client.sessions(), Vec::<String>::new());
    client.ok("start_browser", &json!({"sessionId": "never"}));
}

/// S3.15: what a session's cookies came from is settled when it is made; no call can change it afterwards.
#[test]
fn the_store_of_a_session_cannot_be_switched() {
    let lab = Lab::new();
    let client = lab.ready_client();
    client.ok("start_browser", &json!({"sessionId": "mine", "navigationUrl": "https://mine.test/"}));
    client.ok("evaluate", &json!({"script": "document.cookie = \"token=kept\""}));
    for other in [json!({"isolation": "tab"}), json!({"from": "another"}), json!({"profile": "another"})] {
        for (tool, mut arguments) in [
            ("navigate", json!({"url": "https://other.test/"})),
            ("new_page", json!({})),
            ("select_page", json!({"pageIdx": 0})),
            ("set_current_session", json!({"sessionId": "mine"})),
        ] {
            arguments.as_object_mut().unwrap().extend(other.as_object().unwrap().clone());
            let refused = client.fails(tool, &arguments, "bad_argument");
            assert!(other.as_object().unwrap().keys().all(|key| refused.contains(key)), "{refused}");
        }
    }
    client.fails("start_browser", &json!({"sessionId": "mine", "isolation": "tab"}), "session_exists");
    assert_eq!(client.ok("evaluate", &json!({"script": "document.cookie"})).result()["value"], "token=kept");
    assert_eq!(client.ok("list_pages", &json!({})).structured()["pages"].as_array().map(Vec::len), Some(1));
}

/// Unknown tools, unknown arguments and wrong kinds are named, with what would be right.
#[test]
fn a_wrong_argument_is_named() {
    let lab = Lab::new();
    let client = lab.ready_client();
    let unknown = client.fails("start_browser", &json!({"sesionId": "x"}), "bad_argument");
    assert!(unknown.contains("sesionId"), "{unknown}");
    let missing = client.fails("navigate", &json!({}), "bad_argument");
    assert!(missing.contains("url"), "{missing}");
    let kind = client.fails("set_current_session", &json!({"sessionId": 7}), "bad_argument");
    assert!(kind.contains("sessionId") && kind.contains('7'), "{kind}");
    let tool = client.call("no_such_tool", &json!({}));
    assert!(tool.failed() && tool.0.to_string().contains("no_such_tool"), "{tool:?}");
}
