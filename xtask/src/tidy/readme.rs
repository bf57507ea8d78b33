//! Every `make` and `cargo xtask` command the documents name exists. The `tabmux` commands they name are
//! checked against the binary itself, in crates/tabmux/tests/cli.rs.

use anyhow::Result;
use clap::CommandFactory;

use crate::{Chore, workspace};

pub(super) fn check() -> Result<Vec<String>> {
    let makefile = workspace::read("Makefile")?;
    let mut findings = Vec::new();
    for document in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"] {
        for command in commands(&workspace::read(document)?) {
            let known = match command.as_slice() {
                ["make", target, ..] => makefile.lines().any(|line| line.starts_with(&format!("{target}:"))),
                ["cargo", "xtask", chore, ..] => Chore::command().find_subcommand(chore).is_some(),
                _ => true,
            };
            if !known {
                findings.push(format!("{document}: there is no command `{}`", command.join(" ")));
            }
        }
    }
    Ok(findings)
}

/// The words of every inline code span and every line of a shell block.
fn commands(markdown: &str) -> Vec<Vec<&str>> {
    let mut spans: Vec<&str> = Vec::new();
    let mut fenced = None;
    for line in markdown.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fenced = if fenced.is_some() { None } else { Some(language.trim()) };
        } else if matches!(fenced, Some("sh" | "")) {
            spans.push(line);
        } else if fenced.is_none() {
            spans.extend(line.split('`').skip(1).step_by(2));
        }
    }
    spans.into_iter().map(|span| span.split_whitespace().collect()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_from_code_spans_and_shell_blocks() {
        let found = commands("Run `make test` or\n```sh\ncargo xtask tidy\n```\n```json\nmake nothing\n```\n");
        assert_eq!(found, [vec!["make", "test"], vec!["cargo", "xtask", "tidy"]]);
    }
}
