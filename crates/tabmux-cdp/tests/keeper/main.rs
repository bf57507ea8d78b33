//! Keepers and their browsers, with real processes.

mod lives;
mod stillborn;
mod support;
