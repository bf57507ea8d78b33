//! Frames that nobody sees. A frame knows what is in it, but not whether it is shown: the documents around it do.

use std::collections::HashSet;
use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;

use super::CdpPage;

/// How long a frame may take to say what it hides. One that does not answer hides nothing.
const FRAME_PATIENCE: Duration = Duration::from_secs(1);

/// What a document says (`watch.js`).
#[derive(Deserialize)]
struct Hiding {
    /// Which frame of which frame it is.
    path: Vec<usize>,
    /// Which of its own frames are not shown.
    hidden: Vec<usize>,
}

impl CdpPage {
    /// Of these frames, asked all at once, those that another one of them hides, or hides what is around them.
    pub(super) async fn frames_out_of_sight(&self, frames: &[String]) -> HashSet<String> {
        let asked = frames.iter().map(|frame| async move {
            let hiding = self.script_in::<Hiding>(frame, "hiding", &());
            Some((frame, tokio::time::timeout(FRAME_PATIENCE, hiding).await.ok()?.ok()?))
        });
        let all: Vec<_> = join_all(asked).await.into_iter().flatten().collect();
        let hides = |around: &[usize], place: usize| all.iter().any(|(_, one)| one.path == around && one.hidden.contains(&place));
        let is_hidden = |path: &[usize]| (0..path.len()).any(|at| hides(&path[..at], path[at]));
        all.iter().filter(|(_, one)| is_hidden(&one.path)).map(|(frame, _)| (*frame).clone()).collect()
    }
}
