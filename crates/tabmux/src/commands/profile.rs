//! `tabmux profile`: logins that are kept under a name. They are the operator's: agents begin with them and never change them.

use std::path::Path;

use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_daemon::profiles::{self, Profiles, Taken};
use tabmux_wire::control::Ask;

use super::format::show;
use super::source;
use crate::cli::Profile;
use crate::control::Control;
use crate::failure::Outcome;
use crate::output::{self, Form};
use crate::settings::Config;

pub(super) fn run(config: &Config, form: Form, verb: Profile) -> Outcome {
    operator(config)?;
    let kept = Profiles::of_state(&config.settings.paths.state_dir);
    match verb {
        Profile::New { name, from } => new(config, form, &kept, &name, from),
        Profile::Ls => {
            let profiles = kept.list()?;
            let document = json!({"profiles": profiles});
            output::report(form, &document, || table(&document))
        }
        Profile::Rm { name } => {
            let removed = kept.remove(&name)?;
            output::report(form, &json!({"removed": removed.name, "uuid": removed.uuid}), String::new)
        }
        Profile::Save { name, target } => {
            let session = target.filter(|name| !name.is_empty());
            saved(form, &Control::open(config)?.ask(&Ask::ProfileSave { name, session, new: false })?)
        }
        Profile::Export { name, file } => {
            let profile = kept.export(&name, &config.env.cwd.join(&file))?;
            output::report(form, &json!({"exported": profile.name, "file": file}), String::new)
        }
    }
}

/// From nothing, a file or another profile it is made here; what a session holds only the daemon knows.
fn new(config: &Config, form: Form, kept: &Profiles, name: &str, from: Option<String>) -> Outcome {
    profiles::check_name(name)?;
    let made = match from {
        None => kept.create_empty(name)?,
        Some(text) if tabmux_daemon::sources::is_file(&text) => {
            let state = source::state("--from", &config.env.cwd.join(Path::new(&text)))?;
            kept.create_of(name, &state, Taken::From("file"))?
        }
        Some(text) => match Control::find(config)? {
            // A session wins over a profile of the same name, as everywhere.
            Some(mut control) if !text.starts_with("profile:") => {
                let session = Some(text.strip_prefix("session:").unwrap_or(&text).to_owned());
                match control.ask(&Ask::ProfileSave { name: name.to_owned(), session, new: true }) {
                    Err(failure) if failure.fault.code == Code::SessionNotFound && kept.find(&text)?.is_some() => kept.copy(&text, name)?,
                    answer => return saved(form, &answer?),
                }
            }
            _ => kept.copy(text.strip_prefix("profile:").unwrap_or(&text), name)?,
        },
    };
    saved(form, &json!({"profile": made, "losses": []}))
}

fn saved(form: Form, answer: &Value) -> Outcome {
    if form == Form::Text {
        for loss in answer["losses"].as_array().into_iter().flatten() {
            output::note(&format!("Not kept: {}.", show(loss)));
        }
    }
    output::report(form, answer, || show(&answer["profile"]["name"]))
}

fn table(document: &Value) -> String {
    let rows = document["profiles"].as_array().map_or(&[][..], Vec::as_slice);
    let row = |profile: &Value| ["name", "uuid", "cookies", "origins", "from", "saved_at"].map(|member| show(&profile[member]));
    let rows: Vec<_> = rows.iter().map(row).collect();
    output::table(["NAME", "UUID", "COOKIES", "ORIGINS", "FROM", "SAVED"], &rows)
}

/// A capability is no operator, whatever files it can read.
fn operator(config: &Config) -> Outcome {
    match config.token {
        None => Ok(()),
        Some(_) => {
            Err(Fault::new(Code::PolicyDenied, "Only the operator may keep profiles.", "Unset TABMUX_TOKEN to be the operator.").into())
        }
    }
}
