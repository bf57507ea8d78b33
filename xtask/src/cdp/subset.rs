//! The list of what is wanted of the protocol, and what is left out of that.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};

/// Names by domain, and fields to leave out by `Domain.Name`.
#[derive(Debug, Default)]
pub(super) struct Subset {
    pub(super) commands: BTreeMap<String, BTreeSet<String>>,
    pub(super) events: BTreeMap<String, BTreeSet<String>>,
    pub(super) omit: BTreeMap<String, BTreeSet<String>>,
}

impl Subset {
    pub(super) fn parse(text: &str) -> Result<Self> {
        let mut subset = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = line.split_whitespace();
            let list = match words.next().context("a line without a word")? {
                "commands" => &mut subset.commands,
                "events" => &mut subset.events,
                "omit" => &mut subset.omit,
                other => bail!("`{other}` is none of commands, events, omit"),
            };
            let whose = words.next().with_context(|| format!("`{line}` names nothing"))?;
            list.entry(whose.to_owned()).or_default().extend(words.map(str::to_owned));
        }
        Ok(subset)
    }

    pub(super) fn domains(&self) -> BTreeSet<&String> {
        self.commands.keys().chain(self.events.keys()).collect()
    }

    /// Every command and event as it is called on the wire.
    pub(super) fn methods(&self) -> BTreeSet<String> {
        let lists = self.commands.iter().chain(&self.events);
        lists.flat_map(|(domain, names)| names.iter().map(move |name| format!("{domain}.{name}"))).collect()
    }
}
