//! Random histories of the shipped binary: agents open sessions and tabs, act, keep things, copy, close, share, hand over, leave, come back
//! and reach for what is not theirs; the daemon is killed between the steps and in the middle of them, and the browser crashes. After
//! every step each session is what the model says, with what its pages hold and keep, or, where a kill left the outcome unknown, what it
//! was before or after the step. Several are played at once, each with a daemon of its own; every history has its own seed, so that one
//! that fails is played again alone (`TABMUX_SEED`).
#![allow(clippy::unwrap_used, clippy::print_stdout, clippy::print_stderr, reason = "tests, helpers included")]

mod model;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use model::{Kept, Model, Shelf, Shown, Step, Tab, Unknown, number};
use serde_json::{Value, json};
use support::site::Site;
use support::{Chance, Lab, Mcp, Reply, SOON, amount, is_soak, process, until, wait};

const AGENTS: usize = 3;
const NAMES: [&str; 3] = ["left", "middle", "right"];
/// Steps of one history.
const STEPS: usize = 14;
/// How many copies there may be, of all agents together.
const COPIES: usize = 3;
/// How often a soak says how far it is.
const MILESTONE: usize = 500;

/// What a page says its field holds, in either browser.
const FIELD: &str = "document.querySelector(\"#name\").value";

/// When the daemon dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kill {
    No,
    Before,
    Meanwhile,
}

