//! What is on the page, as lines, in all its frames: one call for the page and the frames of its own site, and one more for each
//! frame of another site, all at once. Elements that may have closed shadow roots are looked into once (`closed.rs`).

use std::collections::HashMap;
use std::time::Duration;

use futures::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tabmux_driver::{DriverError, Result, Rows, Scope, Sight, Snapshot, Which};

use super::CdpPage;
use super::act::Sought;
use super::closed::{CLOSED_ROUNDS, Handed};
use super::script::{Numbers, failed};

/// How long a frame of another site may take; the page itself has the call's own time.
pub(super) const FRAME_PATIENCE: Duration = Duration::from_secs(3);

/// What `snapshot.js` is asked.
#[derive(Clone, Debug, Default, Serialize)]
struct Wish<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<Value>,
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

/// What it answers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Seen {
    Problem(Problem),
    Lines(Lines),
}

#[derive(Deserialize)]
struct Problem {
    problem: String,
    #[serde(default)]
    text: String,
    #[serde(default)]
    near: Vec<String>,
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

impl Seen {
    fn is_elsewhere(&self) -> bool {
        matches!(self, Self::Problem(problem) if problem.problem == "none")
    }
}

#[derive(Deserialize)]
struct Beyond {
    #[serde(rename = "ref")]
    number: u32,
    path: Vec<i32>,
}

impl CdpPage {
    pub(super) async fn look(&self, sight: &Sight) -> Result<Snapshot> {
        self.awake().await?;
        let main = self.handle.0.clone();
        let (mut frame, others) = match &sight.scope {
            Scope::Span(number, _) => (self.frame_of_ref(*number), Vec::new()),
            Scope::Page => (main, Vec::new()),
            Scope::Part(selector) => match selector.reference() {
                Some(number) => (self.frame_of_ref(number), Vec::new()),
                None => (main.clone(), self.state.frames().strangers(&main)),
            },
        };
        let mut seen = self.look_in(&frame, sight).await?;
        if let Scope::Part(selector) = &sight.scope
            && seen.is_elsewhere()
            && let Some(Sought { frame: other, .. }) = self.seek(&others, Some(selector), &Value::Null).await
            // A frame that goes meanwhile has nothing to show.
            && let Ok(Ok(found)) = tokio::time::timeout(FRAME_PATIENCE, self.look_in(&other, sight)).await
            && !found.is_elsewhere()
        {
            (frame, seen) = (other, found);
        }
        let mut lines = match seen {
            Seen::Lines(lines) => lines,
            Seen::Problem(problem) => return Err(refused(problem, sight)),
        };
        self.state.looked();
        if !lines.frames.is_empty() {
            self.look_beyond(sight, &frame, &mut lines).await;
        }
        Ok(Snapshot { text: lines.text, cursor: lines.cursor, left: lines.left })
    }

    /// In one frame, also in its closed shadow roots.
    async fn look_in(&self, frame: &str, sight: &Sight) -> Result<Seen> {
        let wish = json!(wish(sight));
        let look = || async { self.script_and_suspects::<Seen>(frame, "snapshot", &wish).await.map_err(failed) };
        let (mut seen, mut suspects) = look().await?;
        for _ in 0..CLOSED_ROUNDS {
            let Some(found) = suspects.take() else { break };
            let (none, handed) = (found.found_none(), self.hand_over(found));
            if none {
                break;
            }
            let (handed, looked) = futures::join!(handed, look());
            (seen, suspects) = if handed == Handed::Late { look().await? } else { looked? };
        }
        Ok(seen)
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
        open.reverse();
        while let Some(Beyond { number, path }) = open.pop() {
            let Some(found) = inside.remove(&path) else { continue };
            let indented: String = found.text.lines().map(|line| format!("\n {line}")).collect();
            lines.text.push_str(&format!("\nin e{number}:{indented}"));
            open.extend(found.frames.into_iter().rev());
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
            Scope::Part(selector) => Some(selector.for_script()),
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

fn refused(Problem { problem, text, near, .. }: Problem, sight: &Sight) -> DriverError {
    let selector = || match &sight.scope {
        Scope::Part(selector) => selector.to_string(),
        Scope::Page | Scope::Span(..) => String::new(),
    };
    match problem.as_str() {
        "stale" => DriverError::StaleRef(selector()),
        "bad" => DriverError::BadSelector { selector: selector(), why: text.trim_end_matches('.').to_owned() },
        "none" => DriverError::ElementNotFound { selector: selector(), near },
        "bad find" => DriverError::BadPattern(sight.find.clone().unwrap_or_default()),
        "stale cursor" => DriverError::StaleCursor,
        _ => DriverError::ScriptFailed(problem),
    }
}
