//! Clones of a profile by Seed 3's verbs, from outside, on the fake browser and on a real one: ten seats for everybody who comes at once,
//! what is disposed while it is being made, and what moves with a clone.
#![allow(clippy::unwrap_used, reason = "tests, helpers included")]

mod support;

use std::net::TcpListener;

use serde_json::{Value, json};
use support::site::Site;
use support::{Lab, Printed, SOON, at_once, until};

/// Every path, for each of these a login.
const HOSTS: [&str; 4] = ["127.0.0.1", "localhost", "a.localhost", "b.localhost"];

struct Scene {
    lab: Lab,
    site: Site,
}

impl Scene {
    /// With a profile `work` that is logged in everywhere.
    fn set(lab: Lab) -> Self {
        let site = Site::start(|path| format!("<title>{path}</title>"));
        let origin = |host: &str| site.at("").replace("127.0.0.1", host);
        let kept = |host: &str| json!({"origin": origin(host), "localStorage": [{"name": "user", "value": "ann"}]});
        let file = lab.path().join("state.json");
        std::fs::write(&file, json!({"cookies": [], "origins": HOSTS.map(kept)}).to_string()).unwrap();
        let made = lab.run(&["profile", "new", "work", "--from", file.to_str().unwrap()]);
        assert_eq!(made.code, 0, "{made:?}");
        Self { lab, site }
    }

    fn run(&self, arguments: &[&str]) -> Printed {
        self.lab.run_within(&mut self.lab.command(arguments), SOON * 4)
    }

    fn open(&self, url: &str) -> Printed {
        self.run(&["agent-session", "open", "--profile", "work", "--url", url])
    }

    fn listed(&self) -> Vec<Value> {
        self.lab.json(&["agent-session", "list", "--json"])["sessions"].as_array().unwrap().clone()
    }

    fn contexts(&self) -> u64 {
        let browsers = self.lab.status()["browsers"].as_array().cloned().unwrap_or_default();
        browsers.iter().filter_map(|browser| browser["contexts"].as_u64()).sum()
    }
}

/// Twenty open at once: ten are there and can be used, ten are told `capacity`, and a seat that becomes free is given again.
fn twenty_at_once(scene: &Scene, url: &str, usable: impl Fn(&str) + Sync) {
    let printed = at_once((0..20).collect(), |_: usize| scene.open(url));
    let (made, refused): (Vec<_>, Vec<_>) = printed.into_iter().partition(|printed| printed.code == 0);
    assert_eq!((made.len(), refused.len()), (10, 10), "{made:?} {refused:?}");
    for refused in &refused {
        assert!(refused.code == 1 && refused.stdout.is_empty() && refused.stderr.contains("[capacity]"), "{refused:?}");
    }
    assert_eq!((&scene.lab.status()["sessions"]["clones"], scene.listed().len()), (&json!(10), 10), "nothing of the others is left");
    made.iter().for_each(|made| usable(made.stdout.trim()));
    let full = scene.open(url);
    assert!(full.code == 1 && full.stderr.contains("[capacity]"), "{full:?}");
    assert_eq!(scene.run(&["agent-session", "dispose", "--session", made[0].stdout.trim()]).code, 0);
    let again = scene.open(url);
    assert_eq!(again.code, 0, "{again:?}");
    usable(again.stdout.trim());
    usable(made[1].stdout.trim());
    assert_eq!(scene.lab.status()["sessions"]["clones"], json!(10));
}

/// S3.3, S3.19, S3.20, S3.21, S3.22
#[test]
fn twenty_clones_at_once_are_ten() {
    let scene = Scene::set(Lab::new());
    twenty_at_once(&scene, "https://one.test/?delay=300", |session| {
        assert_eq!(scene.run(&["eval", "-t", session, "location.href"]).json(), json!("https://one.test/?delay=300"));
    });
}

/// S3.3, S3.19, S3.20, S3.21, S3.22
#[test]
fn twenty_clones_at_once_are_ten_logged_in_ones_in_a_real_browser() {
    let scene = Scene::set(Lab::real());
    twenty_at_once(&scene, &scene.site.at("/home"), |session| {
        let found = scene.run(&["eval", "-t", session, "[location.pathname, localStorage.user]"]);
        assert_eq!(found.json(), json!(["/home", "ann"]), "{found:?}");
    });
    until("every context is a session's", SOON, || (scene.contexts() == 10).then_some(()));
}

/// A clone is disposed while its first page is on its way.
fn disposed_in_the_making(scene: &Scene, url: &str) {
    let _held = scene.lab.ready_client();
    let opened = std::thread::scope(|scope| {
        let opening = scope.spawn(|| scene.open(url));
        let session = until("it is listed", SOON, || Some(scene.listed().first()?["session_id"].as_str()?.to_owned()));
        let disposed = scene.run(&["agent-session", "dispose", "--session", &session]);
        assert_eq!(disposed.code, 0, "{disposed:?}");
        opening.join().unwrap()
    });
    let is_told = ["[session_closed]", "[cancelled]"].iter().any(|code| opened.stderr.contains(code));
    assert!(opened.code == 1 && opened.stdout.is_empty() && is_told, "{opened:?}");
    assert_eq!(scene.listed(), Vec::<Value>::new());
    let sessions = &scene.lab.status()["sessions"];
    assert_eq!((&sessions["active"], &sessions["clones"]), (&json!(0), &json!(0)), "{sessions}");
    until("nothing is left in a browser", SOON, || (scene.contexts() == 0).then_some(()));
    assert_eq!(scene.listed(), Vec::<Value>::new(), "nor does it come back");
}

/// S3.23
#[test]
fn a_clone_that_is_disposed_in_the_making_does_not_come_back() {
    disposed_in_the_making(&Scene::set(Lab::new()), "https://slow.test/?delay=600000");
}

/// S3.23: while its first page waits for a site that never answers, and several origins are on their way to it.
#[test]
fn a_clone_that_is_disposed_in_the_making_does_not_come_back_in_a_real_browser() {
    // It takes connections, and nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    disposed_in_the_making(&Scene::set(Lab::real()), &format!("http://{}/", silent.local_addr().unwrap()));
}

/// S3.26: into a browser of its own, and back.
#[test]
fn a_clone_that_moves_keeps_its_own_store() {
    let scene = Scene::set(Lab::real());
    let agent = scene.lab.ready_client();
    for name in ["one", "two"] {
        agent.ok("start_browser", &json!({"sessionId": name, "from": "profile:work", "navigationUrl": scene.site.at("/home")}));
    }
    let eval = |name: &str, script: &str| agent.ok("evaluate", &json!({"sessionId": name, "script": script})).result()["value"].clone();
    eval("one", "document.cookie = 'agent1_token=secret123'; localStorage.own = 'one'");
    for isolation in ["browser", "context"] {
        agent.ok("migrate", &json!({"sessionId": "one", "isolation": isolation}));
        assert_eq!(eval("one", "[document.cookie, localStorage.own]"), json!(["agent1_token=secret123", "one"]), "{isolation}");
        assert_eq!(eval("two", "[document.cookie, localStorage.own ?? null]"), json!(["", null]), "{isolation}");
        for host in HOSTS {
            let url = scene.site.at("/who").replace("127.0.0.1", host);
            let said = agent.ok("navigate", &json!({"sessionId": "one", "url": url})).text();
            assert!(!said.contains("Not copied"), "{said}");
            assert_eq!(eval("one", "localStorage.user"), json!("ann"), "{isolation}: {host}");
        }
        agent.ok("navigate", &json!({"sessionId": "one", "url": scene.site.at("/home")}));
    }
}
