//! The daemon is killed at every step of opening a session, opening a tab and ending a session. What it was doing is then
//! either done or undone, never half, and another agent that works meanwhile notices nothing but a pause.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::site::{Site, eval};
use crate::support::{Chance, Lab, Mcp, Reply, SOON, amount, is_soak, until, wait};

/// What the agent does when the daemon dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Deed {
    Open,
    Tab,
    Copy,
    Move,
    Close,
}

/// Where the daemon dies, and in which deeds it passes there.
const POINTS: [(&str, &[Deed]); 26] = [
    ("open-reserving", &[Deed::Open]),
    ("open-reserved", &[Deed::Open]),
    ("open-announcing", &[Deed::Open]),
    ("open-announced", &[Deed::Open]),
    ("open-has-directory", &[Deed::Open]),
    ("open-has-source", &[Deed::Open]),
    ("open-has-browser", &[Deed::Open]),
    ("context-created", &[Deed::Open]),
    ("context-furnished", &[Deed::Open]),
    ("open-has-context", &[Deed::Open]),
    ("open-writing", &[Deed::Open]),
    ("open-written", &[Deed::Open]),
    ("tab-begins", &[Deed::Open, Deed::Tab]),
    ("page-created", &[Deed::Open, Deed::Tab]),
    ("page-attached", &[Deed::Open, Deed::Tab]),
    ("tab-has-page", &[Deed::Open, Deed::Tab]),
    ("tab-writing", &[Deed::Open, Deed::Tab]),
    ("copy-read", &[Deed::Copy]),
    ("copy-cookies-set", &[Deed::Copy]),
    ("copy-origin-written", &[Deed::Copy]),
    ("move-has-context", &[Deed::Move]),
    ("move-has-pages", &[Deed::Move]),
    ("move-written", &[Deed::Move]),
    ("close-deciding", &[Deed::Close]),
    ("close-begins", &[Deed::Close]),
    ("close-written", &[Deed::Close]),
];

/// And those of an ending that nobody waits for any more.
const LATE_POINTS: [&str; 3] = ["close-context-gone", "close-directory-gone", "close-writing"];

/// How long the canary may wait for one answer. The soak has the machine to itself.
fn pause() -> Duration {
    if is_soak("TABMUX_SOAK_POINTS") { Duration::from_secs(2) } else { SOON }
}

struct Scene {
    lab: Lab,
    site: Site,
    places: PathBuf,
}

impl Scene {
    fn set() -> Self {
        let mut lab = Lab::real();
        let places = lab.path().join("points");
        std::fs::create_dir(&places).unwrap();
        lab.set("TABMUX_FAILPOINTS", places.to_str().unwrap());
        Self { lab, site: Site::open(), places }
    }

    /// The next daemon that passes there dies.
    fn arm(&self, point: &str) {
        std::fs::write(self.places.join(point), "").unwrap();
    }

    fn await_death(&self, point: &str) {
        until(&format!("a daemon dies at {point}"), SOON, || (!self.places.join(point).exists()).then_some(()));
    }

    /// As many contexts in the browser, and directories on disk, as there are sessions.
    fn assert_balanced(&self, after: &str) {
        let counted = || {
            let status = self.lab.status();
            let count = |value: &Value| value.as_u64().unwrap_or_default();
            let browsers = status["browsers"].as_array().cloned().unwrap_or_default();
            let sessions = count(&status["sessions"]["active"]) + count(&status["sessions"]["orphaned"]);
            let contexts: u64 = browsers.iter().map(|browser| count(&browser["contexts"])).sum();
            let directories = std::fs::read_dir(self.lab.state_dir().join("downloads")).map(Iterator::count).unwrap_or_default();
            (sessions, contexts, directories as u64)
        };
        let began = Instant::now();
        loop {
            let (sessions, contexts, directories) = counted();
            if sessions == contexts && sessions == directories {
                return;
            }
            let late = began.elapsed() > SOON;
            assert!(!late, "after {after}: {sessions} sessions, {contexts} contexts, {directories} directories");
            wait::pass(Duration::from_millis(20));
        }
    }

    /// One death, and what is left of what the agent was doing.
    fn play(&self, agent: &Mcp, point: &str, deed: Deed) {
        let name = "victim";
        let here = self.site.at("/first");
        if !matches!(deed, Deed::Open | Deed::Copy) {
            agent.ok("start_browser", &json!({"sessionId": name, "navigationUrl": here}));
        }
        self.arm(point);
        let reply = match deed {
            Deed::Open => agent.call("start_browser", &json!({"sessionId": name, "navigationUrl": here})),
            Deed::Tab => agent.call("new_page", &json!({"sessionId": name, "url": self.site.at("/second")})),
            Deed::Copy => agent.call("start_browser", &json!({"sessionId": name, "from": "source", "navigationUrl": here})),
            Deed::Move => agent.call("migrate", &json!({"sessionId": name, "isolation": "context"})),
            Deed::Close => agent.call("close_session", &json!({"sessionId": name})),
        };
        self.await_death(point);
        assert!(is_honest(&reply), "{deed:?} at {point}: {reply:?}");
        let left = agent.sessions().iter().any(|session| session == name);
        println!("{deed:?}, killed at {point}: {}", if left { "there" } else { "undone" });
        assert!(left || !matches!(deed, Deed::Tab | Deed::Move), "a session outlives what it did not get: {point}");
        if left {
            self.assert_usable(agent, name, deed);
            agent.ok("close_session", &json!({"sessionId": name}));
        }
        // The name is free, and everything of the former session gone.
        agent.ok("start_browser", &json!({"sessionId": name, "navigationUrl": here}));
        assert_eq!(eval_in(agent, name, "location.pathname"), json!("/first"));
        agent.ok("close_session", &json!({"sessionId": name}));
        self.assert_balanced(point);
    }

