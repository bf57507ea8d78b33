//! Joins clients, sessions and browsers: hub, session tasks, doors, lifecycle, journal. Browser verbs are deliberately absent.

pub mod http;
pub mod journal;
pub mod settings;
pub mod tokens;

pub use settings::Settings;
