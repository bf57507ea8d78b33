//! What is on the page, with a ref for everything that can be acted upon. Made for models: one thing or row a line.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use tabmux_core::Fault;
use tabmux_driver::{Rows, Scope, Selector, Sight, Snapshot, Which};

use crate::arguments::{of_page, own_schema, wrong};
use crate::reply::{failed, place};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "snapshot",
    group: Group::See,
    level: Level::Slim,
    description: "What is on the page, as lines; refs (e12) are selectors.",
    effect: Effect::Read,
    own_schema: own_schema::<Look>,
    run: Run::Page(&Take),
};

/// About as many tokens as the longest reply may have.
const MAX_BUDGET: u32 = 50_000;

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Look {
    /// Only controls
    interactive: Option<bool>,
    /// Levels
    depth: Option<u32>,
    /// Only in this; also e4-e90
    selector: Option<String>,
    /// Text or /regex/
    find: Option<String>,
    /// Unfold repeated rows
    full: Option<bool>,
    /// Tokens
    budget: Option<u32>,
    /// Go on
    cursor: Option<String>,
}

struct Take;

#[async_trait]
impl PageTool for Take {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let sight = sight(of_page(&args)?)?;
        let (tab, page) = cx.page().await?;
        let seen = page.snapshot(&sight).await.map_err(failed)?;
        let first = if sight.cursor.is_none() { format!("{}\n", place(&*page)) } else { String::new() };
        let text = format!("{first}{}", told(&seen, &sight));
        let reply = Reply::text(text).about(tab, &page).with("lines_left", seen.left);
        Ok(match seen.cursor {
            Some(cursor) => reply.with("cursor", cursor),
            None => reply,
        })
    }
}

fn sight(args: Look) -> Result<Sight, Fault> {
    let scope = args.selector.as_deref().map_or(Ok(Scope::Page), scope)?;
    let default = Sight::default();
    // What somebody asked for by name is not folded away again.
    let rows = if args.full == Some(true) || scope != Scope::Page { Rows::All } else { Rows::Folded };
    Ok(Sight {
        scope,
        rows,
        which: if args.interactive == Some(true) { Which::Interactive } else { Which::Everything },
        depth: args.depth,
        find: args.find.filter(|text| !text.trim().is_empty()),
        cursor: args.cursor,
        budget: args.budget.unwrap_or(default.budget).clamp(1, MAX_BUDGET),
    })
}

/// A selector, or `e12-e40` as a folded row says it.
fn scope(text: &str) -> Result<Scope, Fault> {
    let number = |text: &str| Selector::parse(text).ok()?.reference();
    match text.split_once(['-', '–']).and_then(|(from, to)| Some((number(from)?, number(to)?))) {
        Some((from, to)) if from <= to => Ok(Scope::Span(from, to)),
        Some(_) => Err(wrong("selector", &text.into(), "the smaller ref first, as in e4-e90")),
        None => Selector::parse(text).map(Scope::Part).map_err(failed),
    }
}

fn told(seen: &Snapshot, sight: &Sight) -> String {
    let mut text = visible::text(&seen.text);
    if text.is_empty() {
        text = if sight.find.is_some() { "Nothing on the page matches." } else { "Nothing can be seen." }.to_owned();
    }
    if let Some(cursor) = &seen.cursor {
        text.push_str(&format!("\n[{} more lines: cursor {cursor}]", seen.left));
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::{TestPages, text};

    #[tokio::test]
    async fn a_page_is_told_line_by_line_after_its_address() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/x?title=One" })).await.unwrap();
        let reply = pages.call("snapshot", json!({})).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"
        http://a.test/x?title=One — "One"
        # "One"
        e1 link "http://a.test/x?title=One"
        "#);
        let reply = pages.call("snapshot", json!({ "interactive": true, "find": "link" })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"
        http://a.test/x?title=One — "One"
        e1 link "http://a.test/x?title=One"
        "#);
        let reply = pages.call("snapshot", json!({ "find": "nowhere" })).await.unwrap();
        assert!(text(&reply).ends_with("Nothing on the page matches."));
    }

    #[tokio::test]
    async fn what_does_not_fit_into_the_budget_is_had_with_the_cursor() {
        let pages = TestPages::new().await;
        pages.call("navigate", json!({ "url": "http://a.test/x?title=One" })).await.unwrap();
        let reply = pages.call("snapshot", json!({ "budget": 10 })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"
        http://a.test/x?title=One — "One"
        # "One"
        [1 more lines: cursor 1]
        "#);
        let reply = pages.call("snapshot", json!({ "cursor": reply.result["cursor"] })).await.unwrap();
        insta::assert_snapshot!(text(&reply), @r#"e1 link "http://a.test/x?title=One""#);
    }

    #[tokio::test]
    async fn a_ref_that_is_gone_is_said() {
        let pages = TestPages::new().await;
        let fault = pages.call("snapshot", json!({ "selector": "e7" })).await.unwrap_err();
        insta::assert_snapshot!(fault, @"[stale_ref] e7 is not on the page (any more). Take a snapshot to see what is there now.");
    }

    #[test]
    fn a_part_is_named_by_any_selector_or_by_a_span_of_refs() {
        for span in ["e41–e236", "e41-e236", " @e41 - @e236 "] {
            assert_eq!(scope(span).unwrap(), Scope::Span(41, 236), "{span}");
        }
        for selector in [" @e12 ", "e-mail > a", "//nav", "~Menu", "text=a-b", "role=list"] {
            assert_eq!(scope(selector).unwrap(), Scope::Part(Selector::parse(selector).unwrap()), "{selector}");
        }
        assert!(scope("e9-e2").is_err() && scope(" ").is_err());
    }

    #[test]
    fn what_a_page_hides_in_its_words_is_made_visible() {
        let seen = Snapshot { text: "\"a\u{202e}b\"".into(), ..Snapshot::default() };
        assert_eq!(told(&seen, &Sight::default()), "\"a\\u202eb\"");
    }
}