    /// The ending is answered for before it is over: it is finished by the next daemon.
    fn play_late(&self, agent: &Mcp, point: &str) {
        agent.ok("start_browser", &json!({"sessionId": "victim", "navigationUrl": self.site.at("/first")}));
        self.arm(point);
        let reply = agent.call("close_session", &json!({"sessionId": "victim"}));
        assert!(is_honest(&reply), "close at {point}: {reply:?}");
        self.await_death(point);
        assert!(!agent.sessions().contains(&"victim".to_owned()), "{point}");
        self.assert_balanced(point);
    }

    /// What is there works, with the pages it had.
    fn assert_usable(&self, agent: &Mcp, name: &str, deed: Deed) {
        let pages = agent.ok("list_pages", &json!({"sessionId": name})).structured()["pages"].clone();
        let urls: Vec<&str> = pages.as_array().unwrap().iter().filter_map(|page| page["url"].as_str()).collect();
        let known = [self.site.at("/first"), self.site.at("/second"), "about:blank".to_owned()];
        assert!(urls.iter().all(|url| known.iter().any(|known| known == url)), "{deed:?}: {urls:?}");
        assert!(matches!(deed, Deed::Open | Deed::Copy) || urls.contains(&known[0].as_str()), "{deed:?}: {urls:?}");
        agent.ok("navigate", &json!({"sessionId": name, "url": self.site.at("/again")}));
        assert_eq!(eval_in(agent, name, "location.pathname"), json!("/again"));
    }
}

fn eval_in(agent: &Mcp, session: &str, script: &str) -> Value {
    agent.ok("evaluate", &json!({"sessionId": session, "script": script})).result()["value"].clone()
}

/// Done, or said to be unknown.
fn is_honest(reply: &Reply) -> bool {
    !reply.failed() || reply.code() == "outcome_unknown"
}

/// Reads its page ten times a second until told to stop: every answer is right, and none takes long.
fn sing(canary: &Mcp, done: &AtomicBool) -> (usize, Duration) {
    let (mut songs, mut longest) = (0, Duration::ZERO);
    while !done.load(Ordering::Relaxed) {
        let began = Instant::now();
        let heard = canary.ok("read_text", &json!({})).text();
        assert!(heard.contains("The page /canary"), "{heard}");
        let took = began.elapsed();
        assert!(took < pause(), "the canary was silent for {took:?}");
        (songs, longest) = (songs + 1, longest.max(took));
        wait::pass(Duration::from_millis(100).saturating_sub(took));
    }
    (songs, longest)
}

/// S3.5, S3.21, S3.23, S3.25
#[test]
fn wherever_the_daemon_dies_a_session_is_there_or_not_and_nothing_is_left_of_half_of_it() {
    let scene = Scene::set();
    let mut chance = Chance::announced("points");
    let mut plays: Vec<(&str, Option<Deed>)> =
        POINTS.iter().flat_map(|(point, deeds)| deeds.iter().map(|deed| (*point, Some(*deed)))).collect();
    plays.extend(LATE_POINTS.map(|point| (point, None)));
    let times = amount("TABMUX_SOAK_POINTS", 0);
    let plays = match times {
        0 => chance.some_of(plays, 6),
        times => (0..times).flat_map(|_| chance.some_of(plays.clone(), plays.len())).collect(),
    };
    let canary = scene.lab.ready_client();
    canary.ok("navigate", &json!({"url": scene.site.at("/canary")}));
    assert_eq!(eval(&canary, "location.pathname"), json!("/canary"));
    let agent = scene.lab.ready_client();
    agent.ok("start_browser", &json!({"sessionId": "source", "navigationUrl": scene.site.at("/login")}));
    assert_eq!(eval_in(&agent, "source", "localStorage.user = 'ann'"), json!("ann"));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let singing = scope.spawn(|| sing(&canary, &done));
        let played = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for (point, deed) in plays {
                match deed {
                    Some(deed) => scene.play(&agent, point, deed),
                    None => scene.play_late(&agent, point),
                }
            }
        }));
        done.store(true, Ordering::Relaxed);
        let (songs, longest) = singing.join().unwrap();
        println!("the canary was answered {songs} times, at the latest after {longest:?}");
        played.unwrap();
    });
}
