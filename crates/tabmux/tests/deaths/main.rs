//! The shipped binary on a real Chromium: what is left after any death, and how the living go on.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests, helpers included")]

mod beside;
mod endings;
mod handover;
mod points;
mod random;
mod site;
#[path = "../support/mod.rs"]
mod support;
mod table;
mod upgrade;
mod victims;
