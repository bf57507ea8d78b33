//! Joins clients, sessions and browsers: hub, session tasks, doors, lifecycle, journal. Browser verbs are deliberately absent.

pub mod rundir;
pub mod settings;

pub use settings::Settings;
