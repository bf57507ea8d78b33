//! A text that says where values go into it (`%s`), as a console reads it. What is put in is a value, and never read as a text of that kind.

use crate::protocol::runtime::RemoteObject;

use super::shown;

/// The text with as many values in it as it asks for; the others come behind it.
pub(super) fn filled(pattern: &str, values: &[RemoteObject]) -> String {
    let mut said = String::with_capacity(pattern.len());
    let mut values = values.iter();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('%') {
        said.push_str(before);
        let kind = after.chars().next().unwrap_or_default();
        rest = match kind {
            '%' => {
                said.push('%');
                &after[1..]
            }
            's' | 'd' | 'i' | 'f' | 'o' | 'O' | 'c' if let Some(value) = values.next() => {
                said.push_str(&put_in(kind, value));
                &after[1..]
            }
            _ => {
                said.push('%');
                after
            }
        };
    }
    said.push_str(rest);
    for value in values {
        said.push(' ');
        said.push_str(&shown(value));
    }
    said
}

fn put_in(kind: char, value: &RemoteObject) -> String {
    let is_number = value.kind == "number";
    match (kind, value.value.as_ref().and_then(serde_json::Value::as_f64)) {
        // How it looks, which nobody sees here.
        ('c', _) => String::new(),
        ('d' | 'i' | 'f', _) if !is_number => "NaN".to_owned(),
        ('d' | 'i', Some(number)) => number.floor().to_string(),
        // An object in few words.
        ('s', _) if value.kind == "object" && value.subtype.as_deref() != Some("null") => {
            value.description.clone().unwrap_or_else(|| shown(value))
        }
        _ => shown(value),
    }
}
