//! Sessions shared with others, handed over, and what is told of it where.

use std::time::Duration;

use serde_json::{Value, json};
use tabmux_core::{Code, Identity, Link, TabId};
use tokio::time::{pause, resume};

use crate::testing::{Agent, House, eventually};

/// Shares the caller's session and gives the capability.
async fn share(agent: &Agent, args: Value) -> String {
    let said = agent.ok("share_session", args).await;
    let capability = said.result["capability"].as_str().unwrap().to_owned();
    assert!(said.text.contains(&capability), "it is said once, here: {}", said.text);
    capability
}

async fn two() -> (House, Agent, Agent) {
    let house = House::new();
    let (owner, other) = (house.agent("owner"), house.agent("other"));
    owner.ok("start_browser", json!({"sessionId": "web", "navigationUrl": "http://a.test/"})).await;
    (house, owner, other)
}

fn audit(house: &House) -> Vec<Value> {
    let text = std::fs::read_to_string(house.dir.path().join("state/audit.jsonl")).unwrap_or_default();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn told(house: &House) -> Vec<String> {
    let line = |line: &Value| ["event", "tool", "outcome", "caller"].map(|member| line[member].as_str().unwrap_or("-")).join(" ");
    audit(house).iter().map(line).collect()
}

/// S1.42
#[tokio::test]
async fn who_may_read_sees_the_page_and_changes_nothing() {
    let (house, owner, other) = two().await;
    owner.ok("new_page", json!({"url": "http://b.test/"})).await;
    let capability = share(&owner, json!({})).await;
    let at = |tab: Option<&str>| json!({"sessionId": capability, "tabId": tab});
    let said = other.ok("snapshot", at(Some("t1"))).await;
    assert_eq!((&said.result["sessionId"], &said.result["url"]), (&json!("web"), &json!("http://a.test/")));
    let current = house.hub.look(|registry| registry.records().next().and_then(|session| session.current_tab));
    assert_eq!(current, Some(TabId(2)), "the driver's current tab stays");
    other.ok("list_pages", at(None)).await;
    other.ok("wait_for", json!({"sessionId": capability, "url": "b.test"})).await;
    for (tool, args) in [
        ("navigate", json!({"url": "http://c.test/"})),
        ("evaluate", json!({"script": "count()"})),
        ("new_page", json!({})),
        ("select_page", json!({"pageIdx": 0})),
        ("close_page", json!({"pageIdx": 0})),
        ("handle_dialog", json!({"accept": true})),
        ("wait_for", json!({"function": "count()"})),
        ("screenshot", json!({"file": "/tmp/x.png"})),
        ("cookies", json!({})),
        ("close_session", json!({})),
        ("share_session", json!({"mode": "act"})),
    ] {
        let mut args = args;
        args["sessionId"] = json!(capability);
        assert_eq!(other.code(tool, args).await, Code::PolicyDenied, "{tool}");
    }
    assert_eq!(owner.eval("web", "count()").await.unwrap(), "1", "nothing ran");
}

#[tokio::test]
async fn everybody_who_may_act_hears_news_and_takes_them_from_nobody() {
    let (house, owner, other) = two().await;
    let reading = share(&owner, json!({})).await;
    drop(house.session().page(TabId(1)).unwrap().evaluate("crash()").await);
    eventually("the news is in", || house.session().waiting().1 == 1).await;
    assert!(!other.ok("list_pages", json!({"sessionId": reading})).await.text.contains("Tab t1 crashed"));
    assert!(owner.ok("list_pages", json!({})).await.text.contains("Tab t1 crashed"));
    let acting = share(&owner, json!({"mode": "act"})).await;
    owner.ok("new_page", json!({})).await;
    drop(house.session().page(TabId(2)).unwrap().evaluate("crash()").await);
    eventually("the news is in", || house.session().waiting().1 == 1).await;
    for who in [(&other, json!({"sessionId": acting})), (&house.operator(), json!({"sessionId": "web"})), (&owner, json!({}))] {
        let hears = async || who.0.ok("list_pages", who.1.clone()).await.text.contains("Tab t2 crashed");
        assert_eq!((hears().await, hears().await), (true, false), "once");
    }
}

/// A call without a tab means the tab that its caller was last at, whatever others did meanwhile.
#[tokio::test]
async fn nobody_else_moves_the_owner_to_another_tab() {
    let (house, owner, other) = two().await;
    let at = share(&owner, json!({"mode": "act"})).await;
    let (theirs, operators) =
        (json!({"sessionId": at, "url": "http://theirs.test/"}), json!({"sessionId": "web", "url": "http://operators.test/"}));
    other.ok("new_page", theirs).await;
    house.operator().ok("new_page", operators).await;
    let said = owner.eval("web", "location.href").await.unwrap();
    let news: Vec<&str> = said.lines().collect();
    assert_eq!(
        news,
        [
            "Somebody this session is shared with opened tab t2; select_page goes there.",
            "The operator opened tab t3; select_page goes there.",
            "\"http://a.test/\""
        ]
    );
    assert!(other.eval(&at, "location.href").await.unwrap().ends_with("\"http://theirs.test/\""), "its own doing is no news");
    other.ok("select_page", json!({"sessionId": at, "tabId": "t1"})).await;
    other.ok("select_page", json!({"sessionId": at, "tabId": "t2"})).await;
    assert_eq!(owner.eval("web", "location.href").await.unwrap(), "\"http://a.test/\"");
    other.ok("close_page", json!({"sessionId": at, "tabId": "t2"})).await;
    assert_eq!(other.eval(&at, "location.href").await.unwrap(), "\"http://a.test/\"", "its own is gone: the driver's");
    assert!(owner.eval("web", "1").await.unwrap().starts_with("Somebody this session is shared with closed tab t2."));
}

/// The contract's "says it once" is for each who uses the session.
#[tokio::test]
async fn a_lost_browser_is_said_to_the_owner_whoever_heard_it_first() {
    let (house, owner, other) = two().await;
    let (reading, acting) = (share(&owner, json!({})).await, share(&owner, json!({"mode": "act"})).await);
    let quiet = share(&owner, json!({})).await;
    for knows in [&reading, &quiet] {
        other.ok("list_pages", json!({"sessionId": knows})).await;
    }
    house.session().page(TabId(1)).unwrap().evaluate("endBrowser()").await.unwrap_err();
    eventually("it is known", || house.hub.look(|registry| registry.counts().lost) == 1).await;
    assert_eq!(other.code("list_pages", json!({"sessionId": reading})).await, Code::BrowserCrashed);
    let web = json!({"sessionId": "web"});
    assert_eq!(house.operator().code("list_pages", web.clone()).await, Code::BrowserCrashed);
    assert_eq!(other.code("navigate", json!({"sessionId": acting, "url": "http://b.test/"})).await, Code::BrowserCrashed);
    other.ok("navigate", json!({"sessionId": acting, "url": "http://b.test/"})).await;
    assert_eq!(owner.code("evaluate", json!({"script": "1"})).await, Code::BrowserCrashed, "though it has another by now");
    owner.ok("evaluate", json!({"script": "1"})).await;
    assert_eq!(other.code("list_pages", json!({"sessionId": quiet})).await, Code::BrowserCrashed, "who knew its pages");
    let late = share(&owner, json!({})).await;
    house.agent("late").ok("list_pages", json!({"sessionId": late})).await;
}

/// A grant is for what is on the pages; a copy of the session would be all of it, for good.
#[tokio::test]
async fn no_grant_is_enough_to_copy_the_sessions_logins() {
    let (house, owner, other) = two().await;
    for mode in ["read", "act"] {
        let capability = share(&owner, json!({"mode": mode})).await;
        let fault = other.fault("start_browser", json!({"from": capability})).await;
        assert!(fault.code == Code::PolicyDenied && !fault.to_string().contains(&capability), "{fault}");
    }
    assert_eq!(house.sessions(), 1);
}

/// What a grant is for are the session's pages. Whether it ends, where it lives, what it goes on with and whose it is, its owner says.
#[tokio::test]
async fn what_becomes_of_a_session_is_its_owners_affair() {
    let (house, owner, other) = two().await;
    let capability = share(&owner, json!({"mode": "act"})).await;
    for (tool, args) in [
        ("close_session", json!({})),
        ("migrate", json!({"isolation": "browser"})),
        ("restore", json!({})),
        ("fork", json!({})),
        ("set_current_session", json!({})),
        ("share_session", json!({"mode": "hand_over"})),
    ] {
        let mut args = args;
        args["sessionId"] = json!(capability);
        let fault = other.fault(tool, args.clone()).await;
        assert_eq!(fault.code, Code::PolicyDenied, "{tool}: {fault}");
        let step = json!({"action": tool, "isolation": args["isolation"]});
        if tool == "migrate" {
            let fault = other.fault("execute_sequence", json!({"sessionId": capability, "actions": [step]})).await;
            assert!(fault.to_string().contains("policy_denied"), "nor step by step: {fault}");
        }
    }
    let holder = house.agent_as(Identity::Grant(house.hub.holder(&capability).unwrap()), Link::Connection);
    assert_eq!(holder.code("migrate", json!({"isolation": "browser"})).await, Code::PolicyDenied);
    assert_eq!((holder.code("fork", json!({})).await, house.sessions()), (Code::PolicyDenied, 1));
    let closed = holder.ok("close_all_sessions", json!({})).await;
    assert_eq!(closed.text, "There was no session to close.", "what is shared is not its own");
    assert_eq!(owner.eval("web", "location.href").await.unwrap(), "\"http://a.test/\"");
    share(&other, json!({"sessionId": capability, "mode": "read"})).await;
    owner.ok("migrate", json!({"isolation": "browser"})).await;
    let whole = share(&owner, json!({"mode": "hand_over"})).await;
    other.ok("migrate", json!({"sessionId": whole, "isolation": "context"})).await;
    assert_eq!(house.hub.holder(&whole), None, "who took it over is not whoever shows it again");
    assert_eq!(house.hub.holder(&format!("tmx_{}", "0".repeat(64))), None);
}

/// Whoever comes first has it, and nobody else, however many come at the same moment.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_grant_for_one_call_is_used_once_also_by_two_at_once() {
    let (house, owner, _) = two().await;
    let agents = ["a", "b", "c", "d"].map(|name| house.agent(name));
    for _ in 0..20 {
        let capability = share(&owner, json!({"mode": "act", "once": true})).await;
        let calls: Vec<_> = agents
            .iter()
            .map(|agent| {
                let (agent, capability) = (agent.clone(), capability.clone());
                tokio::spawn(async move { agent.eval(&capability, "1").await.map_err(|fault| fault.code) })
            })
            .collect();
        let mut outcomes = Vec::new();
        for call in calls {
            outcomes.push(call.await.unwrap());
        }
        outcomes.sort_by_key(Result::is_err);
        let gone = || Err(Code::SessionNotFound);
        assert_eq!(outcomes, [Ok("1".to_owned()), gone(), gone(), gone()]);
    }
}

