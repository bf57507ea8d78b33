//! One session into several, with its pages; and its logins into a profile.

use serde_json::{Value, json};
use tabmux_core::{Code, Fault, TabId};
use tabmux_driver::Arrival;

use crate::hub::{CallerOf, ForkOf, New, told};
use crate::testing::{Agent, House, Mood, eventually};

async fn fork(agent: &Agent, session: Option<&str>, count: u32, prefix: Option<&str>) -> Result<Value, Fault> {
    let wanted = ForkOf { session: session.map(str::to_owned), count, prefix: prefix.map(str::to_owned) };
    agent.hub.fork(&CallerOf::of(agent.client), wanted).await.map(|forked| told(count, &forked))
}

fn names(answer: &Value) -> Vec<&str> {
    answer["sessions"].as_array().unwrap().iter().map(|row| row["sessionId"].as_str().unwrap()).collect()
}

/// Two pages, the first one current, with what each keeps for itself.
async fn busy(agent: &Agent) {
    agent.ok("start_browser", json!({"sessionId": "main", "navigationUrl": "http://a.test/one"})).await;
    agent.eval("main", "document.cookie = \"token=1\"").await.unwrap();
    agent.ok("storage", json!({"sessionId": "main", "area": "session", "set": {"step": "one"}})).await;
    agent.ok("new_page", json!({"sessionId": "main", "url": "http://b.test/two"})).await;
    agent.ok("storage", json!({"sessionId": "main", "area": "session", "set": {"step": "two"}})).await;
    agent.ok("select_page", json!({"sessionId": "main", "pageIdx": 0})).await;
}

async fn pages(agent: &Agent, name: &str) -> Value {
    agent.ok("list_pages", json!({"sessionId": name})).await.structured.unwrap()["pages"].clone()
}

#[tokio::test]
async fn forks_have_the_pages_and_logins_of_their_source_from_one_reading() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    let before = pages(&agent, "main").await;
    let made = fork(&agent, Some("main"), 3, None).await.unwrap();
    assert_eq!((names(&made), &made["asked"], made.get("error")), (vec!["main-1", "main-2", "main-3"], &json!(3), None));
    assert_eq!((browser.read(), house.hub.look(|registry| registry.counts().clones)), (1, 3));
    for name in names(&made) {
        assert_eq!(pages(&agent, name).await, before, "addresses, order and which is current");
        assert_eq!(agent.eval(name, "document.cookie").await.unwrap().trim_matches('"'), "token=1");
        for (page, step) in [(0, "one"), (1, "two")] {
            agent.ok("select_page", json!({"sessionId": name, "pageIdx": page})).await;
            let kept = agent.ok("storage", json!({"sessionId": name, "area": "session"})).await.structured.unwrap();
            assert_eq!(kept["items"][0]["value"], json!(step));
        }
    }
    assert_eq!(pages(&agent, "main").await, before, "the source stays as it is");
    agent.eval("main-1", "document.cookie = \"token=mine\"").await.unwrap();
    assert_eq!(agent.eval("main-2", "document.cookie").await.unwrap().trim_matches('"'), "token=1");
}

/// S3.21: seats that run out are said, with what was made; nothing half made is left.
#[tokio::test]
async fn a_fork_that_runs_out_of_seats_says_how_many_were_made() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    assert_eq!(names(&fork(&agent, None, 8, Some("x")).await.unwrap()).len(), 8, "without a name, of the current session");
    let made = fork(&agent, Some("main"), 5, Some("y")).await.unwrap();
    assert_eq!(names(&made), ["y-1", "y-2"]);
    assert_eq!(made["error"]["code"], json!("capacity"));
    let said = made["error"]["message"].as_str().unwrap();
    assert_eq!(said, "2 of 5 copies were made: All 10 cloned sessions are in use (limits.max_clones).");
    let read = browser.read();
    assert_eq!(fork(&agent, Some("main"), 1, None).await.unwrap_err().code, Code::Capacity);
    assert_eq!(browser.read(), read, "nothing is read for nobody");
    eventually("nothing else is left", || house.sessions() == 11 && browser.open() == 11).await;
}

