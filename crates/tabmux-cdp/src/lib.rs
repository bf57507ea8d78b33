//! Speaks CDP to Chromium: finds and launches it, keeps its pipe over the daemon's death, and turns the driver's verbs
//! into protocol messages. Session and tool names are deliberately absent: this room knows contexts, targets and pages.

mod connection;
mod error;
pub mod find;
pub mod keeper;
pub mod launch;

pub use connection::{Connection, Counts, Listener, Sent, Tap};
pub use error::{CdpError, Result};
pub use transport::{Start, Transport};
