//! What a page asked the network for. Bounded: the oldest requests give way, and the loss is counted.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde::Serialize;

/// How many requests a page keeps.
const MAX_REQUESTS: usize = 500;

/// How many bytes of a URL are kept; `data:` URLs can be megabytes.
const MAX_URL_BYTES: usize = 2048;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Request {
    /// Counts up within the page.
    pub id: u64,
    pub method: String,
    pub url: String,
    /// `document`, `script`, `xhr`, `fetch`, `image` …
    pub kind: String,
    pub status: Option<u16>,
    /// Why it failed, in the browser's words.
    pub failure: Option<String>,
    pub mime: Option<String>,
    pub bytes: Option<u64>,
    pub duration_ms: Option<u64>,
    pub from_cache: bool,
}

/// What is said of a request whose end the browser did not tell before who had asked for it was gone.
const GIVEN_UP: &str = "given up: its page was left before the answer came";

/// The requests of one page, newest last. A driver finds one again by its own key.
#[derive(Debug, Default)]
pub struct Traffic {
    requests: VecDeque<Kept>,
    made: u64,
    lost: u64,
    /// When something was asked or answered last.
    active: Option<Instant>,
}

/// Streams, which come for as long as the page is there, and the scripts of workers, whose end is not always told: waiting for their end would be
/// waiting for ever.
const ENDLESS: [&str; 3] = ["eventsource", "websocket", "worker"];

/// What scripts ask for to show what comes of it.
const ASKED_BY_SCRIPTS: [&str; 2] = ["fetch", "xhr"];

/// How far an answer is. The end of one that nobody reads is never said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Answer,
    End,
}

#[derive(Debug)]
struct Kept {
    key: String,
    began: Instant,
    ended: bool,
    /// The document that asked for it is gone.
    left: bool,
    /// Who of the page it is that asked, where that may go before the page does.
    whose: Option<String>,
    request: Request,
}

impl Kept {
    fn told(&self) -> Request {
        let given_up = self.left && self.request.status.is_none() && self.request.duration_ms.is_none();
        let failure = self.request.failure.clone().or_else(|| given_up.then(|| GIVEN_UP.to_owned()));
        Request { failure, ..self.request.clone() }
    }
}

impl Traffic {
    pub fn begin(&mut self, key: &str, mut request: Request) {
        if self.requests.len() == MAX_REQUESTS {
            self.requests.pop_front();
            self.lost += 1;
        }
        self.made += 1;
        self.active = Some(Instant::now());
        request.id = self.made;
        if request.url.len() > MAX_URL_BYTES {
            request.url.truncate(request.url.floor_char_boundary(MAX_URL_BYTES));
            request.url.push('…');
        }
        self.requests.push_back(Kept { key: key.to_owned(), began: Instant::now(), ended: false, left: false, whose: None, request });
    }

    /// The newest request under this key: a redirect goes on under the same one.
    pub fn of(&mut self, key: &str) -> Option<&mut Request> {
        self.kept(key).map(|kept| &mut kept.request)
    }

    /// The same, for the last time: how long it took is noted.
    pub fn end(&mut self, key: &str) -> Option<&mut Request> {
        self.active = Some(Instant::now());
        let kept = self.kept(key)?;
        kept.ended = true;
        kept.request.duration_ms = u64::try_from(kept.began.elapsed().as_millis()).ok();
        Some(&mut kept.request)
    }

    fn kept(&mut self, key: &str) -> Option<&mut Kept> {
        self.requests.iter_mut().rev().find(|kept| kept.key == key)
    }

    /// Whoever this is, a part of the page, waits for the answer from now on.
    pub fn is_of(&mut self, key: &str, whose: &str) {
        if let Some(kept) = self.kept(key).filter(|kept| kept.whose.as_deref() != Some(whose)) {
            kept.whose = Some(whose.to_owned());
        }
    }

    /// A part of the page is gone, and nobody tells what becomes of what it waited for.
    pub fn over(&mut self, whose: &str) {
        for kept in self.requests.iter_mut().filter(|kept| kept.whose.as_deref() == Some(whose)) {
            kept.ended = true;
        }
    }

    /// The page shows another document, the one that was asked for under this key. The end of what the former one had asked
    /// for is not always said.
    pub fn moved_to(&mut self, key: &str) {
        for kept in self.requests.iter_mut().filter(|kept| kept.key != key) {
            kept.ended = true;
            kept.left = true;
        }
    }

    /// How many requests there were so far: a mark to look back to.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Whether a script asked for something since the mark that has not come so far.
    pub fn awaits(&self, mark: u64, stage: Stage) -> bool {
        let waits = |kept: &Kept| !kept.ended && (stage == Stage::End || kept.request.status.is_none());
        let scripts = |kept: &&Kept| kept.request.id > mark && ASKED_BY_SCRIPTS.contains(&kept.request.kind.as_str());
        self.requests.iter().rev().filter(scripts).any(waits)
    }

    /// How long the network has been quiet; nothing, while an answer is outstanding.
    pub fn quiet_for(&self) -> Option<Duration> {
        self.outstanding().is_none().then(|| self.active.map_or(Duration::MAX, |active| active.elapsed()))
    }

