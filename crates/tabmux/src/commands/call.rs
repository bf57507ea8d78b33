//! `tabmux call` and its short forms: one tool call, one result on standard output.

use std::path::Path;

use serde_json::{Map, Value};
use tabmux_tools::{is_for_later, named};
use tabmux_wire::control::Ask;

use crate::cli::{At, Short};
use crate::control::Control;
use crate::failure::{Failure, Outcome};
use crate::output::{self, Form};
use crate::settings::Config;
use crate::start::Absent;

pub(super) fn run(config: &Config, form: Form, absent: Absent, tool: String, args: Map<String, Value>, at: At) -> Outcome {
    let args = with_absolute_file(&tool, args, &config.env.cwd)?;
    let reply = call(config, absent, tool, place(args, at, config.env.variables.get("TABMUX_SESSION"))?)?;
    if form == Form::Text {
        beside(&reply).into_iter().for_each(output::note);
    }
    output::report(form, &reply, || text_of(&reply))
}

/// Makes a call: `{content, result, structured}`, or the tool's own failure.
pub(super) fn call(config: &Config, absent: Absent, tool: String, args: Map<String, Value>) -> Outcome<Value> {
    // No daemon is started for it.
    if is_for_later(&tool) {
        named(&tool)?;
    }
    Control::open_or(config, absent)?.ask(&Ask::Call { tool, args })
}

pub(super) fn short(config: &Config, form: Form, short: Short) -> Outcome {
    let text = |value: String| Some(Value::String(value));
    // These two are about a session there is, as `fork` and `share` are.
    let absent = if matches!(short, Short::Restore { .. } | Short::Migrate { .. }) { Absent::Say } else { Absent::Start };
    let (tool, args, at) = match short {
        Short::Open { url, at } => ("navigate", vec![("url", text(url))], at),
        Short::Snapshot { at } => ("snapshot", vec![], at),
        Short::Click { selector, at } => ("click_element", vec![("selector", text(selector))], at),
        Short::Fill { selector, text: value, at } => ("set_value", vec![("selector", text(selector)), ("value", text(value))], at),
        Short::Type { text: typed, at } => ("type_text", vec![("text", text(typed))], at),
        Short::Press { key, at } => ("press_key", vec![("key", text(key))], at),
        Short::Eval { script, at } => ("evaluate", vec![("script", text(script))], at),
        Short::Screenshot { file, full_page, selector, at } => {
            let full_page = full_page.then_some(Value::Bool(true));
            ("screenshot", vec![("file", text(file)), ("fullPage", full_page), ("selector", selector.map(Value::String))], at)
        }
        Short::Restore { at } => ("restore", vec![], at),
        Short::Migrate { isolation, headed, headless, force, at } => {
            let headless = (headed || headless).then_some(Value::Bool(headless));
            let force = force.then_some(Value::Bool(true));
            ("migrate", vec![("isolation", isolation.map(Value::String)), ("headless", headless), ("force", force)], at)
        }
        Short::Wait { text: awaited, selector, url, gone, at } => {
            let wanted = [("text", awaited), ("selector", selector), ("url", url), ("gone", gone)];
            ("wait_for", wanted.map(|(name, value)| (name, value.map(Value::String))).to_vec(), at)
        }
    };
    let args = args.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    run(config, form, absent, tool.into(), args, at)
}

/// A file is named from where the command runs; the daemon runs elsewhere and takes absolute names only.
fn with_absolute_file(tool: &str, mut args: Map<String, Value>, cwd: &Path) -> Outcome<Map<String, Value>> {
    let writes = tabmux_tools::find(tool).is_some_and(|tool| tabmux_tools::schema(tool)["properties"].get("file").is_some());
    if let Some(Value::String(file)) = args.get_mut("file").filter(|_| writes) {
        let absolute = cwd.join(&*file).into_os_string().into_string();
        *file = absolute.map_err(|path| {
            Failure::usage(
                format!("The path {} is no UTF-8.", path.display()),
                "Run it in a directory whose path is, or name the file absolutely.",
            )
        })?;
    }
    Ok(args)
}

/// Flags become arguments. An argument wins over the variable that a flag stands for; against the flag itself nobody knows which is meant.
fn place(mut args: Map<String, Value>, at: At, variable: Option<&String>) -> Outcome<Map<String, Value>> {
    let target = at.target.filter(|name| !name.is_empty() && (variable != Some(name) || !args.contains_key("sessionId")));
    let flags = [
        ("sessionId", "-t", target.map(Value::String)),
        ("tabId", "--tab", at.tab.map(Value::String)),
        ("timeout", "--timeout", at.timeout.map(Into::into)),
    ];
    for (name, flag, value) in flags {
        let Some(value) = value else { continue };
        if let Some(other) = args.get(name).filter(|other| **other != value) {
            return Err(Failure::usage(format!("{flag} is {value}, and {name} is {other}."), format!("Give either {flag} or {name}.")));
        }
        args.insert(name.into(), value);
    }
    Ok(args)
}

