//! How a tool reads its arguments: what every call may say is taken out first (`common`), the rest goes into the
//! tool's own typed struct. A fault says what was wrong, the value, and what would be right; which of these it was is
//! found by comparing with the schema, never by reading an error's text.

use std::time::Duration;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde_json::{Map, Value};
use tabmux_core::{Code, Fault};

use crate::visible;

pub type Arguments = Map<String, Value>;

/// The longest time a call may ask for (C1).
pub const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// What every call may say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Common {
    pub session: Option<String>,
    pub tab: Option<String>,
    pub timeout: Option<Duration>,
}

// Not a doc comment: the schema would show it.
// What the schema says of an object whose members stand in its description, which is shorter.
#[derive(JsonSchema)]
pub(crate) struct Object {}

// What the schema says of something that has a name, or is an object. Strict clients refuse what the schema does not name.
pub(crate) struct NameOrObject;

impl JsonSchema for NameOrObject {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "NameOrObject".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "anyOf": [{ "type": "string" }, { "type": "object" }] })
    }
}

/// A tool without arguments of its own.
#[derive(Debug, serde::Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoArguments {}

/// Takes `sessionId`, `tabId` and `timeout` out of the arguments. `null` counts as left out.
pub fn common(args: &mut Arguments) -> Result<Common, Fault> {
    let session = taken_text(args, "sessionId", "a session's name or id, for example \"browser-1\"")?;
    let tab = taken_text(args, "tabId", "a tab's id from list_pages, for example \"t1\"")?;
    let timeout = match taken(args, "timeout") {
        None => None,
        Some(value) => Some(timeout_of(&value)?),
    };
    Ok(Common { session, tab, timeout })
}

/// Reads the own arguments of a page tool.
pub(crate) fn of_page<T: DeserializeOwned + JsonSchema>(args: &Arguments) -> Result<T, Fault> {
    read(args, &["sessionId", "tabId", "timeout"])
}

/// Reads the own arguments of a desk tool, which knows no tabs.
pub(crate) fn of_desk<T: DeserializeOwned + JsonSchema>(common: &Common, args: &Arguments) -> Result<T, Fault> {
    const TAKEN: [&str; 2] = ["sessionId", "timeout"];
    if common.tab.is_some() {
        return Err(unknown("tabId", &names(&own_schema::<T>(), &TAKEN)));
    }
    read(args, &TAKEN)
}

/// The schema is only made when something is wrong: this is on the way of every call.
fn read<T: DeserializeOwned + JsonSchema>(args: &Arguments, taken: &[&str]) -> Result<T, Fault> {
    serde_path_to_error::deserialize(args.into_deserializer()).map_err(|error| {
        let path = error.path().to_string();
        explained(&own_schema::<T>(), taken, args, &path, error.inner())
    })
}

/// The schema of a tool's own arguments, as small as it can be said: no titles, formats or nulls.
pub(crate) fn own_schema<T: JsonSchema>() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    if let Some(root) = schema.as_object_mut() {
        root.remove("title");
        root.remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    for property in schema["properties"].as_object_mut().into_iter().flat_map(|properties| properties.values_mut()) {
        simplify(property);
    }
    schema
}

/// An argument that is wrong, with its value, and what would be right.
pub(crate) fn wrong(name: &str, value: &Value, right: &str) -> Fault {
    Fault::new(Code::BadArgument, format!("Argument {name} is {}.", shown(value)), format!("It must be {right}."))
}

/// A required argument that was not given.
pub(crate) fn missing(name: &str, right: &str) -> Fault {
    Fault::new(Code::BadArgument, format!("Argument {name} is missing."), format!("Give {name}: {right}."))
}

/// What other tools call what is ours, in small letters. One word may stand for several of ours, of which a tool has one.
const OTHERS_WORDS: [(&str, &str); 25] = [
    ("code", "script"),
    ("expression", "script"),
    ("function", "script"),
    ("javascript", "script"),
    ("element", "selector"),
    ("locator", "selector"),
    ("ref", "selector"),
    ("uid", "selector"),
    ("target", "selector"),
    ("index", "pageIdx"),
    ("pageid", "pageIdx"),
    ("tab", "tabId"),
    ("filename", "file"),
    ("filepath", "file"),
    ("path", "file"),
    ("text", "value"),
    ("value", "text"),
    ("click", "click_element"),
    ("fill", "set_value"),
    ("fill_form", "execute_sequence"),
    ("browser_fill_form", "execute_sequence"),
    ("resize_page", "emulate"),
    ("browser_resize", "emulate"),
    ("tabs", "list_pages"),
    ("browser_tabs", "list_pages"),
];

