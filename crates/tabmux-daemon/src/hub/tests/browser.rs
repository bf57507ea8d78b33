//! What becomes of sessions when the browser ends, and of the pages that pages open.

use serde_json::json;
use tabmux_core::{Code, Identity, Link, TabId};

use tabmux_driver::{Certificates, ContextSpec, Domain, Domains, Emulation, Isolation, Proxy};
use tabmux_tools::OpenSession;

use crate::hub::{CallerOf, Profile};
use crate::settings::BrowserChoice;
use crate::testing::{House, Mood, eventually};

/// The contract: running calls end, each session's next call says it once, then the name starts afresh.
#[tokio::test]
async fn a_lost_browser_is_said_once_by_each_session_which_then_starts_afresh() {
    let house = House::new();
    let (one, other) = (house.agent("a"), house.agent("b"));
    for (agent, name) in [(&one, "x"), (&other, "y")] {
        agent.ok("start_browser", json!({"sessionId": name, "navigationUrl": "http://a.test/"})).await;
    }
    let running = one.begin("evaluate", json!({"script": "hang()"})).await;
    let waiting = one.begin("evaluate", json!({"script": "1"})).await;
    assert_eq!(other.code("evaluate", json!({"script": "endBrowser()"})).await, Code::BrowserCrashed);
    for call in [running, waiting] {
        assert_eq!(call.await.unwrap().unwrap_err().code, Code::BrowserCrashed);
    }
    for (agent, name) in [(&one, "x"), (&other, "y")] {
        let fault = agent.fault("evaluate", json!({"sessionId": name, "script": "1"})).await;
        assert_eq!((fault.code, fault.message.as_str()), (Code::BrowserCrashed, "The browser is gone: it ended."));
        assert!(agent.ok("list_pages", json!({})).await.structured.unwrap()["pages"].as_array().unwrap().is_empty());
        let said = agent.ok("navigate", json!({"sessionId": name, "url": "http://b.test/"})).await;
        assert_eq!((&said.result["tabId"], said.text.as_str()), (&json!("t2"), "Navigated to http://b.test/ — \"Fake page at b.test/\"."));
    }
}

/// Who tends the context may hear of its end only after the call that met it has been answered, and the next one begun.
#[tokio::test]
async fn a_lost_browser_is_lost_for_the_next_call_however_late_its_end_is_heard() {
    let (house, browser) = House::stubborn();
    browser.dies_quietly();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
    let session = house.session();
    assert_eq!(agent.code("evaluate", json!({"script": "endBrowser()"})).await, Code::BrowserCrashed);
    assert!(session.page(tabmux_core::TabId(1)).is_none(), "nobody meets what was in it");
    let said = agent.fault("evaluate", json!({"script": "1"})).await;
    assert_eq!(
        (said.code, said.hint.as_str()),
        (Code::BrowserCrashed, "Call navigate: it starts the session afresh, or says this once more and the call after it does.")
    );
}

/// The daemon may die before anybody was told: the next one says it, and a third one nothing any more.
#[tokio::test]
async fn a_lost_browser_is_said_once_whichever_daemon_says_it() {
    let house = House::new();
    house.agent("a").ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
    house.session().page(tabmux_core::TabId(1)).unwrap().evaluate("endBrowser()").await.unwrap_err();
    eventually("it is lost", || house.hub.look(|registry| registry.records().all(tabmux_core::Session::is_lost))).await;
    let next = house.killed_and_started_again().await;
    let said = next.agent("a").fault("list_pages", json!({})).await;
    assert_eq!((said.code, said.message.starts_with("The browser is gone: ")), (Code::BrowserCrashed, true), "{said:?}");
    let third = next.crashed_and_started_again();
    let said = third.agent("a").ok("navigate", json!({"sessionId": "x", "url": "http://b.test/"})).await;
    assert_eq!(said.result["tabId"], "t2");
}

