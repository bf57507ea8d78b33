//! The limits of issue 3 and whether this run keeps them. All at ten agents over MCP, each with its own client; "best" is
//! the best of all set-ups of all peers for that one number. Command lines are compared with each other, without a limit:
//! against a process for each call the pipe itself would be the measure.

use super::agent::{Browser, Door, Product};
use super::result::{Cell, Floor, Measured, Run};
use crate::bench::{Holds, Row};

pub(super) const JUDGED_AGENTS: usize = 10;

const FLOOR_RATIO: f64 = 3.0;
const EVALUATE_FACTOR: f64 = 30.0;
const READY_SHARE: f64 = 1.0 / 3.0;
const CALLS_FACTOR: f64 = 10.0;

/// Who is compared with whom, and the shares of the best peer's memory that we may have: of all, and of those with a client per agent.
struct Pairing {
    ours: Browser,
    theirs: Browser,
    name: &'static str,
    ready: Option<f64>,
    all: f64,
    own_client: f64,
}

/// The same binary is either: theirs for tabmux, or tabmux's for them.
const PAIRINGS: [Pairing; 3] = [
    Pairing { ours: Browser::Default, theirs: Browser::Default, name: "defaults", ready: Some(READY_SHARE), all: 0.40, own_client: 0.20 },
    Pairing { ours: Browser::Full, theirs: Browser::Default, name: "same binary, Chromium", ready: None, all: 0.65, own_client: 0.30 },
    Pairing {
        ours: Browser::Default,
        theirs: Browser::SameAsTabmux,
        name: "same binary, headless-shell",
        ready: None,
        all: 0.65,
        own_client: 0.30,
    },
];

/// The peers to compare with, by one number.
struct Field<'a> {
    ours: &'a Measured,
    peers: Vec<(&'a Cell, &'a Measured)>,
}

/// Whether more or less is better.
#[derive(Clone, Copy)]
enum Better {
    Less,
    More,
}

pub(super) fn verdicts(run: &Run) -> Vec<Row> {
    let at_ten = run.cells.iter().filter(|cell| cell.agents == JUDGED_AGENTS);
    let (ours, peers): (Vec<_>, Vec<_>) =
        at_ten.filter_map(|cell| Some((cell, cell.measured()?))).partition(|(cell, _)| cell.product == Product::Tabmux);
    let own =
        |browser| ours.iter().find(|(cell, _)| cell.browser == browser && cell.door == Door::OwnClient).map(|&(_, measured)| measured);
    let Some(main) = own(Browser::Default) else {
        return vec![unmeasured("everything", "tabmux was not measured with ten agents")];
    };
    let (lines, peers) = peers.into_iter().partition(|(cell, _)| cell.door == Door::CommandLine);
    let field = Field { ours: main, peers };
    let mut rows = vec![floor(run)];
    rows.push(field.factor(
        "evaluate p50, times faster than the fastest peer",
        EVALUATE_FACTOR,
        Better::Less,
        |m| m.evaluate.p50_ms,
        milliseconds,
    ));
    for pairing in PAIRINGS {
        match own(pairing.ours) {
            Some(ours) => rows.extend(pairing.rows(&Field { ours, peers: field.peers.clone() })),
            None => rows.push(unmeasured(pairing.name, "tabmux was not measured with ten agents")),
        }
    }
    rows.extend(run.floor.filter(|floor| floor.bare_kb > 0).map(|floor| bare(&field, floor)));
    rows.push(field.factor(
        "calls per second, times the best peer",
        CALLS_FACTOR,
        Better::More,
        |m| m.calls_per_s,
        |n| format!("{n:.0}/s"),
    ));
    rows.push(mistakes(run));
    let line = ours.iter().find(|(cell, _)| cell.door == Door::CommandLine);
    rows.extend(line.map(|&(_, ours)| command_lines(&Field { ours, peers: lines })).into_iter().flatten());
    rows
}

/// Not limited: a command line starts a process for each call, whoever made it.
fn command_lines(field: &Field) -> Vec<Row> {
    let all = |_: &Cell| true;
    vec![
        field.share("command line: ready, of the best peer's", None, all, |m| m.ready_ms, milliseconds),
        field.share("command line: memory, of the best peer's", None, all, memory, megabytes),
        field.share("command line: evaluate p50, of the best peer's", None, all, |m| m.evaluate.p50_ms, milliseconds),
    ]
}

impl Pairing {
    fn rows(&self, field: &Field) -> [Row; 4] {
        let (name, same) = (self.name, |cell: &Cell| cell.browser == self.theirs);
        let own_client = |cell: &Cell| same(cell) && cell.door == Door::OwnClient;
        let connected = |cell: &Cell| same(cell) && cell.door == Door::OwnConnection;
        [
            field.share(&format!("{name}: ready, of the best peer"), self.ready, same, |m| m.ready_ms, milliseconds),
            field.share(&format!("{name}: memory, of the best peer"), Some(self.all), same, memory, megabytes),
            field.share(
                &format!("{name}: memory, of the best with a client per agent"),
                Some(self.own_client),
                own_client,
                memory,
                megabytes,
            ),
            field.share(&format!("{name}: memory, of the best with one server for all"), None, connected, memory, megabytes),
        ]
    }
}

