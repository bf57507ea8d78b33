//! A daemon that was killed and the next one on the same state directory.

use std::fs::OpenOptions;
use std::io::Write;

use serde_json::{Value, json};
use tabmux_core::{Code, Identity, Link, Phase, Session, TabNumber};

use crate::hub::CallerOf;
use crate::testing::{House, Mood, eventually};

/// Everything that lasts, in the order of ids.
fn records(house: &House) -> Vec<Session> {
    house.hub.look(|registry| registry.records().cloned().collect())
}

/// S1.41: whatever a reply said of a tab, a kill right behind it takes nothing of that back.
#[tokio::test]
async fn a_tab_that_a_reply_told_is_on_record() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    for number in 1..30 {
        let url = format!("http://a.test/{number}");
        agent.ok("new_page", json!({"url": url})).await;
        let next = house.crashed_and_started_again();
        let last = records(&next)[0].tabs.values().last().map(|tab| tab.url.clone());
        assert_eq!((last, records(&next)[0].current_tab), (Some(url), records(&house)[0].current_tab));
    }
}

/// S1.41: a browser tells of a dialog only once, so the next daemon knows of one that a reply told, and that it was answered.
#[tokio::test]
async fn a_dialog_and_its_answer_are_on_record_when_they_are_told() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
    let opened = (json!({"script": "alert('stop')"}), Some(Code::DialogOpen), Some("stop"));
    let met = (json!({"script": "1"}), Some(Code::DialogOpen), Some("stop"));
    let answered = (json!({}), None, None);
    for (tool, (args, code, left)) in [("evaluate", opened), ("evaluate", met), ("handle_dialog", answered)] {
        let slow = house.hub.store.stall();
        let call = agent.begin(tool, args).await;
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        assert!(!call.is_finished(), "{tool} was answered before that was written");
        drop(slow);
        assert_eq!(call.await.unwrap().err().map(|fault| fault.code), code);
        let next = house.crashed_and_started_again();
        assert_eq!(records(&next)[0].tabs.values().next().unwrap().memento.as_deref(), left);
    }
}

#[tokio::test]
async fn a_tab_is_told_when_it_is_written_down() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    let slow = house.hub.store.stall();
    let opening = agent.begin("new_page", json!({"url": "http://a.test/"})).await;
    eventually("the page is there", || house.session().page(tabmux_core::TabId(2)).is_some()).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!opening.is_finished());
    drop(slow);
    opening.await.unwrap().unwrap();
}

/// Its holder hears of it first, and that daemon is no more when the owner comes.
#[tokio::test]
async fn that_the_browser_is_gone_is_said_to_the_owner_whichever_daemon_somebody_else_heard_it_from() {
    let house = House::new();
    let (owner, other) = (house.agent("owner"), house.agent("other"));
    owner.ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
    let capability = owner.ok("share_session", json!({})).await.result["capability"].clone();
    house.session().page(tabmux_core::TabId(1)).unwrap().evaluate("endBrowser()").await.unwrap_err();
    eventually("it is known", || house.hub.look(|registry| registry.counts().lost) == 1).await;
    for (who, session) in [(&other, capability), (&house.operator(), json!("x"))] {
        assert_eq!(who.code("list_pages", json!({"sessionId": session})).await, Code::BrowserCrashed);
    }
    let next = house.killed_and_started_again().await;
    let owner = next.agent("owner");
    assert_eq!(owner.code("list_pages", json!({})).await, Code::BrowserCrashed);
    owner.ok("list_pages", json!({})).await;
    let last = next.killed_and_started_again().await;
    last.agent("owner").ok("list_pages", json!({})).await;
}

/// Whoever was told that a session is theirs keeps it, and a grant for one call is for one call, whenever the daemon dies.
#[tokio::test]
async fn what_letting_a_call_in_changed_is_on_record_when_it_is_answered() {
    let house = House::new();
    let (owner, other) = (house.agent("a"), house.agent("b"));
    for taking in ["list_pages", "set_current_session"] {
        owner.ok("start_browser", json!({"sessionId": taking})).await;
        let share = |mode: &str, once: bool| json!({"sessionId": taking, "mode": mode, "once": once});
        let once = owner.ok("share_session", share("read", true)).await.result["capability"].clone();
        let whole = owner.ok("share_session", share("hand_over", false)).await.result["capability"].clone();
        for (tool, capability) in [("list_pages", once), (taking, whole)] {
            let slow = house.hub.store.stall();
            let call = other.begin(tool, json!({"sessionId": capability})).await;
            owner.ok("list_sessions", json!({})).await;
            for _ in 0..100 {
                tokio::task::yield_now().await;
            }
            assert!(!call.is_finished(), "{tool} was answered before that was written");
            drop(slow);
            call.await.unwrap().unwrap();
        }
    }
}

