//! What changed on the page, said after every call that acted on it, so that nobody has to look again to know.

use tabmux_core::{Code, Fault};
use tabmux_driver::{Changes, Page};
use tabmux_tools::{Content, Reply, visible_line, visible_quoted, visible_text};

use super::reach::Reach;

/// About how many tokens of it are said.
const BUDGET: u32 = 500;

/// Adds what changed to the reply of an act. The act was done, so nothing that fails here makes it a failure, but for one: that it
/// sent the page where it could not go.
pub(super) async fn append(reply: &mut Reply, page: &dyn Page, reach: &Reach) -> Result<(), Fault> {
    let text = match page.changes(BUDGET).await {
        Ok(Changes { failed: Some(why), .. }) => return Err(went_nowhere(reply, &why)),
        Ok(mut changes) => {
            // Errors that nobody was told of may be of where the page was before.
            if reach.check_whole().is_err() {
                (changes.errors, changes.more_errors) = (Vec::new(), 0);
            }
            told(&changes, &Place { url: page.url(), title: page.title(), status: page.status() })
        }
        Err(error) => format!("[The page cannot be looked at now: {}]", visible_line(&error.to_string())),
    };
    reply.content.push(Content::Text(text));
    Ok(())
}

/// The same where nothing else is said: that a call sent the page where it could not go is its failure.
pub(super) async fn check_arrival(reply: &Reply, page: &dyn Page) -> Result<(), Fault> {
    page.arrival().await.map_or(Ok(()), |why| Err(went_nowhere(reply, &why)))
}

/// Where a page is.
struct Place {
    url: String,
    title: String,
    status: Option<u16>,
}

fn went_nowhere(reply: &Reply, why: &str) -> Fault {
    let done = reply.content.iter().find_map(|content| if let Content::Text(text) = content { text.lines().next() } else { None });
    let message = format!("{} But the page could not go where that leads: {}.", done.unwrap_or_default(), visible_line(why));
    Fault::new(Code::NavigationFailed, message.trim_start(), "Go back, or navigate elsewhere.")
}

fn told(changes: &Changes, place: &Place) -> String {
    let mut lines = Vec::new();
    if changes.moved {
        let title = if place.title.is_empty() { String::new() } else { format!(" — {}", visible_quoted(&place.title)) };
        let status = place.status.filter(|status| *status >= 400).map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        lines.push(format!("Now at {}{title}{status}", visible_line(&place.url)));
    }
    if !changes.text.is_empty() {
        lines.push(visible_text(&changes.text));
    }
    if changes.stayed {
        lines.push("It was sent elsewhere and stayed: a download, an empty answer, or it was stopped.".to_owned());
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
        let changes = Changes {
            moved: true,
            text: "+ \"a\u{202e}\"".into(),
            errors: vec!["no\nmilk".into()],
            more_errors: 2,
            stayed: true,
            unsettled: true,
            failed: None,
        };
        let place = Place { url: "http://a.test/".into(), title: "One".into(), status: Some(500) };
        let said = told(&changes, &place);
        let lines: Vec<_> = said.lines().collect();
        let expected = [
            "Now at http://a.test/ — \"One\" (HTTP 500)",
            "+ \"a\\u202e\"",
            "It was sent elsewhere and stayed: a download, an empty answer, or it was stopped.",
            "The page still loads; wait_for or snapshot shows more.",
            "[error] no\\nmilk",
            "(2 more errors: console)",
        ];
        assert_eq!(lines, expected);
        assert_eq!(told(&Changes::default(), &place), "Nothing else changed.");
    }
}