impl Field<'_> {
    /// Ours as a share of the smallest of the peers that count.
    fn share(
        &self,
        what: &str,
        limit: Option<f64>,
        counts: impl Fn(&Cell) -> bool,
        of: fn(&Measured) -> f64,
        text: fn(f64) -> String,
    ) -> Row {
        let Some((cell, best)) = self.best(Better::Less, counts, of) else { return unmeasured(what, "no peer was measured") };
        let share = of(self.ours) / best;
        Row {
            what: what.into(),
            measured: format!("{:.0} % ({}; {} {}: {})", share * 100.0, text(of(self.ours)), cell.product.name(), cell.setup, text(best)),
            limit: limit.map_or("–".into(), |limit| format!("≤ {:.0} %", limit * 100.0)),
            holds: limit.map_or(Holds::Unjudged, |limit| Holds::when(share <= limit)),
        }
    }

    /// How many times ours is better than the best of all peers.
    fn factor(&self, what: &str, limit: f64, better: Better, of: fn(&Measured) -> f64, text: fn(f64) -> String) -> Row {
        let Some((cell, best)) = self.best(better, |_| true, of) else { return unmeasured(what, "no peer was measured") };
        let factor = match better {
            Better::Less => best / of(self.ours),
            Better::More => of(self.ours) / best,
        };
        Row {
            what: what.into(),
            measured: format!("{factor:.1} × ({}; {} {}: {})", text(of(self.ours)), cell.product.name(), cell.setup, text(best)),
            limit: format!("≥ {limit} ×"),
            holds: Holds::when(factor >= limit),
        }
    }

    fn best(&self, better: Better, counts: impl Fn(&Cell) -> bool, of: fn(&Measured) -> f64) -> Option<(&Cell, f64)> {
        let numbers = self.peers.iter().filter(|(cell, _)| counts(cell)).map(|(cell, measured)| (*cell, of(measured)));
        // A number nobody gave right answers for is zero, which is not the best.
        let numbers = numbers.filter(|(_, number)| *number > 0.0);
        match better {
            Better::Less => numbers.min_by(|a, b| a.1.total_cmp(&b.1)),
            Better::More => numbers.max_by(|a, b| a.1.total_cmp(&b.1)),
        }
    }
}

/// Below what the browser weighs by itself nobody gets, whatever the limit says.
fn bare(field: &Field, floor: Floor) -> Row {
    let what = "same binary, headless-shell: memory of the browser alone, with tabmux's flags, ten contexts and no tool at all, of the best with a client per agent";
    let same = |cell: &Cell| cell.browser == Browser::SameAsTabmux && cell.door == Door::OwnClient;
    let Some((cell, best)) = field.best(Better::Less, same, memory) else { return unmeasured(what, "no peer was measured") };
    let measured = format!(
        "{:.0} % ({}; {} {}: {})",
        floor.bare_kb as f64 / best * 100.0,
        megabytes(floor.bare_kb as f64),
        cell.product.name(),
        cell.setup,
        megabytes(best)
    );
    Row { what: what.into(), measured, limit: "–".into(), holds: Holds::Unjudged }
}

fn floor(run: &Run) -> Row {
    let what = "evaluate p50, times a bare client on the same browser's pipe";
    let Some(floor) = run.floor else { return unmeasured(what, "not measured") };
    let ratio = floor.tabmux.p50_ms / floor.raw.p50_ms;
    let measured = format!("{ratio:.2} × ({}; bare: {})", milliseconds(floor.tabmux.p50_ms), milliseconds(floor.raw.p50_ms));
    Row { what: what.into(), measured, limit: format!("≤ {FLOOR_RATIO} ×"), holds: Holds::when(ratio <= FLOOR_RATIO) }
}

fn mistakes(run: &Run) -> Row {
    let tallies =
        run.cells.iter().filter(|cell| cell.product == Product::Tabmux).filter_map(Cell::measured).map(|measured| &measured.tally);
    let (right, not) = tallies.fold((0, 0), |(right, not), tally| (right + tally.right, not + tally.wrong + tally.errors));
    let measured = format!("{not} of {}", right + not);
    Row { what: "wrong answers and errors of tabmux".into(), measured, limit: "0".into(), holds: Holds::when(not == 0 && right > 0) }
}

pub(super) fn unmeasured(what: &str, why: &str) -> Row {
    Row { what: what.into(), measured: why.into(), limit: "–".into(), holds: Holds::No }
}

fn memory(measured: &Measured) -> f64 {
    measured.memory_kb as f64
}

pub(super) fn megabytes(kilobytes: f64) -> String {
    format!("{:.0} MB", kilobytes / 1024.0)
}

pub(super) fn milliseconds(time: f64) -> String {
    match time {
        time if time < 10.0 => format!("{time:.2} ms"),
        time if time < 1000.0 => format!("{time:.0} ms"),
        time => format!("{:.1} s", time / 1000.0),
    }
}
