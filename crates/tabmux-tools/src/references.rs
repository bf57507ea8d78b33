//! `${name}` in arguments: what stands there is put in on the way to the page. What is put in is never read again, so a
//! page whose text looks like a reference gets nothing out of being quoted.

use serde_json::{Map, Value};
use tabmux_core::Fault;

use crate::{Arguments, Tool, schema};

/// What a reference stands for: a value, or nothing, when it is not ours and stays as it is.
pub type Found = Result<Option<Value>, Fault>;

/// How a value is written where it is put in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    Text,
    JavaScript,
}

/// Arguments that are code. There a value becomes a literal, and `${…}` of the code itself is left alone.
const CODE: [&str; 2] = ["script", "function"];

/// Whether an argument is code.
pub(crate) fn is_code(argument: &str) -> bool {
    CODE.contains(&argument)
}

/// Puts values in for all references in a tool's arguments. `find` is given the name of the argument and what stands between the
/// braces. A string that is nothing but one reference becomes the value itself, unless the tool wants a string there.
pub fn fill(tool: &Tool, args: &mut Arguments, find: &dyn Fn(&str, &str) -> Found) -> Result<(), Fault> {
    for (name, value) in args.iter_mut() {
        let form = if is_code(name) { Form::JavaScript } else { Form::Text };
        let was_text = value.is_string();
        fill_value(value, form, &|inside| find(name, inside))?;
        if was_text && !value.is_string() && schema_of(tool, name)["type"] == "string" {
            *value = text(value).into();
        }
    }
    Ok(())
}

/// The same for a value that belongs to no tool.
pub(crate) fn fill_plain(value: &mut Value, find: &dyn Fn(&str) -> Found) -> Result<(), Fault> {
    fill_value(value, Form::Text, find)
}

/// A value as it reads: a string without quotes, anything else as JSON.
pub(crate) fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn schema_of(tool: &Tool, argument: &str) -> Value {
    schema(tool)["properties"][argument].take()
}

fn fill_value(value: &mut Value, form: Form, find: &dyn Fn(&str) -> Found) -> Result<(), Fault> {
    match value {
        Value::String(source) if source.contains("${") => *value = filled(source, form, find)?,
        Value::Array(items) => items.iter_mut().try_for_each(|item| fill_value(item, form, find))?,
        Value::Object(members) => members.values_mut().try_for_each(|member| fill_value(member, form, find))?,
        _ => {}
    }
    Ok(())
}

fn filled(source: &str, form: Form, find: &dyn Fn(&str) -> Found) -> Result<Value, Fault> {
    let mut written = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        let Some(end) = from.find('}') else { break };
        let (whole, after) = from.split_at(end + 1);
        let inside = &whole[2..end];
        // `$${x}` says `${x}`; code has no need to say it.
        let escaped = form == Form::Text && before.ends_with('$');
        let found = if escaped || !is_reference(inside) { None } else { find(inside)? };
        written.push_str(if escaped { &before[..before.len() - 1] } else { before });
        match (found, form) {
            (None, _) => written.push_str(whole),
            (Some(value), Form::Text) if whole.len() == source.len() => return Ok(value),
            (Some(value), Form::Text) => written.push_str(&text(&value)),
            (Some(value), Form::JavaScript) => written.push_str(&literal(&value)),
        }
        rest = after;
    }
    written.push_str(rest);
    Ok(written.into())
}

/// Names, paths and `secret:NAME`; an expression of a script is none.
fn is_reference(inside: &str) -> bool {
    let part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    inside.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && inside.chars().all(part)
}

/// A value as JavaScript. Every sign that could end a string or begin something is written as `\u0022`: where the author put
/// quotes around the reference, the script is refused by the parser instead of running what a page wrote.
fn literal(value: &Value) -> String {
    match value {
        Value::String(source) => {
            let mut written = String::from("\"");
            for unit in source.encode_utf16() {
                match u8::try_from(unit).map(char::from) {
                    Ok(plain) if plain.is_ascii_alphanumeric() || plain == ' ' => written.push(plain),
                    _ => written.push_str(&format!("\\u{unit:04x}")),
                }
            }
            written + "\""
        }
        Value::Array(items) => format!("[{}]", items.iter().map(literal).collect::<Vec<_>>().join(",")),
        Value::Object(members) => format!("({{{}}})", pairs(members)),
        other => other.to_string(),
    }
}

fn pairs(members: &Map<String, Value>) -> String {
    let pair = |(name, value): (&String, &Value)| format!("[{}]:{}", literal(&name.clone().into()), literal(value));
    members.iter().map(pair).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tabmux_core::Code;

    fn find(_: &str, inside: &str) -> Found {
        match inside {
            "name" => Ok(Some(json!("Bob"))),
            "evil" => Ok(Some(json!("\"); steal(`${name}`); ('"))),
            "count" => Ok(Some(json!(3))),
            "row.cells" => Ok(Some(json!(["a", "${name}"]))),
            "late" => Err(Fault::new(Code::BadArgument, "Not yet.", "Wait.")),
            _ => Ok(None),
        }
    }

    fn filled_in(tool: &str, args: Value) -> Value {
        let Value::Object(mut args) = args else { panic!("an object") };
        fill(crate::find(tool).unwrap(), &mut args, &find).unwrap();
        args.into()
    }

    #[test]
    fn names_become_values_wherever_a_string_stands() {
        let args = json!({ "url": "http://a.test/${name}?n=${count}", "back": "${count}", "more": [{ "x": "${row.cells}" }] });
        let expected = json!({ "url": "http://a.test/Bob?n=3", "back": 3, "more": [{ "x": ["a", "${name}"] }] });
        assert_eq!(filled_in("navigate", args), expected, "what was put in is not read again");
        assert_eq!(filled_in("navigate", json!({ "url": "${count}" })), json!({ "url": "3" }), "a string where a string is wanted");
    }

    #[test]
    fn what_is_no_reference_stays_as_it_is() {
        for source in ["$name {name} ${", "${}", "${a + b}", "${unknown}", "5$", "${ name }"] {
            assert_eq!(filled_in("navigate", json!({ "url": source })), json!({ "url": source }));
        }
        assert_eq!(filled_in("navigate", json!({ "url": "$${name} ${name}" })), json!({ "url": "${name} Bob" }));
        let Value::Object(mut args) = json!({ "url": "${late}" }) else { panic!("an object") };
        assert_eq!(fill(crate::find("navigate").unwrap(), &mut args, &find).unwrap_err().message, "Not yet.");
    }

    #[test]
    fn a_script_gets_literals_that_no_text_can_break_out_of() {
        let script = |source: &str| filled_in("evaluate", json!({ "script": source }))["script"].as_str().unwrap().to_owned();
        assert_eq!(script("f(${name}, ${count}, `${x}`)"), "f(\"Bob\", 3, `${x}`)");
        assert_eq!(script("f(${row.cells})"), "f([\"a\",\"\\u0024\\u007bname\\u007d\"])");
        let hostile = script("f(${evil})");
        assert!(!hostile[3..hostile.len() - 2].contains(['"', '\'', '`', '(', ')', '$', ';']), "{hostile}");
    }
}
