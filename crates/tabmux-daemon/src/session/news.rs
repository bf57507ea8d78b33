//! What is said first in the next reply, to each who uses a session, once: to its owner, to who holds a grant, and to the operator. Whoever hears
//! it takes it away from nobody else. What happened to the pages themselves is no news; replies tell it as a change.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tabmux_core::{Fault, Party, TAKEN, TabId};

/// News that are kept for those who have not heard them.
const MAX_NEWS: usize = 20;

/// How many that gave way are counted.
const MAX_COUNTED: usize = 10_000;

/// How many of those who use a session are told apart.
const MAX_PARTIES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct News {
    log: VecDeque<Item>,
    /// For the owner, before all others.
    first: Option<String>,
    /// For an owner who took the session over: what it has now. Before everything.
    taken_over: Option<String>,
    /// Those that gave way to later ones, by their numbers: nothing is lost silently.
    crowded_out: VecDeque<u64>,
    /// How many there have ever been.
    count: u64,
    /// How many there had been when each was told last.
    heard: BTreeMap<Party, u64>,
    /// Tabs that are crashed, as far as anybody knows.
    crashed: BTreeMap<TabId, Crash>,
}

/// The page itself tells of it, and so does a call that fails because of it; whichever is heard of first.
#[derive(Debug, Default)]
struct Crash {
    is_news: bool,
    /// Who heard it in place of an answer before it was news.
    known_to: BTreeSet<Party>,
}

#[derive(Debug)]
struct Item {
    number: u64,
    text: String,
    /// How often it happened before anybody heard of it.
    times: u64,
    /// Who needs not be told: whose doing it was, and who heard it in place of an answer.
    known_to: BTreeSet<Party>,
    about: About,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum About {
    Anything,
    /// The tab that it invites to; without that tab it is told to nobody.
    Way(TabId),
    /// The tab that crashed, and has not been brought back; told as a way.
    Crash(TabId),
    /// The tab that opened a dialog; told as a way.
    Dialog(TabId),
    /// The tab whose end it tells.
    End(TabId),
    /// The same, where it ended without the doing of anybody who uses the session; told with others that ended alike.
    Gone(TabId, Gone),
}

/// How a tab ended without the doing of anybody who uses the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    Closed,
    /// A person has it.
    Taken,
    NotFound,
}

impl Gone {
    fn told(self, tabs: &BTreeSet<TabId>) -> String {
        let (one, several) = match self {
            Self::Closed => ("was closed by the page or by a person", "were closed by the page or by a person"),
            Self::Taken => (TAKEN, "were moved to another window by a person, whose they are now"),
            Self::NotFound => ("did not survive the restart", "did not survive the restart"),
        };
        let named: Vec<String> = tabs.iter().map(TabId::to_string).collect();
        let (noun, how) = if named.len() == 1 { ("Tab", one) } else { ("Tabs", several) };
        format!("{noun} {} {how}.", named.join(", "))
    }
}

impl About {
    fn way_to(self) -> Option<TabId> {
        match self {
            Self::Way(tab) | Self::Crash(tab) | Self::Dialog(tab) => Some(tab),
            Self::Anything | Self::End(_) | Self::Gone(..) => None,
        }
    }

    fn end_of(self) -> Option<TabId> {
        match self {
            Self::End(tab) | Self::Gone(tab, _) => Some(tab),
            Self::Anything | Self::Way(_) | Self::Crash(_) | Self::Dialog(_) => None,
        }
    }
}

impl Item {
    /// Whether this one is to hear it who has heard the first `from`, and these tabs are there.
    fn is_for(&self, party: Party, from: u64, tabs: &BTreeSet<TabId>) -> bool {
        let in_vain = self.about.way_to().is_some_and(|tab| !tabs.contains(&tab));
        self.number >= from && !self.known_to.contains(&party) && !in_vain
    }

    fn told(&self) -> String {
        if self.times == 1 { self.text.clone() } else { format!("{} ({} times)", self.text, self.times) }
    }
}

impl News {
    pub(super) fn add(&mut self, text: String, by: Option<Party>) {
        self.push(text, by.into_iter().collect(), About::Anything);
    }

