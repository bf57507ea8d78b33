//! What the fake browser keeps for a context or a profile: cookies, and what origins store. Of cookies, sites, paths and ages are kept but not looked at: every page of a context sees all of them.

use std::collections::BTreeMap;
use std::sync::Mutex;

use serde_json::Value;

use super::locked;
use super::storage::Storage;
use crate::{Cookie, OriginStorage, Result};

/// Cookies in the order they were set.
#[derive(Debug, Default)]
pub(super) struct CookieJar {
    cookies: Mutex<Vec<Cookie>>,
    pub(super) storage: Storage,
    databases: Mutex<BTreeMap<String, Vec<Value>>>,
}

impl CookieJar {
    /// Like Chromium, per site: more than this and the oldest goes.
    const MAX_COOKIES: usize = 180;
    const MAX_COOKIE_BYTES: usize = 4096;

    /// As `document.cookie` gives them.
    pub(super) fn text(&self) -> String {
        locked(&self.cookies)
            .iter()
            .filter(|cookie| !cookie.http_only)
            .map(|cookie| format!("{}={}", cookie.name, cookie.value))
            .collect::<Vec<_>>()
            .join("; ")
    }

    pub(super) fn all(&self) -> Vec<Cookie> {
        locked(&self.cookies).clone()
    }

    /// Takes `k=v; attributes…`. A cookie that is too big is dropped without a word, as browsers do.
    pub(super) fn set(&self, cookie: &str, host: &str) {
        let pair = cookie.split(';').next().unwrap_or_default();
        if pair.len() > Self::MAX_COOKIE_BYTES {
            return;
        }
        let (name, value) = pair.split_once('=').unwrap_or(("", pair));
        let (name, value) = (name.trim().to_owned(), value.trim().to_owned());
        self.put(Cookie { name, value, domain: host.to_owned(), path: "/".into(), ..Cookie::default() });
    }

    /// Whether it is one that a browser takes.
    pub(super) fn take(&self, cookie: &Cookie) -> bool {
        let good = cookie.name.len() + cookie.value.len() <= Self::MAX_COOKIE_BYTES && !cookie.domain.is_empty();
        if good {
            self.put(cookie.clone());
        }
        good
    }

    /// What an origin keeps, databases included, which no fake page can look into.
    pub(super) fn kept(&self, origin: &str) -> OriginStorage {
        let local_storage = self.storage.items(origin).unwrap_or_default();
        let indexed_db = locked(&self.databases).get(origin).cloned().unwrap_or_default();
        OriginStorage { origin: origin.to_owned(), local_storage, indexed_db, ..OriginStorage::default() }
    }

    pub(super) fn put_kept(&self, kept: OriginStorage) -> Result<()> {
        self.storage.put(&kept.origin, &kept.local_storage)?;
        locked(&self.databases).insert(kept.origin, kept.indexed_db);
        Ok(())
    }

    pub(super) fn clear(&self) {
        locked(&self.cookies).clear();
    }

    fn put(&self, cookie: Cookie) {
        let mut cookies = locked(&self.cookies);
        match cookies.iter_mut().find(|known| known.name == cookie.name) {
            Some(known) => *known = cookie,
            None => cookies.push(cookie),
        }
        let excess = cookies.len().saturating_sub(Self::MAX_COOKIES);
        cookies.drain(..excess);
    }
}
