//! Tabs belong to one session, keep their ids, and are never taken for one another.

use serde_json::json;
use tabmux_core::Code;

use crate::testing::{House, eventually};

/// S1.21, S2.19
#[tokio::test]
async fn the_first_call_of_a_session_opens_its_tab_and_later_ones_use_it() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("close_page", json!({"pageIdx": 0})).await;
    let said = agent.ok("read_text", json!({})).await;
    assert_eq!(said.result["tabId"], "t2", "ids are not used again");
    assert_eq!(agent.ok("read_text", json!({})).await.result["tabId"], "t2");
}

/// S1.22, S2.20, S2.36: a call's tab becomes current; what others focus does not matter.
#[tokio::test]
async fn a_named_tab_becomes_the_current_one() {
    let house = House::new();
    let (agent, other) = (house.agent("a"), house.agent("b"));
    for (agent, host) in [(&agent, "a"), (&other, "b")] {
        agent.ok("navigate", json!({"url": format!("http://{host}1.test/")})).await;
        agent.ok("new_page", json!({"url": format!("http://{host}2.test/")})).await;
    }
    let href = |tab: Option<&str>| json!({"script": "location.href", "tabId": tab});
    assert!(agent.ok("evaluate", href(None)).await.text.starts_with("\"http://a2.test/\""));
    assert!(agent.ok("evaluate", href(Some("t1"))).await.text.starts_with("\"http://a1.test/\""));
    other.ok("select_page", json!({"tabId": "t2"})).await;
    assert!(agent.ok("evaluate", href(None)).await.text.starts_with("\"http://a1.test/\""), "t1 is current now");
    assert!(other.ok("evaluate", href(None)).await.text.starts_with("\"http://b2.test/\""));
    let pages = agent.ok("list_pages", json!({})).await.structured.unwrap();
    assert_eq!((&pages["pages"][0]["current"], &pages["pages"][1]["current"]), (&json!(true), &json!(false)));
    assert_eq!(agent.ok("select_page", json!({"tabId": "t1"})).await.result["pageIdx"], 0);
    assert_eq!(agent.ok("select_page", json!({"tabId": "t2"})).await.result["pageIdx"], 1);
    agent.ok("evaluate", href(Some("t1"))).await;
    agent.ok("select_page", json!({"pageIdx": 1})).await;
    assert!(agent.ok("evaluate", href(None)).await.text.starts_with("\"http://a2.test/\""));
}

/// No event tells of it.
#[tokio::test]
async fn tabs_are_listed_with_the_titles_they_have_now() {
    let house = House::new();
    let agent = house.agent("a");
    for title in ["One", "Two"] {
        agent.ok("new_page", json!({"url": format!("http://a.test/?title={title}")})).await;
    }
    house.session().page(tabmux_core::TabId(1)).unwrap().evaluate("document.title = 'By a script'").await.unwrap();
    let pages = agent.ok("list_pages", json!({})).await.structured.unwrap();
    assert_eq!((&pages["pages"][0]["title"], &pages["pages"][1]["title"]), (&json!("By a script"), &json!("Two")));
}

/// S2.5: no handle reaches a tab of another session.
#[tokio::test]
async fn a_tab_is_in_one_session_only() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "one"})).await;
    agent.ok("new_page", json!({"sessionId": "one"})).await;
    agent.ok("start_browser", json!({"sessionId": "two"})).await;
    assert_eq!(agent.code("read_text", json!({"sessionId": "two", "tabId": "t2"})).await, Code::TabNotFound);
    let fault = agent.fault("select_page", json!({"sessionId": "two", "pageIdx": 1})).await;
    assert_eq!((fault.code, fault.message.as_str()), (Code::TabNotFound, "No page 1: the session's pages are 0 to 0."));
    agent.ok("close_page", json!({"sessionId": "two", "pageIdx": 0})).await;
    let fault = agent.fault("select_page", json!({"sessionId": "two", "pageIdx": 0})).await;
    assert_eq!(fault.message, "No page 0: the session has no pages.");
    agent.ok("new_page", json!({"sessionId": "two"})).await;
    agent.ok("close_page", json!({"sessionId": "two", "tabId": "t2"})).await;
    assert_eq!(agent.code("close_page", json!({"sessionId": "two", "tabId": "t2"})).await, Code::TabGone, "its own, not the neighbour's");
    let numbers: Vec<u64> =
        house.hub.look(|registry| registry.records().flat_map(|session| session.tabs.values().map(|tab| tab.number.0)).collect());
    assert_eq!(numbers.iter().collect::<std::collections::BTreeSet<_>>().len(), 2, "{numbers:?}");
}

