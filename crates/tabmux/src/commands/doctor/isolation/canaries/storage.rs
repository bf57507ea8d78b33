//! What pages keep.

use serde_json::json;

use super::{Canary, Judgement, Kept, NotJudged, Scene, Seen};

pub(super) const COOKIES: Canary = Canary { name: "cookies", kept: Kept::ByProfile, probe: cookies };

/// One that scripts see and one that only servers see; looked for by the page, by the server and by the tool.
fn cookies(scene: &mut Scene<'_>) -> Judgement {
    scene.planter_runs("document.cookie = `${mark}=script; path=/`; await fetch(`/cookie/${mark}-server`)")?;
    let sent = "return document.cookie.includes(mark) || (await (await fetch('/cookies')).text()).includes(mark)";
    let by_page = scene.looker_runs(sent)? == json!(true);
    let by_tool = scene.looker.call("cookies", json!({}))?.mentions(&scene.mark);
    scene.owner_must(sent)?;
    if !scene.planter.call("cookies", json!({}))?.mentions(&scene.mark) {
        return Err(NotJudged("the cookies tool does not show them to their owner".into()));
    }
    Ok(Seen::when(by_page || by_tool, "the other's cookies are sent or listed"))
}

pub(super) const LOCAL_STORAGE: Canary = Canary {
    name: "localStorage",
    kept: Kept::ByProfile,
    probe: |scene| scene.by_script("localStorage[mark] = 1", "return mark in localStorage", "a key of the other is there"),
};

/// Of each tab, whatever the profile.
pub(super) const SESSION_STORAGE: Canary = Canary {
    name: "sessionStorage",
    kept: Kept::BySession,
    probe: |scene| scene.by_script("sessionStorage[mark] = 1", "return mark in sessionStorage", "a key of the other is there"),
};

pub(super) const CACHE_STORAGE: Canary = Canary {
    name: "Cache API",
    kept: Kept::ByProfile,
    probe: |scene| scene.by_script("await caches.open(mark)", "return await caches.has(mark)", "a cache of the other is there"),
};

pub(super) const INDEXED_DB: Canary = Canary {
    name: "IndexedDB",
    kept: Kept::ByProfile,
    probe: |scene| {
        let plant = "await new Promise((done, fail) => {
            const opening = indexedDB.open(mark);
            opening.onsuccess = () => { opening.result.close(); done() };
            opening.onerror = () => fail(opening.error);
        })";
        let look = "return (await indexedDB.databases()).some(database => database.name === mark)";
        scene.by_script(plant, look, "a database of the other is there")
    },
};

/// The origin's private file system.
pub(super) const FILES: Canary = Canary {
    name: "private files",
    kept: Kept::ByProfile,
    probe: |scene| {
        let plant = "await (await navigator.storage.getDirectory()).getFileHandle(mark, {create: true})";
        let look = "return (await navigator.storage.getDirectory()).getFileHandle(mark).then(() => true, () => false)";
        scene.by_script(plant, look, "a file of the other is there")
    },
};
