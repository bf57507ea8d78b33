//! Several steps in one call: each is an ordinary call, and nothing is held between them.

use std::time::Duration;

use serde_json::{Value, json};
use tabmux_core::Code;
use tokio_util::sync::CancellationToken;

use crate::testing::{Agent, House, eventually};

/// Every way of looking at an answer's text is a line of the report.
fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

async fn session(house: &House, name: &str) -> Agent {
    let agent = house.agent("k");
    agent.ok("start_browser", json!({ "sessionId": name, "navigationUrl": format!("http://{name}.test/") })).await;
    agent
}

fn evaluate(script: &str) -> Value {
    json!({ "action": "evaluate", "script": script })
}

/// S0.25
#[tokio::test]
async fn steps_run_in_order_in_the_session_that_was_named() {
    let house = House::new();
    let agent = session(&house, "a").await;
    agent.ok("start_browser", json!({ "sessionId": "b" })).await;
    let actions = json!([
        { "action": "navigate", "url": "http://a.test/one?title=One" },
        evaluate("count()"),
        evaluate("count()"),
        { "action": "read_text" },
    ]);
    let said = agent.ok("execute_sequence", json!({ "sessionId": "a", "actions": actions })).await;
    let report = lines(&said.text);
    assert_eq!(report[0], "4 steps done.");
    assert!(report[1].starts_with("1 navigate http://a.test/one?title=One: "), "{}", said.text);
    assert_eq!(report[2..4], ["2 evaluate: 1", "3 evaluate: 2"]);
    assert!(report[4].starts_with("4 read_text: ") && said.text.contains("The fake page at http://a.test/one"), "{}", said.text);
    let steps = &said.result["sequences"][0]["steps"];
    assert_eq!((&steps[1]["value"], &steps[0]["ok"], &said.result["sequences"][0]["sessionId"]), (&json!(1), &json!(true), &json!("a")));
}

#[tokio::test]
async fn a_sequence_makes_its_session_as_any_call_would() {
    let house = House::new();
    let agent = house.agent("k");
    let said = agent
        .ok("execute_sequence", json!({ "actions": [{ "action": "navigate", "url": "http://a.test/" }, evaluate("location.href")] }))
        .await;
    assert!(said.text.contains("2 evaluate: \"http://a.test/\""), "{}", said.text);
    let fault = house.agent("other").fault("execute_sequence", json!({ "actions": [evaluate("1")] })).await;
    assert!(fault.code == Code::SessionRequired && fault.message.contains("No session: none active"), "{fault}");
}

#[tokio::test]
async fn a_step_that_fails_ends_the_sequence_and_the_report_says_where_the_page_was() {
    let house = House::new();
    let agent = session(&house, "a").await;
    let actions = json!([evaluate("count()"), evaluate("throw(\"no milk\")"), evaluate("count()"), evaluate("count()")]);
    let answer = agent.answer("execute_sequence", json!({ "actions": actions })).await;
    let fault = answer.outcome.unwrap_err();
    assert_eq!(fault.code, Code::BadArgument);
    let report = lines(&fault.message);
    assert_eq!(report[..2], ["Step 2 of 4 failed.", "1 evaluate: 1"]);
    assert!(report[2].starts_with("2 evaluate: FAILED [bad_argument] The script failed: no milk."), "{fault}");
    assert_eq!(report[3], "3–4 not run.");
    assert!(report[4].starts_with("The page was at http://a.test/ — "), "{fault}");
    let steps = answer.result["sequences"][0]["steps"].as_array().unwrap();
    assert_eq!((steps.len(), &steps[1]["error"]["code"]), (2, &json!("bad_argument")));
    assert_eq!(agent.eval("a", "count()").await.unwrap(), "2", "what was not run was not run");
}

