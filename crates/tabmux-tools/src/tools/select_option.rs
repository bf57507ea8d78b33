//! Chooses from a list, the browser's own or one that the page made.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::Verb;

use crate::act::{act, selector};
use crate::arguments::{of_page, own_schema, wrong};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "select_option",
    group: Group::Act,
    level: Level::Core,
    description: "Choose from a list or combobox.",
    effect: Effect::Write,
    own_schema: own_schema::<SelectOption>,
    run: Run::Page(&Chooses),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct SelectOption {
    /// As click_element
    selector: String,
    /// Labels or values
    options: Vec<String>,
}

/// More than anybody chooses at once.
const MAX_OPTIONS: usize = 100;

struct Chooses;

#[async_trait]
impl PageTool for Chooses {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: SelectOption = of_page(&args)?;
        if args.options.is_empty() || args.options.len() > MAX_OPTIONS {
            return Err(wrong("options", &args.options.into(), &format!("1 to {MAX_OPTIONS} labels or values")));
        }
        act(cx, common, Verb::Select { selector: selector(&args.selector)?, options: args.options }, "Chose in").await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::TestPages;

    #[tokio::test]
    async fn what_has_no_options_says_so() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let fault = pages.call("select_option", json!({ "selector": "#go", "options": ["a"] })).await.unwrap_err();
        insta::assert_snapshot!(fault, @r#"[element_not_actionable] e13 button "Go" has no options. Look at the page, put that right, then try again."#);
        insta::assert_snapshot!(pages.call("select_option", json!({ "selector": "#go", "options": [] })).await.unwrap_err(), @"[bad_argument] Argument options is []. It must be 1 to 100 labels or values.");
    }
}
