//! The fake browser's one-expression language, read into what it asks for. The table is in `fake.rs`. Pure.

use std::time::Duration;

use serde_json::Value;

use crate::{DriverError, Result};

/// The biggest string a script can make.
const MAX_STRING_BYTES: usize = 16 * 1024 * 1024;

/// The longest `sleep`.
const MAX_SLEEP_MS: u64 = 24 * 60 * 60 * 1000;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Script {
    Literal(Value),
    Href,
    Title,
    SetTitle(String),
    Field,
    Cookies,
    SetCookie(String),
    Sleep { milliseconds: u64 },
    Hang,
    Throw(String),
    Panic(String),
    Count,
    Log { level: &'static str, text: String },
    Append(String),
    Ask { kind: &'static str, text: String },
    Open { url: String },
    Crash,
    Close,
    EndBrowser,
    Copy(String),
    Paste,
    Timezone,
    OpenChooser,
}

impl Script {
    pub(super) fn parse(source: &str) -> Result<Self> {
        let source = source.trim().trim_end_matches(';').trim_end();
        if let Ok(literal) = serde_json::from_str(source) {
            return Ok(Self::Literal(literal));
        }
        if let Some(known) = Self::fixed(source).or_else(|| Self::assignment(source)).or_else(|| Self::call(source)) {
            return Ok(known);
        }
        if let Some((text, times)) = repetition(source) {
            return repeated(&text, times);
        }
        Err(not_understood(source))
    }

    pub(super) fn sleep(milliseconds: u64) -> Duration {
        Duration::from_millis(milliseconds.min(MAX_SLEEP_MS))
    }

    fn fixed(source: &str) -> Option<Self> {
        Some(match source {
            "location.href" => Self::Href,
            "document.title" => Self::Title,
            "document.querySelector(\"#name\").value" => Self::Field,
            "document.cookie" => Self::Cookies,
            "hang()" | "new Promise(() => {})" => Self::Hang,
            "count()" => Self::Count,
            "crash()" => Self::Crash,
            "window.close()" => Self::Close,
            "endBrowser()" => Self::EndBrowser,
            "navigator.clipboard.readText()" => Self::Paste,
            "Intl.DateTimeFormat().resolvedOptions().timeZone" => Self::Timezone,
            "openChooser()" => Self::OpenChooser,
            _ => return None,
        })
    }

    fn assignment(source: &str) -> Option<Self> {
        let (name, value) = source.split_once('=')?;
        let value = quoted(value.trim_start())?;
        match name.trim_end() {
            "document.cookie" => Some(Self::SetCookie(value)),
            "document.title" => Some(Self::SetTitle(value)),
            _ => None,
        }
    }

    fn call(source: &str) -> Option<Self> {
        let (name, rest) = source.split_once('(')?;
        let argument = rest.strip_suffix(')')?.trim();
        if name == "sleep" {
            return argument.parse().ok().map(|milliseconds| Self::Sleep { milliseconds });
        }
        let text = quoted(argument)?;
        Some(match name {
            "throw" => Self::Throw(text),
            "panic" => Self::Panic(text),
            "log" | "console.log" => Self::Log { level: "log", text },
            "error" | "console.error" => Self::Log { level: "error", text },
            "document.body.append" => Self::Append(text),
            "alert" => Self::Ask { kind: "alert", text },
            "confirm" => Self::Ask { kind: "confirm", text },
            "prompt" => Self::Ask { kind: "prompt", text },
            "window.open" => Self::Open { url: text },
            "navigator.clipboard.writeText" => Self::Copy(text),
            _ => return None,
        })
    }
}

/// A string in JSON's double quotes, or a plain one in single quotes.
fn quoted(source: &str) -> Option<String> {
    let single = source.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
    match single {
        Some(plain) => (!plain.contains(['\'', '\\'])).then(|| plain.to_owned()),
        None => serde_json::from_str(source).ok(),
    }
}

fn repetition(source: &str) -> Option<(String, usize)> {
    let (text, times) = source.strip_suffix(')')?.rsplit_once(".repeat(")?;
    Some((quoted(text)?, times.trim().parse().ok()?))
}

fn repeated(text: &str, times: usize) -> Result<Script> {
    match text.len().checked_mul(times) {
        Some(bytes) if bytes <= MAX_STRING_BYTES => Ok(Script::Literal(text.repeat(times).into())),
        _ => Err(DriverError::ScriptFailed(format!("Invalid string length: the fake browser makes at most {MAX_STRING_BYTES} bytes."))),
    }
}

fn not_understood(source: &str) -> DriverError {
    let start: String = source.chars().take(80).collect();
    DriverError::ScriptFailed(format!(
        "the fake browser does not understand {start:?}. It knows JSON, location.href, document.title, document.cookie, sleep(MS), \
         hang(), throw(TEXT), panic(TEXT), count(), log(TEXT), error(TEXT), document.body.append(TEXT), alert(TEXT), \
         confirm(TEXT), prompt(TEXT), crash(), \
         window.open(URL), window.close(), navigator.clipboard, openChooser(), endBrowser() and TEXT.repeat(N)."
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_stands_for_itself() {
        for value in [json!(7), json!("a(b)"), json!(null), json!([1, { "a": true }]), json!({ "a": 1.5 })] {
            assert_eq!(Script::parse(&format!(" {value}; ")).unwrap(), Script::Literal(value));
        }
    }

    #[test]
    fn every_verb_of_the_table_is_read() {
        let cases = [
            ("location.href", Script::Href),
            ("document.title", Script::Title),
            ("document.querySelector(\"#name\").value", Script::Field),
            ("document.cookie", Script::Cookies),
            ("document.cookie = \"k=v\"", Script::SetCookie("k=v".into())),
            ("document.title = \"T\"", Script::SetTitle("T".into())),
            ("document.cookie='k=v'", Script::SetCookie("k=v".into())),
            ("sleep(20)", Script::Sleep { milliseconds: 20 }),
            ("hang()", Script::Hang),
            ("new Promise(() => {})", Script::Hang),
            ("throw(\"no\")", Script::Throw("no".into())),
            ("panic('no')", Script::Panic("no".into())),
            ("count()", Script::Count),
            ("console.log(\"a\")", Script::Log { level: "log", text: "a".into() }),
            ("error(\"a\")", Script::Log { level: "error", text: "a".into() }),
            ("document.body.append('a')", Script::Append("a".into())),
            ("alert(\"a)\")", Script::Ask { kind: "alert", text: "a)".into() }),
            ("confirm(\"a\")", Script::Ask { kind: "confirm", text: "a".into() }),
            ("prompt(\"a\")", Script::Ask { kind: "prompt", text: "a".into() }),
            ("crash()", Script::Crash),
            ("window.close()", Script::Close),
            ("\"ab\".repeat(3)", Script::Literal("ababab".into())),
        ];
        for (source, script) in cases {
            assert_eq!(Script::parse(source).unwrap(), script, "{source}");
        }
    }

    #[test]
    fn anything_else_says_what_is_understood() {
        for source in ["document.querySelector('a')", "alert(1)", "sleep(-1)", "log(\"a\", \"b\")", ""] {
            let error = Script::parse(source).unwrap_err().to_string();
            assert!(error.contains(&format!("{source:?}")) && error.contains("sleep(MS)"), "{error}");
        }
    }

    #[test]
    fn a_string_beyond_the_bound_is_refused() {
        assert!(Script::parse("\"x\".repeat(16777216)").is_ok());
        for source in ["\"x\".repeat(16777217)", "\"xx\".repeat(18446744073709551615)"] {
            assert!(Script::parse(source).unwrap_err().to_string().contains("Invalid string length"));
        }
    }
}