/// What is not on a page of an allowed site is not told: where others are, what they asked for, what they logged, what happened to them.
#[tokio::test]
async fn who_may_see_some_sites_hears_nothing_of_the_others() {
    let (house, owner, other) = two().await;
    owner.ok("navigate", json!({"url": "http://bank.test/account"})).await;
    owner.eval("web", "error(\"balance\")").await.unwrap();
    owner.ok("navigate", json!({"url": "http://a.test/two"})).await;
    let capability = share(&owner, json!({"mode": "act", "domains": ["a.test"]})).await;
    let with = |mut args: Value| {
        args["sessionId"] = json!(capability);
        args
    };
    let requests = other.ok("network", with(json!({}))).await;
    let listed = requests.structured.unwrap()["requests"].clone();
    let urls: Vec<_> = listed.as_array().unwrap().iter().map(|request| request["url"].as_str().unwrap()).collect();
    assert_eq!(urls, ["http://a.test/", "http://a.test/two"], "{}", requests.text);
    assert!(requests.text.contains("1 request to sites that the grant is not for") && !requests.text.contains("bank"), "{}", requests.text);
    assert_eq!(other.code("console", with(json!({}))).await, Code::PolicyDenied);
    let clicked = other.ok("click_element", with(json!({"selector": "#go"}))).await.text;
    assert!(clicked.starts_with("Clicked ") && !clicked.contains("balance"), "{clicked}");
    let holder = house.agent_as(Identity::Grant(house.hub.holder(&capability).unwrap()), Link::Connection);
    let url = async |agent: &Agent| agent.ok("list_sessions", json!({})).await.structured.unwrap()["sessions"][0]["url"].clone();
    assert_eq!(url(&holder).await, "http://a.test/two");
    owner.ok("new_page", json!({"url": "http://bank.test/account"})).await;
    assert_eq!((url(&holder).await, url(&owner).await), (Value::Null, json!("http://bank.test/account")));
    let shown = house.hub.sessions(holder.client, false).await.unwrap();
    assert!(!shown.to_string().contains("bank"), "nor on the command line: {shown}");
    drop(house.session().page(TabId(2)).unwrap().evaluate("crash()").await);
    eventually("the news is in", || house.session().waiting().1 == 1).await;
    assert!(!other.ok("list_pages", with(json!({}))).await.text.contains("t2"));
    let refused = other.fault("read_text", with(json!({"tabId": "t2"}))).await;
    assert_eq!(refused.code, Code::PolicyDenied);
    let told = owner.ok("list_pages", json!({})).await.text;
    assert!(told.contains("Tab t2 crashed"), "{told}");
    assert!(owner.ok("console", json!({"tabId": "t1"})).await.text.contains("balance"), "it was nobody else's to take");
}

