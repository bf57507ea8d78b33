//! What can go wrong on the way to a browser, by what the caller can do about it.

use tabmux_driver::DriverError;

pub type Result<T> = std::result::Result<T, CdpError>;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CdpError {
    /// The browser refused this command; the connection is fine.
    #[error("{message} ({code}) in answer to {method}")]
    Refused { method: &'static str, code: i64, message: String },
    /// The target behind this CDP session is gone or was let go.
    #[error("the target is gone")]
    SessionGone,
    /// The target's renderer crashed; it answers again after a navigation.
    #[error("the renderer crashed")]
    Crashed,
    /// The connection to the browser ended.
    #[error("{0}")]
    Disconnected(String),
    /// The browser answered something this side cannot read.
    #[error("an answer to {method} cannot be read: {why}")]
    Unreadable { method: &'static str, why: String },
    /// The browser did not answer a command of our own in time.
    #[error("{method} was not answered in time")]
    Late { method: &'static str },
    /// Too many calls wait for the browser already; this one was not sent.
    #[error("{method} was not sent: too many calls wait for the browser")]
    Busy { method: &'static str },
}

impl From<CdpError> for DriverError {
    fn from(error: CdpError) -> Self {
        match error {
            CdpError::SessionGone => Self::PageGone,
            CdpError::Crashed => Self::PageCrashed,
            CdpError::Disconnected(why) => Self::BrowserGone(why),
            CdpError::Refused { .. } | CdpError::Unreadable { .. } | CdpError::Late { .. } | CdpError::Busy { .. } => {
                Self::Unsupported(error.to_string())
            }
        }
    }
}
