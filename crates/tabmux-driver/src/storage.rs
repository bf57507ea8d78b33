//! What pages keep: the storage of one origin, and all of it in the words of Playwright's storage state, which other
//! tools read and write too.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Cookie;

/// Which of a page's two storages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum StorageArea {
    /// `localStorage`: of the origin, in the whole context.
    #[default]
    Local,
    /// `sessionStorage`: of the origin, in this page.
    Session,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StorageItem {
    pub name: String,
    pub value: String,
}

/// Cookies and storage a context begins with.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StorageState {
    #[serde(default)]
    pub cookies: Vec<Cookie>,
    #[serde(default)]
    pub origins: Vec<OriginStorage>,
}

/// Makes `{dump, load}`: reads and writes the databases of the origin it runs in.
pub const DATABASES: &str = include_str!("databases.js");

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OriginStorage {
    /// `https://example.com`
    pub origin: String,
    #[serde(default)]
    pub local_storage: Vec<StorageItem>,
    /// Databases, in the shape that `databases.js` knows.
    #[serde(default, rename = "indexedDB", skip_serializing_if = "Vec::is_empty")]
    pub indexed_db: Vec<Value>,
    /// What else it keeps and no copy can be made of, by database and store.
    #[serde(skip)]
    pub left_out: Vec<String>,
    /// What frames of other sites keep in its pages; Playwright's format has no words for it.
    #[serde(skip)]
    pub framed: Vec<OriginStorage>,
}

impl OriginStorage {
    pub fn is_empty(&self) -> bool {
        self.local_storage.is_empty() && self.indexed_db.is_empty() && self.framed.is_empty()
    }
}
