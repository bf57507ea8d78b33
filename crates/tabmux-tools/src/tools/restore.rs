//! Brings back what a session lost with its browser.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::Touch;

use super::migrate::pages_now;
use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, Move, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "restore",
    group: Group::State,
    level: Level::Full,
    description: "After browser_crashed: bring back pages and logins as saved last.",
    effect: Effect::Write,
    own_schema: own_schema::<Restore>,
    run: Run::Page(&Back),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Restore {}

struct Back;

#[async_trait]
impl PageTool for Back {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let Restore {} = of_page(&args)?;
        cx.move_house(Move::Back).await?;
        Ok(pages_now("Brought back", &cx.list().await))
    }

    fn comes_after_a_loss(&self) -> bool {
        true
    }

    fn touch(&self, _args: &Arguments) -> Option<Touch> {
        Some(Touch::Governs)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::Move;
    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn what_was_brought_back_is_said() {
        let pages = TestPages::new().await;
        let reply = pages.call("restore", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Brought back 0 pages.");
        assert_eq!(pages.houses(), [Move::Back]);
    }
}
