//! Beginning with somebody's logins. What is copied is read from a source, which is never changed by that: a live context, a
//! file, a profile. What could not be copied is said by name, never by value. Deliberately absent: caches and service workers.

mod leisure;
mod once;
mod origins;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

pub use leisure::{Leisure, Opening};
pub use once::ReadOnce;
pub use origins::{Origins, origin_of};

use crate::{Cookie, OriginStorage, Page, Result, StorageItem, StorageState};

/// How long a page may take to come to where another one was. Whoever copies a session waits for the slowest of its pages.
pub const ARRIVING: Duration = Duration::from_secs(6);

/// What a context can begin with.
#[async_trait]
pub trait Source: Send + Sync + fmt::Debug {
    /// Every cookie, exactly as it is.
    async fn cookies(&self) -> Result<Vec<Cookie>>;

    /// The origins that may keep something, those of open pages first.
    async fn origins(&self) -> Result<Vec<String>>;

    /// What one of them keeps; also of one that was not listed.
    async fn kept(&self, origin: &str) -> Result<OriginStorage>;

    /// What frames of other sites keep in pages of this origin. They keep it there and nowhere else; files have no words for it.
    async fn framed(&self, _origin: &str) -> Result<Vec<OriginStorage>> {
        Ok(Vec::new())
    }
}

/// What a context is to begin with. Two are equal when they are the very same.
#[derive(Clone)]
pub struct Beginning(Arc<dyn Source>);

/// How far the copying into a context has come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Copied {
    /// Cookies and origins that arrived.
    pub cookies: usize,
    pub origins: usize,
    /// Origins that are still on their way.
    pub pending: usize,
    /// What could not be copied, as `cookie sid of a.test: …`; the first ones, and how many there are in all.
    pub losses: Vec<String>,
    pub lost: usize,
}

/// Which origins a context has been at, and which of those it began with have not arrived: what the next daemon must know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Footprint {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub origins: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pending: Vec<String>,
    /// Frames of other sites, each with the page it was in, by their origins: `(page, frame)`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<(String, String)>,
}

/// A page's own part of a copy: where it is, and what it keeps for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSeed {
    pub url: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub session_storage: Vec<SessionStorage>,
}

/// A page that was opened from a seed.
#[derive(Clone, Debug)]
pub struct Planted {
    pub page: Arc<dyn Page>,
    pub arrival: Arrival,
}

/// How far a page came in the time it had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// It is there, or its address cannot be reached now.
    There,
    /// It is there and loads on.
    Loading,
    /// Its site did not answer. It is blank, and has nothing of what the other page kept.
    Unanswered,
}

/// What one origin keeps in one page.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionStorage {
    pub origin: String,
    pub items: Vec<StorageItem>,
}

impl Beginning {
    pub fn with(source: impl Source + 'static) -> Self {
        Self(Arc::new(source))
    }

    pub fn source(&self) -> &Arc<dyn Source> {
        &self.0
    }
}

impl From<Arc<dyn Source>> for Beginning {
    fn from(source: Arc<dyn Source>) -> Self {
        Self(source)
    }
}

impl PartialEq for Beginning {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Beginning {
    /// Its values are secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Beginning").finish_non_exhaustive()
    }
}

impl Copied {
    /// More than anybody reads.
    const MAX_LOSSES: usize = 50;

    pub fn lose(&mut self, what: String) {
        if self.losses.len() < Self::MAX_LOSSES {
            self.losses.push(what);
        }
        self.lost += 1;
    }
}

impl Footprint {
    pub fn is_empty(&self) -> bool {
        self.origins.is_empty() && self.pending.is_empty() && self.frames.is_empty()
    }
}

#[async_trait]
impl Source for StorageState {
    async fn cookies(&self) -> Result<Vec<Cookie>> {
        Ok(self.cookies.clone())
    }

    async fn origins(&self) -> Result<Vec<String>> {
        Ok(self.origins.iter().filter(|kept| !kept.is_empty()).map(|kept| kept.origin.clone()).collect())
    }

    async fn kept(&self, origin: &str) -> Result<OriginStorage> {
        let kept = self.origins.iter().find(|kept| origin_of(&kept.origin).as_deref() == Some(origin) || kept.origin == origin);
        Ok(kept.cloned().unwrap_or_else(|| OriginStorage { origin: origin.to_owned(), ..OriginStorage::default() }))
    }
}
