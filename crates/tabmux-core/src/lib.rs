//! Decides who owns which session and tab, and when each ends. Pure: no async, no I/O, no clock (time is an
//! argument), no randomness (ids are arguments); what must happen outside comes back as effects.

mod fault;
mod ids;

pub use fault::{Code, Fault};
pub use ids::{ClientId, Epoch, NotAnId, SessionId, TabId, TabNumber, Uuid};
