//! What the browser does for a session beside its pages.

use serde_json::{Value, json};

use super::{Canary, Judgement, Kept, NotJudged, Scene, Seen};

pub(super) const PERMISSIONS: Canary = Canary { name: "permissions", kept: Kept::ByProfile, probe: permissions };

fn permissions(scene: &mut Scene<'_>) -> Judgement {
    let state = "return (await navigator.permissions.query({name: 'geolocation'})).state";
    scene.planter.call("emulate", json!({"permissions": ["geolocation"]}))?;
    let seen = scene.looker_runs(state)?;
    if scene.planter_runs(state)? != json!("granted") {
        return Err(NotJudged("what was granted is not granted to its owner".into()));
    }
    Ok(Seen::when(seen == json!("granted"), "it may do what was granted to the other"))
}

pub(super) const CLIPBOARD: Canary = Canary { name: "clipboard", kept: Kept::BySession, probe: clipboard };

fn clipboard(scene: &mut Scene<'_>) -> Judgement {
    let paste = "return await navigator.clipboard.readText()";
    scene.planter_runs("await navigator.clipboard.writeText(mark)")?;
    let pasted = scene.looker_runs(paste)?;
    if scene.planter_runs(paste)? != Value::String(scene.mark.clone()) {
        return Err(NotJudged("its owner cannot paste what it copied".into()));
    }
    Ok(Seen::when(pasted == Value::String(scene.mark.clone()), "it pastes what the other copied"))
}

pub(super) const DOWNLOADS: Canary = Canary { name: "downloads", kept: Kept::BySession, probe: downloads };

fn downloads(scene: &mut Scene<'_>) -> Judgement {
    scene.planter_runs(
        "const link = document.createElement('a'); link.href = `/download/${mark}`; document.body.append(link); link.click()",
    )?;
    if !scene.site.is_visited(&format!("/download/{}", scene.mark)) {
        return Err(NotJudged("the browser downloaded nothing".into()));
    }
    let listed = scene.looker.call("downloads", json!({}))?.mentions(&scene.mark);
    let own = scene.planter.call("downloads", json!({}))?.mentions(&scene.mark);
    if !own && !listed {
        return Err(NotJudged("its owner does not find it either".into()));
    }
    Ok(Seen::when(listed, "it is told of the other's file"))
}
