//! Lists the caller's sessions.

use async_trait::async_trait;
use serde_json::Value;
use tabmux_core::{CAPABILITY, Code, Fault};

use crate::arguments::{NoArguments, of_desk, own_schema};
use crate::reply::counted;
use crate::{Arguments, Common, Desk, DeskTool, Effect, Group, Level, Reply, Run, SessionList, SessionView, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "list_sessions",
    group: Group::Sessions,
    level: Level::Core,
    description: "List your sessions and which one is current.",
    effect: Effect::Read,
    own_schema: own_schema::<NoArguments>,
    run: Run::Desk(&List),
};

struct List;

/// A `sessionId` is taken, as by every tool (S0.1), and changes nothing: the list is always whole. A capability stands for a session that is in
/// nobody's list but its owner's: it lists that one.
#[async_trait]
impl DeskTool for List {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult {
        let NoArguments {} = of_desk(common, &args)?;
        let list = match common.session.as_deref().filter(|session| session.starts_with(CAPABILITY)) {
            Some(capability) => desk.list_shared(capability).await?,
            None => desk.list().await,
        };
        let structured = serde_json::to_value(&list).map_err(|error| {
            Fault::new(Code::Internal, format!("The sessions could not be written as JSON: {error}."), "Please report this.")
        })?;
        let current = list.current_session.clone().map_or(Value::Null, Value::String);
        Ok(Reply::text(listed(&list)).with("currentSession", current).structured(structured))
    }
}

fn listed(list: &SessionList) -> String {
    let mut text = match (list.sessions.len(), &list.current_session) {
        (0, _) => "No sessions. start_browser, navigate or new_page makes one.".to_owned(),
        (number, Some(current)) => format!("{}, current: {}", counted(number, "session"), visible::line(current)),
        (number, None) if list.is_shared => counted(number, "session"),
        (number, None) => format!("{}, none current: name one as sessionId or call set_current_session", counted(number, "session")),
    };
    for session in &list.sessions {
        text += "\n";
        text += &line(session);
    }
    if let Some(note) = &list.note {
        text += &format!("\n{note}");
    }
    text
}

fn line(session: &SessionView) -> String {
    let memory = session.memory_kb.map(|kb| format!(", {} MB", kb / 1024)).unwrap_or_default();
    let state = if session.state == "active" { String::new() } else { format!(", {}", session.state) };
    let copy = session.from.as_deref().map(|from| format!(", copy of {}", visible::line(from))).unwrap_or_default();
    let hint = session.hint.as_deref().map(|hint| format!(". {hint}")).unwrap_or_default();
    let place = session.url.as_deref().map(|url| format!(", at {}", visible::line(url))).unwrap_or_default();
    format!(
        "{} ({}, {}): {}, isolation {}, {} old{copy}{memory}{state}{place}{hint}",
        visible::line(&session.session_id),
        session.kind,
        session.id,
        counted(session.tabs, "tab"),
        session.isolation,
        age(session.age_s),
    )
}

fn age(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{TestDesk, text};

    /// S0.12
    #[tokio::test]
    async fn the_list_has_every_session_and_says_which_is_current() {
        let desk = TestDesk::default();
        desk.call("start_browser", json!({ "sessionId": "alice" })).await.unwrap();
        desk.call("start_browser", json!({ "sessionId": "bob", "navigationUrl": "http://b.test/" })).await.unwrap();
        desk.call("set_current_session", json!({ "sessionId": "bob" })).await.unwrap();
        let reply = desk.call("list_sessions", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r"
        2 sessions, current: bob
        alice (browser, sess_00000001): 0 tabs, isolation context, 1m old
        bob (browser, sess_00000002): 1 tab, isolation context, 1m old, at http://b.test/
        ");
        let structured = reply.structured.unwrap();
        assert_eq!(structured["currentSession"], "bob");
        let sessions = structured["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), 2);
        for (session, name) in sessions.iter().zip(["alice", "bob"]) {
            assert_eq!((&session["sessionId"], &session["type"]), (&json!(name), &json!("browser")));
            assert!(session["capabilities"].is_object());
        }
    }

    #[tokio::test]
    async fn without_sessions_the_list_says_how_to_make_one() {
        let reply = TestDesk::default().call("list_sessions", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"No sessions. start_browser, navigate or new_page makes one.");
        assert_eq!(reply.structured.unwrap(), json!({ "sessions": [], "currentSession": null }));
    }

    #[tokio::test]
    async fn an_unasked_for_argument_is_refused_and_a_session_id_is_not() {
        let desk = TestDesk::default();
        assert_eq!(desk.call("list_sessions", json!({ "all": true })).await.unwrap_err().code, Code::BadArgument);
        assert!(desk.call("list_sessions", json!({ "sessionId": "x" })).await.is_ok());
    }

    #[tokio::test]
    async fn a_capability_lists_the_session_it_is_for() {
        let desk = TestDesk::default();
        desk.call("start_browser", json!({ "sessionId": "own" })).await.unwrap();
        let reply = desk.call("list_sessions", json!({ "sessionId": "tmx_1" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r"
        1 session
        shared (browser, sess_00000009): 0 tabs, isolation context, 1m old
        Shared with you.
        ");
    }

    #[test]
    fn orphans_losses_memory_and_notes_are_said() {
        let old = SessionView {
            state: "orphaned".into(),
            memory_kb: Some(20_480),
            age_s: 7200,
            from: Some("profile:work".into()),
            ..TestDesk::session("old", 1)
        };
        let lost = SessionView { state: "lost".into(), hint: Some("restore brings it back.".into()), ..TestDesk::session("web", 2) };
        let list = SessionList {
            sessions: vec![old, lost],
            current_session: None,
            note: Some("Sessions of others are not shown.".into()),
            is_shared: false,
        };
        insta::assert_snapshot!(listed(&list), @r"
        2 sessions, none current: name one as sessionId or call set_current_session
        old (browser, sess_00000001): 0 tabs, isolation context, 2h old, copy of profile:work, 20 MB, orphaned
        web (browser, sess_00000002): 0 tabs, isolation context, 1m old, lost. restore brings it back.
        Sessions of others are not shown.
        ");
    }
}
