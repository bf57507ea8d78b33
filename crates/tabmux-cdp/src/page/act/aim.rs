//! Asks the page script for the element: in the main frame first, then in frames of other origins, whose points are carried
//! outwards frame by frame.

use std::time::{Duration, Instant};

use futures::future::join_all;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::{Acted, DriverError, Result, Selector};

use super::seek::{SILENT, Sought};
use super::{CdpPage, report};
use crate::page::closed::CLOSED_ROUNDS;
use crate::page::script::{Numbers, failed};
use crate::page::shot::{Place, unseen};
use crate::page::world::Failure;

/// How long one look takes at most while several frames are asked in turn.
const ROUND: Duration = Duration::from_millis(200);

/// How long the main frame is asked at most before somebody looks whether a frame of another site has come.
const ALONE: Duration = Duration::from_secs(1);

/// How much longer than it is told to the page script waits for a frame that moves (`aim.js`).
const MOVING: Duration = Duration::from_secs(1);

/// What is asked of the page script before anything is done.
pub(super) struct Order<'a> {
    pub(super) verb: &'a str,
    pub(super) selector: Option<&'a Selector>,
    pub(super) wanted: Value,
    pub(super) patience: Duration,
}

/// An element that waits for it, and the frame it is in.
#[derive(Debug)]
pub(super) struct Aimed {
    pub(super) frame: String,
    pub(super) answer: Answer,
}

/// A file input, and the number under which it says that it has files.
#[derive(Debug)]
pub(in crate::page) struct Input {
    pub(in crate::page) frame: String,
    token: u64,
}

/// What the verbs of the page script that act answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Answer {
    fault: Option<Fault>,
    /// Why, or what to insert.
    pub(super) text: String,
    near: Vec<String>,
    /// It may be in a closed shadow root.
    hidden: bool,
    pub(super) label: String,
    matched: usize,
    pub(super) point: Point,
    /// Where the point's window is, when it is not the page's own.
    path: Vec<i64>,
    /// It was brought into view just now.
    brought: bool,
    pub(super) plan: Option<Plan>,
    pub(super) keys: Vec<String>,
    pub(super) indexes: Vec<usize>,
    /// A sentence on what became of it.
    pub(super) now: Option<String>,
    /// Whether the browser itself drags.
    pub(super) native: bool,
    pub(super) by: Point,
    pub(super) moved: Point,
    pub(super) left: Point,
    place: Option<Place>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub(super) struct Point {
    pub(super) x: f64,
    pub(super) y: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Fault {
    None,
    Stale,
    Bad,
    Blocked,
    /// Another element was hit, and knows nothing of it.
    Missed,
    /// A list whose choices open outside of the page.
    List,
    /// Nothing has the focus.
    Nowhere,
    /// A frame of another origin has the focus.
    Foreign,
    Unknown,
    /// It takes no files, or not so many.
    Files,
}

/// How a field gets its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Plan {
    Done,
    Insert,
    Keys,
    Click,
    Choose,
    Options,
    Open,
    Pick,
}

impl Answer {
    pub(super) fn acted(self, outcome: Option<String>) -> Acted {
        Acted { target: self.label, matched: self.matched, outcome }
    }

    /// The answer, when nothing is wrong.
    pub(super) fn or_fault(self, selector: Option<&Selector>) -> Result<Self> {
        let named = || selector.map(ToString::to_string).unwrap_or_default();
        Err(match self.fault {
            None => return Ok(self),
            Some(Fault::None) => DriverError::ElementNotFound { selector: named(), near: self.near },
            Some(Fault::Stale) => DriverError::StaleRef(named()),
            Some(Fault::Bad) => DriverError::BadSelector { selector: named(), why: self.text.trim_end_matches('.').to_owned() },
            Some(Fault::Blocked | Fault::Missed) => DriverError::NotActionable(self.text),
            Some(Fault::List) => DriverError::NativeList(self.text),
            Some(Fault::Nowhere | Fault::Foreign) => DriverError::NothingFocused,
            Some(Fault::Files) => DriverError::FilesRefused(self.text),
            Some(Fault::Unknown) => DriverError::Unconfirmed(self.text),
        })
    }

