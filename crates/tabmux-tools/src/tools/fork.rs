//! Makes copies of a session, with its pages and logins: log in once, fan out. How, and for whom, the daemon decides.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tabmux_core::Fault;

use crate::arguments::{of_desk, own_schema};
use crate::{Arguments, Common, Desk, DeskTool, Effect, Forked, Group, Level, Reply, Run, SessionView, Tool, ToolResult, visible};

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
        let forked = desk.fork(common.session.as_deref(), count.unwrap_or(1), prefix.as_deref()).await?;
        match &forked.missing {
            None => Ok(said(&forked)),
            Some(fault) => {
                desk.tell("sessions", json!(forked.sessions));
                Err(too_few(&forked, fault))
            }
        }
    }
}

fn said(forked: &Forked) -> Reply {
    let text = format!("Copied into {}. Pass one as sessionId.", names(forked));
    let text = warnings(forked).fold(text, |text, warning| format!("{text}\n{warning}"));
    Reply::text(text).with("sessions", json!(forked.sessions))
}

/// Fewer than were asked for is a failure, and those that were made are named all the same: they are there.
fn too_few(forked: &Forked, fault: &Fault) -> Fault {
    let made = format!("{} There are: {}.", fault.message, names(forked));
    let message = warnings(forked).fold(made, |message, warning| format!("{message} {warning}"));
    Fault { message, ..fault.clone() }
}

fn names(forked: &Forked) -> String {
    forked.sessions.iter().map(|session| visible::line(&session.session_id)).collect::<Vec<_>>().join(", ")
}

/// What is not as in the original, by copy.
fn warnings(forked: &Forked) -> impl Iterator<Item = String> {
    let said = |session: &SessionView| session.warning.as_ref().map(|warning| format!("{}: {warning}", visible::line(&session.session_id)));
    forked.sessions.iter().filter_map(said)
}

#[cfg(test)]
mod tests {
    use tabmux_core::Code;

    use super::*;
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
    fn what_was_lost_is_said_with_each_copy() {
        let copy = SessionView { warning: Some("A cookie was refused.".into()), ..TestDesk::session("main-1", 1) };
        let forked = Forked { sessions: vec![copy, TestDesk::session("main-2", 2)], missing: None };
        insta::assert_snapshot!(text(&said(&forked)), @r"
        Copied into main-1, main-2. Pass one as sessionId.
        main-1: A cookie was refused.
        ");
    }

    #[test]
    fn fewer_than_were_asked_for_is_a_failure_that_names_those_there_are() {
        let copy = SessionView { warning: Some("A cookie was refused.".into()), ..TestDesk::session("main-1", 1) };
        let fault = Fault::new(Code::Capacity, "1 of 2 copies were made: all seats are taken.", "Close one.");
        let said = too_few(&Forked { sessions: vec![copy], missing: None }, &fault);
        insta::assert_snapshot!(said, @"[capacity] 1 of 2 copies were made: all seats are taken. There are: main-1. main-1: A cookie was refused. Close one.");
    }
}
