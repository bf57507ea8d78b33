//! `tabmux doctor --isolation`: two agents that know nothing of each other, in a daemon and a browser of their own. One
//! leaves a canary, the other looks for it, and the other way round, for every unit of isolation. It judges by what
//! the agents see, never by what the code should do, and it goes through the same door as every agent.

mod agent;
mod canaries;
mod canary;
mod own_daemon;
mod report;
mod site;
mod unit;

use std::io::IsTerminal;

use tabmux_core::{Code, Fault};

use super::Done;
use crate::failure::{Exit, Failure, Outcome};
use crate::output::{self, Form};
use crate::settings::Config;
use agent::Agent;
use canary::{Canary, Judgement, Scene, Seen};
pub(super) use own_daemon::OwnDaemon;
use report::{Judged, Report, Row};
use site::Site;
pub(super) use unit::Unit;

/// Who the second agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Partner {
    /// Somebody else, as in real life.
    Stranger,
    /// The first agent once more, in the same session: every canary must then be found, which proves that each can be.
    Itself,
}

pub(super) fn run(config: &Config, form: Form, units: &[Unit], partner: Partner) -> Outcome<Done> {
    needs_a_browser(config)?;
    let site = Site::open().map_err(|error| Failure::io("The doctor's own web server cannot start", &error))?;
    let mut daemon = OwnDaemon::start(config)?;
    let judged = units.iter().map(|unit| {
        if std::io::stderr().is_terminal() {
            output::note(&format!("Judging {} …", unit.name()));
        }
        judge_unit(&mut daemon, &site, *unit, partner)
    });
    let judged: Vec<Judged> = judged.collect::<Outcome<_>>()?;
    daemon.end()?;
    let report = Report { units: judged };
    if let Some(fault) = report.nothing_judged() {
        return Err(Failure { exit: Exit::Unavailable, fault });
    }
    output::report(form, &report.document(), || report.text())?;
    Ok(if report.is_well() { Done::Well } else { Done::Badly })
}

/// The fake one has no cookies to mix up, and everything that follows would judge nothing.
fn needs_a_browser(config: &Config) -> Outcome {
    match tabmux_daemon::find_browser(&config.settings) {
        Ok(Some(_)) => Ok(()),
        Ok(None) => {
            let message = "The built-in fake browser has nothing that could leak.";
            Err(Fault::new(Code::Unsupported, message, "Unset TABMUX_BROWSER, or name a Chromium with it.").into())
        }
        Err(fault) => Err(Failure { exit: Exit::Unavailable, fault }),
    }
}

fn judge_unit(daemon: &mut OwnDaemon, site: &Site, unit: Unit, partner: Partner) -> Outcome<Judged> {
    let mut first = daemon.agent(&format!("{}-a", unit.name()))?;
    let mut second = daemon.agent(&format!("{}-b", unit.name()))?;
    let started = first.start(unit, &mark()?, &site.home());
    let started = match partner {
        Partner::Stranger => started.and_then(|()| second.start(unit, &mark()?, &site.home())),
        Partner::Itself => {
            second = first.twin()?;
            started
        }
    };
    let rows = started.map(|()| canaries::ALL.iter().map(|canary| judge(canary, unit, site, &mut first, &mut second)).collect());
    for agent in [first, second] {
        agent.leave();
    }
    Ok(Judged { unit, rows })
}

/// Both ways: what is kept from one must be kept from the other.
fn judge(canary: &'static Canary, unit: Unit, site: &Site, first: &mut Agent, second: &mut Agent) -> Row {
    let there = probe(canary, site, first, second);
    let back = probe(canary, site, second, first);
    let judgement = match (there, back) {
        (Ok(Seen::Shared(how)), _) | (_, Ok(Seen::Shared(how))) => Ok(Seen::Shared(how)),
        (Err(why), _) | (_, Err(why)) => Err(why),
        (Ok(Seen::Apart), Ok(Seen::Apart)) => Ok(Seen::Apart),
    };
    Row { canary, promised: unit.promises(canary.kept), judgement }
}

fn probe(canary: &Canary, site: &Site, planter: &mut Agent, looker: &mut Agent) -> Judgement {
    for agent in [&mut *planter, &mut *looker] {
        agent.tidy_up();
        agent.go(&site.home())?;
    }
    let mark = mark()?;
    (canary.probe)(&mut Scene { planter, looker, site, mark })
}

/// A word that nobody else says.
fn mark() -> Result<String, Fault> {
    let mut bits = [0_u8; 8];
    getrandom::fill(&mut bits).map_err(|error| Fault::new(Code::Internal, format!("No random numbers: {error}."), "Try again."))?;
    Ok(format!("canary{:016x}", u64::from_ne_bytes(bits)))
}
