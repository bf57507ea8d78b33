//! What the holder of a grant for some sites can do when the page is at another.

use serde_json::{Value, json};
use tabmux_core::{Code, TabId};

use crate::testing::{Agent, House, eventually};

/// An agent whose grant is for `b.test`, and a page that is somewhere else.
struct Stray {
    house: House,
    owner: Agent,
    holder: Agent,
    capability: Value,
}

impl Stray {
    async fn set() -> Self {
        let house = House::new();
        let (owner, holder) = (house.agent("owner"), house.agent("holder"));
        owner.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://b.test/"})).await;
        let capability = owner.ok("share_session", json!({"mode": "act", "domains": ["b.test"]})).await.result["capability"].clone();
        owner.ok("navigate", json!({"url": "http://bank.test/?title=Balance"})).await;
        Self { house, owner, holder, capability }
    }

    fn with(&self, mut args: Value) -> Value {
        args["sessionId"] = self.capability.clone();
        args
    }

    async fn refused(&self, tool: &str, args: Value) {
        let fault = self.holder.fault(tool, self.with(args)).await;
        assert!(fault.code == Code::PolicyDenied && !fault.to_string().contains("Balance"), "{tool}: {fault}");
    }
}

#[tokio::test]
async fn a_page_that_strayed_can_be_sent_back_and_nothing_else() {
    let stray = Stray::set().await;
    for (tool, args) in [
        ("navigate", json!({"reload": true})),
        ("navigate", json!({"back": true})),
        ("navigate", json!({"url": "http://bank.test/other"})),
        ("navigate", json!({"url": "http://b.test.evil.test/"})),
        ("read_text", json!({})),
        ("snapshot", json!({})),
        ("evaluate", json!({"script": "document.title"})),
        ("click_element", json!({"selector": "#go"})),
        ("screenshot", json!({})),
        ("close_page", json!({"tabId": "t1"})),
    ] {
        stray.refused(tool, args).await;
    }
    assert_eq!(stray.owner.eval("web", "location.href").await.unwrap(), "\"http://bank.test/?title=Balance\"", "it stays where it is");
    let said = stray.holder.ok("navigate", stray.with(json!({"url": "http://b.test/again"}))).await;
    assert_eq!((&said.result["url"], said.text.contains("bank")), (&json!("http://b.test/again"), false), "{}", said.text);
    stray.holder.ok("read_text", stray.with(json!({}))).await;
    stray.owner.ok("navigate", json!({"url": "http://bank.test/"})).await;
    stray.holder.ok("navigate", stray.with(json!({"url": "http://b.test/", "tabId": "t1"}))).await;
}

#[tokio::test]
async fn a_capability_lists_the_session_it_is_for_and_no_address_out_of_reach() {
    let stray = Stray::set().await;
    stray.holder.ok("start_browser", json!({"sessionId": "own"})).await;
    let list = async |args: Value| stray.holder.ok("list_sessions", args).await;
    let shared = list(stray.with(json!({}))).await;
    assert!(!shared.text.contains("bank") && shared.text.contains("Shared with you (mode act)"), "{}", shared.text);
    let listed = shared.structured.unwrap();
    let shown = |session: &Value| (session["sessionId"].clone(), session["tabs"].clone(), session["url"].clone());
    assert_eq!(listed["sessions"].as_array().unwrap().iter().map(shown).collect::<Vec<_>>(), [(json!("web"), json!(1), Value::Null)]);
    assert_eq!(listed["currentSession"], Value::Null);
    stray.holder.ok("navigate", stray.with(json!({"url": "http://b.test/again"}))).await;
    assert_eq!(list(stray.with(json!({}))).await.structured.unwrap()["sessions"][0]["url"], "http://b.test/again");
    let own = list(json!({})).await.structured.unwrap();
    assert_eq!((own["sessions"].as_array().unwrap().len(), &own["sessions"][0]["sessionId"]), (1, &json!("own")));
    stray.owner.ok("share_session", json!({"revoke": "all"})).await;
    assert_eq!(stray.holder.code("list_sessions", stray.with(json!({}))).await, Code::SessionNotFound);
}

#[tokio::test]
async fn who_only_looks_sends_no_page_anywhere() {
    let stray = Stray::set().await;
    let reading = stray.owner.ok("share_session", json!({"mode": "read", "domains": ["b.test"]})).await.result["capability"].clone();
    let args = json!({"sessionId": reading, "url": "http://b.test/"});
    assert_eq!(stray.holder.code("navigate", args).await, Code::PolicyDenied);
    assert_eq!(stray.owner.eval("web", "location.href").await.unwrap(), "\"http://bank.test/?title=Balance\"");
}

/// The words of a dialog are the page's too: of one that is open already, and of one that ends the call.
#[tokio::test]
async fn what_a_page_out_of_reach_asks_is_not_told() {
    let stray = Stray::set().await;
    let page = stray.house.session().page(TabId(1)).unwrap();
    let away = stray.with(json!({"url": "http://b.test/?delay=600000"}));
    let leaving = stray.holder.begin("navigate", away.clone()).await;
    eventually("it is on its way", || stray.house.hub.look(|registry| registry.counts().running) == 1).await;
    let asking = tokio::spawn(async move { page.evaluate("alert(\"Balance\")").await });
    let fault = leaving.await.unwrap().unwrap_err();
    assert!(fault.code == Code::PolicyDenied && !fault.to_string().contains("Balance"), "{fault}");
    stray.refused("navigate", away).await;
    assert_eq!(stray.owner.code("read_text", json!({})).await, Code::DialogOpen);
    asking.abort();
}
