//! Pages that come up in a context without anybody here having asked for them: pages of it opened them.

use std::sync::Arc;
use std::time::Instant;

use tabmux_driver::{DriverError, HOUSEKEEPING, Handle, Popup, Result, is_for_pages};
use url::Url;

use super::{CdpContext, closed, is_hidden};
use crate::page::{CdpPage, Met};
use crate::protocol::target::{GetTargetInfo, TargetInfo};
use crate::windows::Turn;

impl CdpContext {
    /// The browser made a page in this context, and attached us to it before it begins: it is prepared and let go at once, whoever's it will be.
    pub(crate) fn attached(self: &Arc<Self>, info: TargetInfo, session: String) {
        let met = CdpPage::let_begin(&self.connection, session, &info.target_id, &self.world);
        self.comes(info, Some(met));
    }

    /// The browser made a page in this context. Called by the reader: what takes time goes to a task.
    pub(crate) fn arrived(self: &Arc<Self>, info: TargetInfo) {
        self.comes(info, None);
    }

    fn comes(self: &Arc<Self>, info: TargetInfo, met: Option<Met>) {
        // By whatever way it comes, it comes once.
        if self.has(&info.target_id) || !self.inner().coming.insert(info.target_id.clone()) {
            return;
        }
        if let Some(opener) = info.opener_id.as_ref().and_then(|opener| self.page(opener)) {
            // A page that says who opened it needs no wish.
            opener.state().take_asked(&info.url, Instant::now());
        }
        let context = Arc::clone(self);
        tokio::spawn(async move {
            if let Err(error) = context.welcome(&info, met).await {
                tracing::debug!(%error, target = info.target_id, "a page that opened was not taken in");
            }
            context.inner().coming.remove(&info.target_id);
        });
    }

    /// A page that nobody here asked for was opened by a page of this context: it joins it, or nobody would ever close it.
    async fn welcome(&self, info: &TargetInfo, met: Option<Met>) -> Result<()> {
        let turn = self.turn().await;
        // Also one that was made here, and given up.
        if self.windows.has_made(&info.target_id) || self.inner().gone.contains(&info.target_id) {
            return self.leave(met).await;
        }
        let url = self.address_of(info).await;
        if is_hidden(&TargetInfo { url: url.clone(), ..info.clone() }) {
            self.inner().forget(&info.target_id);
            self.close_target(&info.target_id).await;
            return Ok(());
        }
        if Url::parse(&url).is_ok_and(|url| !is_for_pages(&url)) {
            // A person's settings or files: no page opened it, and it stays theirs.
            return self.leave(met).await;
        }
        self.owns_downloads_of(&info.target_id);
        let joined = self.join(turn, info, met).await;
        if joined.is_err() {
            self.inner().pages.as_mut().and_then(|pages| pages.remove(&info.target_id));
            self.close_target(&info.target_id).await;
        }
        joined
    }

    /// It is none of this context's, and stays as it is.
    async fn leave(&self, met: Option<Met>) -> Result<()> {
        match met {
            Some((page, _)) => self.detach(&page).await,
            None => Ok(()),
        }
    }

    /// Where it is, or is about to be; when it was made that may not have been known yet.
    async fn address_of(&self, info: &TargetInfo) -> String {
        if info.opener_id.is_some() || !info.url.is_empty() {
            return info.url.clone();
        }
        let ask = GetTargetInfo { target_id: Some(info.target_id.clone()) };
        self.connection.call_in(None, &ask, HOUSEKEEPING).await.map(|now| now.target_info.url).unwrap_or_default()
    }

    /// Nobody waits for a page that does not answer: the turn ends as soon as it is one of this context's, and what it is made to see is on its way.
    async fn join(&self, turn: Turn, info: &TargetInfo, met: Option<Met>) -> Result<()> {
        if self.is_closed() {
            return Err(closed());
        }
        let began_unseen = met.is_none();
        let (page, prepared) = match met {
            Some(met) => met,
            None => CdpPage::meet(&self.connection, &info.target_id, "about:blank".into(), &self.world).await?,
        };
        if began_unseen {
            page.give_word();
        }
        self.keep(&info.target_id, &page)?;
        drop(turn);
        page.prepared_or_stuck(prepared).await?;
        if began_unseen {
            page.catch_up().await?;
            page.as_emulated().await;
        } else {
            page.has_begun().await;
        }
        let popup = Popup { page, opener: info.opener_id.clone().map(Handle) };
        let sent = self.inner().popups.try_send(popup);
        sent.map_err(|_| DriverError::Busy("too many pages wait to be taken in".into()))
    }
}
