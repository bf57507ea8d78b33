//! The typed part of the DevTools protocol: `cargo xtask cdp-gen` writes it from the official description, and tidy
//! checks, without the network, that it still holds exactly what `subset.txt` asks for.

mod render;
mod schema;
mod subset;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace;
use schema::Protocol;
use subset::Subset;

/// The npm package `devtools-protocol` that the checked-in files were made from. BSD-3-Clause; none of its text is copied.
const VERSION: &str = "0.0.1734725";
const SUBSET: &str = include_str!("cdp/subset.txt");
const DIRECTORY: &str = "crates/tabmux-cdp/src/protocol";

pub(crate) fn run() -> Result<()> {
    let protocol = Protocol::read(&download()?)?;
    let files = render::files(&protocol, &Subset::parse(SUBSET)?, VERSION)?;
    let directory = workspace::root().join(DIRECTORY);
    if directory.exists() {
        std::fs::remove_dir_all(&directory)?;
    }
    std::fs::create_dir_all(&directory)?;
    for (name, text) in &files {
        let path = if name == "protocol" { format!("{DIRECTORY}.rs") } else { format!("{DIRECTORY}/{name}.rs") };
        workspace::write(&path, text)?;
    }
    // Only the root: rustfmt follows its modules.
    let root = workspace::root().join(format!("{DIRECTORY}.rs"));
    let formatted = Command::new("rustfmt").args(["--edition", "2024"]).arg(root).status().context("cannot run rustfmt")?;
    ensure!(formatted.success(), "rustfmt refused what was generated");
    println!("wrote {DIRECTORY}.rs and {} domains from devtools-protocol {VERSION}", files.len() - 1);
    Ok(())
}

/// One finding for each name that only the list or only the generated files have, and for another version.
pub(crate) fn out_of_date() -> Result<Vec<String>> {
    let files = workspace::files(&["rs"])?;
    let generated: Vec<_> = files.iter().filter(|file| file.path.starts_with(DIRECTORY)).collect();
    let mark = format!("devtools-protocol {VERSION}");
    let mut findings: Vec<_> = generated.iter().filter(|file| !file.text.contains(&mark)).map(|file| file.path.clone()).collect();
    let methods = generated.iter().flat_map(|file| file.text.split("METHOD: &'static str = \"").skip(1));
    let present: BTreeSet<_> = methods.filter_map(|rest| rest.split('"').next()).map(str::to_owned).collect();
    findings.extend(Subset::parse(SUBSET)?.methods().symmetric_difference(&present).cloned());
    Ok(findings.into_iter().map(|what| format!("{what}: not as xtask/src/cdp/subset.txt says; run `cargo xtask cdp-gen`")).collect())
}

/// The package's two JSON files, fetched once into target/.
fn download() -> Result<[PathBuf; 2]> {
    let directory = workspace::root().join("target/cdp").join(VERSION);
    let json = directory.join("package/json");
    let files = [json.join("browser_protocol.json"), json.join("js_protocol.json")];
    if files.iter().all(|file| file.exists()) {
        return Ok(files);
    }
    std::fs::create_dir_all(&directory)?;
    let package = format!("devtools-protocol@{VERSION}");
    let packed = Command::new("npm").args(["pack", "--silent", &package]).current_dir(&directory).status().context("cannot run npm")?;
    ensure!(packed.success(), "npm could not fetch {package}");
    let archive = format!("devtools-protocol-{VERSION}.tgz");
    let unpacked = Command::new("tar").args(["xzf", &archive]).current_dir(&directory).status().context("cannot run tar")?;
    ensure!(unpacked.success(), "{archive} cannot be unpacked");
    Ok(files)
}
