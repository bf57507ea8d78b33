//! A session moves: its pages and logins are opened again in another context, and only when they are there does it leave the
//! one it was in. The same brings back what it lost with its browser.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tabmux_core::{Code, Fault, House, TabId};
use tabmux_driver::{Context, ContextSpec, Footprint, Isolation, Page, failpoint};
use tabmux_tools::Move;

use super::Lasting;
use super::copying::{NAMED, Whole};
use super::world::{World, close_context};
use crate::hub::isolation_name;

/// How long a session that moves waits until all it had is where it goes.
const FILLING: Duration = Duration::from_secs(10);

impl World {
    pub(super) async fn move_house(self: &Arc<Self>, wanted: Move) -> Result<(), Fault> {
        match wanted {
            Move::Back => {
                let lost = self.lost().await?;
                let since = self.each_page(|page| page.url());
                self.move_into(self.spec(), lost).await?;
                self.found().await;
                self.forget_missing().await;
                self.say_left_behind(&since);
                Ok(())
            }
            Move::To { isolation, headless, force } => {
                let spec = house(self.spec(), isolation, headless)?;
                self.hub.browsers.check(&spec)?;
                // All of it, before anything changes.
                let whole = Whole::of(self).await?;
                let fixed = whole.read_all().await;
                if !force && !fixed.is_empty() {
                    return Err(stays(&fixed));
                }
                self.move_into(spec, whole).await?;
                self.moved.notify_one();
                Ok(())
            }
        }
    }

    /// Who brings back what was lost wants that, and gives up for it what the session did since: so it is done, and said.
    fn say_left_behind(&self, since: &BTreeMap<TabId, String>) {
        let pages = since.iter().filter(|(_, url)| *url != "about:blank");
        let pages: Vec<String> = pages.map(|(tab, url)| format!("{tab} {url}")).collect();
        if !pages.is_empty() {
            let said = named(pages.iter().map(String::as_str));
            self.add_news(format!("Given up for what was lost, with cookies and storage since the crash: {said}."));
        }
    }

    /// Make, write down, leave: a crash in between leaves the session in the one context or in the other, never in both.
    async fn move_into(self: &Arc<Self>, mut spec: ContextSpec, whole: Whole) -> Result<(), Fault> {
        (spec.source, spec.footprint) = (whole.beginning().cloned(), Footprint::default());
        let browser = self.hub.browsers.get(&spec).await?;
        let vacant = self.hub.browsers.vacancy(&browser);
        let context = browser.open_context(&spec).await?;
        failpoint("move-has-context");
        let pages = self.open_all(&*context, &whole).await;
        failpoint("move-has-pages");
        has_arrived(&*context).await;
        spec.footprint = context.footprint().borrow().clone();
        if let Some(former) = self.context.lock().await.clone() {
            self.spare_strangers(&*former).await;
        }
        let moved = self.write_down(&spec, &*context, &pages, whole.current()).await;
        let tabs = match moved {
            Ok(tabs) => tabs,
            Err(fault) => {
                if let Err(why) = close_context(&*context).await {
                    tracing::warn!(session = %self.id, why, "a context that a session did not move into did not close");
                }
                return Err(fault);
            }
        };
        failpoint("move-written");
        vacant.taken();
        let former = {
            let mut held = self.context.lock().await;
            self.settle_in(spec, &browser);
            held.replace(Arc::clone(&context))
        };
        for (tab, (_, page)) in tabs.into_iter().zip(&pages) {
            self.add_page(tab, page);
        }
        self.tend(browser, &context);
        if let Some(former) = former
            && let Err(why) = close_context(&*former).await
        {
            tracing::warn!(session = %self.id, why, "the context that a session left did not close; the next daemon closes it");
        }
        Ok(())
    }

    async fn write_down(
        self: &Arc<Self>,
        spec: &ContextSpec,
        context: &dyn Context,
        pages: &[(usize, Arc<dyn Page>)],
        current: Option<usize>,
    ) -> Result<Vec<TabId>, Fault> {
        let settings = Lasting::of(spec, self.whence.as_ref()).written();
        let house = House { context: context.handle().0.as_str().into(), isolation: isolation_name(spec.isolation), settings: &settings };
        let records = pages.iter().map(|(_, page)| (page.handle().0.as_str().into(), page.url())).collect();
        let current = pages.iter().position(|(at, _)| Some(*at) == current).unwrap_or_default();
        let (tabs, safe) = self.hub.decide(|registry, _| registry.rehouse(self.id, house, records, current));
        let tabs = tabs?;
        self.hub.settled(safe).await;
        Ok(tabs)
    }

