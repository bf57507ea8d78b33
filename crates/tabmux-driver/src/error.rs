//! What a driver can fail with, by what the caller can do about it.

use tabmux_core::{Code, Fault};

/// The dialog that says nothing but what it is.
const LEAVING: &str = "beforeunload";

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriverError {
    #[error("The page is gone: it was closed by a person or by its own script.")]
    PageGone,
    #[error("The window is gone: it was closed by a person.")]
    WindowGone,
    #[error("The window takes no tabs.")]
    WindowFull,
    #[error("The page crashed.")]
    PageCrashed,
    #[error("The browser is gone: {0}")]
    BrowserGone(String),
    #[error("{0}")]
    NavigationFailed(String),
    /// The address gave no document, so the page stays; perhaps it gave a file.
    #[error("net::ERR_ABORTED at {0}: it gives a download or an empty answer; the page stays where it was.")]
    NoDocument(String),
    #[error(
        "{url} was given up for another address: the page was sent elsewhere meanwhile, by its own script or by somebody, and is at {here} now."
    )]
    Overtaken { url: String, here: String },
    #[error("{0} is a download, which began; the page stays where it was.")]
    BecameDownload(String),
    /// `earlier` or `later`.
    #[error("There is no {0} page in this tab's history.")]
    NoHistory(&'static str),
    #[error("The script failed: {0}")]
    ScriptFailed(String),
    #[error("A dialog is open ({kind}): {}.", if kind == LEAVING { "whether the page may be left".to_owned() } else { format!("{text:?}") })]
    DialogOpen { kind: String, text: String },
    #[error("No dialog is open.")]
    NoDialog,
    /// Nothing matches; what may have been meant, as `e12 button "Save"`.
    #[error("No element matches {selector:?}.{}", like(near))]
    ElementNotFound { selector: String, near: Vec<String> },
    #[error("{0} is not on the page (any more).")]
    StaleRef(String),
    /// The element is there but not ready: covered, hidden, disabled, moving, or not keeping its value.
    #[error("{0}")]
    NotActionable(String),
    /// A list whose choices the browser draws outside of the page.
    #[error("{0}")]
    NativeList(String),
    #[error("No field has the focus.")]
    NothingFocused,
    /// Something was done, and nobody can say whether it arrived.
    #[error("{0}")]
    Unconfirmed(String),
    #[error("{0:?} is no key.")]
    BadKey(String),
    /// A site whose certificate cannot be verified.
    #[error("{0}")]
    CertificateRefused(String),
    #[error("The page's storage cannot be used: {0}.")]
    StorageRefused(String),
    #[error("{selector:?} is no selector: {why}.")]
    BadSelector { selector: String, why: String },
    #[error("No file chooser is open.")]
    NoChooser,
    #[error("{0}")]
    FilesRefused(String),
    #[error("The browser does not take {0}.")]
    EmulationRefused(String),
    #[error("The page is another than when this cursor was given.")]
    StaleCursor,
    #[error("{0:?} is no regular expression.")]
    BadPattern(String),
    /// Before anything was done: where something may have been, that is unconfirmed.
    #[error("The page went elsewhere meanwhile.")]
    Navigated,
    /// Not answered in time; the browser is there and may have done it.
    #[error("The browser is slow: {0}.")]
    Late(String),
    /// Not asked: too much waits for the browser already.
    #[error("The browser is busy: {0}.")]
    Busy(String),
    #[error("{0}")]
    Unsupported(String),
}

impl DriverError {
    /// Whether a navigation came to nothing and the page is fine.
    pub fn is_unreached(&self) -> bool {
        matches!(
            self,
            Self::NavigationFailed(_)
                | Self::CertificateRefused(_)
                | Self::NoDocument(_)
                | Self::Overtaken { .. }
                | Self::BecameDownload(_)
                | Self::NoHistory(_)
        )
    }
}

