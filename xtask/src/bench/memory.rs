//! Memory of a process, and what machine this is.

use anyhow::{Context, Result};

/// Proportional set size: private pages plus this process's share of the shared ones.
pub(super) fn pss_kb(pid: u32) -> Result<u64> {
    let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).with_context(|| format!("process {pid} is gone"))?;
    let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:")).context("smaps_rollup has a Pss line")?;
    Ok(line.trim().trim_end_matches("kB").trim().parse()?)
}

/// One sentence for the report.
pub(super) fn machine() -> String {
    let field = |file: &str, key: &str| {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        text.lines().find(|line| line.starts_with(key)).and_then(|line| line.split_once(':')).map(|(_, value)| value.trim().to_owned())
    };
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown CPU".into());
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split_whitespace().next().unwrap_or("?").to_owned();
    format!("Machine: {cpu}, {cores} cores, {memory}; load average before the run {load}.")
}
