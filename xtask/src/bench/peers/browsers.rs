//! Which browsers take part. The peers' own (Chrome, Chrome for Testing) are used where they are installed; elsewhere
//! Debian's full Chromium stands in for them, with the flags each peer gives its own, and the report says so.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

const FULL: [&str; 4] =
    ["/opt/google/chrome/chrome", "/usr/lib/chromium/chromium", "/usr/lib/chromium-browser/chromium-browser", "/usr/bin/chromium"];
const SHELL: [&str; 2] = ["/usr/lib/chromium/chromium-headless-shell", "/usr/bin/chromium-headless-shell"];

/// What is on this machine.
pub(in crate::bench) struct Browsers {
    /// The peers' default, or its stand-in.
    pub(super) full: PathBuf,
    /// What tabmux takes by itself.
    pub(in crate::bench) shell: PathBuf,
}

impl Browsers {
    pub(in crate::bench) fn find() -> Result<Self> {
        let first = |paths: &[&str]| paths.iter().map(PathBuf::from).find(|path| path.exists());
        Ok(Self {
            full: first(&FULL).context("no Chrome or Chromium here; on Debian: apt-get install chromium")?,
            shell: first(&SHELL).context("no headless shell here; on Debian: apt-get install chromium-headless-shell")?,
        })
    }

    /// Sentences for the report.
    pub(super) fn sentence(&self) -> String {
        let stands_in = if self.full.starts_with("/opt/google") {
            "The peers' default browser is the installed Google Chrome."
        } else {
            "The peers' own default browsers (Google Chrome, Chrome for Testing) cannot be had from a package registry; \
             the full Chromium stands in for them, headless, with the flags each peer gives its own."
        };
        format!(
            "Browsers: `{}` ({}) and `{}` (the same version), which tabmux takes by itself. {stands_in}",
            self.full.display(),
            version(&self.full),
            self.shell.display(),
        )
    }
}

fn version(browser: &Path) -> String {
    let output = Command::new(browser).arg("--version").output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned()).unwrap_or_default();
    if said.is_empty() { "version unknown".to_owned() } else { said }
}
