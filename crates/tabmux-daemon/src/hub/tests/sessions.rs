//! Sessions are made, named, listed and closed, each by its owner only.

use serde_json::json;
use tabmux_core::{Code, Identity, Link, Millis, TabId};
use tabmux_driver::Navigation;

use crate::clock::Moment;
use crate::testing::{House, eventually};

/// S0.4, S0.15
#[tokio::test]
async fn a_session_starts_under_its_name_at_its_url_and_leaves_the_others_alone() {
    let house = House::new();
    let agent = house.agent("a");
    let first = agent.ok("start_browser", json!({"sessionId": "user-a", "headless": true, "navigationUrl": "http://a.test/"})).await;
    assert_eq!(first.text, "Started browser session user-a. Tab t1 is at http://a.test/.");
    agent.ok("start_browser", json!({"sessionId": "user-b", "navigationUrl": "http://b.test/"})).await;
    assert_eq!(agent.eval("user-a", "location.href").await.unwrap(), "\"http://a.test/\"");
    assert_eq!(agent.eval("user-b", "location.href").await.unwrap(), "\"http://b.test/\"");
}

/// S0.18
#[tokio::test]
async fn a_taken_name_is_refused_and_its_session_stays_usable() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "test"})).await;
    let fault = agent.fault("start_browser", json!({"sessionId": "test"})).await;
    assert_eq!((fault.code, fault.message.as_str()), (Code::SessionExists, "Session 'test' already exists."));
    assert_eq!(agent.eval("test", "1").await.unwrap(), "1");
    assert_eq!(house.sessions(), 1);
}

/// S0.6
#[tokio::test]
async fn closing_one_session_leaves_the_others_and_frees_its_name() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    for name in ["x", "y"] {
        agent.ok("start_browser", json!({"sessionId": name})).await;
    }
    assert_eq!(agent.ok("close_session", json!({"sessionId": "x"})).await.text, "Closed session x (1 tab).");
    assert_eq!((browser.open(), house.sessions()), (1, 1));
    let fault = agent.fault("evaluate", json!({"sessionId": "x", "script": "1"})).await;
    assert_eq!((fault.code, fault.message.as_str()), (Code::SessionNotFound, "No session: x."));
    assert_eq!(agent.eval("y", "1").await.unwrap(), "1");
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
}

/// S0.7
#[tokio::test]
async fn closing_all_sessions_closes_the_callers_and_nobody_elses() {
    let (house, browser) = House::stubborn();
    let (agent, other) = (house.agent("a"), house.agent("b"));
    for name in ["x", "y"] {
        agent.ok("start_browser", json!({"sessionId": name})).await;
    }
    other.ok("start_browser", json!({"sessionId": "x"})).await;
    let text = agent.ok("close_all_sessions", json!({})).await.text;
    assert!(["Closed 2 sessions: x, y.", "Closed 2 sessions: y, x."].contains(&text.as_str()), "{text}");
    assert_eq!((browser.open(), house.sessions()), (1, 1));
    assert_eq!(other.eval("x", "1").await.unwrap(), "1");
}

/// S0.8
#[tokio::test]
async fn detached_sessions_are_forgotten_by_their_agent_and_kept_for_the_operator() {
    let (house, browser) = House::stubborn();
    let (agent, operator) = (house.agent("a"), house.operator());
    agent.ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://x.test/"})).await;
    agent.ok("close_all_sessions", json!({"detach": true})).await;
    assert_eq!(agent.code("evaluate", json!({"sessionId": "x", "script": "1"})).await, Code::SessionNotFound);
    assert_eq!(browser.open(), 1);
    assert_eq!(operator.eval("x", "location.href").await.unwrap(), "\"http://x.test/\"");
}

/// S0.19
#[tokio::test]
async fn the_fifth_session_is_warned_about_and_the_sixth_still_starts() {
    let house = House::new();
    let agent = house.agent("a");
    for number in 1..=6 {
        let said = agent.ok("start_browser", json!({})).await;
        assert_eq!(said.result.contains_key("warning"), number >= 5, "session {number}: {}", said.text);
        assert_eq!(said.text.contains(&format!("{number} sessions of yours are open now")), number >= 5);
    }
    assert_eq!(house.sessions(), 6);
}

