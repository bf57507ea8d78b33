//! A display of the test's own, on which windows are shown to nobody.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub struct Display {
    server: Child,
    pub name: String,
}

impl Display {
    pub fn new() -> Self {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1920x1400x24", "-nolisten", "tcp"]);
        let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the package xvfb");
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Self { server, name: format!(":{}", number.trim()) }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // Gone already is what is wanted.
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
