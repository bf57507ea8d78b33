//! Why a running browser cannot be used, by what the person can do about it.

use std::path::PathBuf;

use super::{Address, Consent};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    #[error("{text:?} is no address of a running browser")]
    Unreadable { text: String },
    #[error("{text} is an encrypted address, which tabmux cannot speak to")]
    Tls { text: String },
    #[error("{text} is the address of one page, not of a browser")]
    OfPage { text: String },
    #[error("No browser listens at {address}: {why}")]
    NotListening { address: Address, why: String },
    #[error("What listens at {address} is no browser: {why}")]
    NotABrowser { address: Address, why: String },
    /// Remote debugging was allowed at chrome://inspect, in a profile that is not where profiles are.
    #[error("The browser at {address} does not say its address, and no profile in the usual places has that port")]
    Withheld { address: Address },
    #[error("No running browser that allows remote debugging was found")]
    NoneFound,
    #[error("Several running browsers allow remote debugging: {}", list(.0))]
    Several(Vec<(PathBuf, String)>),
    #[error("The browser at {url} refused the connection: its user clicked Cancel, or it does not allow remote debugging")]
    Refused { url: String },
    #[error("The browser that was at {url} is gone; another one listens there now")]
    Gone { url: String },
    #[error("The browser at {url} did not let tabmux in within {seconds} s")]
    Late { url: String, seconds: u64, consent: Consent },
    #[error("The browser at {url} cannot be used: {why}")]
    Unwelcome { url: String, why: String },
}

impl AttachError {
    /// What to do next, one sentence.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "Give ws://host:port/devtools/browser/ID, http://host:port, a port, or auto.",
            Self::Tls { .. } => {
                "Give its ws:// or http:// address, or put a tunnel in front of it, such as `ssh -L 9222:localhost:9222 HOST`."
            }
            Self::OfPage { .. } => "Give the browser's address, which http://host:port/json/version shows as webSocketDebuggerUrl.",
            Self::NotListening { .. } => {
                "Check the port: a browser listens where its --remote-debugging-port says (with a --user-data-dir of its own), or where \
                 chrome://inspect/#remote-debugging does once you allow it there."
            }
            Self::NoneFound => ALLOW,
            Self::NotABrowser { .. } => "Check the port; a browser shows its own at chrome://inspect/#remote-debugging.",
            Self::Withheld { .. } => "Give the WebSocket address that the DevToolsActivePort file in its profile directory names.",
            Self::Several(_) => "Choose one and give its address in place of auto.",
            Self::Refused { .. } => "Call again and click Allow in the browser's dialog; chrome://inspect/#remote-debugging must allow it.",
            Self::Gone { .. } => "Give http://host:port instead, which finds whatever browser runs there.",
            Self::Late { consent: Consent::Asked, .. } => "Call again and click Allow in the browser's dialog.",
            Self::Late { consent: Consent::NotNeeded, .. } => "The browser may hang; look at it, then call again.",
            Self::Unwelcome { .. } => "Run `tabmux doctor`, and check the address.",
        }
    }
}

const ALLOW: &str = "Allow it in your browser at chrome://inspect/#remote-debugging, or start one with --remote-debugging-port=9222 \
                     and a --user-data-dir of its own, then call again.";

fn list(found: &[(PathBuf, String)]) -> String {
    found.iter().map(|(profile, url)| format!("{url} ({})", profile.display())).collect::<Vec<_>>().join(", ")
}
