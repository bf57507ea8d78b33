//! What a history expects of its sessions. It asks nobody: what an agent sees is compared with it.

use serde_json::Value;

use crate::support::Reply;

pub(crate) const BLANK: &str = "about:blank";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tab {
    pub(crate) id: u64,
    pub(crate) url: String,
    /// What its field holds; a blank page has none.
    pub(crate) field: String,
}

impl Tab {
    fn new(id: u64, url: &str) -> Self {
        Self { id, url: url.to_owned(), field: String::new() }
    }

    pub(crate) fn is_blank(&self) -> bool {
        self.url == BLANK
    }
}

/// Where pages keep things.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shelf {
    Cookie,
    Local,
}

/// What the pages of a session keep.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) cookie: Option<String>,
    pub(crate) local: Option<String>,
}

impl Kept {
    fn put(&mut self, shelf: Shelf, value: &str) {
        let place = match shelf {
            Shelf::Cookie => &mut self.cookie,
            Shelf::Local => &mut self.local,
        };
        *place = Some(value.to_owned());
    }
}

/// What an agent sees of a session: its tabs in their order, the current one, and what they keep where there is a page that can tell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    pub(crate) tabs: Vec<Tab>,
    pub(crate) current: Option<u64>,
    pub(crate) kept: Option<Kept>,
}

/// One step of an agent in one of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Open,
    /// Of another session of the same agent.
    Copy(&'static str),
    Tab,
    Go,
    /// Fills in the field of the current page.
    Act,
    /// A page of the session keeps something.
    Keep(Shelf),
    Select(usize),
    CloseTab(usize),
    Close,
}

/// What is known of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) uuid: String,
    pub(crate) tabs: Vec<Tab>,
    pub(crate) current: Option<u64>,
    /// The highest id a tab ever had: none comes again.
    pub(crate) highest: u64,
    pub(crate) kept: Kept,
    /// The session it is a copy of, by its uuid.
    pub(crate) copy_of: Option<String>,
    /// Its browser is gone, which its next call says.
    pub(crate) is_lost: bool,
}

impl Model {
    pub(crate) fn shown(&self) -> Shown {
        let kept = self.tabs.iter().any(|tab| !tab.is_blank()).then(|| self.kept.clone());
        Shown { tabs: self.tabs.clone(), current: self.current, kept }
    }

    fn add(&mut self, tab: u64, url: &str) {
        assert!(tab > self.highest, "the id of tab {tab} was another's");
        self.tabs.push(Tab::new(tab, url));
        (self.highest, self.current) = (tab, Some(tab));
    }

    pub(crate) fn current(&self) -> Option<&Tab> {
        self.tabs.iter().find(|tab| Some(tab.id) == self.current)
    }

    fn at_current(&mut self) -> Option<&mut Tab> {
        let current = self.current;
        self.tabs.iter_mut().find(|tab| Some(tab.id) == current)
    }

    /// Its pages are at their addresses again, and that is all.
    pub(crate) fn forget(&mut self) {
        self.kept = Kept::default();
        self.tabs.iter_mut().for_each(|tab| tab.field.clear());
    }

    /// Its browser is gone, and with it everything but its name.
    pub(crate) fn lose(&mut self) {
        *self = Self { is_lost: true, tabs: Vec::new(), current: None, kept: Kept::default(), ..self.clone() };
    }

    /// What the session is after a step that was done.
    pub(crate) fn done(before: Option<Self>, step: Step, value: &str, reply: &Reply, source: Option<&Self>) -> Option<Self> {
        let mut model = before.unwrap_or_default();
        let said = reply.result();
        match step {
            Step::Open | Step::Copy(_) => {
                model.uuid = said["uuid"].as_str().unwrap().to_owned();
                model.copy_of = source.map(|source| source.uuid.clone());
                model.kept = source.map(|source| source.kept.clone()).unwrap_or_default();
                model.add(number(&said["tabId"]), value);
            }
            Step::Tab => model.add(number(&said["tabId"]), value),
            Step::Go => match model.at_current() {
                Some(tab) => *tab = Tab::new(tab.id, value),
                None => model.add(number(&said["tabId"]), value),
            },
            Step::Act | Step::Keep(_) => {
                let acted_at = (Some(number(&said["tabId"])), said["url"].as_str());
                assert_eq!(acted_at, (model.current, model.current().map(|tab| tab.url.as_str())), "{reply:?}");
                match (step, model.at_current()) {
                    (Step::Keep(shelf), _) => model.kept.put(shelf, value),
                    (_, Some(tab)) => value.clone_into(&mut tab.field),
                    (_, None) => {}
                }
            }
            Step::Select(index) => model.current = Some(model.tabs[index].id),
            Step::CloseTab(index) => {
                let closed = model.tabs.remove(index);
                if model.current == Some(closed.id) {
                    model.current = model.tabs.first().map(|tab| tab.id);
                }
            }
            Step::Close => return None,
        }
        Some(model)
    }
}

