//! What a page logs, as text: console calls, uncaught exceptions, and what the browser itself complains about.

use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::read;
use crate::protocol::{Event, log, runtime};

/// The level and text of an event that belongs into the page's log.
pub(super) fn entry(method: &str, params: &RawValue) -> Option<(&'static str, String)> {
    match method {
        runtime::ConsoleAPICalled::METHOD => {
            let event = read::<runtime::ConsoleAPICalled>(params)?;
            let text = event.args.iter().map(shown).collect::<Vec<_>>().join(" ");
            Some((console_level(&event.kind), text))
        }
        runtime::ExceptionThrown::METHOD => Some(("exception", thrown(&read::<runtime::ExceptionThrown>(params)?.exception_details))),
        log::EntryAdded::METHOD => {
            let entry = read::<log::EntryAdded>(params)?.entry;
            let level = match entry.level.as_str() {
                "error" => "error",
                "warning" => "warning",
                _ => "log",
            };
            let place = entry.url.map(|url| format!(" ({url})")).unwrap_or_default();
            Some((level, format!("{}{place}", entry.text)))
        }
        _ => None,
    }
}

fn console_level(kind: &str) -> &'static str {
    match kind {
        "error" | "assert" => "error",
        "warning" => "warning",
        _ => "log",
    }
}

/// A value as a person would read it in the console, in one line.
pub(super) fn shown(object: &runtime::RemoteObject) -> String {
    match (&object.value, &object.unserializable_value, &object.description) {
        (Some(Value::String(text)), _, _) => text.clone(),
        (Some(value), _, _) => value.to_string(),
        (None, Some(text), _) | (None, None, Some(text)) => text.clone(),
        (None, None, None) => object.kind.clone(),
    }
}

/// What was thrown, with the stack an `Error` has.
pub(super) fn thrown(details: &runtime::ExceptionDetails) -> String {
    match &details.exception {
        Some(exception) => shown(exception),
        None => details.text.clone(),
    }
}
