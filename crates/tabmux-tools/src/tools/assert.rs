//! `assert`, a step of a sequence: looks once at where the page is and what it shows. It is no tool of its own, because outside
//! a sequence an agent looks itself; waiting is `wait_for`'s.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::{Code, Fault};

use crate::arguments::{Object, of_page, own_schema};
use crate::reply::{failed, place};
use crate::sequence::Condition;
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult};

pub(crate) static TOOL: Tool = Tool {
    name: "assert",
    group: Group::See,
    level: Level::Full,
    description: "Check the page, in a sequence.",
    effect: Effect::Read,
    own_schema: own_schema::<AssertThat>,
    run: Run::Page(&Assert),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AssertThat {
    #[schemars(with = "Option<Object>")]
    url: Option<Condition>,
    #[schemars(with = "Option<Object>")]
    title: Option<Condition>,
    #[schemars(with = "Option<Object>")]
    text: Option<Condition>,
}

struct Assert;

#[async_trait]
impl PageTool for Assert {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let wanted: AssertThat = of_page(&args)?;
        if wanted.url.is_none() && wanted.title.is_none() && wanted.text.is_none() {
            return Err(Fault::new(Code::BadArgument, "assert was told nothing to check.", "Give url, title or text."));
        }
        let (tab, page) = cx.page().await?;
        if let Some(url) = wanted.url {
            url.check("The url", &page.url().into())?;
        }
        if let Some(title) = wanted.title {
            page.refresh_title().await;
            title.check("The title", &page.title().into())?;
        }
        if let Some(text) = wanted.text {
            text.check("The page's text", &page.text().await.map_err(failed)?.into())?;
        }
        Ok(Reply::text(format!("It holds at {}.", place(&*page))).about(tab, &page))
    }
}