/// S3.21: an agent that reads only whether it worked must not go on as if it had all of them.
#[tokio::test]
async fn a_tool_call_that_made_fewer_copies_than_it_was_asked_for_has_failed_and_names_them() {
    let (house, _browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    let answer = agent.answer("fork", json!({"sessionId": "main", "count": 12, "prefix": "x"})).await;
    let fault = answer.outcome.unwrap_err();
    assert_eq!(fault.code, Code::Capacity);
    assert!(fault.message.starts_with("10 of 12 copies were made: ") && fault.message.contains("There are: x-1, x-2, "), "{fault}");
    assert_eq!(names(&Value::Object(answer.result)).len(), 10, "also for programs");
}

#[tokio::test]
async fn what_a_copy_lacks_is_said_with_it() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    let source = house.session();
    let whole = fork(&agent, Some("main"), 1, None).await.unwrap();
    assert_eq!(whole["sessions"][0]["warning"], Value::Null);
    drop(source.page(TabId(2)).unwrap().evaluate("crash()").await);
    let torn = fork(&agent, Some("main"), 1, None).await.unwrap();
    let warning = torn["sessions"][0]["warning"].as_str().unwrap();
    assert!(warning.starts_with("What the page http://b.test/two keeps for itself was not copied: "), "{warning}");
    browser.plants(&[Arrival::Loading, Arrival::Unanswered]);
    let late = fork(&agent, Some("main"), 1, None).await.unwrap();
    let warning = late["sessions"][0]["warning"].as_str().unwrap();
    assert!(warning.contains("The page http://a.test/one is still loading."), "{warning}");
    assert!(warning.contains("The page http://b.test/two was not copied: its site did not answer in time."), "{warning}");
}

/// Told that the copies are made, one may log out in the source: so all of it is read by then, also what no page is at.
#[tokio::test]
async fn a_fork_is_made_when_nothing_of_its_source_is_needed_any_more() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "main", "navigationUrl": "http://left.test/"})).await;
    agent.ok("storage", json!({"sessionId": "main", "set": {"user": "ann"}})).await;
    agent.ok("navigate", json!({"sessionId": "main", "url": "http://a.test/"})).await;
    browser.withholds("http://left.test");
    let asker = agent.clone();
    let forking = tokio::spawn(async move { fork(&asker, Some("main"), 1, None).await });
    let copied = || {
        house
            .hub
            .look(|registry| registry.list_all().iter().any(|listed| listed.session.tabs.len() == 1 && listed.session.name == "main-1"))
    };
    eventually("the copy has its page", || copied() && house.hub.look(|registry| registry.counts().running) == 0).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!forking.is_finished());
    browser.let_go();
    forking.await.unwrap().unwrap();
    agent.ok("close_session", json!({"sessionId": "main"})).await;
    agent.ok("navigate", json!({"sessionId": "main-1", "url": "http://left.test/"})).await;
    let kept = agent.ok("storage", json!({"sessionId": "main-1"})).await.structured.unwrap();
    assert_eq!(kept["items"][0]["value"], json!("ann"));
}

/// S3.25
#[tokio::test]
async fn copies_that_fail_are_taken_back_and_the_others_stay() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    browser.opens(&[Mood::Good, Mood::Fail]);
    let made = fork(&agent, Some("main"), 3, None).await.unwrap();
    assert_eq!((names(&made).len(), &made["error"]["code"]), (2, &json!("browser_crashed")));
    eventually("nothing of the third is left", || house.sessions() == 3 && browser.open() == 3).await;
    // Each of the three tries, and the fork itself.
    browser.reads(&[Mood::Fail, Mood::Fail, Mood::Fail, Mood::Fail]);
    assert_eq!(fork(&agent, Some("main"), 3, None).await.unwrap_err().code, Code::BrowserCrashed);
    eventually("nothing of them is left", || house.sessions() == 3 && browser.open() == 3).await;
}

/// S3.23: whoever asked goes away.
#[tokio::test]
async fn a_fork_that_is_given_up_leaves_nothing() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    busy(&agent).await;
    browser.reads(&[Mood::Wait]);
    let asker = agent.clone();
    let forking = tokio::spawn(async move { fork(&asker, Some("main"), 3, None).await });
    eventually("the source is read", || browser.read() == 1).await;
    assert_eq!(house.sessions(), 4);
    forking.abort();
    browser.let_go();
    eventually("only the source is left", || house.sessions() == 1 && browser.open() == 1).await;
}

/// S3.14: copies are whoever's who asks; only the operator forks another's session.
#[tokio::test]
async fn copies_belong_to_whoever_asks_for_them() {
    let house = House::new();
    let (agent, stranger, operator) = (house.agent("a"), house.agent("b"), house.operator());
    busy(&agent).await;
    assert_eq!(fork(&stranger, Some("main"), 1, None).await.unwrap_err().code, Code::SessionNotFound);
    assert_eq!(fork(&stranger, None, 1, None).await.unwrap_err().code, Code::SessionRequired);
    let made = fork(&operator, Some("main"), 1, Some("mine")).await.unwrap();
    assert_eq!(names(&made), ["mine-1"]);
    assert_eq!(agent.code("evaluate", json!({"sessionId": "mine-1", "script": "1"})).await, Code::SessionNotFound);
    assert_eq!(operator.ok("list_sessions", json!({})).await.structured.unwrap()["sessions"].as_array().unwrap().len(), 1);
    agent.ok("start_browser", json!({"sessionId": "main-1"})).await;
    assert_eq!(names(&fork(&agent, Some("main"), 2, None).await.unwrap()), ["main-2", "main-3"], "taken names are skipped");
    for (count, prefix) in [(0, None), (101, None), (1, Some("a:b"))] {
        assert_eq!(fork(&agent, Some("main"), count, prefix).await.unwrap_err().code, Code::BadArgument);
    }
}

