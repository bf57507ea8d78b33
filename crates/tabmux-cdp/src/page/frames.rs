//! Where our own scripts run: one world for each frame of the page, also for those that live in another process and have a
//! CDP session of their own. Known from events, so that a call needs no question before it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::event::read;
use crate::protocol::{Event, runtime};

/// What our world is called in every frame.
pub(crate) const WORLD: &str = "tabmux";

/// More frames than anybody looks into.
const MAX_FRAMES: usize = 1000;

/// How many spans of refs are remembered that are not the main frame's.
const MAX_SPANS: usize = 256;

/// One frame's world. It ends with the frame's document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct World {
    /// The CDP session that reaches it.
    pub(crate) session: String,
    pub(crate) context: i64,
    /// Whether the page script is in it.
    pub(super) ready: bool,
    /// Of its document, as Chromium writes it.
    pub(super) origin: String,
}

/// A frame by Chromium's name, and the session that speaks of it.
type Said = (String, String);

/// Where a frame lives that has a session of its own.
#[derive(Debug)]
struct Home {
    session: String,
    /// The session that told of it, and takes it along when it ends.
    within: String,
}

/// The worlds of the page's frames, and whose the refs are. While a frame changes processes, the session it leaves may speak of it
/// after the one it comes to: so each session's word is kept, and that of the frame's own session counts.
#[derive(Debug)]
pub(super) struct Frames {
    worlds: HashMap<Said, World>,
    homes: HashMap<String, Home>,
    /// The frames around those of the page's own session, as far as that was heard.
    around: HashMap<String, String>,
    /// Where their documents are from.
    origins: HashMap<Said, String>,
    /// The first number that no ref has, in all pages of the context: a ref of one tab must not mean something in another.
    next_ref: Arc<AtomicU32>,
    spans: VecDeque<Span>,
}

/// Numbers that were free for one frame: every `step`th from `first`, below `end`.
#[derive(Clone, Debug)]
struct Span {
    first: u32,
    end: u32,
    step: u32,
    frame: String,
}

/// The members of `auxData` that matter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Auxiliary {
    frame_id: String,
    #[serde(default)]
    is_default: bool,
}

impl Default for Frames {
    fn default() -> Self {
        let next_ref = Arc::new(AtomicU32::new(1));
        let (worlds, homes, around, origins) = (HashMap::new(), HashMap::new(), HashMap::new(), HashMap::new());
        Self { worlds, homes, around, origins, next_ref, spans: VecDeque::new() }
    }
}

impl Frames {
    /// Takes in what a session says of its worlds; whether the event was about them.
    pub(super) fn hear(&mut self, session: &str, method: &str, params: &RawValue) -> bool {
        match method {
            runtime::ExecutionContextCreated::METHOD => self.created(session, params),
            runtime::ExecutionContextDestroyed::METHOD => {
                let gone = read::<runtime::ExecutionContextDestroyed>(params).map(|event| event.execution_context_id);
                self.worlds.retain(|_, world| world.session != session || Some(world.context) != gone);
            }
            runtime::ExecutionContextsCleared::METHOD => self.lose(session),
            _ => return false,
        }
        true
    }

    fn created(&mut self, session: &str, params: &RawValue) {
        let Some(context) = read::<runtime::ExecutionContextCreated>(params).map(|event| event.context) else { return };
        let about = context.aux_data.and_then(|data| Auxiliary::deserialize(data).ok());
        match about {
            Some(Auxiliary { frame_id, .. }) if context.name == WORLD => self.made(frame_id, session, context.id, context.origin),
            Some(Auxiliary { frame_id, is_default: true }) => self.is_at(frame_id, session, context.origin),
            _ => {}
        }
    }

    /// The page's own world says where a document is from. Ours may be told the origin of what the frame showed before.
    fn is_at(&mut self, frame: String, session: &str, origin: String) {
        let said = (frame, session.to_owned());
        if let Some(world) = self.worlds.get_mut(&said) {
            world.origin.clone_from(&origin);
        }
        if self.origins.len() < MAX_FRAMES || self.origins.contains_key(&said) {
            self.origins.insert(said, origin);
        }
    }

