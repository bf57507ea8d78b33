//! The hidden `tabmux daemon`: a process of its own, away from whoever started it, that logs to a file and reports
//! once on its standard output whether it is ready. What it serves is the daemon's room.

mod log;

use std::io::Write;

use tabmux_daemon::Ready;
use tabmux_wire::VERSION;
use tabmux_wire::control::WireFault;

use crate::failure::{Exit, Failure, Outcome};
use crate::settings::Config;
use crate::start::{Inherited, ReadyReport, Report};

pub(crate) fn serve(mut config: Config, supervised: bool) -> Outcome {
    // Fails only where we lead a process group already, and then nobody's Ctrl-C can reach us anyway.
    rustix::process::setsid().ok();
    config.settings.supervised = supervised;
    let served = run(config);
    if let Err(failure) = &served {
        tracing::error!(code = %failure.fault.code, "{}", failure.fault.message);
        report(&Report { tabmux: VERSION, ready: None, error: Some(WireFault::from(&failure.fault)) });
    }
    served
}

fn run(config: Config) -> Outcome {
    let starting = Inherited::take().map_err(|error| Failure::io("The daemon's standard input cannot be taken", &error))?;
    config.places.prepare()?;
    log::begin(&config.settings.paths.log_file, &config.log, config.settings.secrets.clone())?;
    let io = |error| Failure::io("The daemon's threads cannot be started", &error);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(io)?;
    let ready = |ready: Ready| {
        // It listens: whoever looks for it finds it.
        drop(starting);
        report(&Report { tabmux: VERSION, ready: Some(ReadyReport { listen: ready.listen }), error: None });
    };
    let ended = runtime.block_on(tabmux_daemon::run(config.settings, ready));
    runtime.shutdown_background();
    let exit = ended.map_err(|fault| Failure { exit: Exit::Unavailable, fault })?;
    tracing::info!(?exit, "the daemon ended");
    Ok(())
}

/// Whoever started us may be gone already; then nobody waits for the report.
fn report(report: &Report) {
    let line = serde_json::to_string(report).expect("a report is plain JSON");
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "{line}").and_then(|()| stdout.flush()).ok();
}
