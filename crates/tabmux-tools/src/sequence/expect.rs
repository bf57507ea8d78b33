//! What a step's value must be, and the sentence that says what was seen instead.

use regex_lite::Regex;
use serde::Deserialize;
use serde_json::Value;
use tabmux_core::{Code, Fault};

use crate::references::text;
use crate::visible;

/// How much of what was seen a fault shows.
const SHOWN_BYTES: usize = 300;

/// `"text"` is short for `{contains: "text"}`. All that is given must hold.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Condition {
    Contains(String),
    Given(Given),
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    equals: Option<Value>,
    contains: Option<String>,
    /// A regular expression.
    matches: Option<String>,
}

impl Condition {
    /// Reads an `expect`; references in it may not be filled in yet.
    pub(crate) fn read(value: &Value) -> Result<Self, Fault> {
        let condition = Self::deserialize(value).ok().filter(|condition| match condition {
            Self::Contains(_) => true,
            Self::Given(given) => given.equals.is_some() || given.contains.is_some() || given.matches.is_some(),
        });
        condition.ok_or_else(|| {
            let message = format!("expect is {}.", visible::short(&value.to_string(), SHOWN_BYTES));
            Fault::new(Code::BadArgument, message, "It must be {equals: any value}, {contains: text} or {matches: regular expression}.")
        })
    }

    /// `what` is what was looked at, such as `The url`.
    pub(crate) fn check(&self, what: &str, seen: &Value) -> Result<(), Fault> {
        let Given { equals, contains, matches } = match self.clone() {
            Self::Contains(text) => Given { contains: Some(text), ..Given::default() },
            Self::Given(given) => given,
        };
        let missed = if let Some(wanted) = equals.filter(|wanted| !same(wanted, seen)) {
            format!("is not {}", visible::short(&wanted.to_string(), SHOWN_BYTES))
        } else if let Some(part) = contains.filter(|part| !text(seen).contains(part)) {
            format!("does not contain {}", visible::short(&Value::from(part).to_string(), SHOWN_BYTES))
        } else if let Some(pattern) = matches {
            if regex(&pattern)?.is_match(&text(seen)) {
                return Ok(());
            }
            format!("does not match /{}/", visible::short(&pattern, SHOWN_BYTES))
        } else {
            return Ok(());
        };
        let message = format!("{what} {missed}; it is {}.", visible::short(&seen.to_string(), SHOWN_BYTES));
        Err(Fault::new(Code::AssertFailed, message, "Look at the page; if it only comes later, put a wait_for step before."))
    }
}

/// A number is found equal to its digits: what a model writes down is often a string.
fn same(wanted: &Value, seen: &Value) -> bool {
    wanted == seen || wanted.as_str().is_some_and(|wanted| wanted == text(seen))
}

fn regex(pattern: &str) -> Result<Regex, Fault> {
    Regex::new(pattern).map_err(|error| {
        let message = format!("matches is /{}/, which is no regular expression: {error}.", visible::short(pattern, SHOWN_BYTES));
        Fault::new(Code::BadArgument, message, "Correct it, or use contains.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn checked(condition: &Value, seen: &Value) -> Result<(), Fault> {
        Condition::read(condition)?.check("The value", seen)
    }

    #[test]
    fn equal_containing_and_matching_values_pass() {
        for (condition, seen) in [
            (json!("ell"), json!("hello")),
            (json!({ "equals": 3 }), json!(3)),
            (json!({ "equals": "3" }), json!(3)),
            (json!({ "equals": [1, "a"] }), json!([1, "a"])),
            (json!({ "contains": "\"a\":1" }), json!({ "a": 1 })),
            (json!({ "matches": "^h.*o$", "contains": "l" }), json!("hello")),
        ] {
            assert_eq!(checked(&condition, &seen), Ok(()), "{condition}");
        }
    }

    #[test]
    fn a_miss_says_what_was_wanted_and_what_was_seen() {
        let missed = |condition: Value, seen: Value| checked(&condition, &seen).unwrap_err().to_string();
        insta::assert_snapshot!(missed(json!({ "equals": "4" }), json!(3)), @r#"[assert_failed] The value is not "4"; it is 3. Look at the page; if it only comes later, put a wait_for step before."#);
        assert!(missed(json!("x"), json!("a\nb")).contains(r#"does not contain "x"; it is "a\nb"."#));
        assert!(missed(json!({ "contains": "l", "matches": "^e" }), json!("hello")).contains("does not match /^e/"));
        assert!(missed(json!("x"), json!("y".repeat(5000))).len() < 600);
    }

    #[test]
    fn a_condition_that_says_nothing_or_cannot_be_read_is_refused() {
        for condition in [json!({}), json!({ "is": 3 }), json!(3), json!({ "contains": 3 })] {
            assert_eq!(Condition::read(&condition).unwrap_err().code, Code::BadArgument, "{condition}");
        }
        assert!(checked(&json!({ "matches": "(" }), &json!("x")).unwrap_err().message.contains("no regular expression"));
    }
}
