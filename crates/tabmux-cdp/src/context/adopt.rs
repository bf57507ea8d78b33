//! The pages of a context after a restart of the daemon: found again, joined, or closed where nobody can know them.

use std::sync::Arc;

use tabmux_driver::{DriverError, HOUSEKEEPING, Handle, Page, PageRecord, Result};

use super::{CdpContext, Unit, is_hidden};
use crate::page::{CdpPage, Memento};
use crate::protocol::Command;
use crate::protocol::target::{self, TargetInfo};

/// `Target.detachFromTarget` by target, for an attachment whose name nobody knows any more. The protocol's list calls the
/// field deprecated, so it is not generated.
#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
struct DetachFormer {
    target_id: String,
}

impl Command for DetachFormer {
    const METHOD: &'static str = target::DetachFromTarget::METHOD;
    type Reply = crate::protocol::Empty;
}

impl CdpContext {
    /// The pages of a former daemon that still live, and those that opened while there was none. One that does not answer
    /// holds up no other.
    pub(crate) async fn adopt(self: &Arc<Self>, records: &[PageRecord]) -> Result<Vec<(Handle, Arc<dyn Page>)>> {
        let _turn = self.turn().await;
        let mut targets = self.connection.call_in(None, &target::GetTargets::default(), HOUSEKEEPING).await?.target_infos;
        targets.retain(|info| {
            info.kind == "page" && !is_hidden(info) && self.is_own(info, records) && !self.inner().gone.contains(&info.target_id)
        });
        let finding = records.iter().filter_map(|record| {
            let info = targets.iter().find(|info| info.target_id == record.handle.0)?;
            Some(async move { (record.handle.clone(), self.find_again(info, record).await) })
        });
        let mut found: Vec<(Handle, Arc<dyn Page>)> = Vec::new();
        for (handle, page) in futures::future::join_all(finding).await {
            if let Some(page) = page? {
                found.push((handle, page));
            }
        }
        // What was on its way to a record when the former daemon died. Elsewhere a blank page may be anybody's.
        for info in targets.extract_if(.., |info| self.is_cradle(info) && records.iter().all(|record| record.handle.0 != info.target_id)) {
            self.close_target(&info.target_id).await;
        }
        // Where pages are shared, those of a session without any are not known from others'.
        if !records.is_empty() || matches!(self.unit, Unit::Context) {
            targets.retain(|info| records.iter().all(|record| record.handle.0 != info.target_id));
            targets.into_iter().for_each(|info| self.left_over(info));
        }
        Ok(found)
    }

    /// Among those who share the profile only the records say whose a page is, and whose those that it opened.
    fn is_own(&self, info: &TargetInfo, records: &[PageRecord]) -> bool {
        let recorded = |id: &String| records.iter().any(|record| record.handle.0 == *id);
        match self.unit {
            Unit::Context => info.browser_context_id.as_ref() == Some(&self.handle.0),
            Unit::Tabs | Unit::Windows(_) => {
                recorded(&info.target_id) || info.opener_id.as_ref().is_some_and(recorded) || self.is_cradle(info)
            }
        }
    }

    async fn find_again(&self, info: &TargetInfo, record: &PageRecord) -> Result<Option<Arc<CdpPage>>> {
        let id = &info.target_id;
        if let Some(page) = self.page(id) {
            // One that we closed may not yet be gone from the browser's list.
            return Ok(Some(page).filter(|page| !page.state().is_gone()));
        }
        let memento = record.memento.as_deref().and_then(Memento::read);
        let resumed = match memento {
            Some(memento) => CdpPage::resume(&self.connection, id, memento, &self.world).await.ok(),
            None => None,
        };
        let attached = match resumed {
            Some(page) => Ok(page),
            None => self.attach_again(id, info.url.clone()).await,
        };
        match attached {
            Ok(page) => {
                self.keep(id, &page)?;
                Ok(Some(page))
            }
            Err(gone @ DriverError::BrowserGone(_)) => Err(gone),
            // It is given up, so that the others are not.
            Err(error) => {
                tracing::warn!(%error, target = id, "a page cannot be attached to after the restart and is closed");
                self.close_target(id).await;
                Ok(None)
            }
        }
    }

    /// A page of this context that is on no record: it joins, but for one that the former daemon had only just made.
    fn left_over(self: &Arc<Self>, info: TargetInfo) {
        if self.has(&info.target_id) || self.inner().coming.contains(&info.target_id) {
            return;
        }
        let context = Arc::clone(self);
        tokio::spawn(async move {
            if info.opener_id.is_some() || info.url != "about:blank" {
                // The former daemon may have been attached to it, and not have said so to anybody.
                context.detach_former(&info.target_id).await;
                context.arrived(info);
            } else {
                context.close_target(&info.target_id).await;
            }
        });
    }

    /// The former daemon's attachment lives on in the browser and would go on pausing requests and changing what the page sees.
    async fn attach_again(&self, target: &str, url: String) -> Result<Arc<CdpPage>> {
        self.detach_former(target).await;
        let (page, prepared) = CdpPage::meet(&self.connection, target, url, &self.world).await?;
        page.prepared_or_stuck(prepared).await?;
        Ok(page)
    }

    async fn detach_former(&self, target: &str) {
        let detach = DetachFormer { target_id: target.to_owned() };
        // Refused: there is none.
        drop(self.connection.call_in(None, &detach, HOUSEKEEPING).await);
    }
}
