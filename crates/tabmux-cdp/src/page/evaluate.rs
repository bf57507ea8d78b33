//! Runs a script in the page. People and models write expressions, statements, `return …`, top-level `await` and
//! functions; all of them work. A script that was refused by the parser ran nothing, so it can be tried in another shape.

use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::{DriverError, Result};

use super::value::{self, Written};
use super::{CdpPage, console};
use crate::protocol::runtime::{CallArgument, CallFunctionOn, Evaluate, EvaluateReply, ExceptionDetails, ReleaseObject, RemoteObject};
use crate::{CdpError, lenient};

/// A longer answer is not read: nobody is told so much at once, and reading it would hold others up.
const MAX_ANSWER: usize = 8 << 20;

impl CdpPage {
    pub(super) async fn run(&self, script: &str) -> Result<Value> {
        let reply = self.evaluate_once(script).await?;
        let again = match &reply.exception_details {
            None if reply.result.kind == "function" => return self.call_function(script, reply).await,
            None => None,
            Some(details) => reshaped(script, details),
        };
        match again {
            Some(script) => self.value(self.evaluate_once(&script).await?).await,
            None => self.value(reply).await,
        }
    }

    /// A script that is a function was meant to be called; one that only ends with one (`a = b; c = () => 1`) was not.
    async fn call_function(&self, script: &str, function: EvaluateReply) -> Result<Value> {
        self.let_go(&function.result);
        let called = self.evaluate_once(&format!("({script}\n)()")).await?;
        let refused = called.exception_details.as_ref().is_some_and(|details| details.stack_trace.is_none());
        if refused { Ok(json!({})) } else { self.value(called).await }
    }

    async fn evaluate_once(&self, script: &str) -> Result<EvaluateReply> {
        let evaluate =
            Evaluate { expression: script.to_owned(), await_promise: Some(true), user_gesture: Some(true), ..Evaluate::default() };
        self.call_within(&evaluate, MAX_ANSWER).await.map_err(failed)
    }

    /// An expression of ours, which gives plain data.
    pub(super) async fn plain_value(&self, expression: String) -> Result<Value> {
        let reply = self.call(&Evaluate { expression, return_by_value: Some(true), ..Evaluate::default() }).await.map_err(failed)?;
        match reply.exception_details {
            Some(details) => Err(DriverError::ScriptFailed(console::thrown(&details))),
            None => Ok(reply.result.value.unwrap_or_default()),
        }
    }

    async fn value(&self, reply: EvaluateReply) -> Result<Value> {
        if let Some(details) = reply.exception_details {
            return Err(DriverError::ScriptFailed(console::thrown(&details)));
        }
        let mut given = reply.result;
        match &given.object_id {
            Some(object) => {
                let told = self.written_by_page(object).await;
                self.let_go(&given);
                told
            }
            // `NaN`, `-0` and big integers have no JSON; their text is better than nothing.
            None => Ok(given.unserializable_value.take().map(Value::String).or(given.value).unwrap_or_default()),
        }
    }

    /// What is no plain value, as the page writes it.
    async fn written_by_page(&self, object: &str) -> Result<Value> {
        let argument = |value: Value| CallArgument { value: Some(value), ..CallArgument::default() };
        let write = CallFunctionOn {
            function_declaration: value::WRITE.to_owned(),
            arguments: Some(vec![argument(false.into()), argument(value::MAX_JSON.into())]),
            object_id: Some(object.to_owned()),
            return_by_value: Some(true),
            await_promise: Some(true),
            ..CallFunctionOn::default()
        };
        let reply = self.call(&write).await.map_err(failed)?;
        if let Some(details) = reply.exception_details {
            return Err(DriverError::ScriptFailed(console::thrown(&details)));
        }
        match reply.result.value.map(Written::deserialize) {
            Some(Ok(Written::Json(json))) => lenient::read(json.as_bytes()).map_err(|error| unwritable(&error.to_string())),
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
        CdpError::Refused { message, .. } if message.contains("navigated or closed") || message.contains("context") => {
            DriverError::ScriptFailed("the page was navigated while the script ran".into())
        }
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

/// The same script in a shape the parser takes, when it was the parser that refused it.
fn reshaped(script: &str, details: &ExceptionDetails) -> Option<String> {
    // What a running script throws has a stack; what the parser says has none.
    if details.stack_trace.is_some() {
        return None;
    }
    let complaint = details.exception.as_ref()?.description.as_deref()?;
    if complaint.contains("Illegal return") || complaint.contains("await is only valid") {
        // An expression with `await` still gives its value.
        let body = if complaint.contains("await") && !script.contains("return") && !script.contains(';') {
            format!("return ({script}\n)")
        } else {
            script.to_owned()
        };
        return Some(format!("(async () => {{ {body}\n}})()"));
    }
    complaint.contains("already been declared").then(|| format!("{{ {script}\n}}"))
}
