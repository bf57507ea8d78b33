//! A session that moves into another context, and one that comes back after its browser was lost.

use std::time::Duration;

use serde_json::{Value, json};
use tabmux_core::Code;

use crate::testing::{Agent, House, eventually};

/// Saved as soon as it rests.
fn saving() -> House {
    House::with(|settings| settings.clocks.session_save = Some(Duration::from_millis(1)))
}

fn saved(house: &House, ending: &str) -> usize {
    let entries = std::fs::read_dir(house.dir.path().join("state/saved")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(ending)).count()
}

/// What is saved; not what is being written.
fn texts(house: &House) -> String {
    let entries = std::fs::read_dir(house.dir.path().join("state/saved")).into_iter().flatten().flatten();
    let whole = entries.filter(|entry| entry.file_name().to_string_lossy().ends_with(".json"));
    whole.filter_map(|entry| std::fs::read_to_string(entry.path()).ok()).collect()
}

/// Two pages, the first one current, with logins and what each keeps for itself.
async fn busy(agent: &Agent) {
    agent.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/one"})).await;
    agent.eval("web", "document.cookie = \"token=1\"").await.unwrap();
    agent.ok("storage", json!({"set": {"user": "ann"}})).await;
    agent.ok("storage", json!({"area": "session", "set": {"step": "one"}})).await;
    agent.ok("new_page", json!({"url": "http://b.test/two"})).await;
    agent.ok("select_page", json!({"pageIdx": 0})).await;
}

async fn pages(agent: &Agent) -> Vec<(String, bool)> {
    let pages = agent.ok("list_pages", json!({"sessionId": "web"})).await.structured.unwrap()["pages"].clone();
    pages.as_array().unwrap().iter().map(|page| (page["url"].as_str().unwrap().to_owned(), page["current"] == json!(true))).collect()
}

async fn kept(agent: &Agent, area: &str) -> Value {
    agent.ok("storage", json!({"sessionId": "web", "area": area})).await.structured.unwrap()["items"][0]["value"].clone()
}

async fn assert_whole(agent: &Agent) {
    assert_eq!(pages(agent).await, [("http://a.test/one".to_owned(), true), ("http://b.test/two".to_owned(), false)]);
    assert_eq!(agent.eval("web", "document.cookie").await.unwrap().trim_matches('"'), "token=1");
    assert_eq!((kept(agent, "local").await, kept(agent, "session").await), (json!("ann"), json!("one")));
}

/// S1.43: the session goes on in other tabs, with its name, pages and logins; the old tabs are gone for good.
#[tokio::test]
async fn a_session_moves_with_its_pages_and_logins() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    let said = agent.ok("migrate", json!({"sessionId": "web", "isolation": "browser"})).await.text;
    assert_eq!(said, "Moved 2 pages.\nt3 http://a.test/one (current)\nt4 http://b.test/two");
    assert_whole(&agent).await;
    assert_eq!(agent.code("evaluate", json!({"tabId": "t1", "script": "1"})).await, Code::TabGone);
    let listed = agent.ok("list_sessions", json!({})).await.structured.unwrap();
    assert_eq!(listed["sessions"][0]["isolation"], json!("browser"));
    assert_eq!((house.sessions(), browser.open()), (1, 1), "it left the context that it was in");
    let next = house.killed_and_started_beside(&browser).await;
    let back = next.agent("a");
    assert_whole(&back).await;
    back.ok("close_session", json!({})).await;
    eventually("nothing is left", || browser.open() == 0 && next.sessions() == 0).await;
}

#[tokio::test]
async fn a_session_that_cannot_move_stays_where_it_is() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    for unit in ["window", "tab"] {
        assert_eq!(agent.code("migrate", json!({"isolation": unit})).await, Code::Unsupported);
    }
    browser.opens(&[crate::testing::Mood::Fail]);
    assert_eq!(agent.code("migrate", json!({"isolation": "browser"})).await, Code::BrowserCrashed);
    assert_whole(&agent).await;
    agent.ok("start_browser", json!({"sessionId": "shared", "isolation": "tab", "navigationUrl": "http://a.test/"})).await;
    assert_eq!(agent.code("migrate", json!({"sessionId": "shared", "isolation": "context"})).await, Code::Unsupported);
}

#[tokio::test]
async fn what_a_session_lost_with_its_browser_comes_back() {
    let house = saving();
    let agent = house.agent("a");
    busy(&agent).await;
    let nothing = agent.fault("restore", json!({})).await;
    assert_eq!((nothing.code, nothing.hint.as_str()), (Code::BadArgument, "A session is saved when it rests; go on with navigate."));
    let all = || texts(&house);
    eventually("it is saved", || ["token", "ann", "one", "two", "\"current\":0"].iter().all(|word| all().contains(word))).await;
    let crashed = agent.eval("web", "endBrowser()").await.unwrap_err();
    assert_eq!(crashed.code, Code::BrowserCrashed);
    eventually("what was saved is what was lost", || saved(&house, ".lost.json") == 1).await;
    let said = agent.ok("restore", json!({"sessionId": "web"})).await.text;
    assert_eq!(said, "Brought back 2 pages.\nt3 http://a.test/one (current)\nt4 http://b.test/two");
    assert_whole(&agent).await;
    assert_eq!(agent.code("restore", json!({})).await, Code::BadArgument, "once");
    agent.ok("close_session", json!({})).await;
    eventually("nothing of it is left", || saved(&house, "") == 0).await;
}

/// Saving is never in a caller's way, and what ended leaves nothing.
#[tokio::test]
async fn what_was_saved_of_a_session_that_is_gone_is_removed_at_the_start() {
    let house = saving();
    let agent = house.agent("a");
    busy(&agent).await;
    eventually("it is saved", || saved(&house, ".json") == 1).await;
    let directory = house.dir.path().join("state/saved");
    std::fs::write(directory.join("sess_ffffffff.json"), "{}").unwrap();
    crate::session::sweep_saved(
        &house.dir.path().join("state"),
        house.hub.look(|registry| registry.records().map(|session| session.id).collect::<Vec<_>>()).into_iter(),
    );
    assert_eq!(saved(&house, ".json"), 1);
    assert!(!directory.join("sess_ffffffff.json").exists());
}
