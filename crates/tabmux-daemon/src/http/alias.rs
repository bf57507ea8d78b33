//! Seed 2's `browser_…` names, and the arguments that go by another name there. Any other name is a tool's own.

use serde_json::{Map, Value};
use tabmux_core::{Code, Fault};

/// `(name, tool, [(its argument, the tool's)])`
type Alias = (&'static str, &'static str, &'static [(&'static str, &'static str)]);

/// Elements are named by `ref` there and by `selector` here, which takes a ref as well.
const REF: &[(&str, &str)] = &[("ref", "selector")];

const ALIASES: &[Alias] = &[
    ("browser_navigate", "navigate", &[]),
    ("browser_click", "click_element", REF),
    ("browser_type", "type_text", REF),
    ("browser_fill", "set_value", &[("ref", "selector"), ("text", "value")]),
    ("browser_hover", "hover", REF),
    ("browser_select_option", "select_option", REF),
    ("browser_drag", "drag", &[]),
    ("browser_press_key", "press_key", &[]),
    ("browser_snapshot", "snapshot", &[]),
    ("browser_screenshot", "screenshot", REF),
    ("browser_take_screenshot", "screenshot", REF),
    ("browser_evaluate", "evaluate", &[("function", "script"), ("expression", "script"), ("code", "script")]),
    ("browser_execute_js", "evaluate", &[("code", "script")]),
    ("browser_wait", "wait_for", &[]),
    ("browser_wait_for", "wait_for", &[]),
    ("browser_get_console_logs", "console", &[]),
    ("browser_console_messages", "console", &[]),
    ("browser_network_requests", "network", &[]),
    ("browser_handle_dialog", "handle_dialog", &[]),
    ("browser_tab_list", "list_pages", &[]),
    ("browser_tab_new", "new_page", &[]),
    ("browser_tab_select", "select_page", &[("index", "pageIdx")]),
    ("browser_tab_close", "close_page", &[("index", "pageIdx")]),
];

/// Moves in a tab's history are `navigate` with one of these set.
const MOVES: [(&str, &str); 5] = [
    ("browser_go_back", "back"),
    ("browser_navigate_back", "back"),
    ("browser_go_forward", "forward"),
    ("browser_navigate_forward", "forward"),
    ("browser_reload", "reload"),
];

/// `browser_tabs` says in `action` what it does.
const TAB_ACTIONS: [(&str, &str); 4] =
    [("list", "browser_tab_list"), ("new", "browser_tab_new"), ("select", "browser_tab_select"), ("close", "browser_tab_close")];

/// The tool a name stands for, and its arguments.
pub(super) fn resolve(name: &str, mut payload: Map<String, Value>) -> Result<(String, Map<String, Value>), Fault> {
    let mut wanted = name;
    if name == "browser_tabs" {
        let action = payload.remove("action");
        let known = TAB_ACTIONS.iter().find(|(known, _)| action.as_ref().and_then(Value::as_str) == Some(*known));
        wanted = known.ok_or_else(|| unknown_tab_action(action.as_ref()))?.1;
    }
    if let Some((_, direction)) = MOVES.iter().find(|(known, _)| *known == wanted) {
        payload.insert((*direction).to_owned(), true.into());
        return Ok(("navigate".to_owned(), payload));
    }
    let Some((_, tool, renames)) = ALIASES.iter().find(|alias| alias.0 == wanted) else {
        return if name.starts_with("browser_") { Err(unknown(name)) } else { Ok((name.to_owned(), payload)) };
    };
    for (theirs, ours) in *renames {
        if !payload.contains_key(*ours)
            && let Some(value) = payload.remove(*theirs)
        {
            payload.insert((*ours).to_owned(), value);
        }
    }
    if payload.contains_key("selector") {
        // Theirs for people to read: what the element is, in words.
        payload.remove("element");
    }
    Ok(((*tool).to_owned(), payload))
}

fn unknown(name: &str) -> Fault {
    let names: Vec<&str> = ALIASES.iter().map(|alias| alias.0).chain(MOVES.iter().map(|(name, _)| *name)).collect();
    let shown: String = name.chars().take(100).collect();
    Fault::new(
        Code::BadArgument,
        format!("There is no command '{shown}'."),
        format!("Use a tool's name, browser_tabs, or one of: {}.", names.join(", ")),
    )
}

fn unknown_tab_action(action: Option<&Value>) -> Fault {
    let shown: String = action.map_or_else(|| "none".to_owned(), Value::to_string).chars().take(100).collect();
    Fault::new(Code::BadArgument, format!("browser_tabs does not know the action {shown}."), "Use list, new, select or close.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resolved(name: &str, payload: &Value) -> (String, Value) {
        let (tool, args) = resolve(name, payload.as_object().unwrap().clone()).unwrap();
        (tool, Value::Object(args))
    }

    #[test]
    fn browser_names_become_tools_and_their_arguments_follow() {
        assert_eq!(resolved("browser_navigate", &json!({"url": "u"})), ("navigate".into(), json!({"url": "u"})));
        assert_eq!(
            resolved("browser_click", &json!({"ref": "e1", "element": "Send"})),
            ("click_element".into(), json!({"selector": "e1"}))
        );
        assert_eq!(resolved("browser_evaluate", &json!({"expression": "1"})), ("evaluate".into(), json!({"script": "1"})));
        assert_eq!(resolved("browser_tabs", &json!({"action": "close", "index": 2})), ("close_page".into(), json!({"pageIdx": 2})));
        assert_eq!(resolved("browser_go_back", &json!({})), ("navigate".into(), json!({"back": true})));
        assert_eq!(resolved("read_text", &json!({"element": "x"})), ("read_text".into(), json!({"element": "x"})));
    }

    #[test]
    fn an_unknown_browser_name_is_refused_with_the_known_ones() {
        let fault = resolve("browser_fly", Map::new()).unwrap_err();
        assert!(fault.message.contains("browser_fly") && fault.hint.contains("browser_navigate"), "{fault}");
        assert!(resolve("browser_tabs", Map::new()).unwrap_err().hint.contains("select"));
    }
}
