//! Which session a call without a `sessionId` goes to, and which tools make one (C8).

use serde_json::json;
use tabmux_core::Code;

use crate::testing::House;

/// S0.10
#[tokio::test]
async fn a_call_that_cannot_succeed_makes_no_session_and_takes_no_name() {
    let house = House::new();
    let agent = house.agent("a");
    for (tool, args, code) in [
        ("navigate", json!({"url": "file:///etc/passwd"}), Code::PolicyDenied),
        ("navigate", json!({}), Code::BadArgument),
        ("navigate", json!({"url": "http://a.test/", "bogus": 1}), Code::BadArgument),
        ("new_page", json!({"url": "chrome://settings"}), Code::PolicyDenied),
        ("new_page", json!({"url": 1}), Code::BadArgument),
    ] {
        assert_eq!(agent.code(tool, args.clone()).await, code, "{tool} {args}");
    }
    let said = agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    assert_eq!((&said.result["sessionId"], house.sessions()), (&json!("browser-1"), 1));
}

/// S0.14
#[tokio::test]
async fn without_a_session_only_navigate_and_new_page_make_one() {
    let house = House::new();
    let agent = house.agent("a");
    for (tool, args) in [
        ("read_text", json!({})),
        ("evaluate", json!({"script": "1"})),
        ("list_pages", json!({})),
        ("select_page", json!({"pageIdx": 0})),
        ("close_page", json!({"pageIdx": 0})),
        ("console", json!({})),
        ("handle_dialog", json!({})),
        ("close_session", json!({})),
    ] {
        let fault = agent.fault(tool, args).await;
        assert_eq!((fault.code, fault.message.as_str()), (Code::SessionRequired, "No session: none active."), "{tool}");
    }
    assert_eq!(house.sessions(), 0);
    for (secret, tool, args) in [("b", "navigate", json!({"url": "http://a.test/"})), ("c", "new_page", json!({}))] {
        let said = house.agent(secret).ok(tool, args).await;
        assert_eq!(said.result["sessionId"], "browser-1", "{tool}");
    }
    assert_eq!(house.sessions(), 2);
}

/// S0.14
#[tokio::test]
async fn an_unknown_session_is_named_in_the_answer_and_none_is_made() {
    let house = House::new();
    let agent = house.agent("a");
    for tool in ["navigate", "new_page"] {
        let fault = agent.fault(tool, json!({"sessionId": "nope", "url": "http://a.test/"})).await;
        assert_eq!((fault.code, fault.message.as_str()), (Code::SessionNotFound, "No session: nope."));
    }
    assert_eq!(house.sessions(), 0);
}

/// S0.2, S0.3, S0.13
#[tokio::test]
async fn calls_go_to_the_named_session_or_to_the_current_one() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "user-a", "navigationUrl": "http://a.test/"})).await;
    assert_eq!(agent.ok("evaluate", json!({"script": "location.href"})).await.text.lines().next(), Some("\"http://a.test/\""));
    agent.ok("start_browser", json!({"sessionId": "user-b", "navigationUrl": "http://b.test/"})).await;
    let fault = agent.fault("read_text", json!({})).await;
    assert_eq!((fault.code, fault.message.contains("user-a, user-b")), (Code::SessionRequired, true), "{fault}");
    agent.ok("set_current_session", json!({"sessionId": "user-b"})).await;
    assert_eq!(agent.ok("evaluate", json!({"script": "location.href"})).await.text.lines().next(), Some("\"http://b.test/\""));
    assert_eq!(agent.eval("user-a", "location.href").await.unwrap(), "\"http://a.test/\"");
    assert_eq!(agent.ok("list_sessions", json!({})).await.structured.unwrap()["currentSession"], "user-b");
}

/// S0.35, C8: agents on one connection share its sessions, each with a current one of its own.
#[tokio::test]
async fn agents_on_one_connection_have_each_their_own_current_session() {
    let house = House::new();
    let connection = house.agent("a");
    let (one, two) = (connection.thread("one"), connection.thread("two"));
    for (agent, name) in [(&one, "x"), (&two, "y")] {
        agent.ok("start_browser", json!({"sessionId": name, "navigationUrl": format!("http://{name}.test/")})).await;
        agent.ok("set_current_session", json!({"sessionId": name})).await;
    }
    let (mut calls, href) = (Vec::new(), json!({"script": "location.href"}));
    for _ in 0..10 {
        calls.push((one.begin("evaluate", href.clone()).await, "x"));
        calls.push((two.begin("evaluate", href.clone()).await, "y"));
    }
    for (call, name) in calls {
        let said = call.await.unwrap().unwrap();
        assert!(said.text.starts_with(&format!("\"http://{name}.test/\"")), "{}", said.text);
    }
    assert_eq!(connection.code("read_text", json!({})).await, Code::SessionRequired, "the connection itself has set none");
    assert_eq!(two.eval("x", "location.href").await.unwrap(), "\"http://x.test/\"");
}

/// C8
#[tokio::test]
async fn two_navigates_at_once_with_no_session_share_one() {
    let house = House::new();
    let agent = house.agent("a");
    let first = agent.begin("navigate", json!({"url": "http://a.test/"})).await;
    let second = agent.begin("navigate", json!({"url": "http://b.test/"})).await;
    let (first, second) = (first.await.unwrap().unwrap(), second.await.unwrap().unwrap());
    assert_eq!(first.result["id"], second.result["id"]);
    assert_eq!(agent.ok("list_pages", json!({})).await.structured.unwrap()["pages"].as_array().unwrap().len(), 1);
    assert_eq!(house.sessions(), 1);
}

/// S3.25: a call that makes a session and comes to nothing leaves none.
#[tokio::test]
async fn a_call_that_fails_before_it_begins_makes_no_session() {
    let house = House::new();
    let agent = house.agent("a");
    assert_eq!(agent.code("navigate", json!({"url": "file:///etc/passwd"})).await, Code::PolicyDenied);
    assert_eq!(agent.code("navigate", json!({"url": "http://a.test/", "tabId": "t1"})).await, Code::SessionRequired);
    assert_eq!(agent.code("new_page", json!({"colour": "red"})).await, Code::BadArgument);
    assert_eq!(agent.fault("read_text", json!({})).await.message, "No session: none active.");
    crate::testing::eventually("nothing is left", || house.sessions() == 0).await;
    assert_eq!(agent.code("navigate", json!({"url": "http://fail.test/"})).await, Code::NavigationFailed);
    assert_eq!(house.sessions(), 1, "a tab was opened, so the session stays for the next try");
}

/// S0.10, S0.11: names are counted per owner.
#[tokio::test]
async fn sessions_without_a_name_are_numbered_and_a_flag_names_the_first() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "browser-2"})).await;
    let names: Vec<_> = [agent.ok("start_browser", json!({})).await, agent.ok("start_browser", json!({})).await]
        .iter()
        .map(|said| said.result["sessionId"].clone())
        .collect();
    assert_eq!(names, ["browser-1", "browser-3"]);
    let profile = crate::hub::Profile { session_name: Some("web".into()), ..Default::default() };
    let client = house.hub.attach(tabmux_core::Identity::Secret("b".into()), tabmux_core::Link::Connection, profile).unwrap();
    let flagged = crate::testing::Agent { client, ..agent.clone() };
    assert_eq!(flagged.ok("navigate", json!({"url": "http://a.test/"})).await.result["sessionId"], "web");
    assert_eq!(flagged.ok("start_browser", json!({})).await.result["sessionId"], "browser-1");
}
