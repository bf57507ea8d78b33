//! Where browsers keep the profiles people use, and what a running one writes there about its debugging port.

use std::path::{Path, PathBuf};

use super::Address;
use crate::find::Os;

/// Where `auto` looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profiles {
    pub dirs: Vec<PathBuf>,
    /// Asked when no profile has a running browser: a port that was chosen by hand is written down nowhere.
    pub else_at: Option<Address>,
}

/// The port everybody's instructions name.
const CUSTOMARY_PORT: u16 = 9222;

const LINUX: [&str; 10] = [
    "google-chrome",
    "google-chrome-beta",
    "google-chrome-unstable",
    "chromium",
    "microsoft-edge",
    "microsoft-edge-beta",
    "microsoft-edge-dev",
    "BraveSoftware/Brave-Browser",
    "BraveSoftware/Brave-Browser-Beta",
    "BraveSoftware/Brave-Browser-Nightly",
];

/// Below the home directory: what snap and flatpak make of the same.
const LINUX_BOXED: [&str; 5] = [
    "snap/chromium/common/chromium",
    ".var/app/org.chromium.Chromium/config/chromium",
    ".var/app/com.google.Chrome/config/google-chrome",
    ".var/app/com.microsoft.Edge/config/microsoft-edge",
    ".var/app/com.brave.Browser/config/BraveSoftware/Brave-Browser",
];

const MAC: [&str; 8] = [
    "Google/Chrome",
    "Google/Chrome Beta",
    "Google/Chrome Canary",
    "Chromium",
    "Microsoft Edge",
    "Microsoft Edge Beta",
    "BraveSoftware/Brave-Browser",
    "BraveSoftware/Brave-Browser-Beta",
];

/// The usual places of Chrome, Chromium, Edge and Brave. `config` is `XDG_CONFIG_HOME`.
#[must_use]
pub fn usual_profiles(os: Os, home: Option<&Path>, config: Option<&Path>) -> Profiles {
    let below = |base: PathBuf, names: &[&str]| names.iter().map(|name| base.join(name)).collect::<Vec<_>>();
    let dirs = match os {
        Os::Linux => {
            let config = config.map(Path::to_owned).or_else(|| Some(home?.join(".config")));
            let plain = config.map(|config| below(config, &LINUX)).unwrap_or_default();
            plain.into_iter().chain(home.map(|home| below(home.to_owned(), &LINUX_BOXED)).unwrap_or_default()).collect()
        }
        Os::Mac => home.map(|home| below(home.join("Library/Application Support"), &MAC)).unwrap_or_default(),
    };
    Profiles { dirs, else_at: Some(Address { host: "127.0.0.1".into(), port: CUSTOMARY_PORT }) }
}

/// What `DevToolsActivePort` says: port and path of the browser's WebSocket. It stays there when the browser is killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ActivePort {
    pub(super) profile: PathBuf,
    port: u16,
    pub(super) path: String,
}

impl ActivePort {
    pub(super) fn read(profile: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(profile.join("DevToolsActivePort")).ok()?;
        let mut lines = text.lines();
        let port = lines.next()?.trim().parse().ok()?;
        let path = lines.next()?.trim();
        path.starts_with("/devtools/browser").then(|| Self { profile: profile.to_owned(), port, path: path.to_owned() })
    }

    pub(super) fn address(&self) -> Address {
        Address { host: "127.0.0.1".into(), port: self.port }
    }

    pub(super) fn url(&self) -> String {
        format!("ws://{}{}", self.address(), self.path)
    }

    /// Only this machine's browsers write here.
    pub(super) fn is_at(&self, address: &Address) -> bool {
        let local = address.host == "localhost" || address.host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback());
        local && self.port == address.port
    }
}
