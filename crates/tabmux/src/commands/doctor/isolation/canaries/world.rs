//! What the browser does for a session beside its pages.

use serde_json::{Value, json};

use super::{Canary, Judgement, Kept, NotJudged, Scene, Seen};

pub(super) const PERMISSIONS: Canary = Canary { name: "permissions", kept: Kept::ByProfile, probe: permissions };

fn permissions(scene: &mut Scene<'_>) -> Judgement {
    let state = "return (await navigator.permissions.query({name: 'geolocation'})).state";
    if scene.looker_runs(state)? == json!("granted") {
        return Err(NotJudged("it was granted before anybody asked".into()));
    }
    scene.planter.call("emulate", json!({"set": {"permissions": {"geolocation": "grant"}}}))?;
    let (seen, own) = (scene.looker_runs(state), scene.planter_runs(state));
    scene.planter.call("emulate", json!({"reset": true}))?;
    if own? != json!("granted") {
        return Err(NotJudged("what was granted is not granted to its owner".into()));
    }
    Ok(Seen::when(seen? == json!("granted"), "it may do what was granted to the other"))
}

pub(super) const EMULATION: Canary = Canary { name: "emulation", kept: Kept::BySession, probe: emulation };

fn emulation(scene: &mut Scene<'_>) -> Judgement {
    let disguised = "return navigator.userAgent.includes(mark)";
    scene.planter.call("emulate", json!({"set": {"userAgent": scene.mark}}))?;
    let (seen, own) = (scene.looker_runs(disguised), scene.owner_must(disguised));
    scene.planter.call("emulate", json!({"reset": true}))?;
    own?;
    Ok(Seen::when(seen? == json!(true), "its pages are disguised as the other's"))
}

pub(super) const CLIPBOARD: Canary = Canary { name: "clipboard", kept: Kept::BySession, probe: clipboard };

/// With every permission that can be had, so that only the clipboard itself can keep them apart.
fn clipboard(scene: &mut Scene<'_>) -> Judgement {
    let allowed = json!({"set": {"permissions": {"clipboard-read": "grant", "clipboard-write": "grant"}}});
    for agent in [&mut *scene.planter, &mut *scene.looker] {
        // Where nothing can be granted, the browser's own rules decide.
        agent.call("emulate", allowed.clone()).ok();
    }
    let paste = "return await navigator.clipboard.readText()";
    let copied = scene.planter_runs("await navigator.clipboard.writeText(mark)");
    let (seen, own) = (scene.looker_runs(paste), scene.planter_runs(paste));
    for agent in [&mut *scene.planter, &mut *scene.looker] {
        agent.call("emulate", json!({"reset": true})).ok();
    }
    copied?;
    if own? != Value::String(scene.mark.clone()) {
        return Err(NotJudged("its owner cannot paste what it copied".into()));
    }
    // Where its owner may paste it and the other may not, that keeps it too.
    Ok(Seen::when(seen == Ok(Value::String(scene.mark.clone())), "it pastes what the other copied"))
}

pub(super) const DOWNLOADS: Canary = Canary { name: "downloads", kept: Kept::BySession, probe: downloads };

fn downloads(scene: &mut Scene<'_>) -> Judgement {
    scene.planter_runs(
        "const link = document.createElement('a'); link.href = `/download/${mark}`; document.body.append(link); link.click()",
    )?;
    if !scene.site.is_visited(&format!("/download/{}", scene.mark)) {
        return Err(NotJudged("the browser downloaded nothing".into()));
    }
    let own = scene.planter.call("downloads", json!({"wait": true}))?;
    if !own.mentions(&scene.mark) {
        return Err(NotJudged("its owner does not find it either".into()));
    }
    Ok(Seen::when(scene.looker.call("downloads", json!({}))?.mentions(&scene.mark), "it is told of the other's file"))
}
