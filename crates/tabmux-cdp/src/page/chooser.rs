//! Files for a page: for the chooser it opened, of which no window is ever shown, or for an input of its own.

use std::path::PathBuf;

use tabmux_driver::{Chooser, DriverError, Result, Selector};

use super::CdpPage;
use super::script::failed;
use crate::CdpError;
use crate::protocol::dom::{ResolveNode, SetFileInputFiles};
use crate::protocol::page::FileChooserOpened;
use crate::protocol::runtime::{CallFunctionOn, ReleaseObject};

/// An input that waits for files.
#[derive(Clone, Debug)]
pub(super) struct OpenChooser {
    /// The session that told of it, where alone the number of its node means it.
    pub(super) session: String,
    frame: String,
    node: i64,
    pub(super) chooser: Chooser,
}

impl OpenChooser {
    /// One without an input cannot be answered; the page was told that it was cancelled.
    pub(super) fn of(session: &str, event: FileChooserOpened) -> Option<Self> {
        let chooser = if event.mode == "selectMultiple" { Chooser::Many } else { Chooser::One };
        Some(Self { session: session.to_owned(), frame: event.frame_id, node: event.backend_node_id?, chooser })
    }
}

impl CdpPage {
    /// What is to be said of what the page did with them.
    pub(super) async fn give(&self, files: &[PathBuf], selector: Option<&Selector>) -> Result<Option<String>> {
        let names = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        match selector {
            Some(selector) => self.give_input(names, selector).await,
            None => {
                let open = self.state.chooser().ok_or(DriverError::NoChooser)?;
                if open.chooser == Chooser::One && files.len() > 1 {
                    return Err(DriverError::FilesRefused("The file chooser takes one file.".into()));
                }
                let command = SetFileInputFiles { files: names, backend_node_id: Some(open.node), ..SetFileInputFiles::default() };
                self.set_files(&open.session, command).await?;
                self.state.chooser_answered();
                Ok(self.kept(&open).await)
            }
        }
    }

    /// What the input of a chooser has now, where it can be asked.
    async fn kept(&self, open: &OpenChooser) -> Option<String> {
        let world = self.state.frames().world(&open.frame).filter(|world| world.session == open.session)?;
        let resolve = ResolveNode { backend_node_id: Some(open.node), execution_context_id: Some(world.context), ..ResolveNode::default() };
        let object_id = self.call_in(&world.session, &resolve).await.ok()?.object.object_id?;
        let asked = CallFunctionOn {
            // The page hears of its files before anything else is asked of it.
            function_declaration: "function () { return this.isConnected && this.files.length > 0; }".into(),
            object_id: Some(object_id.clone()),
            return_by_value: Some(true),
            ..CallFunctionOn::default()
        };
        let answer = self.call_in(&world.session, &asked).await.ok()?.result.value;
        drop(self.connection.send(Some(&world.session), &ReleaseObject { object_id }));
        (answer == Some(false.into())).then(|| "The page emptied the input again, or took it away.".to_owned())
    }

    async fn give_input(&self, files: Vec<String>, selector: &Selector) -> Result<Option<String>> {
        let input = self.input_frame(selector, files.len()).await?;
        let world = self.state.frames().world(&input.frame).ok_or(DriverError::Navigated)?;
        let held = CallFunctionOn {
            function_declaration: "function () { return tabmux.field(); }".into(),
            execution_context_id: Some(world.context),
            ..CallFunctionOn::default()
        };
        let held = self.call_in(&world.session, &held).await.map_err(|error| failed(error.into()))?;
        let object_id = held.result.object_id.ok_or(DriverError::Navigated)?;
        let command = SetFileInputFiles { files, object_id: Some(object_id.clone()), ..SetFileInputFiles::default() };
        let given = self.set_files(&world.session, command).await;
        drop(self.connection.send(Some(&world.session), &ReleaseObject { object_id }));
        given?;
        self.received(&input).await
    }

    async fn set_files(&self, session: &str, command: SetFileInputFiles) -> Result<()> {
        match self.call_in(session, &command).await {
            Ok(_) => Ok(()),
            Err(CdpError::Refused { message, .. }) => {
                Err(DriverError::FilesRefused(format!("The page does not take files there: {message}.")))
            }
            Err(other) => Err(other.into()),
        }
    }
}