/// A step of which nobody knows what came.
#[derive(Debug)]
pub(crate) struct Unknown<'a> {
    pub(crate) before: Option<&'a Model>,
    pub(crate) step: Step,
    pub(crate) value: &'a str,
    pub(crate) source: Option<&'a Model>,
    /// The browser may have died with the daemon.
    pub(crate) forgets: bool,
}

impl Unknown<'_> {
    /// Whether it is what it was before, or after, or for a page that was being opened in between.
    pub(crate) fn may_be(&self, seen: Option<&Shown>) -> bool {
        let Some(seen) = seen else { return matches!(self.step, Step::Open | Step::Copy(_) | Step::Close) };
        self.may_have_tabs(&seen.tabs)
            && self.may_be_at(seen)
            && seen.tabs.iter().all(|tab| self.may_hold(tab))
            && seen.kept.as_ref().is_none_or(|kept| self.may_keep(kept))
    }

    fn may_be_at(&self, seen: &Shown) -> bool {
        let was = self.before.and_then(|before| before.current);
        match self.step {
            Step::Act | Step::Keep(_) | Step::Close => seen.current == was,
            Step::Select(index) => seen.current == was || seen.current == Some(self.old()[index].id),
            _ => seen.current.is_none_or(|current| seen.tabs.iter().any(|tab| tab.id == current)),
        }
    }

    fn old(&self) -> &[Tab] {
        self.before.map(|model| model.tabs.as_slice()).unwrap_or_default()
    }

    fn may_have_tabs(&self, tabs: &[Tab]) -> bool {
        let same = |(one, other): (&Tab, &Tab)| one.id == other.id && one.url == other.url;
        let are = |tabs: &[Tab], others: &[Tab]| tabs.len() == others.len() && tabs.iter().zip(others).all(same);
        let is_new = |tab: &Tab| tab.url == self.value || tab.is_blank();
        let old = self.old();
        match self.step {
            Step::Open | Step::Copy(_) => tabs.len() <= 1 && tabs.iter().all(is_new),
            Step::Tab => {
                let (kept, new) = tabs.split_at(old.len().min(tabs.len()));
                are(kept, old) && new.len() <= 1 && new.iter().all(is_new)
            }
            Step::Go => {
                let moved = |(tab, old): (&Tab, &Tab)| tab.id == old.id && (tab.url == old.url || tab.url == self.value);
                tabs.iter().zip(old).all(moved) && tabs.len() <= old.len().max(1)
            }
            Step::CloseTab(index) => {
                let mut fewer = old.to_vec();
                fewer.remove(index);
                are(tabs, old) || are(tabs, &fewer)
            }
            Step::Select(_) | Step::Act | Step::Keep(_) | Step::Close => are(tabs, old),
        }
    }

    fn may_hold(&self, tab: &Tab) -> bool {
        let old = self.old().iter().find(|old| old.id == tab.id && old.url == tab.url).map(|old| old.field.as_str()).unwrap_or_default();
        let acted = self.step == Step::Act && self.before.is_some_and(|before| before.current == Some(tab.id)) && tab.field == self.value;
        tab.field == old || acted || self.forgets && tab.field.is_empty()
    }

    /// A copy is whole, or not there.
    fn may_keep(&self, kept: &Kept) -> bool {
        let old = self.before.or(self.source).map(|model| model.kept.clone()).unwrap_or_default();
        let mut new = old.clone();
        if let Step::Keep(shelf) = self.step {
            new.put(shelf, self.value);
        }
        *kept == old || *kept == new || self.forgets && *kept == Kept::default()
    }
}

/// `t12` is tab 12.
pub(crate) fn number(tab: &Value) -> u64 {
    tab.as_str().and_then(|tab| tab.strip_prefix('t')).and_then(|tab| tab.parse().ok()).unwrap_or_else(|| panic!("no tab id: {tab}"))
}
