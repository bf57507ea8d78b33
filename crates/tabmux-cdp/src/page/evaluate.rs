//! Runs a script in the page. People and models write expressions, statements, `return …`, top-level `await` and
//! functions; all of them work. A script that was refused by the parser ran nothing, so it can be tried in another shape.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::{DriverError, Result};

use super::value::{self, Written};
use super::{CdpPage, console};
use crate::protocol::runtime::{CallArgument, CallFunctionOn, Evaluate, EvaluateReply, ExceptionDetails, ReleaseObject, RemoteObject};
use crate::{CdpError, lenient};

/// A longer answer is not read: nobody is told so much at once, and reading it would hold others up.
const MAX_ANSWER: usize = 8 << 20;

const ENDED: &str = "it was ended while it ran, because it logged without end or kept the page from answering others; what it did before that has \
                     happened, and console may say more";

/// How a script is given to the parser.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Shape<'a> {
    text: Cow<'a, str>,
    /// As in the browser's console: `await` may stand anywhere. Its last value is not awaited, and what is thrown has no stack.
    console: bool,
}

impl CdpPage {
    pub(super) async fn run(&self, script: &str) -> Result<Value> {
        let mut progress = self.state.watch();
        let before = progress.borrow_and_update().commits;
        let given = self.given(script).await;
        if given == Err(DriverError::Navigated) {
            // The old document's end is told before the new one.
            self.until(&mut progress, |now| now.commits > before).await?;
        }
        given
    }

    async fn given(&self, script: &str) -> Result<Value> {
        let mut shape = Shape { text: script.into(), console: false };
        loop {
            let EvaluateReply { result, exception_details } = self.evaluated(&shape).await?;
            match exception_details {
                None => match declared(script).filter(|_| result.kind == "undefined") {
                    Some(name) => return self.declared(script, name).await,
                    None => return self.value(script, result).await,
                },
                Some(details) => match refusal(&details).and_then(|complaint| shape.other(script, complaint)) {
                    Some(other) => shape = other,
                    None => return Err(thrown(&details)),
                },
            }
        }
    }

    async fn evaluated(&self, shape: &Shape<'_>) -> Result<EvaluateReply> {
        let evaluate = Evaluate {
            expression: shape.text.clone().into_owned(),
            serialization_options: Some(value::with_types()),
            await_promise: Some(true),
            user_gesture: Some(true),
            repl_mode: shape.console.then_some(true),
            ..Evaluate::default()
        };
        self.call_within(&evaluate, MAX_ANSWER).await.map_err(failed)
    }

    /// A function with a name gives nothing by itself; one that is the whole script was meant to be called.
    async fn declared(&self, script: &str, name: &str) -> Result<Value> {
        let EvaluateReply { result, .. } = self.evaluated(&Shape { text: name.into(), console: false }).await?;
        let whole = result.kind == "function" && is_function(script, result.description.as_deref().unwrap_or_default());
        if whole {
            return self.value(script, result).await;
        }
        self.let_go(&result);
        Ok(Value::Null)
    }

    /// An expression of ours, which gives plain data.
    pub(super) async fn plain_value(&self, expression: String) -> Result<Value> {
        let reply = self.call(&Evaluate { expression, return_by_value: Some(true), ..Evaluate::default() }).await.map_err(failed)?;
        match reply.exception_details {
            Some(details) => Err(DriverError::ScriptFailed(console::thrown(&details))),
            None => Ok(reply.result.value.unwrap_or_default()),
        }
    }

    async fn value(&self, script: &str, mut given: RemoteObject) -> Result<Value> {
        let Some(object) = &given.object_id else {
            // `NaN`, `-0` and big integers have no JSON; their text is better than nothing.
            return Ok(given.unserializable_value.take().map(Value::String).or(given.value).unwrap_or_default());
        };
        let plain = given.deep_serialized_value.take().and_then(|deep| value::plain(&deep.kind, deep.value));
        let told = match (given.kind.as_str(), plain) {
            ("function", _) if !is_function(script, given.description.as_deref().unwrap_or_default()) => Ok(json!({})),
            ("function", _) => self.written_by_page(object, true).await,
            (_, Some(plain)) => Ok(plain),
            (_, None) => self.written_by_page(object, false).await,
        };
        self.let_go(&given);
        told
    }

    /// What is no plain value, as the page writes it; of a function, what it gives.
    async fn written_by_page(&self, object: &str, call: bool) -> Result<Value> {
        let argument = |value: Value| CallArgument { value: Some(value), ..CallArgument::default() };
        let write = CallFunctionOn {
            function_declaration: value::WRITE.to_owned(),
            arguments: Some(vec![argument(call.into()), argument(value::MAX_JSON.into())]),
            object_id: Some(object.to_owned()),
            return_by_value: Some(true),
            await_promise: Some(true),
            user_gesture: Some(true),
            ..CallFunctionOn::default()
        };
        let reply = self.call(&write).await.map_err(failed)?;
        if let Some(details) = reply.exception_details {
            return Err(thrown(&details));
        }
        match reply.result.value.map(Written::deserialize) {
            Some(Ok(Written::Json(json))) => lenient::read(json.as_bytes()).map_err(|_| unwritable("it is nested too deeply")),
            Some(Ok(Written::Length(length))) => Err(too_long(length)),
            Some(Ok(Written::Problem(why))) => Err(unwritable(&why)),
            // The page has meddled with what it was asked.
            _ => Err(unwritable("the page says nothing of it")),
        }
    }

