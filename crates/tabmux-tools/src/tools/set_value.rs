//! Gives a field a value, whatever kind it is, and knows that it kept it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::Verb;

use crate::act::{act, selector};
use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "set_value",
    group: Group::Act,
    level: Level::Slim,
    description: "Set a field's value (any kind; checkbox: true/false).",
    effect: Effect::Write,
    own_schema: own_schema::<SetValue>,
    run: Run::Page(&Sets),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SetValue {
    /// As click_element
    selector: String,
    /// New value
    value: String,
}

struct Sets;

#[async_trait]
impl PageTool for Sets {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: SetValue = of_page(&args)?;
        act(cx, common, Verb::SetValue { selector: selector(&args.selector)?, value: args.value }, "Set").await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn the_value_that_stuck_is_said() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let set = async |selector: &str, value: &str| pages.call("set_value", json!({ "selector": selector, "value": value })).await;
        assert_eq!(text(&set("~Name", "Ann").await.unwrap()), "Set e11 textbox \"Name\". It is \"Ann\" now.");
        assert_eq!(text(&set("#agree", "true").await.unwrap()), "Set e12 checkbox \"I agree\". It is on now.");
        insta::assert_snapshot!(set("#agree", "maybe").await.unwrap_err(), @r#"[element_not_actionable] e12 checkbox "I agree" takes true or false, not "maybe". Look at the page, put that right, then try again."#);
        insta::assert_snapshot!(set("#go", "x").await.unwrap_err(), @r#"[element_not_actionable] e13 button "Go" takes no value. Look at the page, put that right, then try again."#);
    }
}
