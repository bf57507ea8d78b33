//! What can be seen and acted upon, each with a CSS selector that also works in another session on the same page.

use async_trait::async_trait;
use serde_json::json;

use crate::arguments::{NoArguments, of_page, own_schema};
use crate::reply::failed;
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "get_visible_elements",
    group: Group::See,
    level: Level::Full,
    description: "Visible elements with text and cssSelector, which other sessions can use too; snapshot is shorter.",
    effect: Effect::Read,
    own_schema: own_schema::<NoArguments>,
    run: Run::Page(&Visible),
};

struct Visible;

#[async_trait]
impl PageTool for Visible {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let NoArguments {} = of_page(&args)?;
        let (tab, page) = cx.page().await?;
        let (mut elements, left) = page.elements().await.map_err(failed)?;
        let mut lines: Vec<_> = elements.iter().map(|element| visible::text(&json!(element).to_string())).collect();
        if lines.is_empty() {
            lines.push("Nothing can be seen.".into());
        }
        if left > 0 {
            lines.push(format!("[{left} more; snapshot shows them.]"));
        }
        // Some clients show this in place of the text. A selector has to stay what it is.
        for element in &mut elements {
            element.text = visible::line(&element.text);
            element.frame = element.frame.as_deref().map(visible::line);
        }
        let reply = Reply::text(lines.join("\n")).about(tab, &page);
        Ok(reply.structured(json!({ "elements": elements, "left": left })))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::testing::{TestPages, text};

    /// S0.29
    #[tokio::test]
    async fn elements_have_a_text_and_a_selector() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/" })).await.unwrap();
        let reply = pages.call("get_visible_elements", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"{"text":"http://a.test/","cssSelector":"a","role":"link","tag":"a"}"#);
        assert_eq!(reply.structured.unwrap()["elements"][0]["cssSelector"], "a");
    }
}
