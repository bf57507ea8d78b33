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
    /// The browser answered more than anybody reads.
    #[error("an answer to {method} is too long: {bytes} bytes")]
    TooLong { method: &'static str, bytes: usize },
    /// The browser did not answer a command of our own in time.
    #[error("{method} was not answered in time")]
    Late { method: &'static str },
    /// Too many calls wait for the browser already; this one was not sent.
    #[error("{method} was not sent: too many calls wait for the browser")]
    Busy { method: &'static str },
}

/// What Chromium says in the moment in which one document has gone and the next is not there.
const BETWEEN: &str = "Not attached to an active page";

impl From<CdpError> for DriverError {
    fn from(error: CdpError) -> Self {
        match error {
            CdpError::SessionGone => Self::PageGone,
            CdpError::Crashed => Self::PageCrashed,
            CdpError::Disconnected(why) => Self::BrowserGone(why),
            CdpError::Late { .. } => Self::Late(error.to_string()),
            CdpError::Busy { .. } => Self::Busy(error.to_string()),
            CdpError::Refused { message, .. } if message == BETWEEN => Self::Navigated,
            CdpError::Refused { .. } | CdpError::Unreadable { .. } | CdpError::TooLong { .. } => Self::Unsupported(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Who is told that something is not supported does not try it again.
    #[test]
    fn a_slow_or_busy_browser_is_no_unable_one() {
        let method = "Target.createTarget";
        assert!(matches!(CdpError::Late { method }.into(), DriverError::Late(_)));
        assert!(matches!(CdpError::Busy { method }.into(), DriverError::Busy(_)));
    }

    /// Nor is a page that is just going elsewhere, of which a picture is taken again.
    #[test]
    fn a_page_between_two_documents_has_gone_elsewhere() {
        let refused = |message: &str| CdpError::Refused { method: "Page.captureScreenshot", code: -32000, message: message.into() }.into();
        assert_eq!(refused(BETWEEN), DriverError::Navigated);
        assert!(matches!(refused("Unable to capture screenshot"), DriverError::Unsupported(_)));
    }
}
