//! Scrolls the page, to an element, or within one.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::Verb;

use crate::act::{act, optional};
use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "scroll",
    group: Group::Act,
    level: Level::Core,
    description: "Scroll the page or, with selector, to an element or by x/y within it.",
    effect: Effect::Write,
    own_schema: own_schema::<Scroll>,
    run: Run::Page(&Scrolls),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Scroll {
    /// As click_element
    selector: Option<String>,
    /// Pixels right
    x: Option<f64>,
    /// Pixels down
    y: Option<f64>,
}

struct Scrolls;

#[async_trait]
impl PageTool for Scrolls {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: Scroll = of_page(&args)?;
        let by = (args.x.is_some() || args.y.is_some()).then(|| (args.x.unwrap_or_default(), args.y.unwrap_or_default()));
        act(cx, common, Verb::Scroll { selector: optional(args.selector.as_deref())?, by }, "Scrolled").await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn a_page_that_is_all_shown_does_not_move() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let reply = pages.call("scroll", json!({ "y": 100 })).await.unwrap();
        assert_eq!(text(&reply), "Scrolled the page. Nothing moved: all of it is shown.");
    }
}
