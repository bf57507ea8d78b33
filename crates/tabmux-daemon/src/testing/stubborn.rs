//! The fake browser with moods: contexts that hang, fail or panic when they open or close. It counts what is open.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use futures::FutureExt;
use tabmux_driver::fake::FakeBrowser;
use tabmux_driver::{
    Adopted, Arrival, Browser, BrowserInfo, Context, ContextSpec, Cookie, Copied, Download, DriverError, Emulation, Footprint, Handle,
    OriginStorage, Page, PageRecord, PageSeed, Planted, Popup, Result, Source,
};
use tokio::sync::{Semaphore, mpsc, watch};

/// What happens to one opening or closing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mood {
    Good,
    Fail,
    /// Fails, and the browser is still there.
    Refuse,
    /// Answers too late.
    Late,
    Panic,
    /// Never ends, unless its future is dropped.
    Hang,
    /// Ends when `Stubborn::let_go` says so.
    Wait,
}

#[derive(Debug)]
pub(crate) struct Stubborn {
    fake: Arc<FakeBrowser>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    opening: Mutex<VecDeque<Mood>>,
    closing: Mutex<VecDeque<Mood>>,
    adopting: Mutex<VecDeque<Mood>>,
    shutting: Mutex<VecDeque<Mood>>,
    reading: Mutex<VecDeque<Mood>>,
    planting: Mutex<VecDeque<Arrival>>,
    /// What its contexts say of themselves in place of the truth.
    footprint: Mutex<Option<watch::Sender<Footprint>>>,
    copied: Mutex<Option<watch::Sender<Copied>>>,
    /// The origin that is told to copies only when `Stubborn::let_go` says so.
    withheld: Mutex<Option<String>>,
    /// What each origin keeps that can be written nowhere else.
    fixed: Mutex<Option<String>>,
    specs: Mutex<Vec<ContextSpec>>,
    /// Whether who waits for its end hears of it only when `Stubborn::let_go` says so.
    dies_quietly: AtomicBool,
    gate: Semaphore,
    asked: AtomicUsize,
    /// How often the cookies of a context were read for a copy.
    read: AtomicUsize,
    open: AtomicUsize,
}

#[derive(Debug)]
struct StubbornContext {
    inner: Arc<dyn Context>,
    shared: Arc<Shared>,
}

/// A context that is read.
#[derive(Debug)]
struct StubbornSource {
    inner: Arc<dyn Source>,
    shared: Arc<Shared>,
}

#[async_trait]
impl Source for StubbornSource {
    async fn cookies(&self) -> Result<Vec<Cookie>> {
        self.shared.read.fetch_add(1, Ordering::SeqCst);
        self.shared.feel(&self.shared.reading).await?;
        self.inner.cookies().await
    }

    async fn origins(&self) -> Result<Vec<String>> {
        self.inner.origins().await
    }

    async fn kept(&self, origin: &str) -> Result<OriginStorage> {
        let withheld = self.shared.withheld.lock().unwrap().as_deref() == Some(origin);
        if withheld {
            self.shared.gate.acquire().await.unwrap().forget();
        }
        let mut kept = self.inner.kept(origin).await?;
        kept.left_out.extend(self.shared.fixed.lock().unwrap().clone());
        Ok(kept)
    }
}

impl Stubborn {
    pub(crate) fn new() -> Arc<Self> {
        let shared = Shared {
            opening: Mutex::default(),
            closing: Mutex::default(),
            adopting: Mutex::default(),
            shutting: Mutex::default(),
            reading: Mutex::default(),
            planting: Mutex::default(),
            footprint: Mutex::default(),
            copied: Mutex::default(),
            withheld: Mutex::default(),
            fixed: Mutex::default(),
            specs: Mutex::default(),
            dies_quietly: AtomicBool::new(false),
            gate: Semaphore::new(0),
            asked: AtomicUsize::new(0),
            read: AtomicUsize::new(0),
            open: AtomicUsize::new(0),
        };
        Arc::new(Self { fake: FakeBrowser::new(), shared: Arc::new(shared) })
    }

