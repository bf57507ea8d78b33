//! Keepers and their browsers, with real processes.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod display;
mod headed;
mod lives;
mod stillborn;
mod support;
