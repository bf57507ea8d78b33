//! A session moves: its pages and logins are opened again in another context, and only when they are there does it leave the
//! one it was in. The same brings back what it lost with its browser.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use tabmux_core::{Code, Fault, Ground, House, Spot, TabId, WindowId};
use tabmux_driver::{Browser, Context, ContextSpec, Footprint, Handle, Isolation, Page, failpoint};
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
                self.move_into(self.spec(), lost, None).await?;
                self.found().await;
                self.forget_missing().await;
                self.say_left_behind(&since);
                Ok(())
            }
            Move::To { isolation, headless, force } => {
                let spec = house(self.spec(), isolation, headless)?;
                self.hub.browsers.check(&spec)?;
                let merged = merged(&spec);
                let same = if merged.is_some() { self.browser_of_its_profile(&spec).await? } else { None };
                let whole = match merged {
                    Some(_) if same.is_some() => Whole::without_logins(self).await?,
                    Some(with) if !force => return Err(would_merge(&spec, with)),
                    _ => self.all_that_moves(force).await?,
                };
                let brings_logins = whole.beginning().is_some();
                self.move_into(spec, whole, same).await?;
                if let Some(with) = merged.filter(|_| brings_logins) {
                    self.add_news(format!(
                        "Its cookies and storage are part of its browser's profile now, in the place of equal ones there: they are shared with {with}."
                    ));
                }
                self.moved.notify_one();
                Ok(())
            }
        }
    }

    /// Its pages and logins, read before anything changes.
    async fn all_that_moves(self: &Arc<Self>, force: bool) -> Result<Whole, Fault> {
        let whole = Whole::of(self).await?;
        let fixed = whole.read_all().await;
        if force || fixed.is_empty() { Ok(whole) } else { Err(stays(&fixed)) }
    }

    /// The browser that it is in, where it can share there what it shares already: then its logins need not move.
    async fn browser_of_its_profile(self: &Arc<Self>, spec: &ContextSpec) -> Result<Option<Arc<dyn Browser>>, Fault> {
        let from = self.spec();
        if !from.isolation.shares_profile() || from.headless != spec.headless {
            return Ok(None);
        }
        self.open().await?;
        // Whatever has windows has tabs; what has tabs may be a browser without windows.
        if spec.isolation == Isolation::Tab || from.isolation == Isolation::Window {
            return Ok(self.browser());
        }
        let browser = self.hub.browsers.get(spec).await?;
        // One that was started only to compare ends again.
        let _vacant = self.hub.browsers.vacancy(&browser);
        Ok(self.is_in_browser(&browser).then_some(browser))
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
    async fn move_into(self: &Arc<Self>, mut spec: ContextSpec, whole: Whole, into: Option<Arc<dyn Browser>>) -> Result<(), Fault> {
        (spec.source, spec.footprint) = (whole.beginning().cloned(), Footprint::default());
        let browser = match into {
            Some(browser) => browser,
            None => self.hub.browsers.get(&spec).await?,
        };
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
        self.tell_windows(&*context);
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
        let windows = new_windows(context, pages).await;
        let house = House { context: context.handle().0.as_str().into(), isolation: isolation_name(spec.isolation), settings: &settings };
        let records = pages.iter().map(|(_, page)| (page.handle().0.as_str().into(), page.url())).collect();
        let current = pages.iter().position(|(at, _)| Some(*at) == current).unwrap_or_default();
        let (tabs, safe) = self.hub.decide(|registry, _| {
            let tabs = registry.rehouse(self.id, house, records, current)?;
            for (tab, window) in tabs.iter().zip(windows) {
                // A context that was just made opens pages in no window but its own.
                window.map(|window| registry.place_tab(self.id, *tab, Spot { window, ground: Ground::New }));
            }
            Ok::<_, Fault>(tabs)
        });
        let tabs = tabs?;
        self.hub.settled(safe).await;
        Ok(tabs)
    }

    /// Its pages in the new context, by their place among the former ones. One that cannot be opened is said.
    async fn open_all(self: &Arc<Self>, context: &dyn Context, whole: &Whole) -> Vec<(usize, Arc<dyn Page>)> {
        // The first one by itself: where its window is, the others come.
        let alone = if context.windows().is_some() { whole.pages().len().min(1) } else { 0 };
        let (first, others) = whole.pages().split_at(alone);
        let mut opened = Vec::new();
        for seeds in [first, others] {
            opened.extend(join_all(seeds.iter().map(|seed| context.open_seeded(&seed.page))).await);
        }
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

/// With whom a session that is made so shares what it has.
fn merged(spec: &ContextSpec) -> Option<&'static str> {
    match &spec.endpoint {
        _ if !spec.isolation.shares_profile() => None,
        None => Some("every session of the isolation window or tab in that browser"),
        Some(_) => Some("whoever uses that browser, and every session of the isolation window or tab in it"),
    }
}

/// What is a session's own becomes others' only where somebody says so.
fn would_merge(spec: &ContextSpec, with: &str) -> Fault {
    let message = format!(
        "A session isolated by {} shares its browser's profile: its cookies and storage would be merged into that, in the place of equal ones, and \
         shared with {with}.",
        isolation_name(spec.isolation)
    );
    Fault::new(
        Code::Unsupported,
        message,
        "Move all the same with force: true, or to the isolation context or browser, where they stay its own.",
    )
}

/// The windows that these pages are in, where the context has windows.
async fn new_windows(context: &dyn Context, pages: &[(usize, Arc<dyn Page>)]) -> Vec<Option<WindowId>> {
    let Some(windowed) = context.windows() else { return vec![None; pages.len()] };
    let handles: Vec<Handle> = pages.iter().map(|(_, page)| page.handle().clone()).collect();
    let found = windowed.windows_of(&handles).await;
    handles.iter().map(|handle| found.iter().find(|(known, _)| known == handle).map(|(_, window)| *window)).collect()
}

/// How the context is made that it moves into. What it shares with others, a profile's logins, comes along as a copy.
fn house(from: ContextSpec, isolation: Option<Isolation>, headless: Option<bool>) -> Result<ContextSpec, Fault> {
    let refused = |message: &str, hint: &str| Err(Fault::new(Code::Unsupported, message, hint));
    let mut spec = ContextSpec { isolation: isolation.unwrap_or(from.isolation), headless: headless.or(from.headless), ..from };
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
        assert_eq!(moved(theirs(), Isolation::Tab, None).unwrap(), (Some("auto".into()), None));
    }

    #[test]
    fn with_whom_a_session_shares_its_logins_is_said_before_it_does() {
        let said = |endpoint: Option<&str>, isolation| {
            let spec = ContextSpec { endpoint: endpoint.map(str::to_owned), isolation, ..ContextSpec::default() };
            merged(&spec).map(|with| would_merge(&spec, with).message)
        };
        assert_eq!([Isolation::Context, Isolation::Browser].map(|own| said(Some("auto"), own)), [None, None]);
        let ours = said(None, Isolation::Tab).unwrap();
        assert!(ours.starts_with("A session isolated by tab shares") && !ours.contains("whoever uses"), "{ours}");
        assert!(said(Some("auto"), Isolation::Window).unwrap().contains("shared with whoever uses that browser"));
    }
}
