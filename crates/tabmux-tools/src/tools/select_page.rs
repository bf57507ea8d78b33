//! Makes a tab current.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_core::{Code, Fault};

use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, PageRef, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "select_page",
    group: Group::Pages,
    level: Level::Core,
    description: "Make a tab current, by pageIdx or tabId.",
    effect: Effect::Write,
    own_schema: which_schema,
    run: Run::Page(&Select),
};

/// How `select_page` and `close_page` name a tab; the other way is the common `tabId`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(super) struct WhichPage {
    /// From list_pages
    page_idx: Option<usize>,
}

struct Select;

/// Here `tabId` names the tab to act on, so the current one is not taken for it.
pub(super) fn which_schema() -> Value {
    let mut schema = own_schema::<WhichPage>();
    schema["properties"]["tabId"] = json!({ "type": "string", "description": "From list_pages" });
    schema
}

#[async_trait]
impl PageTool for Select {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let which = of_page::<WhichPage>(&args)?.or_tab(common)?;
        let page = cx.select(&which).await?;
        let text = format!("Selected {}: {}.", page.tab_id, page.place());
        Ok(Reply::text(text).with("tabId", page.tab_id).with("pageIdx", page.page_idx).with("url", visible::line(&page.url)))
    }
}

impl WhichPage {
    pub(super) fn or_tab(self, common: &Common) -> Result<PageRef, Fault> {
        match (self.page_idx, &common.tab) {
            (Some(index), None) => Ok(PageRef::Index(index)),
            (None, Some(tab)) => Ok(PageRef::Tab(tab.clone())),
            (None, None) => Err(Fault::new(Code::BadArgument, "No tab was named.", "Give pageIdx or tabId, both from list_pages.")),
            (Some(_), Some(_)) => Err(Fault::new(Code::BadArgument, "The tab was named twice.", "Give pageIdx or tabId, not both.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::Code;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn a_tab_is_selected_by_index_or_by_id() {
        let pages = TestPages::new().await;
        pages.call("new_page", json!({ "url": "http://a.test/?title=A" })).await.unwrap();
        pages.call("new_page", json!({})).await.unwrap();
        let reply = pages.call("select_page", json!({ "pageIdx": 0 })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"Selected t1: http://a.test/?title=A — "A"."#);
        assert_eq!(pages.tabs(), [("t1".to_owned(), true), ("t2".to_owned(), false)]);
        pages.call("select_page", json!({ "tabId": "t2" })).await.unwrap();
        assert_eq!(pages.tabs(), [("t1".to_owned(), false), ("t2".to_owned(), true)]);
    }

    #[tokio::test]
    async fn a_tab_must_be_named_once_and_exist() {
        let pages = TestPages::new().await;
        pages.call("new_page", json!({})).await.unwrap();
        for (args, code) in [
            (json!({}), Code::BadArgument),
            (json!({ "pageIdx": 0, "tabId": "t1" }), Code::BadArgument),
            (json!({ "pageIdx": 1 }), Code::TabNotFound),
            (json!({ "tabId": "t9" }), Code::TabNotFound),
        ] {
            assert_eq!(pages.call("select_page", args.clone()).await.unwrap_err().code, code, "{args}");
        }
    }
}