/// The same for agents, as a tool: copies are the agent's own and its connection's, with their pages.
#[tokio::test]
async fn an_agent_forks_its_own_session_and_the_copies_are_its_own() {
    let house = House::new();
    let (agent, stranger, operator) = (house.agent("a"), house.agent("b"), house.operator());
    assert_eq!(agent.code("fork", json!({})).await, Code::SessionRequired);
    busy(&agent).await;
    let said = agent.ok("fork", json!({"count": 2})).await;
    assert_eq!(said.text, "Copied into main-1, main-2. Pass one as sessionId.");
    for name in ["main-1", "main-2"] {
        assert_eq!(pages(&agent, name).await, pages(&agent, "main").await);
        assert_eq!(agent.eval(name, "document.cookie").await.unwrap().trim_matches('"'), "token=1");
        assert_eq!(stranger.code("evaluate", json!({"sessionId": name, "script": "1"})).await, Code::SessionNotFound);
    }
    assert_eq!(stranger.code("fork", json!({"sessionId": "main"})).await, Code::SessionNotFound);
    assert_eq!(agent.code("fork", json!({"sessionId": "main", "count": 0})).await, Code::BadArgument);
    operator.ok("fork", json!({"sessionId": "main", "prefix": "mine"})).await;
    assert_eq!(agent.code("evaluate", json!({"sessionId": "mine-1", "script": "1"})).await, Code::SessionNotFound);
}

#[tokio::test]
async fn a_session_without_pages_has_nothing_to_fork() {
    let house = House::new();
    let agent = house.agent("a");
    house.hub.reserve(&CallerOf::of(agent.client), &tabmux_tools::OpenSession { name: Some("new".into()), ..Default::default() }).unwrap();
    let fault = fork(&agent, Some("new"), 2, None).await.unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::BadArgument, "Session 'new' has no page yet, so there is nothing to copy."));
    eventually("nothing is left of the copies", || house.sessions() == 1).await;
}

#[tokio::test]
async fn a_sessions_logins_are_kept_in_a_profile() {
    let house = House::new();
    let (agent, operator) = (house.agent("a"), house.operator());
    busy(&agent).await;
    agent.ok("storage", json!({"sessionId": "main", "set": {"user": "ann"}})).await;
    let caller = CallerOf::of(operator.client);
    let saved = house.hub.save_profile(&caller, Some("main"), "work".into(), New::Must).await.unwrap();
    assert_eq!(
        (&saved["profile"]["cookies"], &saved["profile"]["from"], &saved["losses"]),
        (&json!(1), &json!("session:main"), &json!([]))
    );
    let again = house.hub.save_profile(&caller, Some("main"), "work".into(), New::Must).await.unwrap_err();
    assert_eq!(again.message, "A profile named 'work' already exists.");
    house.hub.save_profile(&caller, Some("main"), "work".into(), New::May).await.unwrap();
    for name in ["..", "a/b", ""] {
        assert_eq!(house.hub.save_profile(&caller, Some("main"), name.into(), New::May).await.unwrap_err().code, Code::BadArgument);
    }
    agent.ok("start_browser", json!({"sessionId": "copy", "from": "profile:work", "navigationUrl": "http://a.test/"})).await;
    let kept = agent.ok("storage", json!({"sessionId": "copy"})).await.structured.unwrap();
    assert_eq!(kept["items"][0]["value"], json!("ann"));
}

/// It had no page to lose, and its logins all the same.
#[tokio::test]
async fn forks_without_pages_are_lost_with_their_browser_and_outlive_their_source() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "main", "navigationUrl": "http://a.test/"})).await;
    agent.ok("start_browser", json!({"sessionId": "other", "navigationUrl": "http://a.test/"})).await;
    agent.ok("close_page", json!({"sessionId": "main", "pageIdx": 0})).await;
    fork(&agent, Some("main"), 2, None).await.unwrap();
    agent.eval("other", "endBrowser()").await.unwrap_err();
    eventually("all of them are lost", || house.hub.look(|registry| registry.counts().lost == 4)).await;
    agent.ok("close_session", json!({"sessionId": "main"})).await;
    let listed = agent.ok("list_sessions", json!({})).await.structured.unwrap()["sessions"].clone();
    let states: Vec<_> = listed.as_array().unwrap().iter().map(|row| (row["sessionId"].clone(), row["state"].clone())).collect();
    assert_eq!(states, ["other", "main-1", "main-2"].map(|name| (json!(name), json!("lost"))));
    assert_eq!(agent.code("navigate", json!({"sessionId": "main-1", "url": "http://a.test/"})).await, Code::BrowserCrashed);
    agent.ok("navigate", json!({"sessionId": "main-1", "url": "http://a.test/"})).await;
}