/// The known name nearest to one that is not known, if it is near enough to be meant. A word in common says more than letters do; that a
/// name is about a browser says nothing.
pub fn nearest<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let asked = asked.to_lowercase();
    let known: Vec<&str> = known.into_iter().collect();
    let translated =
        OTHERS_WORDS.iter().filter(|(theirs, _)| *theirs == asked).find_map(|(_, ours)| known.iter().find(|name| *name == ours));
    if let Some(name) = translated {
        return Some(name);
    }
    let words = |name: &str| -> Vec<String> { name.split('_').filter(|word| *word != "browser").map(str::to_owned).collect() };
    let own = words(&asked);
    let scored = known.into_iter().map(|name| {
        let lower = name.to_lowercase();
        let in_common = words(&lower).iter().any(|word| own.contains(word));
        (strsim::jaro_winkler(&asked, &lower) + f64::from(u8::from(in_common)), name)
    });
    scored.filter(|(score, _)| *score > 0.7).max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name)
}

fn taken(args: &mut Arguments, name: &str) -> Option<Value> {
    args.shift_remove(name).filter(|value| !value.is_null())
}

fn taken_text(args: &mut Arguments, name: &str, right: &str) -> Result<Option<String>, Fault> {
    match taken(args, name) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => Err(wrong(name, &other, right)),
    }
}

fn timeout_of(value: &Value) -> Result<Duration, Fault> {
    let longest = MAX_TIMEOUT.as_millis();
    match value.as_u64() {
        Some(milliseconds) if milliseconds > 0 && u128::from(milliseconds) <= longest => Ok(Duration::from_millis(milliseconds)),
        _ => Err(wrong("timeout", value, &format!("an integer from 1 to {longest}, in milliseconds"))),
    }
}

fn explained(schema: &Value, also: &[&str], args: &Arguments, path: &str, error: &serde_json::Error) -> Fault {
    let known = names(schema, also);
    if let Some(stranger) = args.keys().find(|key| !known.contains(key)) {
        return unknown(stranger, &known);
    }
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    if let Some(name) = required.into_iter().find(|name| !args.contains_key(*name)) {
        return missing(name, &expected(&schema["properties"][name]));
    }
    let first = path.split(['.', '[']).next().unwrap_or_default();
    match args.get(first) {
        Some(value) if first == path => wrong(path, value, &expected(&schema["properties"][first])),
        _ => Fault::new(Code::BadArgument, format!("Argument {path}: {error}."), "Correct it and call again."),
    }
}

fn names(schema: &Value, also: &[&str]) -> Vec<String> {
    let own = schema["properties"].as_object().into_iter().flat_map(Map::keys).cloned();
    own.chain(also.iter().map(|name| (*name).to_owned())).collect()
}

fn unknown(name: &str, known: &[String]) -> Fault {
    let guess = nearest(name, known.iter().map(String::as_str)).map(|guess| format!("Did you mean {guess}? ")).unwrap_or_default();
    let message = format!("Unknown argument \"{}\".", visible::line(name));
    Fault::new(Code::BadArgument, message, format!("{guess}The arguments are: {}.", known.join(", ")))
}

/// What a schema asks for, in words.
fn expected(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        let choices: Vec<_> = choices.iter().map(Value::to_string).collect();
        return format!("one of {}", choices.join(", "));
    }
    match (schema["type"].as_str(), schema["minimum"].as_i64()) {
        (Some("boolean"), _) => "true or false".to_owned(),
        (Some("integer"), Some(least)) => format!("an integer of at least {least}"),
        (Some("string"), _) => "a string".to_owned(),
        (Some(kind), _) => format!("of type {kind}"),
        (None, _) => "as the tool's schema says".to_owned(),
    }
}

fn shown(value: &Value) -> String {
    const MOST: usize = 100;
    let text = value.to_string();
    let cut = text.floor_char_boundary(MOST);
    visible::line(&text[..cut]) + if cut < text.len() { "…" } else { "" }
}

/// An optional argument may be left out; that it may also be `null` is understood and need not be said.
fn simplify(property: &mut Value) {
    let Some(object) = property.as_object_mut() else { return };
    if let Some(Value::Array(choices)) = object.remove("anyOf") {
        let real = choices.into_iter().find(|choice| choice["type"] != "null");
        object.extend(real.and_then(|real| real.as_object().cloned()).unwrap_or_default());
    }
    object.remove("format");
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    if let Some(Value::Array(kinds)) = object.get("type").cloned()
        && let Some(kind) = kinds.into_iter().find(|kind| kind != "null")
    {
        object.insert("type".to_owned(), kind);
    }
    if let Some(Value::Array(choices)) = object.get_mut("enum") {
        choices.retain(|choice| !choice.is_null());
    }
}

#[cfg(test)]
mod tests;
