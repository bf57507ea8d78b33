//! Takes what the page logged. A write, not a read: what one call was given, the next is not given again.

use async_trait::async_trait;
use tabmux_driver::LogEntry;

use crate::arguments::{NoArguments, of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "console",
    group: Group::See,
    level: Level::Full,
    description: "What the page logged since the last call.",
    effect: Effect::Write,
    own_schema: own_schema::<NoArguments>,
    run: Run::Page(&TakeLog),
};

struct TakeLog;

#[async_trait]
impl PageTool for TakeLog {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let NoArguments {} = of_page(&args)?;
        // What a tab logged may be of where it was before.
        cx.may_see_all()?;
        let (tab, page) = cx.page().await?;
        let (entries, lost) = page.take_log();
        Ok(Reply::text(listed(&entries, lost)).about(tab, &page).with("entries", entries.len()).with("lost", lost))
    }
}

fn listed(entries: &[LogEntry], lost: u64) -> String {
    let mut lines = Vec::with_capacity(entries.len() + 1);
    if lost > 0 {
        lines.push(format!("({lost} older entries were lost: the log keeps the newest.)"));
    }
    lines.extend(entries.iter().map(|entry| format!("[{}] {}", entry.level, visible::flat(&entry.text))));
    if lines.is_empty() { "Nothing was logged since the last call.".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn the_log_is_given_once() {
        let pages = TestPages::new().await;
        for script in ["log(\"hello\")", "error(\"no \\u202eway\")"] {
            pages.call("evaluate", json!({ "script": script })).await.unwrap();
        }
        let reply = pages.call("console", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r"
        [log] hello
        [error] no \u202eway
        ");
        assert_eq!((&reply.result["entries"], &reply.result["lost"]), (&json!(2), &json!(0)));
        let reply = pages.call("console", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @"Nothing was logged since the last call.");
    }

    #[test]
    fn a_loss_is_said_first() {
        let entries = [LogEntry { level: "log".into(), text: "last".into() }];
        insta::assert_snapshot!(listed(&entries, 3), @r"
        (3 older entries were lost: the log keeps the newest.)
        [log] last
        ");
    }
}
