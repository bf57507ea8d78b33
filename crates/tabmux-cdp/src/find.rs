//! Which browser binary to start: the one that was named, or the best one that is installed in the usual places of
//! Linux and macOS. Reading the environment is [`Places::here`] alone; starting the browser is not this room's.

mod install;

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::launch::LaunchError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Chromium,
    Chrome,
    Edge,
    /// The small Chromium without windows, extensions and a tab strip.
    HeadlessShell,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Binary {
    pub path: PathBuf,
    pub kind: Kind,
}

/// What the browser is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Want {
    /// Headless contexts: the headless shell where it is installed, since it costs a third less.
    Plain,
    /// Windows, extensions or a visible browser: a full one.
    Full,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Os {
    Linux,
    Mac,
}

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    /// The binary the user named (`TABMUX_BROWSER`). Nothing else is then considered.
    pub given: Option<PathBuf>,
    /// The directories of `PATH`.
    pub path: Vec<PathBuf>,
    pub home: Option<PathBuf>,
    /// What stands for `/`.
    pub root: PathBuf,
    pub os: Os,
}

/// Known places below the root, best first. Distributions keep the real binary here and a shell wrapper in `/usr/bin`.
const LINUX: [(Kind, &str); 13] = [
    (Kind::HeadlessShell, "usr/lib/chromium/chromium-headless-shell"),
    (Kind::HeadlessShell, "usr/lib/chromium/headless_shell"),
    (Kind::HeadlessShell, "usr/lib64/chromium-browser/headless_shell"),
    (Kind::HeadlessShell, "opt/chrome-headless-shell-linux64/chrome-headless-shell"),
    (Kind::Chromium, "usr/lib/chromium/chromium"),
    (Kind::Chromium, "usr/lib/chromium-browser/chromium-browser"),
    (Kind::Chromium, "usr/lib64/chromium-browser/chromium-browser"),
    (Kind::Chrome, "opt/google/chrome/chrome"),
    (Kind::Chrome, "opt/google/chrome-beta/chrome"),
    (Kind::Chrome, "opt/google/chrome-unstable/chrome"),
    (Kind::Edge, "opt/microsoft/msedge/msedge"),
    (Kind::Edge, "opt/microsoft/msedge-beta/msedge"),
    (Kind::Edge, "opt/microsoft/msedge-dev/msedge"),
];

/// Below the root and below the home directory.
const MAC: [(Kind, &str); 3] = [
    (Kind::Chromium, "Applications/Chromium.app/Contents/MacOS/Chromium"),
    (Kind::Chrome, "Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
    (Kind::Edge, "Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"),
];

const NAMES: [(Kind, &str); 9] = [
    (Kind::HeadlessShell, "chromium-headless-shell"),
    (Kind::HeadlessShell, "chrome-headless-shell"),
    (Kind::HeadlessShell, "headless_shell"),
    (Kind::Chromium, "chromium"),
    (Kind::Chromium, "chromium-browser"),
    (Kind::Chrome, "google-chrome-stable"),
    (Kind::Chrome, "google-chrome"),
    (Kind::Edge, "microsoft-edge-stable"),
    (Kind::Edge, "microsoft-edge"),
];

impl Places {
    /// This machine, as the environment describes it.
    #[must_use]
    pub fn here(given: Option<PathBuf>) -> Self {
        Self {
            given,
            path: std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default(),
            home: std::env::home_dir(),
            root: PathBuf::from("/"),
            os: if cfg!(target_os = "macos") { Os::Mac } else { Os::Linux },
        }
    }

    pub fn find(&self, want: Want) -> Result<Binary, LaunchError> {
        if let Some(given) = &self.given {
            return self.given(given, want);
        }
        let mut found = self.installed();
        if want == Want::Full {
            found.retain(|binary| binary.kind != Kind::HeadlessShell);
        }
        // Stable: within shells and within full browsers the order of the lists holds.
        found.sort_by_key(|binary| binary.kind != Kind::HeadlessShell);
        found.into_iter().next().ok_or_else(|| LaunchError::NotFound { install: install::advice(self, want) })
    }

    /// Every browser that is there, the usual places before `PATH`.
    fn installed(&self) -> Vec<Binary> {
        let usual: Vec<_> = match self.os {
            Os::Linux => LINUX.iter().map(|(kind, path)| (*kind, self.root.join(path))).collect(),
            Os::Mac => [Some(&self.root), self.home.as_ref()]
                .into_iter()
                .flatten()
                .flat_map(|base| MAC.iter().map(move |(kind, path)| (*kind, base.join(path))))
                .collect(),
        };
        let named = NAMES.iter().flat_map(|(kind, name)| self.path.iter().map(move |directory| (*kind, directory.join(name))));
        usual
            .into_iter()
            .chain(named)
            .filter(|(_, path)| executable(path).is_ok())
            .map(|(kind, path)| Binary { path: behind_wrapper(&path), kind })
            .collect()
    }

    fn given(&self, given: &Path, want: Want) -> Result<Binary, LaunchError> {
        let unusable = |why: &str| LaunchError::Unusable { path: given.to_owned(), why: why.to_owned() };
        // A bare word is a name on PATH, as in a shell.
        let bare = given.components().count() == 1 && !given.exists();
        let path = if bare { self.path.iter().map(|directory| directory.join(given)).find(|path| executable(path).is_ok()) } else { None };
        let path = path.unwrap_or_else(|| given.to_owned());
        executable(&path).map_err(&unusable)?;
        let path = behind_wrapper(&path);
        let kind = kind_of(&path);
        if kind == Kind::HeadlessShell && want == Want::Full {
            return Err(unusable("it is a headless shell, which has no windows and no extensions"));
        }
        Ok(Binary { path, kind })
    }
}

fn executable(path: &Path) -> Result<(), &'static str> {
    let metadata = fs::metadata(path).map_err(|_| "it does not exist")?;
    match metadata {
        metadata if !metadata.is_file() => Err("it is not a file"),
        metadata if metadata.permissions().mode() & 0o111 == 0 => Err("it is not executable"),
        _ => Ok(()),
    }
}

fn kind_of(path: &Path) -> Kind {
    let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
    match name {
        name if name.contains("headless") => Kind::HeadlessShell,
        name if name.contains("edge") => Kind::Edge,
        name if name.contains("chrome") => Kind::Chrome,
        _ => Kind::Chromium,
    }
}

/// The binary that a distribution's shell wrapper starts. The wrapper itself when that is not known: most of them
/// `exec`, so it works, only with the flags the distribution adds.
fn behind_wrapper(path: &Path) -> PathBuf {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let (Some(directory), Some(name)) = (real.parent(), real.file_name()) else { return real };
    // Every snap is a link to one program, which goes by the link's name.
    if name == "snap" {
        return path.to_owned();
    }
    if !is_script(&real) {
        return real;
    }
    let beside = ["chrome", "msedge"].map(|name| directory.join(name));
    let prefix = directory.parent().unwrap_or(directory);
    let below = ["lib/chromium", "lib/chromium-browser", "lib64/chromium-browser"].map(|library| prefix.join(library).join(name));
    let below = below.into_iter().filter(|_| directory.file_name() == Some(OsStr::new("bin")));
    below.chain(beside).find(|path| executable(path).is_ok() && !is_script(path)).unwrap_or(real)
}

fn is_script(path: &Path) -> bool {
    let mut head = [0; 2];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && &head == b"#!"
}

#[cfg(test)]
mod tests;
