//! `cargo xtask bench peers`: tabmux and the other browser tools for agents, on the same pages, on this machine, in one
//! run. Numbers of different runs or machines are deliberately never put beside each other.

mod agent;
mod agent_browser;
mod browsers;
mod chart;
mod check;
mod chrome_devtools;
mod cli;
mod http;
mod install;
mod measure;
mod pages;
mod playwright;
mod raw;
mod reading;
mod result;
mod shared;
mod table;
mod tabmux;
#[cfg(test)]
mod tests;
mod tree;
mod verdict;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use super::{Holds, build_release, document, memory, rows_table};
use crate::workspace;
use agent::{Browser, Contender, Ground, Product};
pub(super) use browsers::Browsers;
use check::Question;
use install::Installed;
use measure::{Pace, ask, measure, open, weigh_bare};
use pages::{Page, Pages};
pub(super) use raw::RawPipe;
use reading::Extent;
use result::{Cell, Floor, Outcome, Run, Spread, Tally};
use verdict::JUDGED_AGENTS;

#[derive(clap::Args, Debug)]
pub(crate) struct Peers {
    /// 1 and 10 agents, short blocks; writes no document
    #[arg(long)]
    quick: bool,
    /// Only products whose name contains this, with 10 agents; for work on one number, so nothing is judged or written
    #[arg(long, value_name = "NAME", conflicts_with = "again")]
    only: Option<String>,
    /// Only this part; the document's other part stays as it is
    #[arg(long, value_enum)]
    part: Option<Part>,
    /// Writes tables and chart of an earlier run (target/peers/*.json) again, without measuring
    #[arg(long, conflicts_with = "quick")]
    again: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    /// Several agents at once: ready, memory, calls
    Agents,
    /// Tool lists, pages as text, and a form, in tokens and time
    Reading,
}

const RESULTS: &str = "target/peers/results.json";
const READING: &str = "target/peers/reading.json";
const CHART: &str = "docs/benchmarks-peers.svg";
/// No measurement begins after this; what is left out is said.
const FULL_BUDGET: Duration = Duration::from_secs(18 * 60);
const FLOOR_BLOCKS: usize = 10;
const FLOOR_BLOCK: usize = 100;

pub(super) fn run(options: &Peers) -> Result<()> {
    if cfg!(debug_assertions) {
        return run_optimised();
    }
    let fresh = if options.again { None } else { Some(Fresh::prepare()?) };
    let mut broken = 0;
    for part in [Part::Agents, Part::Reading].into_iter().filter(|part| options.part.is_none_or(|asked| asked == *part)) {
        broken += match part {
            Part::Agents => run_agents(options, fresh.as_ref())?,
            Part::Reading => run_reading(options, fresh.as_ref())?,
        };
    }
    if broken == 0 || options.only.is_some() { Ok(()) } else { bail!("{broken} limits are broken") }
}

/// What must be there before anything is measured.
struct Fresh {
    installed: Installed,
    browsers: Browsers,
}

impl Fresh {
    fn prepare() -> Result<Self> {
        build_release()?;
        let fresh = Self { installed: install::install()?, browsers: Browsers::find()? };
        tree::adopt_orphans()?;
        Ok(fresh)
    }
}

/// What a part found: measured now, or as it was written by an earlier run.
fn found<T: serde::Serialize + serde::de::DeserializeOwned>(
    options: &Peers,
    fresh: Option<&Fresh>,
    file: &str,
    measure: impl FnOnce(&Fresh) -> Result<T>,
) -> Result<T> {
    let Some(fresh) = fresh else { return Ok(serde_json::from_str(&workspace::read(file)?)?) };
    let found = measure(fresh)?;
    if options.writes() {
        workspace::write(file, &serde_json::to_string_pretty(&found)?)?;
    }
    Ok(found)
}

impl Peers {
    /// A part of a run is nobody's claim.
    fn writes(&self) -> bool {
        !self.quick && self.only.is_none()
    }
}

