//! What a session keeps at its origins, read when it rests. Where a page is, that page is asked each time. An origin without one needs a
//! hidden tab, so it is read once after it was left, and what was read stays in the file.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use futures::StreamExt;
use tabmux_core::Fault;
use tabmux_driver::{Context, DriverError, OriginStorage, PageSeed, Source, StorageState, origin_of};
use tokio::time::Instant;

/// How many origins are read at a time, and how long some of them may take; then they are saved, and others follow.
const AT_ONCE: usize = 2;
const READING: Duration = Duration::from_secs(3);

/// Which origins are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Which {
    /// Those of pages, which is fast.
    Shown,
    /// Some of the others.
    Left,
}

/// What is known of its origins from one time to the next.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// They may keep something else than was read of them.
    unread: BTreeSet<String>,
    /// They could not be read; they are asked again when a page was there again.
    refused: BTreeSet<String>,
}

/// What was read of them, and what of each could not be.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) origins: Vec<OriginStorage>,
    pub(super) missing: BTreeMap<String, Vec<String>>,
}

/// What a session holds, and whether something of it is still to be read that can be read now.
pub(super) struct AtRest {
    pub(super) state: StorageState,
    pub(super) missing: BTreeMap<String, Vec<String>>,
    pub(super) has_more: bool,
}

impl Rest {
    pub(super) async fn read(
        &mut self,
        which: Which,
        context: &dyn Context,
        source: &dyn Source,
        pages: &[PageSeed],
        mut known: Known,
    ) -> Result<AtRest, Fault> {
        let cookies = source.cookies().await?;
        let shown: BTreeSet<String> = pages.iter().filter_map(|page| origin_of(&page.url)).collect();
        self.came_to(context.take_visits());
        // What a page is at may change at any time.
        self.came_to(shown.clone());
        let never_read = |origin: &String| known.origins.iter().all(|kept| kept.origin != *origin);
        let new = source.origins().await?.into_iter().filter(|origin| never_read(origin) && !self.refused.contains(origin));
        self.unread.extend(new.collect::<Vec<_>>());
        // What a copy has not got yet is not hurried for this.
        let pending = context.footprint().borrow().pending.clone();
        let ready = self.unread.iter().filter(|origin| !pending.contains(origin)).cloned();
        let (at_pages, left): (Vec<String>, Vec<String>) = ready.partition(|origin| shown.contains(origin));
        let (read, has_more) = match which {
            Which::Shown => (read_some(source, at_pages).await, !left.is_empty()),
            Which::Left => {
                let (count, read) = (left.len(), read_some(source, left).await);
                // One that is never read in time is not tried without end.
                let has_more = !read.is_empty() && read.len() < count;
                (read, has_more)
            }
        };
        for (origin, kept) in read {
            if !shown.contains(&origin) {
                self.unread.remove(&origin);
            }
            known.missing.remove(&origin);
            match kept {
                Ok(mut kept) => {
                    let left = std::mem::take(&mut kept.left_out);
                    known.missing.extend(Some((origin.clone(), left)).filter(|(_, left)| !left.is_empty()));
                    known.origins.retain(|older| older.origin != origin);
                    known.origins.push(kept);
                }
                Err(error) => {
                    let mut why = error.to_string().trim_end_matches('.').to_owned();
                    if known.origins.iter().any(|older| older.origin == origin) {
                        why += ", but what was read of it before";
                    }
                    known.missing.insert(origin.clone(), vec![why]);
                    self.give_up(&origin);
                }
            }
        }
        for origin in self.unread.iter().filter(|origin| known.origins.iter().all(|kept| kept.origin != **origin)) {
            known.missing.entry(origin.clone()).or_insert_with(|| vec!["it was not read in time".to_owned()]);
        }
        Ok(AtRest { state: StorageState { cookies, origins: known.origins }, missing: known.missing, has_more })
    }

    /// It is not read again before a page was there again.
    pub(super) fn give_up(&mut self, origin: &str) {
        self.refused.insert(origin.to_owned());
    }

    fn came_to(&mut self, origins: BTreeSet<String>) {
        self.refused.retain(|origin| !origins.contains(origin));
        self.unread.extend(origins);
    }
}

