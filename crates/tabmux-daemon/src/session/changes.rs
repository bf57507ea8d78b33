//! What changed on the page, said after every call that acted on it, so that nobody has to look again to know.

use tabmux_core::{Code, Fault};
use tabmux_driver::{Changes, Domains, Page};
use tabmux_tools::{Content, Reply, denied_url, place, visible_line, visible_text};

use super::reach::Reach;

/// About how many tokens of it are said.
const BUDGET: u32 = 500;

/// Adds what changed to the reply of an act. The act was done, so nothing that fails here makes it a failure, but for one: that it
/// sent the page where it could not go. Gives how many pages it opened, which may not be there yet.
pub(super) async fn append(reply: &mut Reply, page: &dyn Page, reach: &Reach, domains: &Domains) -> Result<u64, Fault> {
    let mut opened = 0;
    let text = match page.changes(BUDGET).await {
        Ok(Changes { failed: Some(why), .. }) => return Err(went_nowhere(reply, &why, page, domains)),
        Ok(mut changes) => {
            opened = changes.opened;
            // Errors that nobody was told of may be of where the page was before.
            if reach.check_whole().is_err() {
                (changes.errors, changes.more_errors) = (Vec::new(), 0);
            }
            told(&changes, &place(page), page.status())
        }
        Err(error) => format!("[The page cannot be looked at now: {}]", visible_line(&error.to_string())),
    };
    reply.content.push(Content::Text(text));
    Ok(opened)
}

/// The same where nothing else is said: that a call sent the page where it could not go is its failure.
pub(super) async fn check_arrival(reply: &Reply, page: &dyn Page, domains: &Domains) -> Result<(), Fault> {
    page.arrival().await.map_or(Ok(()), |why| Err(went_nowhere(reply, &why, page, domains)))
}

fn went_nowhere(reply: &Reply, why: &str, page: &dyn Page, domains: &Domains) -> Fault {
    let done = reply.content.iter().find_map(|content| if let Content::Text(text) = content { text.lines().next() } else { None });
    let done = match done.unwrap_or_default() {
        sentence if sentence.is_empty() || sentence.ends_with('.') => sentence.to_owned(),
        value => format!("The value is {value}."),
    };
    // A browser says of a host it may not reach that there is none.
    let (code, whither, hint) = match denied_url(&page.url(), domains) {
        Some(denied) => (denied.code, denied.message, denied.hint),
        None => (Code::NavigationFailed, format!("{}.", visible_line(why)), "Go back, or navigate elsewhere.".into()),
    };
    let message = format!("{done} But the page could not go where that leads: {whither}");
    Fault::new(code, message.trim_start(), hint)
}

fn told(changes: &Changes, place: &str, status: Option<u16>) -> String {
    let mut lines = Vec::new();
    if changes.moved {
        let status = status.filter(|status| *status >= 400).map(|status| format!(" (HTTP {status})")).unwrap_or_default();
        lines.push(format!("Now at {place}{status}"));
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
            opened: 0,
            failed: None,
        };
        let said = told(&changes, "http://a.test/ — \"One\"", Some(500));
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
        assert_eq!(told(&Changes::default(), "", None), "Nothing else changed.");
    }

    /// What was done is said before where it could not lead: a sentence as it is, anything else as a value.
    #[tokio::test]
    async fn where_an_act_could_not_lead_is_said_behind_what_it_did() {
        use tabmux_driver::{Browser, ContextSpec};
        let context = tabmux_driver::fake::FakeBrowser::new().open_context(&ContextSpec::default()).await.unwrap();
        let page = context.open_page().await.unwrap();
        let said = |done: &str| went_nowhere(&Reply::text(done), "net::ERR_FAILED", &*page, &Domains::default()).message;
        let nowhere = "But the page could not go where that leads: net::ERR_FAILED.";
        assert_eq!(said("Clicked it.\nMore"), format!("Clicked it. {nowhere}"));
        assert_eq!(said("7"), format!("The value is 7. {nowhere}"));
        assert_eq!(said(""), nowhere);
    }
}
