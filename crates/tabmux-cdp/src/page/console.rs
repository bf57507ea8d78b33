//! What a page logs, as text: console calls, uncaught exceptions, and what the browser itself complains about.

mod pattern;

use serde_json::Value;
use serde_json::value::RawValue;

use crate::event::read;
use crate::protocol::{Event, log, runtime};

/// The level and text of an event that belongs into the page's log.
pub(super) fn entry(method: &str, params: &RawValue) -> Option<(&'static str, String)> {
    match method {
        runtime::ConsoleAPICalled::METHOD => {
            let Some(event) = read::<runtime::ConsoleAPICalled>(params) else { return Some(unread()) };
            Some((console_level(&event.kind), said(&event.args)))
        }
        runtime::ExceptionThrown::METHOD => {
            let Some(event) = read::<runtime::ExceptionThrown>(params) else { return Some(unread()) };
            Some(("exception", thrown(&event.exception_details)))
        }
        log::EntryAdded::METHOD => {
            let Some(log::EntryAdded { entry }) = read(params) else { return Some(unread()) };
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

/// A first text may say where the values after it go.
fn said(args: &[runtime::RemoteObject]) -> String {
    match args {
        [runtime::RemoteObject { value: Some(Value::String(pattern)), .. }, values @ ..] => pattern::filled(pattern, values),
        _ => args.iter().map(shown).collect::<Vec<_>>().join(" "),
    }
}

/// Something was said, if not what.
fn unread() -> (&'static str, String) {
    ("warning", "(something was logged that cannot be read)".to_owned())
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
    if object.subtype.as_deref() == Some("null") {
        return "null".to_owned();
    }
    match (&object.value, &object.preview, &object.unserializable_value, &object.description) {
        (Some(Value::String(text)), _, _, _) => text.clone(),
        (Some(value), _, _, _) => value.to_string(),
        // An error's description has its stack, which is worth more than its properties.
        (None, Some(preview), _, _) if object.subtype.as_deref() != Some("error") => previewed(preview),
        (None, _, Some(text), _) | (None, _, None, Some(text)) => text.clone(),
        (None, _, None, None) => object.kind.clone(),
    }
}

/// `{a: 1, b: "x", …}`, `[1, 2]`; what is deeper is named by its type, as Chromium gives it.
fn previewed(preview: &runtime::ObjectPreview) -> String {
    let is_list = preview.subtype.as_deref() == Some("array");
    let property = |property: &runtime::PropertyPreview| {
        let value = property.value.as_deref().unwrap_or(&property.kind);
        let value = if property.kind == "string" { format!("{value:?}") } else { value.to_owned() };
        if is_list { value } else { format!("{}: {value}", property.name) }
    };
    let mut parts: Vec<String> = preview.properties.iter().map(property).collect();
    if preview.overflow {
        parts.push("…".to_owned());
    }
    let inside = parts.join(", ");
    match preview.description.as_deref() {
        _ if is_list => format!("[{inside}]"),
        None | Some("Object") => format!("{{{inside}}}"),
        Some(class) => format!("{class} {{{inside}}}"),
    }
}

/// What was thrown, with the stack an `Error` has.
pub(crate) fn thrown(details: &runtime::ExceptionDetails) -> String {
    match &details.exception {
        Some(exception) => shown(exception),
        None => details.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logged(args: &str) -> String {
        let params = format!(r#"{{"type":"log","args":{args},"executionContextId":1,"timestamp":1}}"#);
        let params = RawValue::from_string(params).expect("this is JSON");
        entry(runtime::ConsoleAPICalled::METHOD, &params).expect("a console call is logged").1
    }

    #[test]
    fn values_are_shown_as_in_a_console() {
        assert_eq!(
            logged(r#"[{"type":"string","value":"a b"},{"type":"number","value":3.5},{"type":"object","subtype":"null","value":null}]"#),
            "a b 3.5 null"
        );
        assert_eq!(logged(r#"[{"type":"number","unserializableValue":"NaN","description":"NaN"},{"type":"undefined"}]"#), "NaN undefined");
        let object = r#"[{"type":"object","description":"Object","preview":{"type":"object","description":"Object","overflow":true,
            "properties":[{"name":"a","type":"number","value":"1"},{"name":"b","type":"string","value":"x"}]}}]"#;
        assert_eq!(logged(object), r#"{a: 1, b: "x", …}"#);
        let list = r#"[{"type":"object","subtype":"array","description":"Array(2)","preview":{"type":"object","subtype":"array",
            "description":"Array(2)","overflow":false,"properties":[{"name":"0","type":"number","value":"1"},{"name":"1","type":"object","value":"Object"}]}}]"#;
        assert_eq!(logged(list), "[1, Object]");
        let error = r#"[{"type":"object","subtype":"error","description":"Error: no\n    at x:1","preview":{"type":"object","subtype":"error",
            "overflow":false,"properties":[]}}]"#;
        assert_eq!(logged(error), "Error: no\n    at x:1");
        assert_eq!(logged(r#"[{"type":"string","value":"day \ud83d"}]"#), "day \u{fffd}");
    }

    #[test]
    fn values_are_put_where_the_first_text_wants_them() {
        let with = |pattern: &str, values: &str| logged(&format!(r#"[{{"type":"string","value":"{pattern}"}}{values}]"#));
        let (ann, number) = (r#",{"type":"string","value":"Ann %s"}"#, r#",{"type":"number","value":-1.5}"#);
        let object = r#",{"type":"object","description":"Object","preview":{"type":"object","description":"Object","overflow":false,
            "properties":[{"name":"a","type":"number","value":"1"}]}}"#;
        let infinite = r#",{"type":"number","unserializableValue":"Infinity","description":"Infinity"}"#;
        for (pattern, values, said) in [
            ("Hi %s, %d %i %f!", [ann, number, number, number].concat(), "Hi Ann %s, -2 -2 -1.5!"),
            ("%o %O %s", [object, object, object].concat(), "{a: 1} {a: 1} Object"),
            ("%cred%c%s", [ann, ann, ann].concat(), "redAnn %s"),
            ("%d %i %f", [ann, object, ann].concat(), "NaN NaN NaN"),
            ("%d%f", [infinite, infinite].concat(), "InfinityInfinity"),
            ("100%% %s", String::new(), "100% %s"),
            ("%s %s", ann.to_owned(), "Ann %s %s"),
            ("%", ann.to_owned(), "% Ann %s"),
            ("5%é %x %s", [ann, number, object].concat(), "5%é %x Ann %s -1.5 {a: 1}"),
        ] {
            assert_eq!(with(pattern, &values), said, "{pattern}");
        }
        assert_eq!(logged(r#"[{"type":"number","value":1},{"type":"string","value":"%s"},{"type":"number","value":2}]"#), "1 %s 2");
    }

    #[test]
    fn what_is_logged_in_a_shape_nobody_knows_is_said_and_counted() {
        let before = crate::unreadable_events();
        assert_eq!(logged("7"), "(something was logged that cannot be read)");
        assert!(crate::unreadable_events() > before);
    }
}