/// S1.41
#[tokio::test]
async fn sessions_names_ids_tabs_and_currents_survive_a_kill() {
    let house = House::new();
    let agent = house.agent("a");
    for name in ["x", "y"] {
        agent.ok("start_browser", json!({"sessionId": name, "navigationUrl": format!("http://{name}.test/")})).await;
    }
    agent.ok("new_page", json!({"sessionId": "x", "url": "http://x2.test/"})).await;
    agent.ok("select_page", json!({"sessionId": "x", "pageIdx": 0})).await;
    agent.ok("set_current_session", json!({"sessionId": "x"})).await;
    agent.thread("t").ok("set_current_session", json!({"sessionId": "y"})).await;
    let next = house.killed_and_started_again().await;
    assert_eq!(records(&next), records(&house));
    assert_eq!(next.hub.look(|registry| registry.counts().orphaned), 2, "nobody is connected yet");
    let back = next.agent("a");
    let said = back.ok("evaluate", json!({"script": "location.href"})).await;
    assert!(said.text.starts_with("\"http://x.test/\""), "{}", said.text);
    assert!(back.thread("t").ok("evaluate", json!({"script": "location.href"})).await.text.starts_with("\"http://y.test/\""));
    let pages = back.ok("list_pages", json!({})).await.structured.unwrap();
    let urls: Vec<_> = pages["pages"].as_array().unwrap().iter().map(|page| (page["tabId"].clone(), page["url"].clone())).collect();
    assert_eq!(urls, [(json!("t1"), json!("http://x.test/")), (json!("t2"), json!("http://x2.test/"))]);
    assert_eq!(back.ok("new_page", json!({})).await.result["tabId"], "t3");
}

/// S2.5: nobody who kept a tab's number finds another tab behind it.
#[tokio::test]
async fn the_number_of_a_closed_tab_is_not_given_again_by_the_next_daemon() {
    let house = House::new();
    let agent = house.agent("a");
    let highest = |house: &House| records(house).iter().flat_map(|session| session.tabs.values().map(|tab| tab.number)).max();
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    agent.ok("new_page", json!({"sessionId": "x"})).await;
    assert_eq!(highest(&house), Some(TabNumber(2)));
    agent.ok("close_session", json!({})).await;
    let next = house.killed_and_started_again().await;
    let agent = next.agent("a");
    agent.ok("start_browser", json!({})).await;
    assert_eq!(highest(&next), Some(TabNumber(3)), "from the journal");
    agent.ok("close_session", json!({})).await;
    next.hub.store.fell_behind();
    next.hub.compact_when_long();
    let last = next.killed_and_started_again().await;
    last.agent("a").ok("start_browser", json!({})).await;
    assert_eq!(highest(&last), Some(TabNumber(4)), "from the snapshot");
}

/// A session that no call has used since the restart is closed in the browser all the same.
#[tokio::test]
async fn a_session_of_a_former_daemon_is_closed_in_its_browser() {
    let (house, browser) = House::stubborn();
    house.agent("a").ok("navigate", json!({"url": "http://a.test/"})).await;
    let next = house.killed_and_started_beside(&browser).await;
    assert_eq!((browser.open(), next.sessions()), (1, 1));
    next.agent("a").ok("close_session", json!({})).await;
    assert_eq!((browser.open(), next.sessions()), (0, 0));
}

/// What cannot be found any more is gone: it is not looked for again and again.
#[tokio::test]
async fn a_session_that_went_with_its_browser_is_closed_at_once() {
    let (house, browser) = House::stubborn();
    house.agent("a").ok("start_browser", json!({"sessionId": "x"})).await;
    let next = house.killed_and_started_beside(&browser).await;
    browser.adopts(&[Mood::Fail; 20]);
    next.agent("a").ok("close_session", json!({})).await;
    assert_eq!((next.sessions(), browser.adopts_left()), (0, 19));
}

/// A browser that is slow after a restart is not a dead one, and its pages are nobody's to lose.
#[tokio::test]
async fn a_browser_that_is_late_after_a_restart_is_asked_again() {
    let (house, browser) = House::stubborn();
    house.agent("a").ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
    browser.adopts(&[Mood::Late]);
    let next = house.killed_and_started_beside(&browser).await;
    let back = next.agent("a");
    assert_eq!(back.code("evaluate", json!({"script": "1"})).await, Code::Timeout);
    assert!(back.ok("evaluate", json!({"script": "location.href"})).await.text.starts_with("\"http://a.test/\""));
    browser.adopts(&[Mood::Late]);
    let last = next.killed_and_started_beside(&browser).await;
    last.agent("a").ok("close_session", json!({})).await;
    assert_eq!((browser.open(), last.sessions()), (0, 0), "it was looked for again, and closed");
}

