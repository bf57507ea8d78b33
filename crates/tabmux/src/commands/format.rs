//! tmux's `-F` formats: `#{session_name}` and its kin, filled in from one session of the daemon's list.

use serde_json::Value;

use crate::failure::{Failure, Outcome};

/// Each variable and the member of a session it shows.
const VARIABLES: [(&str, &str); 13] = [
    ("session_name", "sessionId"),
    ("session_id", "id"),
    ("session_uuid", "uuid"),
    ("session_type", "type"),
    ("session_isolation", "isolation"),
    ("session_from", "from"),
    ("session_state", "state"),
    ("session_created", "createdAt"),
    ("session_age", "ageS"),
    ("session_tabs", "tabs"),
    ("session_owner", "owner"),
    ("session_url", "url"),
    ("session_memory_kb", "memory_kb"),
];

/// Fills in a format. `##` is a number sign; what a session does not have is empty.
pub(super) fn fill(format: &str, session: &Value) -> Outcome<String> {
    let mut filled = String::new();
    let mut rest = format;
    while let Some(at) = rest.find('#') {
        filled.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('#') {
            filled.push('#');
            rest = after;
        } else if let Some((name, after)) = rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
            filled.push_str(&show(&session[member(name)?]));
            rest = after;
        } else {
            filled.push('#');
        }
    }
    Ok(filled + rest)
}

fn member(variable: &str) -> Outcome<&'static str> {
    VARIABLES.iter().find(|(name, _)| *name == variable).map(|(_, member)| *member).ok_or_else(|| {
        let known: Vec<_> = VARIABLES.iter().map(|(name, _)| *name).collect();
        Failure::usage(format!("The format variable #{{{variable}}} is not known."), format!("There are: {}.", known.join(", ")))
    })
}

/// A member as text.
pub(super) fn show(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;
    use serde_json::json;

    #[test]
    fn variables_are_filled_in_and_everything_else_stays() {
        let session = json!({"sessionId": "web", "id": "sess_1", "tabs": 2});
        for (format, expected) in [
            ("#{session_name}", "web"),
            ("[#{session_id}] #{session_name}: #{session_tabs} tabs #1 ##x", "[sess_1] web: 2 tabs #1 #x"),
            ("#{session_owner}|", "|"),
            ("#{open", "#{open"),
            ("", ""),
        ] {
            assert_eq!(fill(format, &session).unwrap(), expected);
        }
    }

    #[test]
    fn an_unknown_variable_is_wrong_usage_and_the_known_ones_are_named() {
        let failure = fill("#{window_name}", &json!({})).unwrap_err();
        assert_eq!(failure.exit, Exit::WrongUsage);
        assert!(failure.fault.message.contains("window_name") && failure.fault.hint.contains("session_uuid"));
    }
}
