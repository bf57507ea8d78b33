//! `cargo xtask bench`, `cargo xtask bench peers` and `cargo xtask bench clone`. The first: memory and latency of the release build over the fake browser, against an echo through
//! the same hops in the same run, because absolute times say more about the machine than about tabmux.

mod client;
mod copies;
mod document;
pub(crate) mod echo;
mod memory;
mod peers;

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::json;

use crate::workspace;
use client::{Home, Lines};

const DAEMON_LIMIT_KB: u64 = 12 * 1024;
const SHIM_LIMIT_KB: u64 = 4 * 1024;
const ECHO_RATIO_LIMIT: f64 = 3.0;
const GROWTH_LIMIT: f64 = 2.0;
/// Calls measured per block; blocks of call and echo alternate so that a noisy second hits both.
const BLOCK: usize = 200;
const BLOCKS: usize = 10;
const SHIMS: usize = 10;

#[derive(clap::Subcommand, Debug)]
pub(crate) enum Bench {
    /// tabmux beside the newest of its peers from npm, with real browsers; writes docs/benchmarks.md and its chart
    Peers(peers::Peers),
    /// Sessions that begin with a logged-in one, with a real browser; writes its part of docs/benchmarks.md
    Clone,
}

/// One measured row: what, how much, the limit in words, and whether it holds.
struct Row {
    what: String,
    measured: String,
    limit: String,
    holds: Holds,
}

#[derive(Debug, PartialEq, Eq)]
enum Holds {
    Yes,
    No,
    /// Printed, not judged: a time on a machine we do not know.
    Unjudged,
}

impl Holds {
    fn when(held: bool) -> Self {
        if held { Self::Yes } else { Self::No }
    }
}

pub(crate) fn run(bench: Option<&Bench>) -> Result<()> {
    match bench {
        Some(Bench::Peers(options)) => peers::run(options),
        Some(Bench::Clone) => copies::run(),
        None => run_daemon(),
    }
}

/// The profile that `make run` builds.
fn build_release() -> Result<()> {
    let status = Command::new("cargo").args(["build", "--release", "--package", "tabmux"]).current_dir(workspace::root()).status()?;
    if status.success() { Ok(()) } else { bail!("the release build failed") }
}

fn run_daemon() -> Result<()> {
    build_release()?;
    let home = Home::new(workspace::root().join("target/release/tabmux"))?;
    let mut rows = measure_memory(&home)?;
    rows.extend(measure_latency(&home)?);
    rows.extend(measure_growth(&home)?);
    let text = report(&rows);
    println!("{text}");
    document::write_part("daemon", &text)?;
    let broken = rows.iter().filter(|row| row.holds == Holds::No).count();
    if broken == 0 { Ok(()) } else { bail!("{broken} limits are broken") }
}

fn measure_memory(home: &Home) -> Result<Vec<Row>> {
    let mut first = home.client()?;
    first.initialize()?;
    let daemon = home.daemon_pid()?;
    let idle = memory::pss_kb(daemon)?;
    let alone = memory::pss_kb(first.pid())?;
    let mut more = (1..SHIMS).map(|_| home.client()).collect::<Result<Vec<_>>>()?;
    for client in &mut more {
        client.initialize()?;
    }
    let together =
        (memory::pss_kb(first.pid())? + more.iter().map(|client| memory::pss_kb(client.pid())).sum::<Result<u64>>()?) / SHIMS as u64;
    Ok(vec![
        kilobytes("daemon, idle, one client, PSS", idle, DAEMON_LIMIT_KB),
        kilobytes("shim, alone, PSS", alone, SHIM_LIMIT_KB),
        kilobytes(&format!("shim, one of {SHIMS}, PSS"), together, SHIM_LIMIT_KB),
    ])
}

