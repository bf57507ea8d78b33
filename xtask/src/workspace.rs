//! Where the workspace is and which files it has.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// One text file of the workspace.
#[derive(Debug)]
pub(crate) struct Source {
    /// From the workspace's root, with `/`.
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The workspace's root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_path_buf()
}

/// Every file with one of the extensions, sorted by path. Build output and hidden directories are left out.
pub(crate) fn files(extensions: &[&str]) -> Result<Vec<Source>> {
    let mut found = Vec::new();
    collect(&root(), extensions, &mut found)?;
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

pub(crate) fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(root().join(path)).with_context(|| format!("cannot read {path}"))
}

pub(crate) fn write(path: &str, text: &str) -> Result<()> {
    std::fs::write(root().join(path), text).with_context(|| format!("cannot write {path}"))
}

fn collect(directory: &Path, extensions: &[&str], found: &mut Vec<Source>) -> Result<()> {
    for entry in std::fs::read_dir(directory).with_context(|| format!("cannot list {}", directory.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            let skipped = name.starts_with('.') || ["target", "node_modules"].contains(&name.as_str()) || name.starts_with("mutants.out");
            if !skipped {
                collect(&path, extensions, found)?;
            }
        } else if path.extension().is_some_and(|ext| extensions.iter().any(|wanted| ext == *wanted)) {
            let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
            let path = path.strip_prefix(root())?.to_string_lossy().into_owned();
            found.push(Source { path, text });
        }
    }
    Ok(())
}
