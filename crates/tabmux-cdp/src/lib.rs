//! Speaks CDP to Chromium: finds and launches it, keeps its pipe over the daemon's death, and turns the driver's verbs
//! into protocol messages. Session and tool names are deliberately absent: this room knows contexts, targets and pages.

mod browser;
pub mod connection;
mod context;
mod error;
mod event;
pub mod find;
pub mod keeper;
mod kept;
pub mod launch;
mod page;
pub mod protocol;
pub mod transport;
mod wire;

pub use browser::CdpBrowser;
pub use error::{CdpError, Result};
