//! The peers from npm, newest versions, into `target/peers`, with a Node new enough for all of them. The browsers they would
//! download come from hosts that are no package registry; `browsers.rs` says what stands in.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace;

const PEERS: [&str; 3] = ["@playwright/mcp", "chrome-devtools-mcp", "agent-browser"];
/// agent-browser asks for 24 or newer.
const NODE_VERSION: &str = "24";

/// Where the peers are, and which versions.
pub(super) struct Installed {
    pub(super) node: PathBuf,
    pub(super) agent_browser: PathBuf,
    /// Name and version, for the report.
    pub(super) versions: Vec<(String, String)>,
    modules: PathBuf,
}

pub(super) fn install() -> Result<Installed> {
    let home = workspace::root().join("target/peers");
    std::fs::create_dir_all(&home)?;
    let node_package = format!("node-linux-{}", if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" });
    // A version, not a tag: for a tag npm takes an older release when the machine's own Node is too old for the newest.
    let mut wanted = vec![format!("{node_package}@{NODE_VERSION}")];
    for peer in PEERS {
        wanted.push(format!("{peer}@{}", newest(peer)?));
    }
    println!("installing {} into target/peers", wanted.join(", "));
    // No install scripts: they download browsers and binaries from elsewhere.
    let flags = ["install", "--no-audit", "--no-fund", "--silent", "--ignore-scripts", "--prefix"];
    let status = Command::new("npm").args(flags).arg(&home).args(&wanted).status().context("npm is needed to install the peers")?;
    if !status.success() {
        bail!("npm could not install the peers");
    }
    Installed::at(&home.join("node_modules"), &node_package)
}

impl Installed {
    fn at(modules: &Path, node_package: &str) -> Result<Self> {
        let mut versions = Vec::new();
        for package in PEERS.into_iter().chain([node_package]) {
            versions.push((package.to_owned(), version(&modules.join(package).join("package.json"))?));
        }
        let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
        let agent_browser = modules.join(format!("agent-browser/bin/agent-browser-linux-{arch}"));
        make_executable(&agent_browser)?;
        Ok(Self { node: modules.join(node_package).join("bin/node"), agent_browser, versions, modules: modules.to_owned() })
    }

    /// A file of an installed package.
    pub(super) fn module(&self, path: &str) -> PathBuf {
        self.modules.join(path)
    }
}

fn newest(package: &str) -> Result<String> {
    let output = Command::new("npm").args(["view", package, "version"]).output().context("npm is needed to find the newest peers")?;
    let version = String::from_utf8(output.stdout)?.trim().to_owned();
    if version.is_empty() {
        bail!("npm does not know {package}: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(version)
}

fn version(manifest: &Path) -> Result<String> {
    let text = std::fs::read_to_string(manifest).with_context(|| format!("cannot read {}", manifest.display()))?;
    let manifest: Value = serde_json::from_str(&text)?;
    Ok(manifest["version"].as_str().context("a package has a version")?.to_owned())
}

/// Its install script would have done so.
fn make_executable(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).with_context(|| format!("cannot mark {}", path.display()))
}