/// A dialog is answered beside the queue, also as the very first thing after a restart.
#[tokio::test]
async fn a_call_beside_the_queue_does_not_lose_the_tabs_of_a_former_daemon() {
    let house = House::new();
    house.agent("a").ok("navigate", json!({"url": "http://a.test/"})).await;
    let next = house.killed_and_started_again().await;
    let back = next.agent("a");
    assert_eq!(back.fault("handle_dialog", json!({})).await.message, "No dialog is open.");
    assert!(back.ok("evaluate", json!({"script": "location.href"})).await.text.starts_with("\"http://a.test/\""));
}

#[tokio::test]
async fn a_tab_of_a_former_daemon_is_closed_by_the_very_first_call() {
    let house = House::new();
    let agent = house.agent("a");
    for tool in ["navigate", "new_page"] {
        agent.ok(tool, json!({"url": "http://a.test/"})).await;
    }
    let next = house.killed_and_started_again().await;
    next.agent("a").ok("close_page", json!({"tabId": "t1"})).await;
    assert_eq!(records(&next)[0].tabs.len(), 1);
}

/// Also of who does not drive the session: where a page was sent is where the next daemon knows it to be.
#[tokio::test]
async fn where_others_sent_a_page_is_on_record() {
    let house = House::new();
    house.agent("a").ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
    let id = records(&house)[0].id.to_string();
    house.operator().ok("navigate", json!({"sessionId": id, "url": "http://b.test/"})).await;
    let urls: Vec<String> = records(&house.crashed_and_started_again())[0].tabs.values().map(|tab| tab.url.clone()).collect();
    assert_eq!(urls, ["http://b.test/"]);
}

/// S3.5: nobody was told that it is there, and its first page is not what was asked for.
#[tokio::test]
async fn a_session_whose_first_page_was_still_on_its_way_is_undone() {
    for (tool, args) in [
        ("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/?delay=600000"})),
        ("navigate", json!({"url": "http://a.test/?delay=600000"})),
        ("new_page", json!({"url": "http://a.test/?delay=600000"})),
    ] {
        let (house, browser) = House::stubborn();
        let agent = house.agent("a");
        let opening = agent.begin(tool, args).await;
        eventually("its tab is there", || records(&house).iter().any(|session| session.tabs.len() == 1)).await;
        // A daemon that was killed would not close it a second time, as this one would.
        browser.closes(&[Mood::Good, Mood::Hang]);
        let next = house.killed_and_started_beside(&browser).await;
        eventually("nothing is left of it", || (next.sessions(), browser.open()) == (0, 0)).await;
        assert_eq!(next.agent("a").ok("list_sessions", json!({})).await.structured.unwrap()["sessions"], json!([]), "{tool}");
        opening.abort();
    }
}

/// What the caller was told is there stays: also a session whose first page came too late for its call.
#[tokio::test]
async fn a_session_is_there_to_stay_once_its_first_call_has_ended() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
    agent.ok("fork", json!({"sessionId": "x", "prefix": "copy"})).await;
    let late = json!({"url": "http://b.test/?delay=600000", "timeout": 50});
    assert_eq!(house.agent("b").code("navigate", late).await, Code::Timeout);
    assert_eq!(house.agent("c").code("navigate", json!({"url": "http://fail.test/"})).await, Code::NavigationFailed);
    let next = house.killed_and_started_again().await;
    let open = records(&next).into_iter().filter(|session| session.phase == Phase::Open);
    let mut names: Vec<String> = open.map(|session| session.name).collect();
    names.sort();
    assert_eq!(names, ["browser-1", "browser-1", "copy-1", "x"]);
}

#[tokio::test]
async fn what_was_half_opened_is_undone_and_what_was_half_closed_is_finished() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "closing"})).await;
    browser.opens(&[Mood::Wait]);
    browser.closes(&[Mood::Wait]);
    let opening = agent.begin("start_browser", json!({"sessionId": "opening"})).await;
    eventually("it opens", || browser.asked() == 2).await;
    let closing = agent.begin("close_session", json!({"sessionId": "closing"})).await;
    let reserved = house.hub.register(&CallerOf::of(agent.client)).unwrap().session;
    house
        .hub
        .decide_now(|registry, now| registry.rename(CallerOf::of(agent.client).as_caller(), &reserved.to_string(), "reserved", now))
        .unwrap();
    house.on_disk().await;
    let phases: Vec<Phase> = records(&house).iter().map(|session| session.phase).collect();
    assert!([Phase::Opening, Phase::Closing, Phase::Reserved].iter().all(|phase| phases.contains(phase)), "{phases:?}");
    let next = house.crashed_and_started_again();
    eventually("only the reserved one is left", || records(&next).iter().all(|session| session.name == "reserved")).await;
    assert_eq!(next.sessions(), 1);
    let back = next.agent("a");
    assert_eq!(back.code("read_text", json!({"sessionId": "closing"})).await, Code::SessionNotFound);
    back.ok("start_browser", json!({"sessionId": "opening"})).await;
    let third = next.killed_and_started_again().await;
    let names: Vec<String> = records(&third).into_iter().map(|session| session.name).collect();
    assert!(names.len() == 2 && names.contains(&"reserved".into()) && names.contains(&"opening".into()), "{names:?}");
    browser.let_go();
    browser.let_go();
    drop((opening.await, closing.await));
}

