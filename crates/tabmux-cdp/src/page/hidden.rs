//! Frames that nobody sees, and in which order they stand. A frame knows what is in it, but not whether it is shown: the documents around it do.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;

use super::CdpPage;

/// How long a frame may take to say what it hides. One that does not answer hides nothing.
const FRAME_PATIENCE: Duration = Duration::from_secs(1);

/// What a document says (`watch.js`).
#[derive(Debug, Deserialize)]
struct Hiding {
    /// Which frame of which frame it is.
    path: Vec<usize>,
    /// Which of its own frames are not shown.
    hidden: Vec<usize>,
    /// Its own frames, as they stand in it.
    order: Vec<usize>,
}

/// What the documents of a page say of the frames in them.
#[derive(Debug)]
pub(super) struct Arrangement(HashMap<String, Hiding>);

impl Arrangement {
    /// The frames that another one hides, or hides what is around them.
    pub(super) fn out_of_sight(&self) -> HashSet<String> {
        let hides = |around: &[usize], place: usize| self.0.values().any(|one| one.path == around && one.hidden.contains(&place));
        let is_hidden = |path: &[usize]| (0..path.len()).any(|at| hides(&path[..at], path[at]));
        self.0.iter().filter(|(_, one)| is_hidden(&one.path)).map(|(frame, _)| frame.clone()).collect()
    }

    /// The same path by where frames stand in their documents; as they came where nobody says it.
    pub(super) fn in_order(&self, path: &[usize]) -> Vec<usize> {
        let around = |at: usize| self.0.values().find(|one| one.path == path[..at]);
        let stands = |at: usize| around(at).and_then(|one| one.order.iter().position(|place| *place == path[at]));
        (0..path.len()).map(|at| stands(at).unwrap_or(path[at])).collect()
    }
}

impl CdpPage {
    /// Asks all these frames at once.
    pub(super) async fn arrangement(&self, frames: &[String]) -> Arrangement {
        let asked = frames.iter().map(|frame| async move {
            let hiding = self.script_in::<Hiding>(frame, "hiding", &());
            Some((frame.clone(), tokio::time::timeout(FRAME_PATIENCE, hiding).await.ok()?.ok()?))
        });
        Arrangement(join_all(asked).await.into_iter().flatten().collect())
    }

    /// Of these frames, asked all at once, those that another one of them hides, or hides what is around them.
    pub(super) async fn frames_out_of_sight(&self, frames: &[String]) -> HashSet<String> {
        self.arrangement(frames).await.out_of_sight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_stand_where_their_document_has_them_and_are_hidden_with_what_is_around_them() {
        let said =
            |path: &[usize], hidden: &[usize], order: &[usize]| Hiding { path: path.into(), hidden: hidden.into(), order: order.into() };
        let all = [("main", said(&[], &[1], &[2, 0, 1])), ("one", said(&[1], &[], &[1, 0])), ("in one", said(&[1, 0], &[], &[]))];
        let all = Arrangement(all.into_iter().map(|(frame, said)| (frame.to_owned(), said)).collect());
        assert_eq!((all.in_order(&[2]), all.in_order(&[1, 0]), all.in_order(&[0, 4])), (vec![0], vec![2, 1], vec![1, 4]));
        assert_eq!(all.out_of_sight(), ["one", "in one"].map(str::to_owned).into());
    }
}
