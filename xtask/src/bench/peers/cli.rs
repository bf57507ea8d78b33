//! Agents that use a command line: a process for each call, and nothing of theirs between two.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use super::agent::Ground;
use super::check::JPEG;

pub(super) struct CommandLine {
    program: PathBuf,
    environment: Vec<(String, String)>,
    directory: PathBuf,
}

impl CommandLine {
    pub(super) fn new(ground: &Ground, program: &Path, mut environment: Vec<(String, String)>) -> Self {
        let home = ground.directory.to_string_lossy().into_owned();
        environment.extend([("HOME".to_owned(), home.clone()), ("TMPDIR".to_owned(), home)]);
        Self { program: program.to_owned(), environment, directory: ground.directory.clone() }
    }

    pub(super) fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_clear().envs(self.environment.iter().cloned()).current_dir(&self.directory);
        let output = command.stdin(Stdio::null()).output()?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        if !output.status.success() {
            bail!("{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stderr));
        }
        Ok(said)
    }

    /// Runs what writes a picture; what other agents get as base64 lies in a file here.
    pub(super) fn picture(&self, arguments: &[&str], name: &str) -> Result<String> {
        let file = self.directory.join(format!("{name}.jpg"));
        self.run(&[arguments, &[&file.to_string_lossy()]].concat())?;
        let is_jpeg = std::fs::read(&file)?.starts_with(&[0xff, 0xd8, 0xff]);
        Ok(if is_jpeg { JPEG.to_owned() } else { "the file is no picture".to_owned() })
    }
}