    /// Nobody waits for these any more, and the browser is told to stop them. What became of them it says itself: one may have come all the same.
    pub fn called_off(&mut self, kind: &str) {
        self.requests.iter_mut().filter(|kept| kept.request.kind == kind).for_each(|kept| kept.ended = true);
    }

    /// The oldest request whose answer has not come to its end.
    pub fn outstanding(&self) -> Option<&Request> {
        self.requests.iter().find(|kept| !kept.ended && !ENDLESS.contains(&kept.request.kind.as_str())).map(|kept| &kept.request)
    }

    /// Everything kept, oldest first, and how many were lost to the bound.
    pub fn all(&self) -> (Vec<Request>, u64) {
        (self.requests.iter().map(Kept::told).collect(), self.lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(url: &str) -> Request {
        Request { url: url.into(), ..Request::default() }
    }

    #[test]
    fn the_oldest_requests_give_way_and_the_loss_is_counted() {
        let mut traffic = Traffic::default();
        for n in 0..MAX_REQUESTS + 2 {
            traffic.begin(&n.to_string(), request("http://a.test/"));
        }
        let (all, lost) = traffic.all();
        assert_eq!((all.len(), lost, all[0].id), (MAX_REQUESTS, 2, 3));
        assert!(traffic.of("1").is_none() && traffic.of("2").is_some());
    }

    #[test]
    fn a_redirect_is_found_under_the_key_of_its_first_request() {
        let mut traffic = Traffic::default();
        traffic.begin("k", request("http://a.test/1"));
        traffic.begin("k", request("http://a.test/2"));
        traffic.of("k").unwrap().status = Some(200);
        let statuses: Vec<_> = traffic.all().0.into_iter().map(|request| request.status).collect();
        assert_eq!(statuses, [None, Some(200)]);
    }

    #[test]
    fn the_network_is_quiet_when_every_answer_has_come_but_for_streams() {
        let mut traffic = Traffic::default();
        assert_eq!(traffic.quiet_for(), Some(Duration::MAX), "a page that never asked for anything");
        traffic.begin("page", request("http://a.test/"));
        assert_eq!(traffic.quiet_for(), None);
        assert_eq!(traffic.outstanding().map(|request| request.url.as_str()), Some("http://a.test/"));
        traffic.end("page");
        traffic.begin("events", Request { kind: "eventsource".into(), ..request("http://a.test/events") });
        traffic.begin("worker", Request { kind: "worker".into(), ..request("http://a.test/worker.js") });
        assert!(traffic.quiet_for().is_some_and(|quiet| quiet < Duration::from_secs(60)));
        traffic.begin("lost", request("http://a.test/lost"));
        traffic.begin("next", request("http://a.test/next"));
        traffic.moved_to("next");
        traffic.end("next");
        assert!(traffic.quiet_for().is_some(), "what a former document asked for is nobody's any more");
    }

    #[test]
    fn what_a_former_document_asked_for_in_vain_is_not_said_to_be_awaited() {
        let mut traffic = Traffic::default();
        for key in ["answered", "unanswered", "next"] {
            traffic.begin(key, request("http://a.test/"));
        }
        traffic.of("answered").unwrap().status = Some(200);
        traffic.moved_to("next");
        let failures: Vec<_> = traffic.all().0.into_iter().map(|request| request.failure).collect();
        assert_eq!(failures, [None, Some(GIVEN_UP.to_owned()), None]);
        // It may have come all the same.
        traffic.of("unanswered").unwrap().status = Some(204);
        assert_eq!(traffic.all().0[1].failure, None);
    }

    #[test]
    fn what_a_part_of_the_page_waited_for_ends_with_it() {
        let mut traffic = Traffic::default();
        traffic.begin("frame", request("http://a.test/frame"));
        traffic.begin("page", request("http://a.test/page"));
        traffic.is_of("frame", "S2");
        traffic.over("S3");
        assert_eq!(traffic.outstanding().map(|request| request.url.as_str()), Some("http://a.test/frame"));
        traffic.over("S2");
        assert_eq!(traffic.outstanding().map(|request| request.url.as_str()), Some("http://a.test/page"));
    }

    #[test]
    fn only_what_scripts_asked_for_since_the_mark_is_awaited() {
        let mut traffic = Traffic::default();
        let fetch = |url| Request { kind: "fetch".into(), ..request(url) };
        traffic.begin("poll", fetch("http://a.test/poll"));
        let mark = traffic.made();
        traffic.begin("image", Request { kind: "image".into(), ..request("http://a.test/image") });
        assert!(!traffic.awaits(mark, Stage::End));
        traffic.begin("save", fetch("http://a.test/save"));
        assert!(traffic.awaits(mark, Stage::Answer));
        traffic.of("save").unwrap().status = Some(200);
        assert!(!traffic.awaits(mark, Stage::Answer) && traffic.awaits(mark, Stage::End));
        traffic.end("save");
        assert!(!traffic.awaits(mark, Stage::End));
    }

    #[test]
    fn a_long_url_is_cut() {
        let mut traffic = Traffic::default();
        traffic.begin("k", request(&"é".repeat(MAX_URL_BYTES)));
        assert!(traffic.all().0[0].url.len() <= MAX_URL_BYTES + '…'.len_utf8());
    }
}
