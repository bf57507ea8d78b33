//! Waits until the page is as wanted, for as long as the call may take.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault};
use tabmux_driver::{Awaited, UrlPattern};

use crate::arguments::{of_page, own_schema, wrong};
use crate::reply::{failed, place};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult};

pub(crate) const TOOL: Tool = Tool {
    name: "wait_for",
    group: Group::Act,
    level: Level::Core,
    description: "Wait until all given holds.",
    // Sent twice, it only waits twice.
    effect: Effect::Read,
    own_schema: own_schema::<WaitFor>,
    run: Run::Page(&Wait),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WaitFor {
    /// Visible text
    text: Option<String>,
    /// Visible element
    selector: Option<String>,
    /// Part of the URL, or glob with *
    url: Option<String>,
    /// Text or selector to vanish
    gone: Option<String>,
}

struct Wait;

#[async_trait]
impl PageTool for Wait {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let awaited = awaited(of_page(&args)?)?;
        let (tab, page) = cx.page().await?;
        let before = page.url();
        page.wait_for(&awaited).await.map_err(failed)?;
        if page.url() != before {
            cx.moved(tab);
        }
        let text = format!("{} at {}.", told(&awaited), place(&page.url(), &page.title()));
        Ok(Reply::text(text).about(tab, &page))
    }
}

fn awaited(args: WaitFor) -> Result<Awaited, Fault> {
    let given = [("text", &args.text), ("selector", &args.selector), ("url", &args.url), ("gone", &args.gone)];
    for (name, value) in given {
        if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
            return Err(wrong(name, &"".into(), "what to wait for; it is empty"));
        }
    }
    if given.iter().all(|(_, value)| value.is_none()) {
        return Err(Fault::new(Code::BadArgument, "wait_for was told nothing to wait for.", "Give text, selector, url or gone."));
    }
    Ok(Awaited { text: args.text, selector: args.selector, url: args.url.map(UrlPattern), gone: args.gone })
}

fn told(awaited: &Awaited) -> &'static str {
    match awaited {
        Awaited { gone: Some(_), text: None, selector: None, url: None } => "It is gone",
        Awaited { url: Some(_), text: None, selector: None, gone: None } => "The page is",
        Awaited { gone: None, .. } => "It is there",
        Awaited { .. } => "All of it holds",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::{Code, TabId};

    use crate::testing::{TestPages, text};
    use crate::{PageRef, Pages};

    #[tokio::test]
    async fn what_holds_already_is_said_at_once() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/x?title=One" })).await.unwrap();
        for (args, told) in [
            (json!({ "text": "fake PAGE" }), "It is there"),
            (json!({ "gone": "#spinner" }), "It is gone"),
            (json!({ "url": "*/x?*" }), "The page is"),
            (json!({ "url": "/x", "text": "page", "gone": "Loading" }), "All of it holds"),
        ] {
            let reply = pages.call("wait_for", args).await.unwrap();
            assert_eq!(text(&reply), format!("{told} at http://a.test/x?title=One — \"One\"."));
            assert_eq!(reply.result["tabId"], "t1");
        }
        assert_eq!(pages.moved(), [TabId(1)], "only the navigation went elsewhere");
    }

    #[tokio::test]
    async fn waiting_goes_on_until_the_page_is_so_and_its_new_place_is_noted() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let (_, page) = pages.page().await.unwrap();
        let elsewhere = async {
            tokio::task::yield_now().await;
            page.navigate(tabmux_driver::Navigation::To("http://a.test/done")).await.unwrap();
        };
        let (reply, ()) = tokio::join!(pages.call("wait_for", json!({ "url": "/done" })), elsewhere);
        assert_eq!(text(&reply.unwrap()), "The page is at http://a.test/done — \"Fake page at a.test/done\".");
        assert_eq!(pages.moved(), [TabId(1), TabId(1)]);
    }

    #[tokio::test]
    async fn nothing_to_wait_for_and_a_page_that_goes_away_are_said() {
        let pages = TestPages::new().await;
        let fault = pages.call("wait_for", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] wait_for was told nothing to wait for. Give text, selector, url or gone.");
        let fault = pages.call("wait_for", json!({ "text": " " })).await.unwrap_err();
        insta::assert_snapshot!(fault, @r#"[bad_argument] Argument text is "". It must be what to wait for; it is empty."#);
        pages.open().await.unwrap();
        let closing = async {
            tokio::task::yield_now().await;
            Pages::close(&pages, &PageRef::Index(0)).await.unwrap();
        };
        let (waited, _) = tokio::join!(pages.call("wait_for", json!({ "text": "never" })), closing);
        assert_eq!(waited.unwrap_err().code, Code::TabGone);
    }
}
