//! Opens another tab in the session.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault, TabId};
use tabmux_driver::{Domains, DriverError, Navigation, Page};

use super::navigate::not_loaded;
use crate::arguments::{of_page, own_schema};
use crate::reply::arrived;
use crate::{Arguments, Common, Effect, Group, Late, Level, PageRef, PageTool, Pages, Run, Tool, ToolResult, address, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "new_page",
    group: Group::Pages,
    level: Level::Core,
    description: "Open a tab and make it current. Starts a session if you have none.",
    effect: Effect::Write,
    own_schema: own_schema::<NewPage>,
    run: Run::Page(&Open),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPage {
    /// Default: about:blank
    url: Option<String>,
}

struct Open;

#[async_trait]
impl PageTool for Open {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let url = read(&args, cx.domains())?;
        url.as_deref().map_or(Ok(()), |url| cx.may_go(url))?;
        let before = cx.current();
        let (tab, page) = cx.open().await?;
        if let Some(url) = &url {
            match page.navigate(Navigation::To(url)).await {
                Ok(()) => cx.moved(tab),
                Err(error) => return Err(undone(cx, error, tab, &*page, before).await),
            }
        }
        Ok(arrived(&format!("Opened tab {tab}:"), tab, &page))
    }

    fn makes_session(&self) -> bool {
        true
    }

    fn check(&self, args: &Arguments, domains: &Domains) -> Result<(), Fault> {
        read(args, domains).map(drop)
    }

    fn late(&self, args: &Arguments) -> Option<Late> {
        of_page::<NewPage>(args).ok()?.url.map(|url| not_loaded(&visible::line(&url)))
    }
}

/// A tab whose first page cannot be reached is closed again: the call failed, so nothing is left of it, and which tab is current is as before. One
/// whose address gave no document stays, for what it may have given instead: a download is the session's, and goes on in it.
async fn undone(cx: &dyn Pages, error: DriverError, tab: TabId, page: &dyn Page, before: Option<TabId>) -> Fault {
    let unreached = matches!(error, DriverError::NavigationFailed(_) | DriverError::CertificateRefused(_));
    let nothing = match &error {
        DriverError::NoDocument(url) => Some(format!("net::ERR_ABORTED at {url}: it gives a download or an empty answer")),
        DriverError::BecameDownload(url) => Some(format!("{url} is a download, which began")),
        _ => None,
    };
    let misspelt = matches!(error, DriverError::NavigationFailed(_));
    let mut fault = address::failed_at(error, page, cx.domains());
    if misspelt && fault.code == Code::NavigationFailed {
        // There is no tab to navigate again.
        fault = fault.with_hint("Check the URL, then open it again.");
    }
    // The failed navigation is the news, whatever closing says and choosing.
    if unreached {
        let _ = cx.close(&PageRef::Tab(tab.to_string())).await;
    }
    let Some(before) = before.filter(|_| unreached || nothing.is_some()) else { return fault };
    let back = cx.select(&PageRef::Tab(before.to_string())).await.is_ok();
    match nothing.filter(|_| fault.code == Code::NavigationFailed) {
        Some(what) if back => Fault { message: format!("{what}; the new tab {tab} is blank, and {before} is current as before."), ..fault },
        _ => fault,
    }
}

fn read(args: &Arguments, domains: &Domains) -> Result<Option<String>, Fault> {
    let args: NewPage = of_page(args)?;
    args.url.as_deref().map(|url| address::allowed_url(url, domains)).transpose()
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::Code;

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn a_tab_opens_blank_or_at_its_url_and_becomes_current() {
        let pages = TestPages::new().await;
        let reply = pages.call("new_page", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Opened tab t1: about:blank.");
        let reply = pages.call("new_page", json!({ "url": "http://a.test/?title=A" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"Opened tab t2: http://a.test/?title=A — "A"."#);
        assert_eq!(pages.tabs(), [("t1".to_owned(), false), ("t2".to_owned(), true)]);
    }

    #[tokio::test]
    async fn a_tab_that_cannot_load_is_not_left_behind() {
        let pages = TestPages::new().await;
        for (url, code) in [("http://fail.test/", Code::NavigationFailed), ("chrome://x", Code::PolicyDenied)] {
            assert_eq!(pages.call("new_page", json!({ "url": url })).await.unwrap_err().code, code);
            assert_eq!(pages.tabs(), []);
        }
    }

    /// Or the next call without a tab works in another one than before, unsaid.
    #[tokio::test]
    async fn a_tab_that_cannot_load_leaves_the_current_one_current() {
        let pages = TestPages::new().await;
        for _ in 0..3 {
            pages.call("new_page", json!({})).await.unwrap();
        }
        pages.call("select_page", json!({ "tabId": "t2" })).await.unwrap();
        pages.call("new_page", json!({ "url": "http://fail.test/" })).await.unwrap_err();
        let current = || pages.tabs().into_iter().find(|(_, current)| *current).map(|(tab, _)| tab);
        assert_eq!(current().as_deref(), Some("t2"));
        let fault = pages.call("new_page", json!({ "url": "http://a.test/download" })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[navigation_failed] http://a.test/download is a download, which began; the new tab t5 is blank, and t2 is current as before. Call downloads with wait: true, which gives its path.");
        assert_eq!((current().as_deref(), pages.tabs().len()), (Some("t2"), 4));
    }
}