/// A sub-agent or another client needs nothing but the one string, on whatever it calls.
#[tokio::test]
async fn who_may_act_works_with_the_capability_alone() {
    let (house, owner, _) = two().await;
    let capability = share(&owner, json!({"mode": "act"})).await;
    let stranger = house.agent_as(Identity::Nobody, Link::None);
    assert_eq!(stranger.eval(&capability, "location.href").await.unwrap(), "\"http://a.test/\"");
    let actions = json!([{"action": "navigate", "url": "http://b.test/"}, {"action": "evaluate", "script": "location.href", "save": "at"}]);
    let said = stranger.ok("execute_sequence", json!({"sessionId": capability, "actions": actions})).await;
    assert!(said.text.contains("http://b.test/") && !said.text.contains(&capability), "{}", said.text);
    let code = stranger.code("execute_sequence", json!({"sessionId": capability, "actions": [{"action": "share_session"}]})).await;
    assert_eq!(code, Code::BadArgument, "its answer would be hidden");
    let holder = house.agent_as(Identity::Grant(house.hub.holder(&capability).unwrap()), Link::Connection);
    let said = holder.ok("evaluate", json!({"script": "location.href"})).await;
    assert!(said.text.starts_with("\"http://b.test/\""), "{}", said.text);
    assert_eq!(holder.ok("list_sessions", json!({})).await.structured.unwrap()["currentSession"], "web");
    assert_eq!(holder.code("start_browser", json!({})).await, Code::PolicyDenied);
    holder.goodbye();
    assert_eq!(house.sessions(), 1, "it was not its to close");
}

