//! Moves a session into another context or browser, with its pages and logins.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::Touch;

use super::start_browser::Isolation;
use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, Move, PageTool, PageView, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "migrate",
    group: Group::State,
    level: Level::Full,
    description: "Move the session's pages and logins to another browser or isolation. Tab ids change.",
    effect: Effect::Write,
    own_schema: own_schema::<Migrate>,
    run: Run::Page(&Moving),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Migrate {
    /// What is its own
    isolation: Option<Isolation>,
    /// No window
    headless: Option<bool>,
    /// Lose what cannot move, share logins
    force: Option<bool>,
}

struct Moving;

#[async_trait]
impl PageTool for Moving {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let Migrate { isolation, headless, force } = of_page(&args)?;
        cx.move_house(Move::To { isolation: isolation.map(Into::into), headless, force: force.unwrap_or_default() }).await?;
        Ok(pages_now("Moved", &cx.list().await))
    }

    fn touch(&self, _args: &Arguments) -> Option<Touch> {
        Some(Touch::Governs)
    }
}

/// What the session's tabs are now.
pub(super) fn pages_now(done: &str, pages: &[PageView]) -> Reply {
    let mut text = format!("{done} {} page{}.", pages.len(), if pages.len() == 1 { "" } else { "s" });
    for page in pages {
        text += &format!("\n{} {}{}", page.tab_id, visible::line(&page.url), if page.current { " (current)" } else { "" });
    }
    let tabs: Vec<&str> = pages.iter().map(|page| page.tab_id.as_str()).collect();
    Reply::text(text).with("tabs", serde_json::json!(tabs))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::Code;
    use tabmux_driver::Isolation;

    use crate::Move;
    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn a_move_says_what_the_tabs_are_now() {
        let pages = TestPages::new().await;
        pages.call("new_page", json!({ "url": "http://a.test/" })).await.unwrap();
        let reply = pages.call("migrate", json!({ "isolation": "browser", "headless": false })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r"
        Moved 1 page.
        t2 http://a.test/ (current)
        ");
        assert_eq!(pages.houses(), [Move::To { isolation: Some(Isolation::Browser), headless: Some(false), force: false }]);
        assert_eq!(pages.call("migrate", json!({ "isolation": "moon" })).await.unwrap_err().code, Code::BadArgument);
    }
}
