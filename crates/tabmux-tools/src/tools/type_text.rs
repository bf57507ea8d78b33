//! Types a text key by key.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::{MAX_TYPED, Verb};

use crate::act::{act, optional};
use crate::arguments::{of_page, own_schema, wrong};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "type_text",
    group: Group::Act,
    level: Level::Core,
    description: "Type with keys where the focus is, or into selector.",
    effect: Effect::Write,
    own_schema: own_schema::<TypeText>,
    run: Run::Page(&Types),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TypeText {
    /// Text
    text: String,
    /// As click_element
    selector: Option<String>,
}

struct Types;

#[async_trait]
impl PageTool for Types {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: TypeText = of_page(&args)?;
        if args.text.is_empty() || args.text.chars().count() > MAX_TYPED {
            return Err(wrong("text", &args.text.chars().take(20).collect::<String>().into(), &format!("1 to {MAX_TYPED} characters")));
        }
        act(cx, common, Verb::Type { selector: optional(args.selector.as_deref())?, text: args.text }, "Typed into").await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn keys_go_where_the_focus_is() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        insta::assert_snapshot!(pages.call("type_text", json!({ "text": "x" })).await.unwrap_err(), @"[element_not_actionable] No field has the focus. Give selector, or click a field first.");
        let reply = pages.call("type_text", json!({ "text": "An", "selector": "#name" })).await.unwrap();
        assert_eq!(text(&reply), "Typed into e11 textbox \"Name\". It is \"An\" now.");
        assert_eq!(
            text(&pages.call("type_text", json!({ "text": "n" })).await.unwrap()),
            "Typed into e11 textbox \"Name\". It is \"Ann\" now."
        );
        insta::assert_snapshot!(pages.call("type_text", json!({ "text": "" })).await.unwrap_err(), @r#"[bad_argument] Argument text is "". It must be 1 to 10000 characters."#);
    }
}
