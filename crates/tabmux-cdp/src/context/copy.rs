//! A context as something to copy, and as a copy. Cookies are there when a copy opens. What origins keep follows in the
//! background; documents of an origin that is on its way wait for it (`page/requests.rs`).

use std::sync::{Arc, Weak};
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::{
    Beginning, Context, Cookie, DATABASES, DriverError, Leisure, Opening, OriginStorage, Page, PageSeed, Result, Source, StorageItem,
    failpoint, origin_of,
};
use tokio_util::task::AbortOnDropHandle;

use super::hidden::HiddenTabs;
use super::{CdpContext, closed};

/// How long a page of the source is asked what its origin keeps; one that is busy is not waited for.
const ASKING: Duration = Duration::from_secs(3);

/// More of one origin than is copied; the rest is said. A reply must fit into a frame.
const MAX_BYTES: u64 = 64 << 20;

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

    /// In a page that is there anyway, which needs one message and no new renderer.
    async fn read_in_page(&self, origin: &str) -> Option<Value> {
        let mut pages = self.open().ok()?.pages();
        pages.retain(|page| !page.state().is_stuck() && origin_of(&page.url()).as_deref() == Some(origin));
        let reading = pages.first()?.in_storage(reader(), vec![json!(MAX_BYTES)]);
        tokio::time::timeout(ASKING, reading).await.ok()?.ok()
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
        let value = match self.read_in_page(origin).await.map(Kept::deserialize) {
            // The page may have gone elsewhere meanwhile.
            Some(Ok(kept)) if kept.origin == origin => return Ok(kept.into()),
            _ => self.tabs.call(origin, reader(), &[json!(MAX_BYTES)]).await?,
        };
        let kept = Kept::deserialize(value).map_err(|error| DriverError::StorageRefused(format!("it cannot be read: {error}")))?;
        Ok(kept.into())
    }
}

impl From<Kept> for OriginStorage {
    fn from(kept: Kept) -> Self {
        Self {
            origin: kept.origin,
            local_storage: kept.items.into_iter().map(|(name, value)| StorageItem { name, value }).collect(),
            indexed_db: kept.databases,
            left_out: kept.left,
        }
    }
}

impl CdpContext {
    /// Gives it the cookies now, and the rest in its own time.
    pub(crate) async fn begin_with(self: &Arc<Self>, beginning: &Beginning, leisure: &Leisure) -> Result<()> {
        let opening = leisure.opening();
        let source = Arc::clone(beginning.source());
        let cookies = source.cookies().await?;
        failpoint("copy-read");
        let refused = self.put_cookies(&cookies).await?;
        failpoint("copy-cookies-set");
        let named = refused.iter().map(|cookie| format!("{} of {}", cookie.name, cookie.domain));
        self.world.origins.cookies_arrived(cookies.len() - refused.len(), named);
        self.world.origins.expect(&source.origins().await?);
        if self.world.origins.is_waiting() {
            let filling = tokio::spawn(fill(Arc::downgrade(self), source, leisure.clone(), opening));
            self.inner().filling = Some(AbortOnDropHandle::new(filling));
        }
        Ok(())
    }

    pub(super) async fn open_page_like(&self, seed: &PageSeed) -> Result<Arc<dyn Page>> {
        let page = self.open_page().await?;
        let own = self.page(&page.handle().0).ok_or(DriverError::PageGone)?;
        if let Err(error) = own.grow(seed).await {
            // With the context, if this fails.
            drop(page.close().await);
            return Err(error);
        }
        Ok(page)
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

async fn write(tabs: &HiddenTabs, kept: OriginStorage) -> Result<()> {
    let items: Vec<_> = kept.local_storage.into_iter().map(|item| (item.name, item.value)).collect();
    tabs.call(&kept.origin, writer(), &[json!(items), Value::Array(kept.indexed_db)]).await?;
    failpoint("copy-origin-written");
    Ok(())
}

fn reader() -> &'static str {
    static READER: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let items = "Array.from({ length: localStorage.length }, (_, at) => localStorage.key(at)).map((name) => [name, localStorage.getItem(name)])";
        format!("async function (limit) {{ return {{ origin: location.origin, items: {items}, ...(await ({DATABASES}).dump(limit)) }}; }}")
    });
    &READER
}

fn writer() -> &'static str {
    static WRITER: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
        let set = "for (const [name, value] of items) localStorage.setItem(name, value)";
        format!("async function (items, databases) {{ {set}; await ({DATABASES}).load(databases); }}")
    });
    &WRITER
}
