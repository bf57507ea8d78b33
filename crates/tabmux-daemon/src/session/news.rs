//! What is said first in the next reply, to each who uses a session, once: to its owner, to who holds a grant, and to the operator. Whoever hears
//! it takes it away from nobody else. What happened to the pages themselves is no news; replies tell it as a change.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tabmux_core::{Admitted, Fault, GrantId};

/// News that are kept for those who have not heard them.
const MAX_NEWS: usize = 20;

/// How many of those who use a session are told apart.
const MAX_PARTIES: usize = 64;

/// One of those who use a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Party {
    Owner,
    Holder(GrantId),
    /// Looking into a session that is somebody else's.
    Operator,
}

impl From<&Admitted> for Party {
    fn from(admitted: &Admitted) -> Self {
        match admitted.grant {
            _ if admitted.by_owner => Self::Owner,
            Some(grant) => Self::Holder(grant),
            None => Self::Operator,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct News {
    log: VecDeque<Item>,
    /// For the owner, before all others.
    first: Option<String>,
    /// For an owner who took the session over: what it has now. Before everything.
    taken_over: Option<String>,
    /// How many there have ever been.
    count: u64,
    /// How many there had been when each was told last.
    heard: BTreeMap<Party, u64>,
}

#[derive(Debug)]
struct Item {
    number: u64,
    text: String,
    /// Whose doing it was, who needs not be told.
    by: Option<Party>,
}

impl News {
    pub(super) fn add(&mut self, text: String, by: Option<Party>) {
        if self.log.len() == MAX_NEWS {
            self.log.pop_front();
        }
        self.log.push_back(Item { number: self.count, text, by });
        self.count += 1;
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
    pub(super) fn take(&mut self, party: Party) -> Vec<String> {
        let from = self.from(party);
        self.meet(party);
        self.heard.insert(party, self.count);
        let first = if party == Party::Owner { [self.taken_over.take(), self.first.take()] } else { [None, None] };
        let new = self.log.iter().filter(|item| item.number >= from && item.by != Some(party));
        first.into_iter().flatten().chain(new.map(|item| item.text.clone())).collect()
    }

    /// What the owner has not heard.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &str> {
        let from = self.from(Party::Owner);
        let new = self.log.iter().filter(move |item| item.number >= from && item.by != Some(Party::Owner));
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
    use tabmux_core::Code;

    const ONE: Party = Party::Holder(GrantId(1));
    const TWO: Party = Party::Holder(GrantId(2));

    fn said(news: &mut News, party: Party) -> String {
        news.take(party).join(" ")
    }

    #[test]
    fn everybody_hears_everything_once_but_not_what_they_did_themselves() {
        let mut news = News::default();
        news.add("a".into(), None);
        assert_eq!((said(&mut news, ONE), said(&mut news, ONE)), ("a".into(), String::new()));
        news.add("b".into(), Some(ONE));
        news.add_first("welcome".into());
        assert_eq!(news.waiting().collect::<Vec<_>>(), ["welcome", "a", "b"]);
        assert_eq!((said(&mut news, ONE), said(&mut news, Party::Owner)), (String::new(), "welcome a b".into()));
        assert_eq!((said(&mut news, TWO), said(&mut news, Party::Owner)), (String::new(), String::new()), "the owner has heard it");
        news.add("c".into(), None);
        news.forget();
        assert_eq!(said(&mut news, ONE), "");
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
