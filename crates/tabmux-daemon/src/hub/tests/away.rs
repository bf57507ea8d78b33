//! What is said first to who comes back.

use serde_json::json;
use tabmux_core::{Code, Identity, Link, TabId};
use tabmux_driver::Navigation;

use crate::testing::{House, eventually};

async fn goes(house: &House, tab: u32, url: &str) {
    house.session().page(TabId(tab)).unwrap().navigate(Navigation::To(url)).await.unwrap();
}

/// The same without how long it was, which depends on the machine.
fn untimed(said: &str) -> String {
    let (before, after) = said.split_once("session (").unwrap_or_else(|| panic!("it says how long: {said}"));
    format!("{before}session{}", after.split_once(')').unwrap().1)
}

fn orphaned(house: &House) -> usize {
    house.hub.look(|registry| registry.counts().orphaned)
}

/// S2.23, S2.31
#[tokio::test]
async fn who_comes_back_reads_first_what_happened_meanwhile_and_once() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    for _ in 0..2 {
        agent.ok("new_page", json!({"url": "http://b.test/"})).await;
    }
    agent.ok("select_page", json!({"tabId": "t1"})).await;
    agent.lost();
    goes(&house, 2, "http://elsewhere.test/").await;
    let page = house.session().page(TabId(3)).unwrap();
    drop(page.evaluate("error(\"boom\")").await);
    drop(page.evaluate("error(\"bang\")").await);
    drop(house.session().page(TabId(1)).unwrap().evaluate("window.close()").await);
    eventually("the news is in", || house.session().waiting().1 == 1).await;
    let looked = house.operator().ok("list_pages", json!({"sessionId": "web"})).await.text;
    assert!(looked.contains("Tab t1 was closed"), "whoever looks in hears it, and takes it from nobody: {looked}");
    let back = house.agent("a");
    let said = back.ok("evaluate", json!({"sessionId": "web", "tabId": "t2", "script": "location.href"})).await.text;
    let said = untimed(&said);
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("While nobody drove this session: t2 went to http://elsewhere.test/; 2 console errors in t3."));
    assert_eq!(lines.next(), Some("Tab t1 was closed by the page or by a person."));
    assert_eq!(lines.next(), Some("\"http://elsewhere.test/\""));
    assert_eq!(back.eval("web", "1").await.unwrap(), "1", "once");
}

/// Whoever did it; what is news anyway is said once.
#[tokio::test]
async fn tabs_that_others_opened_and_closed_are_said() {
    let house = House::new();
    let (agent, operator) = (house.agent("a"), house.operator());
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    agent.ok("new_page", json!({"url": "http://b.test/"})).await;
    agent.ok("select_page", json!({"tabId": "t1"})).await;
    agent.lost();
    let id = house.hub.look(|registry| registry.records().next().map(|session| session.id.to_string())).unwrap();
    operator.ok("close_page", json!({"sessionId": id, "tabId": "t2"})).await;
    operator.ok("new_page", json!({"sessionId": id, "url": "http://c.test/"})).await;
    drop(house.session().page(TabId(1)).unwrap().evaluate("window.open('http://d.test/')").await);
    eventually("the popup is news", || house.session().waiting().1 == 3).await;
    let said = house.agent("a").eval("web", "1").await.unwrap();
    let mut lines = said.lines();
    assert_eq!(lines.next(), Some("The operator closed tab t2."));
    assert_eq!(lines.next(), Some("The operator opened tab t3; select_page goes there."));
    assert_eq!(lines.next(), Some("A page opened tab t4; select_page goes there."));
}

#[tokio::test]
async fn nothing_is_said_when_nothing_happened() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    agent.lost();
    assert_eq!(house.agent("a").eval("web", "1").await.unwrap(), "1");
}

