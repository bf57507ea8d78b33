//! Speaks CDP to Chromium: finds and launches it, keeps its pipe over the daemon's death, and turns the driver's verbs
//! into protocol messages. Session and tool names are deliberately absent: this room knows contexts, targets and pages.

pub mod attach;
mod browser;
mod connection;
mod context;
mod error;
mod event;
pub mod find;
pub mod keeper;
mod kept;
pub mod launch;
mod lenient;
mod page;
mod paused;
pub mod protocol;
mod threshold;
mod transport;
mod windows;
mod wire;
mod world;

pub use browser::CdpBrowser;
pub use connection::{Connection, Counts, Listener, Sent, Tap};
pub use error::{CdpError, Result};
pub use event::unreadable_events;
pub use transport::{Start, Transport};