    /// The moods of the next openings; good ones after that.
    pub(crate) fn opens(&self, moods: &[Mood]) {
        self.shared.opening.lock().unwrap().extend(moods);
    }

    pub(crate) fn closes(&self, moods: &[Mood]) {
        self.shared.closing.lock().unwrap().extend(moods);
    }

    pub(crate) fn adopts(&self, moods: &[Mood]) {
        self.shared.adopting.lock().unwrap().extend(moods);
    }

    /// The moods in which it is asked to keep its pages from a port.
    pub(crate) fn shuts(&self, moods: &[Mood]) {
        self.shared.shutting.lock().unwrap().extend(moods);
    }

    /// The moods of the next readings of contexts that are copied.
    pub(crate) fn reads(&self, moods: &[Mood]) {
        self.shared.reading.lock().unwrap().extend(moods);
    }

    pub(crate) fn withholds(&self, origin: &str) {
        *self.shared.withheld.lock().unwrap() = Some(origin.to_owned());
    }

    /// From now on every origin keeps this, which cannot be written elsewhere.
    pub(crate) fn keeps_fixed(&self, what: &str) {
        *self.shared.fixed.lock().unwrap() = Some(what.to_owned());
    }

    /// From now on contexts were where this says.
    pub(crate) fn tells_footprint(&self, footprint: Footprint) -> watch::Sender<Footprint> {
        self.shared.footprint.lock().unwrap().insert(watch::Sender::new(footprint)).clone()
    }

    /// From now on contexts have arrived as far as this says.
    pub(crate) fn tells_copied(&self, copied: Copied) -> watch::Sender<Copied> {
        self.shared.copied.lock().unwrap().insert(watch::Sender::new(copied)).clone()
    }

    /// How the next pages of copies arrive; all there after that.
    pub(crate) fn plants(&self, arrivals: &[Arrival]) {
        self.shared.planting.lock().unwrap().extend(arrivals);
    }

    /// How often a context was read for a copy.
    pub(crate) fn read(&self) -> usize {
        self.shared.read.load(Ordering::SeqCst)
    }

    /// The kinds of context that were asked for; where their downloads go is each one's own.
    pub(crate) fn specs(&self) -> Vec<ContextSpec> {
        let specs = self.shared.specs.lock().unwrap().clone();
        specs.into_iter().map(|spec| ContextSpec { downloads: None, ..spec }).collect()
    }

    pub(crate) fn closes_left(&self) -> usize {
        self.shared.closing.lock().unwrap().len()
    }

    pub(crate) fn adopts_left(&self) -> usize {
        self.shared.adopting.lock().unwrap().len()
    }

    pub(crate) fn shuts_left(&self) -> usize {
        self.shared.shutting.lock().unwrap().len()
    }

    pub(crate) fn dies_quietly(&self) {
        self.shared.dies_quietly.store(true, Ordering::SeqCst);
    }

    pub(crate) fn let_go(&self) {
        self.shared.gate.add_permits(1);
    }

    /// How many contexts were asked for.
    pub(crate) fn asked(&self) -> usize {
        self.shared.asked.load(Ordering::SeqCst)
    }

    /// How many contexts are open.
    pub(crate) fn open(&self) -> usize {
        self.shared.open.load(Ordering::SeqCst)
    }
}

impl Shared {
    async fn feel(&self, moods: &Mutex<VecDeque<Mood>>) -> Result<()> {
        let mood = moods.lock().unwrap().pop_front().unwrap_or(Mood::Good);
        match mood {
            Mood::Good => Ok(()),
            Mood::Fail => Err(DriverError::BrowserGone("it is in a mood.".into())),
            Mood::Refuse => Err(DriverError::Unsupported("not now".into())),
            Mood::Late => Err(DriverError::Late("it sleeps".into())),
            Mood::Panic => panic!("the driver has a defect"),
            Mood::Hang => std::future::pending().await,
            Mood::Wait => {
                self.gate.acquire().await.unwrap().forget();
                Ok(())
            }
        }
    }
}

#[async_trait]
impl Browser for Stubborn {
    fn info(&self) -> BrowserInfo {
        self.fake.info()
    }

