//! What is on the page, as lines, in all its frames: one call for the page and the frames of its own site, and one more for each
//! frame of another site, all at once.

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tabmux_driver::{DriverError, Element, Result, Rows, Scope, Sight, Snapshot, Which};

use super::CdpPage;
use super::script::{Numbers, failed};

/// How long a frame of another site may take; the page itself has the call's own time.
const FRAME_PATIENCE: Duration = Duration::from_secs(3);

/// How many elements are listed.
const MAX_ELEMENTS: u32 = 500;

/// What `snapshot.js` is asked.
#[derive(Clone, Debug, Default, Serialize)]
struct Wish<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Place<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to: Option<u32>,
    interactive: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    fold: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    find: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
    budget: u32,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
enum Place<'a> {
    Ref(u32),
    Css(&'a str),
}

/// What it answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seen {
    Problem { problem: String },
    Lines(Lines),
}

#[derive(Deserialize)]
struct Lines {
    text: String,
    cursor: Option<String>,
    left: usize,
    /// Frames it could not look into.
    frames: Vec<Beyond>,
    /// Which frame of which frame it is itself.
    path: Vec<i32>,
}

#[derive(Deserialize)]
struct Beyond {
    #[serde(rename = "ref")]
    number: u32,
    path: Vec<i32>,
}

impl CdpPage {
    pub(super) async fn look(&self, sight: &Sight) -> Result<Snapshot> {
        let frame = match sight.scope {
            Scope::Ref(number) | Scope::Span(number, _) => self.frame_of_ref(number),
            Scope::Page | Scope::Css(_) => self.handle.0.clone(),
        };
        let mut lines = match self.script_in(&frame, "snapshot", &wish(sight)).await.map_err(failed)? {
            Seen::Lines(lines) => lines,
            Seen::Problem { problem } => return Err(refused(&problem, sight)),
        };
        self.state.looked();
        if !lines.frames.is_empty() {
            self.look_beyond(sight, &frame, &mut lines).await;
        }
        Ok(Snapshot { text: lines.text, cursor: lines.cursor, left: lines.left })
    }

    pub(super) async fn visible_elements(&self) -> Result<(Vec<Element>, u64)> {
        #[derive(Deserialize)]
        struct Found {
            elements: Vec<Element>,
            left: u64,
        }
        let Found { elements, left } = self.script("elements", &json!({ "most": MAX_ELEMENTS })).await.map_err(failed)?;
        Ok((elements, left))
    }

    /// Adds what is in frames of other sites, each under the ref of its frame.
    async fn look_beyond(&self, sight: &Sight, main: &str, lines: &mut Lines) {
        let strangers: Vec<_> = self.state.frames().strangers(main);
        let (first, step) = (self.state.frames().next_ref(), u32::try_from(strangers.len()).unwrap_or(u32::MAX).max(1));
        let wish = Wish { scope: None, cursor: None, budget: sight.budget / 2, ..wish(sight) };
        let asked = strangers.iter().zip(0..).map(|(frame, at)| {
            let numbers = Numbers { first: first + at, step };
            let wish = &wish;
            async move {
                let seen = self.script_numbered(frame, "snapshot", wish, numbers);
                match tokio::time::timeout(FRAME_PATIENCE, seen).await {
                    Ok(Ok(Seen::Lines(lines))) => Some(lines),
                    _ => None,
                }
            }
        });
        let mut inside: HashMap<Vec<i32>, Lines> =
            join_all(asked).await.into_iter().flatten().map(|lines| (lines.path.clone(), lines)).collect();
        let mut open = std::mem::take(&mut lines.frames);
        while let Some(Beyond { number, path }) = open.pop() {
            let Some(found) = inside.remove(&path) else { continue };
            let indented: String = found.text.lines().map(|line| format!("\n {line}")).collect();
            lines.text.push_str(&format!("\nin e{number}:{indented}"));
            open.extend(found.frames);
        }
    }
}

fn wish(sight: &Sight) -> Wish<'_> {
    let (from, to) = match sight.scope {
        Scope::Span(from, to) => (Some(from), Some(to)),
        _ => (None, None),
    };
    Wish {
        scope: match &sight.scope {
            Scope::Ref(number) => Some(Place::Ref(*number)),
            Scope::Css(css) => Some(Place::Css(css)),
            Scope::Page | Scope::Span(..) => None,
        },
        from,
        to,
        interactive: sight.which == Which::Interactive,
        fold: (sight.rows == Rows::All).then_some("none"),
        depth: sight.depth,
        find: sight.find.as_deref(),
        cursor: sight.cursor.as_deref(),
        budget: sight.budget,
    }
}

fn refused(problem: &str, sight: &Sight) -> DriverError {
    match (problem, &sight.scope) {
        ("stale", Scope::Ref(number)) => DriverError::StaleRef(format!("e{number}")),
        ("bad", Scope::Css(css)) => DriverError::BadSelector { selector: css.clone(), why: "it is no CSS".into() },
        ("none", Scope::Css(css)) => DriverError::ElementNotFound { selector: css.clone(), near: Vec::new() },
        ("bad find", _) => DriverError::BadPattern(sight.find.clone().unwrap_or_default()),
        ("stale cursor", _) => DriverError::StaleCursor,
        (other, _) => DriverError::ScriptFailed(other.to_owned()),
    }
}
