//! The cookies of a context, in the driver's words.

use tabmux_driver::{Cookie, HOUSEKEEPING, Result, SameSite};

use super::CdpContext;
use crate::CdpError;
use crate::protocol::network::{self, CookieParam, CookiePartitionKey};
use crate::protocol::storage::{ClearCookies, GetCookies, SetCookies};

/// How many messages are on their way at once where each cookie needs its own.
const AT_ONCE: usize = 100;

impl CdpContext {
    pub(super) async fn all_cookies(&self) -> Result<Vec<Cookie>> {
        let cookies =
            self.connection.call_in(None, &GetCookies { browser_context_id: self.browser_context() }, HOUSEKEEPING).await?.cookies;
        Ok(cookies.into_iter().map(told).collect())
    }

    /// All at once, which is much faster; Chromium refuses the whole batch for one bad cookie, so then each by itself. Gives
    /// those that were refused.
    pub(super) async fn put_cookies<'a>(&self, cookies: &'a [Cookie]) -> Result<Vec<&'a Cookie>> {
        if cookies.is_empty() {
            return Ok(Vec::new());
        }
        match self.put(cookies).await {
            Ok(()) => return Ok(Vec::new()),
            Err(CdpError::Refused { .. }) => {}
            Err(other) => return Err(other.into()),
        }
        let mut refused = Vec::new();
        for some in cookies.chunks(AT_ONCE) {
            let putting = some.iter().map(|cookie| async move { (cookie, self.put(std::slice::from_ref(cookie)).await) });
            for (cookie, put) in futures::future::join_all(putting).await {
                match put {
                    Ok(()) => {}
                    Err(CdpError::Refused { .. }) => refused.push(cookie),
                    Err(other) => return Err(other.into()),
                }
            }
        }
        Ok(refused)
    }

    async fn put(&self, cookies: &[Cookie]) -> crate::Result<()> {
        let set = SetCookies { cookies: cookies.iter().map(asked).collect(), browser_context_id: self.browser_context() };
        self.connection.call_in(None, &set, HOUSEKEEPING).await.map(|_| ())
    }

    pub(super) async fn forget_cookies(&self) -> Result<()> {
        self.connection.call_in(None, &ClearCookies { browser_context_id: self.browser_context() }, HOUSEKEEPING).await?;
        Ok(())
    }
}

fn told(cookie: network::Cookie) -> Cookie {
    Cookie {
        name: cookie.name,
        value: cookie.value,
        domain: cookie.domain,
        path: cookie.path,
        expires: (!cookie.session).then_some(cookie.expires),
        http_only: cookie.http_only,
        secure: cookie.secure,
        same_site: cookie.same_site.as_deref().and_then(SameSite::named),
        cross_site_ancestor: cookie.partition_key.as_ref().map(|key| key.has_cross_site_ancestor),
        partition_key: cookie.partition_key.map(|key| key.top_level_site),
        priority: some(cookie.priority),
        source_scheme: some(cookie.source_scheme),
        source_port: (cookie.source_port != 0).then_some(cookie.source_port),
    }
}

fn asked(cookie: &Cookie) -> CookieParam {
    CookieParam {
        name: cookie.name.clone(),
        value: cookie.value.clone(),
        domain: Some(cookie.domain.clone()),
        path: Some(cookie.path.clone()),
        secure: Some(cookie.secure),
        http_only: Some(cookie.http_only),
        same_site: cookie.same_site.map(|same_site| same_site.name().to_owned()),
        expires: cookie.expires,
        partition_key: cookie.partition_key.clone().map(|top_level_site| CookiePartitionKey {
            top_level_site,
            has_cross_site_ancestor: cookie.cross_site_ancestor.unwrap_or_default(),
        }),
        priority: cookie.priority.clone(),
        source_scheme: cookie.source_scheme.clone(),
        source_port: cookie.source_port,
        url: None,
    }
}

/// Older browsers leave it out.
fn some(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}
