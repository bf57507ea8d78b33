//! What a sequence says: a line per step, what failed, and the page as it was. What a page wrote is never at the beginning of a
//! line, so it cannot pass for a step.

use serde_json::{Value, json};
use tabmux_core::{Code, Fault};

use super::OnError;
use super::run::{Done, Ending, Telling, Yield};
use crate::reply::counted;
use crate::tool::beginning;
use crate::{Content, Reply, visible};

/// The most a step adds to the report: one that acted, and one that was asked for text.
const ACTED_BYTES: usize = 200;
const READ_BYTES: usize = 8000;

/// When the report has grown this long, further steps say their first line only.
const MAX_REPORT_BYTES: usize = 40_000;

/// How many pictures a report takes along.
const MAX_IMAGES: usize = 4;

pub(crate) fn success(endings: Vec<Ending>, comparison: Option<&str>) -> Reply {
    let steps: usize = endings.iter().map(|ending| ending.done.len()).sum();
    let told = match endings.len() {
        1 => format!("{} done.", counted(steps, "step")),
        sessions => format!("{} done in {}.", counted(steps, "step"), counted(sessions, "session")),
    };
    let reply = Reply::text(whole(told, &endings, comparison));
    let images = endings.into_iter().flat_map(|ending| ending.done).filter_map(|done| done.outcome.ok()).flat_map(|given| given.images);
    images.take(MAX_IMAGES).fold(reply, |reply, image| match image {
        Content::Image { base64, mime } => reply.image(base64, mime),
        Content::Text(_) => reply,
    })
}

/// The fault of the first step that failed, with the whole report.
pub(crate) fn failure(endings: &[Ending], on_error: OnError, comparison: Option<&str>) -> Option<Fault> {
    let (told, hint, code) = match on_error {
        OnError::Stop => stopped(endings)?,
        OnError::Continue => went_on(endings)?,
    };
    Some(Fault::new(code, whole(told, endings, comparison) + "\n", hint))
}

fn stopped(endings: &[Ending]) -> Option<(String, &'static str, Code)> {
    let (ending, number, first) = endings.iter().find_map(|ending| {
        let number = ending.done.iter().position(|done| done.outcome.is_err())?;
        Some((ending, number, ending.done[number].outcome.as_ref().err()?))
    })?;
    let failures = endings.iter().flat_map(|ending| &ending.done).filter(|done| done.outcome.is_err()).count();
    let place = if endings.len() > 1 { format!(" in {}", session(ending)) } else { String::new() };
    let others = if failures > 1 { format!(" {} failed in all.", counted(failures, "step")) } else { String::new() };
    let told = format!("Step {} of {}{place} failed.{others}", number + 1, ending.planned);
    let hint = match first.code {
        Code::Timeout => "Look at the page, then go on from the step that failed, perhaps with a longer timeout.",
        _ => "Go on from the step that failed.",
    };
    Some((told, hint, first.code))
}

/// All that failed, since what came after it was run: whoever went on from the first of these would do the rest twice.
fn went_on(endings: &[Ending]) -> Option<(String, &'static str, Code)> {
    let failed = |ending: &Ending| ending.done.iter().find_map(|done| done.outcome.as_ref().err()).map(|fault| fault.code);
    let first = endings.iter().find_map(failed)?;
    let all: Vec<String> =
        endings.iter().filter(|ending| failed(ending).is_some()).map(|ending| failed_of(ending, endings.len())).collect();
    let unrun = endings.iter().any(|ending| ending.done.len() < ending.planned);
    let (others, hint) = match unrun {
        true => ("", "Look at the page, then go on from the first step that was not run, perhaps with a longer timeout."),
        false => ("; every other step was run", "Look at the page, then do only what these steps were to do: the others are done."),
    };
    Some((beginning(format!("{}{others}.", all.join("; "))), hint, first))
}

/// `steps 1, 3 of 4 in web failed`.
fn failed_of(ending: &Ending, endings: usize) -> String {
    let numbers: Vec<String> =
        ending.done.iter().zip(1..).filter(|(done, _)| done.outcome.is_err()).map(|(_, number)| number.to_string()).collect();
    let place = if endings > 1 { format!(" in {}", session(ending)) } else { String::new() };
    format!("{} {} of {}{place} failed", if numbers.len() == 1 { "step" } else { "steps" }, numbers.join(", "), ending.planned)
}

/// The same for programs.
pub(crate) fn data(ending: &Ending) -> Value {
    let steps: Vec<Value> = ending.done.iter().map(step_data).collect();
    json!({ "sessionId": ending.session, "planned": ending.planned, "steps": steps })
}

pub(crate) fn session(ending: &Ending) -> String {
    visible::short(ending.session.as_deref().unwrap_or("no session"), 100)
}

fn step_data(done: &Done) -> Value {
    match &done.outcome {
        Ok(given) => {
            let mut data = json!({ "action": done.action, "ok": true, "ms": done.took_ms });
            if given.telling == Telling::Whole && given.value.to_string().len() <= READ_BYTES {
                data["value"] = given.value.clone();
            }
            data
        }
        Err(fault) => {
            let error = json!({ "code": fault.code.name(), "message": fault.message, "hint": fault.hint });
            json!({ "action": done.action, "ok": false, "ms": done.took_ms, "error": error })
        }
    }
}

fn whole(mut report: String, endings: &[Ending], comparison: Option<&str>) -> String {
    if let Some(comparison) = comparison {
        report += &format!("\n{comparison}");
    }
    for ending in endings {
        if endings.len() > 1 {
            report += &format!("\n{}:", session(ending));
        }
        for (at, done) in ending.done.iter().enumerate() {
            let room = if report.len() > MAX_REPORT_BYTES { ACTED_BYTES } else { READ_BYTES };
            let last = at + 1 == ending.planned;
            report += &format!("\n{} {}: {}", at + 1, done.what, told(done, last, room));
        }
        report += &unrun(ending.done.len(), ending.planned);
        report.extend(ending.page.iter().map(|page| format!("\n{}", indented(page))));
    }
    report
}

fn told(done: &Done, last: bool, room: usize) -> String {
    let said = match &done.outcome {
        Ok(given) => given_text(given, last, room),
        Err(fault) => format!("FAILED {fault}"),
    };
    let news: String = done.news.iter().map(|news| format!("\n(News: {news})")).collect();
    indented(&(said + &news))
}

fn given_text(given: &Yield, last: bool, room: usize) -> String {
    match given.telling {
        Telling::Whole => cut(&given.text, room),
        Telling::FirstLine if last => cut(&given.text, room),
        Telling::FirstLine => cut(given.text.lines().next().unwrap_or_default(), ACTED_BYTES),
    }
}

fn cut(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    if end == text.len() { text.to_owned() } else { format!("{}… [{} bytes]", &text[..end], text.len()) }
}

fn indented(text: &str) -> String {
    text.replace('\n', "\n   ")
}

fn unrun(done: usize, planned: usize) -> String {
    match planned - done {
        0 => String::new(),
        1 => format!("\n{planned} not run."),
        _ => format!("\n{}–{planned} not run.", done + 1),
    }
}
