//! Why there is no browser, by what the caller can do about it.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::Holder;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LaunchError {
    #[error("No Chromium, Chrome or Edge was found. To get one: {install}")]
    NotFound { install: String },
    #[error("The browser {} cannot be used: {why}", path.display())]
    Unusable { path: PathBuf, why: String },
    #[error("A visible browser needs a display, and the daemon has none")]
    NoDisplay,
    #[error("The profile {} is in use by {holder}", profile.display())]
    ProfileHeld { profile: PathBuf, holder: Holder },
    /// It ended before it answered.
    #[error("The browser ended at once ({status}). Its last words: {words}")]
    Died { status: String, words: String },
    #[error("The browser did not answer within {seconds} s of its start")]
    Late { seconds: u64 },
    /// Another daemon holds this browser.
    #[error("The browser is claimed by the process {pid}")]
    Claimed { pid: u32 },
    /// No keeper listens there.
    #[error("The browser's keeper is gone: {0}")]
    KeeperGone(String),
    /// The machine said no.
    #[error("{0}")]
    System(String),
}

impl LaunchError {
    /// What to do next, one sentence.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            Self::NotFound { .. } => "Install a browser, or name one with TABMUX_BROWSER, then call again.",
            Self::Unusable { .. } => "Correct TABMUX_BROWSER, or unset it to use an installed browser.",
            Self::NoDisplay => "Start the daemon on a desktop (`tabmux stop`, then again from there), or leave --headed out.",
            Self::ProfileHeld { .. } => "Close that browser, or use another profile.",
            Self::Died { words, .. } if words.contains("No usable sandbox") => {
                "Install Debian's chromium-sandbox, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), then call again."
            }
            Self::Died { .. } => "Run `tabmux doctor`, and check TABMUX_BROWSER_ARGS.",
            Self::Late { .. } => "The machine may be overloaded: call again, or run `tabmux doctor`.",
            Self::Claimed { .. } => "Use the daemon that holds it, or stop that one first.",
            Self::KeeperGone(_) => "Call navigate to start afresh.",
            Self::System(_) => "Run `tabmux doctor`.",
        }
    }

    /// An error of the machine, with what was being done.
    pub(crate) fn system(doing: &str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::System(format!("{doing}: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::LaunchError;

    #[test]
    fn a_missing_sandbox_is_put_right_by_name_and_not_by_the_doctor() {
        let died = |words: &str| LaunchError::Died { status: "exit code 1".into(), words: words.into() }.hint();
        assert!(died("[1:1:ERROR] No usable sandbox! If this is a Debian system, please install").contains("chromium-sandbox"));
        assert!(died("Segmentation fault").contains("tabmux doctor"));
    }
}
