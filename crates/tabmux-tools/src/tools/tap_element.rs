//! Taps an element with a finger.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::{Bring, Verb};

use crate::act::{act, selector};
use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "tap_element",
    group: Group::Act,
    level: Level::Full,
    description: "Tap an element with a finger.",
    effect: Effect::Write,
    own_schema: own_schema::<TapElement>,
    run: Run::Page(&Taps),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TapElement {
    /// As click_element
    selector: String,
    /// Default: true
    scroll_to_view: Option<bool>,
}

struct Taps;

#[async_trait]
impl PageTool for Taps {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: TapElement = of_page(&args)?;
        let bring = if args.scroll_to_view.unwrap_or(true) { Bring::IntoView } else { Bring::Nowhere };
        act(cx, common, Verb::Tap { selector: selector(&args.selector)?, bring }, "Tapped").await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn a_tap_does_what_a_click_does() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let reply = pages.call("tap_element", json!({ "selector": "#go" })).await.unwrap();
        assert_eq!(text(&reply), "Tapped e13 button \"Go\".");
        assert!(text(&pages.call("read_text", json!({})).await.unwrap()).contains("Clicked."));
    }
}
