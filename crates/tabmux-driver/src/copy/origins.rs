//! What a context knows of origins: where it has been, and what is still on its way to it from the source it began with. A
//! document of an origin that is on its way waits here for it, for a while.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, watch};
use url::Url;

use super::leisure::{Leisure, Opening};
use super::{Beginning, Copied, Footprint, Source};
use crate::{DriverError, OriginStorage, Result};

/// How long a document waits for what its origin keeps. After that it goes on without, and the loss is said.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long reading and writing one origin may take.
const COPYING: Duration = Duration::from_secs(20);

/// And of that, how long reading what frames of other sites keep.
const FRAMES: Duration = Duration::from_secs(4);

/// How long what nobody waits for leaves the browser to the copy's first page.
const PAGES_FIRST: Duration = Duration::from_secs(2);

/// More than anybody keeps things at; those that come later are not remembered.
const MAX_ORIGINS: usize = 1000;

#[derive(Debug, Default)]
pub struct Origins {
    state: watch::Sender<State>,
    copied: watch::Sender<Copied>,
    footprint: watch::Sender<Footprint>,
    /// Where pages or frames came to since somebody asked.
    visits: Mutex<BTreeSet<String>>,
    /// A page of the context is there.
    shown: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// In the order they are to be copied.
    waiting: VecDeque<String>,
    underway: BTreeSet<String>,
    /// A document waits for these.
    wanted: BTreeSet<String>,
}

impl Origins {
    /// As a former daemon knew them. What had not arrived is on its way again, or does not arrive any more where there is no source.
    pub fn found(footprint: &Footprint, source: Option<&Beginning>) -> Self {
        let origins = Self::default();
        origins.footprint.send_modify(|known| {
            known.origins.clone_from(&footprint.origins);
            known.frames.clone_from(&footprint.frames);
        });
        match source {
            Some(_) => origins.expect(&footprint.pending),
            None => footprint.pending.iter().for_each(|origin| origins.lose(format!("{origin}: the daemon ended before it was copied"))),
        }
        origins
    }

    /// A page is there, or a frame of it.
    pub fn visited(&self, url: &str) {
        if let Some(origin) = origin_of(url) {
            let mut visits = self.visits.lock().unwrap_or_else(PoisonError::into_inner);
            if visits.len() < MAX_ORIGINS {
                visits.insert(origin.clone());
            }
            drop(visits);
            self.know([origin]);
        }
    }

