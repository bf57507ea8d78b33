//! docs/kills.md, row by row: everything is killed that a row names, and what is left is compared with it.

use std::time::Duration;

use serde_json::json;

use crate::site::{Site, eval};
use crate::support::{Chance, Lab, Mcp, SOON, amount, at_once, is_soak, process, until};
use crate::victims::{VICTIMS, Victim, directories, kill_at_once, ready_client, sockets};

const TABLE: &str = include_str!("../../../../docs/kills.md");
const SESSION: &str = "mine";
/// The issue's own limit, which the soak holds it to; beside other tests it is only said how long it took.
const WITHIN: Duration = Duration::from_secs(2);
/// So many cases run at the same time.
const AT_ONCE: usize = 4;

#[derive(Clone, Debug)]
struct Row {
    killed: Vec<Victim>,
    /// Daemons, keepers, browsers, directories: at least and at most.
    left: [(usize, usize); 4],
    session: String,
    page: String,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Idle,
    Alert,
    Loop,
}

fn rows() -> Vec<Row> {
    let lines = TABLE.lines().filter(|line| line.starts_with('|')).skip(2);
    lines.map(row).collect()
}

fn row(line: &str) -> Row {
    let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
    let victim = |name: &str| VICTIMS.into_iter().find(|victim| victim.name() == name).unwrap_or_else(|| panic!("no such victim: {name}"));
    let count = |cell: &str| {
        let (least, most) = cell.split_once('–').unwrap_or((cell, cell));
        (least.parse().unwrap(), most.parse().unwrap())
    };
    Row {
        killed: cells[0].split(" + ").map(victim).collect(),
        left: [1, 2, 3, 4].map(|column| count(cells[column])),
        session: cells[5].to_owned(),
        page: cells[6].to_owned(),
    }
}

#[test]
fn the_table_has_a_row_for_every_combination() {
    let mut seen: Vec<usize> = rows()
        .iter()
        .map(|row| row.killed.iter().map(|victim| 1 << VICTIMS.iter().position(|other| other == victim).unwrap()).sum())
        .collect();
    seen.sort_unstable();
    assert_eq!(seen, (1..32).collect::<Vec<_>>());
}

/// S1.26, S1.41, S2.23
#[test]
fn what_is_left_after_any_death_is_what_the_table_says() {
    let mut chance = Chance::announced("kill table");
    let mut cases: Vec<(Row, State)> = Vec::new();
    for row in rows() {
        let states = chance.some_of(vec![State::Idle, State::Alert, State::Loop], amount("TABMUX_SOAK_STATES", 1));
        cases.extend(states.into_iter().map(|state| (row.clone(), state)));
    }
    for some in cases.chunks(AT_ONCE) {
        at_once(some.to_vec(), |(row, state)| {
            let names: Vec<_> = row.killed.iter().map(|victim| victim.name()).collect();
            println!("{} with {state:?}", names.join(" + "));
            Case { lab: Lab::real(), site: Site::open(), row, state }.run();
        });
    }
}

struct Case {
    lab: Lab,
    site: Site,
    row: Row,
    state: State,
}

impl Case {
    fn run(self) {
        let agent = ready_client(&self.lab, SESSION);
        agent.ok("navigate", &json!({"url": self.site.at("/page")}));
        eval(&agent, "window.kept = 'in memory'");
        self.bring_about(&agent);
        let browser = Victim::Browser.living(&self.lab);
        let others = browser.iter().flat_map(|pid| process::below(*pid)).collect::<Vec<_>>();
        let pids: Vec<u32> = self.row.killed.iter().flat_map(|victim| victim.living(&self.lab)).collect();
        assert!(pids.len() >= self.row.killed.len(), "all victims live: {pids:?}");
        kill_at_once(&pids);
        self.compare(&browser, &others);
        let gone = self.row.killed.contains(&Victim::Client) || self.row.killed.contains(&Victim::Shim);
        let agent = if gone {
            drop(agent);
            ready_client(&self.lab, SESSION)
        } else {
            agent
        };
        self.go_on(&agent);
        drop(agent);
        self.lab.stop();
        assert_eq!((directories(&self.lab), sockets(&self.lab)), (0, 0), "{:?}: a stop leaves nothing", self.row);
    }