    /// Its pages in the new context, by their place among the former ones. One that cannot be opened is said.
    async fn open_all(self: &Arc<Self>, context: &dyn Context, whole: &Whole) -> Vec<(usize, Arc<dyn Page>)> {
        let opened = join_all(whole.pages().iter().map(|seed| context.open_seeded(&seed.page))).await;
        let mut pages = Vec::new();
        for (at, (seed, opened)) in whole.pages().iter().zip(opened).enumerate() {
            let url = tabmux_tools::visible_line(&seed.page.url);
            if let Some(why) = &seed.bare {
                self.add_news(format!("What the page {url} keeps for itself did not come along: {why}"));
            }
            match opened {
                Ok(planted) => {
                    self.add_late(&url, planted.arrival);
                    pages.push((at, planted.page));
                }
                Err(error) => self.add_news(format!("The page {url} could not be opened again: {error}")),
            }
        }
        pages
    }
}

/// Said while the session still has it: what it leaves is gone for good.
fn stays(fixed: &[String]) -> Fault {
    let message = format!("This would not come along and would be lost: {}.", named(fixed.iter().map(String::as_str)));
    Fault::new(Code::Unsupported, message, "Move all the same with force: true, or leave the session where it is.")
}

/// The first of them by name.
fn named<'a>(all: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = all.len().saturating_sub(NAMED);
    let mut said: Vec<String> = all.take(NAMED).map(tabmux_tools::visible_line).collect();
    if more > 0 {
        said.push(format!("{more} more"));
    }
    said.join("; ")
}

/// Comes when nothing is on its way to it any more: what it is brought from ends with the move, or with a daemon that dies. What takes too
/// long follows.
async fn has_arrived(context: &dyn Context) {
    let mut copied = context.copied();
    drop(tokio::time::timeout(FILLING, copied.wait_for(|copied| copied.pending == 0)).await);
}

/// How the context is made that it moves into. What is a session's own must not become everybody's; what it shares with others, a
/// profile's logins, comes along as a copy.
fn house(from: ContextSpec, isolation: Option<Isolation>, headless: Option<bool>) -> Result<ContextSpec, Fault> {
    let refused = |message: &str, hint: &str| Err(Fault::new(Code::Unsupported, message, hint));
    let mut spec = ContextSpec { isolation: isolation.unwrap_or(from.isolation), headless: headless.or(from.headless), ..from };
    if matches!(spec.isolation, Isolation::Tab | Isolation::Window) {
        return refused(
            "In a shared profile the session's logins would be everybody's, so it cannot move there.",
            "Move it to the isolation context or browser.",
        );
    }
    if spec.isolation == Isolation::Browser {
        // Nobody has a person's browser to itself: this one is ours.
        spec.endpoint = None;
    }
    if spec.endpoint.is_some() && headless.is_some() {
        return refused("The browser is its user's, who decides whether it has windows.", "Move the session to the isolation browser.");
    }
    Ok(spec)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In the browser of its user a session stays there unless it is to have one to itself, and the user decides about windows.
    #[test]
    fn a_session_leaves_its_users_browser_only_for_one_of_its_own() {
        let theirs = || ContextSpec { endpoint: Some("auto".into()), isolation: Isolation::Window, ..ContextSpec::default() };
        let moved =
            |from: ContextSpec, isolation, headless| house(from, Some(isolation), headless).map(|spec| (spec.endpoint, spec.headless));
        assert_eq!(moved(theirs(), Isolation::Context, None).unwrap(), (Some("auto".into()), None));
        assert_eq!(moved(theirs(), Isolation::Browser, Some(true)).unwrap(), (None, Some(true)));
        assert_eq!(moved(theirs(), Isolation::Context, Some(true)).unwrap_err().code, Code::Unsupported);
        assert_eq!(moved(ContextSpec::default(), Isolation::Context, Some(true)).unwrap(), (None, Some(true)));
        assert_eq!(moved(theirs(), Isolation::Tab, None).unwrap_err().code, Code::Unsupported);
    }
}
