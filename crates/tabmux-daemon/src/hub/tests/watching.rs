//! A call that waits for something in another session of the same caller: it holds up neither of them.

use serde_json::json;
use tabmux_core::{Code, TabId};

use crate::testing::{Agent, House};

async fn alice_and_bob(house: &House) -> Agent {
    let agent = house.agent("k");
    for name in ["alice", "bob"] {
        agent.ok("start_browser", json!({ "sessionId": name, "navigationUrl": format!("http://{name}.test/") })).await;
    }
    agent.ok("set_current_session", json!({ "sessionId": "alice" })).await;
    agent
}

/// S0.34
#[tokio::test]
async fn waiting_for_another_session_holds_neither_queue() {
    let house = House::new();
    let agent = alice_and_bob(&house).await;
    let waiting = agent.begin("wait_for", json!({ "in": "bob", "text": "Hello Bob!", "timeout": 60_000 })).await;
    assert_eq!(agent.eval("bob", "1").await.unwrap(), "1", "bob's own calls do not queue behind it");
    assert_eq!(agent.eval("alice", "2").await.unwrap(), "2", "nor do those of the session that waits");
    assert!(!waiting.is_finished());
    agent.eval("bob", "document.body.append(\"Hello Bob!\")").await.unwrap();
    let said = waiting.await.unwrap().unwrap();
    assert_eq!(said.text, "It is there at http://bob.test/ — \"Fake page at bob.test/\".");
    assert_eq!(said.result["sessionId"], "bob");
    assert_eq!(agent.ok("list_sessions", json!({})).await.result["currentSession"], "alice", "the current session is as it was");
}

#[tokio::test]
async fn who_watches_changes_nothing_there_and_takes_no_news() {
    let house = House::new();
    let agent = alice_and_bob(&house).await;
    agent.ok("new_page", json!({ "sessionId": "bob", "url": "http://bob.test/two" })).await;
    let bob = house.hub.look(|registry| registry.records().find(|session| session.handle() == "bob").unwrap().id);
    house.hub.handle(bob).unwrap().tell("It rains.");
    let said = agent.ok("wait_for", json!({ "in": "bob", "tabId": "t1", "url": "bob.test" })).await;
    assert!(!said.text.contains("It rains.") && said.result["tabId"] == "t1", "{}", said.text);
    let next = agent.ok("evaluate", json!({ "sessionId": "bob", "script": "location.href" })).await;
    assert!(next.text.contains("http://bob.test/two"), "t2 is still bob's current tab: {}", next.text);
    assert!(next.text.contains("It rains."), "the news are bob's: {}", next.text);
}

#[tokio::test]
async fn only_own_sessions_with_a_page_can_be_watched_and_closing_one_ends_the_wait() {
    let house = House::new();
    let agent = alice_and_bob(&house).await;
    let stranger = house.agent("stranger");
    let foreign = stranger.fault("wait_for", json!({ "in": "bob", "text": "x" })).await;
    let missing = stranger.fault("wait_for", json!({ "in": "bub", "text": "x" })).await;
    assert_eq!(foreign.code, Code::SessionNotFound);
    assert_eq!(foreign.to_string().replace("bob", "bub"), missing.to_string());
    let waiting = agent.begin("wait_for", json!({ "in": "bob", "text": "never", "timeout": 60_000 })).await;
    agent.ok("close_session", json!({ "sessionId": "bob" })).await;
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::SessionClosed);
    agent.ok("close_page", json!({ "sessionId": "alice", "tabId": TabId(1).to_string() })).await;
    assert_eq!(agent.code("wait_for", json!({ "in": "alice", "text": "x" })).await, Code::TabNotFound);
}
