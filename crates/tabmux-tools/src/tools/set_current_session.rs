//! Chooses the session that calls without a `sessionId` go to.

use async_trait::async_trait;
use serde_json::{Value, json};

use crate::arguments::{NoArguments, missing, of_desk};
use crate::{Arguments, Common, Desk, DeskTool, Effect, Group, Level, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "set_current_session",
    group: Group::Sessions,
    level: Level::Core,
    description: "Choose the session that calls without sessionId go to.",
    effect: Effect::Write,
    own_schema,
    run: Run::Desk(&SetCurrent),
};

struct SetCurrent;

/// Its only argument is the common one, here required.
fn own_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "sessionId": { "type": "string", "description": "Session to make current" } },
        "required": ["sessionId"],
        "additionalProperties": false,
    })
}

#[async_trait]
impl DeskTool for SetCurrent {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult {
        let NoArguments {} = of_desk(common, &args)?;
        let name = common.session.as_deref().ok_or_else(|| missing("sessionId", "a session's name, from list_sessions"))?;
        let session = desk.set_current(name).await?;
        Ok(Reply::text(format!("Current session: {}.", visible::line(&session.session_id)))
            .with("sessionId", session.session_id)
            .with("sessionType", session.kind))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::Code;

    use crate::testing::{TestDesk, text};

    #[tokio::test]
    async fn the_named_session_becomes_current() {
        let desk = TestDesk::default();
        desk.call("start_browser", json!({ "sessionId": "a" })).await.unwrap();
        desk.call("start_browser", json!({ "sessionId": "b" })).await.unwrap();
        let reply = desk.call("set_current_session", json!({ "sessionId": "a" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Current session: a.");
        let list = desk.call("list_sessions", json!({})).await.unwrap();
        assert_eq!(list.structured.unwrap()["currentSession"], "a");
    }

    #[tokio::test]
    async fn the_session_must_be_named_and_exist() {
        let desk = TestDesk::default();
        let fault = desk.call("set_current_session", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] Argument sessionId is missing. Give sessionId: a session's name, from list_sessions.");
        let fault = desk.call("set_current_session", json!({ "sessionId": "x" })).await.unwrap_err();
        assert_eq!(fault.code, Code::SessionNotFound);
    }
}
