//! What is said when a call's time is up.

use serde_json::{Value, json};
use tabmux_core::{Code, TabId};
use tabmux_driver::Navigation;

use crate::testing::{Agent, House, eventually};

/// A page that is there and never comes to rest.
const HALF: &str = "http://a.test/?title=Half&awaits=http://slow.test/never.png";

/// An agent whose only page is such a one; the clock runs as fast as nothing else does from here on.
async fn half_loaded() -> (House, Agent) {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    tokio::time::pause();
    let late = agent.fault("navigate", json!({"url": HALF, "timeout": 500})).await;
    let at = format!("the page is at {HALF} — \"Half\" and still waits for http://slow.test/never.png.");
    assert_eq!((late.code, late.message), (Code::Timeout, format!("{HALF} did not finish loading within 500 ms; {at}")));
    (house, agent)
}

/// Whoever drove it there, the next daemon finds it there.
#[tokio::test]
async fn a_page_that_did_not_finish_loading_is_on_record_where_it_is() {
    let (house, owner) = half_loaded().await;
    let recorded = || house.hub.look(|registry| registry.records().next().map(|session| session.tabs[&TabId(1)].url.clone()));
    assert_eq!(recorded().as_deref(), Some(HALF));
    let capability = owner.ok("share_session", json!({"mode": "act"})).await.result["capability"].clone();
    let elsewhere = HALF.replace("a.test", "b.test");
    let args = json!({"sessionId": capability, "url": elsewhere, "timeout": 500});
    assert_eq!(house.agent("other").code("navigate", args).await, Code::Timeout);
    assert_eq!(recorded(), Some(elsewhere));
}

#[tokio::test]
async fn what_was_done_stays_done_when_only_its_consequences_are_not_known_in_time() {
    let (_house, agent) = half_loaded().await;
    let said = agent.ok("click_element", json!({"selector": "#go", "timeout": 3000})).await.text;
    let lines: Vec<&str> = said.lines().collect();
    let late = "The time was up before the page came to rest and still waits for http://slow.test/never.png; snapshot shows what changed.";
    assert!(lines[0].starts_with("Clicked ") && lines.contains(&late), "{said}");
}

/// Of that one, and of no other that was waited for before.
#[tokio::test]
async fn what_a_function_gave_last_is_said_when_it_did_not_become_true() {
    let (_house, agent) = half_loaded().await;
    let late = agent.fault("wait_for", json!({"function": "0", "timeout": 500})).await;
    assert!(late.code == Code::Timeout && late.hint.starts_with("The function last gave 0. See with snapshot"), "{late}");
    let late = agent.fault("wait_for", json!({"function": "1", "text": "nowhere", "timeout": 500})).await;
    assert!(late.code == Code::Timeout && late.hint.starts_with("See with snapshot"), "{late}");
}

/// And of those that held, nothing.
#[tokio::test]
async fn which_of_several_did_not_hold_is_said() {
    let (_house, agent) = half_loaded().await;
    for (args, said) in [
        (json!({"text": "half", "url": "/done"}), "The page did not come to \"/done\" within"),
        (json!({"text": "nowhere", "url": "a.test"}), "Text \"nowhere\" did not appear within"),
        (json!({"text": "nowhere", "gone": "half"}), "Text \"nowhere\" did not appear, and \"half\" did not go away within"),
        (json!({"text": "half", "function": "0"}), "The function did not become true within"),
    ] {
        let mut timed = args.clone();
        timed["timeout"] = json!(500);
        let late = agent.fault("wait_for", timed).await;
        assert!(late.code == Code::Timeout && late.message.starts_with(said), "{args}: {late}");
    }
}

/// Nor where it has gone meanwhile, nor what it asks for there.
#[tokio::test]
async fn who_may_see_some_sites_is_told_of_no_other_at_the_deadline() {
    let (house, owner) = half_loaded().await;
    let other = house.agent("other");
    let shared = owner.ok("share_session", json!({"mode": "act", "domains": ["a.test"]})).await;
    let with = |mut args: Value| {
        args["sessionId"] = shared.result["capability"].clone();
        args["timeout"] = json!(3000);
        args
    };
    let late = other.fault("evaluate", with(json!({"script": "hang()"}))).await;
    assert!(late.code == Code::Timeout && late.message.ends_with("— \"Half\"."), "{late}");
    let said = other.ok("click_element", with(json!({"selector": "#go"}))).await.text;
    assert!(said.contains("The time was up before the page came to rest; snapshot"), "{said}");
    let waits = other.begin("wait_for", with(json!({"text": "nowhere"}))).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    let page = house.session().page(TabId(1)).unwrap();
    page.navigate(Navigation::To("http://bank.test/?title=Balance")).await.unwrap();
    let late = waits.await.unwrap().unwrap_err();
    assert!(late.code == Code::PolicyDenied && !late.to_string().contains("Balance"), "{late}");
}

/// Pages that opened each other stand still together.
#[tokio::test]
async fn a_call_that_ran_into_its_deadline_while_another_tab_asks_something_says_so() {
    let (house, agent) = half_loaded().await;
    agent.ok("new_page", json!({})).await;
    let page = house.session().page(TabId(2)).unwrap();
    let asking = tokio::spawn(async move { page.evaluate("alert(\"stop\")").await });
    eventually("it asks", || house.session().page(TabId(2)).unwrap().dialog().is_some()).await;
    let late = agent.fault("evaluate", json!({"tabId": "t1", "script": "hang()", "timeout": 500})).await;
    let asks = "Tab t2 has a dialog (alert): \"stop\", for which this page may wait.";
    assert!(late.code == Code::Timeout && late.message.ends_with(asks), "{late}");
    assert!(late.hint.starts_with("Answer it with handle_dialog and tabId t2. Look at the page"), "{late}");
    let said = agent.ok("click_element", json!({"selector": "#go", "timeout": 3000})).await.text;
    assert!(said.contains(&format!("snapshot shows what changed. {asks} Answer it with handle_dialog and tabId t2.")), "{said}");
    agent.ok("handle_dialog", json!({"tabId": "t2"})).await;
    asking.await.unwrap().unwrap();
}