#[tokio::test]
async fn a_grant_for_some_sites_ends_at_their_borders() {
    let (house, owner, other) = two().await;
    owner.ok("navigate", json!({"url": "http://b.test/"})).await;
    owner.ok("new_page", json!({"url": "http://bank.test/?title=Balance"})).await;
    owner.ok("select_page", json!({"tabId": "t1"})).await;
    let capability = share(&owner, json!({"mode": "act", "domains": ["b.test"]})).await;
    let with = |mut args: Value| {
        args["sessionId"] = json!(capability);
        args
    };
    assert!(other.ok("evaluate", with(json!({"script": "location.href"}))).await.text.starts_with("\"http://b.test/\""));
    let pages = other.ok("list_pages", with(json!({}))).await;
    assert!(!pages.text.contains("bank") && !pages.text.contains("Balance"), "{}", pages.text);
    for (tool, args) in [
        ("navigate", json!({"url": "http://bank.test/"})),
        ("navigate", json!({"url": "data:text/html,x"})),
        ("new_page", json!({"url": "http://b.test.evil.test/"})),
        ("read_text", json!({"tabId": "t2"})),
        ("select_page", json!({"tabId": "t2"})),
        ("close_page", json!({"tabId": "t2"})),
        ("cookies", json!({})),
        ("downloads", json!({})),
        ("emulate", json!({"locale": "de"})),
        ("emulate", json!({"reset": true})),
        ("navigate", json!({"back": true})),
        // That last one went: where it is now is out of reach.
        ("snapshot", json!({})),
    ] {
        let fault = other.fault(tool, with(args)).await;
        assert_eq!(fault.code, Code::PolicyDenied, "{tool}: {fault}");
        assert!(!fault.to_string().contains("Balance"), "{fault}");
    }
    other.ok("new_page", with(json!({"url": "http://sub.b.test/"}))).await;
    assert_eq!(house.hub.look(|registry| registry.records().next().map(|session| session.tabs.len())), Some(3));
}

