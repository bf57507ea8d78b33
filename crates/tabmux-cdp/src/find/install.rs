//! What to install when no browser was found, in the words of the system at hand.

use std::fs;

use super::{Os, Places, Want};

/// Ubuntu's own Chromium is a snap, which may not see our directories.
const UBUNTU: &str = "wget https://dl.google.com/linux/direct/google-chrome-stable_current_amd64.deb && \
                      sudo apt install ./google-chrome-stable_current_amd64.deb";

/// One command that installs a browser here.
pub(super) fn advice(places: &Places, want: Want) -> String {
    if places.os == Os::Mac {
        return "brew install --cask google-chrome".to_owned();
    }
    let release = ["etc/os-release", "usr/lib/os-release"].iter().find_map(|path| fs::read_to_string(places.root.join(path)).ok());
    for id in release.as_deref().map(ids).unwrap_or_default() {
        let command = match (id.as_str(), want) {
            ("ubuntu", _) => UBUNTU,
            ("debian", Want::Plain) => "sudo apt install chromium chromium-headless-shell",
            ("debian", Want::Full) => "sudo apt install chromium",
            ("fedora", Want::Plain) => "sudo dnf install chromium chromium-headless",
            ("fedora" | "rhel" | "centos", _) => "sudo dnf install chromium",
            ("arch", _) => "sudo pacman -S chromium",
            ("alpine", _) => "sudo apk add chromium",
            ("opensuse" | "suse", _) => "sudo zypper install chromium",
            _ => continue,
        };
        return command.to_owned();
    }
    "install Chromium with this system's package manager".to_owned()
}

/// The system's own id, then those it is like, best first.
fn ids(release: &str) -> Vec<String> {
    let value =
        |key: &str| release.lines().find_map(|line| line.strip_prefix(key)).unwrap_or_default().trim_matches(['"', '\'']).to_owned();
    let (own, like) = (value("ID="), value("ID_LIKE="));
    std::iter::once(own.as_str()).chain(like.split_whitespace()).map(str::to_owned).collect()
}
