//! Runs a script in the page. People and models write expressions, statements, `return …`, top-level `await` and
//! functions; all of them work. A script that was refused by the parser ran nothing, so it can be tried in another shape.

use serde_json::Value;
use tabmux_driver::{DriverError, Result};

use super::{CdpPage, console};
use crate::CdpError;
use crate::protocol::runtime::{Evaluate, EvaluateReply, ExceptionDetails};

impl CdpPage {
    pub(super) async fn run(&self, script: &str) -> Result<Value> {
        let reply = self.evaluate_once(script).await?;
        let again = match &reply.exception_details {
            None if reply.result.kind == "function" => return self.call_function(script, reply).await,
            None => None,
            Some(details) => reshaped(script, details),
        };
        match again {
            Some(script) => value(self.evaluate_once(&script).await?),
            None => value(reply),
        }
    }

    /// A script that is a function was meant to be called; one that only ends with one (`a = b; c = () => 1`) was not.
    async fn call_function(&self, script: &str, function: EvaluateReply) -> Result<Value> {
        let called = self.evaluate_once(&format!("({script}\n)()")).await?;
        let refused = called.exception_details.as_ref().is_some_and(|details| details.stack_trace.is_none());
        value(if refused { function } else { called })
    }

    async fn evaluate_once(&self, script: &str) -> Result<EvaluateReply> {
        let evaluate = Evaluate {
            expression: script.to_owned(),
            return_by_value: Some(true),
            await_promise: Some(true),
            user_gesture: Some(true),
            ..Evaluate::default()
        };
        self.call(&evaluate).await.map_err(|error| match error {
            CdpError::Refused { message, .. } if message.contains("reference chain") => {
                DriverError::ScriptFailed("its value cannot be written as JSON; return plain data".into())
            }
            CdpError::Refused { message, .. } if message.contains("navigated or closed") || message.contains("context") => {
                DriverError::ScriptFailed("the page was navigated while the script ran".into())
            }
            CdpError::Refused { message, .. } => DriverError::ScriptFailed(message),
            other => other.into(),
        })
    }
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

fn value(reply: EvaluateReply) -> Result<Value> {
    if let Some(details) = reply.exception_details {
        return Err(DriverError::ScriptFailed(console::thrown(&details)));
    }
    // `NaN`, `-0` and big integers have no JSON; their text is better than nothing.
    let other = reply.result.unserializable_value.map(Value::String);
    Ok(reply.result.value.or(other).unwrap_or(Value::Null))
}
