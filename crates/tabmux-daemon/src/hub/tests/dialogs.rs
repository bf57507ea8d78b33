//! Dialogs: they end the call they block, are answered beside the queue, and are news to the next caller.

use serde_json::json;
use tabmux_core::Code;

use crate::testing::{House, eventually};

#[tokio::test]
async fn an_opening_dialog_ends_the_running_call_and_is_answered_beside_the_queue() {
    let house = House::new();
    let (agent, other) = (house.agent("a"), house.agent("b"));
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    other.ok("start_browser", json!({"sessionId": "s"})).await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let fault = agent.fault("evaluate", json!({"script": "confirm(\"sure?\")"})).await;
    assert_eq!((fault.code, fault.message.as_str()), (Code::DialogOpen, "A dialog is open (confirm): \"sure?\"."));
    for tool in ["read_text", "console"] {
        assert_eq!(agent.code(tool, json!({})).await, Code::DialogOpen, "the page is blocked until it is answered");
    }
    assert_eq!(other.eval("s", "1").await.unwrap(), "1");
    let answered = agent.ok("handle_dialog", json!({"accept": false})).await;
    assert!(answered.text.starts_with("Dismissed the confirm: \"sure?\"."), "{}", answered.text);
    assert!(agent.ok("read_text", json!({})).await.text.contains("\nThe fake page"));
    assert!(began.elapsed().as_millis() < 1000);
}

#[tokio::test]
async fn handle_dialog_does_not_wait_behind_the_queue() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    assert_eq!(agent.code("evaluate", json!({"script": "alert(\"x\")"})).await, Code::DialogOpen);
    agent.ok("new_page", json!({})).await;
    let busy = agent.begin("evaluate", json!({"script": "hang()"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    agent.ok("handle_dialog", json!({"tabId": "t1"})).await;
    assert!(!busy.is_finished(), "the call on the other tab goes on");
    busy.abort();
}

#[tokio::test]
async fn without_a_dialog_handle_dialog_says_so_and_opens_no_tab() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("close_page", json!({"pageIdx": 0})).await;
    let fault = agent.fault("handle_dialog", json!({})).await;
    assert_eq!((fault.code, fault.message.as_str()), (Code::BadArgument, "No dialog is open."));
    assert_eq!(agent.ok("list_pages", json!({})).await.structured.unwrap()["pages"], json!([]));
}

/// A dialog that no call of its tab waits for is said first in the next reply, once.
#[tokio::test]
async fn a_dialog_of_another_tab_is_news_in_the_next_reply() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("new_page", json!({})).await;
    let page = house.session().page(tabmux_core::TabId(1)).unwrap();
    let asking = tokio::spawn(async move { page.evaluate("alert(\"late\")").await });
    let mut said = agent.ok("evaluate", json!({"script": "1"})).await.text;
    while !said.contains("late") {
        said = agent.ok("evaluate", json!({"script": "1"})).await.text;
    }
    assert!(said.starts_with("Tab t1 opened a dialog (alert): \"late\"."), "{said}");
    assert!(!agent.ok("evaluate", json!({"script": "1"})).await.text.contains("late"));
    agent.ok("handle_dialog", json!({"tabId": "t1"})).await;
    asking.await.unwrap().unwrap();
}

/// Also one of the tab the last call worked on: that call has ended and cannot be told any more.
#[tokio::test]
async fn a_dialog_that_opens_after_the_call_is_news_too() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("evaluate", json!({"script": "1"})).await;
    let page = house.session().page(tabmux_core::TabId(1)).unwrap();
    let asking = tokio::spawn(async move { page.evaluate("alert(\"late\")").await });
    eventually("the news is in", || house.session().waiting().1 == 1).await;
    assert!(agent.ok("handle_dialog", json!({})).await.text.starts_with("Tab t1 opened a dialog (alert)"));
    asking.await.unwrap().unwrap();
}
