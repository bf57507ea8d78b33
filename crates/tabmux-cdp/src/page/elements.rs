//! What can be seen on the page and in all its frames, as a list: first the frames that are shown, all at once, then the page
//! itself, which knows whether a selector of theirs means something in it too.

use std::collections::HashMap;

use futures::future::join_all;
use serde::Deserialize;
use serde_json::json;
use tabmux_driver::{Element, Result};

use super::CdpPage;
use super::script::failed;
use super::sight::FRAME_PATIENCE;

/// How many elements are listed.
const MAX_ELEMENTS: usize = 500;

/// What `elements.js` answers.
#[derive(Deserialize)]
struct Found {
    elements: Vec<Element>,
    left: u64,
    /// Those of the selectors it was asked about that mean something here.
    taken: Vec<String>,
    /// Which frame of which frame it is.
    path: Vec<usize>,
}

impl CdpPage {
    pub(super) async fn visible_elements(&self) -> Result<(Vec<Element>, u64)> {
        self.awake().await?;
        let inside = self.elements_in_frames().await;
        let mut meant = HashMap::<&str, usize>::new();
        for element in inside.iter().flat_map(|found| &found.elements) {
            *meant.entry(&element.css_selector).or_default() += 1;
        }
        let others: Vec<_> = meant.keys().copied().filter(|selector| !is_chain(selector)).collect();
        let page: Found = self.script("elements", &json!({ "most": MAX_ELEMENTS, "others": others })).await.map_err(failed)?;
        let ambiguous =
            |selector: &str| is_chain(selector) || meant.get(selector) > Some(&1) || page.taken.iter().any(|taken| taken == selector);
        let named = |found: &Found, element: &Element| match found.path.as_slice() {
            path @ [_, ..] if ambiguous(&element.css_selector) => {
                Element { css_selector: in_frame(path, &element.css_selector), ..element.clone() }
            }
            _ => element.clone(),
        };
        let all = || std::iter::once(&page).chain(&inside);
        let mut elements: Vec<_> = all().flat_map(|found| found.elements.iter().map(|element| named(found, element))).collect();
        let beyond = elements.len().saturating_sub(MAX_ELEMENTS);
        elements.truncate(MAX_ELEMENTS);
        Ok((elements, all().map(|found| found.left).sum::<u64>() + u64::try_from(beyond).unwrap_or(u64::MAX)))
    }

    /// Of those that are shown, in the order of the page.
    async fn elements_in_frames(&self) -> Vec<Found> {
        let main = &self.handle.0;
        let frames: Vec<_> = self.state.frames().all().into_iter().map(|(frame, _)| frame).collect();
        let wish = &json!({ "most": MAX_ELEMENTS });
        let asked = frames.iter().filter(|frame| *frame != main).map(|frame| async move {
            let found = self.script_in::<Found>(frame, "elements", wish);
            Some((frame, tokio::time::timeout(FRAME_PATIENCE, found).await.ok()?.ok()?))
        });
        let found = join_all(asked).await;
        let hidden = if found.is_empty() { Default::default() } else { self.frames_out_of_sight(&frames).await };
        let mut shown: Vec<_> = found.into_iter().flatten().filter(|(frame, _)| !hidden.contains(*frame)).map(|(_, found)| found).collect();
        shown.sort_by(|one, other| one.path.cmp(&other.path));
        shown
    }
}

/// It goes through a shadow tree, which is looked for in frames too.
fn is_chain(selector: &str) -> bool {
    selector.contains(" >> ")
}

/// What means it in that frame only, in any session.
fn in_frame(path: &[usize], selector: &str) -> String {
    let path: Vec<_> = path.iter().map(ToString::to_string).collect();
    format!("frame={} >> {selector}", path.join("."))
}