    /// A frame has a session of its own now, of which another one told.
    pub(super) fn attached(&mut self, frame: String, session: &str, within: &str) {
        if self.homes.len() < MAX_FRAMES || self.homes.contains_key(&frame) {
            self.homes.insert(frame, Home { session: session.to_owned(), within: within.to_owned() });
        }
    }

    /// The sessions that frames have of their own.
    pub(super) fn sessions(&self) -> Vec<String> {
        self.homes.values().map(|home| home.session.clone()).collect()
    }

    /// The session of a frame is over, and with it those of the frames in it, of whose end nobody tells: these.
    pub(super) fn detached(&mut self, session: &str) -> Vec<String> {
        self.lose(session);
        self.origins.retain(|(_, said_by), _| said_by != session);
        self.homes.retain(|_, home| home.session != session);
        let within: Vec<_> = self.homes.values().filter(|home| home.within == session).map(|home| home.session.clone()).collect();
        let deeper: Vec<_> = within.iter().flat_map(|inner| self.detached(inner)).collect();
        [within, deeper].concat()
    }

    pub(super) fn made(&mut self, frame: String, session: &str, context: i64, origin: String) {
        let said = (frame, session.to_owned());
        let known = self.worlds.get(&said).is_some_and(|world| world.context == context);
        if !known && (self.worlds.len() < MAX_FRAMES || self.worlds.contains_key(&said)) {
            let origin = self.origins.get(&said).cloned().unwrap_or(origin);
            let world = World { session: session.to_owned(), context, ready: false, origin };
            self.worlds.insert(said, world);
        }
    }

    /// A frame of the page's own session has a document, in the frame `around` it; the page itself is in none.
    pub(super) fn navigated(&mut self, frame: &str, around: Option<&str>) {
        match around {
            Some(around) if self.around.len() < MAX_FRAMES => drop(self.around.insert(frame.to_owned(), around.to_owned())),
            Some(_) => {}
            None => {
                self.around.clear();
                self.origins.clear();
            }
        }
    }

    /// The session has lost all its documents.
    fn lose(&mut self, session: &str) {
        self.worlds.retain(|_, world| world.session != session);
    }

    pub(super) fn world(&self, frame: &str) -> Option<World> {
        self.shown().find(|(name, _)| *name == frame).map(|(_, world)| world.clone())
    }

    /// The one that counts of each frame.
    fn shown(&self) -> impl Iterator<Item = (&str, &World)> {
        let counts = |(frame, session): &Said| self.homes.get(frame).is_none_or(|home| home.session == *session);
        self.worlds.iter().filter(move |(said, _)| counts(said)).map(|((frame, _), world)| (frame.as_str(), world))
    }

    /// All of them, with the names of their frames.
    pub(super) fn all(&self) -> Vec<(String, World)> {
        self.shown().map(|(frame, world)| (frame.to_owned(), world.clone())).collect()
    }

    pub(super) fn forget(&mut self, frame: &str, gone: &World) {
        self.worlds.retain(|(name, _), world| name != frame || world.context != gone.context || world.session != gone.session);
    }

    /// The page script is in this world; says whether it is still the frame's.
    pub(super) fn is_ready(&mut self, frame: &str, which: &World) -> bool {
        let said = (frame.to_owned(), which.session.clone());
        let world = self.worlds.get_mut(&said).filter(|world| world.context == which.context);
        world.map(|world| world.ready = true).is_some()
    }

