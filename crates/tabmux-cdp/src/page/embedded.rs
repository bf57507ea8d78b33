//! Which frames of other sites a page has. What such a frame keeps, it keeps for the site of the page that it is in, and the
//! browser says so by a key of its own.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tabmux_driver::{HOUSEKEEPING, origin_of};

use crate::connection::WeakConnection;
use crate::event::read;
use crate::protocol::Command;
use crate::protocol::runtime::ExecutionContextCreated;
use crate::world::World;

/// `Storage.getStorageKeyForFrame`. The protocol's list calls it deprecated, so it is not generated; what is to follow it is not
/// in every Chromium yet.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GetStorageKeyForFrame {
    frame_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StorageKey {
    storage_key: String,
}

impl Command for GetStorageKeyForFrame {
    const METHOD: &'static str = "Storage.getStorageKeyForFrame";
    type Reply = StorageKey;
}

/// The members of `auxData` that matter.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Auxiliary {
    frame_id: String,
    is_default: bool,
}

/// A document has come, into a page that is at `page`. Called by the reader: nothing is waited for here.
pub(super) fn came(connection: &WeakConnection, session: &str, world: &Arc<World>, page: &str, params: &RawValue) {
    let Some(context) = read::<ExecutionContextCreated>(params).map(|event| event.context) else { return };
    let Some(page) = origin_of(page) else { return };
    let Some(frame) = origin_of(&context.origin).filter(|frame| *frame != page) else { return };
    let about = context.aux_data.and_then(|data| Auxiliary::deserialize(data).ok()).filter(|about| about.is_default);
    let Some(Auxiliary { frame_id, .. }) = about else { return };
    if world.origins.frames_in(&page).contains(&frame) {
        return;
    }
    let (connection, session, world) = (connection.clone(), session.to_owned(), Arc::clone(world));
    tokio::spawn(async move {
        let Some(connection) = connection.upgrade() else { return };
        // Gone meanwhile, it keeps what it kept; the next one of its kind is asked again.
        let Ok(key) = connection.call_in(Some(&session), &GetStorageKeyForFrame { frame_id }, HOUSEKEEPING).await else { return };
        // As `https://frame.test/^0https://page.test`.
        if key.storage_key.contains("/^0") {
            world.origins.has_frame(&page, &frame);
        }
    });
}
