//! What the compiler and clippy cannot check: edges between crates, the shape of files, names, and whether
//! generated files are up to date. Runs as `cargo xtask tidy` and as an ordinary test.

mod edges;
mod readme;
mod text;

use anyhow::{Result, bail};

use crate::{cdp, docs, workspace};

pub(crate) fn run() -> Result<()> {
    let findings = findings()?;
    for finding in &findings {
        println!("{finding}");
    }
    if findings.is_empty() {
        println!("tidy");
        return Ok(());
    }
    bail!("{} findings", findings.len())
}

/// Everything that is not as it should be, one line each, beginning with the file.
fn findings() -> Result<Vec<String>> {
    let mut findings = edges::check()?;
    let sources = workspace::files(&["rs"])?;
    let test_modules = text::test_modules(&sources);
    for file in &sources {
        findings.extend(text::check_rust(file, &test_modules));
    }
    for file in workspace::files(&["rs", "md", "toml", "sh", "py", "mjs", "yml", "json", "tsv"])? {
        findings.extend(text::check_merge_markers(&file));
    }
    findings.extend(readme::check()?);
    findings.extend(docs::out_of_date()?);
    findings.extend(cdp::out_of_date()?);
    Ok(findings)
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_workspace_is_tidy() {
        let findings = super::findings().unwrap();
        assert!(findings.is_empty(), "\n{}\n", findings.join("\n"));
    }
}