    /// The frames that the main frame's script cannot look into, in a fixed order.
    pub(super) fn strangers(&self, main: &str) -> Vec<String> {
        let worlds: HashMap<_, _> = self.shown().collect();
        let Some(own) = worlds.get(main) else { return Vec::new() };
        let alike = |name: &str| worlds.get(name).is_none_or(|world| world.session == own.session && world.origin == own.origin);
        // One that is like the page may be in one that is not, where nobody looks through.
        let near = |name: &str| std::iter::successors(Some(name), |name| self.around.get(*name).map(String::as_str)).all(alike);
        let mut names: Vec<_> = worlds.keys().filter(|name| **name != main && !near(name)).map(|name| (*name).to_owned()).collect();
        names.sort_unstable();
        names
    }

    /// Some of the worlds that this session reaches.
    pub(super) fn of_session(&self, session: &str, most: usize) -> Vec<World> {
        self.worlds.values().filter(|world| world.session == session).take(most).cloned().collect()
    }

    /// The worlds that have the page script.
    pub(super) fn ready(&self) -> Vec<World> {
        self.worlds.values().filter(|world| world.ready).cloned().collect()
    }

    /// From now on numbers are shared with others.
    pub(super) fn number_with(&mut self, next_ref: &Arc<AtomicU32>) {
        next_ref.fetch_max(self.next_ref(), Ordering::Relaxed);
        self.next_ref = Arc::clone(next_ref);
    }

    pub(super) fn next_ref(&self) -> u32 {
        self.next_ref.load(Ordering::Relaxed)
    }

    /// Nothing below is given again.
    pub(super) fn refs_up_to(&self, next: u32) {
        self.next_ref.fetch_max(next, Ordering::Relaxed);
    }

    /// The frame was given these numbers; those of the main frame need no note.
    pub(super) fn numbered(&mut self, main: &str, frame: &str, first: u32, end: u32, step: u32) {
        self.refs_up_to(end);
        if frame == main || end <= first {
            return;
        }
        if self.spans.len() == MAX_SPANS {
            self.spans.pop_front();
        }
        self.spans.push_back(Span { first, end, step, frame: frame.to_owned() });
    }

