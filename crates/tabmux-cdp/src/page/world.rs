//! Runs our own functions in the page, in a world of their own: they see the same document, but nothing the page's scripts
//! changed in the language or in the document's methods, and the page cannot see them.

use std::borrow::Cow;

use serde_json::Value;

use super::frames::{WORLD, World};
use super::{CdpPage, act, console, own_world};
use crate::CdpError;
use crate::protocol::page::CreateIsolatedWorld;
use crate::protocol::runtime::{CallArgument, CallFunctionOn, CallFunctionOnReply};

/// How often a page may go elsewhere just before a call reaches its document.
const ATTEMPTS: usize = 5;

/// Why a function gave no value.
#[derive(Debug)]
pub(super) enum Failure {
    /// What it threw.
    Threw(String),
    /// Its document is gone, or not there yet: it did not run.
    NoDocument,
    /// Its document went while it ran.
    Cut,
    Other(CdpError),
}

impl CdpPage {
    /// The world of the document that the main frame shows now.
    pub(super) async fn world(&self) -> Result<World, Failure> {
        self.world_of(&self.handle.0).await
    }

    /// Gives all frames of the page worlds of ours, those that are there and those to come. Not before somebody needs them: a
    /// page that is only visited, pictured and run scripts in saves half a megabyte. The worlds are heard of before the answer.
    pub(super) async fn awake(&self) -> Result<(), CdpError> {
        let wake = || async {
            drop(self.connection.send(Some(&self.session), &act::listen()));
            match self.call(&own_world()).await {
                Err(CdpError::Refused { .. }) | Ok(_) => Ok(()),
                Err(other) => Err(other),
            }
        };
        self.awake.get_or_try_init(wake).await.copied()
    }

    /// Known from events, but for pages that another daemon left: those are asked once for each document.
    pub(super) async fn world_of(&self, frame: &str) -> Result<World, Failure> {
        self.awake().await?;
        if let Some(world) = self.state.frames().world(frame) {
            return Ok(world);
        }
        let create =
            CreateIsolatedWorld { frame_id: frame.to_owned(), world_name: Some(WORLD.to_owned()), ..CreateIsolatedWorld::default() };
        let context = self.call(&create).await.map_err(Failure::from)?.execution_context_id;
        let mut frames = self.state.frames();
        frames.made(frame.to_owned(), &self.session, context, String::new());
        frames.world(frame).ok_or(Failure::NoDocument)
    }

    /// Calls a function in the document that the frame shows now, and says in which world that was.
    pub(super) async fn call_in_frame(
        &self,
        frame: &str,
        function: impl Fn(&World) -> Cow<'static, str>,
        arguments: &[Value],
    ) -> Result<(World, Value), Failure> {
        let (world, reply) = self.reply_in_frame(frame, |world| call(world, &function(world), arguments)).await?;
        Ok((world, value(reply)?))
    }

    pub(super) async fn reply_in_frame(
        &self,
        frame: &str,
        command: impl Fn(&World) -> CallFunctionOn,
    ) -> Result<(World, CallFunctionOnReply), Failure> {
        for _ in 0..ATTEMPTS {
            let world = self.world_of(frame).await?;
            match self.call_in(&world.session, &command(&world)).await.map_err(Failure::from) {
                // It is a former document's; the next one's is known, or asked for.
                Err(Failure::NoDocument) => self.state.frames().forget(frame, &world),
                other => return other.map(|reply| (world, reply)),
            }
        }
        Err(Failure::NoDocument)
    }

    /// Calls a function and waits for its value, and for that of the promise it returns.
    pub(super) async fn call_in_world(&self, world: &World, function: &str, arguments: &[Value]) -> Result<Value, Failure> {
        value(self.call_in(&world.session, &call(world, function, arguments)).await?)
    }

    /// Calls a function of which nobody wants to know what became of it.
    pub(super) fn tell_world(&self, world: &World, function: &str, arguments: &[Value]) {
        drop(self.connection.send(Some(&world.session), &call(world, function, arguments)));
    }
}

fn value(reply: CallFunctionOnReply) -> Result<Value, Failure> {
    match reply.exception_details {
        Some(details) => Err(Failure::Threw(console::thrown(&details))),
        None => Ok(reply.result.value.unwrap_or_default()),
    }
}

pub(super) fn call(world: &World, function: &str, arguments: &[Value]) -> CallFunctionOn {
    let argument = |value: &Value| CallArgument { value: Some(value.clone()), ..CallArgument::default() };
    CallFunctionOn {
        function_declaration: function.to_owned(),
        arguments: Some(arguments.iter().map(argument).collect()),
        execution_context_id: Some(world.context),
        return_by_value: Some(true),
        await_promise: Some(true),
        ..CallFunctionOn::default()
    }
}

impl From<CdpError> for Failure {
    fn from(error: CdpError) -> Self {
        match error {
            // Chromium refuses these two commands only for a document that is going or not there; with these words, before
            // anything ran.
            CdpError::Refused { message, .. } if ["Cannot find", "No frame"].iter().any(|words| message.contains(words)) => {
                Self::NoDocument
            }
            CdpError::Refused { .. } => Self::Cut,
            other => Self::Other(other),
        }
    }
}