/// S1.24: a tab that closed itself is gone, never its neighbour; the next reply says so once.
#[tokio::test]
async fn a_tab_closed_by_its_page_answers_tab_gone_and_is_news() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    agent.ok("new_page", json!({"url": "http://b.test/"})).await;
    let closes = agent.begin("evaluate", json!({"tabId": "t1", "script": "window.close()"})).await;
    let queued = agent.begin("evaluate", json!({"tabId": "t1", "script": "location.href"})).await;
    let mut said = closes.await.unwrap().unwrap().text;
    assert_eq!(queued.await.unwrap().unwrap_err().code, Code::TabGone);
    let tabs = || house.hub.look(|registry| registry.records().next().map_or(0, |session| session.tabs.len()));
    eventually("the tab is forgotten", || tabs() == 1).await;
    assert_eq!(agent.code("read_text", json!({"tabId": "t1"})).await, Code::TabGone);
    let next = agent.ok("evaluate", json!({"script": "location.href"})).await.text;
    assert!(next.contains("\"http://b.test/\""), "{next}");
    said += &next;
    said += &agent.ok("read_text", json!({})).await.text;
    assert_eq!(said.matches("Tab t1 was closed by the page or by a person.\n").count(), 1, "said once, first: {said}");
}

/// S1.24, S4.14: who worked in a tab that a person closed is told before anything is done in another; reads and writes alike.
#[tokio::test]
async fn a_call_without_a_tab_is_told_once_that_its_tab_is_gone_and_never_goes_to_a_neighbour() {
    let house = House::new();
    let agent = house.agent("a");
    for (tab, tool, args) in [
        (3, "evaluate", json!({"script": "location.href"})),
        (5, "click_element", json!({"selector": "#go"})),
        (7, "navigate", json!({"url": "http://elsewhere.test/"})),
    ] {
        for url in ["http://first.test/?go", "http://last.test/"] {
            agent.ok("new_page", json!({ "url": url })).await;
        }
        let chosen = format!("t{}", tab - 1);
        agent.ok("select_page", json!({ "tabId": chosen })).await;
        let session = house.session();
        drop(session.page(tabmux_core::TabId(tab - 1)).unwrap().evaluate("window.close()").await);
        eventually("its end is known", || session.page(tabmux_core::TabId(tab - 1)).is_none()).await;
        let fault = agent.fault(tool, args).await;
        let said = format!("Tab {chosen} was closed by the page or by a person. Tab t1 is current now, and nothing was done.");
        assert_eq!((fault.code, fault.message), (Code::TabGone, said), "{tool}");
        let next = agent.ok("evaluate", json!({"script": "location.href"})).await;
        assert_eq!(next.result["tabId"], "t1");
        assert!(!next.text.contains("closed"), "it was told: {}", next.text);
    }
}

/// S1.24: what one who uses the session closes is its own affair, and everybody else's loss.
#[tokio::test]
async fn the_last_tab_that_a_person_closed_is_told_and_one_that_was_closed_by_a_call_is_not() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let session = house.session();
    drop(session.page(tabmux_core::TabId(1)).unwrap().evaluate("window.close()").await);
    eventually("its end is known", || session.page(tabmux_core::TabId(1)).is_none()).await;
    let fault = agent.fault("evaluate", json!({"script": "1"})).await;
    assert!(fault.message.ends_with("The session has no tab now, and nothing was done."), "{fault}");
    assert_eq!(agent.ok("evaluate", json!({"script": "1"})).await.result["tabId"], "t2");
    agent.ok("close_page", json!({"tabId": "t2"})).await;
    assert_eq!(agent.ok("evaluate", json!({"script": "1"})).await.result["tabId"], "t3");
}

