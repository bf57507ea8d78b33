//! What every tool that acts on an element shares: how it reads a selector, how long it waits, and how it says what it did.

use std::time::Duration;

use tabmux_core::Fault;
use tabmux_driver::{Acted, Action, PATIENCE, Selector, Verb};

use crate::reply::failed;
use crate::{Common, Pages, Reply, ToolResult, visible};

/// What the browser needs after the element is ready, so that a reason comes and not only the end of the time.
const REST: Duration = Duration::from_millis(200);

pub(crate) fn selector(source: &str) -> Result<Selector, Fault> {
    Selector::parse(source).map_err(failed)
}

pub(crate) fn optional(source: Option<&str>) -> Result<Option<Selector>, Fault> {
    source.map(selector).transpose()
}

/// Does it, and says `Clicked e12 button "Save".` with what came of it.
pub(crate) async fn act(cx: &dyn Pages, common: &Common, verb: Verb, done: &str) -> ToolResult {
    let (tab, page) = cx.page().await?;
    let before = page.url();
    let acted = page.act(&Action { verb, patience: patience(common) }).await.map_err(failed)?;
    if page.url() != before {
        cx.moved(tab);
    }
    Ok(Reply::text(told(done, &acted)).about(tab, &page).with("target", visible::line(&acted.target)))
}

/// Almost all of the time the caller gives.
fn patience(common: &Common) -> Duration {
    common.timeout.map_or(PATIENCE, |time| time.saturating_sub(REST.max(time / 5)))
}

fn told(done: &str, acted: &Acted) -> String {
    let mut text = format!("{done} {}.", visible::line(&acted.target));
    if let Some(outcome) = &acted.outcome {
        text.push(' ');
        text.push_str(&visible::line(outcome));
    }
    if acted.matched > 1 {
        text.push_str(&format!(" {} match; it is the first that can be seen.", acted.matched));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callers_time_is_used_but_for_what_comes_after() {
        let of = |ms| patience(&Common { timeout: Some(Duration::from_millis(ms)), ..Common::default() });
        assert_eq!([of(100), of(500), of(10_000)], [0, 300, 8_000].map(Duration::from_millis));
        assert_eq!(patience(&Common::default()), PATIENCE);
    }

    #[test]
    fn a_reply_says_what_was_done_to_what() {
        let acted = Acted { target: "e3 button \"a\u{202e}\"".into(), matched: 2, outcome: Some("It is on now.".into()) };
        assert_eq!(told("Clicked", &acted), "Clicked e3 button \"a\\u202e\". It is on now. 2 match; it is the first that can be seen.");
    }
}
