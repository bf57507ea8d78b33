//! What goes wrong, as an agent or a person reads it: a stable code, a sentence that says what happened and
//! one that says what to do next (C16). The code is chosen where the fault is made, never by searching text.

use std::fmt;

use crate::TabId;

/// The one list of stable codes, the same on every door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Code {
    BadArgument,
    SessionNotFound,
    SessionExists,
    SessionRequired,
    SessionClosed,
    SessionOrphaned,
    TabNotFound,
    TabGone,
    TabCrashed,
    ElementNotFound,
    ElementNotActionable,
    StaleRef,
    AssertFailed,
    DialogOpen,
    NavigationFailed,
    Timeout,
    Cancelled,
    PolicyDenied,
    Capacity,
    QueueFull,
    BrowserNotFound,
    BrowserCrashed,
    ExtensionDisconnected,
    PausedByHuman,
    StaleEpoch,
    OutcomeUnknown,
    Unsupported,
    Unauthorized,
    FrameTooLarge,
    ProtocolVersion,
    NoSpace,
    Internal,
}

/// A failed call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub code: Code,
    /// What happened, one sentence.
    pub message: String,
    /// What to do next, one sentence.
    pub hint: String,
    /// The tab in which a dialog opened and ended the call: unlike one that met an open dialog, it had begun.
    pub opened: Option<TabId>,
}

impl Code {
    /// Every code with its name and its HTTP status.
    pub const ALL: [(Code, &'static str, u16); 32] = [
        (Code::BadArgument, "bad_argument", 400),
        (Code::SessionNotFound, "session_not_found", 404),
        (Code::SessionExists, "session_exists", 409),
        (Code::SessionRequired, "session_required", 400),
        (Code::SessionClosed, "session_closed", 404),
        (Code::SessionOrphaned, "session_orphaned", 409),
        (Code::TabNotFound, "tab_not_found", 404),
        (Code::TabGone, "tab_gone", 404),
        (Code::TabCrashed, "tab_crashed", 503),
        (Code::ElementNotFound, "element_not_found", 404),
        (Code::ElementNotActionable, "element_not_actionable", 400),
        (Code::StaleRef, "stale_ref", 400),
        (Code::AssertFailed, "assert_failed", 400),
        (Code::DialogOpen, "dialog_open", 409),
        (Code::NavigationFailed, "navigation_failed", 503),
        (Code::Timeout, "timeout", 504),
        (Code::Cancelled, "cancelled", 400),
        (Code::PolicyDenied, "policy_denied", 403),
        (Code::Capacity, "capacity", 429),
        (Code::QueueFull, "queue_full", 429),
        (Code::BrowserNotFound, "browser_not_found", 404),
        (Code::BrowserCrashed, "browser_crashed", 503),
        (Code::ExtensionDisconnected, "extension_disconnected", 503),
        (Code::PausedByHuman, "paused_by_human", 409),
        (Code::StaleEpoch, "stale_epoch", 409),
        (Code::OutcomeUnknown, "outcome_unknown", 503),
        (Code::Unsupported, "unsupported", 400),
        (Code::Unauthorized, "unauthorized", 401),
        (Code::FrameTooLarge, "frame_too_large", 413),
        (Code::ProtocolVersion, "protocol_version", 400),
        (Code::NoSpace, "no_space", 503),
        (Code::Internal, "internal", 503),
    ];

    fn row(self) -> &'static (Code, &'static str, u16) {
        Self::ALL.iter().find(|row| row.0 == self).expect("every code has a row, a test counts them")
    }

    /// The stable name, `session_not_found`.
    pub fn name(self) -> &'static str {
        self.row().1
    }

    /// The status an HTTP door answers with.
    pub fn http_status(self) -> u16 {
        self.row().2
    }

    /// Reads a stable name back.
    pub fn from_name(name: &str) -> Option<Code> {
        Self::ALL.iter().find(|row| row.1 == name).map(|row| row.0)
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Ways out that name tools or their arguments, which the command line says in its own words.
pub mod ways_out {
    pub const NEW_SESSION: &str = "Call start_browser to make a new one.";
    pub const NEW_SESSION_OR_PAGE: &str = "Call start_browser or navigate to make a new one.";
    pub const OTHER_NAME: &str = "Use it by its sessionId, close it first, or choose another name.";
}

impl Fault {
    pub fn new(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: hint.into(), opened: None }
    }

    /// The same, with another way out.
    #[must_use]
    pub fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: hint.into(), ..self }
    }
}

impl fmt::Display for Fault {
    /// The text an agent reads: `[code] What happened. What to do next.`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.code, self.message)?;
        if self.hint.is_empty() { Ok(()) } else { write!(f, " {}", self.hint) }
    }
}

impl std::error::Error for Fault {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_one_row_and_reads_back() {
        for (code, name, status) in Code::ALL {
            assert_eq!((code.name(), code.http_status(), Code::from_name(name)), (name, status, Some(code)));
        }
        assert_eq!(Code::from_name("no_such_code"), None);
    }

    #[test]
    fn a_fault_reads_as_code_sentence_and_way_out() {
        let fault = Fault::new(Code::SessionNotFound, "No session: web.", "Call list_sessions.");
        assert_eq!(fault.to_string(), "[session_not_found] No session: web. Call list_sessions.");
        assert_eq!(fault.with_hint("Begin anew.").to_string(), "[session_not_found] No session: web. Begin anew.");
        assert_eq!(Fault::new(Code::Timeout, "Too late.", "").to_string(), "[timeout] Too late.");
    }
}