    /// On the page's own accord, so that no call of ours is in the way.
    fn bring_about(&self, agent: &Mcp) {
        match self.state {
            State::Idle => {}
            State::Alert => {
                eval(agent, "setTimeout(() => alert('stop'), 0); 1");
                until("the alert is open", SOON, || {
                    (agent.call("evaluate", &json!({"script": "1"})).code() == "dialog_open").then_some(())
                });
            }
            State::Loop => {
                let spin = "const request = new XMLHttpRequest(); request.open('GET', '/spins', false); request.send(); for (;;) {}";
                eval(agent, &format!("setTimeout(() => {{ {spin} }}, 0); 1"));
                self.site.await_visit("/spins");
            }
        }
    }

    /// Looks until it is as the row says; a browser that is gone takes every process of its own along.
    fn compare(&self, browser: &[u32], others: &[u32]) {
        let Row { killed, left, session, .. } = &self.row;
        let what = format!("{killed:?} with {:?} leaves {left:?}, session {session}", self.state);
        let seen = || {
            let count = |victim: Victim| victim.living(&self.lab).len();
            [count(Victim::Daemon), count(Victim::Keeper), count(Victim::Browser), directories(&self.lab)]
        };
        let mut last = String::new();
        let limit = if is_soak("TABMUX_SOAK_STATES") { WITHIN } else { SOON };
        let began = std::time::Instant::now();
        loop {
            let now = seen();
            let counts = now.iter().zip(left).all(|(count, (least, most))| least <= count && count <= most);
            let same = left[2].1 == 0 || Victim::Browser.living(&self.lab) == browser;
            let alone = left[2].1 > 0 || others.iter().all(|pid| !process::is_alive(*pid));
            let (session_fits, status) = self.session_fits(session);
            if counts && same && alone && session_fits {
                println!("{what}: after {:?}", began.elapsed());
                return;
            }
            last.clear();
            last.push_str(&format!("{now:?}, the same browser: {same}, nothing else of it: {alone}, {status}"));
            assert!(began.elapsed() < limit, "{what}; but after {:?} there is {last}", began.elapsed());
            crate::support::wait::pass(Duration::from_millis(20));
        }
    }

    fn session_fits(&self, session: &str) -> (bool, serde_json::Value) {
        let status = self.lab.run(&["status", "--json"]);
        let Some(sessions) = serde_json::from_str::<serde_json::Value>(&status.stdout).ok().map(|status| status["sessions"].clone()) else {
            return (false, json!(status.stderr));
        };
        let fits = match session {
            // Without a daemon it is in the journal, which the next one shows.
            "waiting" => sessions.is_null() || (sessions["active"] == 0 && sessions["orphaned"] == 1),
            // One whose browser is gone is no active one, as soon as that is known.
            "live" if self.row.page == "afresh" => {
                sessions["orphaned"] == 0
                    && [(1, 0), (0, 1)].iter().any(|(active, lost)| sessions["active"] == *active && sessions["lost"] == *lost)
            }
            "live" => sessions["active"] == 1 && sessions["orphaned"] == 0 && sessions["lost"] == 0,
            other => panic!("no such state of a session: {other}"),
        };
        (fits, sessions)
    }

    /// What the owner finds when it goes on.
    fn go_on(&self, agent: &Mcp) {
        match self.row.page.as_str() {
            "kept" => {
                match self.state {
                    State::Idle => {}
                    State::Alert => {
                        agent.fails("evaluate", &json!({"script": "1"}), "dialog_open");
                        agent.ok("handle_dialog", &json!({}));
                    }
                    State::Loop => drop(agent.fails("evaluate", &json!({"script": "1", "timeout": 200}), "timeout")),
                }
                assert_eq!(eval(agent, "[location.pathname, window.kept]"), json!(["/page", "in memory"]), "{:?}", self.row);
            }
            "afresh" => {
                agent.fails("evaluate", &json!({"script": "1"}), "browser_crashed");
                agent.ok("navigate", &json!({"url": self.site.at("/again")}));
                assert_eq!(eval(agent, "[location.pathname, window.kept]"), json!(["/again", null]), "{:?}", self.row);
            }
            other => panic!("no such fate of a page: {other}"),
        }
        assert_eq!(agent.sessions(), [SESSION]);
    }
}