/// S3.14, S1.37: another's session answers exactly like one that is not there.
#[tokio::test]
async fn a_foreign_session_cannot_be_seen_used_or_closed() {
    let house = House::new();
    let (owner, stranger) = (house.agent("a"), house.agent("b"));
    let said = owner.ok("start_browser", json!({"sessionId": "web"})).await;
    for handle in ["sessionId", "id", "uuid"] {
        let handle = said.result[handle].as_str().unwrap();
        for (tool, args) in [("evaluate", json!({"sessionId": handle, "script": "1"})), ("new_page", json!({"sessionId": handle}))] {
            let fault = stranger.fault(tool, args).await;
            assert_eq!((fault.code, fault.message), (Code::SessionNotFound, format!("No session: {handle}.")));
        }
        assert_eq!(stranger.code("close_session", json!({"sessionId": handle})).await, Code::SessionNotFound);
        assert_eq!(stranger.code("set_current_session", json!({"sessionId": handle})).await, Code::SessionNotFound);
    }
    let list = stranger.ok("list_sessions", json!({})).await.structured.unwrap();
    assert_eq!((&list["sessions"], &list["currentSession"]), (&json!([]), &json!(null)));
    assert_eq!(owner.eval("web", "1").await.unwrap(), "1");
}

/// S0.39: a page goes elsewhere by itself too, and the list is not of yesterday.
#[tokio::test]
async fn the_list_says_where_pages_are_now_and_what_they_take() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    let page = house.session().page(TabId(1)).unwrap();
    page.navigate(Navigation::To("http://b.test/")).await.unwrap();
    let list = agent.ok("list_sessions", json!({})).await.structured.unwrap();
    let rows = house.hub.sessions(agent.client, false).await.unwrap();
    for session in [&list["sessions"][0], &rows["sessions"][0]] {
        assert_eq!((&session["url"], &session["memory_kb"]), (&json!("http://b.test/"), &json!(1024)));
    }
}

/// S3.36, C9: the operator sees everybody's sessions, in one look; an agent is refused.
#[tokio::test]
async fn only_the_operator_lists_everybody() {
    let house = House::new();
    let (agent, operator) = (house.agent("a"), house.operator());
    agent.ok("start_browser", json!({"sessionId": "web"})).await;
    operator.ok("start_browser", json!({"sessionId": "own"})).await;
    assert_eq!(house.hub.sessions(agent.client, true).await.unwrap_err().code, Code::PolicyDenied);
    let own = house.hub.sessions(agent.client, false).await.unwrap();
    assert_eq!((own["sessions"].as_array().unwrap().len(), &own["sessions"][0]["current"]), (1, &json!(true)));
    let all = house.hub.sessions(operator.client, true).await.unwrap();
    let owners = |row: &serde_json::Value| (row["sessionId"].to_string(), row["owner"].to_string());
    let mut rows: Vec<_> = all["sessions"].as_array().unwrap().iter().map(owners).collect();
    rows.sort();
    assert_eq!(rows, [("\"own\"".to_owned(), "\"operator\"".to_owned()), ("\"web\"".to_owned(), "\"secret:a\"".to_owned())]);
}

/// C11: who cannot be told apart from others has a session's uuid and nothing else.
#[tokio::test]
async fn a_nobody_has_the_uuid_only_and_lists_nothing() {
    let house = House::new();
    let (one, other) = (house.agent_as(Identity::Nobody, Link::None), house.agent_as(Identity::Nobody, Link::None));
    let first = one.ok("navigate", json!({"url": "http://a.test/"})).await;
    let second = one.ok("navigate", json!({"url": "http://b.test/"})).await;
    assert_ne!(first.result["uuid"], second.result["uuid"], "each call without a handle makes a session of its own");
    let uuid = first.result["uuid"].as_str().unwrap();
    assert_eq!(first.result["sessionId"], uuid);
    assert!(first.text.contains(uuid), "the handle is said: {}", first.text);
    assert_eq!(other.eval(uuid, "location.href").await.unwrap(), "\"http://a.test/\"");
    assert_eq!(other.code("read_text", json!({})).await, Code::SessionRequired);
    for handle in [first.result["id"].as_str().unwrap(), "browser-1"] {
        assert_eq!(one.code("evaluate", json!({"sessionId": handle, "script": "1"})).await, Code::SessionNotFound);
    }
    let list = one.ok("list_sessions", json!({})).await;
    assert_eq!(list.structured.as_ref().unwrap()["sessions"], json!([]));
    assert!(list.text.contains("cannot be told apart"), "{}", list.text);
    assert_eq!(one.code("close_all_sessions", json!({})).await, Code::PolicyDenied);
    other.ok("close_session", json!({"sessionId": uuid})).await;
    assert_eq!(house.sessions(), 1);
}

