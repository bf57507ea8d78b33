//! Opens another tab in the session.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault};
use tabmux_driver::{Domains, DriverError, Navigation};

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
    /// A tab whose first page cannot be reached is closed again: the call failed, so nothing is left of it. One whose address
    /// gave no document stays, for what it may have given instead: a download is the session's, and goes on in it.
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let url = read(&args, cx.domains())?;
        url.as_deref().map_or(Ok(()), |url| cx.may_go(url))?;
        let (tab, page) = cx.open().await?;
        if let Some(url) = &url {
            let went = page.navigate(Navigation::To(url)).await;
            let unreached = matches!(went, Err(DriverError::NavigationFailed(_) | DriverError::CertificateRefused(_)));
            let went = went.map_err(|error| {
                let misspelt = matches!(error, DriverError::NavigationFailed(_));
                let fault = address::failed_at(error, &*page, cx.domains());
                // There is no tab to navigate again.
                if misspelt && fault.code == Code::NavigationFailed { fault.with_hint("Check the URL, then open it again.") } else { fault }
            });
            if unreached {
                // The failed navigation is the news, whatever closing says.
                let _ = cx.close(&PageRef::Tab(tab.to_string())).await;
            }
            went?;
            cx.moved(tab);
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
}
