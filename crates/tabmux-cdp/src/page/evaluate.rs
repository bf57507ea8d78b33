//! Runs a script in the page. People and models write expressions, statements, `return …`, top-level `await` and
//! functions; all of them work. A script that was refused by the parser ran nothing, so it can be tried in another shape.

use serde_json::{Value, json};
use tabmux_driver::{DriverError, Result};

use super::{CdpPage, console, value};
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
        let evaluate = Evaluate {
            expression: script.to_owned(),
            serialization_options: Some(value::with_types()),
            await_promise: Some(true),
            user_gesture: Some(true),
            ..Evaluate::default()
        };
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
        // `NaN`, `-0` and big integers have no JSON; their text is better than nothing.
        if let Some(text) = given.unserializable_value {
            return Ok(Value::String(text));
        }
        let plain = given.deep_serialized_value.take().and_then(|deep| value::plain(&deep.kind, deep.value));
        let told = match (plain, &given.object_id) {
            (Some(plain), _) => Ok(plain),
            (None, Some(object)) => self.written_by_page(object).await,
            (None, None) => Ok(given.value.take().unwrap_or_default()),
        };
        self.let_go(&given);
        told
    }

    /// What has a form of its own, as the page writes it.
    async fn written_by_page(&self, object: &str) -> Result<Value> {
        let write = CallFunctionOn {
            function_declaration: value::WRITE.to_owned(),
            arguments: Some(vec![CallArgument { value: Some(value::MAX_JSON.into()), ..CallArgument::default() }]),
            object_id: Some(object.to_owned()),
            return_by_value: Some(true),
            ..CallFunctionOn::default()
        };
        let reply = self.call(&write).await.map_err(failed)?;
        if let Some(details) = reply.exception_details {
            let thrown = console::thrown(&details);
            let why = thrown.lines().next().unwrap_or_default();
            return Err(DriverError::ScriptFailed(format!("its value cannot be written as JSON ({why}); return plain data")));
        }
        match reply.result.value {
            Some(Value::String(json)) => lenient::read(json.as_bytes()).map_err(|error| DriverError::ScriptFailed(error.to_string())),
            length => Err(too_long(length.and_then(|length| length.as_u64()).unwrap_or_default())),
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
        CdpError::Refused { message, .. } if message.contains("reference chain") => {
            DriverError::ScriptFailed("its value cannot be written as JSON; return plain data".into())
        }
        CdpError::Refused { message, .. } if message.contains("navigated or closed") || message.contains("context") => {
            DriverError::ScriptFailed("the page was navigated while the script ran".into())
        }
        CdpError::Refused { message, .. } => DriverError::ScriptFailed(message),
        CdpError::TooLong { bytes, .. } => too_long(bytes as u64),
        other => other.into(),
    }
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
