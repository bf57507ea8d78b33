//! Tool arguments as people type them: `key=value`, `key:=JSON`, or `--args` with one JSON object.

use serde_json::{Map, Value};

use crate::failure::{Failure, Outcome};

const HINT: &str = "Write key=value, key:='JSON', or --args '{\"key\": …}'.";

/// An argument is given once, as a pair or in `--args`. What the tool wants as a text stays one, even where it reads as JSON.
pub(super) fn gather(tool: &str, pairs: &[String], object: Option<&str>) -> Outcome<Map<String, Value>> {
    let mut args = match object.map(|text| tabmux_wire::strict::parse(text.as_bytes())) {
        None => Map::new(),
        Some(Ok(Value::Object(args))) => args,
        Some(Ok(other)) => return Err(Failure::usage(format!("--args is {other}, not a JSON object."), HINT)),
        Some(Err(fault)) => return Err(Failure::usage(format!("--args: {}", fault.message), HINT)),
    };
    for pair in pairs {
        let (key, value) = parse(tool, pair)?;
        if args.contains_key(&key) {
            return Err(Failure::usage(format!("The argument {key:?} is given twice."), HINT));
        }
        args.insert(key, value);
    }
    Ok(args)
}

fn wants_text(tool: &str, key: &str) -> bool {
    tabmux_tools::find(tool).is_some_and(|tool| tabmux_tools::schema(tool)["properties"][key]["type"] == "string")
}

fn parse(tool: &str, pair: &str) -> Outcome<(String, Value)> {
    let Some((key, value)) = pair.split_once('=') else {
        return Err(Failure::usage(format!("{pair:?} is not key=value."), HINT));
    };
    let (key, value) = match key.strip_suffix(':') {
        Some(key) => {
            let json = tabmux_wire::strict::parse(value.as_bytes());
            (key, json.map_err(|fault| Failure::usage(format!("{pair:?}: {}", fault.message), HINT))?)
        }
        None if wants_text(tool, key) => (key, Value::String(value.into())),
        // What is not JSON is what it looks like: a text.
        None => (key, serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()))),
    };
    if key.is_empty() {
        return Err(Failure::usage(format!("{pair:?} has no key."), HINT));
    }
    Ok((key.into(), value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;
    use serde_json::json;

    fn args(pairs: &[&str], object: Option<&str>) -> Outcome<Value> {
        let pairs: Vec<String> = pairs.iter().map(ToString::to_string).collect();
        gather("", &pairs, object).map(Value::Object)
    }

    #[test]
    fn a_value_is_json_where_it_is_json_and_text_where_it_is_not() {
        let read = args(&["url=https://a.test/?x=1", "n=5", "on=true", "s=\"5\"", "list:=[1,{}]", "empty="], None).unwrap();
        assert_eq!(read, json!({"url": "https://a.test/?x=1", "n": 5, "on": true, "s": "5", "list": [1, {}], "empty": ""}));
    }

    #[test]
    fn what_the_tool_wants_as_a_text_stays_one() {
        let args = gather("evaluate", &["script=1".to_owned(), "timeout=5".to_owned()], None).unwrap();
        assert_eq!(Value::Object(args), json!({"script": "1", "timeout": 5}));
    }

    #[test]
    fn pairs_stand_beside_the_object() {
        assert_eq!(args(&["a=1"], Some(r#"{"b":2}"#)).unwrap(), json!({"a": 1, "b": 2}));
    }

    #[test]
    fn what_cannot_be_read_is_wrong_usage_and_is_shown() {
        for (pairs, object, shown) in [
            (&["url"][..], None, "\"url\" is not key=value"),
            (&["=x"], None, "no key"),
            (&["a:={"], None, "a:={"),
            (&["a=1", "a=2"], None, "\"a\" is given twice"),
            (&["a=1"], Some(r#"{"a":2}"#), "\"a\" is given twice"),
            (&[], Some("[1]"), "not a JSON object"),
            (&[], Some("{"), "--args"),
            (&[], Some(r#"{"a":1,"a":2}"#), "twice"),
        ] {
            let failure = args(pairs, object).unwrap_err();
            assert_eq!(failure.exit, Exit::WrongUsage);
            assert!(failure.fault.message.contains(shown), "{}", failure.fault.message);
        }
    }
}
