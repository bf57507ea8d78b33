//! A context as something to copy, and as a copy. Cookies are there when a copy opens. What origins keep follows in the
//! background; documents of an origin that is on its way wait for it (`page/requests.rs`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::{
    Beginning, Context, Cookie, DATABASES, DriverError, Leisure, Opening, OriginStorage, Page, PageSeed, Planted, Result, Source,
    StorageItem, failpoint, origin_of,
};
use tokio_util::task::AbortOnDropHandle;

use super::hidden::HiddenTabs;
use super::{CdpContext, closed};
use crate::page::CdpPage;

/// How long a page of the source is asked what its origin keeps; one that is busy is not waited for.
const ASKING: Duration = Duration::from_secs(3);

/// More of one origin than is copied; the rest is said. A reply must fit into a frame.
const MAX_BYTES: u64 = 64 << 20;

/// More frames than are opened in a hidden tab to be read.
const MAX_FRAMES: usize = 16;

/// A living context. It can be read for as long as that is open, and is never changed.
#[derive(Debug)]
pub(super) struct LiveSource {
    context: Weak<CdpContext>,
    tabs: HiddenTabs,
}

/// What an origin answers.
#[derive(Deserialize)]
struct Kept {
    origin: String,
    items: Vec<(String, String)>,
    databases: Vec<Value>,
    left: Vec<String>,
}

impl LiveSource {
    pub(super) fn of(context: Weak<CdpContext>) -> Self {
        Self { tabs: HiddenTabs::of(Weak::clone(&context)), context }
    }

    fn open(&self) -> Result<Arc<CdpContext>> {
        self.context.upgrade().filter(|context| !context.is_closed()).ok_or_else(closed)
    }

    /// Those that are there anyway: asking one takes a message and no new renderer.
    fn pages_at(&self, origin: &str) -> Vec<Arc<CdpPage>> {
        let mut pages = self.open().map(|context| context.pages()).unwrap_or_default();
        pages.retain(|page| !page.state().is_stuck() && origin_of(&page.url()).as_deref() == Some(origin));
        pages
    }

    async fn read_in_page(&self, origin: &str) -> Option<Value> {
        let pages = self.pages_at(origin);
        let reading = pages.first()?.in_storage(reader(), vec![json!(MAX_BYTES)]);
        tokio::time::timeout(ASKING, reading).await.ok()?.ok()
    }

    async fn read_in_frame(&self, origin: &str, frame: &str) -> Option<Value> {
        let (pages, arguments) = (self.pages_at(origin), [json!(MAX_BYTES)]);
        let reading = futures::future::join_all(pages.iter().map(|page| page.in_frame_storage(frame, reader(), &arguments)));
        tokio::time::timeout(ASKING, reading).await.ok()?.into_iter().flatten().next()
    }
}

#[async_trait]
impl Source for LiveSource {
    async fn cookies(&self) -> Result<Vec<Cookie>> {
        self.open()?.all_cookies().await
    }

    async fn origins(&self) -> Result<Vec<String>> {
        let context = self.open()?;
        let shown = context.pages().into_iter().filter_map(|page| origin_of(&page.url()));
        let mut origins: Vec<String> = Vec::new();
        for origin in shown.chain(context.world.origins.known()) {
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        Ok(origins)
    }

    async fn kept(&self, origin: &str) -> Result<OriginStorage> {
        let (origins, windows) = self.open().map(|context| (Arc::clone(&context.world.origins), Arc::clone(&context.windows)))?;
        // A copy that is being filled has not got it yet.
        origins.arrival(origin).await;
        // Reading comes before writing: the source may go, the copies stay.
        let _reading = windows.leisure.opening();
        let value = match self.read_in_page(origin).await.map(Kept::deserialize) {
            // The page may have gone elsewhere meanwhile.
            Some(Ok(kept)) if kept.origin == origin => return Ok(kept.into()),
            _ => self.tabs.call(origin, reader(), &[json!(MAX_BYTES)]).await?,
        };
        understood(value)
    }

    /// In a frame that is there anyway, or in one in a hidden tab: it keeps the same there.
    async fn framed(&self, origin: &str) -> Result<Vec<OriginStorage>> {
        let origins = Arc::clone(&self.open()?.world.origins);
        origins.arrival(origin).await;
        let frames = origins.frames_in(origin);
        let mut all = Vec::new();
        for (at, frame) in frames.into_iter().enumerate() {
            let kept = match self.read_in_frame(origin, &frame).await {
                Some(value) => understood(value),
                None if at >= MAX_FRAMES => Err(DriverError::StorageRefused("there are too many frames".into())),
                None => self.tabs.call_in_frame(origin, &frame, reader(), &[json!(MAX_BYTES)]).await.and_then(understood),
            };
            all.push(kept.unwrap_or_else(|error| OriginStorage {
                origin: frame,
                left_out: vec![error.to_string()],
                ..OriginStorage::default()
            }));
        }
        Ok(all)
    }
}

fn understood(value: Value) -> Result<OriginStorage> {
    let kept = Kept::deserialize(value).map_err(|error| DriverError::StorageRefused(format!("it cannot be read: {error}")))?;
    Ok(kept.into())
}

impl From<Kept> for OriginStorage {
    fn from(kept: Kept) -> Self {
        Self {
            origin: kept.origin,
            local_storage: kept.items.into_iter().map(|(name, value)| StorageItem { name, value }).collect(),
            indexed_db: kept.databases,
            left_out: kept.left,
            framed: Vec::new(),
        }
    }
}

impl CdpContext {
    /// Gives it the cookies now, and the rest in its own time.
    pub(crate) async fn begin_with(self: &Arc<Self>, beginning: &Beginning) -> Result<()> {
        let opening = self.windows.leisure.opening();
        let source = Arc::clone(beginning.source());
        let cookies = source.cookies().await?;
        failpoint("copy-read");
        let refused = self.put_cookies(&cookies).await?;
        failpoint("copy-cookies-set");
        let named = refused.iter().map(|place| format!("{} of {}", cookies[*place].name, cookies[*place].domain));
        self.world.origins.cookies_arrived(cookies.len() - refused.len(), named);
        self.world.origins.expect(&source.origins().await?);
        self.fill_from(source, opening);
        Ok(())
    }