    /// Nobody waits for it.
    fn let_go(&self, given: &RemoteObject) {
        if let Some(object_id) = given.object_id.clone() {
            drop(self.connection.send(Some(&self.session), &ReleaseObject { object_id }));
        }
    }
}

fn failed(error: CdpError) -> DriverError {
    match error {
        CdpError::Refused { message, .. } if message.contains("reference chain") => unwritable("it has no end"),
        CdpError::Refused { message, .. } if message.contains("stack limit") => unwritable("it is nested too deeply"),
        // 148 crashes the page instead.
        CdpError::Refused { message, .. } if message.contains("deep serialization") => unwritable("one of its getters throws"),
        CdpError::Refused { message, .. } if message.contains("navigated or closed") || message.contains("context") => {
            DriverError::Navigated
        }
        // All that Chromium says of a script that was ended while it ran.
        CdpError::Refused { message, .. } if message == "Internal error" => DriverError::ScriptFailed(ENDED.to_owned()),
        CdpError::Refused { message, .. } => DriverError::ScriptFailed(message),
        CdpError::TooLong { bytes, .. } => too_long(bytes as u64),
        other => other.into(),
    }
}

fn unwritable(why: &str) -> DriverError {
    let why = why.lines().next().unwrap_or_default();
    DriverError::ScriptFailed(format!("its value cannot be written as JSON ({why}); return plain data"))
}

fn too_long(bytes: u64) -> DriverError {
    DriverError::ScriptFailed(format!("its value is too long to be read ({} MB); return less of it", bytes.div_ceil(1_000_000)))
}

/// What was thrown and where, in one line, without our own part in it.
fn thrown(details: &ExceptionDetails) -> DriverError {
    let text = console::thrown(details);
    let theirs: Vec<_> = text.lines().filter(|line| !line.contains(value::WRITER)).map(str::trim).collect();
    DriverError::ScriptFailed(theirs.join(" "))
}

/// What the parser said against a script. What a running script throws has a stack, or in a promise no script.
fn refusal(details: &ExceptionDetails) -> Option<&str> {
    let refused = details.stack_trace.is_none() && details.script_id.is_some();
    details.exception.as_ref().filter(|_| refused)?.description.as_deref()
}

impl<'a> Shape<'a> {
    /// The same script in another shape, which the parser may take.
    fn other(&self, script: &'a str, complaint: &str) -> Option<Self> {
        let says = |what| complaint.contains(what);
        let other = |text: String, console| Some(Self { text: text.into(), console });
        // Once in another text is enough.
        let first = self.text == script;
        if first && says("Illegal return") {
            other(format!("(async () => {{ {script}\n}})()"), false)
        } else if first && says("already been declared") {
            other(format!("{{ {script}\n}}"), self.console)
        } else if first && says("require a function name") {
            other(format!("({script}\n)"), false)
        } else if !self.console && script.contains("await") {
            Some(Self { console: true, ..self.clone() })
        } else {
            None
        }
    }
}

/// Whether a script is this function and nothing else, so that it was meant to be called. What only ends with a function
/// (`a = b; c = () => 1`) or gives one (`store.subscribe(…)`) was not.
fn is_function(script: &str, source: &str) -> bool {
    let mut rest = past(script, &[]);
    loop {
        if rest.strip_prefix(source).is_some_and(|rest| past(rest, &[')', ';']).is_empty()) {
            return true;
        }
        let Some(inner) = rest.strip_prefix('(') else { return false };
        rest = past(inner, &[]);
    }
}

/// The name of the function that a script begins by declaring.
fn declared(script: &str) -> Option<&str> {
    let rest = past(script, &[]);
    let rest = rest.strip_prefix("async ").map_or(rest, |rest| past(rest, &[])).strip_prefix("function ")?;
    let name = past(rest, &[]);
    let name = &name[..name.find(|next: char| !(next.is_alphanumeric() || next == '_' || next == '$'))?];
    (!name.is_empty()).then_some(name)
}

/// What follows white space, comments and these.
fn past<'a>(mut text: &'a str, these: &[char]) -> &'a str {
    loop {
        text = text.trim_start_matches(|next: char| next.is_whitespace() || these.contains(&next));
        text = match text.get(..2) {
            Some("//") => text.split_once('\n').map_or("", |(_, rest)| rest),
            Some("/*") => text.split_once("*/").map_or("", |(_, rest)| rest),
            _ => return text,
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_with_a_name_is_known_by_it() {
        for script in ["function f() {}", "// why\nasync  function f(a, b) {}", "async function /* so */ f () {} f()"] {
            assert_eq!(declared(script), Some("f"), "{script}");
        }
        for script in ["function () {}", "functional()", "x = function f() {}", "function* f() {}", "() => 1", ""] {
            assert_eq!(declared(script), None, "{script}");
        }
    }

    #[test]
    fn a_script_that_is_a_function_is_told_from_one_that_gives_one() {
        for script in ["() => 1", " (() => 1);\n", "// why\n() => 1 // so", "/* a */ ( () => 1 /* b */ ) ;"] {
            assert!(is_function(script, "() => 1"), "{script}");
        }
        for script in ["a = () => 1", "a; () => 1", "() => 1, 2", "subscribe(() => 1)", "(() => () => 1)()", "é"] {
            assert!(!is_function(script, "() => 1"), "{script}");
        }
    }
}
