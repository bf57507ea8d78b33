//! Joins clients, sessions and browsers: hub, session tasks, doors, lifecycle, journal. Browser verbs are deliberately absent.

pub mod rundir;
pub mod settings;

pub use settings::Settings;

// PLACEHOLDER, to be replaced by the daemon's own room when it is merged: only the signatures the command line is written against.
#[derive(Debug)]
pub struct Ready {
    pub listen: Option<std::net::SocketAddr>,
}
#[derive(Debug)]
pub enum Exit {}
#[derive(Debug, thiserror::Error)]
#[error("The daemon's own room is not built into this program yet.")]
pub struct DaemonError;
impl From<DaemonError> for tabmux_core::Fault {
    fn from(error: DaemonError) -> Self {
        Self::new(tabmux_core::Code::Unsupported, error.to_string(), "Merge the daemon.")
    }
}
#[expect(clippy::unused_async)]
pub async fn run(_settings: Settings, _ready: impl FnOnce(Ready) + Send) -> Result<Exit, DaemonError> {
    Err(DaemonError)
}
