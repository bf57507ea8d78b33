//! What belongs to single pages.

use serde_json::{Value, json};
use tabmux_core::Code;

use super::{Canary, Judgement, Kept, NotJudged, Scene, Seen};

pub(super) const DIALOGS: Canary = Canary { name: "dialogs", kept: Kept::BySession, probe: dialogs };

/// An alert of one must not hold up the other, be told to it, or be answered by it.
fn dialogs(scene: &mut Scene<'_>) -> Judgement {
    match scene.planter_runs("alert(mark)") {
        Err(NotJudged(why)) if why.contains(Code::DialogOpen.name()) => {}
        other => return Err(NotJudged(format!("no dialog opened: {other:?}"))),
    }
    let looked = scene.looker.call("evaluate", json!({"script": "1 + 1", "tabId": scene.looker.session.tab}));
    let answered = scene.looker.call("handle_dialog", json!({"tabId": scene.looker.session.tab})).is_ok();
    let owner = scene.planter.call("handle_dialog", json!({"tabId": scene.planter.session.tab}));
    let held_up = match looked {
        Ok(answer) => answer.value() != json!(2) || answer.mentions(&scene.mark),
        Err(fault) if matches!(fault.code, Code::DialogOpen | Code::Timeout) => true,
        Err(fault) => return Err(fault.into()),
    };
    if held_up || answered {
        return Ok(Seen::Shared("the other's alert held it up, was told to it, or could be answered".into()));
    }
    owner?;
    Ok(Seen::Apart)
}

pub(super) const HISTORY: Canary = Canary { name: "history", kept: Kept::BySession, probe: history };

/// What one visits must not be behind the other's back button.
fn history(scene: &mut Scene<'_>) -> Judgement {
    let length = "return history.length";
    let (owner, before) = (scene.planter_runs(length)?, scene.looker_runs(length)?);
    scene.planter.go(&scene.site.url(&format!("/visited/{}", scene.mark)))?;
    scene.planter.go(&scene.site.url(&format!("/left/{}", scene.mark)))?;
    if scene.planter_runs(length)? == owner {
        return Err(NotJudged("the owner's own history did not grow".into()));
    }
    let grown = scene.looker_runs(length)? != before;
    // Where there is nothing to go back to, this fails and the page stays.
    scene.looker.call("navigate", json!({"back": true, "tabId": scene.looker.session.tab})).ok();
    let there = scene.looker_runs("return location.href.includes(mark)")?;
    Ok(Seen::when(grown || there == json!(true), "the other's visits are in its history"))
}

pub(super) const WINDOW_NAMES: Canary = Canary { name: "window names", kept: Kept::BySession, probe: window_names };

/// A page that knows the name of another's window must not get hold of it.
fn window_names(scene: &mut Scene<'_>) -> Judgement {
    scene.planter_runs("window.name = mark; window.canary = mark")?;
    let find = "const found = open('', mark);
        if (!found) return null;
        const seen = found.canary === mark;
        if (found !== window && !seen) found.close();
        return seen";
    let found = scene.looker_runs(find)?;
    scene.owner_must(find)?;
    match found {
        Value::Bool(seen) => Ok(Seen::when(seen, "it got hold of the other's window by its name")),
        _ => Err(NotJudged("the browser let it open no window".into())),
    }
}