/// S0.21: what an agent leaves behind ends without anybody's doing.
#[tokio::test]
async fn a_session_of_an_agent_that_never_comes_back_is_cleaned_up() {
    let (house, browser) = House::stubborn();
    house.keep_time();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    agent.lost();
    tokio::time::pause();
    tokio::time::advance(house.hub.settings.clocks.orphan_grace.unwrap()).await;
    tokio::time::resume();
    eventually("the orphan is gone", || house.sessions() == 0 && browser.open() == 0).await;
}

/// S1.25: what a binding keeps.
#[tokio::test]
async fn a_session_keeps_its_id_tab_and_times() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    let list = agent.ok("list_sessions", json!({})).await.structured.unwrap();
    let session = &list["sessions"][0];
    assert_eq!((&session["tabId"], &session["state"], &session["tabs"]), (&json!("t1"), &json!("active"), &json!(1)));
    assert!(session["id"].as_str().unwrap().parse::<tabmux_core::SessionId>().is_ok());
    assert!(session["createdAt"].as_str().unwrap().parse::<jiff::Timestamp>().is_ok());
    assert_eq!(session["age_s"].as_u64().or(session["ageS"].as_u64()), Some(0));
}

/// S1.25, S3.28
#[tokio::test]
async fn a_session_says_when_it_was_made_how_old_it_is_and_when_it_was_used() {
    let house = House::new();
    house.agent("a").ok("start_browser", json!({"sessionId": "x"})).await;
    let mut session = house.hub.look(|registry| registry.records().next().cloned()).unwrap();
    session.created_unix_ms = 1_790_000_000_123;
    let now = Moment { millis: Millis(10_000), unix_ms: session.created_unix_ms + 90_999 };
    let view = crate::hub::desk::view(tabmux_core::Listed { session: &session, orphaned: true, last_used: Millis(4_000) }, now, "fake");
    assert_eq!(view.age_s, 90);
    assert_eq!(view.last_active_at, crate::clock::iso(session.created_unix_ms + 84_999));
    assert_eq!(view.state, "orphaned");
    assert_eq!(view.created_at, crate::clock::iso(session.created_unix_ms));
}

/// C12: what isolates a session is said, and survives a restart.
#[tokio::test]
async fn the_isolation_of_a_session_is_kept() {
    use tabmux_driver::Isolation::{Browser, Context, Tab, Window};
    let house = House::new();
    let agent = house.agent("a");
    for (isolation, name) in [(Context, "context"), (Window, "window"), (Tab, "tab"), (Browser, "browser")] {
        assert_eq!(crate::hub::sessions::isolation_of(name), isolation);
        let said = agent.ok("start_browser", json!({"sessionId": name, "isolation": name})).await;
        assert_eq!(said.result["isolation"], name);
    }
    agent.eval("window", "document.cookie = \"k=v\"").await.unwrap();
    assert_eq!(agent.eval("tab", "document.cookie").await.unwrap(), "\"k=v\"", "one profile");
    assert_eq!(agent.eval("context", "document.cookie").await.unwrap(), "\"\"");
    let next = house.killed_and_started_again().await;
    let kept: std::collections::BTreeSet<_> =
        next.hub.look(|registry| registry.list_all().iter().map(|listed| listed.session.isolation.clone()).collect());
    assert_eq!(kept, ["browser", "context", "tab", "window"].map(str::to_owned).into());
}
