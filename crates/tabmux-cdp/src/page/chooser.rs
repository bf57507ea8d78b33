//! Files for a page: for the chooser it opened, of which no window is ever shown, or for an input of its own.

use std::path::PathBuf;

use serde_json::Value;
use tabmux_driver::{Chooser, DriverError, Result};

use super::CdpPage;
use crate::CdpError;
use crate::protocol::dom::SetFileInputFiles;
use crate::protocol::page::FileChooserOpened;
use crate::protocol::runtime::{Evaluate, ReleaseObject};

/// An input that waits for files.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenChooser {
    node: i64,
    pub(super) chooser: Chooser,
}

impl OpenChooser {
    /// One without an input cannot be answered; the page was told that it was cancelled.
    pub(super) fn of(event: &FileChooserOpened) -> Option<Self> {
        let chooser = if event.mode == "selectMultiple" { Chooser::Many } else { Chooser::One };
        Some(Self { node: event.backend_node_id?, chooser })
    }
}

impl CdpPage {
    pub(super) async fn give(&self, files: &[PathBuf], selector: Option<&str>) -> Result<()> {
        let names = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
        match selector {
            Some(selector) => self.give_input(names, selector).await,
            None => {
                let open = self.state.chooser().ok_or(DriverError::NoChooser)?;
                if open.chooser == Chooser::One && files.len() > 1 {
                    return Err(DriverError::FilesRefused("The file chooser takes one file.".into()));
                }
                self.set_files(SetFileInputFiles { files: names, backend_node_id: Some(open.node), ..SetFileInputFiles::default() })
                    .await?;
                self.state.chooser_answered();
                Ok(())
            }
        }
    }

    async fn give_input(&self, files: Vec<String>, selector: &str) -> Result<()> {
        let quoted = Value::from(selector);
        let script = format!(
            "(() => {{ const found = document.querySelector({quoted}); \
             if (found && found.type === 'file' && !found.multiple && {} > 1) throw new Error('It takes one file.'); return found; }})()",
            files.len()
        );
        let reply = self.call(&Evaluate { expression: script, ..Evaluate::default() }).await?;
        if let Some(thrown) = reply.exception_details {
            let text = super::console::thrown(&thrown);
            let one = text.contains("It takes one file.");
            return Err(if one {
                DriverError::FilesRefused("The input takes one file.".into())
            } else {
                DriverError::ElementNotFound(selector.to_owned())
            });
        }
        let Some(object_id) = reply.result.object_id else { return Err(DriverError::ElementNotFound(selector.to_owned())) };
        let given = self.set_files(SetFileInputFiles { files, object_id: Some(object_id.clone()), ..SetFileInputFiles::default() }).await;
        drop(self.connection.send(Some(&self.session), &ReleaseObject { object_id }));
        given
    }

    async fn set_files(&self, command: SetFileInputFiles) -> Result<()> {
        match self.call(&command).await {
            Ok(_) => Ok(()),
            Err(CdpError::Refused { message, .. }) => {
                Err(DriverError::FilesRefused(format!("The page does not take files there: {message}.")))
            }
            Err(other) => Err(other.into()),
        }
    }
}
