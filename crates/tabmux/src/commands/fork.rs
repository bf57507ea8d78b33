//! `tabmux fork`: log in once, fan out.

use serde_json::Value;
use tabmux_core::Fault;
use tabmux_wire::control::{Ask, WireFault};

use super::Done;
use super::format::show;
use crate::cli::Fork;
use crate::control::Control;
use crate::failure::Outcome;
use crate::output::{self, Form};
use crate::settings::Config;

/// Prints the copies' names. Fewer than were asked for is a failure that names those there are.
pub(super) fn run(config: &Config, form: Form, fork: Fork) -> Outcome<Done> {
    let Fork { target, count, session: prefix } = fork;
    let session = target.filter(|name| !name.is_empty());
    let answer = Control::open(config)?.ask(&Ask::Fork { session, count, prefix })?;
    let made = answer["sessions"].as_array().map_or(&[][..], Vec::as_slice);
    let name = |session: &Value| show(&session["sessionId"]);
    if form == Form::Text {
        for session in made.iter().filter(|session| session["warning"].is_string()) {
            output::note(&format!("{}: {}", name(session), show(&session["warning"])));
        }
    }
    output::report(form, &answer, || made.iter().map(name).collect::<Vec<_>>().join("\n"))?;
    let Ok(fault) = serde_json::from_value::<WireFault>(answer["error"].clone()) else { return Ok(Done::Well) };
    if form == Form::Text {
        output::fail(form, &Fault::from(fault).into());
    }
    Ok(Done::Badly)
}