    /// What can be done with a tab, and is told only as long as it is there.
    pub(super) fn add_of(&mut self, tab: TabId, text: String, by: Option<Party>) {
        self.push(text, by.into_iter().collect(), About::Way(tab));
    }

    pub(super) fn add_dialog(&mut self, tab: TabId, text: String, by: Option<Party>) {
        self.push(text, by.into_iter().collect(), About::Dialog(tab));
    }

    /// This one heard in place of an answer that it is open.
    pub(super) fn knows_dialog(&mut self, party: Party, tab: TabId) {
        self.log.iter_mut().filter(|item| item.about == About::Dialog(tab)).for_each(|item| _ = item.known_to.insert(party));
    }

    /// How a tab ended.
    pub(super) fn add_end(&mut self, tab: TabId, text: String, by: Option<Party>) {
        self.push(text, by.into_iter().collect(), About::End(tab));
    }

    /// It ended, and nobody who uses the session did it.
    pub(super) fn add_gone(&mut self, tab: TabId, how: Gone) {
        self.push(how.told(&BTreeSet::from([tab])), BTreeSet::new(), About::Gone(tab, how));
    }

    /// How this tab ended.
    pub(super) fn end(&self, tab: TabId) -> Option<&str> {
        self.log.iter().find(|item| item.about.end_of() == Some(tab)).map(|item| item.text.as_str())
    }

    /// This one heard it in place of an answer.
    pub(super) fn knows_end(&mut self, party: Party, tab: TabId) {
        self.log.iter_mut().filter(|item| item.about.end_of() == Some(tab)).for_each(|item| _ = item.known_to.insert(party));
    }

    /// This one heard that the last window is gone, and so all that was in it.
    pub(super) fn knows_all_gone(&mut self, party: Party) {
        let gone = self.log.iter_mut().filter(|item| matches!(item.about, About::Gone(_, Gone::Closed)));
        gone.for_each(|item| _ = item.known_to.insert(party));
    }

    /// A tab crashed, which some may know.
    pub(super) fn crashed(&mut self, tab: TabId) {
        let crash = self.crashed.entry(tab).or_default();
        crash.is_news = true;
        let known_to = std::mem::take(&mut crash.known_to);
        self.push(format!("Tab {tab} crashed; navigate it again to bring it back."), known_to, About::Crash(tab));
    }

    /// This one heard it in place of an answer.
    pub(super) fn knows_crash(&mut self, party: Party, tab: TabId) {
        let crash = self.crashed.entry(tab).or_default();
        if crash.is_news {
            self.crashes(tab).for_each(|item| _ = item.known_to.insert(party));
        } else {
            crash.known_to.insert(party);
        }
    }

    /// Somebody brought it back: who has not heard of the crash need do nothing about it.
    pub(super) fn lives_again(&mut self, tab: TabId) {
        self.crashed.remove(&tab);
        for item in self.crashes(tab) {
            (item.text, item.about) = (format!("Tab {tab} crashed and was brought back."), About::Way(tab));
        }
    }

    fn crashes(&mut self, tab: TabId) -> impl Iterator<Item = &mut Item> {
        self.log.iter_mut().filter(move |item| item.about == About::Crash(tab))
    }

    fn push(&mut self, text: String, known_to: BTreeSet<Party>, about: About) {
        let unheard = self.heard.values().copied().max().unwrap_or_default();
        let again = |item: &&mut Item| item.number >= unheard && (&item.text, item.about) == (&text, about) && known_to.is_empty();
        if let Some(item) = self.log.iter_mut().find(again) {
            item.times += 1;
            return;
        }
        if self.log.len() == MAX_NEWS {
            self.make_room();
        }
        self.log.push_back(Item { number: self.count, text, times: 1, known_to, about });
        self.count += 1;
    }

    /// Tabs are listed anyway, so what invites to one gives way before anything else does: no page can talk a download or an end away.
    fn make_room(&mut self) {
        let place = self.log.iter().position(|item| item.about.way_to().is_some()).unwrap_or_default();
        if let Some(item) = self.log.remove(place) {
            if self.crowded_out.len() == MAX_COUNTED {
                self.crowded_out.pop_front();
            }
            self.crowded_out.push_back(item.number);
        }
    }