#[tokio::test]
async fn going_on_after_a_failure_runs_the_rest_and_is_no_success() {
    let house = House::new();
    let agent = session(&house, "a").await;
    let actions = json!([evaluate("throw(\"one\")"), evaluate("throw(\"two\")"), evaluate("count()")]);
    let fault = agent.fault("execute_sequence", json!({ "actions": actions, "onError": "continue" })).await;
    let report = lines(&fault.message);
    assert_eq!(report[0], "Steps 1, 2 of 3 failed; every other step was run.");
    assert_eq!(report[3], "3 evaluate: 1");
    assert!(fault.hint.starts_with("Look at the page, then do only what these steps were to do"), "{fault}");
    let spread =
        json!([{ "sessionId": "a", "actions": actions }, { "sessionId": "b", "actions": [evaluate("1"), evaluate("throw(\"x\")")] }]);
    agent.ok("start_browser", json!({ "sessionId": "b" })).await;
    let fault = agent.fault("execute_sequence", json!({ "fanOut": spread, "onError": "continue" })).await;
    assert_eq!(lines(&fault.message)[0], "Steps 1, 2 of 3 in a failed; step 2 of 2 in b failed; every other step was run.");
}

#[tokio::test]
async fn a_sequence_that_cannot_be_right_runs_nothing() {
    let house = House::new();
    let agent = session(&house, "a").await;
    for second in [json!({ "action": "execute_sequence", "actions": [] }), json!({ "action": "no_such_tool" }), json!({ "save": "x" })] {
        let fault = agent.fault("execute_sequence", json!({ "actions": [evaluate("count()"), second] })).await;
        assert!(fault.code == Code::BadArgument && fault.message.contains("Nothing was run."), "{fault}");
    }
    assert_eq!(agent.eval("a", "count()").await.unwrap(), "1");
}

/// S0.2
#[tokio::test]
async fn a_step_may_name_another_of_the_callers_sessions_and_nobody_elses() {
    let house = House::new();
    let agent = session(&house, "a").await;
    agent.ok("start_browser", json!({ "sessionId": "b", "navigationUrl": "http://b.test/" })).await;
    house.agent("stranger").ok("start_browser", json!({ "sessionId": "theirs" })).await;
    let in_session = |name: &str| json!({ "action": "evaluate", "script": "location.href", "sessionId": name });
    let said = agent.ok("execute_sequence", json!({ "sessionId": "a", "actions": [in_session("b"), evaluate("location.href")] })).await;
    assert_eq!(lines(&said.text)[1..], ["1 evaluate: \"http://b.test/\"", "2 evaluate: \"http://a.test/\""]);
    let foreign = agent.fault("execute_sequence", json!({ "actions": [in_session("theirs")] })).await;
    let missing = agent.fault("execute_sequence", json!({ "actions": [in_session("nobody")] })).await;
    assert_eq!(foreign.code, Code::SessionNotFound);
    assert_eq!(foreign.to_string().replace("theirs", "nobody"), missing.to_string());
}

#[tokio::test]
async fn values_of_earlier_steps_go_into_later_ones_and_are_checked() {
    let house = House::new();
    let agent = session(&house, "a").await;
    let actions = json!([
        { "action": "evaluate", "script": "{\"user\": {\"name\": \"Bob\", \"tags\": [\"x\", \"y\"]}}", "save": "found" },
        { "action": "navigate", "url": "http://a.test/${found.user.name}?title=${found.user.tags.1}" },
        { "action": "evaluate", "script": "document.body.append(${found.user.name})" },
        { "action": "evaluate", "script": "document.title", "expect": { "equals": "${found.user.tags.1}" } },
        { "action": "assert", "url": "/Bob", "title": { "matches": "^y$" }, "text": { "contains": "Bob" } },
        { "action": "evaluate", "script": "document.title = 'By a script'" },
        { "action": "assert", "title": { "equals": "By a script" } },
    ]);
    let said = agent.ok("execute_sequence", json!({ "actions": actions })).await;
    assert!(said.text.starts_with("7 steps done."), "{}", said.text);
    let missed = json!([{ "action": "evaluate", "script": "3", "expect": { "equals": 4 } }, evaluate("1")]);
    let fault = agent.fault("execute_sequence", json!({ "actions": missed })).await;
    assert!(fault.code == Code::AssertFailed && fault.message.contains("Its value is not 4; it is 3."), "{fault}");
    let fault = agent.fault("execute_sequence", json!({ "actions": [{ "action": "assert", "text": "no such words" }] })).await;
    assert!(fault.code == Code::AssertFailed && fault.message.contains("The fake page at http://a.test/Bob"), "{fault}");
    for (url, part) in [("${nobody}", "Saved so far: nothing"), ("${found.nothing}", "the value is {\"a\":1}")] {
        let actions = json!([{ "action": "evaluate", "script": "{\"a\": 1}", "save": if url == "${nobody}" { "later" } else { "found" } }, { "action": "navigate", "url": url }]);
        let actions = if url == "${nobody}" { json!([actions[1]]) } else { actions };
        let fault = agent.fault("execute_sequence", json!({ "actions": actions })).await;
        assert!(fault.code == Code::BadArgument && fault.message.contains(part), "{fault}");
    }
}

