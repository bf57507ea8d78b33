//! Takes what the page logged. A write, not a read: what one call was given, the next is not given again.

use std::num::NonZeroUsize;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_driver::LogEntry;

use crate::arguments::{of_page, own_schema};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "console",
    group: Group::See,
    level: Level::Full,
    description: "What the page logged since the last call.",
    effect: Effect::Write,
    own_schema: own_schema::<Console>,
    run: Run::Page(&TakeLog),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Console {
    /// Default: 100
    limit: Option<NonZeroUsize>,
}

const DEFAULT_LIMIT: usize = 100;

/// How much is said at once, however few entries it is in.
const MAX_BYTES: usize = 64 * 1024;

struct TakeLog;

#[async_trait]
impl PageTool for TakeLog {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let args: Console = of_page(&args)?;
        // What a tab logged may be of where it was before.
        cx.may_see_all()?;
        let (tab, page) = cx.page_on_record().await?;
        let (entries, lost) = page.take_log();
        let (lines, hidden) = newest(&entries, args.limit.map_or(DEFAULT_LIMIT, NonZeroUsize::get));
        let reply = Reply::text(listed(&lines, hidden, lost)).about(tab, &page);
        Ok(reply.with("entries", lines.len()).with("hidden", hidden).with("lost", lost))
    }
}

/// As many of the last entries as may be said, a line each, and how many come before them. The last one is said in any case.
fn newest(entries: &[LogEntry], limit: usize) -> (Vec<String>, usize) {
    let mut lines: Vec<String> = Vec::new();
    let mut bytes = 0;
    for entry in entries.iter().rev().take(limit) {
        let line = format!("[{}] {}", entry.level, visible::flat(&entry.text));
        bytes += line.len();
        if bytes > MAX_BYTES && !lines.is_empty() {
            break;
        }
        lines.push(line);
    }
    lines.reverse();
    let hidden = entries.len() - lines.len();
    (lines, hidden)
}

fn listed(entries: &[String], hidden: usize, lost: u64) -> String {
    let mut lines = Vec::with_capacity(entries.len() + 2);
    if lost > 0 {
        lines.push(format!("({lost} older entries were lost: the log keeps the newest.)"));
    }
    if hidden > 0 {
        let entries = if hidden == 1 { "entry" } else { "entries" };
        lines.push(format!("({hidden} older {entries} left out for good: call earlier, or with a higher limit.)"));
    }
    lines.extend_from_slice(entries);
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

    #[tokio::test]
    async fn the_newest_entries_are_given_and_what_is_left_out_is_counted() {
        let pages = TestPages::new().await;
        for number in 1..=3 {
            pages.call("evaluate", json!({ "script": format!("log(\"{number}\")") })).await.unwrap();
        }
        let reply = pages.call("console", json!({ "limit": 1 })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r"
        (2 older entries left out for good: call earlier, or with a higher limit.)
        [log] 3
        ");
        assert_eq!((&reply.result["entries"], &reply.result["hidden"]), (&json!(1), &json!(2)));
        let fault = pages.call("console", json!({ "limit": 0 })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[bad_argument] Argument limit is 0. It must be an integer of at least 1.");
    }

    #[test]
    fn long_entries_are_fewer_and_the_last_is_said_in_any_case() {
        let entry = |text: String| LogEntry { level: "log".into(), text };
        let many: Vec<_> = (0..1000).map(|number| entry(format!("{number} {}", "x".repeat(8000)))).collect();
        let (lines, hidden) = newest(&many, 1000);
        assert!(lines.last().unwrap().starts_with("[log] 999 ") && lines.len() + hidden == 1000);
        let bytes: usize = lines.iter().map(String::len).sum();
        assert!((MAX_BYTES - 8100..=MAX_BYTES).contains(&bytes), "{bytes}");
        let (lines, hidden) = newest(&[entry("a".into()), entry("x".repeat(2 * MAX_BYTES))], 10);
        assert_eq!((lines.len(), hidden), (1, 1));
        let (lines, hidden) = newest(&(0..200).map(|_| entry("a".into())).collect::<Vec<_>>(), DEFAULT_LIMIT);
        assert_eq!((lines.len(), hidden), (100, 100));
    }

    #[test]
    fn a_loss_is_said_first() {
        insta::assert_snapshot!(listed(&["[log] last".to_owned()], 1, 3), @r"
        (3 older entries were lost: the log keeps the newest.)
        (1 older entry left out for good: call earlier, or with a higher limit.)
        [log] last
        ");
    }
}