    pub(super) fn add_first(&mut self, text: String) {
        self.first = Some(text);
    }

    /// What was to be said first was for the former owner.
    pub(super) fn was_taken_over(&mut self, told: String) {
        (self.taken_over, self.first) = (Some(told), None);
    }

    /// This one uses the session, and may or may not hear news.
    pub(super) fn meet(&mut self, party: Party) {
        let from = self.from(party);
        if self.heard.len() == MAX_PARTIES && !self.heard.contains_key(&party) {
            // Who has not been here for longest is a newcomer when it comes again.
            let longest = self.heard.iter().filter(|(party, _)| **party != Party::Owner).min_by_key(|(_, heard)| **heard);
            if let Some(longest) = longest.map(|(party, _)| *party) {
                self.heard.remove(&longest);
            }
        }
        self.heard.entry(party).or_insert(from);
    }

    /// What this one has not heard, and has now. Who comes for the first time hears what the owner has not.
    pub(super) fn take(&mut self, party: Party, tabs: &BTreeSet<TabId>) -> Vec<String> {
        let from = self.from(party);
        self.meet(party);
        self.heard.insert(party, self.count);
        self.crashed.retain(|tab, _| tabs.contains(tab));
        let first = if party == Party::Owner { [self.taken_over.take(), self.first.take()] } else { [None, None] };
        let new = self.log.iter().filter(|item| item.is_for(party, from, tabs));
        let missing = self.crowded_out.iter().filter(|number| **number >= from).count();
        let missing =
            (missing > 0).then(|| format!("({missing} more happened than can be told; list_pages and downloads show what there is.)"));
        first.into_iter().flatten().chain(missing).chain(together(new)).collect()
    }

    /// What the owner has not heard.
    pub(super) fn waiting(&self, tabs: &BTreeSet<TabId>) -> impl Iterator<Item = &str> {
        let from = self.from(Party::Owner);
        let new = self.log.iter().filter(move |item| item.is_for(Party::Owner, from, tabs));
        let first = [&self.taken_over, &self.first].into_iter().filter_map(Option::as_deref);
        first.chain(new.map(|item| item.text.as_str()))
    }

    /// Those that begin so, which are told elsewhere.
    pub(super) fn take_out(&mut self, beginning: &str) -> Vec<String> {
        let (taken, others): (VecDeque<Item>, VecDeque<Item>) = self.log.drain(..).partition(|item| item.text.starts_with(beginning));
        self.log = others;
        taken.into_iter().map(|item| item.text).collect()
    }

    /// They were about what is gone; whose the session is, is not.
    pub(super) fn forget(&mut self) {
        self.log.clear();
        self.crowded_out.clear();
        self.crashed.clear();
        self.first = None;
    }

    /// Those who have used the session so far.
    pub(super) fn parties(&self) -> impl Iterator<Item = Party> {
        self.heard.keys().copied()
    }

    fn from(&self, party: Party) -> u64 {
        self.heard.get(&party).or_else(|| self.heard.get(&Party::Owner)).copied().unwrap_or_default()
    }
}

/// In the order in which they happened, and in one line what became of several tabs alike: a window that is closed takes all of its own along.
fn together<'n>(news: impl Iterator<Item = &'n Item>) -> Vec<String> {
    let mut told: Vec<(Option<Gone>, BTreeSet<TabId>, String)> = Vec::new();
    for item in news {
        let About::Gone(tab, how) = item.about else {
            told.push((None, BTreeSet::new(), item.told()));
            continue;
        };
        match told.iter_mut().find(|(known, ..)| *known == Some(how)) {
            Some((_, tabs, text)) => {
                tabs.insert(tab);
                *text = how.told(tabs);
            }
            None => told.push((Some(how), BTreeSet::from([tab]), item.told())),
        }
    }
    told.into_iter().map(|(.., text)| text).collect()
}

