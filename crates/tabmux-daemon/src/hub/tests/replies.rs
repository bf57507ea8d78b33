//! What is added to every answer: the session where it was picked, news first, data for programs, a line in the log.

use std::io::Write;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tabmux_core::Code;
use tracing_subscriber::fmt::MakeWriter;

use crate::settings::SessionInfo;
use crate::testing::House;

const SHOWN: &str = "[sessionId: s, sessionType: browser]";

/// S0.23, S0.24
#[tokio::test]
async fn the_session_is_said_when_it_was_picked_or_as_the_setting_wants() {
    for (setting, picked, named) in
        [(SessionInfo::Auto, true, false), (SessionInfo::Always, true, true), (SessionInfo::Never, false, false)]
    {
        let house = House::with(|settings| settings.session_info = setting);
        let agent = house.agent("a");
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
        let said = agent.ok("evaluate", json!({"script": "1"})).await;
        assert_eq!(said.text.contains(SHOWN), picked, "{setting:?}: {}", said.text);
        let said = agent.ok("evaluate", json!({"sessionId": "s", "script": "1"})).await;
        assert_eq!(said.text.contains(SHOWN), named, "{setting:?}: {}", said.text);
        assert_eq!((&said.result["sessionId"], &said.result["sessionType"]), (&json!("s"), &json!("browser")), "data is always there");
    }
}

/// S2.26, S2.36
#[tokio::test]
async fn an_answer_says_session_tab_and_url_to_programs() {
    let house = House::new();
    let agent = house.agent("a");
    let said = agent.ok("navigate", json!({"url": "http://a.test/?title=A"})).await;
    assert_eq!(said.text, "Navigated to http://a.test/?title=A — \"A\".\n[sessionId: browser-1, sessionType: browser]");
    let keys: Vec<&str> = said.result.keys().map(String::as_str).collect();
    assert_eq!(keys, ["sessionId", "id", "uuid", "sessionType", "tabId", "url", "title"]);
    assert_eq!((&said.result["tabId"], &said.result["url"]), (&json!("t1"), &json!("http://a.test/?title=A")));
    let answer = agent.answer("evaluate", json!({"script": "throw(\"x\")"})).await;
    assert_eq!((answer.outcome.unwrap_err().code, &answer.result["sessionId"]), (Code::BadArgument, &json!("browser-1")));
}

#[tokio::test]
async fn an_act_says_what_changed_on_the_page_and_what_only_reads_does_not() {
    let house = House::new();
    let agent = house.agent("a");
    let file = tempfile::NamedTempFile::new().unwrap();
    let upload = json!({"sessionId": "s", "paths": [file.path()]});
    agent.ok("start_browser", json!({"sessionId": "s", "navigationUrl": "http://a.test/"})).await;
    for script in ["openChooser()", "document.body.append(\"Hello\")", "error(\"no milk\")"] {
        let said = agent.ok("evaluate", json!({"sessionId": "s", "script": script})).await;
        assert!(!said.text.contains("changed") && !said.text.contains("Hello\""), "{}", said.text);
        if script == "openChooser()" {
            agent.ok("snapshot", json!({"sessionId": "s"})).await;
        }
    }
    let said = agent.ok("upload_file", upload.clone()).await;
    assert!(said.text.ends_with("\n+ \"Hello\"\n[error] no milk"), "{}", said.text);
    agent.ok("evaluate", json!({"sessionId": "s", "script": "openChooser()"})).await;
    let said = agent.ok("upload_file", upload).await;
    assert!(said.text.ends_with("\nNothing else changed."), "{}", said.text);
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// S0.22
#[tokio::test]
async fn every_call_is_logged_with_session_tool_and_outcome_and_without_its_arguments() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_writer(log.clone()).with_ansi(false).finish();
    let _on = tracing::subscriber::set_default(subscriber);
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "web"})).await;
    agent.ok("evaluate", json!({"script": "\"hush\""})).await;
    agent.fault("evaluate", json!({"sessionId": "web", "script": "throw(\"hush\")"})).await;
    let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    let calls: Vec<&str> = text.lines().filter(|line| line.contains(": call ") || line.contains("tool=")).collect();
    assert_eq!(calls.len(), 3, "{text}");
    for (line, tool, outcome) in [(calls[0], "start_browser", "ok"), (calls[1], "evaluate", "ok"), (calls[2], "evaluate", "bad_argument")] {
        for part in [format!("tool=\"{tool}\""), "session=\"web\"".into(), format!("outcome=\"{outcome}\""), "client=c1".into()] {
            assert!(line.contains(&part), "{part} in {line}");
        }
        assert!(line.starts_with("20"), "when: {line}");
    }
    assert!(!text.contains("hush"), "{text}");
}

