//! Which crate may use which (ARCHITECTURE.md, the map). The compiler enforces the direction once a line
//! stands in a Cargo.toml; this enforces which lines may stand there.

use std::collections::BTreeSet;

use anyhow::{Context, Result};

use crate::workspace;

/// Crate, and what it may use of ours.
const EDGES: [(&str, &[&str]); 9] = [
    ("tabmux-core", &[]),
    ("tabmux-wire", &["tabmux-core"]),
    ("tabmux-driver", &["tabmux-core"]),
    ("tabmux-cdp", &["tabmux-driver"]),
    ("tabmux-tools", &["tabmux-core", "tabmux-driver"]),
    ("tabmux-mcp", &["tabmux-core", "tabmux-tools", "tabmux-wire"]),
    ("tabmux-daemon", &["tabmux-cdp", "tabmux-core", "tabmux-driver", "tabmux-mcp", "tabmux-tools", "tabmux-wire"]),
    ("tabmux", &["tabmux-core", "tabmux-daemon", "tabmux-tools", "tabmux-wire"]),
    ("xtask", &["tabmux-core", "tabmux-tools"]),
];

pub(super) fn check() -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for manifest in workspace::files(&["toml"])?.into_iter().filter(|file| file.path.ends_with("/Cargo.toml")) {
        let table: toml::Table = manifest.text.parse().with_context(|| manifest.path.clone())?;
        let name = table["package"]["name"].as_str().unwrap_or_default().to_owned();
        findings.extend(check_crate(&name, &table).into_iter().map(|finding| format!("{}: {finding}", manifest.path)));
        seen.insert(name);
    }
    let missing = EDGES.iter().filter(|(name, _)| !seen.contains(*name));
    findings.extend(missing.map(|(name, _)| format!("xtask/src/tidy/edges.rs: names {name}, which is no crate here")));
    Ok(findings)
}

fn check_crate(name: &str, manifest: &toml::Table) -> Vec<String> {
    let Some((_, allowed)) = EDGES.iter().find(|(krate, _)| *krate == name) else {
        return vec![format!("crate {name} has no place in the map; give it one in xtask/src/tidy/edges.rs and ARCHITECTURE.md")];
    };
    let mut findings = Vec::new();
    for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
        let Some(dependencies) = manifest.get(section).and_then(toml::Value::as_table) else { continue };
        for dependency in dependencies.keys() {
            let ours = dependency.starts_with("tabmux");
            if ours && !allowed.contains(&dependency.as_str()) {
                findings.push(format!("{name} may not use {dependency}"));
            }
            if dependency == "rmcp" && name != "tabmux-mcp" {
                findings.push(format!("{name} names rmcp; only tabmux-mcp may"));
            }
            if name == "tabmux-core" && section == "dependencies" && !ours {
                findings.push(format!("tabmux-core is pure and uses nothing, not even {dependency}"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(name: &str, dependencies: &str) -> Vec<String> {
        check_crate(name, &format!("[dependencies]\n{dependencies}").parse().unwrap())
    }

    #[test]
    fn a_forbidden_edge_is_found() {
        assert_eq!(findings("tabmux-driver", "tabmux-tools.workspace = true"), ["tabmux-driver may not use tabmux-tools"]);
        assert_eq!(findings("tabmux-daemon", "rmcp = \"3\""), ["tabmux-daemon names rmcp; only tabmux-mcp may"]);
        assert_eq!(findings("tabmux-core", "serde = \"1\"").len(), 1);
        assert_eq!(findings("tabmux-extra", "").len(), 1);
        assert!(findings("tabmux-mcp", "rmcp = \"3\"\ntabmux-core.workspace = true").is_empty());
    }
}
