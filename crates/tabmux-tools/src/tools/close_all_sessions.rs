//! Ends every session of the caller, or gives them away.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::arguments::{of_desk, own_schema};
use crate::reply::counted;
use crate::{Arguments, Common, Desk, DeskTool, Effect, Group, Level, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "close_all_sessions",
    group: Group::Sessions,
    level: Level::Core,
    description: "Close all your sessions, whatever sessionId says.",
    effect: Effect::Write,
    own_schema: own_schema::<CloseAll>,
    run: Run::Desk(&Close),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CloseAll {
    /// Hand them to the human instead
    detach: Option<bool>,
}

struct Close;

#[async_trait]
impl DeskTool for Close {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult {
        let args: CloseAll = of_desk(common, &args)?;
        let detach = args.detach.unwrap_or_default();
        let closed = desk.close_all(detach).await?;
        let names: Vec<_> = closed.iter().map(|session| visible::line(&session.session_id)).collect();
        let (number, list) = (counted(names.len(), "session"), names.join(", "));
        let text = match (names.is_empty(), detach) {
            (true, false) => "There was no session to close.".to_owned(),
            (true, true) => "There was no session to hand over; what is the operator's stays so.".to_owned(),
            (false, false) => format!("Closed {number}: {list}."),
            (false, true) => format!("Detached {number}: {list}. They stay open and belong to the operator now."),
        };
        Ok(Reply::text(text).with("sessions", names))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestDesk, text};

    #[tokio::test]
    async fn every_session_closes_and_each_is_named() {
        let desk = TestDesk::default();
        for name in ["a", "b"] {
            desk.call("start_browser", json!({ "sessionId": name })).await.unwrap();
        }
        let reply = desk.call("close_all_sessions", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Closed 2 sessions: a, b.");
        assert_eq!((reply.result["sessions"].clone(), desk.names()), (json!(["a", "b"]), vec![]));
        let reply = desk.call("close_all_sessions", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"There was no session to close.");
    }

    #[tokio::test]
    async fn detached_sessions_stay_open() {
        let desk = TestDesk::default();
        desk.call("start_browser", json!({ "sessionId": "a" })).await.unwrap();
        let reply = desk.call("close_all_sessions", json!({ "detach": true })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Detached 1 session: a. They stay open and belong to the operator now.");
        assert_eq!(desk.detached(), ["a"]);
    }
}
