//! The page as an article, in Markdown (`script/reading.js`). Frames of other sites that are in it are read once its own words
//! are at their end, each as far as the budget goes.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::{Article, DriverError, Reading, Result, Selector};

use super::CdpPage;
use super::act::Sought;
use super::script::failed;

/// How long a frame of another site may take; the page itself has the call's own time.
const FRAME_PATIENCE: Duration = Duration::from_secs(3);

/// What `reading.js` answers.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Portion {
    fault: Option<Fault>,
    near: Vec<String>,
    /// There may be closed shadow roots.
    hidden: bool,
    text: String,
    cursor: Option<String>,
    left: usize,
    /// Frames it could not look into.
    frames: Vec<Beyond>,
    /// Which frame of which frame it is itself.
    path: Vec<i32>,
    out: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Fault {
    None,
    Stale,
    Bad,
    Cursor,
}

#[derive(Debug, Deserialize)]
struct Beyond {
    path: Vec<i32>,
}

/// Where the last reading was, and what is read when it is at its end.
#[derive(Debug, Default)]
pub(super) struct Bookmark {
    frame: String,
    beyond: Vec<Beyond>,
}

impl CdpPage {
    pub(super) async fn read_article(&self, reading: &Reading) -> Result<Article> {
        let (frame, portion) = match &reading.cursor {
            Some(cursor) => {
                let frame = self.bookmark().frame.clone();
                let frame = if frame.is_empty() { self.handle.0.clone() } else { frame };
                let portion = self.portion(&frame, &json!({ "cursor": cursor, "budget": reading.budget })).await?;
                (frame, portion)
            }
            None => self.begin(reading).await?,
        };
        let mut portion = checked(portion, reading)?;
        let beyond = {
            let mut bookmark = self.bookmark();
            if reading.cursor.is_none() {
                *bookmark = Bookmark { frame: frame.clone(), beyond: std::mem::take(&mut portion.frames) };
            }
            if portion.cursor.is_none() { std::mem::take(&mut bookmark.beyond) } else { Vec::new() }
        };
        if !beyond.is_empty() {
            let further = self.read_beyond(&frame, beyond, reading.budget).await;
            portion.text = [portion.text, further].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join("\n\n");
        }
        Ok(Article { text: portion.text, cursor: portion.cursor, left: portion.left, left_out: portion.out })
    }

    fn bookmark(&self) -> std::sync::MutexGuard<'_, Bookmark> {
        self.bookmark.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// In the main frame, or in the one that has what is asked for.
    async fn begin(&self, reading: &Reading) -> Result<(String, Portion)> {
        let selector = reading.selector.as_ref();
        let main = selector.and_then(Selector::reference).map_or_else(|| self.handle.0.clone(), |number| self.frame_of_ref(number));
        let mut wish = json!({ "budget": reading.budget });
        if let Some(selector) = selector {
            wish["selector"] = selector.for_script();
        }
        let first = self.portion(&main, &wish).await?;
        if first.fault == Some(Fault::None) {
            let strangers = self.state.frames().strangers(&main);
            if let Some(Sought { frame, .. }) = self.seek(&strangers, selector, &Value::Null).await
                && let Some(portion) = self.portion_in_time(&frame, &wish).await.filter(|portion| portion.fault.is_none())
            {
                return Ok((frame, portion));
            }
        }
        Ok((main, first))
    }

    async fn portion(&self, frame: &str, wish: &Value) -> Result<Portion> {
        let portion: Portion = self.script_in(frame, "read", wish).await.map_err(failed)?;
        if !portion.hidden {
            return Ok(portion);
        }
        self.open_closed_roots(frame).await.map_err(failed)?;
        let mut wish = wish.clone();
        wish["opened"] = true.into();
        self.script_in(frame, "read", &wish).await.map_err(failed)
    }

    /// A frame that goes meanwhile, or does not answer, has nothing to say.
    async fn portion_in_time(&self, frame: &str, wish: &Value) -> Option<Portion> {
        tokio::time::timeout(FRAME_PATIENCE, self.portion(frame, wish)).await.ok()?.ok()
    }

    async fn read_beyond(&self, main: &str, mut open: Vec<Beyond>, budget: u32) -> String {
        let wish = json!({ "budget": (budget / 2).max(1), "selector": { "by": "css", "css": ":root" } });
        let strangers = self.state.frames().strangers(main);
        let asked = join_all(strangers.iter().map(|frame| self.portion_in_time(frame, &wish))).await;
        let mut inside: HashMap<Vec<i32>, Portion> = asked.into_iter().flatten().map(|portion| (portion.path.clone(), portion)).collect();
        let mut texts = Vec::new();
        open.reverse();
        while let Some(Beyond { path }) = open.pop() {
            let Some(found) = inside.remove(&path) else { continue };
            texts.push(found.text);
            open.extend(found.frames.into_iter().rev());
        }
        texts.retain(|text| !text.is_empty());
        texts.join("\n\n")
    }
}

fn checked(portion: Portion, reading: &Reading) -> Result<Portion> {
    let named = || reading.selector.as_ref().map(ToString::to_string).unwrap_or_default();
    Err(match portion.fault {
        None => return Ok(portion),
        Some(Fault::None) => DriverError::ElementNotFound { selector: named(), near: portion.near },
        Some(Fault::Stale) => DriverError::StaleRef(named()),
        Some(Fault::Bad) => DriverError::BadSelector { selector: named(), why: portion.text.trim_end_matches('.').to_owned() },
        Some(Fault::Cursor) => DriverError::StaleCursor,
    })
}
