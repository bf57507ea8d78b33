//! The daemon is killed at every step of opening a session, copying one, opening a tab, moving and ending a session. What it was doing
//! is then either done or undone, never half: a copy that is there is logged in wherever its source was. Another agent that works
//! meanwhile notices nothing but a pause.

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
    /// Of a living session.
    Copy,
    /// Of a storage state that nobody can read again.
    CopyState,
    Move,
    Close,
}

const OPENING: &[Deed] = &[Deed::Open, Deed::Copy, Deed::CopyState];
const PAGES: &[Deed] = &[Deed::Open, Deed::Tab, Deed::Copy, Deed::CopyState];
const COPYING: &[Deed] = &[Deed::Copy, Deed::CopyState];

/// Where the daemon dies, and in which deeds it passes there.
const POINTS: [(&str, &[Deed]); 28] = [
    ("open-reserving", OPENING),
    ("open-reserved", OPENING),
    ("open-announcing", OPENING),
    ("open-announced", OPENING),
    ("open-has-directory", OPENING),
    ("open-has-source", OPENING),
    ("open-has-browser", OPENING),
    ("context-created", OPENING),
    ("context-furnished", OPENING),
    ("open-has-context", OPENING),
    ("open-writing", OPENING),
    ("open-written", OPENING),
    ("tab-begins", PAGES),
    ("page-created", PAGES),
    ("page-attached", PAGES),
    ("tab-has-page", PAGES),
    ("tab-writing", PAGES),
    ("tab-written", PAGES),
    ("open-finished", OPENING),
    ("copy-read", COPYING),
    ("copy-cookies-set", COPYING),
    ("copy-origin-written", COPYING),
    ("move-has-context", &[Deed::Move]),
    ("move-has-pages", &[Deed::Move]),
    ("move-written", &[Deed::Move]),
    ("close-deciding", &[Deed::Close]),
    ("close-begins", &[Deed::Close]),
    ("close-written", &[Deed::Close]),
];

/// And those of an ending that nobody waits for any more.
const LATE_POINTS: [&str; 3] = ["close-context-gone", "close-directory-gone", "close-writing"];

/// Three origins of one site.
const HOSTS: [&str; 3] = ["127.0.0.1", "localhost", "more.localhost"];

impl Deed {
    /// Whether the session begins with it.
    fn begins(self) -> bool {
        matches!(self, Self::Open | Self::Copy | Self::CopyState)
    }
}

/// How long the canary may wait for one answer. The soak has the machine to itself.
fn pause() -> Duration {
    if is_soak("TABMUX_SOAK_POINTS") { Duration::from_secs(2) } else { SOON }
}

struct Scene {
    lab: Lab,
    site: Site,
    places: PathBuf,
    /// A login at each of the site's hosts, as a file would have it.
    state: String,
}

impl Scene {
    fn set() -> Self {
        let mut lab = Lab::real();
        let places = lab.path().join("points");
        std::fs::create_dir(&places).unwrap();
        lab.set("TABMUX_FAILPOINTS", places.to_str().unwrap());
        let site = Site::open();
        let cookies: Vec<Value> = HOSTS
            .iter()
            .map(|host| json!({"name": "sid", "value": "s1", "domain": host, "path": "/", "expires": -1, "httpOnly": true}))
            .collect();
        let kept = |host: &&str| json!({"origin": site.of(host, ""), "localStorage": [{"name": "user", "value": "ann"}]});
        let state = json!({"cookies": cookies, "origins": HOSTS.iter().map(kept).collect::<Vec<_>>()}).to_string();
        Self { lab, site, places, state }
    }

    /// By a cookie that scripts do not see, and by what the origin keeps; at each host.
    fn log_in(&self, agent: &Mcp, name: &str) {
        for host in HOSTS {
            agent.ok("navigate", &json!({"sessionId": name, "url": self.site.of(host, "/login")}));
            assert_eq!(eval_in(agent, name, "localStorage.user = 'ann'"), json!("ann"));
        }
    }

    fn assert_logged_in(&self, agent: &Mcp, name: &str, what: &str) {
        for host in HOSTS {
            let said = agent.ok("navigate", &json!({"sessionId": name, "url": self.site.of(host, "/who")})).text();
            assert!(!said.contains("Not copied"), "{what} at {host}: {said}");
            let found = eval_in(agent, name, "[document.querySelector('pre').textContent, localStorage.user ?? null]");
            assert_eq!(found, json!(["sid=s1", "ann"]), "{what} at {host}");
        }
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
        if !deed.begins() {
            agent.ok("start_browser", &json!({"sessionId": name, "navigationUrl": here}));
        }
        if deed == Deed::Move {
            self.log_in(agent, name);
            agent.ok("navigate", &json!({"sessionId": name, "url": here}));
        }
        self.arm(point);
        let reply = match deed {
            Deed::Open => agent.call("start_browser", &json!({"sessionId": name, "navigationUrl": here})),
            Deed::Tab => agent.call("new_page", &json!({"sessionId": name, "url": self.site.at("/second")})),
            Deed::Copy => agent.call("start_browser", &json!({"sessionId": name, "from": "source", "navigationUrl": here})),
            Deed::CopyState => agent.call("start_browser", &json!({"sessionId": name, "from": self.state, "navigationUrl": here})),
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
            if matches!(deed, Deed::Copy | Deed::CopyState | Deed::Move) {
                self.assert_logged_in(agent, name, &format!("{deed:?} at {point}"));
            }
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

    /// What is there works, with the pages it had; one that begins has the page that was asked for, and no other.
    fn assert_usable(&self, agent: &Mcp, name: &str, deed: Deed) {
        let pages = agent.ok("list_pages", &json!({"sessionId": name})).structured()["pages"].clone();
        let urls: Vec<&str> = pages.as_array().unwrap().iter().filter_map(|page| page["url"].as_str()).collect();
        let known = [self.site.at("/first"), self.site.at("/second"), "about:blank".to_owned()];
        assert!(urls.iter().all(|url| known.iter().any(|known| known == url)), "{deed:?}: {urls:?}");
        assert!(urls.contains(&known[0].as_str()), "{deed:?}: {urls:?}");
        assert!(!deed.begins() || urls.len() == 1, "{deed:?}: {urls:?}");
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
    let (copies, others): (Vec<_>, Vec<_>) = plays.iter().copied().partition(|(_, deed)| deed.is_some_and(|deed| COPYING.contains(&deed)));
    let plays = match times {
        0 => [chance.some_of(others, 4), chance.some_of(copies, 2)].concat(),
        times => (0..times).flat_map(|_| chance.some_of(plays.clone(), plays.len())).collect(),
    };
    let canary = scene.lab.ready_client();
    canary.ok("navigate", &json!({"url": scene.site.at("/canary")}));
    assert_eq!(eval(&canary, "location.pathname"), json!("/canary"));
    let agent = scene.lab.ready_client();
    agent.ok("start_browser", &json!({"sessionId": "source"}));
    scene.log_in(&agent, "source");
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
