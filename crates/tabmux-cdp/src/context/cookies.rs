//! The cookies of a context, in the driver's words.

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

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
    /// the places of those that were refused or are not there then.
    pub(super) async fn put_cookies(&self, cookies: &[Cookie]) -> Result<Vec<usize>> {
        if cookies.is_empty() {
            return Ok(Vec::new());
        }
        let refused = match self.put(cookies).await {
            Ok(()) => HashSet::new(),
            Err(CdpError::Refused { .. }) => self.put_each(cookies).await?,
            Err(other) => return Err(other.into()),
        };
        // Chromium says yes to some that it drops: what counts is what is there. One that is over is not missed.
        let mut there: HashMap<String, Vec<Cookie>> = HashMap::new();
        for cookie in self.all_cookies().await? {
            there.entry(cookie.name.clone()).or_default().push(cookie);
        }
        let now = SystemTime::now();
        let is_there = |cookie: &Cookie| there.get(&cookie.name).is_some_and(|known| known.iter().any(|known| is_same(cookie, known)));
        let is_missed = |cookie: &Cookie| !cookie.is_over(now) && !is_there(cookie);
        Ok((0..cookies.len()).filter(|place| refused.contains(place) || is_missed(&cookies[*place])).collect())
    }

    /// Gives the places of those that were refused.
    async fn put_each(&self, cookies: &[Cookie]) -> Result<HashSet<usize>> {
        let mut refused = HashSet::new();
        for (turn, some) in cookies.chunks(AT_ONCE).enumerate() {
            let putting = some.iter().map(|cookie| self.put(std::slice::from_ref(cookie)));
            for (place, put) in futures::future::join_all(putting).await.into_iter().enumerate() {
                match put {
                    Ok(()) => {}
                    Err(CdpError::Refused { .. }) => drop(refused.insert(turn * AT_ONCE + place)),
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

/// Whether the one that is there is the one that was put. What browsers write in another way is not compared.
fn is_same(put: &Cookie, there: &Cookie) -> bool {
    let bare = |domain: &str| domain.trim_start_matches('.').to_ascii_lowercase();
    let is_plain = |path: &str| path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/-_.".contains(&byte));
    (!put.domain.is_ascii() || bare(&put.domain) == bare(&there.domain))
        && (!is_plain(&put.path) || put.path == there.path)
        && put.partition_key.is_some() == there.partition_key.is_some()
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
