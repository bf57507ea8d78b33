//! A fake context as something to copy, and as a copy.

use std::sync::{Arc, Weak};

use async_trait::async_trait;

use super::page::FakePage;
use super::{FakeContext, locked, visit};
use crate::{
    ARRIVING, Arrival, Beginning, Cookie, DriverError, Leisure, Navigation, OriginStorage, Page, PageSeed, Planted, Result, Source,
    origin_of,
};

/// A living context. It can be read for as long as that is open.
#[derive(Debug)]
pub(super) struct FakeSource(Weak<FakeContext>);

impl FakeSource {
    pub(super) fn of(context: Weak<FakeContext>) -> Self {
        Self(context)
    }

    fn open(&self) -> Result<Arc<FakeContext>> {
        let context = self.0.upgrade().filter(|context| locked(&context.pages).is_some());
        context.ok_or_else(|| DriverError::BrowserGone("its context was closed.".into()))
    }
}

#[async_trait]
impl Source for FakeSource {
    async fn cookies(&self) -> Result<Vec<Cookie>> {
        Ok(self.open()?.cookies.all())
    }

    async fn origins(&self) -> Result<Vec<String>> {
        let context = self.open()?;
        let mut origins: Vec<String> = Vec::new();
        let shown: Vec<_> = locked(&context.pages).iter().flatten().filter_map(|page| origin_of(&page.url())).collect();
        for origin in shown.into_iter().chain(context.origins.known()) {
            if !origins.contains(&origin) {
                origins.push(origin);
            }
        }
        Ok(origins)
    }

    async fn kept(&self, origin: &str) -> Result<OriginStorage> {
        let context = self.open()?;
        // A copy that is being filled has not got it yet.
        context.origins.arrival(origin).await;
        Ok(context.cookies.kept(origin))
    }
}

impl FakeContext {
    /// Cookies now, the rest in its own time.
    pub(super) async fn begin_with(&self, beginning: &Beginning) -> Result<()> {
        let source = Arc::clone(beginning.source());
        let cookies = source.cookies().await?;
        let refused: Vec<_> = cookies.iter().filter(|cookie| !self.cookies.take(cookie)).collect();
        let names = refused.iter().map(|cookie| format!("{} of {}", cookie.name, cookie.domain));
        self.origins.cookies_arrived(cookies.len() - refused.len(), names);
        self.origins.expect(&source.origins().await?);
        self.fill_from(beginning);
        Ok(())
    }

    pub(super) fn fill_from(&self, beginning: &Beginning) {
        let source = Arc::clone(beginning.source());
        let (origins, jar) = (Arc::clone(&self.origins), Arc::clone(&self.cookies));
        locked(&self.filling).spawn(async move {
            let leisure = Leisure::default();
            origins.page_is_there();
            origins.fill(&*source, &leisure, leisure.opening(), |kept| std::future::ready(jar.put_kept(kept).map(|()| Vec::new()))).await;
        });
    }

    pub(super) async fn add_seeded(&self, seed: &PageSeed) -> Result<Planted> {
        let page = self.add_page(visit::BLANK.to_owned())?;
        self.origins.arrival(&seed.url).await;
        let arrival = match tokio::time::timeout(ARRIVING, page.navigate(Navigation::To(&seed.url))).await {
            Err(_) => return Ok(Planted { page, arrival: Arrival::Unanswered }),
            Ok(Err(error)) if !error.is_unreached() => {
                page.end();
                return Err(error);
            }
            Ok(_) => Arrival::There,
        };
        for kept in &seed.session_storage {
            page.session_storage.put(&kept.origin, &kept.items)?;
        }
        Ok(Planted { page, arrival })
    }
}

impl FakePage {
    /// Comes when what this address keeps is there, or with the end of the page.
    pub(super) async fn filled(&self, url: &str) {
        let Some(context) = self.context.upgrade() else { return };
        context.origins.visited(url);
        tokio::select! {
            biased;
            () = self.closed() => {}
            () = context.origins.arrival(url) => {}
        }
    }
}
