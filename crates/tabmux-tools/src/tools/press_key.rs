//! Presses a key, with others held.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::{Chord, Verb};

use crate::act::{act, optional};
use crate::arguments::{of_page, own_schema};
use crate::reply::failed;
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "press_key",
    group: Group::Act,
    level: Level::Core,
    description: "Press a key or a chord.",
    effect: Effect::Write,
    own_schema: own_schema::<PressKey>,
    run: Run::Page(&Presses),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PressKey {
    /// Enter, Control+A, ArrowDown
    key: String,
    /// Focus this first
    selector: Option<String>,
}

struct Presses;

#[async_trait]
impl PageTool for Presses {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: PressKey = of_page(&args)?;
        let chord = Chord::parse(&args.key).map_err(failed)?;
        let selector = optional(args.selector.as_deref())?;
        act(cx, common, Verb::Press { selector, chord }, &format!("Pressed {} in", visible::line(&args.key))).await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn a_key_does_in_a_field_what_it_does_there() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        assert_eq!(text(&pages.call("press_key", json!({ "key": "Escape" })).await.unwrap()), "Pressed Escape in the page.");
        pages.call("set_value", json!({ "selector": "#name", "value": "Ann" })).await.unwrap();
        let reply = pages.call("press_key", json!({ "key": "Enter" })).await.unwrap();
        assert_eq!(text(&reply), "Pressed Enter in e11 textbox \"Name\".");
        assert!(text(&pages.call("read_text", json!({})).await.unwrap()).contains("Hello Ann."));
        insta::assert_snapshot!(pages.call("press_key", json!({ "key": "Entr" })).await.unwrap_err(), @r#"[bad_argument] "Entr" is no key. Write it as "Enter", "a" or "Control+Shift+ArrowLeft"."#);
    }
}