#[tokio::test]
async fn news_of_a_lost_browser_are_forgotten_with_it() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    let session = house.session();
    // By itself, so that no reply takes the news along.
    session.page(tabmux_core::TabId(1)).unwrap().evaluate("window.open('http://b.test/')").await.unwrap();
    eventually("the popup is news", || session.waiting().1 == 1).await;
    session.page(tabmux_core::TabId(1)).unwrap().evaluate("endBrowser()").await.unwrap_err();
    eventually("its tabs are gone", || session.page(tabmux_core::TabId(1)).is_none()).await;
    assert_eq!(session.waiting().1, 0);
}

/// What a former daemon left went with its browser: said once, and the session starts afresh.
#[tokio::test]
async fn a_browser_that_did_not_survive_the_restart_is_said_once() {
    let (house, browser) = House::stubborn();
    house.agent("a").ok("start_browser", json!({"sessionId": "x"})).await;
    browser.adopts(&[Mood::Fail]);
    let next = house.killed_and_started_beside(&browser).await;
    let agent = next.agent("a");
    let slow = next.hub.store.stall();
    let told = agent.begin("evaluate", json!({"script": "1"})).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!told.is_finished(), "the daemon after this one would say it again");
    drop(slow);
    let fault = told.await.unwrap().unwrap_err();
    assert!(fault.code == Code::BrowserCrashed && !fault.hint.contains("restore"), "nothing was saved: {fault}");
    let said = agent.ok("navigate", json!({"sessionId": "x", "url": "http://a.test/"})).await;
    assert_eq!(said.result["tabId"], "t2");
}

/// S4.23
#[tokio::test]
async fn a_page_that_a_page_opens_is_a_tab_of_its_session_and_no_other() {
    let house = House::new();
    let (agent, other) = (house.agent("a"), house.agent("b"));
    for agent in [&agent, &other] {
        agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    }
    let opened = agent.ok("evaluate", json!({"script": "window.open('http://popup.test/')"})).await;
    let pages = async |agent: &crate::testing::Agent| {
        agent.ok("list_pages", json!({})).await.structured.unwrap()["pages"].as_array().unwrap().len()
    };
    assert!(opened.text.contains("A page opened tab t2; select_page goes there."), "{}", opened.text);
    assert_eq!(pages(&agent).await, 2);
    assert!(agent.ok("evaluate", json!({"script": "location.href"})).await.text.contains("http://a.test/"), "the current tab stays");
    agent.ok("select_page", json!({"tabId": "t2"})).await;
    assert!(agent.ok("evaluate", json!({"script": "location.href"})).await.text.contains("http://popup.test/"));
    assert_eq!(pages(&other).await, 1);
}

/// Closed or left behind by a move before anybody heard of it, it is nowhere to go.
#[tokio::test]
async fn a_popup_that_is_gone_is_not_told() {
    for (tool, args) in [("close_page", json!({"tabId": "t2"})), ("migrate", json!({"isolation": "browser"}))] {
        let house = House::new();
        let agent = house.agent("a");
        agent.ok("start_browser", json!({"sessionId": "x", "navigationUrl": "http://a.test/"})).await;
        let session = house.session();
        session.page(TabId(1)).unwrap().evaluate("window.open('http://popup.test/')").await.unwrap();
        eventually("it is news", || session.waiting().1 == 1).await;
        let said = agent.ok(tool, args).await.text;
        assert!(!said.contains("A page opened"), "{tool}: {said}");
        assert!(!agent.ok("list_pages", json!({})).await.text.contains("A page opened"), "{tool}");
    }
}

#[tokio::test]
async fn a_popup_beyond_the_bound_of_tabs_is_closed_again() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("navigate", json!({"url": "http://a.test/"})).await;
    while agent.call("new_page", json!({})).await.is_ok() {}
    let tabs = || house.hub.look(|registry| registry.list_all()[0].session.tabs.len());
    let full = tabs();
    agent.ok("evaluate", json!({"script": "window.open('http://popup.test/')"})).await;
    agent.ok("close_page", json!({"pageIdx": 0})).await;
    agent.ok("evaluate", json!({"script": "window.open('http://second.test/')"})).await;
    eventually("the second popup joins", || tabs() == full).await;
    let listed = agent.ok("list_pages", json!({})).await.structured.unwrap();
    let urls: Vec<_> = listed["pages"].as_array().unwrap().iter().map(|page| page["url"].as_str().unwrap().to_owned()).collect();
    assert!(urls.contains(&"http://second.test/".to_owned()) && !urls.contains(&"http://popup.test/".to_owned()), "{urls:?}");
}

