//! All canaries, in the order of the report. A new one is a `Canary` in the file it belongs to and a line here.

mod agents;
mod messages;
mod network;
mod pages;
mod storage;
mod world;

use super::canary::{Canary, Judgement, NotJudged, Scene, Seen};
use super::unit::Kept;

pub(super) static ALL: [Canary; 23] = [
    storage::COOKIES,
    storage::LOCAL_STORAGE,
    storage::SESSION_STORAGE,
    storage::CACHE_STORAGE,
    storage::INDEXED_DB,
    storage::FILES,
    network::HTTP_CACHE,
    network::HTTP_AUTH,
    messages::SERVICE_WORKER,
    messages::SHARED_WORKER,
    messages::BROADCAST_CHANNEL,
    messages::WEB_LOCKS,
    world::PERMISSIONS,
    world::EMULATION,
    world::CLIPBOARD,
    world::DOWNLOADS,
    pages::DIALOGS,
    pages::HISTORY,
    pages::WINDOW_NAMES,
    agents::SESSIONS,
    agents::TABS,
    agents::NEWS,
    agents::LOGS,
];
