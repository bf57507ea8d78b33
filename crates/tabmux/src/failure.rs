//! Why a command ends badly, and with which exit status. The status is chosen where the failure is made.

use tabmux_core::{Code, Fault, ways_out};
use tabmux_daemon::rundir::{DirError, LockError};

pub(crate) type Outcome<T = ()> = Result<T, Failure>;

/// The exit statuses of CONTRACT.md.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    CallFailed = 1,
    WrongUsage = 2,
    Unavailable = 69,
    BadConfiguration = 78,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) fault: Fault,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::WrongUsage, fault: Fault::new(Code::BadArgument, message, hint) }
    }

    pub(crate) fn configuration(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::BadConfiguration, fault: Fault::new(Code::BadArgument, message, hint) }
    }

    pub(crate) fn unavailable(code: Code, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit: Exit::Unavailable, fault: Fault::new(code, message, hint) }
    }

    /// The daemon did not let this process in. Where only its token is at fault, the daemon is there all the same.
    pub(crate) fn unwelcome(fault: Fault) -> Self {
        let exit = if fault.code == Code::Unauthorized { Exit::CallFailed } else { Exit::Unavailable };
        Self { exit, fault }
    }

    /// Something of this machine failed that no argument could have avoided.
    pub(crate) fn io(what: &str, error: &std::io::Error) -> Self {
        let code = if error.kind() == std::io::ErrorKind::StorageFull { Code::NoSpace } else { Code::Internal };
        Self::unavailable(code, format!("{what}: {error}."), "Run `tabmux doctor` to see what is wrong.")
    }
}

/// A fault the daemon answered with, to somebody who calls no tools.
impl From<Fault> for Failure {
    fn from(mut fault: Fault) -> Self {
        fault.hint = match fault.hint.as_str() {
            ways_out::NEW_SESSION | ways_out::NEW_SESSION_OR_PAGE => "Make a new one with `tabmux new`.".into(),
            ways_out::OTHER_NAME => {
                "Use it with `-t NAME`, end it first with `tabmux kill-session -t NAME`, or choose another name.".into()
            }
            _ => fault.hint,
        };
        let exit = match fault.code {
            Code::BrowserNotFound | Code::ExtensionDisconnected => Exit::Unavailable,
            _ => Exit::CallFailed,
        };
        Self { exit, fault }
    }
}

impl From<DirError> for Failure {
    fn from(error: DirError) -> Self {
        Self { exit: Exit::Unavailable, fault: error.into() }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        let hint = "Another tabmux is starting or stopping a daemon here; try again, or look at `tabmux doctor`.";
        Self::unavailable(Code::Timeout, error.to_string(), hint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_out_are_told_in_words_of_the_command_line() {
        for hint in [ways_out::NEW_SESSION, ways_out::NEW_SESSION_OR_PAGE, ways_out::OTHER_NAME] {
            let said = Failure::from(Fault::new(Code::SessionClosed, "It is gone.", hint)).fault.hint;
            let of_a_tool = ["start_browser", "navigate", "sessionId"].into_iter().find(|word| said.contains(word));
            assert!(said.contains("`tabmux ") && of_a_tool.is_none(), "{said}");
        }
        assert_eq!(Failure::from(Fault::new(Code::Timeout, "Late.", "Wait.")).fault.hint, "Wait.");
    }
}
