//! Which of the frames of other origins has what is meant. All are asked at once, and nothing is done in any of them: whoever acts
//! then acts in one.

use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::Selector;

use super::CdpPage;
use crate::page::closed::CLOSED_ROUNDS;
use crate::page::world::Failure;

/// How long a frame may take to say what it has. One that is silent for longer keeps nobody from the others.
pub(super) const SILENT: Duration = Duration::from_secs(1);

/// How much worse it fits in a frame that nobody sees.
const OUT_OF_SIGHT: u32 = 8;

/// The frame that has it, and how many there are in all frames that fit as well.
#[derive(Debug)]
pub(in crate::page) struct Sought {
    pub(in crate::page) frame: String,
    pub(in crate::page) matched: usize,
}

/// What `seek` answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Found {
    /// Which frame of which frame it is.
    path: Vec<usize>,
    matched: usize,
    /// Less is better.
    rank: u32,
    /// It may be in a closed shadow root.
    hidden: bool,
}

impl CdpPage {
    /// What fits best, and the first of it in the order of the page. `anyway` is for keys, where nothing has the focus for certain.
    pub(in crate::page) async fn seek(&self, strangers: &[String], selector: Option<&Selector>, anyway: &Value) -> Option<Sought> {
        let wanted = json!({ "selector": selector.map(Selector::for_script), "anyway": anyway });
        let asked = strangers.iter().map(|frame| async {
            let found = tokio::time::timeout(SILENT, self.seek_in(frame, wanted.clone()));
            // One that goes meanwhile has nothing.
            found.await.ok()?.ok().map(|found| (frame.clone(), found))
        });
        let mut found: Vec<_> = join_all(asked).await.into_iter().flatten().filter(|(_, found)| found.matched > 0).collect();
        if found.len() > 1 {
            let frames: Vec<_> = self.state.frames().all().into_iter().map(|(frame, _)| frame).collect();
            let arrangement = self.arrangement(&frames).await;
            let unseen = arrangement.out_of_sight();
            for (frame, found) in &mut found {
                found.path = arrangement.in_order(&found.path);
                found.rank += if unseen.contains(frame) { OUT_OF_SIGHT } else { 0 };
            }
        }
        first_of_the_best(found)
    }

    async fn seek_in(&self, frame: &str, mut wanted: Value) -> Result<Found, Failure> {
        for round in 0..=CLOSED_ROUNDS {
            wanted["opened"] = (round == CLOSED_ROUNDS).into();
            let found: Found = self.script_in(frame, "seek", &wanted).await?;
            // There may be more in what is opened.
            if !found.hidden || self.open_closed_roots(frame).await? == 0 {
                return Ok(found);
            }
        }
        Ok(Found::default())
    }
}

fn first_of_the_best(mut found: Vec<(String, Found)>) -> Option<Sought> {
    let least = found.iter().map(|(_, found)| found.rank).min()?;
    found.retain(|(_, found)| found.rank == least);
    let matched = found.iter().map(|(_, found)| found.matched).sum();
    let (frame, _) = found.into_iter().min_by(|(_, one), (_, other)| one.path.cmp(&other.path))?;
    Some(Sought { frame, matched })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_fits_best_the_first_in_the_order_of_the_page_is_meant_and_all_of_it_counts() {
        let one = |frame: &str, path: &[usize], rank| (frame.to_owned(), Found { path: path.to_vec(), matched: 2, rank, hidden: false });
        let found = vec![one("late", &[2], 0), one("worse", &[0], 4), one("inner", &[1, 0], 0), one("outer", &[1], 0)];
        let sought = first_of_the_best(found).unwrap();
        assert_eq!((sought.frame.as_str(), sought.matched), ("outer", 6));
        assert!(first_of_the_best(Vec::new()).is_none());
    }
}