#[tokio::test]
async fn a_grant_runs_out_and_takes_what_it_runs_along() {
    let (house, owner, other) = two().await;
    house.keep_time();
    let capability = share(&owner, json!({"mode": "act", "ttl": "90s"})).await;
    let once = share(&owner, json!({"mode": "act", "once": true})).await;
    assert_eq!(other.eval(&once, "1").await.unwrap(), "1");
    assert_eq!(other.eval(&once, "1").await.unwrap_err().code, Code::SessionNotFound);
    let hanging = other.begin("evaluate", json!({"sessionId": capability, "script": "hang()", "timeout": 600_000})).await;
    pause();
    tokio::time::sleep(Duration::from_secs(91)).await;
    resume();
    assert_eq!(hanging.await.unwrap().unwrap_err().code, Code::OutcomeUnknown, "long before its own deadline");
    assert_eq!(told(&house).last().map(String::as_str), Some("used evaluate outcome_unknown secret:other"));
    assert_eq!(other.eval(&capability, "1").await.unwrap_err().code, Code::SessionNotFound);
    assert_eq!(owner.eval("web", "1").await.unwrap(), "1", "the session goes on");
}

#[tokio::test]
async fn a_revoked_grant_stays_revoked_and_a_live_one_lives_after_a_crash() {
    let (house, owner, other) = two().await;
    let [revoked, kept, timed] = [
        share(&owner, json!({"mode": "act"})).await,
        share(&owner, json!({"mode": "act"})).await,
        share(&owner, json!({"ttl": "1h"})).await,
    ];
    let narrower = share(&other, json!({"sessionId": kept, "tools": ["read_text"]})).await;
    let listed = owner.ok("share_session", json!({"list": true})).await;
    assert_eq!(listed.structured.unwrap()["grants"].as_array().unwrap().len(), 4);
    let fault = other.fault("share_session", json!({"revoke": revoked})).await;
    assert!(fault.code == Code::BadArgument && !fault.to_string().contains(&revoked), "{fault}");
    let id = owner.ok("share_session", json!({"revoke": revoked})).await.structured.unwrap()["revoked"][0]["grant"].clone();
    assert!(id.as_str().unwrap().starts_with("g_"), "{id}");
    // Nothing more is awaited: what was answered is on disk.
    let next = house.crashed_and_started_again();
    let other = next.agent("other");
    assert_eq!(other.eval(&revoked, "1").await.unwrap_err().code, Code::SessionNotFound);
    assert_eq!(other.eval(&kept, "1").await.unwrap(), "1");
    other.ok("read_text", json!({"sessionId": narrower})).await;
    other.ok("read_text", json!({"sessionId": timed})).await;
    assert_eq!(other.code("snapshot", json!({"sessionId": narrower})).await, Code::PolicyDenied);
    let left = next.agent("owner").ok("share_session", json!({"list": true})).await.structured.unwrap();
    let left = left["grants"].as_array().unwrap().iter().find_map(|grant| grant["left_ms"].as_u64()).unwrap();
    assert!((3_500_000..3_600_000).contains(&left), "{left}");
    next.hub.store.fell_behind();
    next.hub.compact_when_long();
    let last = next.killed_and_started_again().await;
    assert_eq!(last.agent("other").eval(&kept, "1").await.unwrap(), "1", "also out of a snapshot");
}

