//! The cookies of a context, in the driver's words.

use tabmux_driver::{Cookie, DriverError, HOUSEKEEPING, Result, SameSite};

use super::CdpContext;
use crate::CdpError;
use crate::protocol::network::{self, CookieParam, CookiePartitionKey};
use crate::protocol::storage::{ClearCookies, GetCookies, SetCookies};

impl CdpContext {
    pub(super) async fn all_cookies(&self) -> Result<Vec<Cookie>> {
        let cookies =
            self.connection.call_in(None, &GetCookies { browser_context_id: self.browser_context() }, HOUSEKEEPING).await?.cookies;
        Ok(cookies.into_iter().map(told).collect())
    }

    /// All at once, which is much faster; Chromium refuses the whole batch for one bad cookie, so then one by one.
    pub(super) async fn put_cookies(&self, cookies: &[Cookie]) -> Result<()> {
        match self.put(cookies).await {
            Ok(()) => return Ok(()),
            Err(CdpError::Refused { .. }) => {}
            Err(other) => return Err(other.into()),
        }
        let mut refused = Vec::new();
        for cookie in cookies {
            match self.put(std::slice::from_ref(cookie)).await {
                Ok(()) => {}
                Err(CdpError::Refused { .. }) => refused.push(cookie.name.as_str()),
                Err(other) => return Err(other.into()),
            }
        }
        if refused.is_empty() { Ok(()) } else { Err(DriverError::CookieRefused(refused.join(", "))) }
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
        partition_key: cookie.partition_key.map(|key| key.top_level_site),
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
        partition_key: cookie
            .partition_key
            .clone()
            .map(|top_level_site| CookiePartitionKey { top_level_site, ..CookiePartitionKey::default() }),
        ..CookieParam::default()
    }
}
