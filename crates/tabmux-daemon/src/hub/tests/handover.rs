//! What somebody is told who takes a session over.

use serde_json::{Value, json};
use tabmux_core::{Code, TabId};

use crate::testing::{Agent, House, eventually};

async fn handed(agent: &Agent, session: &str) -> Value {
    agent.ok("share_session", json!({"sessionId": session, "mode": "hand_over"})).await.result["capability"].clone()
}

/// What was said of it, if anything.
fn told(text: &str) -> Option<&str> {
    text.lines().find(|line| line.contains("You took over"))
}

/// Two agents; the first has the session `web` with two tabs.
async fn two() -> (House, Agent, Agent) {
    let house = House::new();
    let (owner, other) = (house.agent("owner"), house.agent("other"));
    owner.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    owner.ok("new_page", json!({"url": "http://b.test/"})).await;
    (house, owner, other)
}

/// S1.42
#[tokio::test]
async fn who_takes_a_session_over_reads_first_what_it_has_and_once() {
    let (_house, owner, other) = two().await;
    let capability = handed(&owner, "web").await;
    let first = other.ok("navigate", json!({"sessionId": capability, "url": "http://c.test/"})).await;
    let said = "You took over session 'web': 2 tabs, t2 is current, at http://b.test/. Its former driver is out.";
    assert_eq!((first.text.lines().next(), &first.result["news"][0]), (Some(said), &json!(said)));
    assert_eq!(told(&other.ok("list_pages", json!({})).await.text), None, "once");
    let back = handed(&other, "web").await;
    assert!(told(&owner.ok("list_pages", json!({"sessionId": back})).await.text).is_some(), "and each time it changes hands");
    let own = handed(&owner, "web").await;
    assert_eq!(told(&owner.ok("list_pages", json!({"sessionId": own})).await.text), None, "who has it takes nothing over");
}

#[tokio::test]
async fn a_session_that_gets_another_name_with_its_new_driver_says_both() {
    let (_house, owner, other) = two().await;
    other.ok("start_browser", json!({"sessionId": "web"})).await;
    owner.ok("close_page", json!({"pageIdx": 1})).await;
    let capability = handed(&owner, "web").await;
    let first = other.ok("list_pages", json!({"sessionId": capability})).await;
    let said = "You took over session 'browser-1' (it was 'web', a name that you have already): 1 tab, t1 is current, at http://a.test/. \
                Its former driver is out.";
    assert_eq!((told(&first.text), &first.result["sessionId"]), (Some(said), &json!("browser-1")));
}

/// A call about sessions runs in none, and yet may be the one that takes it over; one that fails leaves it to be said by the next.
#[tokio::test]
async fn it_is_said_by_whichever_call_takes_it_and_goes_well() {
    for (tool, args) in [
        ("set_current_session", json!({})),
        ("share_session", json!({"mode": "read"})),
        ("fork", json!({})),
        ("execute_sequence", json!({"actions": [{"action": "list_pages"}]})),
    ] {
        let (_house, owner, other) = two().await;
        let mut args = args;
        args["sessionId"] = handed(&owner, "web").await;
        let first = other.ok(tool, args).await;
        assert!(told(&first.text).is_some(), "{tool}: {}", first.text);
        assert_eq!(told(&other.ok("list_pages", json!({"sessionId": "web"})).await.text), None, "{tool}");
    }
    let (house, owner, other) = two().await;
    let capability = handed(&owner, "web").await;
    other.fault("navigate", json!({"sessionId": capability, "url": "http://fail.test/"})).await;
    house.session().page(TabId(1)).unwrap().evaluate("endBrowser()").await.unwrap_err();
    eventually("it is known", || house.hub.look(|registry| registry.counts().lost) == 1).await;
    assert_eq!(other.code("list_pages", json!({"sessionId": "web"})).await, Code::BrowserCrashed);
    assert!(told(&other.ok("list_pages", json!({"sessionId": "web"})).await.text).is_some(), "a crash takes nothing of it away");
}
