//! Ways in which pages of one origin talk to each other.

use serde_json::json;

use super::super::canary::marked;
use super::{Canary, Judgement, Kept, NotJudged, Scene, Seen};

pub(super) const SERVICE_WORKER: Canary = Canary {
    name: "service worker",
    kept: Kept::ByProfile,
    probe: |scene| {
        let plant = "const {installing, active} = await navigator.serviceWorker.register('/service-worker.js', {scope: `/scope/${mark}/`});
            const worker = installing ?? active;
            if (worker.state !== 'activated') await new Promise(done => {
                worker.onstatechange = () => worker.state === 'activated' && done();
            })";
        // Whether it is known, and whether it answers.
        let look = "if ((await navigator.serviceWorker.getRegistrations()).some(known => known.scope.includes(mark))) return true;
            const frame = document.createElement('iframe');
            frame.src = `/scope/${mark}/page`;
            const loaded = new Promise(done => frame.onload = done);
            document.body.append(frame);
            await loaded;
            return frame.contentDocument.body.textContent === 'from the worker'";
        scene.by_script(plant, look, "the other's worker is registered or answers")
    },
};

pub(super) const SHARED_WORKER: Canary = Canary {
    name: "SharedWorker",
    kept: Kept::ByProfile,
    probe: |scene| {
        let talk = |say: &str| {
            format!(
                "window.worker = new SharedWorker('/shared-worker.js');
                const told = new Promise((done, fail) => {{ worker.port.onmessage = done; worker.onerror = () => fail('no worker') }});
                worker.port.postMessage({say});
                return (await told).data.includes(mark)"
            )
        };
        scene.by_script(&talk("mark"), &talk("null"), "the worker knows what the other told it")
    },
};

pub(super) const BROADCAST_CHANNEL: Canary = Canary { name: "BroadcastChannel", kept: Kept::ByProfile, probe: broadcast_channel };

const LISTEN: &str = "window.heard = []; window.ear = new BroadcastChannel('canaries'); ear.onmessage = ({data}) => heard.push(data)";

fn broadcast_channel(scene: &mut Scene<'_>) -> Judgement {
    scene.looker_runs(LISTEN)?;
    // A second tab of the planter must hear it: until then nobody can be said to be deaf.
    let second = scene.planter.open_tab(&scene.site.home())?;
    scene.planter.eval_in(&second, &marked(LISTEN, &scene.mark))?;
    scene.planter_runs("window.mouth = new BroadcastChannel('canaries'); mouth.postMessage(mark)")?;
    let hears = "for (let tries = 0; tries < 50 && !heard.includes(mark); tries++) await new Promise(done => setTimeout(done, 20));
        return heard.includes(mark)";
    if scene.planter.eval_in(&second, &marked(hears, &scene.mark))? != json!(true) {
        return Err(NotJudged("not even another tab of the same session heard it".into()));
    }
    let heard = scene.looker_runs("await new Promise(done => setTimeout(done, 100)); return heard.includes(mark)")?;
    Ok(Seen::when(heard == json!(true), "it heard what the other said"))
}

pub(super) const WEB_LOCKS: Canary = Canary {
    name: "web locks",
    kept: Kept::ByProfile,
    probe: |scene| {
        let plant = "await new Promise(held => void navigator.locks.request(mark, () => { held(); return new Promise(() => {}) }))";
        let look = "return (await navigator.locks.query()).held.some(lock => lock.name === mark)";
        scene.by_script(plant, look, "a lock of the other is held")
    },
};
