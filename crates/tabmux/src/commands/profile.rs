//! `tabmux profile`: logins that are kept under a name. They are the operator's: agents begin with them and never change them.

use std::io::IsTerminal;
use std::path::Path;
use std::pin::Pin;

use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_daemon::profiles::{self, Damaged, Profiles, Taken};
use tabmux_wire::control::Ask;
use tokio::signal::unix::{SignalKind, signal};

use super::format::show;
use super::source;
use crate::cli::Profile;
use crate::control::Control;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Form};
use crate::settings::Config;

pub(super) fn run(config: &Config, form: Form, verb: Profile) -> Outcome {
    operator(config)?;
    let kept = Profiles::of_state(&config.settings.paths.state_dir);
    match verb {
        Profile::New { name, from } => new(config, form, &kept, &name, from),
        Profile::Ls => {
            let listed = kept.list()?;
            if form == Form::Text {
                let said =
                    |damaged: &Damaged| format!("'{0}' is damaged: {1} `tabmux profile rm {0}` removes it.", damaged.name, damaged.why);
                listed.damaged.iter().for_each(|damaged| output::note(&said(damaged)));
            }
            output::report(form, &json!(listed), || table(&json!(listed)))
        }
        Profile::Rm { name } => {
            let removed = kept.remove(&name)?;
            output::report(form, &json!({"removed": removed.name, "uuid": removed.uuid}), String::new)
        }
        Profile::Save { name, target } => {
            let session = target.filter(|name| !name.is_empty());
            saved(form, &Control::open(config)?.ask(&Ask::ProfileSave { name, session, new: false })?)
        }
        Profile::Login { name, url } => login(config, form, &name, url.as_deref()),
        Profile::Import { name, browser, profile_dir, replace } => {
            let import = profiles::Import { browser, dir: profile_dir.map(|dir| config.env.cwd.join(dir)), replace };
            saved(form, &alone(|interrupted| profiles::import(&config.settings, &name, &import, interrupted))?)
        }
        // The state is the result then, and is JSON whatever form is asked for.
        Profile::Export { name, file } if file == Path::new("-") => {
            let text = kept.text(&name)?;
            output::report(Form::Text, &Value::Null, || text + "\n")
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

/// Until the person closes the window, or presses Enter (or Ctrl-D) in the terminal this runs in.
fn login(config: &Config, form: Form, name: &str, url: Option<&str>) -> Outcome {
    if cfg!(target_os = "linux") && config.env.get("DISPLAY").is_none() && config.env.get("WAYLAND_DISPLAY").is_none() {
        let message = "There is no display here to show a window on.";
        let hint = "Run it on a desktop; or log in with a session and keep that: `tabmux profile save NAME -t SESSION`.";
        return Err(Fault::new(Code::Unsupported, message, hint).into());
    }
    output::note("Log in in the window that opens. Close it when you are done, or press Enter here.");
    let (entered, done) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let read = std::io::stdin().read_line(&mut String::new());
        // The end of a terminal's input is Ctrl-D; that of anything else says nothing.
        if std::io::stdin().is_terminal() || read.is_ok_and(|bytes| bytes > 0) {
            // The window may have been closed meanwhile.
            entered.send(()).ok();
        }
    });
    let done = async {
        if done.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    saved(form, &alone(|interrupted| profiles::login(&config.settings, name, url, done, interrupted))?)
}

/// Without a daemon. The work is told when somebody wants it to end, because it has a browser to put away.
fn alone<T, W>(work: impl FnOnce(Pin<Box<dyn Future<Output = ()>>>) -> W) -> Outcome<T>
where
    W: Future<Output = Result<T, Fault>>,
{
    let io = |error| Failure::io("The command cannot run", &error);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().map_err(io)?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt()).map_err(io)?, signal(SignalKind::terminate()).map_err(io)?);
        let mut hangup = signal(SignalKind::hangup()).map_err(io)?;
        let interrupted = async move {
            tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {}, _ = hangup.recv() => {} }
        };
        Ok(work(Box::pin(interrupted)).await?)
    })
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
    let mut rows: Vec<_> = rows.iter().map(row).collect();
    let damaged = document["damaged"].as_array().into_iter().flatten();
    let unknown = String::new;
    rows.extend(damaged.map(|damaged| [show(&damaged["name"]), unknown(), unknown(), unknown(), "damaged".into(), unknown()]));
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