    /// The frame whose ref it is; none is the main frame's.
    pub(super) fn frame_of(&self, number: u32) -> Option<String> {
        let has = |span: &&Span| (span.first..span.end).contains(&number) && (number - span.first).is_multiple_of(span.step);
        self.spans.iter().rev().find(has).map(|span| span.frame.clone())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn created(frames: &mut Frames, session: &str, frame: &str, id: i64, name: &str, origin: &str) {
        let event = json!({"context": {"id": id, "origin": origin, "name": name, "uniqueId": "u", "auxData": {"frameId": frame}}});
        frames.hear(session, runtime::ExecutionContextCreated::METHOD, &RawValue::from_string(event.to_string()).unwrap());
    }

    fn gone(frames: &mut Frames, session: &str, id: i64) {
        let event = RawValue::from_string(json!({"executionContextId": id, "executionContextUniqueId": "u"}).to_string()).unwrap();
        frames.hear(session, runtime::ExecutionContextDestroyed::METHOD, &event);
    }

    #[test]
    fn each_frame_has_one_world_of_ours_until_its_document_goes() {
        let mut frames = Frames::default();
        created(&mut frames, "S", "main", 1, "", "http://a.test");
        created(&mut frames, "S", "main", 2, WORLD, "http://a.test");
        created(&mut frames, "S", "child", 3, WORLD, "http://a.test");
        created(&mut frames, "S2", "far", 3, WORLD, "http://b.test");
        assert_eq!(frames.world("main").map(|world| world.context), Some(2));
        assert_eq!(frames.strangers("main"), ["far"]);
        gone(&mut frames, "S", 3);
        assert!(frames.world("child").is_none() && frames.world("far").is_some(), "ids count within their session");
        created(&mut frames, "S", "main", 9, WORLD, "http://a.test");
        gone(&mut frames, "S", 2);
        assert_eq!(frames.world("main").map(|world| world.context), Some(9), "the former document's end comes late");
        frames.detached("S2");
        assert!(frames.world("far").is_none());
    }

    /// As Chromium tells it on a busy machine: each process speaks for itself, and nobody puts their words in order.
    #[test]
    fn a_frame_is_where_its_own_session_says_whoever_speaks_last() {
        let mut frames = Frames::default();
        created(&mut frames, "S", "main", 1, WORLD, "http://a.test");
        let context = |frames: &Frames, far: &str| frames.world(far).map(|world| world.context);
        // Many, since one could be right by chance.
        for far in (0..20).map(|number| format!("far{number}")) {
            frames.attached(far.clone(), "S2", "S");
            created(&mut frames, "S2", &far, 3, WORLD, "http://b.test");
            created(&mut frames, "S", &far, 10, WORLD, "http://a.test");
            assert_eq!(context(&frames, &far), Some(3), "the empty document before it is told of late");
            gone(&mut frames, "S", 10);
            assert_eq!((context(&frames, &far), frames.strangers("main")), (Some(3), vec![far.clone()]));
            created(&mut frames, "S", &far, 11, WORLD, "http://a.test");
            frames.detached("S2");
            assert_eq!(context(&frames, &far), Some(11), "it came back before its session was over");
        }
    }

    #[test]
    fn the_session_of_a_frame_takes_those_in_it_along() {
        let mut frames = Frames::default();
        for (frame, session, within) in [("far", "S2", "S"), ("back", "S3", "S2"), ("deep", "S4", "S3"), ("other", "S5", "S")] {
            frames.attached(frame.into(), session, within);
            created(&mut frames, session, frame, 1, WORLD, "http://b.test");
        }
        assert_eq!(frames.detached("S2"), ["S3", "S4"]);
        assert_eq!(frames.all().into_iter().map(|(frame, _)| frame).collect::<Vec<_>>(), ["other"]);
    }

    /// As Chromium tells it of a frame that goes to another site in the same process.
    #[test]
    fn a_frame_is_from_where_its_own_world_says() {
        let mut frames = Frames::default();
        created(&mut frames, "S", "main", 1, WORLD, "http://a.test");
        created(&mut frames, "S", "far", 5, WORLD, "http://a.test");
        let own = json!({"context": {"id": 6, "origin": "http://b.test", "name": "", "uniqueId": "u", "auxData": {"frameId": "far", "isDefault": true}}});
        frames.hear("S", runtime::ExecutionContextCreated::METHOD, &RawValue::from_string(own.to_string()).unwrap());
        assert_eq!(frames.strangers("main"), ["far"]);
        gone(&mut frames, "S", 5);
        created(&mut frames, "S", "far", 7, WORLD, "http://a.test");
        assert_eq!(frames.strangers("main"), ["far"]);
    }

    #[test]
    fn a_frame_like_the_page_within_one_that_is_not_is_a_stranger_too() {
        let mut frames = Frames::default();
        for (id, frame, origin) in
            [(1, "main", "http://a.test"), (2, "near", "http://a.test"), (3, "far", "http://b.test"), (4, "back", "http://a.test")]
        {
            created(&mut frames, "S", frame, id, WORLD, origin);
        }
        for (frame, around) in [("main", None), ("near", Some("main")), ("far", Some("near")), ("back", Some("far"))] {
            frames.navigated(frame, around);
        }
        assert_eq!(frames.strangers("main"), ["back", "far"]);
        frames.navigated("main", None);
        assert_eq!(frames.strangers("main"), ["far"], "of the next document nothing was heard yet");
    }

    #[test]
    fn a_ref_leads_to_the_frame_that_gave_it() {
        let mut frames = Frames::default();
        frames.numbered("main", "main", 1, 5, 1);
        frames.numbered("main", "left", 5, 11, 2);
        frames.numbered("main", "right", 6, 10, 2);
        assert_eq!(frames.next_ref(), 11);
        let owners: Vec<_> = [4, 5, 6, 9, 10].map(|number| frames.frame_of(number)).into_iter().collect();
        let frame = |name: &str| Some(name.to_owned());
        assert_eq!(owners, [None, frame("left"), frame("right"), frame("left"), None]);
    }
}
