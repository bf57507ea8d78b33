//! Makes copies of a session, with its pages and logins: log in once, fan out. How, and for whom, the daemon decides.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use crate::arguments::{of_desk, own_schema};
use crate::{Arguments, Common, Desk, DeskTool, Effect, Forked, Group, Level, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "fork",
    group: Group::Sessions,
    level: Level::Full,
    description: "Copy a session with its pages and logins, count times.",
    effect: Effect::Write,
    own_schema: own_schema::<Fork>,
    run: Run::Desk(&Fan),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Fork {
    /// Default: 1
    count: Option<u32>,
    /// Of their names; default: the session's
    prefix: Option<String>,
}

struct Fan;

#[async_trait]
impl DeskTool for Fan {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult {
        let Fork { count, prefix } = of_desk(common, &args)?;
        let count = count.unwrap_or(1);
        desk.fork(common.session.as_deref(), count, prefix.as_deref()).await.map(|forked| said(&forked))
    }
}

/// Fewer than were asked for are named all the same: they are there.
fn said(forked: &Forked) -> Reply {
    let names: Vec<String> = forked.sessions.iter().map(|session| visible::line(&session.session_id)).collect();
    let mut text = format!("Copied into {}. Pass one as sessionId.", names.join(", "));
    for session in &forked.sessions {
        if let Some(warning) = &session.warning {
            text += &format!("\n{}: {warning}", visible::line(&session.session_id));
        }
    }
    if let Some(fault) = &forked.missing {
        text += &format!("\n{fault}");
    }
    let reply = Reply::text(text).with("sessions", json!(forked.sessions));
    match &forked.missing {
        Some(fault) => reply.with("error", json!({"code": fault.code.name(), "message": fault.message, "hint": fault.hint})),
        None => reply,
    }
}

#[cfg(test)]
mod tests {
    use tabmux_core::{Code, Fault};

    use super::*;
    use crate::SessionView;
    use crate::testing::{TestDesk, text};

    #[tokio::test]
    async fn copies_are_named_for_whoever_uses_them() {
        let desk = TestDesk::default();
        desk.call("start_browser", json!({"sessionId": "main"})).await.unwrap();
        let reply = desk.call("fork", json!({"sessionId": "main", "count": 2})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Copied into main-1, main-2. Pass one as sessionId.");
        assert_eq!(reply.result["sessions"][1]["sessionId"], json!("main-2"));
        let reply = desk.call("fork", json!({"sessionId": "main", "prefix": "x"})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Copied into x-1. Pass one as sessionId.");
        for wrong in [json!({"count": -1}), json!({"count": "many"}), json!({"number": 1})] {
            assert_eq!(desk.call("fork", wrong.clone()).await.unwrap_err().code, Code::BadArgument, "{wrong}");
        }
    }

    #[test]
    fn what_is_missing_and_what_was_lost_is_said() {
        let copy = SessionView { warning: Some("A cookie was refused.".into()), ..TestDesk::session("main-1", 1) };
        let fault = Fault::new(Code::Capacity, "1 of 2 copies were made: all seats are taken.", "Close one.");
        let reply = said(&Forked { sessions: vec![copy], missing: Some(fault) });
        insta::assert_snapshot!(text(&reply), @r"
        Copied into main-1. Pass one as sessionId.
        main-1: A cookie was refused.
        [capacity] 1 of 2 copies were made: all seats are taken. Close one.
        ");
        assert_eq!(reply.result["error"]["code"], json!("capacity"));
    }
}
