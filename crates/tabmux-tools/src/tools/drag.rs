//! Drags one element onto another.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::Verb;

use crate::act::{act, selector};
use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "drag",
    group: Group::Act,
    level: Level::Full,
    description: "Drag an element onto another.",
    effect: Effect::Write,
    own_schema: own_schema::<Drag>,
    run: Run::Page(&Drags),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Drag {
    /// As click_element
    from: String,
    /// As click_element
    to: String,
}

struct Drags;

#[async_trait]
impl PageTool for Drags {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: Drag = of_page(&args)?;
        act(cx, common, Verb::Drag { from: selector(&args.from)?, to: selector(&args.to)? }, "Dragged").await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn both_ends_of_a_drag_must_be_there() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        assert_eq!(text(&pages.call("drag", json!({ "from": "#go", "to": "#next" })).await.unwrap()), "Dragged e13 button \"Go\".");
        insta::assert_snapshot!(pages.call("drag", json!({ "from": "#go", "to": "#none" })).await.unwrap_err(), @r##"[element_not_found] No element matches "#none". Look at the page again, then give another selector."##);
    }
}
