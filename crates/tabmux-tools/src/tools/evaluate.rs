//! Runs a script in the page.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault};
use tabmux_driver::DriverError;

use crate::arguments::{of_page, own_schema};
use crate::reply::{failed, place};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "evaluate",
    group: Group::Act,
    level: Level::Core,
    description: "Run JavaScript in the page; returns its value as JSON.",
    effect: Effect::Write,
    own_schema: own_schema::<Evaluate>,
    run: Run::Page(&RunScript),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Evaluate {
    /// Expression
    script: String,
}

/// How long a value may be to be given as data beside the text.
const MAX_VALUE_BYTES: usize = 64 * 1024;

struct RunScript;

#[async_trait]
impl PageTool for RunScript {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let args: Evaluate = of_page(&args)?;
        let (tab, page) = cx.page().await?;
        let before = page.url();
        let value = page.evaluate(&args.script).await;
        if page.url() != before {
            cx.moved(tab);
        }
        let value = value.map_err(|error| match error {
            DriverError::Navigated => {
                let message =
                    format!("The page went elsewhere while the script ran, so its value is lost; it is at {} now.", place(&*page));
                Fault::new(Code::OutcomeUnknown, message, "Look at the page before you evaluate again.")
            }
            other => failed(other),
        })?;
        let text = value.to_string();
        let reply = Reply::text(visible::text(&text)).about(tab, &page);
        // For programs; what is long they read from the text.
        Ok(if text.len() <= MAX_VALUE_BYTES { reply.with("value", value) } else { reply })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tabmux_core::Code;

    use crate::testing::{TestPages, text};
    use crate::{MAX_TEXT_BYTES, Pages};

    #[tokio::test]
    async fn the_value_comes_as_json() {
        let pages = TestPages::new().await;
        for value in [json!({ "a": [1, null] }), json!("x\n\u{202e}y"), json!(null)] {
            let reply = pages.call("evaluate", json!({ "script": value.to_string() })).await.unwrap();
            assert_eq!(serde_json::from_str::<Value>(text(&reply)).unwrap(), value);
            assert!(!text(&reply).contains('\u{202e}'));
        }
        assert!(pages.moved().is_empty(), "no script here left its page");
    }

    #[tokio::test]
    async fn a_script_that_fails_says_why() {
        let pages = TestPages::new().await;
        let fault = pages.call("evaluate", json!({ "script": "throw(\"no milk\")" })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] The script failed: no milk. Correct the script, then evaluate again.");
        let fault = pages.call("evaluate", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] Argument script is missing. Give script: a string.");
    }

    #[tokio::test]
    async fn a_page_that_goes_elsewhere_meanwhile_says_where_it_is() {
        let pages = TestPages::new().await;
        let (tab, page) = pages.page().await.unwrap();
        let elsewhere = async {
            tokio::task::yield_now().await;
            page.navigate(tabmux_driver::Navigation::To("http://a.test/b")).await.unwrap();
        };
        let (fault, ()) = tokio::join!(pages.call("evaluate", json!({ "script": "hang()" })), elsewhere);
        insta::assert_snapshot!(fault.unwrap_err(), @r#"[outcome_unknown] The page went elsewhere while the script ran, so its value is lost; it is at http://a.test/b — "Fake page at a.test/b" now. Look at the page before you evaluate again."#);
        assert_eq!(pages.moved(), [tab]);
    }

    #[tokio::test]
    async fn a_huge_value_is_cut_and_says_so() {
        let pages = TestPages::new().await;
        let reply = pages.call("evaluate", json!({ "script": "\"x\".repeat(1000000)" })).await.unwrap();
        assert!(text(&reply).len() < MAX_TEXT_BYTES + 200 && text(&reply).contains("the first 200000 of 1000002 bytes"));
    }

    #[tokio::test]
    async fn a_crashed_page_says_how_to_bring_it_back() {
        let pages = TestPages::new().await;
        pages.call("evaluate", json!({ "script": "crash()" })).await.unwrap_err();
        let fault = pages.call("evaluate", json!({ "script": "1" })).await.unwrap_err();
        assert_eq!(fault.code, Code::TabCrashed);
        pages.call("navigate", json!({ "reload": true })).await.unwrap();
        assert_eq!(text(&pages.call("evaluate", json!({ "script": "1" })).await.unwrap()), "1");
    }
}
