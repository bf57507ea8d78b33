//! Reads what a person would read on the page.

use async_trait::async_trait;

use crate::arguments::{NoArguments, of_page, own_schema};
use crate::reply::failed;
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "read_text",
    group: Group::See,
    level: Level::Slim,
    description: "Read the page's visible text.",
    effect: Effect::Read,
    own_schema: own_schema::<NoArguments>,
    run: Run::Page(&Read),
};

struct Read;

#[async_trait]
impl PageTool for Read {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let NoArguments {} = of_page(&args)?;
        let (tab, page) = cx.page().await?;
        let text = page.text().await.map_err(failed)?;
        let text = if text.trim().is_empty() { "The page has no visible text.".to_owned() } else { visible::text(&text) };
        Ok(Reply::text(text).about(tab, &page))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn the_text_is_that_of_the_page_the_call_is_for() {
        let pages = TestPages::new().await;
        for url in ["http://a.test/", "http://b.test/"] {
            pages.call("new_page", json!({ "url": url })).await.unwrap();
        }
        let reply = pages.call("read_text", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"The fake page at http://b.test/.");
        let reply = pages.call("read_text", json!({ "tabId": "t1" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"The fake page at http://a.test/.");
        assert_eq!(reply.result["tabId"], "t1");
    }

    #[tokio::test]
    async fn an_open_dialog_is_the_answer() {
        let pages = TestPages::new().await;
        pages.with_open_dialog("alert(\"stop\")").await;
        let fault = pages.call("read_text", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @r#"[dialog_open] A dialog is open (alert): "stop". Answer it with handle_dialog, then go on."#);
    }
}
