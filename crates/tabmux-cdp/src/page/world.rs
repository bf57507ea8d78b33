//! Runs our own functions in the page, in a world of their own: they see the same document, but nothing the page's scripts
//! changed in the language or in the document's methods, and the page cannot see them.

use serde_json::Value;

use super::{CdpPage, console};
use crate::CdpError;
use crate::protocol::page::CreateIsolatedWorld;
use crate::protocol::runtime::{CallArgument, CallFunctionOn};

/// One document's world. It ends with the document.
#[derive(Clone, Copy, Debug)]
pub(super) struct World(i64);

/// Why a function gave no value.
#[derive(Debug)]
pub(super) enum Failure {
    /// What it threw.
    Threw(String),
    /// Its document is gone, or not there yet.
    NoDocument,
    Other(CdpError),
}

impl CdpPage {
    /// The world of the document that is there now; the same one each time.
    pub(super) async fn world(&self) -> Result<World, Failure> {
        let create = CreateIsolatedWorld {
            frame_id: self.handle.0.clone(),
            world_name: Some("tabmux".to_owned()),
            ..CreateIsolatedWorld::default()
        };
        self.call(&create).await.map(|made| World(made.execution_context_id)).map_err(Failure::from)
    }

    /// Calls a function and waits for its value, and for that of the promise it returns.
    pub(super) async fn call_in_world(&self, world: World, function: &str, arguments: &[Value]) -> Result<Value, Failure> {
        let reply = self.call(&call(world, function, arguments)).await.map_err(Failure::from)?;
        match reply.exception_details {
            Some(details) => Err(Failure::Threw(console::thrown(&details))),
            None => Ok(reply.result.value.unwrap_or_default()),
        }
    }

    /// Calls a function of which nobody wants to know what became of it.
    pub(super) fn tell_world(&self, world: World, function: &str, arguments: &[Value]) {
        drop(self.connection.send(Some(&self.session), &call(world, function, arguments)));
    }
}

fn call(World(context): World, function: &str, arguments: &[Value]) -> CallFunctionOn {
    let argument = |value: &Value| CallArgument { value: Some(value.clone()), ..CallArgument::default() };
    CallFunctionOn {
        function_declaration: function.to_owned(),
        arguments: Some(arguments.iter().map(argument).collect()),
        execution_context_id: Some(context),
        return_by_value: Some(true),
        await_promise: Some(true),
        ..CallFunctionOn::default()
    }
}

impl From<CdpError> for Failure {
    fn from(error: CdpError) -> Self {
        match error {
            // Chromium refuses these two commands only for a document that is going or not there.
            CdpError::Refused { .. } => Self::NoDocument,
            other => Self::Other(other),
        }
    }
}
