//! Anything is killed at any time while agents work: every answer is right or says honestly that it is none, and in the
//! end nothing is left.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::site::{Site, kill};
use crate::support::{Chance, Lab, Mcp, Reply, SOON, amount, process, until, wait};
use crate::victims::{VICTIMS, Victim, client, directories, kill_at_once, ready_client, sockets, whole_client};

const AGENTS: usize = 4;
/// What a call may say whose daemon, browser or forerunner was killed.
const HONEST: [&str; 7] = ["cancelled", "outcome_unknown", "browser_crashed", "session_exists", "tab_gone", "stale_epoch", "timeout"];

/// What the shim says when daemons are killed as fast as they start.
const NO_DAEMON: &str = "The daemon died 3 times in a row";

/// One agent at work; whoever kills its client or shim only makes it come again under its name.
struct Agent<'a> {
    lab: &'a Lab,
    site: &'a Site,
    name: String,
    client: Option<Mcp>,
    steps: usize,
    right: usize,
    failed: usize,
    came: usize,
}

impl Agent<'_> {
    fn call(&mut self, tool: &str, arguments: &Value) -> Option<Reply> {
        if self.client.is_none() {
            let client = client(self.lab, &self.name);
            let parameters = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "random", "version": "0"}});
            let reply = client.ask("initialize", &parameters)?;
            assert!(reply.get("result").is_some(), "{reply}");
            self.came += 1;
            self.client = Some(client);
        }
        let reply = self.client.as_ref()?.ask("tools/call", &json!({"name": tool, "arguments": arguments}));
        if reply.is_none() {
            self.client = None;
        }
        reply.map(Reply)
    }

    /// Goes somewhere and looks where it is.
    fn step(&mut self) -> Option<()> {
        self.steps += 1;
        let path = format!("/{}-{}", self.name, self.steps);
        let (site, page) = (self.site.at(&path), json!({"script": "location.pathname", "timeout": 10000}));
        for (tool, arguments) in [("navigate", json!({"url": site, "timeout": 10000})), ("evaluate", page)] {
            let reply = self.call(tool, &arguments)?;
            if reply.failed() {
                let honest = HONEST.contains(&reply.code().as_str()) || reply.text().contains(NO_DAEMON);
                assert!(honest, "{tool} of {path}: {reply:?}");
                self.failed += 1;
                return None;
            }
            assert!(tool == "navigate" || reply.result()["value"] == json!(path), "not {path}: {reply:?}");
        }
        self.right += 1;
        Some(())
    }
}

/// S1.26, S1.41
#[test]
fn random_kills_make_no_answer_wrong_and_leave_nothing() {
    let (lab, site) = (Lab::real(), Site::open());
    let mut chance = Chance::announced("random kills");
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let start = |number| {
            let (lab, site, done) = (&lab, &site, &done);
            scope.spawn(move || {
                let name = format!("agent{number}");
                let mut agent = Agent { lab, site, name, client: None, steps: 0, right: 0, failed: 0, came: 0 };
                while !done.load(Ordering::Relaxed) {
                    agent.step();
                }
                until(&format!("{} works again", agent.name), SOON, || agent.step());
                println!("{}: {} right, {} honestly failed, came {} times", agent.name, agent.right, agent.failed, agent.came);
            })
        };
        let agents: Vec<_> = (0..AGENTS).map(start).collect();
        let kills = || {
            for _ in 0..amount("TABMUX_SOAK_KILLS", 8) {
                kill_somebody(&lab, &mut chance);
                wait::pass(Duration::from_millis(chance.below(400) as u64));
            }
        };
        let killed = std::panic::catch_unwind(std::panic::AssertUnwindSafe(kills));
        done.store(true, Ordering::Relaxed);
        agents.into_iter().for_each(|agent| agent.join().unwrap());
        killed.unwrap();
    });
    lab.stop();
    assert_eq!((directories(&lab), sockets(&lab)), (0, 0), "nothing is left");
}

/// One of the living, or now and then two at one moment.
fn kill_somebody(lab: &Lab, chance: &mut Chance) {
    let mut pids = Vec::new();
    for _ in 0..1 + usize::from(chance.below(4) == 0) {
        let (victim, pid) = until("somebody lives", SOON, || {
            let victim = VICTIMS[chance.below(VICTIMS.len())];
            let living = victim.living(lab);
            (!living.is_empty()).then(|| (victim, living[chance.below(living.len())]))
        });
        println!("kill -9 of {} {pid}", victim.name());
        match victim {
            Victim::Client => pids.extend(whole_client(pid)),
            _ => pids.push(pid),
        }
    }
    kill_at_once(&pids);
}

/// The contract's `stop`: sessions and browsers end for good, also those of a daemon that is dead.
#[test]
fn a_stop_ends_the_browser_of_a_daemon_that_was_killed() {
    let (lab, site) = (Lab::real(), Site::open());
    let agent = ready_client(&lab, "mine");
    agent.ok("navigate", &json!({"url": site.at("/page")}));
    let pids: Vec<u32> = [Victim::Client, Victim::Shim, Victim::Daemon].iter().flat_map(|victim| victim.living(&lab)).collect();
    kill_at_once(&pids);
    until("the killed are gone", SOON, || Victim::Daemon.living(&lab).is_empty().then_some(()));
    let browser = Victim::Browser.living(&lab);
    assert_eq!(browser.len(), 1);
    drop(agent);
    lab.stop();
    assert!(!process::is_alive(browser[0]));
    assert_eq!((directories(&lab), sockets(&lab)), (0, 0));
    let agent = ready_client(&lab, "mine");
    assert_eq!(agent.sessions(), Vec::<String>::new(), "its session ended too");
    drop(agent);
    kill(lab.daemon_pid());
}
