//! Waits until the page is as somebody wants it. Each of its frames says for itself how far it is (`watch.js`), and what is said
//! of all that are shown counts; a page that goes elsewhere is asked again in its next document. A frame that never answers keeps
//! nobody but who waits for something to be gone from it.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};

use futures::StreamExt;
use futures::stream::FuturesUnordered;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tabmux_driver::{Awaited, Condition, DriverError, Result, Selector};
use tokio::sync::watch;

use super::CdpPage;
use super::frames::World;
use super::script::{function, read};
use super::state::{Life, Progress};
use super::world::Failure;

const STOP: &str = "function (key) { globalThis.tabmux?.unwatch(key); }";

/// Whether something held at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waited {
    NotAtAll,
    ForIt,
}

/// How far what is wanted is seen in one frame.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct Outlook {
    text: bool,
    selector: bool,
    gone: bool,
    /// There may be closed shadow roots that nobody has looked into.
    hides: bool,
    /// The frames in it that nobody sees. It says so anew when they are others.
    hidden: Vec<usize>,
    /// Why the selector is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// One document of a frame: the frame's name, its session and its world.
type Spot = (String, String, i64);

/// One wait in the page, which ends there too when nobody waits any more.
struct Lookout<'a> {
    page: &'a CdpPage,
    wanted: Value,
    key: u64,
    /// What was asked of which documents, and what they said last.
    known: HashMap<Spot, Option<Outlook>>,
    /// The frames that nobody sees.
    unseen: HashSet<String>,
    asked: Vec<World>,
}

impl CdpPage {
    /// Until everything holds at the same moment: whatever had to be waited for sends us back to the beginning.
    pub(super) async fn wait(&self, awaited: &Awaited) -> Result<()> {
        loop {
            self.wait_for_document(awaited).await?;
            awaited.lacks.are(&[(Condition::NetworkIdle, awaited.network_idle)]);
            if awaited.network_idle && self.wait_for_quiet().await? == Waited::ForIt {
                continue;
            }
            awaited.lacks.are(&[(Condition::Function, awaited.function.is_some())]);
            match &awaited.function {
                Some(function) if self.holds(function).await? == Waited::ForIt => {}
                _ => return Ok(()),
            }
        }
    }

