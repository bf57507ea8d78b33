//! Gives a new context the cookies and storage it is to begin with. Storage belongs to origins, so a page goes to each of
//! them; what it asks for is answered here, and nothing reaches the network.

use std::sync::Arc;

use serde_json::value::RawValue;
use tabmux_driver::{DriverError, HOUSEKEEPING, Navigation, OriginStorage, Page, Result, Source, StorageArea};

use super::CdpContext;
use crate::CdpError;
use crate::connection::{Connection, Listener};
use crate::event::read;
use crate::page::CdpPage;
use crate::protocol::{Event, fetch};

impl CdpContext {
    pub(crate) async fn begin_with(&self, source: &dyn Source) -> Result<()> {
        let cookies = source.cookies().await?;
        let refused = self.put_cookies(&cookies).await?;
        let named = refused.iter().map(|cookie| format!("{} of {}", cookie.name, cookie.domain));
        self.world.origins.cookies_arrived(cookies.len() - refused.len(), named);
        self.world.origins.expect(&source.origins().await?);
        self.world.origins.fill(source, |kept| self.put_kept(kept)).await;
        Ok(())
    }

    async fn put_kept(&self, kept: OriginStorage) -> Result<()> {
        let fresh = self.make_target(self.turn().await).await?;
        // It is gone before anybody may take it for a page of the context.
        self.inner().forget(fresh.id());
        let page = CdpPage::attach(&self.connection, fresh.id(), "about:blank".into(), &self.world).await?;
        let filled = self.fill(&page, &[kept]).await;
        page.close().await?;
        fresh.kept();
        filled
    }

    async fn fill(&self, page: &Arc<CdpPage>, origins: &[OriginStorage]) -> Result<()> {
        let offline = Offline { page: Arc::clone(page), connection: self.connection.clone() };
        self.connection.listen(page.session(), Arc::new(offline));
        self.connection.call_in(Some(page.session()), &fetch::Enable::default(), HOUSEKEEPING).await?;
        for kept in origins {
            let items: Vec<_> = kept.local_storage.iter().map(|item| (item.name.clone(), Some(item.value.clone()))).collect();
            page.navigate(Navigation::To(&format!("{}/", kept.origin.trim_end_matches('/')))).await?;
            let at_origin = |error| match error {
                DriverError::StorageRefused(why) => DriverError::StorageRefused(format!("{why}, at {}", kept.origin)),
                other => other,
            };
            page.set_storage(StorageArea::Local, &items).await.map_err(at_origin)?;
            page.load_databases(&kept.indexed_db).await.map_err(at_origin)?;
        }
        Ok(())
    }
}

/// Answers everything the page asks for with an empty document.
#[derive(Debug)]
struct Offline {
    page: Arc<CdpPage>,
    connection: Connection,
}

impl Listener for Offline {
    fn event(&self, method: &str, params: &RawValue) {
        if method != fetch::RequestPaused::METHOD {
            return self.page.hear(method, params);
        }
        let Some(paused) = read::<fetch::RequestPaused>(params) else { return };
        let html = fetch::HeaderEntry { name: "Content-Type".into(), value: "text/html".into() };
        let answer = fetch::FulfillRequest {
            request_id: paused.request_id,
            response_code: 200,
            response_headers: Some(vec![html]),
            ..fetch::FulfillRequest::default()
        };
        // Queued by now; whether it arrived shows in the navigation.
        drop(self.connection.send(Some(self.page.session()), &answer));
    }

    fn gone(&self, why: &CdpError) {
        self.page.state().lost(why);
    }
}
