//! A plain peer of the daemon's Unix socket: writes lines, reads lines, each with a deadline.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::Value;

use super::SOON;

#[derive(Debug)]
pub struct Door {
    writer: UnixStream,
    reader: BufReader<UnixStream>,
}

impl Door {
    pub fn open(socket: &Path) -> Self {
        let writer = UnixStream::connect(socket).unwrap_or_else(|error| panic!("cannot connect to {}: {error}", socket.display()));
        writer.set_read_timeout(Some(SOON)).expect("a timeout can be set");
        writer.set_write_timeout(Some(SOON)).expect("a timeout can be set");
        let reader = BufReader::new(writer.try_clone().expect("a socket can be cloned"));
        Self { writer, reader }
    }

    pub fn send(&mut self, message: &Value) {
        self.send_bytes(format!("{message}\n").as_bytes());
    }

    pub fn send_bytes(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).expect("the daemon reads");
    }

    /// Writes as much as the daemon takes; says whether it took all.
    pub fn try_send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.writer.write_all(bytes)
    }

    /// The next line, or nothing when the daemon has closed the connection.
    pub fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.reader.read_line(&mut line);
        match read {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|_| panic!("the daemon writes JSON lines, but there is: {line}"))),
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("no line from the daemon: {error}"),
        }
    }

    pub fn ask(&mut self, message: &Value) -> Value {
        self.send(message);
        self.next().unwrap_or_else(|| panic!("the daemon hung up on {message}"))
    }

    /// Closes the writing half only.
    pub fn shut_writing(&self) {
        self.writer.shutdown(std::net::Shutdown::Write).expect("an open socket can be shut");
    }
}