/// A running call whose page goes ends with `tab_gone`.
#[tokio::test]
async fn a_call_whose_page_goes_away_ends_with_tab_gone() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let id = house.hub.look(|registry| registry.records().next().map(|session| session.id)).unwrap();
    let page = house.hub.handle(id).unwrap().page(tabmux_core::TabId(1)).unwrap();
    let running = agent.begin("evaluate", json!({"script": "hang()"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    drop(page.evaluate("window.close()").await);
    assert_eq!(running.await.unwrap().unwrap_err().code, Code::TabGone);
}

#[tokio::test]
async fn a_call_whose_tab_another_call_closes_is_told_that_and_the_other_waited_for_nothing() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let running = agent.begin("evaluate", json!({"script": "hang()"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    let closed = agent.ok("close_page", json!({"tabId": "t1"})).await;
    assert!(!closed.text.contains("Waited behind") && closed.result.get("queuedBehind").is_none(), "{}", closed.text);
    let fault = running.await.unwrap().unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::TabGone, "Tab t1 was closed with close_page while this call ran."));
}

/// The contract: news come in the next reply, which is one that somebody takes.
#[tokio::test]
async fn a_reply_that_nobody_takes_takes_no_news_along() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("new_page", json!({})).await;
    let session = house.session();
    drop(session.page(tabmux_core::TabId(1)).unwrap().evaluate("crash()").await);
    eventually("the news is in", || session.waiting().1 == 1).await;
    let mut call = Box::pin(agent.call("evaluate", json!({"script": "1"})));
    assert!(futures::poll!(&mut call).is_pending(), "it is admitted");
    eventually("it has ended", || house.hub.look(|registry| registry.counts().waiting + registry.counts().running) == 0).await;
    drop(call);
    let said = agent.ok("evaluate", json!({"script": "1"})).await.text;
    assert!(said.starts_with("Tab t1 crashed"), "{said}");
    assert!(!agent.ok("evaluate", json!({"script": "1"})).await.text.contains("crashed"), "once");
}

/// News are bounded: the newest twenty are kept, and how many gave way is said.
#[tokio::test]
async fn news_are_bounded() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let (session, page) = (house.session(), house.session().page(tabmux_core::TabId(1)).unwrap());
    for number in 2..=26 {
        page.evaluate("window.open('http://popup.test/')").await.unwrap();
        eventually("it is the session's", || session.page(tabmux_core::TabId(number)).is_some()).await;
    }
    let said = agent.ok("evaluate", json!({"script": "1"})).await.text;
    assert_eq!(said.matches("A page opened tab").count(), 20, "{said}");
    // The last may be told a moment after it is there.
    assert!(["(4 more", "(5 more"].iter().any(|missing| said.contains(&format!("{missing} happened than can be told;"))), "{said}");
}

/// S1.37: cookies, console and pages of one session are not another's.
#[tokio::test]
async fn nothing_of_one_session_shows_in_another() {
    let house = House::new();
    let (one, two) = (house.agent("a"), house.agent("b"));
    for agent in [&one, &two] {
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
    }
    one.eval("s", "document.cookie = \"token=secret123\"").await.unwrap();
    one.eval("s", "log(\"mine\")").await.unwrap();
    assert_eq!(two.eval("s", "document.cookie").await.unwrap(), "\"\"");
    assert!(two.ok("console", json!({})).await.text.starts_with("Nothing was logged"));
    assert!(one.ok("console", json!({})).await.text.starts_with("[log] mine"));
}

/// Its caller read `tab_crashed`, and brought it back.
#[tokio::test]
async fn who_was_answered_with_a_crash_does_not_read_of_it_again_when_the_page_is_back() {
    let house = House::new();
    let (owner, other) = (house.agent("a"), house.agent("b"));
    owner.ok("start_browser", json!({"sessionId": "s", "navigationUrl": "http://a.test/"})).await;
    let capability = owner.ok("share_session", json!({"mode": "act"})).await.result["capability"].clone();
    other.ok("read_text", json!({"sessionId": capability})).await;
    assert_eq!(owner.code("evaluate", json!({"script": "crash()"})).await, Code::TabCrashed);
    let back = owner.ok("navigate", json!({"url": "http://a.test/"})).await;
    assert_eq!(back.result.get("news"), None, "{back:?}");
    let told = other.ok("read_text", json!({"sessionId": capability})).await;
    assert_eq!(told.result["news"], json!(["Tab t1 crashed and was brought back."]));
}
