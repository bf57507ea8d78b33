//! The run as Markdown: one table for each number of agents, with every contender's numbers beside tabmux's.

use std::collections::BTreeSet;

use super::agent::{Browser, Door, Product};
use super::result::{Cell, Measured, Outcome, Run, Spread};
use super::verdict::{megabytes, milliseconds};

const HEAD: &str = "| contender | set-up | browser | ready | memory, after calls | processes | evaluate p50 / p99 | navigate p50 / p99 | \
                    screenshot p50 / p99 | calls/s | wrong, errors of answers | of tabmux: ready, memory, evaluate, calls/s |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|---|\n";

pub(super) fn tables(run: &Run) -> String {
    let counts: BTreeSet<usize> = run.cells.iter().map(|cell| cell.agents).collect();
    let mut text = String::new();
    for agents in counts {
        text += &format!("\n### {agents} agent{}\n\n{HEAD}", if agents == 1 { "" } else { "s" });
        let here: Vec<_> = run.cells.iter().filter(|cell| cell.agents == agents).collect();
        let ours =
            here.iter().find(|cell| cell.product == Product::Tabmux && cell.browser == Browser::Default && cell.door == Door::OwnClient);
        let ours = ours.and_then(|cell| cell.measured());
        for cell in here {
            text += &row(cell, ours);
        }
    }
    text + &problems(run)
}

fn row(cell: &Cell, ours: Option<&Measured>) -> String {
    let name = cell.product.name();
    let setup = &cell.setup;
    match &cell.outcome {
        Outcome::Failed(why) => format!("| {name} | {setup} | {} | {} | | | | | | | | |\n", choice(cell.browser), cut(why)),
        Outcome::Measured(m) => format!(
            "| {name} | {setup} | {}: {} | {} | {}, {} | {} | {} | {} | {} | {:.0} | {}, {} of {} | {} |\n",
            choice(cell.browser),
            m.binary,
            milliseconds(m.ready_ms),
            megabytes(m.memory_kb as f64),
            megabytes(m.memory_after_kb as f64),
            m.processes,
            spread(m.evaluate),
            spread(m.navigate),
            spread(m.screenshot),
            m.calls_per_s,
            m.tally.wrong,
            m.tally.errors,
            m.tally.right + m.tally.wrong + m.tally.errors,
            ours.map_or("–".into(), |ours| ratios(m, ours)),
        ),
    }
}

fn choice(browser: Browser) -> &'static str {
    match browser {
        Browser::Default => "default",
        Browser::SameAsTabmux => "as tabmux",
        Browser::Full => "as the peers",
    }
}

pub(super) fn spread(spread: Spread) -> String {
    if spread.samples == 0 { "–".into() } else { format!("{} / {}", milliseconds(spread.p50_ms), milliseconds(spread.p99_ms)) }
}

fn ratios(m: &Measured, ours: &Measured) -> String {
    let times = |theirs: f64, ours: f64| if ours > 0.0 { format!("{} ×", significant(theirs / ours)) } else { "–".into() };
    [
        times(m.ready_ms, ours.ready_ms),
        times(m.memory_kb as f64, ours.memory_kb as f64),
        times(m.evaluate.p50_ms, ours.evaluate.p50_ms),
        times(m.calls_per_s, ours.calls_per_s),
    ]
    .join(", ")
}

fn significant(number: f64) -> String {
    match number {
        number if number >= 10.0 => format!("{number:.0}"),
        number if number >= 0.1 => format!("{number:.2}"),
        number => format!("{number:.3}"),
    }
}

/// The first wrong answer or error of each contender, because a number without it would flatter.
fn problems(run: &Run) -> String {
    let mut text = String::new();
    for cell in &run.cells {
        let Some(problem) = cell.measured().and_then(|measured| measured.tally.first_problem.as_ref()) else { continue };
        text += &format!("- {} ({}, {} agents): {}\n", cell.product.name(), cell.setup, cell.agents, cut(problem));
    }
    if text.is_empty() { text } else { format!("\nFirst problem of each that had one:\n\n{text}") }
}

pub(super) fn cut(text: &str) -> String {
    text.chars().take(160).map(|c| if "|\n\r`<>".contains(c) { ' ' } else { c }).collect()
}