fn run_agents(options: &Peers, fresh: Option<&Fresh>) -> Result<usize> {
    let run = found(options, fresh, RESULTS, |fresh| measure_all(options, fresh))?;
    let (text, broken) = report(&run);
    println!("{text}");
    if options.writes() {
        document::write_part("peers", &text)?;
        workspace::write(CHART, &chart::chart(&run))?;
    }
    Ok(broken)
}

fn run_reading(options: &Peers, fresh: Option<&Fresh>) -> Result<usize> {
    let extent = if options.quick { Extent::Trial } else { Extent::Full };
    let found =
        found(options, fresh, READING, |fresh| reading::measure(&fresh.installed, &fresh.browsers, extent, options.only.as_deref()))?;
    let (text, broken) = reading::report(&found);
    println!("{text}");
    if options.writes() {
        document::write_part("reading", &text)?;
    }
    Ok(broken)
}

/// A measuring client built for debugging would measure itself.
fn run_optimised() -> Result<()> {
    let mut command = Command::new("cargo");
    command.args(["run", "--release", "--quiet", "--package", "xtask", "--"]).args(std::env::args_os().skip(1));
    let status = command.current_dir(workspace::root()).status()?;
    if status.success() { Ok(()) } else { bail!("see above") }
}

/// The document's part, and how many limits do not hold.
fn report(run: &Run) -> (String, usize) {
    let verdicts = verdict::verdicts(run);
    let broken = verdicts.iter().filter(|row| row.holds == Holds::No).count();
    let text = format!(
        "## Side by side\n\nWritten by `cargo xtask bench peers`. {}\n\n![Ten agents]({})\n\n{}{}",
        run.preface.join(" "),
        CHART.trim_start_matches("docs/"),
        rows_table(&verdicts),
        table::tables(run)
    );
    (text, broken)
}

fn measure_all(options: &Peers, Fresh { installed, browsers }: &Fresh) -> Result<Run> {
    let began = Instant::now();
    let pages = Pages::serve()?;
    let mut run = Run { preface: preface(installed, browsers), cells: Vec::new(), floor: None };
    println!("{}", run.preface.join("\n"));
    // Ten first: it is what the limits are about.
    let counts: &[usize] = match (&options.only, options.quick) {
        (Some(_), _) => &[JUDGED_AGENTS],
        (None, true) => &[JUDGED_AGENTS, 1],
        (None, false) => &[JUDGED_AGENTS, 1, 5, 20],
    };
    for &agents in counts {
        let pace = pace(options, agents);
        let asked = |contender: &Contender| options.only.as_ref().is_none_or(|name| contender.product.name().contains(name.as_str()));
        for contender in contenders().into_iter().filter(asked) {
            let outcome = if began.elapsed() > FULL_BUDGET {
                Outcome::Failed("left out: the run's time was over".into())
            } else {
                measure_cell(&contender, installed, browsers, &pages, agents, pace)?
            };
            let cell = Cell {
                product: contender.product,
                setup: contender.setup.into(),
                door: contender.door,
                browser: contender.browser,
                agents,
                outcome,
            };
            println!("{:6.1} s  {}", began.elapsed().as_secs_f64(), brief(&cell));
            run.cells.push(cell);
        }
        if agents == JUDGED_AGENTS {
            run.floor = Some(measure_floor(installed, browsers, &pages)?);
        }
    }
    Ok(run)
}

fn contenders() -> Vec<Contender> {
    let all = [tabmux::CONTENDERS.as_slice(), &playwright::CONTENDERS, &chrome_devtools::CONTENDERS, &agent_browser::CONTENDERS];
    all.concat()
}

fn pace(options: &Peers, agents: usize) -> Pace {
    let judged = agents == JUDGED_AGENTS;
    let (alone, together) = match (options.quick, judged) {
        (false, true) => (3000, 4000),
        (false, false) => (1200, 2000),
        (true, _) => (800, 1500),
    };
    Pace { alone: Duration::from_millis(alone), together: Duration::from_millis(together), limit: Duration::from_secs(120) }
}