/// Those that there is time for.
async fn read_some(source: &dyn Source, origins: Vec<String>) -> Vec<(String, Result<OriginStorage, DriverError>)> {
    let end = Instant::now() + READING;
    let in_time = futures::stream::iter(origins).take_while(|_| std::future::ready(Instant::now() < end));
    let reading = in_time.map(|origin| async move {
        let kept = tokio::time::timeout_at(end, source.kept(&origin)).await.ok()?;
        Some((origin, kept))
    });
    reading.buffer_unordered(AT_ONCE).filter_map(std::future::ready).collect().await
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use async_trait::async_trait;
    use tabmux_driver::fake::FakeBrowser;
    use tabmux_driver::{Browser, ContextSpec, Cookie, Navigation, Page};

    use super::*;

    /// Writes down what it is asked for. What `bad.test` keeps it does not tell.
    #[derive(Debug)]
    struct Asked {
        inner: Arc<dyn Source>,
        asked: Mutex<Vec<String>>,
    }

    #[async_trait]
    impl Source for Asked {
        async fn cookies(&self) -> tabmux_driver::Result<Vec<Cookie>> {
            self.inner.cookies().await
        }

        async fn origins(&self) -> tabmux_driver::Result<Vec<String>> {
            self.inner.origins().await
        }

        async fn kept(&self, origin: &str) -> tabmux_driver::Result<OriginStorage> {
            self.asked.lock().unwrap().push(origin.to_owned());
            match origin {
                "http://bad.test" => Err(DriverError::StorageRefused("no".into())),
                "http://slow.test" => std::future::pending().await,
                "http://worse.test" if self.asked.lock().unwrap().iter().filter(|asked| *asked == origin).count() > 1 => {
                    Err(DriverError::StorageRefused("no".into()))
                }
                _ => self.inner.kept(origin).await,
            }
        }
    }

    struct Session {
        context: Arc<dyn Context>,
        page: Arc<dyn Page>,
        source: Asked,
        rest: Rest,
        known: Known,
    }

    impl Session {
        async fn new() -> Self {
            let context = FakeBrowser::new().open_context(&ContextSpec::default()).await.unwrap();
            let page = context.open_page().await.unwrap();
            let source = Asked { inner: context.source().unwrap(), asked: Mutex::default() };
            Self { context, page, source, rest: Rest::default(), known: Known::default() }
        }

        async fn go(&self, host: &str) {
            self.page.navigate(Navigation::To(&format!("http://{host}.test/"))).await.unwrap();
        }

        async fn read(&mut self, which: Which) -> AtRest {
            let pages = [PageSeed { url: self.page.url(), ..PageSeed::default() }];
            let known = std::mem::take(&mut self.known);
            let read = self.rest.read(which, &*self.context, &self.source, &pages, known).await.unwrap();
            self.known = Known { origins: read.state.origins.clone(), missing: read.missing.clone() };
            read
        }

        /// Which origins were asked for, what is missing, and whether there is more.
        async fn saved(&mut self) -> (Vec<String>, Vec<String>, bool) {
            let mut read = self.read(Which::Shown).await;
            if read.has_more {
                read = self.read(Which::Left).await;
            }
            let missing = read.missing.into_iter().map(|(origin, what)| format!("{origin}: {}", what.join(", "))).collect();
            (std::mem::take(&mut *self.source.asked.lock().unwrap()), missing, read.has_more)
        }

        async fn asked(&mut self) -> Vec<String> {
            self.saved().await.0
        }
    }

    #[tokio::test]
    async fn an_origin_that_was_left_is_read_once() {
        let mut session = Session::new().await;
        session.go("a").await;
        session.go("b").await;
        assert_eq!(session.asked().await, ["http://b.test", "http://a.test"], "also one that was left before it was ever saved");
        assert_eq!(session.asked().await, ["http://b.test"], "where a page is, anything may have changed");
        session.go("c").await;
        assert_eq!(session.asked().await, ["http://c.test", "http://b.test"], "what it changed before it left");
        session.go("a").await;
        session.go("c").await;
        assert_eq!(session.asked().await, ["http://c.test", "http://a.test"], "it was there in between");
        assert_eq!(session.asked().await, ["http://c.test"]);
        session.rest = Rest::default();
        assert_eq!(session.asked().await, ["http://c.test"], "the next daemon has what the former one read");
    }

    #[tokio::test(start_paused = true)]
    async fn what_cannot_be_read_is_named_and_not_asked_again_and_again() {
        let mut session = Session::new().await;
        session.go("bad").await;
        session.go("a").await;
        let (asked, missing, _) = session.saved().await;
        assert_eq!(asked, ["http://a.test", "http://bad.test"]);
        assert!(missing[0].starts_with("http://bad.test: ") && missing[0].ends_with("no"), "{missing:?}");
        assert_eq!(session.saved().await, (vec!["http://a.test".to_owned()], missing, false));
        session.go("slow").await;
        session.go("b").await;
        let (asked, missing, has_more) = session.saved().await;
        assert_eq!(asked, ["http://b.test", "http://a.test", "http://slow.test"]);
        assert_eq!((&missing[1..], has_more), (&["http://slow.test: it was not read in time".to_owned()][..], true));
        let (asked, _, has_more) = session.saved().await;
        assert_eq!((asked, has_more), (vec!["http://b.test".into(), "http://slow.test".into()], false), "it may have time another time");
    }

    /// What cannot be read again, or not in time, stays as it was read before.
    #[tokio::test(start_paused = true)]
    async fn what_was_read_once_is_not_replaced_by_nothing() {
        let mut session = Session::new().await;
        let slow = OriginStorage { origin: "http://slow.test".into(), ..OriginStorage::default() };
        session.known.origins.push(slow);
        session.go("slow").await;
        session.go("worse").await;
        let keeps = |read: &AtRest| read.state.origins.iter().map(|kept| kept.origin.clone()).collect::<Vec<_>>();
        let first = session.read(Which::Shown).await;
        assert_eq!((keeps(&first).len(), first.missing.len()), (2, 0), "{:?}", first.missing);
        let second = session.read(Which::Shown).await;
        assert_eq!(keeps(&second).len(), 2);
        let why = &second.missing["http://worse.test"];
        assert!(why[0].ends_with("no, but what was read of it before"), "{why:?}");
        let third = session.read(Which::Left).await;
        assert_eq!((keeps(&third).len(), third.missing.contains_key("http://slow.test")), (2, false));
    }
}
