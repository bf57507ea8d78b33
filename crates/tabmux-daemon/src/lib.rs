//! Joins clients, sessions and browsers: hub, session tasks, doors, lifecycle, journal. Browser verbs are deliberately absent.

mod audit;
mod backend;
mod browser;
mod clock;
mod grant_record;
pub mod http;
mod hub;
pub mod journal;
mod lifecycle;
pub mod profiles;
mod record;
pub mod rundir;
pub mod secrets;
mod session;
pub mod settings;
mod socket;
pub mod sources;
pub mod storage_state;
mod store;
#[cfg(test)]
mod testing;
pub mod tokens;

pub use browser::{Found, browsers_are_left, check_endpoint, check_profile, find_browser, keep_browser};
pub use lifecycle::{Exit, Ready, run};
pub use settings::Settings;
