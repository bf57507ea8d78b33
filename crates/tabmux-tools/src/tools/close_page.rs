//! Closes a tab.

use async_trait::async_trait;

use super::select_page::{WhichPage, which_schema};
use crate::arguments::of_page;
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "close_page",
    group: Group::Pages,
    level: Level::Core,
    description: "Close a tab, by pageIdx or tabId.",
    effect: Effect::Write,
    own_schema: which_schema,
    run: Run::Page(&Close),
};

struct Close;

#[async_trait]
impl PageTool for Close {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let which = of_page::<WhichPage>(&args)?.or_tab(common)?;
        let page = cx.close(&which).await?;
        let text = format!("Closed {} ({}).", page.tab_id, visible::line(&page.url));
        Ok(Reply::text(text).with("tabId", page.tab_id).with("url", visible::line(&page.url)))
    }

    /// A tab whose script does not end could not be closed otherwise.
    fn skips_queue(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::Code;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn the_named_tab_closes_and_its_id_is_not_used_again() {
        let pages = TestPages::new().await;
        for _ in 0..2 {
            pages.call("new_page", json!({})).await.unwrap();
        }
        let reply = pages.call("close_page", json!({ "tabId": "t1" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Closed t1 (about:blank).");
        assert_eq!(pages.tabs(), [("t2".to_owned(), true)]);
        assert_eq!(pages.call("close_page", json!({ "tabId": "t1" })).await.unwrap_err().code, Code::TabNotFound);
    }

    #[tokio::test]
    async fn without_a_name_no_tab_is_closed() {
        let pages = TestPages::new().await;
        pages.call("new_page", json!({})).await.unwrap();
        let fault = pages.call("close_page", json!({})).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] No tab was named. Give pageIdx or tabId, both from list_pages.");
        assert_eq!(pages.tabs().len(), 1);
    }
}
