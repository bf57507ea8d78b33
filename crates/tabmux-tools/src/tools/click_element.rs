//! Clicks an element as a person would, and knows that it was this one that was hit.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::{Bring, Button, Click, Modifiers, Verb};

use crate::act::{act, selector};
use crate::arguments::{of_page, own_schema, wrong};
use crate::reply::failed;
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "click_element",
    group: Group::Act,
    level: Level::Slim,
    description: "Click an element.",
    effect: Effect::Write,
    own_schema: own_schema::<ClickElement>,
    run: Run::Page(&Clicks),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ClickElement {
    /// Ref e12, CSS, XPath, ~accessibility-id, text=x, role=button[name="x"]
    selector: String,
    /// Default: true
    scroll_to_view: Option<bool>,
    /// left, right, middle
    button: Option<String>,
    /// Clicks
    count: Option<u8>,
    /// Control+Shift
    modifiers: Option<String>,
}

struct Clicks;

#[async_trait]
impl PageTool for Clicks {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let args: ClickElement = of_page(&args)?;
        let button = match args.button.as_deref() {
            None | Some("left") => Button::Left,
            Some("right") => Button::Right,
            Some("middle") => Button::Middle,
            Some(other) => return Err(wrong("button", &other.into(), "left, right or middle")),
        };
        let count = args.count.unwrap_or(1);
        if !(1..=3).contains(&count) {
            return Err(wrong("count", &count.into(), "1, 2 or 3"));
        }
        let mut modifiers = Modifiers::default();
        for name in args.modifiers.iter().flat_map(|names| names.split('+')) {
            modifiers.hold(name.trim()).map_err(failed)?;
        }
        let bring = if args.scroll_to_view.unwrap_or(true) { Bring::IntoView } else { Bring::Nowhere };
        let click = Click { selector: selector(&args.selector)?, bring, button, count, modifiers };
        act(cx, common, Verb::Click(click), "Clicked").await
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::{Code, TabId};

    use crate::testing::{TestPages, text};

    /// S0.27, S0.28
    #[tokio::test]
    async fn a_click_finds_its_element_by_every_kind_of_selector() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        for selector in ["#go", "@e13", "e13", "~Go", "text=go", "role=button[name=\"Go\"]"] {
            let reply = pages.call("click_element", json!({ "selector": selector, "scrollToView": false })).await.unwrap();
            assert_eq!(text(&reply), "Clicked e13 button \"Go\".", "{selector}");
        }
        let reply = pages.call("read_text", json!({})).await.unwrap();
        assert_eq!(text(&reply).matches("Clicked.").count(), 6);
    }

    #[tokio::test]
    async fn a_click_that_goes_elsewhere_is_noted() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let reply = pages.call("click_element", json!({ "selector": "#next" })).await.unwrap();
        assert_eq!(reply.result["url"], "http://a.test/next");
        assert_eq!(pages.moved(), [TabId(1), TabId(1)]);
    }

    #[tokio::test]
    async fn what_cannot_be_clicked_says_why() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let refused = async |args| pages.call("click_element", args).await.unwrap_err();
        insta::assert_snapshot!(refused(json!({ "selector": "#off" })).await, @r#"[element_not_actionable] e15 button "Off" is disabled. Look at the page, put that right, then try again."#);
        insta::assert_snapshot!(refused(json!({ "selector": "e3" })).await, @"[stale_ref] e3 is not on the page (any more). Take a snapshot to see what is there now.");
        insta::assert_snapshot!(refused(json!({ "selector": "#none" })).await, @r##"[element_not_found] No element matches "#none". Look at the page again, then give another selector."##);
        insta::assert_snapshot!(refused(json!({ "selector": "text=\"a" })).await, @r#"[bad_argument] "text=\"a" is no selector: the quoted text does not end as it begins. Give a ref such as e12, CSS, XPath (//…), ~accessibility-id, text=… or role=button[name="…"]."#);
        insta::assert_snapshot!(refused(json!({ "selector": "#go", "button": "up" })).await, @r#"[bad_argument] Argument button is "up". It must be left, right or middle."#);
        insta::assert_snapshot!(refused(json!({ "selector": "#go", "modifiers": "Hyper" })).await, @r#"[bad_argument] "Hyper" is no key. Write it as "Enter", "a" or "Control+Shift+ArrowLeft"."#);
        assert_eq!(refused(json!({ "selector": "#go", "count": 9 })).await.code, Code::BadArgument);
    }
}
