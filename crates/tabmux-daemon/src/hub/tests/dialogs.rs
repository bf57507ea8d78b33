//! Dialogs: they end the call they block, are answered beside the queue, and are news to the next caller.

use serde_json::json;
use tabmux_core::{Code, TabId};
use tokio::task::JoinHandle;

use crate::testing::{Agent, House, eventually};

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
    assert_eq!(agent.code("read_text", json!({})).await, Code::DialogOpen, "the page is blocked until it is answered");
    assert_eq!(other.eval("s", "1").await.unwrap(), "1");
    let answered = agent.ok("handle_dialog", json!({"accept": false})).await;
    assert!(answered.text.starts_with("Dismissed the confirm: \"sure?\"."), "{}", answered.text);
    assert!(agent.ok("read_text", json!({})).await.text.contains("\nThe fake page"));
    assert!(began.elapsed().as_millis() < 1000);
}

/// It needs nothing of the page, and tells what led to the dialog.
#[tokio::test]
async fn what_a_page_logged_and_asked_for_is_told_while_it_asks_something() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    agent.ok("evaluate", json!({"script": "log(\"before\")"})).await;
    assert_eq!(agent.code("evaluate", json!({"script": "alert(\"stop\")"})).await, Code::DialogOpen);
    assert!(agent.ok("console", json!({})).await.text.contains("[log] before"));
    assert!(agent.ok("network", json!({"tabId": "t1"})).await.text.contains("http://a.test/"));
    assert_eq!(agent.code("read_text", json!({})).await, Code::DialogOpen, "it still asks");
}

/// A page that opens one after the other lets nobody leave it: to go elsewhere, too, waits for an answer.
#[tokio::test]
async fn a_page_that_asks_again_and_again_is_told_with_the_way_out() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let mut ways = Vec::new();
    for _ in 0..4 {
        let fault = agent.fault("evaluate", json!({"script": "alert(\"again\")"})).await;
        ways.push(fault.hint.contains("close_page with tabId t1, then new_page"));
        agent.ok("handle_dialog", json!({})).await;
    }
    assert_eq!(ways, [false, false, true, true]);
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    let fault = agent.fault("evaluate", json!({"script": "alert(\"first\")"})).await;
    assert_eq!(fault.hint, "Answer it with handle_dialog, then go on.", "another document");
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

/// Who was answered with it may have answered it by then.
#[tokio::test]
async fn a_dialog_that_a_call_was_answered_with_is_no_news_any_more() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("evaluate", json!({"script": "1"})).await;
    let page = house.session().page(TabId(1)).unwrap();
    let asking = tokio::spawn(async move { page.evaluate("alert(\"late\")").await });
    eventually("the news is in", || house.session().waiting().1 == 1).await;
    assert_eq!(agent.code("read_text", json!({})).await, Code::DialogOpen);
    let answered = agent.ok("handle_dialog", json!({})).await.text;
    assert!(answered.starts_with("Accepted the alert: \"late\"."), "{answered}");
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

/// An agent whose page t1 opened t2, and what t2 is made to ask: nobody's call waits for the answer.
async fn with_popup(house: &House) -> Agent {
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("evaluate", json!({"script": "window.open('http://popup.test/')"})).await;
    eventually("the popup joins", || house.session().page(TabId(2)).is_some()).await;
    agent
}

fn ask(house: &House, tab: u32, script: &'static str) -> JoinHandle<tabmux_driver::Result<serde_json::Value>> {
    let page = house.session().page(TabId(tab)).unwrap();
    tokio::spawn(async move { page.evaluate(script).await })
}

