//! Reads the page as an article, in Markdown. What is between the two lines with the same number is the page's own words and
//! nothing else is: no page can guess the number.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::Fault;
use tabmux_driver::{Article, Reading, Selector};

use crate::arguments::{of_page, own_schema};
use crate::reply::{failed, place};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "read_text",
    group: Group::See,
    level: Level::Slim,
    description: "Read the page as Markdown.",
    effect: Effect::Read,
    own_schema: own_schema::<Read>,
    run: Run::Page(&ReadPage),
};

/// About as many tokens as the longest reply may have.
const MAX_BUDGET: u32 = 50_000;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Read {
    /// Only this; body: all
    selector: Option<String>,
    /// Tokens
    budget: Option<u32>,
    /// Go on
    cursor: Option<String>,
}

/// How long a text may be to be given as data beside the reply.
const MAX_VALUE_BYTES: usize = 64 * 1024;

struct ReadPage;

#[async_trait]
impl PageTool for ReadPage {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let reading = reading(of_page(&args)?)?;
        let (tab, page) = cx.page().await?;
        let article = page.read(&reading).await.map_err(failed)?;
        let first = if reading.cursor.is_none() { format!("{}\n", place(&*page)) } else { String::new() };
        let mut reply = Reply::text(format!("{first}{}", told(&article))).about(tab, &page).with("blocks_left", article.left);
        // For programs, and for the next step of a sequence; what is long they read from the text.
        if article.text.len() <= MAX_VALUE_BYTES {
            reply = reply.with("value", article.text);
        }
        Ok(match article.cursor {
            Some(cursor) => reply.with("cursor", cursor),
            None => reply,
        })
    }
}

fn reading(args: Read) -> Result<Reading, Fault> {
    let selector = args.selector.as_deref().map(Selector::parse).transpose().map_err(failed)?;
    let budget = args.budget.unwrap_or(Reading::default().budget).clamp(1, MAX_BUDGET);
    Ok(Reading { selector, cursor: args.cursor, budget })
}

fn told(article: &Article) -> String {
    let mut text = if article.text.trim().is_empty() { "There is no text to read.".to_owned() } else { visible::fenced(&article.text) };
    if !article.left_out.is_empty() {
        text.push_str(&format!("\n[Left out: {}. selector \"body\" reads all.]", article.left_out.join(", ")));
    }
    if let Some(cursor) = &article.cursor {
        text.push_str(&format!("\n[{} more blocks: cursor {cursor}]", article.left));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{TestPages, text};

    /// The reply with the numbers of its fence left out.
    fn unfenced(reply: &Reply) -> String {
        text(reply)
            .lines()
            .map(|line| if line.contains("page ") && line.ends_with('>') { &line[..line.len() - 10] } else { line })
            .collect::<Vec<_>>()
            .join("\n")
    }

    #[tokio::test]
    async fn the_text_is_that_of_the_page_the_call_is_for_and_stands_between_marks() {
        let pages = TestPages::new().await;
        for url in ["http://a.test/", "http://b.test/"] {
            pages.call("new_page", json!({ "url": url })).await.unwrap();
        }
        let reply = pages.call("read_text", json!({})).await.unwrap();
        insta::assert_snapshot!(unfenced(&reply), @r#"
        http://b.test/ — "Fake page at b.test/"
        <page
        The fake page at http://b.test/.
        </page
        "#);
        let reply = pages.call("read_text", json!({ "tabId": "t1" })).await.unwrap();
        assert!(text(&reply).contains("\nThe fake page at http://a.test/.\n"), "{}", text(&reply));
        assert_eq!(reply.result["tabId"], "t1");
    }

    #[tokio::test]
    async fn what_is_not_there_and_a_cursor_of_another_reading_are_said() {
        let pages = TestPages::new().await;
        let fault = pages.call("read_text", json!({ "selector": "#none" })).await.unwrap_err();
        insta::assert_snapshot!(fault, @r##"[element_not_found] No element matches "#none". Look at the page again, then give another selector."##);
        let fault = pages.call("read_text", json!({ "cursor": "x" })).await.unwrap_err();
        assert_eq!(fault.code, tabmux_core::Code::StaleRef);
    }

    #[test]
    fn what_was_left_out_and_what_is_left_is_said_after_the_page() {
        let article = Article { text: "a\u{202e}".into(), cursor: Some("7:3".into()), left: 4, left_out: vec!["navigation".into()] };
        let said = told(&article);
        let lines: Vec<_> = said.lines().collect();
        assert_eq!(lines[1], "a\\u202e");
        assert_eq!(lines[3..], ["[Left out: navigation. selector \"body\" reads all.]", "[4 more blocks: cursor 7:3]"]);
        assert_eq!(told(&Article::default()), "There is no text to read.");
    }

    #[tokio::test]
    async fn an_open_dialog_is_the_answer() {
        let pages = TestPages::new().await;
        pages.with_open_dialog("alert(\"stop\")").await;
        let fault = pages.call("read_text", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @r#"[dialog_open] A dialog is open (alert): "stop". Answer it with handle_dialog, then go on."#);
    }
}