fn measure_cell(
    contender: &Contender,
    installed: &Installed,
    browsers: &Browsers,
    pages: &Pages,
    agents: usize,
    pace: Pace,
) -> Result<Outcome> {
    let directory = tempfile::tempdir()?;
    let browser = named_browser(contender.product, contender.browser, browsers);
    let ground = Ground { installed, directory: directory.path().to_owned(), browser };
    let measured = measure(contender, &ground, pages, agents, pace);
    tree::end()?;
    Ok(match measured {
        Ok(measured) => Outcome::Measured(measured),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    })
}

/// tabmux finds its own; the peers' defaults cannot be found here, so they are told.
fn named_browser(product: Product, browser: Browser, browsers: &Browsers) -> Option<PathBuf> {
    match (product, browser) {
        (Product::Tabmux, Browser::Default) => None,
        (_, Browser::SameAsTabmux) => Some(browsers.shell.clone()),
        (_, Browser::Default | Browser::Full) => Some(browsers.full.clone()),
    }
}

/// tabmux with ten agents beside a bare pipe client, in alternating blocks, so that a noisy second hits both.
fn measure_floor(installed: &Installed, browsers: &Browsers, pages: &Pages) -> Result<Floor> {
    let directory = tempfile::tempdir()?;
    let ground = Ground { installed, directory: directory.path().to_owned(), browser: None };
    let mut tally = Tally::default();
    let agents = (tabmux::CONTENDERS[0].agents)(&ground, JUDGED_AGENTS)?;
    let mut seats = open(agents, pages, &mut tally);
    let flags = tree::browser_flags()?;
    let page = Page { agent: JUDGED_AGENTS, visit: 0 };
    let mut raw = RawPipe::open(&browsers.shell, &directory.path().join("raw"), &pages.url(page))?;
    let (mut ours, mut bare) = (Vec::new(), Vec::new());
    let seat = seats.first_mut().context("no agent became ready")?;
    // The first block warms both up.
    for block in 0..=FLOOR_BLOCKS {
        for _ in 0..FLOOR_BLOCK {
            let time = seat.evaluate(&mut tally);
            ours.extend(time.filter(|_| block > 0));
        }
        for number in 0..FLOOR_BLOCK as u64 {
            let expression = Question::expression(number);
            let time = ask(Question::Evaluate { page, number }, &mut tally, || raw.evaluate(&expression));
            bare.extend(time.filter(|_| block > 0));
        }
    }
    tree::end()?;
    if tally.wrong + tally.errors > 0 {
        bail!("the comparison with a bare pipe had wrong answers: {tally:?}");
    }
    Ok(Floor { tabmux: Spread::of(ours), raw: Spread::of(bare), bare_kb: weigh_bare(&browsers.shell, &flags, pages, JUDGED_AGENTS)? })
}

fn preface(installed: &Installed, browsers: &Browsers) -> Vec<String> {
    vec![
        memory::machine(),
        versions(installed),
        browsers.sentence(),
        "Every contender runs headless, otherwise with its defaults, in the set-up its documentation gives for several agents. \
         Ready: from nothing until every agent has its first page. Memory: PSS of all its processes, client included, the \
         measuring program not. p50 and p99: one call at a time, over all agents. Calls/s: `evaluate`, all agents at once. \
         Every answer is checked: a navigation must name its page, a value must be of this agent's page and this call, a \
         screenshot must be a picture; only right answers count."
            .to_owned(),
    ]
}

fn versions(installed: &Installed) -> String {
    let versions: Vec<_> = installed.versions.iter().map(|(name, version)| format!("{name} {version}")).collect();
    format!("Peers, newest from npm: {}; tabmux {}, release build.", versions.join(", "), env!("CARGO_PKG_VERSION"))
}

fn brief(cell: &Cell) -> String {
    let name = format!("{} agents, {} {} ({:?})", cell.agents, cell.product.name(), cell.setup, cell.browser);
    match &cell.outcome {
        Outcome::Failed(why) => format!("{name}: {why}"),
        Outcome::Measured(m) => format!(
            "{name}: ready {:.0} ms, {} MB, evaluate {:.2} ms, {:.0} calls/s, {} wrong, {} errors",
            m.ready_ms,
            m.memory_kb / 1024,
            m.evaluate.p50_ms,
            m.calls_per_s,
            m.tally.wrong,
            m.tally.errors
        ),
    }
}
