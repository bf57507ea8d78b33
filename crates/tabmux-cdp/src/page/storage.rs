//! What the page's origin keeps, read and changed in our own world, where no script of the page has a say.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use tabmux_driver::{DriverError, Result, StorageArea, StorageItem};

use super::CdpPage;
use super::world::Failure;

/// By their numbers, since a name may be one that every storage has, such as `length`.
const READ: &str = "function (area) { const kept = globalThis[area]; \
    return Array.from(kept, (_, at) => kept.key(at)).map((name) => [name, kept.getItem(name)]); }";
const SET: &str = "function (area, items) { const kept = globalThis[area]; \
    for (const [name, value] of items) value === null ? kept.removeItem(name) : kept.setItem(name, value); }";
const CLEAR: &str = "function (area) { globalThis[area].clear(); }";

impl CdpPage {
    pub(super) async fn read_storage(&self, area: StorageArea) -> Result<Vec<StorageItem>> {
        let items = self.in_storage(READ, vec![name(area)]).await?;
        let items: BTreeMap<String, String> = serde_json::from_value::<Vec<_>>(items).unwrap_or_default().into_iter().collect();
        Ok(items.into_iter().map(|(name, value)| StorageItem { name, value }).collect())
    }

    pub(super) async fn put_storage(&self, area: StorageArea, items: &[(String, Option<String>)]) -> Result<()> {
        self.in_storage(SET, vec![name(area), json!(items)]).await.map(drop)
    }

    pub(super) async fn empty_storage(&self, area: StorageArea) -> Result<()> {
        self.in_storage(CLEAR, vec![name(area)]).await.map(drop)
    }

    /// Calls a function of ours that looks into what the main frame's origin keeps.
    pub(crate) async fn in_storage(&self, function: &str, arguments: Vec<Value>) -> Result<Value> {
        let done = self.call_in_frame(&self.handle.0, |_| function.to_owned().into(), &arguments).await;
        done.map(|(_, value)| value).map_err(|failure| match failure {
            Failure::Threw(text) => DriverError::StorageRefused(reason(&text)),
            Failure::NoDocument | Failure::Cut => DriverError::StorageRefused("the page went elsewhere meanwhile".into()),
            Failure::Other(error) => error.into(),
        })
    }

    /// The same in a frame of another site, where the page shows one of this origin.
    pub(crate) async fn in_frame_storage(&self, origin: &str, function: &str, arguments: &[Value]) -> Option<Value> {
        let worlds = self.state.frames().all();
        let (_, world) = worlds.into_iter().find(|(_, world)| world.origin == origin)?;
        self.call_in_world(&world, function, arguments).await.ok()
    }
}

fn name(area: StorageArea) -> Value {
    match area {
        StorageArea::Local => "localStorage",
        StorageArea::Session => "sessionStorage",
    }
    .into()
}

/// The first line; where in our function it happened is of no use.
fn reason(thrown: &str) -> String {
    let line = thrown.lines().next().unwrap_or_default();
    line.trim_start_matches("Uncaught ").trim_end_matches('.').to_owned()
}