/// That the browser, or the last window, was lost: each who knew the session is told in place of an answer, once.
#[derive(Debug)]
pub(super) struct Lost {
    fault: Fault,
    untold: BTreeSet<Party>,
    told: BTreeSet<Party>,
}

impl Lost {
    pub(super) fn new(fault: Fault, knew_it: impl Iterator<Item = Party>) -> Self {
        Self { fault, untold: knew_it.chain([Party::Owner]).collect(), told: BTreeSet::new() }
    }

    /// Who comes for the first time hears it too, as long as the owner has not.
    pub(super) fn tell(&mut self, party: Party) -> Option<Fault> {
        let is_new = self.untold.contains(&Party::Owner) && !self.told.contains(&party);
        (self.untold.remove(&party) || is_new).then(|| {
            self.told.insert(party);
            self.fault.clone()
        })
    }

    pub(super) fn fault(&self) -> &Fault {
        &self.fault
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tabmux_core::{Code, GrantId};

    const ONE: Party = Party::Holder(GrantId(1));
    const TWO: Party = Party::Holder(GrantId(2));

    fn said(news: &mut News, party: Party) -> String {
        news.take(party, &BTreeSet::new()).join(" ")
    }

    #[test]
    fn everybody_hears_everything_once_but_not_what_they_did_themselves() {
        let mut news = News::default();
        news.add("a".into(), None);
        assert_eq!((said(&mut news, ONE), said(&mut news, ONE)), ("a".into(), String::new()));
        news.add("b".into(), Some(ONE));
        news.add_first("welcome".into());
        assert_eq!(news.waiting(&BTreeSet::new()).collect::<Vec<_>>(), ["welcome", "a", "b"]);
        assert_eq!((said(&mut news, ONE), said(&mut news, Party::Owner)), (String::new(), "welcome a b".into()));
        assert_eq!((said(&mut news, TWO), said(&mut news, Party::Owner)), (String::new(), String::new()), "the owner has heard it");
        news.add("c".into(), None);
        news.forget();
        assert_eq!(said(&mut news, ONE), "");
    }

    #[test]
    fn nobody_is_sent_to_a_tab_that_is_gone() {
        let mut news = News::default();
        news.add_of(TabId(1), "one".into(), None);
        news.add_of(TabId(2), "two".into(), None);
        let left = BTreeSet::from([TabId(2)]);
        assert_eq!(news.waiting(&left).collect::<Vec<_>>(), ["two"]);
        assert_eq!(news.take(Party::Owner, &left), ["two"]);
        assert_eq!(said(&mut news, ONE), "", "nor those who hear it later");
    }

    #[test]
    fn how_a_tab_ended_is_not_told_to_who_heard_it_in_place_of_an_answer() {
        let mut news = News::default();
        news.add_end(TabId(1), "t1 went".into(), None);
        news.add_end(TabId(2), "t2 went".into(), Some(TWO));
        assert_eq!((news.end(TabId(1)), news.end(TabId(3))), (Some("t1 went"), None));
        news.knows_end(Party::Owner, TabId(1));
        assert_eq!((said(&mut news, Party::Owner), said(&mut news, TWO)), ("t2 went".into(), String::new()));
        assert_eq!(news.end(TabId(1)), Some("t1 went"), "for others");
    }

    /// A closed window takes all of its tabs along, and their ends come in any order.
    #[test]
    fn tabs_that_ended_alike_are_told_in_one_line_and_in_order() {
        let mut news = News::default();
        for (tab, how) in [(12, Gone::Closed), (3, Gone::Taken), (2, Gone::Closed), (4, Gone::Taken), (10, Gone::Closed)] {
            news.add_gone(TabId(tab), how);
        }
        news.add_end(TabId(5), "The operator closed tab t5.".into(), None);
        assert_eq!(news.end(TabId(2)), Some("Tab t2 was closed by the page or by a person."));
        news.knows_end(TWO, TabId(2));
        let closed = |tabs: &str| format!("Tabs {tabs} were closed by the page or by a person.");
        let taken = "Tabs t3, t4 were moved to another window by a person, whose they are now.";
        let operators = "The operator closed tab t5.";
        assert_eq!(said(&mut news, ONE), [closed("t2, t10, t12").as_str(), taken, operators].join(" "));
        assert_eq!(said(&mut news, TWO), [closed("t10, t12").as_str(), taken, operators].join(" "));
        news.knows_all_gone(Party::Owner);
        assert_eq!(said(&mut news, Party::Owner), [taken, operators].join(" "), "what a person has is not gone with a window");
    }

    /// Whichever is there first, the page's own word or the call that failed.
    #[test]
    fn a_crash_is_told_once_to_each_and_not_to_who_heard_it_in_place_of_an_answer() {
        let tabs = BTreeSet::from([TabId(1)]);
        let crashed = "Tab t1 crashed; navigate it again to bring it back.";
        for news_first in [true, false] {
            let mut news = News::default();
            // Again after it was brought back: it is another crash.
            for _ in 0..2 {
                if news_first {
                    news.crashed(TabId(1));
                }
                news.knows_crash(ONE, TabId(1));
                if !news_first {
                    news.crashed(TabId(1));
                }
                assert_eq!((news.take(ONE, &tabs), news.take(TWO, &tabs)), (vec![], vec![crashed.to_owned()]), "{news_first}");
                news.knows_crash(TWO, TabId(1));
                news.lives_again(TabId(1));
                assert_eq!((news.take(ONE, &tabs), news.take(TWO, &tabs)), (vec![], vec![]), "{news_first}");
                assert_eq!(news.take(Party::Owner, &tabs), ["Tab t1 crashed and was brought back."], "{news_first}");
            }
        }
    }

    /// A page that opens tab after tab must not make a download go untold.
    #[test]
    fn what_gives_way_is_counted_and_invitations_give_way_first() {
        let mut news = News::default();
        let tabs: BTreeSet<TabId> = (1..=50).map(TabId).collect();
        news.add("downloaded".into(), None);
        for tab in &tabs {
            news.add_of(*tab, format!("opened {tab}"), None);
        }
        let told = news.take(Party::Owner, &tabs);
        assert_eq!(told.len(), MAX_NEWS + 1);
        assert!(told[0].starts_with("(31 more happened"), "{told:?}");
        assert_eq!((told[1].as_str(), told[2].as_str(), told[20].as_str()), ("downloaded", "opened t32", "opened t50"));
        assert_eq!(news.take(Party::Owner, &tabs), Vec::<String>::new());
        for _ in 0..3 {
            news.add("again".into(), None);
        }
        assert_eq!(said(&mut news, Party::Owner), "again (3 times)");
        news.add("again".into(), None);
        assert_eq!(said(&mut news, Party::Owner), "again", "what was heard is not counted once more");
    }

    #[test]
    fn some_are_told_elsewhere() {
        let mut news = News::default();
        for text in ["x: 1", "y", "x: 2"] {
            news.add(text.into(), None);
        }
        assert_eq!((news.take_out("x: "), said(&mut news, Party::Owner)), (vec!["x: 1".into(), "x: 2".into()], "y".into()));
    }

    #[test]
    fn there_is_a_bound_on_who_is_remembered_and_the_owner_is() {
        let mut news = News::default();
        said(&mut news, Party::Owner);
        for grant in 0..100 {
            news.add(grant.to_string(), None);
            assert_eq!(said(&mut news, Party::Owner), grant.to_string());
            said(&mut news, Party::Holder(GrantId(grant)));
        }
        assert_eq!(news.parties().count(), MAX_PARTIES);
        assert!(news.parties().any(|party| party == Party::Owner) && news.parties().any(|party| party == Party::Holder(GrantId(99))));
    }

    #[test]
    fn a_loss_is_told_to_each_who_knew_the_session_and_to_newcomers_before_its_owner_knows() {
        let mut lost = Lost::new(Fault::new(Code::BrowserCrashed, "", ""), [ONE].into_iter());
        assert_eq!(
            [TWO, TWO, Party::Owner, Party::Owner, ONE, ONE].map(|party| lost.tell(party).is_some()),
            [true, false, true, false, true, false]
        );
        assert!(lost.tell(Party::Operator).is_none(), "what the owner knows is no news to who comes later");
    }
}