/// S1.42, C-epoch: the first use takes over; what the former driver still had queued, and what it asks later, is stale.
#[tokio::test]
async fn a_session_that_is_handed_over_is_its_new_drivers_and_stale_to_the_former() {
    let (house, owner, other) = two().await;
    owner.eval("web", "document.cookie = \"k=v\"").await.unwrap();
    let capability = share(&owner, json!({"mode": "hand_over"})).await;
    let running = owner.begin("evaluate", json!({"script": "sleep(50)"})).await;
    let waiting = owner.begin("evaluate", json!({"script": "count()"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    let first = other.eval(&capability, "document.cookie").await.unwrap();
    assert!(first.lines().any(|line| line == "\"k=v\""), "pages and logins as they were: {first}");
    assert!(!running.await.unwrap().unwrap().text.contains("took over"), "what ran may finish, and reads nobody else's news");
    assert!(first.starts_with("You took over session 'web'"), "{first}");
    assert_eq!(waiting.await.unwrap().unwrap_err().code, Code::StaleEpoch);
    for args in [json!({}), json!({"sessionId": "web"}), json!({"sessionId": "web"})] {
        let fault = owner.fault("read_text", args).await;
        assert_eq!(fault.code, Code::StaleEpoch);
        assert!(fault.message.contains("handed over"), "{fault}");
    }
    assert_eq!(owner.code("navigate", json!({"url": "http://c.test/"})).await, Code::StaleEpoch, "it does not begin anew unawares");
    assert_eq!(owner.code("close_session", json!({"sessionId": "web"})).await, Code::StaleEpoch);
    assert_eq!(other.eval("web", "count()").await.unwrap(), "1", "the stale call was not run");
    assert_eq!(other.ok("list_sessions", json!({})).await.structured.unwrap()["currentSession"], "web");
    let next = house.killed_and_started_again().await;
    let (owner, other) = (next.agent("owner"), next.agent("other"));
    assert_eq!(owner.code("read_text", json!({"sessionId": "web"})).await, Code::StaleEpoch, "the next daemon knows it too");
    assert_eq!(other.eval(&capability, "1").await.unwrap(), "1");
    owner.ok("start_browser", json!({"sessionId": "web"})).await;
    assert_eq!(owner.eval("web", "location.href").await.unwrap(), "\"about:blank\"", "its own again");
}

/// The capability is in the answer that gives it, and nowhere else.
#[tokio::test]
async fn a_capability_is_told_once_and_written_nowhere() {
    let (house, owner, other) = two().await;
    let capability = share(&owner, json!({"mode": "act", "domains": ["a.test"]})).await;
    let script = format!("document.body.append(\"{capability}\")");
    let mut answers = Vec::new();
    for (agent, tool, args) in [
        (&owner, "share_session", json!({"list": true})),
        (&other, "evaluate", json!({"sessionId": capability, "script": script})),
        (&other, "read_text", json!({"sessionId": capability})),
        (&other, "navigate", json!({"sessionId": capability, "url": format!("http://a.test/?title={capability}")})),
        (&other, "list_pages", json!({"sessionId": capability})),
        (&other, "evaluate", json!({"sessionId": capability, "script": format!("throw(\"{capability}\")")})),
        (&other, "evaluate", json!({"sessionId": capability, "tabId": capability, "script": "1"})),
        (&other, "no_such_tool", json!({"sessionId": capability})),
        (&other, "navigate", json!({"sessionId": capability, "url": format!("http://b.test/{capability}")})),
        (&other, "share_session", json!({"sessionId": capability, "ttl": capability})),
        (&other, "share_session", json!({"revoke": capability})),
        (&owner, "share_session", json!({"revoke": capability})),
        (&other, "read_text", json!({"sessionId": capability})),
        (&other, "set_current_session", json!({"sessionId": capability})),
        (&other, "execute_sequence", json!({"actions": [{"action": "read_text", "sessionId": capability}]})),
        (&owner, "start_browser", json!({"sessionId": capability})),
    ] {
        answers.push(format!("{:?}", agent.answer(tool, args).await));
    }
    assert!(answers.iter().all(|answer| !answer.contains(&capability)), "{answers:#?}");
    house.on_disk().await;
    let kept = std::fs::read_dir(house.dir.path().join("state")).unwrap();
    let kept: Vec<_> = kept.filter_map(|entry| std::fs::read(entry.unwrap().path()).ok()).collect();
    assert!(kept.len() >= 2 && kept.iter().all(|file| !String::from_utf8_lossy(file).contains(&capability)));
}

#[tokio::test]
async fn every_use_of_a_grant_is_in_the_audit_log() {
    let (house, owner, other) = two().await;
    let capability = share(&owner, json!({"tools": ["read_text"], "ttl": "1h"})).await;
    other.ok("read_text", json!({"sessionId": capability})).await;
    other.code("snapshot", json!({"sessionId": capability})).await;
    other.code("read_text", json!({"sessionId": format!("tmx_{}", "0".repeat(64))})).await;
    owner.ok("share_session", json!({"revoke": "all"})).await;
    // To try one that is over is worth a note; to make one up is not.
    other.code("read_text", json!({"sessionId": capability})).await;
    let whole = share(&owner, json!({"mode": "hand_over"})).await;
    other.ok("read_text", json!({"sessionId": whole})).await;
    other.ok("read_text", json!({"sessionId": whole})).await;
    let lines = audit(&house);
    assert_eq!(
        told(&house),
        [
            "made - - secret:owner",
            "used read_text ok secret:other",
            "used snapshot policy_denied secret:other",
            "revoked - - secret:owner",
            "used read_text session_not_found secret:other",
            "made - - secret:owner",
            "handed_over read_text ok secret:other",
        ]
    );
    let id = house.hub.look(|registry| registry.records().next().map(|session| session.id.to_string()));
    for line in &lines {
        assert_eq!(line["session"].as_str(), id.as_deref());
        assert!(line["grant"].as_str().unwrap().starts_with("g_") && line["time"].as_str().unwrap().ends_with('Z'), "{line}");
    }
    let hanging = owner.code("read_text", json!({})).await;
    assert_eq!((hanging, audit(&house).len()), (Code::StaleEpoch, 7), "what needs no grant is not in it");
}

/// Also of who is nothing but a capability's holder; a hand-over is noted with the epoch it began.
/// Also as a source, and one that is used up: by anybody but who took the session over.
#[tokio::test]
async fn a_capability_tried_in_vain_is_in_the_audit_log() {
    let (house, owner, other) = two().await;
    let capability = share(&owner, json!({})).await;
    other.code("start_browser", json!({"from": capability})).await;
    let whole = share(&owner, json!({"mode": "hand_over"})).await;
    let (third, before) = (house.agent("third"), told(&house).len());
    other.ok("read_text", json!({"sessionId": whole})).await;
    for late in [&third, &owner, &other] {
        drop(late.call("read_text", json!({"sessionId": whole})).await);
    }
    house.hub.holder(&whole);
    let noted = told(&house);
    assert!(noted[1].starts_with("used start_browser ") && noted[1].ends_with(" secret:other"), "{noted:?}");
    let grant = audit(&house)[before]["grant"].as_str().unwrap().to_owned();
    assert_eq!(
        noted[before..],
        [
            "handed_over read_text ok secret:other".to_owned(),
            "used read_text session_not_found secret:third".to_owned(),
            "used read_text session_not_found secret:owner".to_owned(),
            format!("used connect unauthorized grant:{grant}"),
        ]
    );
}

#[tokio::test]
async fn the_audit_log_says_whose_capability_it_was_and_which_epoch_began() {
    let (house, owner, other) = two().await;
    let capability = share(&owner, json!({"mode": "act"})).await;
    let holder = house.agent_as(Identity::Grant(house.hub.holder(&capability).unwrap()), Link::Connection);
    holder.ok("read_text", json!({})).await;
    let used = audit(&house).pop().unwrap();
    assert_eq!((&used["event"], &used["tool"], used.get("epoch")), (&json!("used"), &json!("read_text"), None));
    assert_eq!(used["caller"], json!(format!("grant:{}", used["grant"].as_str().unwrap())));
    let whole = share(&owner, json!({"mode": "hand_over"})).await;
    other.ok("read_text", json!({"sessionId": whole})).await;
    let epoch = house.hub.look(|registry| registry.records().next().map(|session| session.epoch.0)).unwrap();
    let handed_over = audit(&house).pop().unwrap();
    assert_eq!((&handed_over["event"], &handed_over["epoch"]), (&json!("handed_over"), &json!(epoch)));
}

#[tokio::test]
async fn a_grant_is_listed_and_noted_as_it_was_made() {
    let (house, owner, _) = two().await;
    for (once, uses) in [(true, "once"), (false, "many")] {
        let made = owner.ok("share_session", json!({"mode": "act", "tools": ["click_element"], "once": once})).await;
        let listed = owner.ok("share_session", json!({"list": true})).await.structured.unwrap();
        let grant = listed["grants"].as_array().unwrap().iter().find(|grant| grant["grant"] == made.result["grant"]).unwrap();
        assert_eq!((&grant["once"], &grant["mode"], &grant["tools"]), (&json!(once), &json!("act"), &json!(["click_element"])));
        assert_eq!(audit(&house).pop().unwrap()["uses"], uses);
    }
}

/// A use that was given up is one all the same.
#[tokio::test]
async fn a_call_that_is_given_up_is_in_the_audit_log_too() {
    let (house, owner, other) = two().await;
    let capability = share(&owner, json!({"mode": "act"})).await;
    let call = other.begin("evaluate", json!({"sessionId": capability, "script": "hang()"})).await;
    eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    call.abort();
    eventually("it is noted", || audit(&house).len() == 2).await;
    assert_eq!(audit(&house)[1]["outcome"], "cancelled");
}
