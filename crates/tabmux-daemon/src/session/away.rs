//! What happened in a session while nobody drove it: its client was lost, the daemon was replaced, or it was handed over. Said in
//! one line before everything else in the next reply, and not at all when nothing happened. Dialogs, downloads, popups and tabs
//! that closed are news and come behind it.

use std::collections::BTreeMap;
use std::sync::Arc;

use tabmux_core::{Admitted, Code, Epoch, Party, TabId};
use tabmux_driver::PageRecord;
use tabmux_tools::visible_line;
use tokio::time::Instant;

use super::world::World;

/// How much of it is said.
const MAX_ITEMS: usize = 8;
const MAX_URL_BYTES: usize = 200;

/// Before any.
const NEVER: Epoch = Epoch(0);

/// The session as who drives it knew it last.
#[derive(Debug)]
pub(super) struct Seen {
    epoch: Epoch,
    /// `None`: another daemon saw it.
    at: Option<Instant>,
    tabs: BTreeMap<TabId, Sighting>,
    /// A call that was running when its caller was lost, and how it ended.
    unheard: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Sighting {
    url: String,
    /// Of the console, that nobody was told of.
    errors: u64,
}

impl World {
    /// A former daemon saw the session so.
    pub(super) fn was_seen(&self, tabs: &[(TabId, PageRecord)]) {
        let errors = |tab: TabId| self.page(tab).map_or(0, |page| page.untold_errors());
        let tabs = tabs.iter().map(|(tab, record)| (*tab, Sighting { url: record.url.clone(), errors: errors(*tab) })).collect();
        *self.seen() = Some(Seen { epoch: NEVER, at: None, tabs, unheard: None });
    }

    /// Its pages are gone, which the loss itself says: nobody closed them.
    pub(super) fn lost_sight(&self) {
        if let Some(seen) = self.seen().as_mut() {
            seen.tabs.clear();
        }
    }

    /// Says first what happened since the driver's last reply, if the session was without one in between.
    pub(super) fn welcome_back(&self, admitted: &Admitted) {
        let before = self.seen().take_if(|seen| admitted.party == Party::Owner && seen.epoch != admitted.epoch);
        let Some(before) = before else { return };
        let items = self.compared(&before);
        if items.is_empty() {
            return;
        }
        let more = items.len().saturating_sub(MAX_ITEMS);
        let mut told = items.into_iter().take(MAX_ITEMS).collect::<Vec<_>>().join("; ");
        if more > 0 {
            told += &format!("; and {more} more");
        }
        let time = before.at.map(|at| format!(" ({})", shown(at.elapsed().as_secs()))).unwrap_or_default();
        self.add_first(format!("While nobody drove this session{time}: {told}."));
    }

    fn compared(&self, before: &Seen) -> Vec<String> {
        let now = self.sightings();
        // What is on disk has no secrets in it.
        let hidden = |url: &str| self.hub.settings.secrets.hide(url).into_owned();
        let mut items: Vec<String> = before.unheard.iter().cloned().collect();
        for (tab, was) in &before.tabs {
            match now.get(tab) {
                None if self.is_news(&format!("Tab {tab} ")) || self.is_news(&format!("closed tab {tab}.")) => {}
                None => items.push(format!("{tab} was closed")),
                Some(is) if hidden(&is.url) != hidden(&was.url) => items.push(format!("{tab} went to {}", short_url(&is.url))),
                Some(_) => {}
            }
        }
        for (tab, is) in now.iter().filter(|(tab, _)| !before.tabs.contains_key(tab)) {
            if !self.is_news(&format!("opened tab {tab};")) {
                items.push(format!("{tab} was opened at {}", short_url(&is.url)));
            }
        }
        for (tab, is) in &now {
            let new = is.errors.saturating_sub(before.tabs.get(tab).map_or(0, |was| was.errors));
            if new > 0 {
                items.push(format!("{new} console error{} in {tab}", if new == 1 { "" } else { "s" }));
            }
        }
        items
    }

    /// The driver of the session, if it was its call, is told by the reply what there is now; unless it is gone meanwhile.
    pub(super) fn was_told(self: &Arc<Self>, admitted: &Admitted, tool: &str, outcome: Option<Code>) {
        if admitted.party != Party::Owner {
            return;
        }
        let orphaned = self.hub.look(|registry| registry.listing(self.id).is_some_and(|listed| listed.orphaned));
        let mut seen = self.seen();
        if orphaned {
            let unheard = format!("{tool}, which was running, ended ({})", outcome.map_or("ok", Code::name));
            if let Some(seen) = seen.as_mut() {
                seen.unheard = Some(unheard);
            }
            return;
        }
        let tabs = self.sightings();
        let moved: Vec<(TabId, String)> = {
            let known = seen.as_ref().map(|seen| &seen.tabs);
            let is_new = |(tab, is): &(&TabId, &Sighting)| known.and_then(|known| known.get(tab)).is_none_or(|was| was.url != is.url);
            tabs.iter().filter(is_new).map(|(tab, is)| (*tab, is.url.clone())).collect()
        };
        *seen = Some(Seen { epoch: admitted.epoch, at: Some(Instant::now()), tabs, unheard: None });
        drop(seen);
        if !moved.is_empty() {
            // However it got there: the next daemon compares with this.
            self.hub.decide_now(|registry, _| moved.iter().for_each(|(tab, url)| registry.tab_at(self.id, *tab, url)));
        }
    }

    fn sightings(&self) -> BTreeMap<TabId, Sighting> {
        self.each_page(|page| Sighting { url: page.url(), errors: page.untold_errors() })
    }
}

/// As much of an address as is read.
pub(crate) fn short_url(url: &str) -> String {
    let end = url.floor_char_boundary(MAX_URL_BYTES);
    visible_line(&format!("{}{}", &url[..end], if end < url.len() { "…" } else { "" }))
}

fn shown(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        _ => format!("{}h", seconds / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::shown;

    #[test]
    fn a_time_is_said_in_one_unit() {
        let said = [0, 59, 60, 3599, 3600, 90_000].map(shown);
        assert_eq!(said, ["0s", "59s", "1m", "59m", "1h", "25h"]);
    }
}
