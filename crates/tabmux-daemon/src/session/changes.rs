//! What changed on the page, said after every call that acted on it, so that nobody has to look again to know.

use tabmux_driver::{Changes, Page};
use tabmux_tools::{Content, Reply, visible_line, visible_quoted, visible_text};

/// About how many tokens of it are said.
const BUDGET: u32 = 500;

/// Adds what changed to the reply of an act. The act was done, so nothing that fails here makes it a failure.
pub(super) async fn append(reply: &mut Reply, page: &dyn Page) {
    let text = match page.changes(BUDGET).await {
        Ok(changes) => told(&changes, &page.url(), &page.title()),
        Err(error) => format!("[The page cannot be looked at now: {}]", visible_line(&error.to_string())),
    };
    reply.content.push(Content::Text(text));
}

fn told(changes: &Changes, url: &str, title: &str) -> String {
    let mut lines = Vec::new();
    if changes.moved {
        let title = if title.is_empty() { String::new() } else { format!(" — {}", visible_quoted(title)) };
        lines.push(format!("Now at {}{title}", visible_line(url)));
    }
    if !changes.text.is_empty() {
        lines.push(visible_text(&changes.text));
    }
    if changes.unsettled {
        lines.push("The page still loads; wait_for or snapshot shows more.".to_owned());
    }
    for error in &changes.errors {
        lines.push(format!("[error] {}", visible_line(error)));
    }
    if changes.more_errors > 0 {
        lines.push(format!("({} more errors: console)", changes.more_errors));
    }
    if lines.is_empty() { "Nothing else changed.".to_owned() } else { lines.join("\n") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_said_in_lines_and_nothing_in_few_words() {
        let changes =
            Changes { moved: true, text: "+ \"a\u{202e}\"".into(), errors: vec!["no\nmilk".into()], more_errors: 2, unsettled: true };
        let said = told(&changes, "http://a.test/", "One");
        let lines: Vec<_> = said.lines().collect();
        let expected = [
            "Now at http://a.test/ — \"One\"",
            "+ \"a\\u202e\"",
            "The page still loads; wait_for or snapshot shows more.",
            "[error] no\\nmilk",
            "(2 more errors: console)",
        ];
        assert_eq!(lines, expected);
        assert_eq!(told(&Changes::default(), "http://a.test/", "One"), "Nothing else changed.");
    }
}
