//! Random histories of the shipped binary: agents open sessions and tabs, act, close, share, hand over, leave, come back and reach for what
//! is not theirs, and the daemon is killed between the steps and in the middle of them. After every step each session is what
//! the model says, or, where a kill left the outcome unknown, what it was before or after the step. Several are played at once, each
//! with a daemon of its own; every history has its own seed, so that one that fails is played again alone (`TABMUX_SEED`).
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "tests, helpers included")]

mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::site::Site;
use support::{Chance, Lab, Mcp, Reply, SOON, amount, is_soak, process, until, wait};

const AGENTS: usize = 3;
const NAMES: [&str; 3] = ["left", "middle", "right"];
/// Steps of one history.
const STEPS: usize = 14;
/// How often a soak says how far it is.
const MILESTONE: usize = 500;

/// The id of a tab and where it is.
type Tab = (u64, String);

/// The tabs of a session in their order, and the current one.
type Shown = (Vec<Tab>, Option<u64>);

/// What the model knows of a session.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Model {
    uuid: String,
    tabs: Vec<Tab>,
    current: Option<u64>,
    /// The highest id a tab ever had: none comes again.
    highest: u64,
}

impl Model {
    fn add(&mut self, tab: u64, url: &str) {
        assert!(tab > self.highest, "the id of tab {tab} was another's");
        self.tabs.push((tab, url.to_owned()));
        (self.highest, self.current) = (tab, Some(tab));
    }

    fn shown(&self) -> Shown {
        (self.tabs.clone(), self.current)
    }

    /// Where its current tab is.
    fn url(&self) -> Option<&str> {
        self.tabs.iter().find(|(tab, _)| Some(*tab) == self.current).map(|(_, url)| url.as_str())
    }

    fn at_current(&mut self) -> Option<&mut String> {
        let current = self.current;
        self.tabs.iter_mut().find(|(tab, _)| Some(*tab) == current).map(|(_, url)| url)
    }
}

/// One step of an agent in one of its sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Open,
    Tab,
    Go,
    /// Fills in a field of the current page.
    Act,
    Select(usize),
    CloseTab(usize),
    Close,
}

/// When the daemon dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    No,
    Before,
    Meanwhile,
}

/// All histories of a run, which several homes take from.
struct Course {
    first: Chance,
    histories: usize,
    begun: AtomicUsize,
    since: Instant,
}

impl Course {
    fn next(&self) -> Option<Chance> {
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        if number > 0 && number.is_multiple_of(MILESTONE) {
            println!("{number} histories in {:?}", self.since.elapsed());
        }
        (number < self.histories).then(|| self.first.part(number))
    }
}

struct History<'a> {
    lab: &'a Lab,
    course: &'a Course,
    site: Site,
    chance: Chance,
    seed: u64,
    agents: Vec<Mcp>,
    models: BTreeMap<(usize, &'static str), Model>,
    pages: usize,
    /// What happened, for a failure's report.
    story: Vec<String>,
}

impl Drop for History<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("the history of TABMUX_SEED={} broke; as the only one it is played again: {:#?}", self.seed, self.story);
            // The others finish what they are at.
            self.course.begun.store(self.course.histories, Ordering::Relaxed);
        }
    }
}

impl<'a> History<'a> {
    fn at(lab: &'a Lab, course: &'a Course) -> Self {
        let agents = (0..AGENTS).map(|agent| arrive(lab, agent)).collect();
        let site = Site::start(|path| format!("<title>{path}</title><input id=name aria-label=Name>"));
        Self { lab, course, site, chance: course.first.clone(), seed: 0, agents, models: BTreeMap::new(), pages: 0, story: Vec::new() }
    }

    fn play(&mut self, chance: Chance) {
        (self.seed, self.chance) = (chance.seed(), chance);
        for _ in 0..STEPS {
            let agent = self.chance.below(AGENTS);
            let name = NAMES[self.chance.below(NAMES.len())];
            match self.chance.below(12) {
                0 => self.leave_and_come_back(agent),
                1 => self.reach_for_anothers(agent),
                2 => self.share(agent, name),
                _ => self.step(agent, name),
            }
        }
        self.end();
    }

