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
    #[error("A visible browser needs a display, and there is none where the daemon runs")]
    NoDisplay,
    #[error("The profile {} is in use by {holder}", profile.display())]
    ProfileHeld { profile: PathBuf, holder: Holder },
    /// It ended before it answered.
    #[error("The browser ended at once ({status}){}", last(words))]
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
            Self::Unusable { .. } => {
                "Correct TABMUX_BROWSER, or unset it to use an installed browser; `tabmux stop` ends a daemon that began with the old value."
            }
            Self::NoDisplay => {
                "Leave --headed out; or `tabmux stop`, then start again where DISPLAY names a display that runs, or under xvfb-run."
            }
            Self::ProfileHeld { .. } => "Close that browser, or use another profile.",
            Self::Died { words, .. } if words.contains("No usable sandbox") => {
                "Install Debian's chromium-sandbox, or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1), then call again."
            }
            Self::Died { words, .. } if words.contains("shared object file") => {
                "Install what it misses, or the browser's package again (Debian: apt-get install --reinstall chromium), then call again."
            }
            Self::Died { .. } => {
                "Start that browser by hand to see why, correct TABMUX_BROWSER or TABMUX_BROWSER_ARGS, `tabmux stop`, then call again."
            }
            Self::Late { .. } => {
                "Start that browser by hand to see whether it hangs, correct TABMUX_BROWSER or TABMUX_BROWSER_ARGS, `tabmux stop`, then call \
                 again; on an overloaded machine just call again."
            }
            Self::Claimed { .. } => "Use the daemon that holds it, or stop that one first.",
            Self::KeeperGone(_) => "Call navigate to start afresh.",
            Self::System(_) => "Run `tabmux doctor`.",
        }
    }

    /// It ended before it answered. Where only a display was missing, its log is of no use to anybody.
    pub(crate) fn died(status: String, words: String) -> Self {
        let no_display = ["Missing X server or $DISPLAY", "Failed to connect to Wayland display"];
        if no_display.iter().any(|sign| words.contains(sign)) { Self::NoDisplay } else { Self::Died { status, words } }
    }

    /// An error of the machine, with what was being done.
    pub(crate) fn system(doing: &str) -> impl Fn(std::io::Error) -> Self {
        move |error| Self::System(format!("{doing}: {error}"))
    }
}

/// What it said before it ended, if anything.
fn last(words: &str) -> String {
    if words.trim().is_empty() { " without a word".to_owned() } else { format!(". Its last words: {words}") }
}

#[cfg(test)]
mod tests {
    use super::LaunchError;

    #[test]
    fn what_a_browser_misses_is_put_right_by_name_and_nothing_by_the_doctor_who_says_it() {
        let died = |words: &str| LaunchError::died("exit code 1".into(), words.into());
        assert!(died("[1:1:ERROR] No usable sandbox! If this is a Debian system, please install").hint().contains("chromium-sandbox"));
        assert!(died("chromium: libnss3.so: cannot open shared object file").hint().contains("Install what it misses"));
        assert!(
            died("Segmentation fault").hint().contains("by hand") && died("Segmentation fault").to_string().ends_with("Segmentation fault")
        );
        assert_eq!(died(" ").to_string(), "The browser ended at once (exit code 1) without a word");
    }

    #[test]
    fn a_browser_that_finds_no_display_is_not_quoted() {
        let words =
            "[1:1:ERROR:dbus/bus.cc] Failed to connect to the bus\n[1:1:ERROR:ozone_platform_x11.cc] Missing X server or $DISPLAY\n";
        let died = LaunchError::died("exit code 1".into(), words.into());
        assert_eq!(died, LaunchError::NoDisplay);
        assert!(!died.to_string().contains("ERROR") && died.hint().contains("xvfb-run"), "{died} {}", died.hint());
    }
}