    /// Brings what a former daemon did not bring any more.
    pub(crate) fn go_on_with(self: &Arc<Self>, beginning: &Beginning) {
        // Its pages are where they were.
        self.world.origins.page_is_there();
        self.fill_from(Arc::clone(beginning.source()), self.windows.leisure.opening());
    }

    fn fill_from(self: &Arc<Self>, source: Arc<dyn Source>, opening: Opening) {
        if self.world.origins.is_waiting() {
            let filling = tokio::spawn(fill(Arc::downgrade(self), source, self.windows.leisure.clone(), opening));
            self.inner().filling = Some(AbortOnDropHandle::new(filling));
        }
    }

    pub(super) async fn open_page_like(&self, seed: &PageSeed) -> Result<Planted> {
        let page = self.open_page().await?;
        let own = self.page(&page.handle().0).ok_or(DriverError::PageGone)?;
        match own.grow(seed).await {
            Ok(arrival) => Ok(Planted { page, arrival }),
            Err(error) => {
                // With the context, if this fails.
                drop(page.close().await);
                Err(error)
            }
        }
    }
}

async fn fill(context: Weak<CdpContext>, source: Arc<dyn Source>, leisure: Leisure, opening: Opening) {
    let Some(origins) = context.upgrade().map(|context| Arc::clone(&context.world.origins)) else { return };
    let tabs = HiddenTabs::of(Weak::clone(&context));
    origins.fill(&*source, &leisure, opening, |kept| write(&tabs, kept)).await;
    if let Some(context) = context.upgrade() {
        context.pages().iter().for_each(|page| page.documents_need_not_wait());
    }
}

/// Says what its frames keep that could not be written.
async fn write(tabs: &HiddenTabs, kept: OriginStorage) -> Result<Vec<String>> {
    let items: Vec<_> = kept.local_storage.into_iter().map(|item| (item.name, item.value)).collect();
    tabs.call(&kept.origin, writer(), &[json!(items), Value::Array(kept.indexed_db)]).await?;
    failpoint("copy-origin-written");
    let mut left = Vec::new();
    for framed in kept.framed {
        let items: Vec<_> = framed.local_storage.into_iter().map(|item| (item.name, item.value)).collect();
        let arguments = [json!(items), Value::Array(framed.indexed_db)];
        if let Err(error) = tabs.call_in_frame(&kept.origin, &framed.origin, writer_where_empty(), &arguments).await {
            left.push(format!("in a frame of {}: {error}", framed.origin));
        }
    }
    Ok(left)
}

fn reader() -> &'static str {
    static READER: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let items = "Array.from({ length: localStorage.length }, (_, at) => localStorage.key(at)).map((name) => [name, localStorage.getItem(name)])";
        // A text with half a character in it has no form in which it could be handed on or saved: what became of it is said.
        let halved = "items.filter((item) => !item.every((text) => text.isWellFormed())).map(([name]) => \
            `localStorage ${JSON.stringify(name.slice(0, 100).toWellFormed())}: half a character in it became U+FFFD`)";
        let whole = "items.map((item) => item.map((text) => text.toWellFormed()))";
        format!(
            "async function (limit) {{ const items = {items}, kept = await ({DATABASES}).dump(limit); \
             return {{ ...kept, origin: location.origin, items: {whole}, left: [...{halved}, ...kept.left] }}; }}"
        )
    });
    &READER
}

/// Pages of one site share what a frame keeps in them: what came with another page, and was used since, stays as it is.
fn writer_where_empty() -> &'static str {
    static WRITER: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let is_used = "localStorage.length > 0 || (await indexedDB.databases()).length > 0";
        format!("async function (...all) {{ if ({is_used}) return; return ({})(...all); }}", writer())
    });
    &WRITER
}

fn writer() -> &'static str {
    static WRITER: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let set = "for (const [name, value] of items) localStorage.setItem(name, value)";
        format!("async function (items, databases) {{ {set}; await ({DATABASES}).load(databases); }}")
    });
    &WRITER
}
