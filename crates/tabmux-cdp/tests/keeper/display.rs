//! A display of the test's own, for visible browsers.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

pub(crate) struct Display {
    server: Child,
    pub(crate) name: String,
}

impl Display {
    pub(crate) fn new() -> Self {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"]);
        let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the package xvfb");
        let mut number = String::new();
        BufReader::new(server.stdout.take().expect("it is piped")).read_line(&mut number).expect("Xvfb says its number");
        Self { server, name: format!(":{}", number.trim()) }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        // It ends with its test, however that ended.
        drop(self.server.kill());
        drop(self.server.wait());
    }
}
