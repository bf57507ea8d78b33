//! The table of all tools, in the order every list shows them: MCP, command line, schemas and documentation follow from it.

use serde_json::{Map, Value, json};
use tabmux_core::{Code, Fault};

use crate::arguments::nearest;
use crate::tools::{
    click_element, close_all_sessions, close_page, close_session, console, cookies, downloads, drag, emulate, evaluate, execute_sequence,
    fork, get_visible_elements, handle_dialog, hover, list_pages, list_sessions, migrate, navigate, network, new_page, pdf, press_key,
    read_text, restore, screenshot, scroll, select_option, select_page, set_current_session, set_value, share_session, snapshot,
    start_browser, storage, tap_element, type_text, upload_file, wait_for,
};
use crate::visible;
use crate::{Level, Run, Tool};

/// Fixed order: `tools/list` must be the same for everybody, every time.
pub static TABLE: &[Tool] = &[
    start_browser::TOOL,
    list_sessions::TOOL,
    set_current_session::TOOL,
    close_session::TOOL,
    close_all_sessions::TOOL,
    share_session::TOOL,
    fork::TOOL,
    navigate::TOOL,
    new_page::TOOL,
    list_pages::TOOL,
    select_page::TOOL,
    close_page::TOOL,
    snapshot::TOOL,
    get_visible_elements::TOOL,
    read_text::TOOL,
    screenshot::TOOL,
    console::TOOL,
    network::TOOL,
    click_element::TOOL,
    set_value::TOOL,
    select_option::TOOL,
    type_text::TOOL,
    press_key::TOOL,
    scroll::TOOL,
    tap_element::TOOL,
    hover::TOOL,
    drag::TOOL,
    evaluate::TOOL,
    wait_for::TOOL,
    handle_dialog::TOOL,
    upload_file::TOOL,
    execute_sequence::TOOL,
    cookies::TOOL,
    storage::TOOL,
    emulate::TOOL,
    downloads::TOOL,
    pdf::TOOL,
    restore::TOOL,
    migrate::TOOL,
];

/// Tools that are named already and come with a later version.
const LATER: [&str; 2] = ["start_app_session", "start_session"];

/// Whether to say of a tool that it is not there yet, in place of that nobody knows it.
pub fn is_for_later(name: &str) -> bool {
    LATER.contains(&name)
}

pub fn find(name: &str) -> Option<&'static Tool> {
    TABLE.iter().find(|tool| tool.name == name)
}

/// The tools a list of this level shows, in the table's order.
pub fn shown(level: Level) -> impl Iterator<Item = &'static Tool> {
    TABLE.iter().filter(move |tool| tool.level <= level)
}

/// Finds a tool, or says which one may have been meant.
pub fn named(name: &str) -> Result<&'static Tool, Fault> {
    if is_for_later(name) {
        let message = format!("The tool {name} is not in this version yet.");
        return Err(Fault::new(Code::Unsupported, message, "`tabmux tools` lists what there is."));
    }
    find(name).ok_or_else(|| {
        let names = TABLE.iter().map(|tool| tool.name);
        let hint = match nearest(name, names.clone()) {
            Some(guess) => format!("Did you mean {guess}?"),
            None => format!("The tools are: {}.", names.collect::<Vec<_>>().join(", ")),
        };
        Fault::new(Code::BadArgument, format!("Unknown tool \"{}\".", visible::line(name)), hint)
    })
}

/// The whole input schema of a tool: its own arguments and those every call may give.
pub fn schema(tool: &Tool) -> Value {
    let mut schema = (tool.own_schema)();
    if let Some(properties) = schema["properties"].as_object_mut() {
        for (name, property) in common_properties(tool.run) {
            properties.entry(name).or_insert(property);
        }
    }
    schema
}

/// Tools whose list says that they take a timeout; all of them do.
const TIMED: [&str; 5] = ["navigate", "evaluate", "wait_for", "click_element", "execute_sequence"];

/// A tool as `tools/list` shows it, without what a protocol adds.
pub fn listing(tool: &Tool) -> Value {
    let mut schema = schema(tool);
    // What is unknown is refused by name in any case, and saying so costs tokens with every tool; so does a timeout that is rarely given.
    schema.as_object_mut().map(|schema| schema.shift_remove("additionalProperties"));
    if !TIMED.contains(&tool.name) {
        schema["properties"].as_object_mut().map(|properties| properties.shift_remove("timeout"));
    }
    json!({ "name": tool.name, "description": tool.description, "inputSchema": schema })
}

