//! What a page keeps for itself, taken to a copy of it. Of frames only those of the page's own site are looked at: others live in
//! processes of their own, whose scripts run before anything could be put there.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::json;
use tabmux_driver::{ARRIVING, Arrival, DriverError, HOUSEKEEPING, Navigation, Page, PageSeed, Result, SessionStorage, StorageItem};

use super::CdpPage;
use super::frames::WORLD;
use crate::protocol::page::{AddScriptToEvaluateOnNewDocument, RemoveScriptToEvaluateOnNewDocument};

/// More frames than a page keeps things in.
const MAX_FRAMES: usize = 16;

const READ: &str = "function () { const kept = sessionStorage; return { origin: location.origin, \
    items: Array.from(kept, (_, at) => kept.key(at)).map((name) => ({ name, value: kept.getItem(name) })) }; }";

/// Fills what is empty, so it does so once for each origin. Opaque origins have no storage and throw.
const FILL: &str = "try { const items = seeds[location.origin]; \
    if (items && sessionStorage.length === 0) for (const [name, value] of items) sessionStorage.setItem(name, value); } catch {}";

impl CdpPage {
    pub(super) async fn read_seed(&self) -> Result<PageSeed> {
        let url = self.url();
        let mut found: Vec<SessionStorage> = Vec::new();
        let worlds = self.state.frames().of_session(&self.session, MAX_FRAMES);
        let frames = futures::future::join_all(worlds.iter().map(|world| self.call_in_world(world, READ, &[])));
        // The page itself is asked also where nobody has looked into it yet, as after a restart of the daemon.
        let reading = futures::future::join(self.in_storage(READ, Vec::new()), frames);
        // A frame that went meanwhile, or has no storage, has nothing to give.
        let late = || DriverError::Late("it is busy and did not answer".into());
        let (own, frames) = tokio::time::timeout(HOUSEKEEPING, reading).await.map_err(|_| late())?;
        for kept in own.ok().into_iter().chain(frames.into_iter().flatten()).filter_map(|value| SessionStorage::deserialize(value).ok()) {
            if !kept.items.is_empty() && found.iter().all(|known| known.origin != kept.origin) {
                found.push(kept);
            }
        }
        Ok(PageSeed { url, session_storage: found })
    }

    /// Goes where the seed's page was, and finds there what that page kept.
    pub(crate) async fn grow(&self, seed: &PageSeed) -> Result<Arrival> {
        // What its document would wait for anyway is not the site's doing.
        self.world.origins.arrival(&seed.url).await;
        let pairs = |items: &[StorageItem]| items.iter().map(|item| (item.name.clone(), item.value.clone())).collect();
        let seeds: BTreeMap<&str, Vec<(String, String)>> =
            seed.session_storage.iter().map(|kept| (kept.origin.as_str(), pairs(&kept.items))).collect();
        let script = AddScriptToEvaluateOnNewDocument {
            source: format!("{{ const seeds = {}; {FILL} }}", json!(seeds)),
            world_name: Some(WORLD.to_owned()),
            ..AddScriptToEvaluateOnNewDocument::default()
        };
        let identifier = self.connection.call_in(Some(&self.session), &script, HOUSEKEEPING).await?.identifier;
        let before = self.state.watch().borrow().commits;
        // One that does not answer is stopped with this, or nobody could use the page until it did.
        let gone = tokio::time::timeout(ARRIVING, self.navigate(Navigation::To(&seed.url))).await;
        drop(self.connection.send(Some(&self.session), &RemoveScriptToEvaluateOnNewDocument { identifier }));
        match gone {
            Ok(Err(error)) if !error.is_unreached() => Err(error),
            Ok(_) => Ok(Arrival::There),
            Err(_) if self.state.watch().borrow().commits > before => Ok(Arrival::Loading),
            Err(_) => Ok(Arrival::Unanswered),
        }
    }
}
