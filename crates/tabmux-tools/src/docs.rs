//! `docs/tools.md`, written from the table. `cargo xtask docs` puts it in its place.

use serde_json::Value;
use tabmux_core::Code;

use crate::{Effect, Group, Level, Run, TABLE, Tool, cost, list_cost, schema, shown};

/// The whole page.
pub fn markdown() -> String {
    let mut page = format!(
        "# Tools\n\n\
         <!-- Generated from the tool table by `cargo xtask docs`. Do not edit. -->\n\n\
         `--tools` says how many an endpoint lists; every tool stays callable. Tokens are o200k's.\n\n{}\n\
         A tool that *reads* may be sent again when its outcome is unknown; one that *writes* may not.\n",
        levels()
    );
    for group in [Group::Sessions, Group::Pages, Group::See, Group::Act, Group::Many, Group::State] {
        let mut tools = TABLE.iter().filter(|tool| tool.group == group).peekable();
        if tools.peek().is_some() {
            page += &format!("\n## {}\n", heading(group));
        }
        for tool in tools {
            page += &section(tool);
        }
    }
    page + &errors()
}

fn levels() -> String {
    let row = |level: Level| {
        let default = if level == Level::default() { " (default)" } else { "" };
        format!("| `{}`{default} | {} | {} |\n", level.name(), shown(level).count(), list_cost(level))
    };
    "| list | tools | tokens |\n|---|---|---|\n".to_owned() + &Level::ALL.map(row).concat()
}

fn heading(group: Group) -> &'static str {
    match group {
        Group::Sessions => "Sessions",
        Group::Pages => "Pages",
        Group::See => "See",
        Group::Act => "Act",
        Group::Many => "Many at once",
        Group::State => "State",
    }
}

fn section(tool: &Tool) -> String {
    let effect = match tool.effect {
        Effect::Read => "Reads",
        Effect::Write => "Writes",
    };
    let tokens = cost(tool.name).unwrap_or_default();
    let mut text = format!(
        "\n### `{}`\n\n{}\n\n{effect}{}; list `{}`, {tokens} tokens.\n\n",
        tool.name,
        tool.description,
        traits(tool.run),
        tool.level.name()
    );
    text += "| argument | type | meaning |\n|---|---|---|\n";
    let schema = schema(tool);
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let must = if required.iter().any(|known| known == name) { " (required)" } else { "" };
        let meaning = property["description"].as_str().unwrap_or_default();
        text += &format!("| `{name}`{must} | {} | {meaning} |\n", kind(property));
    }
    text
}

fn traits(run: Run) -> String {
    let Run::Page(tool) = run else { return String::new() };
    let makes = if tool.makes_session() { ", makes a session when there is none" } else { "" };
    let hasty = if tool.skips_queue() { ", never queues" } else { "" };
    format!("{makes}{hasty}")
}

fn kind(property: &Value) -> String {
    let kind = match property["enum"].as_array() {
        Some(choices) => choices.iter().map(|choice| format!("`{}`", choice.as_str().unwrap_or_default())).collect::<Vec<_>>().join(", "),
        None => property["type"].as_str().unwrap_or_default().to_owned(),
    };
    match &property["default"] {
        Value::Null => kind,
        default => format!("{kind}, default {default}"),
    }
}

fn errors() -> String {
    let mut text =
        "\n## Error codes\n\nA failed call begins with its code in brackets, then says what happened and what to do next.\n\n".to_owned();
    text += "| code | HTTP | what happened |\n|---|---|---|\n";
    for (code, name, status) in Code::ALL {
        text += &format!("| `{name}` | {status} | {} |\n", meaning(code));
    }
    text
}

fn meaning(code: Code) -> &'static str {
    match code {
        Code::BadArgument => "An argument is missing, unknown or wrong; the message shows the value and what would be right.",
        Code::SessionNotFound => "You have no session of that name or id.",
        Code::SessionExists => "The name is taken by another of your sessions or by a live client.",
        Code::SessionRequired => "You have no session, or several and none was named.",
        Code::SessionClosed => "The session was closed while the call waited.",
        Code::SessionOrphaned => "The session lost its client and waits for it to come back.",
        Code::TabNotFound => "The session has no such tab.",
        Code::TabGone => "The tab was closed by a person or by its own page.",
        Code::TabCrashed => "The page crashed; reload brings it back.",
        Code::ElementNotFound => "No element matches the selector.",
        Code::ElementNotActionable => "The element is there but cannot be used now.",
        Code::StaleRef => "The ref is of an older snapshot, or the page went elsewhere before anything was done.",
        Code::AssertFailed => "A step of a sequence did not find what it expected; the message shows what it saw.",
        Code::DialogOpen => "A dialog freezes the page until `handle_dialog` answers it.",
        Code::NavigationFailed => "The address could not be reached.",
        Code::Timeout => "The call did not end before its deadline, the time in the queue included.",
        Code::Cancelled => "The caller cancelled the call.",
        Code::PolicyDenied => "The rules do not allow it.",
        Code::Capacity => "A limit on sessions or clones is reached.",
        Code::QueueFull => "Too many calls wait for this session already.",
        Code::BrowserNotFound => "No browser is installed where tabmux looks.",
        Code::BrowserCrashed => "The browser ended; the next call starts afresh.",
        Code::ExtensionDisconnected => "The browser's extension is not connected.",
        Code::PausedByHuman => "A person has taken over the session.",
        Code::StaleEpoch => "The session changed hands while the call waited.",
        Code::OutcomeUnknown => "The daemon, a grant or the page's document ended while a call that writes was running.",
        Code::Unsupported => "This kind of session or browser cannot do it.",
        Code::Unauthorized => "The token is missing or wrong.",
        Code::FrameTooLarge => "The message is larger than the door takes.",
        Code::ProtocolVersion => "The peer speaks a version this program does not.",
        Code::NoSpace => "The disk is full.",
        Code::Internal => "A fault of tabmux itself.",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_page_is_the_generated_one() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/tools.md");
        if std::env::var_os("TABMUX_BLESS").is_some() {
            std::fs::write(file, markdown()).unwrap();
        }
        let written = std::fs::read_to_string(file).unwrap_or_default();
        assert!(written == markdown(), "docs/tools.md is out of date: run `cargo xtask docs`");
    }

    #[test]
    fn every_tool_and_every_code_is_on_the_page() {
        let page = markdown();
        assert!(TABLE.iter().all(|tool| page.contains(&format!("### `{}`", tool.name))));
        assert!(Code::ALL.iter().all(|(_, name, _)| page.contains(&format!("| `{name}` |"))));
        assert!(
            page.contains("| `isolation` | `context`, `window`, `tab`, `browser` |")
                && page.contains("| `accept` | boolean, default true |")
        );
    }
}