/// What was said beside the result: news of the session, and how the call fared.
fn beside(reply: &Value) -> Vec<&str> {
    let said = |name: &str| reply["result"][name].as_array().into_iter().flatten().filter_map(Value::as_str);
    said("news").chain(said("notes")).collect()
}

/// The text an agent would read, without the blocks around it: news, notes and which session was picked are no part of the result.
pub(super) fn text_of(reply: &Value) -> String {
    let blocks = reply["content"].as_array().map_or(&[][..], Vec::as_slice);
    let (before, after) = (usize::from(has(reply, "news")), blocks.len() > 1 && blocks.last().is_some_and(|last| is_footer(reply, last)));
    let parts = &blocks[before.min(blocks.len())..blocks.len() - usize::from(after)];
    let shown = parts.iter().map(|part| match part["type"].as_str() {
        Some("text") => part["text"].as_str().unwrap_or_default().to_owned(),
        Some("image") => format!(
            "[{}, {} bytes as base64; --json shows it]",
            part["mimeType"].as_str().unwrap_or("image"),
            part["data"].as_str().map_or(0, str::len)
        ),
        _ => part.to_string(),
    });
    shown.collect::<Vec<_>>().join("\n")
}

fn has(reply: &Value, name: &str) -> bool {
    reply["result"][name].is_array()
}

fn is_footer(reply: &Value, part: &Value) -> bool {
    let is_session = |text: &str| text.starts_with("[sessionId: ") && text.ends_with(']') && !text.contains('\n');
    has(reply, "notes") || part["text"].as_str().is_some_and(is_session)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;
    use serde_json::json;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_reply_reads_as_its_texts_and_pictures_are_only_named() {
        let reply = json!({"content": [{"type": "text", "text": "one"}, {"type": "image", "mimeType": "image/png", "data": "aaaa"}]});
        assert_eq!(text_of(&reply), "one\n[image/png, 4 bytes as base64; --json shows it]");
    }

    #[test]
    fn which_session_was_picked_is_not_part_of_the_text() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let session = "[sessionId: browser-1, sessionType: browser]";
        assert_eq!(text_of(&json!({"content": [text("3"), text(session)]})), "3");
        assert_eq!(text_of(&json!({"content": [text(session)]})), session, "a script's own result");
        assert_eq!(text_of(&json!({"content": [text(session), text("3")]})), format!("{session}\n3"));
        let content = [text("It crashed."), text("3"), text(&format!("(Waited.)\n{session}"))];
        let reply = json!({"content": content, "result": {"news": ["It crashed."], "notes": ["(Waited.)"]}});
        assert_eq!((text_of(&reply), beside(&reply)), ("3".into(), vec!["It crashed.", "(Waited.)"]));
    }

    #[test]
    fn a_file_is_named_from_where_the_command_runs() {
        let at = |tool: &str, file: &str| {
            let args = Map::from_iter([("file".to_owned(), Value::from(file))]);
            with_absolute_file(tool, args, Path::new("/work")).unwrap()["file"].clone()
        };
        assert_eq!(
            [at("screenshot", "a.png"), at("pdf", "x/a.pdf"), at("pdf", "/tmp/a.pdf")],
            ["/work/a.png", "/work/x/a.pdf", "/tmp/a.pdf"]
        );
        assert_eq!(at("evaluate", "a.png"), "a.png", "no file to that tool");
        let odd = Path::new(std::ffi::OsStr::from_bytes(b"/\xff"));
        let args = Map::from_iter([("file".to_owned(), Value::from("a.png"))]);
        assert_eq!(with_absolute_file("screenshot", args, odd).unwrap_err().exit, Exit::WrongUsage);
    }

    #[test]
    fn the_place_of_a_call_goes_into_its_arguments() {
        let at = At { target: Some("web".into()), tab: Some("t2".into()), timeout: Some(50) };
        assert_eq!(Value::Object(place(Map::new(), at, None).unwrap()), json!({"sessionId": "web", "tabId": "t2", "timeout": 50}));
        assert!(place(Map::new(), At { target: Some(String::new()), ..At::default() }, None).unwrap().is_empty());
    }

    #[test]
    fn two_places_for_one_call_are_refused_and_a_variable_gives_way() {
        let args = || Map::from_iter([("sessionId".to_owned(), Value::from("b"))]);
        let to = |target: &str| At { target: Some(target.into()), ..At::default() };
        let refused = place(args(), to("a"), None).unwrap_err();
        assert_eq!((refused.exit, refused.fault.message.as_str()), (Exit::WrongUsage, "-t is \"a\", and sessionId is \"b\"."));
        assert_eq!(place(args(), to("b"), None).unwrap(), args());
        assert_eq!(place(args(), to("a"), Some(&"a".to_owned())).unwrap(), args(), "TABMUX_SESSION");
        assert!(place(args(), to("c"), Some(&"a".to_owned())).is_err());
    }
}