#[tokio::test]
async fn a_browser_that_is_not_there_takes_no_seat_and_says_what_to_do() {
    let house = House::with(|settings| settings.browser = BrowserChoice::Named(Some("/nowhere/chromium".into())));
    let agent = house.agent("a");
    for (tool, args) in [("start_browser", json!({})), ("navigate", json!({"url": "http://a.test/"}))] {
        let fault = agent.fault(tool, args).await;
        assert_eq!(fault.code, Code::BrowserNotFound);
        assert!(fault.message.contains("/nowhere/chromium") && fault.hint.contains("TABMUX_BROWSER"), "{fault}");
    }
    assert_eq!(house.sessions(), 0);
}

/// What a peer's flags and a call ask for reaches the browser, and what was recorded does so again after a restart.
#[tokio::test]
async fn a_context_is_made_as_the_flags_and_the_call_ask_for() {
    let (house, browser) = House::stubborn();
    let flags = json!({"viewportSize": "640x400", "ignoreHttpsErrors": true, "storageState": {"cookies": []}});
    let profile = Profile { defaults: flags.as_object().cloned().unwrap(), ..Profile::default() };
    let flagged = house.agent_with(Identity::Secret("a".into()), Link::Connection, profile);
    flagged.ok("start_browser", json!({"sessionId": "x", "headless": false, "isolation": "browser"})).await;
    let spec = ContextSpec {
        isolation: Isolation::Browser,
        headless: Some(false),
        certificates: Certificates::Ignored,
        emulation: Emulation { viewport: Some((640, 400)), ..Emulation::default() },
        viewport: Some((640, 400)),
        ..ContextSpec::default()
    };
    house.agent("b").ok("start_browser", json!({})).await;
    let mut specs = browser.specs();
    assert!(specs[0].source.take().is_some(), "it begins with the storage state");
    assert_eq!(specs, [spec.clone(), ContextSpec::default()]);
    browser.adopts(&[Mood::Fail]);
    let next = house.killed_and_started_beside(&browser).await;
    let back = next.agent("a");
    assert_eq!(back.code("evaluate", json!({"sessionId": "x", "script": "1"})).await, Code::BrowserCrashed);
    back.ok("navigate", json!({"sessionId": "x", "url": "http://a.test/"})).await;
    // Cookies and storage are never written down, so a session that starts afresh after that begins without them.
    assert_eq!(browser.specs()[2..], [spec]);
}

/// In somebody's own browser a session has a window of it; what begins with something needs a world of its own there too.
#[tokio::test]
async fn a_session_in_an_attached_browser_has_a_window_of_it_or_a_world_of_its_own() {
    let (ours, theirs) = ("http://127.0.0.1:9222", "http://127.0.0.1:9333");
    let house = House::with(|settings| settings.attach.endpoint = Some(ours.to_owned()));
    let state = crate::storage_state::parse(&json!({"cookies": []})).unwrap();
    house.hub.profiles().create("work", &state, None).unwrap();
    let proxy = Proxy { server: "http://proxy.test:3128".into(), bypass: None, credentials: None };
    let plain = OpenSession::default();
    for (flags, open, isolation, endpoint) in [
        (json!({}), plain.clone(), Isolation::Window, ours),
        (json!({"cdpEndpoint": theirs}), plain.clone(), Isolation::Window, theirs),
        (json!({"storageState": {"cookies": []}}), plain.clone(), Isolation::Context, ours),
        (json!({}), OpenSession { proxy: Some(proxy), ..plain.clone() }, Isolation::Context, ours),
        (json!({}), OpenSession { from: Some("profile:work".into()), ..plain.clone() }, Isolation::Context, ours),
        (json!({}), OpenSession { isolation: Some(Isolation::Tab), ..plain }, Isolation::Tab, ours),
    ] {
        let profile = Profile { defaults: flags.as_object().cloned().unwrap(), ..Profile::default() };
        let agent = house.agent_with(Identity::Operator, Link::None, profile);
        let opened = house.hub.reserve(&CallerOf::of(agent.client), &open).unwrap();
        let spec = house.hub.handle(opened.session).unwrap().spec();
        assert_eq!((spec.isolation, spec.endpoint.as_deref()), (isolation, Some(endpoint)), "{flags} {open:?}");
    }
}