    async fn open_context(&self, spec: &ContextSpec) -> Result<Arc<dyn Context>> {
        self.shared.specs.lock().unwrap().push(spec.clone());
        self.shared.asked.fetch_add(1, Ordering::SeqCst);
        self.shared.feel(&self.shared.opening).await?;
        let inner = self.fake.open_context(spec).await?;
        self.shared.open.fetch_add(1, Ordering::SeqCst);
        Ok(Arc::new(StubbornContext { inner, shared: Arc::clone(&self.shared) }))
    }

    async fn keep_only(&self, contexts: &[Handle]) -> Result<usize> {
        self.fake.keep_only(contexts).await
    }

    async fn contexts(&self) -> Result<usize> {
        self.fake.contexts().await
    }

    async fn shut_door(&self, endpoint: &str) -> Result<()> {
        self.shared.feel(&self.shared.shutting).await?;
        self.fake.shut_door(endpoint).await
    }

    async fn gone(&self) -> String {
        if let Some(why) = self.fake.gone().now_or_never() {
            return why;
        }
        let why = self.fake.gone().await;
        if self.shared.dies_quietly.load(Ordering::SeqCst) {
            self.shared.gate.acquire().await.unwrap().forget();
        }
        why
    }

    async fn end(&self) -> Result<()> {
        self.fake.end().await
    }

    async fn adopt_context(&self, context: &Handle, spec: &ContextSpec, pages: &[PageRecord]) -> Result<Adopted> {
        self.shared.feel(&self.shared.adopting).await?;
        let Adopted { context, pages } = self.fake.adopt_context(context, spec, pages).await?;
        Ok(Adopted { context: Arc::new(StubbornContext { inner: context, shared: Arc::clone(&self.shared) }), pages })
    }
}

#[async_trait]
impl Context for StubbornContext {
    fn handle(&self) -> &Handle {
        self.inner.handle()
    }

    async fn open_page(&self) -> Result<Arc<dyn Page>> {
        self.inner.open_page().await
    }

    async fn close(&self) -> Result<()> {
        self.shared.feel(&self.shared.closing).await?;
        self.shared.open.fetch_sub(1, Ordering::SeqCst);
        self.inner.close().await
    }

    async fn cookies(&self) -> Result<Vec<Cookie>> {
        self.inner.cookies().await
    }

    async fn set_cookies(&self, cookies: &[Cookie]) -> Result<Vec<usize>> {
        self.inner.set_cookies(cookies).await
    }

    async fn clear_cookies(&self) -> Result<()> {
        self.inner.clear_cookies().await
    }

    fn source(&self) -> Option<Arc<dyn Source>> {
        let inner = self.inner.source()?;
        Some(Arc::new(StubbornSource { inner, shared: Arc::clone(&self.shared) }))
    }

    fn copied(&self) -> watch::Receiver<Copied> {
        self.shared.copied.lock().unwrap().as_ref().map_or_else(|| self.inner.copied(), watch::Sender::subscribe)
    }

    fn footprint(&self) -> watch::Receiver<Footprint> {
        self.shared.footprint.lock().unwrap().as_ref().map_or_else(|| self.inner.footprint(), watch::Sender::subscribe)
    }

    fn take_visits(&self) -> BTreeSet<String> {
        self.inner.take_visits()
    }

    async fn open_seeded(&self, seed: &PageSeed) -> Result<Planted> {
        let Planted { page, arrival } = self.inner.open_seeded(seed).await?;
        let told = self.shared.planting.lock().unwrap().pop_front();
        Ok(Planted { page, arrival: told.unwrap_or(arrival) })
    }

    fn emulation(&self) -> Emulation {
        self.inner.emulation()
    }

    async fn emulate(&self, wanted: &Emulation) -> Result<()> {
        self.inner.emulate(wanted).await
    }

    fn downloads(&self) -> watch::Receiver<Vec<Download>> {
        self.inner.downloads()
    }

    fn popups(&self) -> mpsc::Receiver<Popup> {
        self.inner.popups()
    }
}