    pub(super) fn is_missed(&self) -> bool {
        self.fault == Some(Fault::Missed)
    }

    /// Whether another frame may have what this one has not.
    fn is_elsewhere(&self) -> bool {
        matches!(self.fault, Some(Fault::None | Fault::Foreign))
    }
}

impl CdpPage {
    /// Only the windows around a frame of another site know what hides it; then the frame brings the element into view in
    /// another way.
    pub(super) async fn aim(&self, mut order: Order<'_>) -> Result<Aimed> {
        let until = Instant::now() + order.patience;
        let mut aimed = self.find(&order).await?;
        let matched = aimed.answer.matched;
        let mut way = 0;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.on_page(aimed.answer, ROUND.min(left)).await {
                Err(DriverError::NotActionable(_)) if !left.is_zero() => way += 1,
                answer => return Ok(Aimed { frame: aimed.frame, answer: answer? }),
            }
            order.wanted["way"] = way.into();
            aimed = self.find_in(aimed.frame, &order, left).await?.checked(&order)?.of(matched);
        }
    }

    /// With its point where it is on the page, whatever frame it was in.
    pub(super) async fn on_page(&self, mut answer: Answer, patience: Duration) -> Result<Answer> {
        while !answer.path.is_empty() {
            let outer = self.outwards(&answer, patience).await?;
            (answer.point, answer.path) = (outer.point, outer.path);
        }
        Ok(answer)
    }

    async fn find(&self, order: &Order<'_>) -> Result<Aimed> {
        self.awake().await?;
        let main = self.handle.0.clone();
        if let Some(number) = order.selector.and_then(Selector::reference) {
            return self.find_in(self.frame_of_ref(number), order, order.patience).await?.checked(order);
        }
        let until = Instant::now() + order.patience;
        while self.state.frames().strangers(&main).is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            let aimed = self.find_in(main.clone(), order, ALONE.min(left)).await?;
            if !aimed.answer.is_elsewhere() || left <= ALONE {
                return self.go_on(aimed, order, until).await;
            }
        }
        self.find_among(main, order, until).await
    }

    /// The main frame has the first word; what it has not may be in another, or may come later.
    async fn find_among(&self, main: String, order: &Order<'_>, until: Instant) -> Result<Aimed> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let (last, round) = (left.is_zero(), ROUND.min(left));
            let first = self.find_in(main.clone(), order, round).await?;
            if !first.answer.is_elsewhere() {
                return self.go_on(first, order, until).await;
            }
            let strangers = self.state.frames().strangers(&main);
            if let Some(Sought { frame, matched }) = self.seek(&strangers, order.selector, &order.wanted["anyway"]).await {
                match self.find_in(frame, order, round).await {
                    Ok(found) if !found.answer.is_elsewhere() => return Ok(self.go_on(found, order, until).await?.of(matched)),
                    // It went meanwhile, alone or with its frame.
                    Ok(_) | Err(DriverError::Navigated) => {}
                    Err(error) => return Err(error),
                }
            }
            if last {
                return first.checked(order);
            }
        }
    }

    /// The frame has the element; if it was not ready in the first round, it gets the rest of the time.
    async fn go_on(&self, aimed: Aimed, order: &Order<'_>, until: Instant) -> Result<Aimed> {
        let left = until.saturating_duration_since(Instant::now());
        if aimed.answer.fault != Some(Fault::Blocked) || left.is_zero() {
            return aimed.checked(order);
        }
        self.find_in(aimed.frame, order, left).await?.checked(order)
    }

    async fn find_in(&self, frame: String, order: &Order<'_>, patience: Duration) -> Result<Aimed> {
        let mut wanted = wanted(order, patience);
        wanted["opened"] = false.into();
        let mut rounds = CLOSED_ROUNDS;
        loop {
            let answer: Answer = self.script_in(&frame, order.verb, &wanted).await.map_err(failed)?;
            if !answer.hidden {
                return Ok(Aimed { frame, answer });
            }
            // There may be more in what was opened.
            let opened = self.open_closed_roots(&frame).await.map_err(failed)?;
            rounds = if opened == 0 { 0 } else { rounds.saturating_sub(1) };
            wanted["opened"] = (rounds == 0).into();
        }
    }

    /// Asks several frames at once for where one of them stands. One that goes meanwhile, or is silent, has nothing to say.
    async fn ask_around(&self, frames: &[String], wanted: &Value, patience: Duration) -> Option<Answer> {
        let first = self.state.frames().next_ref();
        let step = u32::try_from(frames.len()).unwrap_or(u32::MAX);
        let asked = frames.iter().zip(first..).map(|(frame, first)| async move {
            // Nobody but the page itself knows where its own frames are.
            let patience = if *frame == self.handle.0 { Duration::MAX } else { patience };
            let answer = self.script_numbered::<Option<Answer>>(frame, "outwards", wanted, Numbers { first, step });
            tokio::time::timeout(patience, answer).await.ok()?.ok()?
        });
        join_all(asked).await.into_iter().flatten().next()
    }

    /// Where an element is in the document, for a picture of it.
    pub(in crate::page) async fn box_of(&self, selector: &Selector) -> Result<Place> {
        let order = Order { verb: "box", selector: Some(selector), wanted: json!({}), patience: Duration::ZERO };
        self.find(&order).await?.answer.place.ok_or_else(unseen)
    }

    /// One origin further out.
    async fn outwards(&self, answer: &Answer, patience: Duration) -> Result<Answer> {
        let main = self.handle.0.clone();
        let point = json!({ "x": answer.point.x, "y": answer.point.y });
        let wanted = json!({ "path": answer.path, "point": point, "brought": answer.brought, "patience": milliseconds(patience) });
        let mut around = vec![main.clone()];
        if answer.path.len() > 1 {
            around.extend(self.state.frames().strangers(&main));
        }
        match self.ask_around(&around, &wanted, patience + MOVING + SILENT).await {
            Some(outer) => outer.or_fault(None).map_err(|error| match error {
                DriverError::NotActionable(why) => DriverError::NotActionable(format!("{}: {why}", answer.label)),
                other => other,
            }),
            None => Err(DriverError::NotActionable(format!("{} is in a frame that cannot be placed on the page", answer.label))),
        }
    }

    /// The frame with the file input; one that is there already, since nobody waits for files.
    pub(in crate::page) async fn input_frame(&self, selector: &Selector, files: usize) -> Result<Input> {
        let token = report::token();
        let wanted = json!({ "files": files, "token": token });
        let order = Order { verb: "input", selector: Some(selector), wanted, patience: Duration::ZERO };
        Ok(Input { frame: self.find(&order).await?.frame, token })
    }

    /// What the page did with its files, as a sentence where there is something to say. One that went elsewhere with them took them.
    pub(in crate::page) async fn received(&self, input: &Input) -> Result<Option<String>> {
        match self.confirm(&input.frame, "given", &json!({})).await {
            Err(DriverError::Unconfirmed(_)) if self.state.reports().heard(input.token) => Ok(None),
            answer => Ok(answer?.now),
        }
    }

    /// Asks what became of something.
    pub(super) async fn confirm(&self, frame: &str, verb: &str, wanted: &Value) -> Result<Answer> {
        self.asked(frame, verb, wanted).await?.or_fault(None)
    }

    pub(super) async fn asked(&self, frame: &str, verb: &str, wanted: &Value) -> Result<Answer> {
        match self.script_in::<Answer>(frame, verb, wanted).await {
            Ok(answer) => Ok(answer),
            Err(Failure::NoDocument | Failure::Cut) => {
                Err(DriverError::Unconfirmed("The page went elsewhere before anybody saw what became of it".into()))
            }
            Err(other) => Err(failed(other)),
        }
    }
}

impl Aimed {
    /// One of so many, in all frames.
    fn of(mut self, matched: usize) -> Self {
        self.answer.matched = matched;
        self
    }

    fn checked(self, order: &Order<'_>) -> Result<Self> {
        Ok(Self { frame: self.frame, answer: self.answer.or_fault(order.selector)? })
    }
}

fn wanted(order: &Order<'_>, patience: Duration) -> Value {
    let mut wanted = order.wanted.clone();
    wanted["patience"] = milliseconds(patience).into();
    if let Some(selector) = order.selector {
        wanted["selector"] = selector.for_script();
    }
    wanted
}

pub(super) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
