//! Calls the page script: one round trip for each call, since the first one in a document carries the script along.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tabmux_driver::{DriverError, SCRIPT};

use super::CdpPage;
use super::frames::World;
use super::world::Failure;

/// Which numbers are free for new refs: every `step`th from `first`. Frames that are asked at the same time take turns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbers {
    pub(super) first: u32,
    pub(super) step: u32,
}

/// What `door.js` answers.
#[derive(Deserialize)]
struct Answer {
    #[serde(default)]
    value: Value,
    next: u32,
    /// Of the page, where its main frame answered.
    title: Option<String>,
}

impl CdpPage {
    /// Calls a verb of the page script in the main frame.
    pub(super) async fn script<T: DeserializeOwned>(&self, verb: &str, argument: &impl Serialize) -> std::result::Result<T, Failure> {
        self.script_in(&self.handle.0, verb, argument).await
    }

    /// The frame whose ref this is.
    pub(super) fn frame_of_ref(&self, number: u32) -> String {
        self.state.frames().frame_of(number).unwrap_or_else(|| self.handle.0.clone())
    }

    /// The same in any frame, by Chromium's name of it.
    pub(super) async fn script_in<T: DeserializeOwned>(
        &self,
        frame: &str,
        verb: &str,
        argument: &impl Serialize,
    ) -> std::result::Result<T, Failure> {
        let numbers = Numbers { first: self.state.frames().next_ref(), step: 1 };
        self.script_numbered(frame, verb, argument, numbers).await
    }

    pub(super) async fn script_numbered<T: DeserializeOwned>(
        &self,
        frame: &str,
        verb: &str,
        argument: &impl Serialize,
        numbers: Numbers,
    ) -> std::result::Result<T, Failure> {
        let argument = serde_json::to_value(argument).expect("what is asked of a page is plain data");
        let arguments = [verb.into(), argument, numbers.first.into(), numbers.step.into()];
        let (world, value) = self.call_in_frame(frame, |world| function(world, "call"), &arguments).await?;
        self.answered(frame, &world, numbers, value)
    }

    /// What the door answered in a world.
    pub(super) fn answered<T: DeserializeOwned>(
        &self,
        frame: &str,
        world: &World,
        numbers: Numbers,
        answer: Value,
    ) -> std::result::Result<T, Failure> {
        let Answer { value, next, title } = read(answer)?;
        let mut frames = self.state.frames();
        // A document that is gone by now says nothing of the one that is there.
        if frames.is_ready(frame, world)
            && let Some(title) = title
        {
            self.state.has_title(title);
        }
        frames.numbered(&self.handle.0, frame, numbers.first, next, numbers.step);
        read(value)
    }
}

/// What goes through a door of the script; the first time it carries the script along.
pub(super) fn function(world: &World, door: &str) -> Cow<'static, str> {
    let script = if world.ready { "" } else { SCRIPT };
    format!("function (...call) {{ {script}; return tabmux.{door}(...call); }}").into()
}

/// The script and this room are of one build, so another shape is a defect of ours.
pub(super) fn read<T: DeserializeOwned>(value: Value) -> std::result::Result<T, Failure> {
    serde_json::from_value(value).map_err(|error| Failure::Threw(format!("the page script answered in another shape: {error}")))
}

/// A failure that the verb itself has no better words for.
pub(super) fn failed(failure: Failure) -> DriverError {
    match failure {
        Failure::Threw(text) => DriverError::ScriptFailed(text),
        Failure::NoDocument | Failure::Cut => DriverError::Navigated,
        Failure::Other(error) => error.into(),
    }
}