    async fn wait_for_document(&self, awaited: &Awaited) -> Result<()> {
        let mut progress = self.state.watch();
        let right_place = || awaited.url.as_ref().is_none_or(|url| url.matches(&self.state.url()));
        loop {
            awaited.lacks.are(&[(Condition::Url, !right_place())]);
            self.until(&mut progress, |_| right_place()).await?;
            awaited.lacks.are(&[]);
            if !awaited.needs_document() {
                return Ok(());
            }
            let before = progress.borrow_and_update().commits;
            tokio::select! {
                // A document that is kept for going back never answers.
                another = self.until(&mut progress, |now| now.commits > before) => another?,
                seen = self.look_out(awaited) => {
                    seen?;
                    if right_place() {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Unlike a navigation, waiting ends with a crash: nothing else runs in the session that could bring the page back.
    pub(super) async fn until(&self, progress: &mut watch::Receiver<Progress>, done: impl Fn(&Progress) -> bool) -> Result<()> {
        self.reached(progress, |now| now.life != Life::Alive || done(now)).await
    }

    async fn look_out(&self, awaited: &Awaited) -> Result<()> {
        // The page's own world is asked for; those of its frames are heard of.
        if let Err(Failure::Other(error)) = self.world().await {
            return Err(error.into());
        }
        Lookout::new(self, awaited)?.seen(awaited).await
    }
}

impl<'a> Lookout<'a> {
    fn new(page: &'a CdpPage, awaited: &Awaited) -> Result<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let wanted = wanted(awaited)?;
        Ok(Self {
            page,
            wanted,
            key: NEXT.fetch_add(1, Ordering::Relaxed),
            known: HashMap::new(),
            unseen: HashSet::new(),
            asked: Vec::new(),
        })
    }

    /// Comes when all frames together show what is wanted.
    async fn seen(&mut self, awaited: &Awaited) -> Result<()> {
        let page = self.page;
        let mut frames = page.state.watch_frames();
        let mut answers = FuturesUnordered::new();
        loop {
            frames.borrow_and_update();
            for (frame, world) in self.unasked() {
                answers.push(ask(page, frame, world, self.wanted.clone(), None, self.key));
            }
            self.leave_out_hidden(awaited).await;
            if self.is_as(awaited) {
                return Ok(());
            }
            tokio::select! {
                Some((frame, world, answer)) = answers.next() => {
                    if let Some(outlook) = self.learnt(&frame, &world, answer, awaited)? {
                        answers.push(ask(page, frame, world, self.wanted.clone(), Some(outlook), self.key));
                    }
                }
                Ok(()) = frames.changed() => {}
            }
        }
    }

    /// Documents that are new; what was said by those that are gone is forgotten.
    fn unasked(&mut self) -> Vec<(String, World)> {
        let mut worlds = self.page.state.frames().all();
        self.known.retain(|spot, _| worlds.iter().any(|(frame, world)| *spot == spot_of(frame, world)));
        worlds.retain(|(frame, world)| !self.known.contains_key(&spot_of(frame, world)));
        for (frame, world) in &worlds {
            self.known.insert(spot_of(frame, world), None);
            self.asked.push(world.clone());
        }
        worlds
    }

    /// Takes in what a document said; none when it says nothing more.
    fn learnt(&mut self, frame: &str, world: &World, said: Said, awaited: &Awaited) -> Result<Option<Outlook>> {
        let main = frame == self.page.handle.0;
        let Some(known) = self.known.get_mut(&spot_of(frame, world)) else { return Ok(None) };
        match said {
            Ok(Outlook { problem: Some(why), .. }) => {
                let (selector, why) = (awaited.selector.clone().unwrap_or_default(), why.trim_end_matches('.').to_owned());
                Err(DriverError::BadSelector { selector, why })
            }
            Ok(outlook) => {
                self.page.state.frames().is_ready(frame, world);
                *known = Some(outlook.clone());
                Ok(Some(outlook))
            }
            Err(Failure::NoDocument | Failure::Cut) => {
                self.page.state.frames().forget(frame, world);
                Ok(None)
            }
            Err(Failure::Threw(text)) if main => Err(DriverError::ScriptFailed(text)),
            Err(Failure::Other(error)) if main => Err(error.into()),
            // Nothing can be seen in it.
            Err(Failure::Threw(_) | Failure::Other(_)) => {
                *known = Some(Outlook { gone: true, ..Outlook::default() });
                Ok(None)
            }
        }
    }

    /// Those around a frame are asked whether anybody sees it when it has something to say, and only then.
    async fn leave_out_hidden(&mut self, awaited: &Awaited) {
        let speaks = |said: &Outlook| {
            let there = (awaited.text.is_some() && said.text) || (awaited.selector.is_some() && said.selector);
            there || (awaited.gone.is_some() && !said.gone)
        };
        let main = &self.page.handle.0;
        let asked = self.known.iter().any(|((frame, ..), said)| frame != main && said.as_ref().is_some_and(speaks));
        let frames: Vec<_> = self.known.keys().filter(|_| asked).map(|(frame, ..)| frame.clone()).collect();
        self.unseen = self.page.frames_out_of_sight(&frames).await;
    }

    fn is_as(&self, awaited: &Awaited) -> bool {
        let seen = self.known.iter().filter(|((frame, ..), _)| !self.unseen.contains(frame)).map(|(_, said)| said);
        let mut said = seen.clone().flatten().peekable();
        if said.peek().is_none() {
            return false;
        }
        let text = said.clone().any(|said| said.text);
        let selector = said.any(|said| said.selector);
        let gone = awaited.gone.is_none() || seen.clone().all(|said| said.as_ref().is_some_and(|said| said.gone));
        awaited.lacks.are(&[(Condition::Text, !text), (Condition::Selector, !selector), (Condition::Gone, !gone)]);
        text && selector && gone
    }
}

impl Drop for Lookout<'_> {
    fn drop(&mut self) {
        if self.page.state.living().is_ok() {
            self.asked.iter().for_each(|world| self.page.tell_world(world, STOP, &[self.key.into()]));
        }
    }
}

type Said = std::result::Result<Outlook, Failure>;

/// Asks one document for what is another than `known`. Closed shadow roots are opened on the way.
async fn ask(
    page: &CdpPage,
    frame: String,
    mut world: World,
    mut wanted: Value,
    mut known: Option<Outlook>,
    key: u64,
) -> (String, World, Said) {
    wanted["main"] = (frame == page.handle.0).into();
    loop {
        let said = page
            .call_in_world(&world, &function(&world, "watch"), &[wanted.clone(), json!(known), key.into()])
            .await
            .and_then(read::<Outlook>);
        match said {
            Ok(outlook) if outlook.hides => {
                world.ready = true;
                if let Err(failure) = page.open_roots(&world).await {
                    return (frame, world, Err(failure));
                }
                known = None;
            }
            said => return (frame, world, said),
        }
    }
}

fn spot_of(frame: &str, world: &World) -> Spot {
    (frame.to_owned(), world.session.clone(), world.context)
}

fn wanted(awaited: &Awaited) -> Result<Value> {
    let selector = awaited.selector.as_deref().map(Selector::parse).transpose()?;
    // What is no selector is a text only.
    let gone = awaited.gone.as_deref().and_then(|what| Selector::parse(what).ok());
    let (selector, gone) = (selector.map(|selector| selector.for_script()), gone.map(|gone| gone.for_script()));
    let wanted = json!({ "text": awaited.text, "selector": selector, "gone": awaited.gone, "goneSelector": gone });
    let wanted = wanted.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    Ok(wanted.map(|(name, value)| (name.clone(), value.clone())).collect::<serde_json::Map<_, _>>().into())
}