    fn step(&mut self, agent: usize, name: &'static str) {
        let model = self.models.get(&(agent, name));
        let tabs = model.map(|model| model.tabs.len());
        let has_field = model.is_some_and(|model| model.url().is_some_and(|url| url != "about:blank"));
        let step = match (tabs, self.chance.below(7)) {
            (None, _) => Step::Open,
            (Some(_), 0) => Step::Close,
            (Some(1..), 1) => Step::CloseTab(self.chance.below(tabs.unwrap_or(1))),
            (Some(1..), 2) => Step::Select(self.chance.below(tabs.unwrap_or(1))),
            (Some(_), 3) => Step::Go,
            (Some(_), 4) if has_field => Step::Act,
            (Some(_), _) => Step::Tab,
        };
        let kill = match self.chance.below(10) {
            0 => Kill::Before,
            1 => Kill::Meanwhile,
            _ => Kill::No,
        };
        self.pages += 1;
        let url = self.site.at(&format!("/{agent}/{name}/{}", self.pages));
        self.story.push(format!("agent {agent}, {name}: {step:?}, killed: {kill:?}"));
        let reply = self.call(agent, name, step, &url, kill);
        let before = self.models.get(&(agent, name)).cloned();
        let after = done(before.clone(), step, &url, &reply);
        if !reply.failed() {
            self.models.remove(&(agent, name));
            self.models.extend(after.map(|after| ((agent, name), after)));
        } else {
            assert!(kill == Kill::Meanwhile && reply.code() == "outcome_unknown", "{reply:?}");
            self.learn(agent, name, before.as_ref(), step, &url);
        }
        self.check(agent, name);
    }

    fn call(&self, agent: usize, name: &str, step: Step, url: &str, kill: Kill) -> Reply {
        let (tool, mut arguments) = match step {
            Step::Open => ("start_browser", json!({"navigationUrl": url})),
            Step::Tab => ("new_page", json!({"url": url})),
            Step::Go => ("navigate", json!({"url": url})),
            Step::Act => ("set_value", json!({"selector": "#name", "value": url})),
            Step::Select(index) => ("select_page", json!({"pageIdx": index})),
            Step::CloseTab(index) => ("close_page", json!({"pageIdx": index})),
            Step::Close => ("close_session", json!({})),
        };
        arguments["sessionId"] = json!(name);
        if kill == Kill::Before {
            self.kill_daemon(agent);
        }
        let asked = self.agents[agent].start_call(tool, &arguments);
        if kill == Kill::Meanwhile {
            self.kill_daemon(agent);
        }
        self.agents[agent].finish_call(&asked, SOON)
    }

    /// The others call at once: a shim that sees three daemons die without a word of use says so, and that is not what is tested.
    fn kill_daemon(&self, acting: usize) {
        let daemon = pid_of_daemon(self.lab);
        process::kill(daemon);
        until("it is dead", SOON, || (!process::is_alive(daemon)).then_some(()));
        for other in (0..AGENTS).filter(|other| *other != acting) {
            self.listed(other);
        }
    }

    /// Nobody knows what came of the step: it is what it was before, or after, or for a page that was being opened in between.
    fn learn(&mut self, agent: usize, name: &'static str, before: Option<&Model>, step: Step, url: &str) {
        let seen = self.seen(agent, name);
        let known = before.map(Model::shown);
        let is_between = match (&seen, step) {
            (None, _) => matches!(step, Step::Open | Step::Close),
            (Some((tabs, _)), Step::Open) => tabs.iter().all(|(_, at)| at == url || at == "about:blank") && tabs.len() <= 1,
            (Some((tabs, _)), Step::Tab) => {
                let old = before.map(|model| model.tabs.as_slice()).unwrap_or_default();
                let (kept, new) = tabs.split_at(old.len().min(tabs.len()));
                kept == old && new.len() <= 1 && new.iter().all(|(_, at)| at == url || at == "about:blank")
            }
            (Some((tabs, _)), Step::Go) => {
                let old = before.map(|model| model.tabs.as_slice()).unwrap_or_default();
                let moved = |((tab, at), (old_tab, old_at)): (&Tab, &Tab)| tab == old_tab && (at == old_at || at == url);
                tabs.iter().zip(old).all(moved) && tabs.len() <= old.len().max(1)
            }
            (Some(shown), Step::Select(_)) => known.as_ref().is_some_and(|known| known.0 == shown.0),
            (Some((tabs, _)), Step::CloseTab(index)) => {
                let mut old = before.map(|model| model.tabs.clone()).unwrap_or_default();
                *tabs == old || {
                    old.remove(index);
                    *tabs == old
                }
            }
            (Some(shown), Step::Close | Step::Act) => known.as_ref() == Some(shown),
        };
        assert!(is_between, "before: {before:?}\nnow: {seen:?}");
        self.models.remove(&(agent, name));
        if let Some((tabs, current)) = seen {
            let highest = tabs.iter().map(|(tab, _)| *tab).chain(before.map(|model| model.highest)).max().unwrap_or_default();
            let uuid = self.listed(agent)[name].clone();
            self.models.insert((agent, name), Model { uuid, tabs, current, highest });
        }
    }

