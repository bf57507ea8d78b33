//! Lists the tabs of the session.

use async_trait::async_trait;
use serde_json::json;

use crate::arguments::{NoArguments, of_page, own_schema};
use crate::reply::counted;
use crate::{Arguments, Common, Effect, Group, Level, PageTool, PageView, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "list_pages",
    group: Group::Pages,
    level: Level::Core,
    description: "List the session's tabs: pageIdx, tabId, URL, title.",
    effect: Effect::Read,
    own_schema: own_schema::<NoArguments>,
    run: Run::Page(&List),
};

struct List;

#[async_trait]
impl PageTool for List {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let NoArguments {} = of_page(&args)?;
        let mut pages = cx.list().await;
        let text = listed(&pages);
        for page in &mut pages {
            page.url = visible::line(&page.url);
            page.title = visible::line(&page.title);
            page.unreachable = page.unreachable.as_deref().map(visible::line);
        }
        Ok(Reply::text(text).structured(json!({ "pages": pages })))
    }
}

fn listed(pages: &[PageView]) -> String {
    if pages.is_empty() {
        return "No tabs. navigate or new_page opens one.".to_owned();
    }
    let mut text = counted(pages.len(), "tab");
    for page in pages {
        let current = if page.current { " (current)" } else { "" };
        text += &format!("\n{} {} {}{current}", page.page_idx, page.tab_id, page.place());
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{TestPages, text};

    /// Whatever a page calls itself, it is told in quotes.
    #[test]
    fn an_error_page_is_told_as_one_and_no_page_can_say_so_of_itself() {
        let page = PageView {
            page_idx: 0,
            tab_id: "t1".into(),
            url: "http://a.test/".into(),
            title: String::new(),
            unreachable: None,
            crashed: false,
            current: false,
        };
        let failed = PageView { unreachable: Some("net::ERR_FAILED".into()), ..page.clone() };
        let posing = PageView { title: "could not be reached: net::ERR_FAILED".into(), ..page };
        insta::assert_snapshot!(listed(&[failed, posing]), @r#"
        2 tabs
        0 t1 http://a.test/ — could not be reached: net::ERR_FAILED
        0 t1 http://a.test/ — "could not be reached: net::ERR_FAILED"
        "#);
    }

    #[tokio::test]
    async fn a_tab_that_crashed_is_told_as_that() {
        let pages = TestPages::new().await;
        pages.call("new_page", json!({ "url": "http://a.test/?title=A" })).await.unwrap();
        pages.call("evaluate", json!({ "script": "crash()" })).await.unwrap_err();
        let reply = pages.call("list_pages", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"
        1 tab
        0 t1 http://a.test/?title=A — crashed; navigate with reload brings it back (current)
        "#);
        assert_eq!(reply.structured.unwrap()["pages"][0]["crashed"], true);
        pages.call("navigate", json!({ "reload": true })).await.unwrap();
        let reply = pages.call("list_pages", json!({})).await.unwrap();
        assert_eq!(reply.structured.unwrap()["pages"][0].get("crashed"), None);
    }

    #[tokio::test]
    async fn the_tabs_are_listed_with_the_current_one_marked() {
        let pages = TestPages::new().await;
        let reply = pages.call("list_pages", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"No tabs. navigate or new_page opens one.");
        pages.call("new_page", json!({ "url": "http://a.test/?title=A" })).await.unwrap();
        pages.call("new_page", json!({})).await.unwrap();
        let reply = pages.call("list_pages", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"
        2 tabs
        0 t1 http://a.test/?title=A — "A"
        1 t2 about:blank (current)
        "#);
        let first = json!({ "pageIdx": 0, "tabId": "t1", "url": "http://a.test/?title=A", "title": "A", "current": false });
        let second = json!({ "pageIdx": 1, "tabId": "t2", "url": "about:blank", "title": "", "current": true });
        assert_eq!(reply.structured, Some(json!({ "pages": [first, second] })));
    }
}