fn measure_latency(home: &Home) -> Result<Vec<Row>> {
    let mut client = home.client()?;
    client.initialize()?;
    client.call("start_browser", &json!({"sessionId": "bench"}))?;
    let mut echo = echo::start(home.path())?;
    let (mut calls, mut echoes) = (Vec::new(), Vec::new());
    for block in 0..=BLOCKS {
        let call_times = (0..BLOCK).map(|_| timed(|| evaluate(&mut client, "bench"))).collect::<Result<Vec<_>>>()?;
        let echo_times = (0..BLOCK).map(|_| timed(|| evaluate_echoed(&mut echo))).collect::<Result<Vec<_>>>()?;
        // The first block warms caches up.
        if block > 0 {
            calls.extend(call_times);
            echoes.extend(echo_times);
        }
    }
    let ratio = micros(percentile(&mut calls, 50)) / micros(percentile(&mut echoes, 50));
    client.call("close_session", &json!({"sessionId": "bench"}))?;
    Ok(vec![
        latency("`evaluate 1`: shim, socket, hub, session, fake browser and back", &mut calls),
        latency("echo through the same hops", &mut echoes),
        limited("ratio of the p50s", ratio, ECHO_RATIO_LIMIT),
    ])
}

fn measure_growth(home: &Home) -> Result<Vec<Row>> {
    let mut client = home.client()?;
    client.initialize()?;
    let mut rows = Vec::new();
    let mut open = 0;
    let mut alone = None;
    for sessions in [1, 10, 100, 1000] {
        while open < sessions {
            client.call("start_browser", &json!({"sessionId": format!("s{open}")}))?;
            open += 1;
        }
        let mut times = (0..2 * BLOCK).map(|_| timed(|| evaluate(&mut client, "s0"))).collect::<Result<Vec<_>>>()?;
        rows.push(latency(&format!("`evaluate 1` with {sessions} sessions open"), &mut times));
        let p50 = micros(percentile(&mut times, 50));
        let growth = p50 / *alone.get_or_insert(p50);
        if sessions > 1 {
            rows.push(limited(&format!("ratio of the p50s, {sessions} sessions to 1"), growth, GROWTH_LIMIT));
        }
    }
    Ok(rows)
}

fn evaluate(client: &mut Lines, session: &str) -> Result<()> {
    client.call("evaluate", &json!({"sessionId": session, "script": "1"})).map(drop)
}

fn evaluate_echoed(echo: &mut Lines) -> Result<()> {
    echo.round_trip("tools/call", &json!({"name": "evaluate", "arguments": {"sessionId": "bench", "script": "1"}})).map(drop)
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed())
}

fn percentile(times: &mut [Duration], percent: usize) -> Duration {
    times.sort_unstable();
    times[(times.len() - 1) * percent / 100]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn kilobytes(what: &str, measured: u64, limit: u64) -> Row {
    let holds = Holds::when(measured <= limit);
    Row { what: what.into(), measured: format!("{measured} kB"), limit: format!("≤ {limit} kB"), holds }
}

fn limited(what: &str, measured: f64, limit: f64) -> Row {
    let holds = Holds::when(measured <= limit);
    Row { what: what.into(), measured: format!("{measured:.2} ×"), limit: format!("≤ {limit} ×"), holds }
}

fn latency(what: &str, times: &mut [Duration]) -> Row {
    let measured = format!("p50 {:.0} µs, p99 {:.0} µs", micros(percentile(times, 50)), micros(percentile(times, 99)));
    Row { what: what.into(), measured, limit: "–".into(), holds: Holds::Unjudged }
}

fn report(rows: &[Row]) -> String {
    format!(
        "## The daemon alone\n\nWritten by `cargo xtask bench`; release build, fake browser. {}\n\n\
         Times are of a shared machine and are not judged; sizes and ratios are.\n\n{}",
        memory::machine(),
        rows_table(rows)
    )
}

fn rows_table(rows: &[Row]) -> String {
    let mut text = "| what | measured | limit | holds |\n|---|---|---|---|\n".to_owned();
    for row in rows {
        let holds = match row.holds {
            Holds::Yes => "yes",
            Holds::No => "**no**",
            Holds::Unjudged => "–",
        };
        text += &format!("| {} | {} | {} | {holds} |\n", row.what, row.measured, row.limit);
    }
    text
}
