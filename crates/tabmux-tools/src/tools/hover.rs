//! Moves the pointer over an element.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::Verb;

use crate::act::{act, selector};
use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "hover",
    group: Group::Act,
    level: Level::Full,
    description: "Move the pointer over an element.",
    effect: Effect::Write,
    own_schema: own_schema::<Hover>,
    run: Run::Page(&Hovers),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Hover {
    /// As click_element
    selector: String,
}

struct Hovers;

#[async_trait]
impl PageTool for Hovers {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: Hover = of_page(&args)?;
        act(cx, common, Verb::Hover { selector: selector(&args.selector)? }, "The pointer is over").await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn the_pointer_rests_on_the_element() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let reply = pages.call("hover", json!({ "selector": "text=Next" })).await.unwrap();
        assert_eq!(text(&reply), "The pointer is over e14 link \"Next\".");
    }
}