fn common_properties(run: Run) -> Map<String, Value> {
    let mut properties = Map::new();
    let mut add = |name: &str, property: Value| properties.insert(name.to_owned(), property);
    if let Run::Page(_) = run {
        add("tabId", json!({ "type": "string", "description": "Default: current" }));
    }
    add("sessionId", json!({ "type": "string", "description": "Target session ID. If omitted, uses current session." }));
    add("timeout", json!({ "type": "integer", "description": "ms" }));
    properties
}

#[cfg(test)]
mod tests {
    use tabmux_core::Touch;

    use super::*;
    use crate::Effect;

    /// S0.1
    #[test]
    fn every_tool_takes_a_session_id() {
        for tool in TABLE {
            let schema = schema(tool);
            let session = &schema["properties"]["sessionId"];
            assert_eq!(session["type"], "string", "{}", tool.name);
            if tool.name == "set_current_session" {
                assert_eq!(schema["required"], json!(["sessionId"]));
                continue;
            }
            assert_eq!(session["description"], "Target session ID. If omitted, uses current session.", "{}", tool.name);
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            assert!(!required.contains(&json!("sessionId")), "{}", tool.name);
        }
    }

    #[test]
    fn every_schema_is_a_closed_object_and_page_tools_take_a_tab() {
        for tool in TABLE {
            let schema = schema(tool);
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&json!("object"), &json!(false)), "{}", tool.name);
            let takes_tab = schema["properties"].get("tabId").is_some();
            assert_eq!(takes_tab, matches!(tool.run, Run::Page(_)), "{}", tool.name);
            assert_eq!(schema["properties"]["timeout"]["type"], "integer", "{}", tool.name);
        }
    }

    #[test]
    fn every_tool_and_argument_is_described_and_named_once() {
        for (at, tool) in TABLE.iter().enumerate() {
            assert!(tool.description.ends_with('.'), "{}", tool.name);
            assert!(TABLE[at + 1..].iter().all(|later| later.name != tool.name), "{}", tool.name);
            for (name, property) in schema(tool)["properties"].as_object().unwrap() {
                assert!(property["description"].as_str().is_some_and(|text| !text.is_empty()), "{}.{name}", tool.name);
            }
        }
    }

    #[test]
    fn only_tools_that_change_nothing_may_be_sent_twice() {
        let reads: Vec<_> = TABLE.iter().filter(|tool| tool.effect == Effect::Read).map(|tool| tool.name).collect();
        assert_eq!(
            reads,
            ["list_sessions", "list_pages", "snapshot", "get_visible_elements", "read_text", "network", "wait_for", "downloads"]
        );
    }

    /// C8: only these make a session; `start_browser` is a desk tool and makes one always.
    #[test]
    fn only_navigate_and_new_page_make_a_session_and_only_closing_and_dialogs_skip_the_queue() {
        let pages = || TABLE.iter().filter_map(|tool| if let Run::Page(page) = tool.run { Some((tool.name, page)) } else { None });
        let makers: Vec<_> = pages().filter(|(_, page)| page.makes_session()).map(|(name, _)| name).collect();
        let hasty: Vec<_> = pages().filter(|(_, page)| page.skips_queue()).map(|(name, _)| name).collect();
        assert_eq!((makers, hasty), (vec!["navigate", "new_page"], vec!["close_page", "handle_dialog"]));
    }

    /// A grant for looking is not for what could change something through a tool that otherwise looks.
    #[test]
    fn only_tools_that_look_are_for_who_may_only_look() {
        let looks = |name: &str, args: Value| find(name).unwrap().touch(args.as_object().unwrap()) == Touch::Looks;
        let named = |touch: Touch| TABLE.iter().filter(|tool| tool.touch(&Map::new()) == touch).map(|tool| tool.name).collect::<Vec<_>>();
        let lookers = named(Touch::Looks);
        assert_eq!(
            lookers,
            [
                "list_sessions",
                "list_pages",
                "snapshot",
                "get_visible_elements",
                "read_text",
                "screenshot",
                "network",
                "wait_for",
                "downloads"
            ]
        );
        assert_eq!(named(Touch::Governs), ["restore", "migrate"], "where a session lives is its owner's affair");
        assert!(looks("screenshot", json!({ "file": null, "fullPage": true })) && looks("wait_for", json!({ "text": "x" })));
        assert!(!looks("screenshot", json!({ "file": "/tmp/a.png" })) && !looks("wait_for", json!({ "function": "f()" })));
    }

    #[test]
    fn an_unknown_tool_names_the_one_that_was_meant() {
        insta::assert_snapshot!(named("navigat").unwrap_err(), @r#"[bad_argument] Unknown tool "navigat". Did you mean navigate?"#);
        assert!(named("zzz").unwrap_err().hint.contains("start_browser, list_sessions"));
        assert_eq!(named("evaluate").unwrap().name, "evaluate");
    }
}