/// How a browser fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// It lives and dies with its daemon; the next one has its pages at their addresses, and that is all.
    Fake,
    Real,
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
    kind: Kind,
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
    fn at(lab: &'a Lab, kind: Kind, course: &'a Course) -> Self {
        let agents = (0..AGENTS).map(|agent| arrive(lab, agent)).collect();
        let site = Site::start(|path| format!("<title>{path}</title><input id=name aria-label=Name>"));
        Self {
            lab,
            kind,
            course,
            site,
            chance: course.first.clone(),
            seed: 0,
            agents,
            models: BTreeMap::new(),
            pages: 0,
            story: Vec::new(),
        }
    }

    fn play(&mut self, chance: Chance) {
        (self.seed, self.chance) = (chance.seed(), chance);
        for _ in 0..STEPS {
            let agent = self.chance.below(AGENTS);
            let name = NAMES[self.chance.below(NAMES.len())];
            match self.chance.below(24) {
                0 | 1 => self.leave_and_come_back(agent),
                2 | 3 => self.reach_for_anothers(agent),
                4 | 5 => self.share(agent, name),
                6 => self.crash(),
                _ => self.step(agent, name),
            }
        }
        self.end();
    }

    fn step(&mut self, agent: usize, name: &'static str) {
        self.hear(agent, name);
        let step = self.choose(agent, name);
        if let Step::Copy(source) = step {
            self.check(agent, source);
        }
        let kill = match self.chance.below(10) {
            0 => Kill::Before,
            1 => Kill::Meanwhile,
            _ => Kill::No,
        };
        self.pages += 1;
        let value = self.site.at(&format!("/{agent}/{name}/{}", self.pages));
        self.story.push(format!("agent {agent}, {name}: {step:?} {value}, killed: {kill:?}"));
        let reply = self.call(agent, name, step, &value, kill);
        let before = self.models.get(&(agent, name)).cloned();
        let source = match step {
            Step::Copy(source) => self.models.get(&(agent, source)).cloned(),
            _ => None,
        };
        let is_full = source.is_some() && self.models.values().filter(|model| model.copy_of.is_some()).count() >= COPIES;
        if is_full && reply.failed() && reply.code() == "capacity" {
            return self.check(agent, name);
        }
        let forgets = kill == Kill::Meanwhile && self.kind == Kind::Fake;
        if reply.failed() {
            assert!(kill == Kill::Meanwhile && reply.code() == "outcome_unknown", "{reply:?}");
            let unknown = Unknown { before: before.as_ref(), step, value: &value, source: source.as_ref(), forgets };
            self.learn(agent, name, &unknown);
        } else {
            assert!(!is_full, "more copies than there may be: {reply:?}");
            self.models.remove(&(agent, name));
            let after = Model::done(before, step, &value, &reply, source.as_ref());
            self.models.extend(after.map(|after| ((agent, name), after)));
            if forgets && self.seen(agent, name) != self.models.get(&(agent, name)).map(Model::shown) {
                // It was done before the daemon died, and not after.
                self.models.entry((agent, name)).and_modify(Model::forget);
            }
        }
        self.check(agent, name);
    }

    fn choose(&mut self, agent: usize, name: &'static str) -> Step {
        let Some(model) = self.models.get(&(agent, name)) else {
            let others: Vec<&'static str> = self.models.keys().filter(|(owner, _)| *owner == agent).map(|(_, other)| *other).collect();
            return match self.chance.below(2) {
                1 if !others.is_empty() => Step::Copy(others[self.chance.below(others.len())]),
                _ => Step::Open,
            };
        };
        let (tabs, has_page) = (model.tabs.len(), model.current().is_some_and(|tab| !tab.is_blank()));
        match self.chance.below(10) {
            0 => Step::Close,
            1 if tabs > 0 => Step::CloseTab(self.chance.below(tabs)),
            2 if tabs > 0 => Step::Select(self.chance.below(tabs)),
            3 => Step::Go,
            4 | 5 if has_page => Step::Act,
            6 if has_page => Step::Keep(Shelf::Cookie),
            7 if has_page => Step::Keep(Shelf::Local),
            _ => Step::Tab,
        }
    }

    fn call(&mut self, agent: usize, name: &str, step: Step, value: &str, kill: Kill) -> Reply {
        let (tool, mut arguments) = match step {
            Step::Open => ("start_browser", json!({"navigationUrl": value})),
            Step::Copy(source) => ("start_browser", json!({"navigationUrl": value, "from": source})),
            Step::Tab => ("new_page", json!({"url": value})),
            Step::Go => ("navigate", json!({"url": value})),
            Step::Act => ("set_value", json!({"selector": "#name", "value": value})),
            Step::Keep(Shelf::Cookie) => ("evaluate", json!({"script": format!("document.cookie = \"kept={value}; path=/\"")})),
            Step::Keep(Shelf::Local) => ("storage", json!({"set": {"kept": value}})),
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
    fn kill_daemon(&mut self, acting: usize) {
        let daemon = pid_of_daemon(self.lab);
        process::kill(daemon);
        until("it is dead", SOON, || (!process::is_alive(daemon)).then_some(()));
        if self.kind == Kind::Fake {
            self.models.values_mut().for_each(Model::forget);
        }
        for other in (0..AGENTS).filter(|other| *other != acting) {
            self.listed(other);
        }
    }

    /// The browser crashes, perhaps together with the daemon. Sessions keep their names and what they are called.
    fn crash(&mut self) {
        let has_page = |model: &Model| model.current().is_some();
        let together = self.chance.below(3) == 0 && self.kind == Kind::Real;
        let Some(((agent, name), _)) = self.models.iter().find(|(_, model)| has_page(model)) else { return };
        let (agent, name) = (*agent, *name);
        if !together {
            // A daemon hears of the end for those that were used since it came; the others find it out.
            self.check_all();
        }
        self.story.push(format!("the browser crashes, the daemon too: {together}"));
        match self.kind {
            Kind::Fake => {
                self.agents[agent].fails("evaluate", &json!({"sessionId": name, "script": "endBrowser()"}), "browser_crashed");
            }
            Kind::Real => {
                // A daemon that has just started may still have to find it.
                let known = || Some(self.lab.glance()["browsers"].as_array()?.clone()).filter(|browsers| !browsers.is_empty());
                // Two, where a daemon was killed while it started one: the next could not know of it yet.
                for browser in until("the browser is known", SOON, known) {
                    let pid = until("it has a process", SOON, || browser["pid"].as_u64());
                    process::kill(u32::try_from(pid).expect("pids are small"));
                }
            }
        }
        self.models.values_mut().for_each(Model::lose);
        if together {
            self.kill_daemon(AGENTS);
        }
        until("its end is known", SOON, || (self.lab.glance()["browsers"] == json!([])).then_some(()));
        if !together {
            // A call that comes before its session knows is one that was running: it is told, and the next one too.
            for client in &self.agents {
                until("each session knows", SOON, || {
                    let listed = client.ok("list_sessions", &json!({})).structured();
                    listed["sessions"].as_array().unwrap().iter().all(|session| session["tabs"] == json!(0)).then_some(())
                });
            }
        }
    }

    /// A session whose browser is gone says so, once, whatever it is asked. The next call opens it again.
    fn hear(&mut self, agent: usize, name: &'static str) {
        let Some(model) = self.models.get(&(agent, name)).filter(|model| model.is_lost) else { return };
        let whence = model.copy_of.clone();
        let (tool, arguments) =
            [("list_pages", json!({})), ("evaluate", json!({"script": "1"})), ("new_page", json!({"url": "about:blank"}))]
                [self.chance.below(3)]
            .clone();
        let mut arguments = arguments;
        arguments["sessionId"] = json!(name);
        self.story.push(format!("agent {agent}, {name} is told by {tool}"));
        self.agents[agent].fails(tool, &arguments, "browser_crashed");
        // A copy begins with what its source keeps now, as long as that is its agent's.
        let source = whence.and_then(|uuid| self.models.iter().find(|((owner, _), model)| *owner == agent && model.uuid == uuid));
        let kept = source.map(|(_, source)| source.kept.clone()).unwrap_or_default();
        self.models.entry((agent, name)).and_modify(|model| (model.is_lost, model.kept) = (false, kept));
    }

    fn learn(&mut self, agent: usize, name: &'static str, unknown: &Unknown<'_>) {
        let mut seen = self.seen(agent, name);
        assert!(unknown.may_be(seen.as_ref()), "{unknown:?}\nnow: {seen:?}");
        self.models.remove(&(agent, name));
        if seen.as_ref().is_some_and(|seen| seen.kept.is_none()) && unknown.source.is_some() {
            // There is no page that could tell what it keeps.
            self.agents[agent].ok("navigate", &json!({"sessionId": name, "url": unknown.value}));
            seen = self.seen(agent, name);
            assert!(unknown.may_be(seen.as_ref()), "{unknown:?}\nnow: {seen:?}");
        }
        if let Some(Shown { tabs, current, kept }) = seen {
            let highest = tabs.iter().map(|tab| tab.id).chain(unknown.before.map(|model| model.highest)).max().unwrap_or_default();
            let old = unknown.before.cloned().unwrap_or_default();
            let copy_of = unknown.source.map(|source| source.uuid.clone()).or(old.copy_of);
            let uuid = self.listed(agent)[name].clone();
            self.models
                .insert((agent, name), Model { uuid, tabs, current, highest, kept: kept.unwrap_or(old.kept), copy_of, is_lost: false });
        }
    }

    fn check(&mut self, agent: usize, name: &'static str) {
        self.hear(agent, name);
        let wanted = self.models.get(&(agent, name)).map(Model::shown);
        let seen = self.seen(agent, name);
        assert_eq!(seen, wanted);
    }

    fn check_all(&mut self) {
        for agent in 0..AGENTS {
            for name in NAMES {
                self.check(agent, name);
            }
        }
    }

    /// A session as its agent sees it.
    fn seen(&self, agent: usize, name: &str) -> Option<Shown> {
        let client = &self.agents[agent];
        let reply = client.call("list_pages", &json!({"sessionId": name}));
        // The second where it was handed over.
        if ["session_not_found", "stale_epoch"].contains(&reply.code().as_str()) {
            return None;
        }
        assert!(!reply.failed(), "{reply:?}");
        let pages = reply.structured()["pages"].as_array().unwrap().clone();
        let evaluate = |tab: &Value, script: &str| {
            let said = client.ok("evaluate", &json!({"sessionId": name, "tabId": tab, "script": script}));
            said.result()["value"].as_str().unwrap_or_else(|| panic!("a text: {said:?}")).to_owned()
        };
        let tab = |page: &Value| {
            let mut tab = Tab { id: number(&page["tabId"]), url: page["url"].as_str().unwrap().to_owned(), field: String::new() };
            if !tab.is_blank() {
                tab.field = evaluate(&page["tabId"], FIELD);
            }
            tab
        };
        let tabs: Vec<Tab> = pages.iter().map(tab).collect();
        let kept = tabs.iter().find(|tab| !tab.is_blank()).map(|tab| {
            let tab = json!(format!("t{}", tab.id));
            let stored = client.ok("storage", &json!({"sessionId": name, "tabId": tab})).structured();
            let stored = stored["items"].as_array().unwrap().iter().find(|item| item["name"] == json!("kept")).cloned();
            Kept {
                cookie: evaluate(&tab, "document.cookie").strip_prefix("kept=").map(str::to_owned),
                local: stored.and_then(|item| item["value"].as_str().map(str::to_owned)),
            }
        });
        let current = pages.iter().find(|page| page["current"] == json!(true)).map(|page| number(&page["tabId"]));
        if let Some(tab) = current.filter(|_| tabs.len() > 1) {
            // Who looks into a tab makes it current.
            client.ok("select_page", &json!({"sessionId": name, "tabId": format!("t{tab}")}));
        }
        Some(Shown { tabs, current, kept })
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
        self.check(agent, name);
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
            // As it is now: the daemon may have died.
            let model = self.models.remove(&(agent, name)).unwrap();
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
        let copies = self.models.values().filter(|model| model.copy_of.is_some()).count();
        assert_eq!(self.lab.glance()["sessions"]["clones"], json!(copies));
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

fn pid_of_daemon(lab: &Lab) -> u32 {
    u32::try_from(lab.glance()["pid"].as_u64().expect("status has a pid")).expect("pids are small")
}

fn arrive(lab: &Lab, agent: usize) -> Mcp {
    let client = lab.client_with(&["mcp", "--session", &format!("agent{agent}")]);
    client.initialize();
    client
}

fn home(kind: Kind) -> Lab {
    let mut lab = match kind {
        Kind::Fake => Lab::new(),
        Kind::Real => Lab::real(),
    };
    let settings = lab.path().join("settings.toml");
    std::fs::write(&settings, format!("limits.max_clones = {COPIES}\n")).unwrap();
    lab.set("TABMUX_CONFIG", settings.to_str().unwrap());
    lab
}

/// Plays so many, in so many homes at once; the soak has the machine to itself.
fn play(kind: Kind, homes: usize, histories: usize, what: &str) {
    let course = Course { first: Chance::announced(what), histories, begun: AtomicUsize::new(0), since: Instant::now() };
    std::thread::scope(|scope| {
        for _ in 0..homes.min(histories) {
            scope.spawn(|| {
                let lab = home(kind);
                let mut history = History::at(&lab, kind, &course);
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
    play(Kind::Fake, if is_soak(HISTORIES) { 8 } else { 2 }, amount(HISTORIES, 12), "histories");
}

/// S2.31, S3.36
#[test]
fn the_same_holds_with_a_real_browser() {
    const HISTORIES: &str = "TABMUX_SOAK_REAL_HISTORIES";
    play(Kind::Real, if is_soak(HISTORIES) { 3 } else { 1 }, amount(HISTORIES, 2), "histories with Chromium");
}