#[tokio::test]
async fn an_unknown_tool_or_argument_is_answered_without_a_session() {
    let house = House::new();
    let agent = house.agent("a");
    assert_eq!(agent.code("navigat", json!({})).await, Code::BadArgument);
    assert_eq!(agent.code("evaluate", json!({"script": "1", "timeout": 0})).await, Code::BadArgument);
    assert_eq!(agent.code("evaluate", json!({"script": "1", "timeout": 600_001})).await, Code::BadArgument);
    assert_eq!(house.sessions(), 0);
}

/// About what reading its replies costs, faults too; each caller's own, and the operator's all.
#[tokio::test]
async fn the_tokens_of_replies_are_counted_in_all_and_by_session() {
    let house = House::new();
    let (agent, other, operator) = (house.agent("a"), house.agent("b"), house.operator());
    // Names are each caller's own: the same one twice is two sessions.
    agent.ok("start_browser", json!({"sessionId": "web"})).await;
    other.ok("start_browser", json!({"sessionId": "web"})).await;
    let count = |agent: &crate::testing::Agent| house.hub.tokens_seen_by(agent.client);
    let before = count(&operator);
    let mut cost = 0;
    for _ in 0..2 {
        cost += tabmux_tools::tokens(&agent.eval("web", "\"some words to read\"").await.unwrap());
        cost += tabmux_tools::tokens(&agent.eval("web", "throw(\"x\")").await.unwrap_err().to_string());
    }
    let after = count(&operator);
    let only = |counted: serde_json::Value| counted["sessions"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let ([mine], [theirs]) = (&only(count(&agent))[..], &only(count(&other))[..]) else { panic!("each sees its own: {after}") };
    let grown = |of: &str| after.pointer(of).unwrap().as_u64().unwrap() - before.pointer(of).unwrap().as_u64().unwrap();
    let cost = u64::try_from(cost).unwrap();
    assert!(cost > 10, "{cost}");
    let of = |id: &str| grown(&format!("/sessions/{id}/tokens"));
    assert_eq!((grown("/total"), of(mine), of(theirs)), (cost, cost, 0));
    assert_eq!(count(&agent)["sessions"][mine], after["sessions"][mine]);
    assert_eq!((&after["sessions"][mine]["name"], &after["sessions"][theirs]["name"]), (&json!("web"), &json!("web")));
    let rows = house.hub.sessions(agent.client, false).await.unwrap();
    assert_eq!(rows["sessions"][0]["tokens"], after["sessions"][mine]["tokens"]);
}

/// The contract's `status --json`, as far as the hub knows it.
#[tokio::test]
async fn status_counts_what_is_here() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.fault("evaluate", json!({"script": "throw(\"x\")"})).await;
    let busy = agent.begin("evaluate", json!({"script": "hang()"})).await;
    let waits = agent.begin("evaluate", json!({"script": "1"})).await;
    crate::testing::eventually("it runs", || house.hub.look(|registry| registry.counts().running) == 1).await;
    let status = house.hub.status().await;
    assert_eq!(status["running"], true);
    assert_eq!(status["sessions"], json!({"active": 1, "orphaned": 0, "lost": 0, "clones": 0}));
    assert_eq!(status["calls"], json!({"running": 1, "queued": 1, "total": 4}));
    assert_eq!(status["counters"], json!({"faults": 1, "panics": 0, "journal_faults": 0, "unreadable_events": 0}));
    assert_eq!((&status["clients"], &status["browsers"][0]["kind"]), (&json!(1), &json!("fake")));
    assert_eq!(status["browsers"][0]["contexts"], 1);
    assert!(status["memory_kb"].as_u64().unwrap() > 1000);
    assert_eq!(status["pid"], std::process::id());
    busy.abort();
    waits.await.unwrap().unwrap();
    agent.lost();
    let status = house.hub.status().await;
    assert_eq!((&status["sessions"]["active"], &status["sessions"]["orphaned"]), (&json!(0), &json!(1)));
}