    fn check(&mut self, agent: usize, name: &'static str) {
        let wanted = self.models.get(&(agent, name)).map(Model::shown);
        let seen = self.seen(agent, name);
        assert_eq!(seen, wanted);
    }

    /// The tabs of a session and which is current, as its agent sees them.
    fn seen(&self, agent: usize, name: &str) -> Option<Shown> {
        let reply = self.agents[agent].call("list_pages", &json!({"sessionId": name}));
        // The second where it was handed over.
        if ["session_not_found", "stale_epoch"].contains(&reply.code().as_str()) {
            return None;
        }
        assert!(!reply.failed(), "{reply:?}");
        let pages = reply.structured()["pages"].as_array().unwrap().clone();
        let tabs = pages.iter().map(|page| (number(&page["tabId"]), page["url"].as_str().unwrap().to_owned())).collect();
        let current = pages.iter().find(|page| page["current"] == json!(true)).map(|page| number(&page["tabId"]));
        Some((tabs, current))
    }

    /// The agent's sessions: name and uuid.
    fn listed(&self, agent: usize) -> BTreeMap<String, String> {
        let listed = self.agents[agent].ok("list_sessions", &json!({})).structured();
        let word = |value: &Value| value.as_str().unwrap().to_owned();
        listed["sessions"].as_array().unwrap().iter().map(|session| (word(&session["sessionId"]), word(&session["uuid"]))).collect()
    }

    /// Its connection is lost, and it comes again as who it was.
    fn leave_and_come_back(&mut self, agent: usize) {
        self.story.push(format!("agent {agent} is lost and comes back"));
        process::kill(self.agents[agent].pid());
        let coming = arrive(self.lab, agent);
        // Until the daemon has seen the loss, the name is another's.
        until("it is itself again", SOON, || (coming.call("list_sessions", &json!({})).code() != "session_exists").then_some(()));
        self.agents[agent] = coming;
        for name in NAMES {
            self.check(agent, name);
        }
    }

    /// No name of another's session is worth anything.
    fn reach_for_anothers(&mut self, agent: usize) {
        let others: Vec<String> =
            self.models.iter().filter(|((owner, _), _)| *owner != agent).map(|(_, model)| model.uuid.clone()).collect();
        self.story.push(format!("agent {agent} reaches for {} sessions of others", others.len()));
        for uuid in others {
            for (tool, arguments) in [("evaluate", json!({"script": "1"})), ("close_session", json!({}))] {
                let mut arguments = arguments;
                arguments["sessionId"] = json!(uuid);
                let code = self.agents[agent].call(tool, &arguments).code();
                assert!(["session_not_found", "stale_epoch"].contains(&code.as_str()), "{code}");
            }
        }
    }

    /// Another agent may do what it was let, also after the daemon's death, and no more; then it is over, or the session is its own.
    fn share(&mut self, agent: usize, name: &'static str) {
        let Some(model) = self.models.get(&(agent, name)).cloned() else { return };
        let other = (agent + 1 + self.chance.below(AGENTS - 1)) % AGENTS;
        let mode = ["read", "act", "hand_over"][self.chance.below(3)];
        let dies = self.chance.below(4) == 0;
        self.story.push(format!("agent {agent} shares {name} with {other}: {mode}, killed then: {dies}"));
        let given = self.agents[agent].ok("share_session", &json!({"sessionId": name, "mode": mode}));
        let capability = given.result()["capability"].clone();
        if dies {
            self.kill_daemon(agent);
        }
        let at = json!({"sessionId": capability});
        if mode == "hand_over" && !self.models.contains_key(&(other, name)) {
            self.agents[other].ok("list_pages", &at);
            self.models.remove(&(agent, name));
            self.models.insert((other, name), model);
            self.agents[agent].fails("list_pages", &json!({"sessionId": name}), "stale_epoch");
            return self.check(other, name);
        }
        if mode != "hand_over" {
            self.agents[other].ok("list_pages", &at);
            if let Some(tab) = model.current {
                let chosen = self.agents[other].call("select_page", &json!({"sessionId": capability, "tabId": format!("t{tab}")}));
                assert_eq!(chosen.failed(), mode == "read", "{chosen:?}");
            }
        }
        self.agents[agent].ok("share_session", &json!({"revoke": capability}));
        self.agents[other].fails("list_pages", &at, "session_not_found");
        self.check(agent, name);
    }

