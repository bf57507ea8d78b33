//! Ends one session with its tabs.

use async_trait::async_trait;

use crate::arguments::{NoArguments, of_desk, own_schema};
use crate::reply::counted;
use crate::{Arguments, Common, Desk, DeskTool, Effect, Group, Level, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "close_session",
    group: Group::Sessions,
    level: Level::Slim,
    description: "Close a session and its tabs; other sessions stay.",
    effect: Effect::Write,
    own_schema: own_schema::<NoArguments>,
    run: Run::Desk(&Close),
};

struct Close;

#[async_trait]
impl DeskTool for Close {
    async fn run(&self, desk: &dyn Desk, common: &Common, args: Arguments) -> ToolResult {
        let NoArguments {} = of_desk(common, &args)?;
        let session = desk.close(common.session.as_deref()).await?;
        let text = format!("Closed session {} ({}).", visible::line(&session.session_id), counted(session.tabs, "tab"));
        Ok(Reply::text(text).with("sessionId", session.session_id).with("sessionType", session.kind))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::Code;

    use crate::testing::{TestDesk, text};

    #[tokio::test]
    async fn the_named_session_closes_and_the_others_stay() {
        let desk = TestDesk::default();
        for name in ["a", "b"] {
            desk.call("start_browser", json!({ "sessionId": name, "navigationUrl": "http://a.test/" })).await.unwrap();
        }
        let reply = desk.call("close_session", json!({ "sessionId": "a" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Closed session a (1 tab).");
        assert_eq!(desk.names(), ["b"]);
    }

    #[tokio::test]
    async fn without_a_name_the_current_session_closes() {
        let desk = TestDesk::default();
        assert_eq!(desk.call("close_session", json!({})).await.unwrap_err().code, Code::SessionRequired);
        desk.call("start_browser", json!({ "sessionId": "a" })).await.unwrap();
        desk.call("close_session", json!({})).await.unwrap();
        assert!(desk.names().is_empty());
    }
}