impl From<DriverError> for Fault {
    fn from(error: DriverError) -> Self {
        let (code, hint) = match &error {
            DriverError::PageGone => (Code::TabGone, "Call list_pages to see which tabs are left, or new_page."),
            DriverError::WindowGone | DriverError::WindowFull => (Code::TabGone, "Call new_page to have a new window."),
            DriverError::PageCrashed => (Code::TabCrashed, "Call navigate with reload to bring it back, or close_page."),
            DriverError::BrowserGone(_) => (Code::BrowserCrashed, "Call navigate to start afresh."),
            DriverError::NavigationFailed(why) if why.starts_with("net::ERR_BLOCKED_BY_CLIENT") => {
                (Code::PolicyDenied, "Go elsewhere: it is a port that controls a browser, or an extension of the browser forbids it.")
            }
            DriverError::NavigationFailed(_) => (Code::NavigationFailed, "Check the URL, then navigate again."),
            DriverError::NoDocument(_) => {
                (Code::NavigationFailed, "If it is a file, downloads with wait: true gives its path; else check the URL.")
            }
            DriverError::Overtaken { .. } => (Code::NavigationFailed, "Look at the page; if it is not what you want, navigate again."),
            DriverError::BecameDownload(_) => (Code::NavigationFailed, "Call downloads with wait: true, which gives its path."),
            DriverError::NoHistory(_) => (Code::NavigationFailed, "Go somewhere with url instead."),
            DriverError::ScriptFailed(_) => (Code::BadArgument, "Correct the script, then evaluate again."),
            DriverError::DialogOpen { kind, .. } if kind == LEAVING => {
                (Code::DialogOpen, "Answer it with handle_dialog: it leaves, with accept: false it stays. Then go on.")
            }
            DriverError::DialogOpen { .. } => (Code::DialogOpen, "Answer it with handle_dialog, then go on."),
            DriverError::NoDialog => (Code::BadArgument, "Call handle_dialog only after a reply said that a dialog is open."),
            DriverError::ElementNotFound { .. } => (Code::ElementNotFound, "Look at the page again, then give another selector."),
            DriverError::StaleRef(_) => (Code::StaleRef, "Take a snapshot to see what is there now."),
            DriverError::NotActionable(_) => (Code::ElementNotActionable, "Look at the page, put that right, then try again."),
            DriverError::NativeList(_) => (Code::ElementNotActionable, "Choose with select_option."),
            DriverError::NothingFocused => (Code::ElementNotActionable, "Give selector, or click a field first."),
            DriverError::Unconfirmed(_) => (Code::OutcomeUnknown, "Look at the page before you do it again."),
            DriverError::BadKey(_) => (Code::BadArgument, "Write it as \"Enter\", \"a\" or \"Control+Shift+ArrowLeft\"."),
            DriverError::CertificateRefused(_) => {
                (Code::NavigationFailed, "If you trust the site, start your client as `tabmux mcp --ignore-https-errors`.")
            }
            DriverError::StorageRefused(_) => {
                (Code::BadArgument, "Only http and https pages have one, of 5 MB: navigate to one, or set less.")
            }
            DriverError::BadSelector { .. } => {
                (Code::BadArgument, "Give a ref such as e12, CSS, XPath (//…), ~accessibility-id, text=… or role=button[name=\"…\"].")
            }
            DriverError::NoChooser => (Code::BadArgument, "Click what opens it first, or give the selector of a file input."),
            DriverError::FilesRefused(_) => (Code::BadArgument, "Give one file, or another input."),
            DriverError::EmulationRefused(_) => (Code::BadArgument, "Give another value."),
            DriverError::StaleCursor => (Code::StaleRef, "Take a snapshot without a cursor."),
            DriverError::BadPattern(_) => (Code::BadArgument, "Write find as text, or as a JavaScript expression: /pric(e|es)/i."),
            DriverError::Navigated => (Code::StaleRef, "Nothing was done. Take a snapshot to see what is there now."),
            DriverError::Late(_) => (Code::Timeout, "Look how far it came (list_pages), then call again."),
            DriverError::Busy(_) => (Code::QueueFull, "Wait for calls that run, then call again."),
            DriverError::Unsupported(_) => (Code::Unsupported, "Use another tool, or another kind of session."),
        };
        Self::new(code, sentence(error.to_string()), hint)
    }
}

fn like(near: &[String]) -> String {
    if near.is_empty() { String::new() } else { format!(" Nearest: {}.", near.join(", ")) }
}

/// A page's or a browser's own words often end without a stop; the hint follows them.
fn sentence(mut text: String) -> String {
    if !text.ends_with(['.', '!', '?']) {
        text.push('.');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its tab is there, and whoever takes it for gone opens another.
    #[test]
    fn a_page_that_went_elsewhere_is_no_tab_that_is_gone() {
        let fault = Fault::from(DriverError::Navigated).to_string();
        assert_eq!(fault, "[stale_ref] The page went elsewhere meanwhile. Nothing was done. Take a snapshot to see what is there now.");
    }

    #[test]
    fn a_fault_is_made_of_whole_sentences() {
        let fault = Fault::from(DriverError::ScriptFailed("no milk".into()));
        assert_eq!(fault.to_string(), "[bad_argument] The script failed: no milk. Correct the script, then evaluate again.");
        let fault = Fault::from(DriverError::DialogOpen { kind: "alert".into(), text: "a\u{202e}b".into() });
        assert_eq!(fault.message, "A dialog is open (alert): \"a\\u{202e}b\".");
    }

    #[test]
    fn what_is_late_or_was_not_asked_can_be_tried_again() {
        let fault = Fault::from(DriverError::Late("Target.createTarget was not answered in time".into()));
        assert_eq!(
            (fault.code, fault.message.as_str()),
            (Code::Timeout, "The browser is slow: Target.createTarget was not answered in time.")
        );
        assert_eq!(Fault::from(DriverError::Busy("no".into())).code, Code::QueueFull);
    }
}
