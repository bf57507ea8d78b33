//! Pages as text: how many tokens, and how long it takes.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};

use super::super::agent::Ground;
use super::super::measure::Watchdog;
use super::super::pages::Pages;
use super::super::result::Spread;
use super::super::tree;
use super::LIMIT;
use super::dialect::{Dialect, Shows, Talk, tokens};
use super::result::{Outcome, Seen};
use super::shelf::Leaf;

/// A page that takes long is read less often.
const ENOUGH: Duration = Duration::from_secs(10);

/// The list as a client gets it.
pub(super) fn list_tokens(dialect: &Dialect, ground: &Ground) -> Outcome<usize> {
    let list = Talk::start(dialect, ground).and_then(|mut talk| talk.list());
    list.map(|list| tokens(&list.to_string())).map_err(|error| format!("{error:#}"))
}

/// Every page of the shelf. One that fails costs the product its client, and the next page begins with a new one.
pub(super) fn measure(dialect: &Dialect, ground: &Ground, pages: &Pages, looks: usize) -> Result<Vec<(String, Outcome<Seen>)>> {
    let mut all = Vec::new();
    let mut kept = None;
    for leaf in pages.shelf().leaves() {
        let watchdog = Watchdog::start(LIMIT);
        let talk = kept.take().map_or_else(|| Talk::start(dialect, ground), Ok);
        let seen = talk.and_then(|mut talk| {
            let seen = read(dialect, &mut talk, &pages.at(&leaf.path), leaf, looks)?;
            kept = Some(talk);
            Ok(seen)
        });
        let outcome = seen.map_err(|error| {
            if watchdog.has_bitten() {
                format!("hung: ended with all its processes after {} s", LIMIT.as_secs())
            } else {
                format!("{error:#}")
            }
        });
        if outcome.is_err() {
            tree::end()?;
        }
        all.push((leaf.name.clone(), outcome));
    }
    tree::end()?;
    Ok(all)
}

fn read(dialect: &Dialect, talk: &mut Talk, url: &str, leaf: &Leaf, looks: usize) -> Result<Seen> {
    talk.call(&(dialect.open)(url))?;
    talk.spent();
    let (mut times, mut spent) = (Vec::new(), None);
    let began = Instant::now();
    while times.len() < looks && (times.is_empty() || began.elapsed() < ENOUGH) {
        let (text, took) = look(dialect, talk)?;
        // A page without links has nothing that a list of links could be known by.
        let proof = match dialect.shows {
            Shows::Everything => Some(&leaf.proof),
            Shows::Interactive => leaf.link.as_ref(),
        };
        let wrong = proof.filter(|proof| !text.contains(*proof));
        ensure!(wrong.is_none(), "{wrong:?} is not in {:?}…", text.chars().take(200).collect::<String>());
        times.push(took);
        let now = talk.spent();
        spent.get_or_insert(now);
    }
    let spent = spent.unwrap_or_default();
    Ok(Seen { tokens: spent.answered, calls: spent.calls, time: Spread::of(times) })
}

fn look(dialect: &Dialect, talk: &mut Talk) -> Result<(String, Duration)> {
    let began = Instant::now();
    let mut text = talk.call(&(dialect.look)())?;
    let mut last = text.clone();
    while let Some(step) = (dialect.more)(&last) {
        last = talk.call(&step)?;
        text.push_str(&last);
    }
    Ok((text, began.elapsed()))
}
