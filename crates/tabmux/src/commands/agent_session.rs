//! `tabmux agent-session`: Seed 3's verbs, spoken to the daemon in Seed 3's own words. The caller is who the
//! environment says; whether that is believed, the daemon decides.

use std::io::ErrorKind;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};
use tabmux_core::{Code, Fault};
use tabmux_wire::control::WireFault;

use super::format::show;
use crate::cli::AgentSession;
use crate::control::hello;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Form};
use crate::settings::Config;
use crate::start::{Absent, Starter, exchange};

/// Opening may copy a profile.
const ANSWER_WITHIN: Duration = Duration::from_secs(120);

pub(super) fn run(config: &Config, form: Form, verb: AgentSession) -> Outcome {
    let text = |name: &str, value: Option<String>| value.map(|value| (name.to_owned(), Value::String(value)));
    let (method, absent, params) = match verb {
        AgentSession::Open { profile, url } => ("open", Absent::Start, [text("profile_id", profile), text("url", url)]),
        AgentSession::Tab { session, url } => ("tab", Absent::Say, [text("session_id", Some(session)), text("url", url)]),
        AgentSession::Dispose { session } => ("dispose", Absent::Say, [text("session_id", Some(session)), None]),
        AgentSession::List => ("list", Absent::Say, [None, None]),
    };
    let answer = ask(config, absent, method, params.into_iter().flatten().collect())?;
    if let (Form::Text, Some(warning)) = (form, answer["warning"].as_str()) {
        output::note(warning);
    }
    output::report(form, &answer, || match method {
        "open" => show(&answer["session_id"]),
        "tab" => show(&answer["tab_id"]),
        "list" => table(&answer),
        _ => String::new(),
    })
}

fn table(answer: &Value) -> String {
    let sessions = answer["sessions"].as_array().map_or(&[][..], Vec::as_slice);
    let row = |session: &Value| ["session_id", "profile_id", "tabCount", "created_at"].map(|member| show(&session[member]));
    let rows: Vec<_> = sessions.iter().map(row).collect();
    output::table(["SESSION", "PROFILE", "TABS", "CREATED"], &rows)
}

fn ask(config: &Config, absent: Absent, method: &str, mut params: Map<String, Value>) -> Outcome<Value> {
    let starter = Starter::of(config)?;
    // A welcomed connection keeps the daemon from leaving while the verb is on its way, and starts one where that is right.
    let _held = starter.join(&hello(config), absent)?.ok_or_else(|| starter.no_daemon())?;
    let deadline = Instant::now() + ANSWER_WITHIN;
    let stream = starter.connect(Absent::Say, deadline)?.ok_or_else(|| starter.no_daemon())?;
    params.insert("caller".into(), Value::Object(caller(config)));
    let request = json!({"id": 1, "method": format!("browser.agent_session.{method}"), "params": params});
    let (answer, _) = exchange(&stream, &request.to_string(), deadline, || true).map_err(|error| unanswered(&error))?;
    read(&answer)
}

/// It was asked, and may have done it.
fn unanswered(error: &std::io::Error) -> Failure {
    let hint = "See `tabmux agent-session list` for what is there, then try again.";
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Failure::unavailable(Code::Timeout, format!("The daemon did not answer within {} s.", ANSWER_WITHIN.as_secs()), hint)
        }
        _ => Failure::unavailable(Code::OutcomeUnknown, "The daemon ended before it answered.", hint),
    }
}

/// Who asks, from the environment (S3.11).
fn caller(config: &Config) -> Map<String, Value> {
    let variables = [("surface_id", "TABMUX_SURFACE_ID"), ("workspace_id", "TABMUX_WORKSPACE_ID"), ("token", "TABMUX_TOKEN")];
    variables.into_iter().filter_map(|(name, variable)| Some((name.to_owned(), config.env.get(variable)?.into()))).collect()
}

fn read(answer: &[u8]) -> Outcome<Value> {
    let unreadable = || Fault::new(Code::ProtocolVersion, "The daemon's answer cannot be read.", "Restart it: `tabmux stop`.");
    let mut answer: Value = serde_json::from_slice(answer).map_err(|_| unreadable())?;
    if !answer["error"].is_null() {
        let fault: WireFault = serde_json::from_value(answer["error"].take()).map_err(|_| unreadable())?;
        return Err(Fault::from(fault).into());
    }
    Ok(answer["result"].take())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_daemon_that_dies_while_it_is_asked_leaves_an_unknown_outcome() {
        for kind in [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe] {
            let Failure { fault, .. } = unanswered(&kind.into());
            assert_eq!(fault.code, Code::OutcomeUnknown);
            assert!(fault.hint.contains("agent-session list"), "{fault}");
        }
        assert_eq!(unanswered(&ErrorKind::TimedOut.into()).fault.code, Code::Timeout);
    }
}
