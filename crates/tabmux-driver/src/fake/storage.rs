//! The fake browser's `localStorage` and `sessionStorage`: items by origin.

use std::collections::BTreeMap;
use std::sync::Mutex;

use url::Url;

use super::locked;
use crate::{DriverError, Result, SessionStorage, StorageItem};

#[derive(Debug, Default)]
pub(super) struct Storage(Mutex<BTreeMap<String, BTreeMap<String, String>>>);

impl Storage {
    /// Like Chromium, per origin.
    const MAX_BYTES: usize = 5 * 1024 * 1024;

    pub(super) fn items(&self, address: &str) -> Result<Vec<StorageItem>> {
        let origin = origin(address)?;
        let items = locked(&self.0).get(&origin).cloned().unwrap_or_default();
        Ok(items.into_iter().map(|(name, value)| StorageItem { name, value }).collect())
    }

    pub(super) fn set(&self, address: &str, items: &[(String, Option<String>)]) -> Result<()> {
        let origin = origin(address)?;
        let mut all = locked(&self.0);
        let mut kept = all.get(&origin).cloned().unwrap_or_default();
        for (name, value) in items {
            match value {
                Some(value) => kept.insert(name.clone(), value.clone()),
                None => kept.remove(name),
            };
        }
        if kept.iter().map(|(name, value)| name.len() + value.len()).sum::<usize>() > Self::MAX_BYTES {
            return Err(DriverError::StorageRefused("it is full".into()));
        }
        all.insert(origin, kept);
        Ok(())
    }

    /// All of it, by origin.
    pub(super) fn all(&self) -> Vec<SessionStorage> {
        let all = locked(&self.0);
        let items = |kept: &BTreeMap<String, String>| {
            kept.iter().map(|(name, value)| StorageItem { name: name.clone(), value: value.clone() }).collect()
        };
        all.iter()
            .filter(|(_, kept)| !kept.is_empty())
            .map(|(origin, kept)| SessionStorage { origin: origin.clone(), items: items(kept) })
            .collect()
    }

    pub(super) fn put(&self, origin: &str, items: &[StorageItem]) -> Result<()> {
        let items: Vec<_> = items.iter().map(|item| (item.name.clone(), Some(item.value.clone()))).collect();
        self.set(origin, &items)
    }

    pub(super) fn clear(&self, address: &str) -> Result<()> {
        locked(&self.0).remove(&origin(address)?);
        Ok(())
    }
}

fn origin(address: &str) -> Result<String> {
    let origin = Url::parse(address).map(|url| url.origin()).ok().filter(url::Origin::is_tuple);
    origin.map(|origin| origin.ascii_serialization()).ok_or_else(|| DriverError::StorageRefused(format!("{address} has none")))
}