    /// Where pages or frames came to since this was asked last.
    pub fn take_visits(&self) -> BTreeSet<String> {
        std::mem::take(&mut self.visits.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A frame of another site is in a page.
    pub fn has_frame(&self, page: &str, frame: &str) {
        let Some(pair) = origin_of(page).zip(origin_of(frame)).filter(|(page, frame)| page != frame) else { return };
        self.footprint.send_if_modified(|footprint| {
            let is_new = footprint.frames.len() < MAX_ORIGINS && !footprint.frames.contains(&pair);
            footprint.frames.extend(is_new.then_some(pair));
            is_new
        });
    }

    /// The frames of other sites that pages of this origin had.
    pub fn frames_in(&self, origin: &str) -> Vec<String> {
        self.footprint.borrow().frames.iter().filter(|(page, _)| page == origin).map(|(_, frame)| frame.clone()).collect()
    }

    /// Where the context has been, in the order it came there.
    pub fn known(&self) -> Vec<String> {
        self.footprint.borrow().origins.clone()
    }

    pub fn footprint(&self) -> watch::Receiver<Footprint> {
        self.footprint.subscribe()
    }

    pub fn copied(&self) -> watch::Receiver<Copied> {
        self.copied.subscribe()
    }

    /// So many cookies arrived, and these did not, as `sid of a.test`.
    pub fn cookies_arrived(&self, count: usize, refused: impl IntoIterator<Item = String>) {
        self.copied.send_modify(|copied| {
            copied.cookies += count;
            refused.into_iter().for_each(|cookie| copied.lose(format!("cookie {cookie}: the browser does not take it")));
        });
    }

    pub fn lose(&self, what: String) {
        self.copied.send_modify(|copied| copied.lose(what));
    }

    /// These are on their way from now on.
    pub fn expect(&self, origins: &[String]) {
        let origins: Vec<_> = origins.iter().filter_map(|origin| origin_of(origin)).collect();
        self.know(origins.clone());
        self.state.send_modify(|state| {
            for origin in origins {
                if !state.is_pending(&origin) {
                    state.waiting.push_back(origin);
                }
            }
        });
        self.publish();
    }

    /// Whether anything is on its way.
    pub fn is_waiting(&self) -> bool {
        let state = self.state.borrow();
        !state.waiting.is_empty() || !state.underway.is_empty()
    }

    /// Whether what the origin of this address keeps is on its way.
    pub fn awaits(&self, url: &str) -> bool {
        self.is_waiting() && origin_of(url).is_some_and(|origin| self.state.borrow().is_pending(&origin))
    }

    /// Comes when everything is there that the origin of this address keeps, or was given up.
    pub async fn arrival(&self, url: &str) {
        let Some(origin) = origin_of(url).filter(|origin| self.state.borrow().is_pending(origin)) else { return };
        self.state.send_modify(|state| {
            state.wanted.insert(origin.clone());
        });
        if tokio::time::timeout(PATIENCE, self.settled(&origin)).await.is_err() {
            self.settle(&origin, Err("it took too long".to_owned()));
        }
    }

    /// A page of the context has arrived where it was going: there is time for the rest.
    pub fn page_is_there(&self) {
        self.shown.notify_one();
    }

    /// Brings what is on its way from the source: at once what somebody waits for, and the rest when the browser has time. Who puts it
    /// says what could not be put.
    pub async fn fill<F>(&self, source: &dyn Source, leisure: &Leisure, opening: Opening, put: impl Fn(OriginStorage) -> F + Sync)
    where
        F: Future<Output = Result<Vec<String>>> + Send,
    {
        // Two each, so that nobody waits behind an origin that is slow.
        let (wanted, rest) = (|| self.bring_wanted(source, &put), || self.bring_rest(source, leisure, &put));
        let mut all = std::pin::pin!(async { tokio::join!(wanted(), wanted(), rest(), rest()) });
        tokio::select! {
            biased;
            _ = &mut all => return,
            _ = tokio::time::timeout(PAGES_FIRST, self.shown.notified()) => drop(opening),
        }
        all.await;
    }

    async fn bring_wanted<F>(&self, source: &dyn Source, put: &(impl Fn(OriginStorage) -> F + Sync))
    where
        F: Future<Output = Result<Vec<String>>> + Send,
    {
        let mut changes = self.state.subscribe();
        while changes
            .wait_for(|state| state.waiting.is_empty() || state.next_wanted().is_some())
            .await
            .is_ok_and(|state| !state.waiting.is_empty())
        {
            if let Some(origin) = self.take(State::next_wanted) {
                self.bring(&origin, source, put).await;
            }
        }
    }

    async fn bring_rest<F>(&self, source: &dyn Source, leisure: &Leisure, put: &(impl Fn(OriginStorage) -> F + Sync))
    where
        F: Future<Output = Result<Vec<String>>> + Send,
    {
        while let Some(_turn) = leisure.turn().await {
            let Some(origin) = self.take(|state| (!state.waiting.is_empty()).then_some(0)) else { return };
            self.bring(&origin, source, put).await;
        }
    }

    async fn bring<F>(&self, origin: &str, source: &dyn Source, put: &(impl Fn(OriginStorage) -> F + Sync))
    where
        F: Future<Output = Result<Vec<String>>> + Send,
    {
        let bringing = Box::pin(async {
            let (kept, framed) = tokio::join!(source.kept(origin), tokio::time::timeout(FRAMES, source.framed(origin)));
            let framed = framed.unwrap_or_else(|_| Err(DriverError::StorageRefused("it took too long".into())));
            let (kept, mut left) = whole(kept.map_err(why)?, framed);
            kept.framed.iter().for_each(|framed| self.has_frame(origin, &framed.origin));
            if !kept.is_empty() {
                left.extend(put(kept).await.map_err(why)?);
            }
            Ok(left)
        });
        let brought = tokio::select! {
            biased;
            // Whoever waited for it goes on without it, and must not meet it later.
            () = self.settled(origin) => return,
            brought = tokio::time::timeout(COPYING, bringing) => brought,
        };
        self.settle(origin, brought.unwrap_or_else(|_| Err("it took too long".to_owned())));
    }

    fn take(&self, which: impl Fn(&State) -> Option<usize>) -> Option<String> {
        let mut taken = None;
        self.state.send_if_modified(|state| {
            taken = which(state).and_then(|at| state.waiting.remove(at));
            state.underway.extend(taken.clone());
            taken.is_some()
        });
        taken
    }

    async fn settled(&self, origin: &str) {
        // The sender lives as long as this.
        let _ = self.state.subscribe().wait_for(|state| !state.is_pending(origin)).await;
    }

    /// It arrived but for what is named, or it will not arrive.
    fn settle(&self, origin: &str, outcome: std::result::Result<Vec<String>, String>) {
        let mut was_pending = false;
        // Said first: who waits for the origin may look at once.
        self.state.send_if_modified(|state| {
            was_pending = state.forget(origin);
            if was_pending {
                self.copied.send_modify(|copied| match outcome {
                    Ok(left) => {
                        copied.origins += 1;
                        left.into_iter().for_each(|what| copied.lose(format!("{origin}: {what}")));
                    }
                    Err(why) => copied.lose(format!("{origin}: {why}")),
                });
            }
            was_pending
        });
        self.publish();
    }

    fn know(&self, origins: impl IntoIterator<Item = String>) {
        self.footprint.send_if_modified(|footprint| {
            let before = footprint.origins.len();
            for origin in origins {
                if footprint.origins.len() < MAX_ORIGINS && !footprint.origins.contains(&origin) {
                    footprint.origins.push(origin);
                }
            }
            footprint.origins.len() > before
        });
    }

    fn publish(&self) {
        let pending: Vec<String> = {
            let state = self.state.borrow();
            state.underway.iter().chain(&state.waiting).cloned().collect()
        };
        self.copied.send_if_modified(|copied| std::mem::replace(&mut copied.pending, pending.len()) != pending.len());
        self.footprint.send_if_modified(|footprint| std::mem::replace(&mut footprint.pending, pending.clone()) != pending);
    }
}

impl State {
    fn is_pending(&self, origin: &str) -> bool {
        self.underway.contains(origin) || self.waiting.iter().any(|waiting| waiting == origin)
    }

    fn next_wanted(&self) -> Option<usize> {
        self.waiting.iter().position(|origin| self.wanted.contains(origin))
    }

    fn forget(&mut self, origin: &str) -> bool {
        let was_pending = self.is_pending(origin);
        self.wanted.remove(origin);
        self.underway.remove(origin);
        self.waiting.retain(|waiting| waiting != origin);
        was_pending
    }
}

/// The origin of a web address, as browsers write it; others keep nothing that could be copied.
pub fn origin_of(url: &str) -> Option<String> {
    let url = Url::parse(url).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
    Some(url.origin().ascii_serialization())
}

/// An origin with its frames, and what there is of it that cannot be copied.
fn whole(mut kept: OriginStorage, framed: Result<Vec<OriginStorage>>) -> (OriginStorage, Vec<String>) {
    let mut left = std::mem::take(&mut kept.left_out);
    match framed {
        Ok(framed) => kept.framed = framed,
        Err(error) => left.push(format!("what frames keep in its pages: {}", why(error))),
    }
    for framed in &mut kept.framed {
        left.extend(framed.left_out.drain(..).map(|what| format!("in a frame of {}: {what}", framed.origin)));
    }
    kept.framed.retain(|framed| !framed.is_empty());
    (kept, left)
}

fn why(error: DriverError) -> String {
    match error {
        DriverError::StorageRefused(why) => why,
        other => other.to_string().trim_end_matches('.').to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use tokio::sync::Semaphore;

    use super::*;
    use crate::{Cookie, StorageItem};

    /// Gives an origin when it is let; `slow` ones never.
    #[derive(Debug)]
    struct Gated(Semaphore);

    #[async_trait]
    impl Source for Gated {
        async fn cookies(&self) -> Result<Vec<Cookie>> {
            Ok(Vec::new())
        }

        async fn origins(&self) -> Result<Vec<String>> {
            Ok(Vec::new())
        }

        async fn kept(&self, origin: &str) -> Result<OriginStorage> {
            if origin.contains("slow") {
                return std::future::pending().await;
            }
            self.0.acquire().await.expect("it is open").forget();
            let local_storage = vec![StorageItem { name: "a".into(), value: "1".into() }];
            let left_out = if origin.contains("keys") { vec!["db/store: CryptoKey".to_owned()] } else { Vec::new() };
            Ok(OriginStorage { origin: origin.into(), local_storage, left_out, ..OriginStorage::default() })
        }
    }

    fn filling(names: &[&str], permits: usize) -> (Arc<Origins>, Arc<Mutex<Vec<String>>>, Arc<Gated>) {
        let origins = Arc::new(Origins::default());
        origins.expect(&names.iter().map(|name| format!("https://{name}.test/")).collect::<Vec<_>>());
        let (put, source) = (Arc::<Mutex<Vec<String>>>::default(), Arc::new(Gated(Semaphore::new(permits))));
        let (filled, written, from) = (Arc::clone(&origins), Arc::clone(&put), Arc::clone(&source));
        let leisure = Leisure::default();
        tokio::spawn(async move {
            let write = |kept: OriginStorage| {
                written.lock().unwrap().push(kept.origin);
                std::future::ready(Ok(Vec::new()))
            };
            filled.page_is_there();
            filled.fill(&*from, &leisure, leisure.opening(), write).await;
        });
        (origins, put, source)
    }

    async fn done(origins: &Origins) -> Copied {
        origins.copied().wait_for(|copied| copied.pending == 0).await.expect("it lives").clone()
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_document_waits_for_comes_first() {
        let (origins, put, source) = filling(&["a", "b", "c", "d"], 0);
        tokio::task::yield_now().await;
        assert!(origins.awaits("https://d.test/x?y") && !origins.awaits("https://d.test:444/") && !origins.awaits("about:blank"));
        let waiting = origins.arrival("https://d.test/page");
        tokio::pin!(waiting);
        tokio::select! {
            biased;
            () = &mut waiting => panic!("nothing has come"),
            () = tokio::task::yield_now() => {}
        }
        source.0.add_permits(3);
        waiting.await;
        assert!(put.lock().unwrap().contains(&"https://d.test".to_owned()));
        assert!(!put.lock().unwrap().contains(&"https://c.test".to_owned()), "c was before it in the list");
        source.0.add_permits(9);
        assert_eq!(done(&origins).await, Copied { origins: 4, ..Copied::default() });
        assert_eq!(origins.known().len(), 4);
        assert!(!origins.is_waiting() && origins.footprint().borrow().pending.is_empty());
    }

    /// A document that went on without must not find things appearing later; and what is slow holds nobody else up.
    #[tokio::test(start_paused = true)]
    async fn what_does_not_come_in_time_is_said_and_never_comes() {
        let (origins, put, _source) = filling(&["slow", "slow2", "keys"], 9);
        let started = tokio::time::Instant::now();
        origins.arrival("https://keys.test/").await;
        assert!(started.elapsed() < PATIENCE);
        origins.arrival("https://slow.test/").await;
        assert_eq!(started.elapsed(), PATIENCE);
        let copied = done(&origins).await;
        assert_eq!(started.elapsed(), COPYING, "what nobody waits for has its own time");
        assert_eq!((copied.origins, copied.lost, put.lock().unwrap().len()), (1, 3, 1));
        let said =
            ["https://keys.test: db/store: CryptoKey", "https://slow.test: it took too long", "https://slow2.test: it took too long"];
        assert_eq!(copied.losses, said);
    }

    #[test]
    fn the_next_daemon_finishes_what_the_former_one_did_not_or_says_it() {
        let frames = vec![("https://a.test".into(), "https://f.test".into())];
        let footprint = Footprint { origins: vec!["https://a.test".into()], pending: vec!["https://b.test".into()], frames };
        let source = Beginning::with(Gated(Semaphore::new(0)));
        assert_eq!(*Origins::found(&footprint, Some(&source)).copied().borrow(), Copied { pending: 1, ..Copied::default() });
        let origins = Origins::found(&footprint, None);
        origins.visited("https://a.test/again");
        origins.visited("data:text/html,hi");
        origins.has_frame("https://a.test/x", "https://f.test/y");
        origins.has_frame("https://a.test/x", "https://a.test/y");
        assert_eq!(origins.frames_in("https://a.test"), ["https://f.test"]);
        assert_eq!(*origins.footprint().borrow(), Footprint { pending: Vec::new(), ..footprint });
        assert_eq!(origins.copied().borrow().losses, ["https://b.test: the daemon ended before it was copied"]);
    }
}