/// Pages that one opened may stand still with it, so nothing else would end the call.
#[tokio::test]
async fn a_dialog_of_a_tab_that_the_page_opened_ends_its_call_and_names_that_tab() {
    let house = House::new();
    let agent = with_popup(&house).await;
    let holder = house.agent("other");
    let capability = agent.ok("share_session", json!({"mode": "act"})).await.result["capability"].clone();
    holder.ok("evaluate", json!({"sessionId": capability, "script": "1"})).await;
    let busy = agent.begin("evaluate", json!({"script": "hang()"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    let asking = ask(&house, 2, "alert(\"at load\")");
    let fault = busy.await.unwrap().unwrap_err();
    assert_eq!(
        fault.to_string(),
        r#"[dialog_open] Tab t2, which this page opened, has a dialog (alert): "at load". Answer it with handle_dialog and tabId t2. Then go on."#
    );
    let heard = holder.ok("evaluate", json!({"sessionId": capability, "script": "1"})).await.text;
    let news = "Tab t2 opened a dialog (alert): \"at load\". Answer it with handle_dialog and tabId t2.";
    assert!(heard.starts_with(news), "everybody else hears of it too: {heard}");
    assert!(!agent.ok("evaluate", json!({"script": "1"})).await.text.contains("at load"), "it was told");
    agent.ok("handle_dialog", json!({"tabId": "t2"})).await;
    asking.await.unwrap().unwrap();
}

/// Nor does it end one on a tab that has nothing to do with it.
#[tokio::test]
async fn a_dialog_of_its_opener_or_of_a_stranger_does_not_end_a_tabs_call() {
    let house = House::new();
    let agent = with_popup(&house).await;
    agent.ok("new_page", json!({})).await;
    for (runs_on, asks) in [("t2", 1), ("t3", 2)] {
        let busy = agent.begin("evaluate", json!({"tabId": runs_on, "script": "hang()", "timeout": 60000})).await;
        eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
        let before = house.session().waiting().1;
        let asking = ask(&house, asks, "alert(\"stop\")");
        eventually("it is news", || house.session().waiting().1 > before).await;
        assert!(!busy.is_finished(), "{runs_on}");
        agent.ok("handle_dialog", json!({"tabId": format!("t{asks}")})).await;
        asking.await.unwrap().unwrap();
        busy.abort();
        eventually("it ended", || house.hub.look(|registry| registry.counts().running) == 0).await;
    }
}

/// Never the wrong one, and never silently.
#[tokio::test]
async fn handle_dialog_on_a_tab_without_one_names_the_tabs_that_have_one() {
    let house = House::new();
    let agent = with_popup(&house).await;
    let asking = ask(&house, 2, "confirm(\"Delete?\")");
    eventually("it asks", || house.session().page(TabId(2)).unwrap().dialog().is_some()).await;
    let fault = agent.fault("handle_dialog", json!({})).await;
    assert_eq!(
        fault.to_string(),
        r#"[bad_argument] No dialog is open in tab t1; tab t2 has one (confirm): "Delete?". Call handle_dialog with tabId t2."#
    );
    agent.ok("new_page", json!({})).await;
    let asking_too = ask(&house, 3, "alert(\"x\")");
    eventually("it asks", || house.session().page(TabId(3)).unwrap().dialog().is_some()).await;
    let fault = agent.fault("handle_dialog", json!({"tabId": "t1"})).await;
    assert_eq!(
        fault.to_string(),
        "[bad_argument] No dialog is open in tab t1; tabs t2, t3 have one each. Call handle_dialog with the tabId of one of these."
    );
    for (tab, asking) in [("t2", asking), ("t3", asking_too)] {
        agent.ok("handle_dialog", json!({"tabId": tab})).await;
        asking.await.unwrap().unwrap();
    }
}

/// A grant for some sites hears nothing of what others ask.
#[tokio::test]
async fn what_a_popup_of_another_site_asks_is_not_told_to_who_may_not_see_it() {
    let house = House::new();
    let agent = with_popup(&house).await;
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    let shared = agent.ok("share_session", json!({"mode": "act", "domains": ["a.test"]})).await;
    let with = |mut args: serde_json::Value| {
        args["sessionId"] = shared.result["capability"].clone();
        args
    };
    let holder = house.agent("other");
    let busy = holder.begin("evaluate", with(json!({"script": "hang()"}))).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    let asking = ask(&house, 2, "alert(\"s3cret\")");
    let told = busy.await.unwrap().unwrap_err();
    let late = holder.fault("evaluate", with(json!({"script": "hang()", "timeout": 300}))).await;
    let none = holder.fault("handle_dialog", with(json!({}))).await;
    for fault in [&told, &late, &none] {
        assert!(!fault.to_string().contains("s3cret"), "{fault}");
    }
    assert_eq!((told.code, late.code, none.message.as_str()), (Code::PolicyDenied, Code::Timeout, "No dialog is open."));
    agent.ok("handle_dialog", json!({"tabId": "t2"})).await;
    asking.await.unwrap().unwrap();
}
