use serde::Deserialize;
use serde_json::json;

use super::*;

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Sample {
    /// Where to.
    url: String,
    page_idx: Option<usize>,
    #[serde(default)]
    quick: bool,
    mode: Option<Mode>,
}

#[derive(Debug, Deserialize, JsonSchema, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Mode {
    Slow,
    Fast,
}

fn object(value: Value) -> Arguments {
    let Value::Object(map) = value else { panic!("an object") };
    map
}

fn refused(value: Value) -> String {
    let fault = of_page::<Sample>(&object(value)).unwrap_err();
    assert_eq!(fault.code, Code::BadArgument);
    fault.to_string()
}

#[test]
fn what_every_call_may_say_is_taken_out() {
    let mut args = object(json!({ "sessionId": "a", "tabId": "t2", "timeout": 1500, "url": "x" }));
    let expected = Common { session: Some("a".into()), tab: Some("t2".into()), timeout: Some(Duration::from_millis(1500)) };
    assert_eq!(common(&mut args), Ok(expected));
    assert_eq!(Value::Object(args), json!({ "url": "x" }));
    let mut nulls = object(json!({ "sessionId": null, "tabId": null, "timeout": null }));
    assert_eq!((common(&mut nulls), nulls.is_empty()), (Ok(Common::default()), true));
}

#[test]
fn a_timeout_is_from_one_millisecond_to_ten_minutes() {
    for fine in [1, 600_000] {
        assert_eq!(common(&mut object(json!({ "timeout": fine }))).unwrap().timeout, Some(Duration::from_millis(fine)));
    }
    for bad in [json!(0), json!(600_001), json!(-1), json!(1.5), json!("5s"), json!(true), json!(18_446_744_073_709_551_615_u64)] {
        assert_eq!(common(&mut object(json!({ "timeout": bad }))).unwrap_err().code, Code::BadArgument, "{bad}");
    }
    let fault = common(&mut object(json!({ "timeout": "5s" }))).unwrap_err();
    insta::assert_snapshot!(fault, @r#"[bad_argument] Argument timeout is "5s". It must be an integer from 1 to 600000, in milliseconds."#);
}

#[test]
fn session_and_tab_are_strings() {
    let fault = common(&mut object(json!({ "sessionId": 7 }))).unwrap_err();
    insta::assert_snapshot!(fault, @r#"[bad_argument] Argument sessionId is 7. It must be a session's name or id, for example "browser-1"."#);
    let fault = common(&mut object(json!({ "tabId": 1 }))).unwrap_err();
    insta::assert_snapshot!(fault, @r#"[bad_argument] Argument tabId is 1. It must be a tab's id from list_pages, for example "t1"."#);
}

#[test]
fn good_arguments_are_read_and_null_is_left_out() {
    let read = of_page::<Sample>(&object(json!({ "url": "x", "pageIdx": null, "mode": "fast", "quick": true }))).unwrap();
    assert_eq!(read, Sample { url: "x".into(), page_idx: None, quick: true, mode: Some(Mode::Fast) });
}

#[test]
fn an_unknown_argument_names_the_known_ones_and_the_nearest() {
    insta::assert_snapshot!(refused(json!({ "url": "x", "pageidx": 1 })), @r#"[bad_argument] Unknown argument "pageidx". Did you mean pageIdx? The arguments are: url, pageIdx, quick, mode, sessionId, tabId, timeout."#);
    insta::assert_snapshot!(refused(json!({ "url": "x", "z\u{202e}": 1 })), @r#"[bad_argument] Unknown argument "z\u202e". The arguments are: url, pageIdx, quick, mode, sessionId, tabId, timeout."#);
}

#[test]
fn a_missing_argument_is_named() {
    insta::assert_snapshot!(refused(json!({})), @"[bad_argument] Argument url is missing. Give url: a string.");
}

#[test]
fn a_wrong_value_is_shown_with_what_would_be_right() {
    insta::assert_snapshot!(refused(json!({ "url": 7 })), @"[bad_argument] Argument url is 7. It must be a string.");
    insta::assert_snapshot!(refused(json!({ "url": null })), @"[bad_argument] Argument url is null. It must be a string.");
    insta::assert_snapshot!(refused(json!({ "url": "x", "pageIdx": -1 })), @"[bad_argument] Argument pageIdx is -1. It must be an integer of at least 0.");
    insta::assert_snapshot!(refused(json!({ "url": "x", "quick": "yes" })), @r#"[bad_argument] Argument quick is "yes". It must be true or false."#);
    insta::assert_snapshot!(refused(json!({ "url": "x", "mode": "warp" })), @r#"[bad_argument] Argument mode is "warp". It must be one of "slow", "fast"."#);
    let long = refused(json!({ "url": ["é".repeat(10_000)] }));
    assert!(long.len() < 200 && long.contains("é…"), "{long}");
}

#[test]
fn a_desk_tool_knows_no_tab() {
    let common = Common { tab: Some("t1".into()), ..Common::default() };
    let fault = of_desk::<NoArguments>(&common, &Arguments::new()).unwrap_err();
    insta::assert_snapshot!(fault, @r#"[bad_argument] Unknown argument "tabId". The arguments are: sessionId, timeout."#);
}

#[test]
fn a_schema_says_no_more_than_it_must() {
    let expected = json!({
        "type": "object",
        "properties": {
            "url": { "description": "Where to.", "type": "string" },
            "pageIdx": { "type": "integer", "minimum": 0 },
            "quick": { "type": "boolean", "default": false },
            "mode": { "type": "string", "enum": ["slow", "fast"] },
        },
        "additionalProperties": false,
        "required": ["url"],
    });
    assert_eq!(own_schema::<Sample>(), expected);
    assert_eq!(own_schema::<NoArguments>(), json!({ "type": "object", "properties": {}, "additionalProperties": false }));
}

/// What agents that know other tools ask for.
#[test]
fn the_nearest_tool_is_the_one_that_was_meant() {
    let nearest = |asked: &str| super::nearest(asked, crate::TABLE.iter().map(|tool| tool.name));
    for (asked, meant) in [
        ("click", "click_element"),
        ("browser_click", "click_element"),
        ("browser_navigate", "navigate"),
        ("take_screenshot", "screenshot"),
        ("browser_snapshot", "snapshot"),
        ("browser_drag", "drag"),
        ("navigat", "navigate"),
        ("browser_press_key", "press_key"),
        ("wait", "wait_for"),
        ("evaluate_script", "evaluate"),
    ] {
        assert_eq!(nearest(asked), Some(meant), "{asked}");
    }
    assert_eq!(nearest("zzzz"), None);
}

/// Whoever comes from another tool writes its words.
#[test]
fn the_words_of_other_tools_are_known() {
    for (tool, theirs, ours) in [
        ("evaluate", "expression", "script"),
        ("evaluate", "function", "script"),
        ("click_element", "ref", "selector"),
        ("select_page", "index", "pageIdx"),
        ("screenshot", "path", "file"),
        ("set_value", "text", "value"),
        ("type_text", "value", "text"),
    ] {
        let schema = crate::schema(crate::find(tool).unwrap());
        let known = schema["properties"].as_object().unwrap().keys().map(String::as_str);
        assert_eq!(super::nearest(theirs, known), Some(ours), "{tool}");
    }
    // Each word of ours is an argument or a tool.
    let schemas: Vec<_> = crate::TABLE.iter().map(crate::schema).collect();
    for (_, ours) in super::OTHERS_WORDS {
        assert!(crate::find(ours).is_some() || schemas.iter().any(|schema| schema["properties"].get(ours).is_some()), "{ours}");
    }
}
