//! A call whose time is up: what it waited for, and how the page is. Here for all tools; each says only what it waits for.

use std::time::Duration;

use tabmux_core::{Code, Fault, TabId};
use tabmux_tools::{Arguments, Content, Late, Pages, Reply, place, visible_line, visible_quoted};
use tokio::time::Instant;

use super::Errand;
use super::pages::CallPages;
use super::world::{answer_in, described};

/// How long a page may take to say that it lives; the hub waits a little longer than this behind the deadline.
const SIGN_OF_LIFE: Duration = Duration::from_millis(150);

/// A script that kept it busy is ended a moment later, which need not be waited for here; whoever calls again sees which it was.
const SILENT: &str = "Call again: a script that kept it busy is mostly ended by then. If it still does not answer, leave it with navigate (reload, or another url); where that fails too its process is stuck: end it with close_page, and go on in another tab with new_page.";

const ON_ITS_WAY: &str = "Wait for it with a longer timeout (ms, at most 600000), or call it off with navigate: reload stays where the page is, url goes elsewhere.";

/// Until when a call may run, and how long that was when it came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limit {
    pub(crate) deadline: Instant,
    given: Duration,
}

impl Limit {
    /// Of who has waited for some of it already.
    pub(crate) fn of(given: Duration, waited: Duration) -> Self {
        Self { deadline: Instant::now() + given.saturating_sub(waited), given }
    }

    pub(crate) fn until(deadline: Instant) -> Self {
        Self { deadline, given: deadline.saturating_duration_since(Instant::now()) }
    }

    /// What is left of it.
    pub(super) fn left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// What is said of the call if it does not end in time.
pub(super) fn of(errand: &Errand, args: &Arguments) -> Late {
    errand.tool.late(args).unwrap_or_else(|| {
        let on = args.get("selector").and_then(|selector| selector.as_str()).map(|selector| format!(" {}", visible_quoted(selector)));
        let hint = "Look at the page before you try again, or pass a longer timeout (ms, at most 600000).";
        Late::new(format!("{}{} did not finish", errand.name, on.unwrap_or_default()), hint)
    })
}

/// Nothing is told of a page that is out of the call's reach, but that.
pub(super) async fn fault(late: &Late, limit: &Limit, pages: &CallPages) -> Fault {
    let mut message = format!("{} within {} ms", late.of_these(&pages.lacks().now()), limit.given.as_millis());
    let mut hint = late.hint.to_owned();
    if let (Some(tab), Some(page)) = pages.working_on() {
        if let Err(beyond) = pages.check_where_it_ended(Some(&page.url())) {
            return beyond;
        }
        // It may have gone somewhere all the same.
        pages.moved(tab);
        message.push_str(&format!("; the page is at {}", place(&*page)));
        if bound_for(pages).is_none() {
            message.push_str(&waits_for(pages));
        }
        if let Some(given) = late.function.as_ref().and_then(|function| page.last_given(function)) {
            hint = format!("The function last gave {}. {hint}", visible_line(&given));
        }
    }
    if let Some((tab, asks)) = asks_elsewhere(pages) {
        return Fault::new(Code::Timeout, format!("{message}. {asks}"), format!("{} {hint}", answer_in(tab)));
    }
    if let Some(there) = bound_for(pages) {
        // In the moment between the answer of the server and the new document it is no script that keeps it.
        if is_held(pages) && is_silent(pages).await && is_held(pages) {
            let why = format!(
                "{message}. It is on its way to {there}, and a script of the page that it is leaving keeps it from going; nothing can end that script from outside."
            );
            let tab = pages.working_on().0.map(|tab| format!(" with tabId {tab}")).unwrap_or_default();
            let hint = format!(
                "Call again if the script ends by itself. Else end it with close_page{tab}, and go on in another tab with new_page."
            );
            return Fault::new(Code::Timeout, why, hint);
        }
        let why = format!("{message}. It is on its way to {there}, whose server has not answered; till then it answers nothing.");
        return Fault::new(Code::Timeout, why, ON_ITS_WAY);
    }
    if is_silent(pages).await {
        return Fault::new(Code::Timeout, format!("{message}. It does not answer right now."), SILENT);
    }
    Fault::new(Code::Timeout, format!("{message}."), hint)
}

/// Whether the page says nothing at all: a script keeps it busy, or its process is stopped or stuck outside of its scripts.
async fn is_silent(pages: &CallPages) -> bool {
    let Some(page) = pages.working_on().1 else { return false };
    tokio::time::timeout(SIGN_OF_LIFE, page.evaluate("1")).await.is_err()
}

/// An act was done, and the page had not come to rest after it.
pub(super) fn note(reply: &mut Reply, pages: &CallPages) {
    let waits = waits_for(pages);
    let asks = asks_elsewhere(pages).map(|(tab, asks)| format!(" {asks} {}", answer_in(tab))).unwrap_or_default();
    reply.content.push(Content::Text(format!("The time was up before the page came to rest{waits}; snapshot shows what changed.{asks}")));
}

/// Pages that one opened stand still together, so the dialog of another tab may be all there is to it.
fn asks_elsewhere(pages: &CallPages) -> Option<(TabId, String)> {
    let (tab, dialog) = pages.asking().into_iter().next()?;
    Some((tab, format!("Tab {tab} has {}, for which this page may wait.", described(&dialog))))
}

/// Where the page is on its way to, as far as the call may be told.
fn bound_for(pages: &CallPages) -> Option<String> {
    let there = pages.working_on().1?.bound_for()?;
    Some(if pages.may_see(&there) { visible_line(&there) } else { "another page".to_owned() })
}

fn is_held(pages: &CallPages) -> bool {
    pages.working_on().1.is_some_and(|page| page.is_held())
}

fn waits_for(pages: &CallPages) -> String {
    let request = pages.working_on().1.and_then(|page| page.waits_for()).filter(|url| pages.may_see(url));
    request.map(|url| format!(" and still waits for {}", visible_line(&url))).unwrap_or_default()
}
