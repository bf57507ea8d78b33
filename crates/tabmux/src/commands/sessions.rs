//! Sessions in tmux's words: new, ls, has-session, kill-session, rename-session.

use serde_json::{Map, Value, json};
use tabmux_core::{Code, Fault};
use tabmux_wire::control::Ask;

use super::call::call;
use super::format::{fill, show};
use super::source;
use crate::cli::{Ls, Make};
use crate::control::Control;
use crate::failure::Outcome;
use crate::output::{self, Form};
use crate::settings::Config;
use crate::start::Absent;

const BEGIN: &str = "\
No tabmux daemon is running.
  tabmux up             run it here, and see how to connect Claude Code, Claude Desktop, Cursor and VS Code
  tabmux new URL        open a session yourself
  tabmux doctor         check this machine
  tabmux --help         everything else
";

/// Bare `tabmux`.
pub(super) fn ls_or_begin(config: &Config, form: Form) -> Outcome {
    match Control::find(config)? {
        Some(control) => list(config, control, form, &Ls::default()),
        None => output::report(form, &json!({"running": false}), || BEGIN.into()),
    }
}

pub(super) fn ls(config: &Config, form: Form, ls: &Ls) -> Outcome {
    list(config, Control::open(config)?, form, ls)
}

fn list(config: &Config, mut control: Control, form: Form, ls: &Ls) -> Outcome {
    let answer = control.ask(&Ask::Sessions { all: ls.all })?;
    let sessions = sessions_in(&answer);
    if let Some(format) = &ls.format {
        let lines = sessions.iter().map(|session| Ok(fill(format, session)? + "\n")).collect::<Outcome<String>>()?;
        return output::report(form, &answer, || lines);
    }
    let row = |session: &Value| ["sessionId", "id", "type", "state", "tabs", "createdAt", "owner"].map(|member| show(&session[member]));
    let rows: Vec<_> = sessions.iter().map(row).collect();
    if rows.is_empty() && form == Form::Text {
        // Everybody's are the operator's to see.
        let own = !ls.all && config.token.is_none();
        output::note(if own { "No sessions of yours; --all shows everybody's." } else { "No sessions." });
    }
    if form == Form::Text {
        let hints = sessions.iter().filter(|session| session["hint"].is_string());
        hints.for_each(|session| output::note(&format!("{}: {}", show(&session["sessionId"]), show(&session["hint"]))));
    }
    output::report(form, &answer, || output::table(["NAME", "ID", "TYPE", "STATE", "TABS", "CREATED", "OWNER"], &rows))
}

fn sessions_in(answer: &Value) -> &[Value] {
    answer["sessions"].as_array().map_or(&[], Vec::as_slice)
}

pub(super) fn new(config: &Config, form: Form, session: Option<String>, make: Make, url: Option<String>) -> Outcome {
    let from = source::given(config, make.from)?;
    let given = [("sessionId", session), ("isolation", make.isolation), ("from", from), ("navigationUrl", url)];
    let args: Map<String, Value> = given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))).collect();
    let reply = call(config, Absent::Start, "start_browser".into(), args)?;
    if let (Form::Text, Some(warning)) = (form, reply["result"]["warning"].as_str()) {
        output::note(warning);
    }
    output::report(form, &reply, || show(&reply["result"]["sessionId"]))
}

/// The operator looks among everybody's sessions, because that is whom `kill-session` reaches; a capability among its own.
pub(super) fn has(config: &Config, form: Form, target: &str) -> Outcome {
    let answer = Control::open(config)?.ask(&Ask::Sessions { all: config.token.is_none() })?;
    let named = |session: &&Value| ["sessionId", "id", "uuid"].iter().any(|member| session[member] == target);
    match sessions_in(&answer).iter().find(named) {
        Some(session) => output::report(form, session, String::new),
        None => {
            let hint = if config.token.is_none() { "`tabmux ls --all` shows which there are." } else { "`tabmux ls` shows yours." };
            Err(Fault::new(Code::SessionNotFound, format!("No session: {target}."), hint).into())
        }
    }
}

pub(super) fn kill(config: &Config, form: Form, target: String) -> Outcome {
    let answer = Control::open(config)?.ask(&Ask::Kill { session: target })?;
    output::report(form, &answer, String::new)
}

pub(super) fn rename(config: &Config, form: Form, target: String, name: String) -> Outcome {
    let answer = Control::open(config)?.ask(&Ask::Rename { session: target, name })?;
    output::report(form, &answer, String::new)
}
