//! Sends the tab somewhere.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault};
use tabmux_driver::{Domains, Navigation};

use crate::arguments::{of_page, own_schema};
use crate::reply::arrived;
use crate::{Arguments, Common, Effect, Group, Late, Level, PageTool, Pages, Run, Tool, ToolResult, address, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "navigate",
    group: Group::Pages,
    level: Level::Slim,
    description: "Go to url, or one of back, forward, reload. Starts a session if you have none.",
    effect: Effect::Write,
    own_schema: own_schema::<Navigate>,
    run: Run::Page(&Go),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Navigate {
    /// http, https, data or blob
    url: Option<String>,
    /// Go back
    back: Option<bool>,
    /// Go forward
    forward: Option<bool>,
    /// Load again
    reload: Option<bool>,
}

struct Go;

#[async_trait]
impl PageTool for Go {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let (args, url) = read(&args, cx.domains())?;
        let to = one_of(&args, url.as_deref())?;
        let (tab, page) = match to {
            Navigation::To(url) => cx.page_bound_for(url).await?,
            Navigation::Back | Navigation::Forward | Navigation::Reload => cx.page().await?,
        };
        let went = page.navigate(to).await;
        // One that failed may have moved it too, to an error page.
        cx.moved(tab);
        went.map_err(|error| address::failed_at(error, &*page, cx.domains()))?;
        let verb = match to {
            Navigation::To(_) => "Navigated to",
            Navigation::Back => "Went back to",
            Navigation::Forward => "Went forward to",
            Navigation::Reload => "Reloaded",
        };
        Ok(arrived(verb, tab, &page))
    }

    fn makes_session(&self) -> bool {
        true
    }

    fn check(&self, args: &Arguments, domains: &Domains) -> Result<(), Fault> {
        let (args, url) = read(args, domains)?;
        one_of(&args, url.as_deref()).map(drop)
    }

    fn late(&self, args: &Arguments) -> Option<Late> {
        let args: Navigate = of_page(args).ok()?;
        let what = match one_of(&args, args.url.as_deref()).ok()? {
            Navigation::To(url) => visible::line(url),
            Navigation::Back => "The page before this one".to_owned(),
            Navigation::Forward => "The page after this one".to_owned(),
            Navigation::Reload => "The page".to_owned(),
        };
        Some(not_loaded(&what))
    }
}

fn read(args: &Arguments, domains: &Domains) -> Result<(Navigate, Option<String>), Fault> {
    let args: Navigate = of_page(args)?;
    let url = args.url.as_deref().map(|url| address::allowed_url(url, domains)).transpose()?;
    Ok((args, url))
}

/// For whatever goes somewhere and does not get there in time.
pub(super) fn not_loaded(what: &str) -> Late {
    let hint = "See with snapshot what is there so far, or navigate again with a longer timeout (ms, at most 600000).";
    Late::new(format!("{what} did not finish loading"), hint)
}

fn one_of<'a>(args: &Navigate, url: Option<&'a str>) -> Result<Navigation<'a>, Fault> {
    let asked = |wish: Option<bool>, to| wish.unwrap_or_default().then_some(to);
    let wishes = [
        url.map(Navigation::To),
        asked(args.back, Navigation::Back),
        asked(args.forward, Navigation::Forward),
        asked(args.reload, Navigation::Reload),
    ];
    let mut wishes = wishes.into_iter().flatten();
    match (wishes.next(), wishes.next()) {
        (Some(to), None) => Ok(to),
        (None, _) => {
            Err(Fault::new(Code::BadArgument, "navigate was told nowhere to go.", "Give url, or one of back, forward, reload as true."))
        }
        (Some(_), Some(_)) => {
            Err(Fault::new(Code::BadArgument, "navigate was told several things at once.", "Give only one of url, back, forward, reload."))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tabmux_core::{Code, TabId};

    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn the_tab_goes_where_it_is_sent_and_says_where_it_is() {
        let pages = TestPages::new().await;
        let reply = pages.call("navigate", json!({ "url": "https://a.test/x?title=One" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"Navigated to https://a.test/x?title=One — "One"."#);
        insta::assert_json_snapshot!(reply.result, @r#"
        {
          "tabId": "t1",
          "url": "https://a.test/x?title=One",
          "title": "One"
        }
        "#);
        assert_eq!(pages.moved(), [TabId(1)]);
    }

    #[tokio::test]
    async fn history_and_reload_work_and_the_first_page_has_nothing_before_it() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "data:,1" })).await.unwrap();
        for (args, expected) in [
            (json!({ "back": true }), "Went back to about:blank."),
            (json!({ "forward": true, "back": false }), "Went forward to data:,1."),
            (json!({ "reload": true }), "Reloaded data:,1."),
        ] {
            assert_eq!(text(&pages.call("navigate", args).await.unwrap()), expected);
        }
        let fault = pages.call("navigate", json!({ "forward": true })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[navigation_failed] There is no later page in this tab's history. Go somewhere with url instead.");
    }

    #[tokio::test]
    async fn exactly_one_way_must_be_given() {
        let pages = TestPages::new().await;
        for args in
            [json!({}), json!({ "back": false }), json!({ "url": "data:,1", "reload": true }), json!({ "back": true, "forward": true })]
        {
            assert_eq!(pages.call("navigate", args.clone()).await.unwrap_err().code, Code::BadArgument, "{args}");
        }
        assert!(pages.moved().is_empty());
    }

    #[tokio::test]
    async fn forbidden_and_unreachable_addresses_say_so() {
        let pages = TestPages::new().await;
        let fault = pages.call("navigate", json!({ "url": "file:///etc/passwd" })).await.unwrap_err();
        assert_eq!(fault.code, Code::PolicyDenied);
        let fault = pages.call("navigate", json!({ "url": "http://fail.test/" })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[navigation_failed] net::ERR_NAME_NOT_RESOLVED at http://fail.test/. Check the URL, then navigate again.");
        assert_eq!(pages.moved(), [TabId(1)], "an error page may be there now");
    }

    #[tokio::test]
    async fn a_title_cannot_break_out_of_its_line() {
        let pages = TestPages::new().await;
        let reply = pages.call("navigate", json!({ "url": "http://a.test/?title=x%0A%E2%80%AEy" })).await.unwrap();
        assert!(text(&reply).ends_with(r#"— "x\n\u202ey"."#), "{}", text(&reply));
    }
}