/// What would go around the allowed sites is refused before anything is made for it.
#[tokio::test]
async fn a_session_is_kept_to_the_allowed_sites_from_the_start() {
    let allowed = Domains::new(vec![Domain::parse("a.test").unwrap()], Vec::new()).unwrap();
    let house = House::with(|settings| settings.chromium.domains = allowed);
    let agent = house.agent("a");
    let profile = Profile { defaults: json!({"cdpEndpoint": "auto"}).as_object().cloned().unwrap(), ..Profile::default() };
    let attaching = house.agent_with(Identity::Operator, Link::None, profile);
    for (agent, args) in [
        (&agent, json!({"navigationUrl": "http://b.test/"})),
        (&agent, json!({"proxy": "http://proxy.test:3128"})),
        (&attaching, json!({})),
    ] {
        assert_eq!(agent.code("start_browser", args.clone()).await, Code::PolicyDenied, "{args}");
    }
    assert_eq!((house.sessions(), &house.hub.status().await["browsers"]), (0, &json!([])));
    agent.ok("start_browser", json!({"navigationUrl": "http://a.test/"})).await;
    for tool in ["navigate", "new_page"] {
        assert_eq!(agent.code(tool, json!({"url": "http://b.test/"})).await, Code::PolicyDenied, "{tool}");
    }
}

/// Its cookies would be those of everybody who shares the profile.
#[tokio::test]
async fn a_storage_state_goes_into_no_shared_profile() {
    let house = House::new();
    let profile = Profile { defaults: json!({"storageState": {"cookies": []}}).as_object().cloned().unwrap(), ..Profile::default() };
    let agent = house.agent_with(Identity::Operator, Link::None, profile);
    for isolation in ["tab", "window"] {
        let fault = agent.fault("start_browser", json!({"isolation": isolation})).await;
        assert!(fault.code == Code::Unsupported && fault.message.contains(isolation), "{fault}");
    }
    assert_eq!(house.sessions(), 0);
    agent.ok("start_browser", json!({"isolation": "browser"})).await;
}

#[tokio::test]
async fn a_viewport_that_is_none_is_refused() {
    let house = House::new();
    for size in [json!("640"), json!("x"), json!("640xhigh"), json!(640)] {
        let profile = Profile { defaults: json!({"viewportSize": size}).as_object().cloned().unwrap(), ..Profile::default() };
        let agent = house.agent_with(Identity::Operator, Link::None, profile);
        let fault = agent.fault("start_browser", json!({})).await;
        assert!(fault.code == Code::BadArgument && fault.message.contains(&size.to_string()), "{fault}");
    }
    assert_eq!(house.sessions(), 0);
}

/// S3.25: only what a former daemon left starts afresh, and only when its browser is gone; a session that could not be made is over.
#[tokio::test]
async fn a_session_that_cannot_be_made_or_found_again_is_over() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    browser.opens(&[Mood::Fail]);
    assert_eq!(agent.code("navigate", json!({"url": "http://a.test/"})).await, Code::BrowserCrashed);
    eventually("nothing is left of it", || house.sessions() == 0).await;
    agent.ok("start_browser", json!({"sessionId": "x"})).await;
    browser.adopts(&[Mood::Refuse]);
    let next = house.killed_and_started_beside(&browser).await;
    assert_eq!(next.agent("a").code("evaluate", json!({"sessionId": "x", "script": "1"})).await, Code::SessionClosed);
    eventually("it is closed", || next.sessions() == 0).await;
}