#[tokio::test]
async fn a_torn_last_line_costs_only_itself() {
    let house = House::new();
    house.agent("a").ok("start_browser", json!({"sessionId": "x"})).await;
    house.on_disk().await;
    let path = house.dir.path().join("state/journal.jsonl");
    OpenOptions::new().append(true).open(path).unwrap().write_all(b"{\"seq\":99,\"crc\":\"0000").unwrap();
    let next = house.crashed_and_started_again();
    assert_eq!(next.agent("a").eval("x", "1").await.unwrap(), "1");
}

/// After 2,000 records a snapshot takes their place; nothing is lost by that.
#[tokio::test]
async fn a_long_journal_becomes_a_snapshot_and_replays_to_the_same() {
    let house = House::new();
    house.keep_time();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    agent.ok("set_current_session", json!({"sessionId": "x"})).await;
    house.hub.store.put_http("early", |record| record.holder = Some("main".into())).written().await.unwrap();
    let state = house.dir.path().join("state");
    house.hub.compact_when_long();
    house.on_disk().await;
    assert!(!state.join("journal.snapshot").exists(), "it is not long yet");
    for n in 0..2_100 {
        agent.ok("navigate", json!({"url": format!("http://a.test/{n}")})).await;
        if n % 100 == 0 {
            house.on_disk().await;
        }
    }
    eventually("there is a snapshot", || state.join("journal.snapshot").exists()).await;
    agent.ok("start_browser", json!({"sessionId": "y"})).await;
    house.on_disk().await;
    let lines = std::fs::read_to_string(state.join("journal.jsonl")).unwrap().lines().count();
    assert!(lines < 2_000, "{lines} lines are left");
    let next = house.crashed_and_started_again();
    assert_eq!(records(&next), records(&house));
    assert!(next.hub.store.http_record("early").is_some());
    let list = next.agent("a").ok("list_sessions", json!({})).await.structured.unwrap();
    assert_eq!(list["currentSession"], "x");
}

/// FACTS §2: old-era HTTP ids survive, with what their clients said at `initialize`.
#[tokio::test]
async fn http_sessions_survive_a_kill_and_their_number_is_bounded() {
    let house = House::new();
    let put = |id: &str, value: Value| house.hub.store.put_http(id, |record| record.initialize = Some(value));
    put("first", json!({"protocolVersion": "2025-11-25"})).written().await.unwrap();
    put("second", json!({})).written().await.unwrap();
    house.hub.store.drop_http("second").written().await.unwrap();
    let next = house.killed_and_started_again().await;
    let record = next.hub.store.http_record("first").unwrap();
    assert_eq!(record.initialize, Some(json!({"protocolVersion": "2025-11-25"})));
    assert!(next.hub.store.http_record("second").is_none());
    tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    for n in 0..5_000 {
        next.hub.store.put_http(&format!("{n}"), |_| {}).written().await.unwrap();
    }
    assert_eq!(next.hub.store.http_records().len(), 4_096);
    assert!(next.hub.store.http_record("first").is_none(), "the oldest are forgotten first");
    assert!(next.hub.store.http_record("4999").is_some());
    let last = next.killed_and_started_again().await;
    assert!(last.hub.store.http_records().len() <= 4_097);
}

/// C7: sessions of callers without a connection are nobody's orphans after a restart.
#[tokio::test]
async fn a_token_holders_session_is_no_orphan_after_a_restart() {
    let house = House::new();
    let token = || Identity::Token("ci".into());
    house.agent_as(token(), Link::None).ok("start_browser", json!({"sessionId": "x"})).await;
    let next = house.killed_and_started_again().await;
    assert_eq!(next.hub.look(|registry| registry.counts().orphaned), 0);
    assert_eq!(next.agent_as(token(), Link::None).eval("x", "1").await.unwrap(), "1");
}