#[tokio::test]
async fn a_call_that_nobody_heard_the_end_of_is_said() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    let running = agent.begin("navigate", json!({"url": "http://b.test/?delay=50"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    agent.lost();
    assert!(running.await.unwrap().is_ok());
    let said = untimed(&house.agent("a").eval("web", "1").await.unwrap());
    assert_eq!(
        said.lines().next(),
        Some("While nobody drove this session: navigate, which was running, ended (ok); t1 went to http://b.test/?delay=50.")
    );
}

#[tokio::test]
async fn it_is_a_short_summary_however_much_happened() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web"})).await;
    for _ in 0..11 {
        agent.ok("new_page", json!({})).await;
    }
    agent.lost();
    assert_eq!(orphaned(&house), 1);
    for tab in 1..=12 {
        goes(&house, tab, &format!("http://a.test/{}", "x".repeat(1000))).await;
    }
    let said = house.agent("a").eval("web", "1").await.unwrap();
    let first = said.lines().next().unwrap();
    assert!(first.ends_with("; and 4 more.") && first.len() < 2200, "{first}");
}

/// There are never more news than may be, and it is none of those that fall out.
#[tokio::test]
async fn it_is_said_however_many_news_there_are() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    agent.lost();
    goes(&house, 1, "http://b.test/").await;
    let page = house.session().page(TabId(1)).unwrap();
    for number in 1..=25 {
        drop(page.evaluate("window.open('http://popup.test/')").await);
        eventually("it is news", || house.session().waiting().1 == number.min(20)).await;
    }
    let said = house.agent("a").eval("web", "1").await.unwrap();
    let news: Vec<&str> = said.lines().filter(|line| line.starts_with("While") || line.starts_with("A page opened")).collect();
    assert!(news.len() == 21 && news[0].starts_with("While nobody drove"), "{said}");
}

/// S1.41: the next daemon compares with what the journal says.
#[tokio::test]
async fn the_next_daemon_says_what_happened_between_them() {
    for identity in [Identity::Secret("a".into()), Identity::Http("h".into())] {
        let (house, browser) = House::stubborn();
        let agent = house.agent_as(identity.clone(), Link::Connection);
        agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
        agent.ok("new_page", json!({"url": "http://b.test/"})).await;
        let page = house.session().page(TabId(1)).unwrap();
        let next = house.killed_and_started_beside(&browser).await;
        page.navigate(Navigation::To("http://c.test/")).await.unwrap();
        let back = next.agent_as(identity, Link::Connection);
        let said = back.eval("web", "location.href").await.unwrap();
        assert_eq!(said.lines().collect::<Vec<_>>(), ["While nobody drove this session: t1 went to http://c.test/.", "\"http://b.test/\""]);
    }
}

/// What went with the browser, nobody closed: the loss says all there is to say.
#[tokio::test]
async fn pages_that_went_with_their_browser_were_not_closed_by_anybody() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    agent.lost();
    house.operator().eval("web", "endBrowser()").await.unwrap_err();
    let back = house.agent("a");
    assert_eq!(back.eval("web", "1").await.unwrap_err().code, Code::BrowserCrashed);
    let said = back.ok("navigate", json!({"sessionId": "web", "url": "http://b.test/"})).await.text;
    assert!(!said.contains("was closed"), "{said}");
}

/// What its driver was there for is nothing new after a restart, however the page got there.
#[tokio::test]
async fn the_next_daemon_does_not_say_what_the_driver_has_seen() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    goes(&house, 1, "http://b.test/").await;
    assert_eq!(agent.eval("web", "location.href").await.unwrap(), "\"http://b.test/\"");
    let next = house.killed_and_started_beside(&browser).await;
    assert_eq!(next.agent("a").eval("web", "1").await.unwrap(), "1");
}

/// S1.42: so does who takes a session over.
#[tokio::test]
async fn a_new_driver_hears_what_happened_since_the_formers_last_call() {
    let house = House::new();
    let (agent, other) = (house.agent("a"), house.agent("b"));
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    let capability = agent.ok("share_session", json!({"mode": "hand_over"})).await.result["capability"].as_str().unwrap().to_owned();
    goes(&house, 1, "http://b.test/").await;
    let said = untimed(&other.eval(&capability, "1").await.unwrap());
    let away = said.lines().nth(1).unwrap();
    assert_eq!(away, "While nobody drove this session: t1 went to http://b.test/.", "{said}");
}
