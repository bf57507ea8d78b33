//! What the browser keeps of its talk with servers. The server judges: it sees what was asked again and what was not.

use super::super::site::Login;
use super::{Canary, Judgement, Kept, NotJudged, Scene, Seen};

pub(super) const HTTP_CACHE: Canary = Canary { name: "HTTP cache", kept: Kept::ByProfile, probe: http_cache };

fn http_cache(scene: &mut Scene<'_>) -> Judgement {
    let path = format!("/cached/{}", scene.mark);
    let fetch = "await (await fetch(`/cached/${mark}`)).text()";
    scene.planter_runs(fetch)?;
    scene.planter_runs(fetch)?;
    if scene.site.visits(&path).len() != 1 {
        return Err(NotJudged("this browser caches nothing".into()));
    }
    scene.looker_runs(fetch)?;
    Ok(Seen::when(scene.site.visits(&path).len() == 1, "it got what the other had fetched without asking the server"))
}

pub(super) const HTTP_AUTH: Canary = Canary { name: "HTTP auth", kept: Kept::ByProfile, probe: http_auth };

fn http_auth(scene: &mut Scene<'_>) -> Judgement {
    let [login, own, other] = ["login", "own", "other"].map(|who| format!("/auth/{}/{who}", scene.mark));
    scene.planter.go(&scene.site.url_with_login(&login, &scene.mark))?;
    // A page whose address has a password in it may fetch nothing.
    scene.planter.go(&scene.site.home())?;
    scene.planter_runs(&visit(&own))?;
    if scene.site.visits(&own).last() != Some(&Login::Shown) {
        return Err(NotJudged("this browser keeps no logins".into()));
    }
    scene.looker_runs(&visit(&other))?;
    match scene.site.visits(&other).last() {
        None => Err(NotJudged("its request never came".into())),
        Some(login) => Ok(Seen::when(*login == Login::Shown, "it was logged in with the other's password")),
    }
}

/// A request that the browser may want to ask a person about; who asks for how long does not matter here.
fn visit(path: &str) -> String {
    format!("await fetch({path:?}, {{signal: AbortSignal.timeout(5000)}}).catch(() => 0)")
}