    /// Everybody has what the model says and nothing else; then nothing.
    fn end(&mut self) {
        for agent in 0..AGENTS {
            let wanted: BTreeMap<String, String> = self
                .models
                .iter()
                .filter(|((owner, _), _)| *owner == agent)
                .map(|((_, name), model)| ((*name).to_owned(), model.uuid.clone()))
                .collect();
            assert_eq!(self.listed(agent), wanted);
            for name in NAMES {
                self.check(agent, name);
            }
        }
        for agent in &self.agents {
            agent.ok("close_all_sessions", &json!({}));
        }
        let began = Instant::now();
        loop {
            let status = self.lab.glance();
            let contexts: u64 = status["browsers"].as_array().unwrap().iter().filter_map(|browser| browser["contexts"].as_u64()).sum();
            let sessions = ["active", "orphaned"].map(|state| status["sessions"][state].as_u64().unwrap());
            if contexts == 0 && sessions == [0, 0] {
                break;
            }
            assert!(began.elapsed() < SOON, "left over: {status}");
            wait::pass(Duration::from_millis(5));
        }
        self.models.clear();
        self.story.clear();
    }
}

/// What the session is after a step that was done.
fn done(before: Option<Model>, step: Step, url: &str, reply: &Reply) -> Option<Model> {
    if reply.failed() {
        return None;
    }
    let mut model = before.unwrap_or_default();
    match step {
        Step::Open => {
            model.uuid = reply.result()["uuid"].as_str().unwrap().to_owned();
            model.add(number(&reply.result()["tabId"]), url);
        }
        Step::Tab => model.add(number(&reply.result()["tabId"]), url),
        Step::Go => match model.at_current() {
            Some(at) => url.clone_into(at),
            None => model.add(number(&reply.result()["tabId"]), url),
        },
        Step::Act => {
            let acted_at = (Some(number(&reply.result()["tabId"])), reply.result()["url"].as_str().map(str::to_owned));
            assert_eq!(acted_at, (model.current, model.url().map(str::to_owned)), "{reply:?}");
        }
        Step::Select(index) => model.current = Some(model.tabs[index].0),
        Step::CloseTab(index) => {
            let (closed, _) = model.tabs.remove(index);
            if model.current == Some(closed) {
                model.current = model.tabs.first().map(|(tab, _)| *tab);
            }
        }
        Step::Close => return None,
    }
    Some(model)
}

/// `t12` is tab 12.
fn number(tab: &Value) -> u64 {
    tab.as_str().and_then(|tab| tab.strip_prefix('t')).and_then(|tab| tab.parse().ok()).unwrap_or_else(|| panic!("no tab id: {tab}"))
}

fn pid_of_daemon(lab: &Lab) -> u32 {
    u32::try_from(lab.glance()["pid"].as_u64().expect("status has a pid")).expect("pids are small")
}

fn arrive(lab: &Lab, agent: usize) -> Mcp {
    let client = lab.client_with(&["mcp", "--session", &format!("agent{agent}")]);
    client.initialize();
    client
}

/// Plays so many, in so many homes at once; the soak has the machine to itself.
fn play(home: impl Fn() -> Lab + Sync, homes: usize, histories: usize, what: &str) {
    let course = Course { first: Chance::announced(what), histories, begun: AtomicUsize::new(0), since: Instant::now() };
    std::thread::scope(|scope| {
        for _ in 0..homes.min(histories) {
            scope.spawn(|| {
                let lab = home();
                let mut history = History::at(&lab, &course);
                while let Some(chance) = course.next() {
                    history.play(chance);
                }
            });
        }
    });
    println!("{histories} histories of {STEPS} steps in {:?}", course.since.elapsed());
}

/// S1.41, S1.42, S2.23, S3.14
#[test]
fn whatever_happens_every_session_is_its_owners_and_as_it_was_left() {
    const HISTORIES: &str = "TABMUX_SOAK_HISTORIES";
    play(Lab::new, if is_soak(HISTORIES) { 8 } else { 2 }, amount(HISTORIES, 12), "histories");
}

/// S2.31, S3.36
#[test]
fn the_same_holds_with_a_real_browser() {
    const HISTORIES: &str = "TABMUX_SOAK_REAL_HISTORIES";
    play(Lab::real, if is_soak(HISTORIES) { 3 } else { 1 }, amount(HISTORIES, 2), "histories with Chromium");
}
