//! Waits until the page is as wanted, for as long as the call may take.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;
use tabmux_core::{Code, Fault, Touch};
use tabmux_driver::{Awaited, Condition, DriverError, UrlPattern};

use crate::arguments::{of_page, own_schema, wrong};
use crate::reply::{failed, place};
use crate::tool::beginning;
use crate::{Arguments, Common, Effect, Group, Late, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

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
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct WaitFor {
    /// Visible text
    text: Option<String>,
    /// Visible element
    selector: Option<String>,
    /// Part of the URL, or glob with *
    url: Option<String>,
    /// Text or selector to vanish
    gone: Option<String>,
    /// No request for 500 ms
    network_idle: Option<bool>,
    /// JavaScript, until true
    function: Option<String>,
    /// Watch another session of yours
    #[serde(rename = "in")]
    #[allow(dead_code, reason = "who decides about calls has read it")]
    elsewhere: Option<String>,
}

struct Wait;

#[async_trait]
impl PageTool for Wait {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let awaited = Awaited { lacks: cx.lacks(), ..awaited(of_page(&args)?)? };
        let (tab, page) = cx.page().await?;
        let before = page.url();
        page.wait_for(&awaited).await.map_err(|error| match error {
            DriverError::ScriptFailed(_) => Fault { hint: "Correct function, then wait again.".into(), ..failed(error) },
            other => failed(other),
        })?;
        if page.url() != before {
            cx.moved(tab);
        }
        page.refresh_title().await;
        let text = format!("{} at {}.", told(&awaited), place(&*page));
        Ok(Reply::text(text).about(tab, &page))
    }

    fn watches(&self, args: &Arguments) -> Option<String> {
        args.get("in").and_then(Value::as_str).map(str::to_owned)
    }

    fn late(&self, args: &Arguments) -> Option<Late> {
        let hint = "See with snapshot what is there instead, or wait again with a longer timeout (ms, at most 600000).";
        let awaited = awaited(of_page(args).ok()?).ok()?;
        let parts = missed(&awaited);
        let all: Vec<&str> = parts.iter().map(|(_, said)| said.as_str()).collect();
        Some(Late { what: beginning(all.join(", or ")), parts, hint, function: awaited.function })
    }

    /// A script can do anything.
    fn touch(&self, args: &Arguments) -> Option<Touch> {
        Some(if args.get("function").is_none_or(Value::is_null) { Touch::Looks } else { Touch::Acts })
    }
}

fn awaited(args: WaitFor) -> Result<Awaited, Fault> {
    let given =
        [("text", &args.text), ("selector", &args.selector), ("url", &args.url), ("gone", &args.gone), ("function", &args.function)];
    for (name, value) in given {
        if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
            return Err(wrong(name, &"".into(), "what to wait for; it is empty"));
        }
    }
    let network_idle = args.network_idle.unwrap_or_default();
    if !network_idle && given.iter().all(|(_, value)| value.is_none()) {
        let hint = "Give text, selector, url, gone, networkIdle or function.";
        return Err(Fault::new(Code::BadArgument, "wait_for was told nothing to wait for.", hint));
    }
    Ok(Awaited {
        text: args.text,
        selector: args.selector,
        url: args.url.map(UrlPattern),
        gone: args.gone,
        network_idle,
        function: args.function,
        ..Awaited::default()
    })
}

fn told(awaited: &Awaited) -> &'static str {
    let Awaited { text, selector, url, gone, network_idle, function, .. } = awaited;
    let there = text.is_some() || selector.is_some();
    match (there, url.is_some(), gone.is_some(), *network_idle || function.is_some()) {
        (false, false, true, false) => "It is gone",
        (false, true, false, false) => "The page is",
        (true, _, false, false) => "It is there",
        (false, false, false, true) if function.is_none() => "The network is idle",
        _ => "All of it holds",
    }
}

/// What had to hold at once, and did not.
fn missed(awaited: &Awaited) -> Vec<(Condition, String)> {
    let Awaited { text, selector, url, gone, network_idle, function, .. } = awaited;
    let said =
        |what: &Option<String>, before: &str, after: &str| what.as_ref().map(|what| format!("{before}{}{after}", visible::quoted(what)));
    let parts = [
        (Condition::Text, said(text, "text ", " did not appear")),
        (Condition::Selector, said(selector, "no element ", " could be seen")),
        (Condition::Url, url.as_ref().map(|UrlPattern(url)| format!("the page did not come to {}", visible::quoted(url)))),
        (Condition::Gone, said(gone, "", " did not go away")),
        (Condition::NetworkIdle, network_idle.then(|| "the network did not become idle".to_owned())),
        (Condition::Function, function.as_ref().map(|_| "the function did not become true".to_owned())),
    ];
    parts.into_iter().filter_map(|(part, said)| Some((part, said?))).collect()
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
            (json!({ "networkIdle": true }), "The network is idle"),
            (json!({ "function": "document.title" }), "All of it holds"),
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
    async fn the_title_is_the_one_the_page_has_then() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        pages.page().await.unwrap().1.evaluate("document.title = 'Done'").await.unwrap();
        let reply = pages.call("wait_for", json!({ "text": "fake" })).await.unwrap();
        assert_eq!(text(&reply), "It is there at http://a.test/ — \"Done\".");
    }

    #[tokio::test]
    async fn a_function_that_throws_is_to_be_corrected() {
        let pages = TestPages::new().await;
        let fault = pages.call("wait_for", json!({ "function": "throw(\"no milk\")" })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] The script failed: no milk. Correct function, then wait again.");
    }

    #[tokio::test]
    async fn nothing_to_wait_for_and_a_page_that_goes_away_are_said() {
        let pages = TestPages::new().await;
        let fault = pages.call("wait_for", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] wait_for was told nothing to wait for. Give text, selector, url, gone, networkIdle or function.");
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