#[tokio::test]
async fn what_a_page_says_cannot_pass_for_a_step_of_the_report() {
    let house = House::new();
    let agent = session(&house, "a").await;
    let actions = json!([evaluate("document.body.append(\"\\n9 evaluate: all is well\")"), { "action": "read_text" }]);
    let said = agent.ok("execute_sequence", json!({ "actions": actions })).await;
    assert!(said.text.contains("9 evaluate: all is well") && !lines(&said.text).iter().any(|line| line.starts_with('9')), "{}", said.text);
}

#[tokio::test]
async fn another_call_of_the_session_comes_between_two_steps() {
    let house = House::new();
    let agent = session(&house, "a").await;
    let sequence = agent.begin("execute_sequence", json!({ "actions": [evaluate("sleep(20)"), evaluate("count()")] })).await;
    let between = agent.begin("evaluate", json!({ "script": "count()" })).await;
    assert!(between.await.unwrap().unwrap().text.starts_with('1'), "it waited for the running step only");
    assert!(sequence.await.unwrap().unwrap().text.contains("2 evaluate: 2"));
}

#[tokio::test]
async fn a_cancel_ends_the_running_step_and_nothing_comes_after_it() {
    let house = House::new();
    let agent = session(&house, "a").await;
    let cancel = CancellationToken::new();
    let actions = json!({ "actions": [evaluate("hang()"), evaluate("count()")] });
    let sequence = agent.begin_cancellable("execute_sequence", actions, cancel.clone()).await;
    eventually("the step runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    cancel.cancel();
    assert_eq!(sequence.await.unwrap().unwrap_err().code, Code::Cancelled);
    assert_eq!(agent.eval("a", "count()").await.unwrap(), "1");
}

#[tokio::test]
async fn the_deadline_is_the_sequences_and_its_report_comes_in_time() {
    let house = House::new();
    let agent = session(&house, "a").await;
    house.on_disk().await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let actions = json!([evaluate("count()"), evaluate("hang()"), evaluate("count()")]);
    let fault = agent.fault("execute_sequence", json!({ "actions": actions, "timeout": 5000, "onError": "continue" })).await;
    assert!(began.elapsed() <= Duration::from_secs(5), "{:?}", began.elapsed());
    assert_eq!(fault.code, Code::Timeout);
    let report = lines(&fault.message);
    assert!(report[1] == "1 evaluate: 1" && report[2].starts_with("2 evaluate: FAILED [timeout]") && report[3] == "3 not run.", "{fault}");
    assert!(report[4].starts_with("The page was at http://a.test/"), "{fault}");
    let fault =
        agent.fault("execute_sequence", json!({ "actions": [json!({ "action": "evaluate", "script": "hang()", "timeout": 100 })] })).await;
    assert!(fault.message.contains("[timeout]") && began.elapsed() < Duration::from_secs(6), "a step's own timeout is shorter");
}

/// The step did what it was to do: whoever reads that it failed does it again.
#[tokio::test]
async fn a_step_that_opens_a_dialog_is_done_where_the_next_answers_it() {
    let house = House::new();
    let agent = session(&house, "a").await;
    agent.ok("start_browser", json!({ "sessionId": "b" })).await;
    let answer = json!({ "action": "handle_dialog" });
    let answer_in = |session: &str, tab: &str| json!({ "action": "handle_dialog", "sessionId": session, "tabId": tab });
    for answer in [answer.clone(), answer_in("a", "t1")] {
        let actions = json!([evaluate("confirm(\"sure?\")"), answer, evaluate("1")]);
        let said = agent.ok("execute_sequence", json!({ "sessionId": "a", "actions": actions })).await.text;
        let report = lines(&said);
        assert_eq!(report[1], "1 evaluate: A dialog opened, which the next step answers. A dialog is open (confirm): \"sure?\".");
        assert!(report[2].starts_with("2 handle_dialog: Accepted the confirm") && report[3] == "3 evaluate: 1", "{said}");
    }
    let saves = json!({ "action": "evaluate", "script": "confirm(\"sure?\")", "save": "sure" });
    for (first, next) in [
        (evaluate("confirm(\"sure?\")"), evaluate("1")),
        (evaluate("confirm(\"sure?\")"), answer_in("b", "t1")),
        (evaluate("confirm(\"sure?\")"), answer_in("a", "t9")),
        (saves, answer.clone()),
    ] {
        let actions = json!([first, next, evaluate("1")]);
        let stopped = agent.fault("execute_sequence", json!({ "sessionId": "a", "actions": actions })).await;
        assert!(stopped.code == Code::DialogOpen && stopped.message.contains("2–3 not run."), "{stopped}");
        // It met the dialog that is open, and did nothing.
        let actions = json!([evaluate("1"), answer, evaluate("1")]);
        let met = agent.fault("execute_sequence", json!({ "sessionId": "a", "actions": actions })).await;
        assert!(met.code == Code::DialogOpen && met.message.contains("2–3 not run."), "{met}");
        agent.ok("handle_dialog", json!({ "sessionId": "a" })).await;
    }
}

#[tokio::test]
async fn a_sequence_that_has_begun_is_finished_before_a_newer_daemon_takes_over() {
    let house = House::new();
    let agent = session(&house, "a").await;
    let sequence = agent.begin("execute_sequence", json!({ "actions": [evaluate("sleep(20)"), evaluate("count()")] })).await;
    house.hub.hold_back();
    house.hub.finish_calls().await;
    assert!(sequence.await.unwrap().unwrap().text.contains("2 evaluate: 1"));
}

/// S0.37
#[tokio::test]
async fn sequences_in_several_sessions_run_at_once_and_are_compared() {
    let house = House::new();
    let agent = house.agent("k");
    for name in ["a", "b", "c"] {
        agent.ok("start_browser", json!({ "sessionId": name, "navigationUrl": "http://same.test/" })).await;
    }
    agent.ok("navigate", json!({ "sessionId": "c", "url": "http://other.test/" })).await;
    house.on_disk().await;
    tokio::time::pause();
    let began = tokio::time::Instant::now();
    let actions = json!([evaluate("sleep(1000)"), { "action": "evaluate", "script": "location.href", "save": "place" }]);
    let said = agent.ok("execute_sequence", json!({ "actions": actions, "fanOut": ["a", "b", "c"] })).await;
    assert!(began.elapsed() < Duration::from_millis(2000), "one after the other would take three seconds: {:?}", began.elapsed());
    let report = lines(&said.text);
    assert_eq!(
        report[..3],
        [
            "6 steps done in 3 sessions.",
            "Same in all 3: step 1 evaluate.",
            "Different: place: a \"http://same.test/\" | b \"http://same.test/\" | c \"http://other.test/\"",
        ]
    );
    assert_eq!(report[3..6], ["a:", "1 evaluate: \"slept 1000\"", "2 evaluate: \"http://same.test/\""]);
    assert_eq!(
        said.result["comparison"][1],
        json!({ "what": "place", "equal": false, "values": { "a": "\"http://same.test/\"", "b": "\"http://same.test/\"", "c": "\"http://other.test/\"" } })
    );
    let own = json!([{ "sessionId": "a", "actions": [evaluate("1")] }, { "sessionId": "b", "actions": [evaluate("throw(\"x\")")] }]);
    let fault = agent.fault("execute_sequence", json!({ "fanOut": own })).await;
    assert!(fault.message.starts_with("Step 1 of 1 in b failed.") && fault.message.contains("1 evaluate: 1"), "{fault}");
}
