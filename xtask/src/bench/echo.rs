//! The yardstick: a process that passes lines from stdin to a Unix socket and back, and one that echoes them.
//! The same hops and the same line discipline as `tabmux mcp` and the daemon, and nothing in between.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;

use anyhow::Result;

use super::client::Lines;

/// Starts both; the server ends with its only client.
pub(super) fn start(directory: &Path) -> Result<Lines> {
    let socket = directory.join("echo.sock");
    let this = std::env::current_exe()?;
    let mut server = Command::new(&this).arg("echo-server").arg(&socket).stdout(std::process::Stdio::piped()).spawn()?;
    // It says one line once it listens.
    let mut ready = [0; 6];
    server.stdout.take().expect("stdout is piped").read_exact(&mut ready)?;
    let mut shim = Command::new(&this);
    shim.arg("echo-shim").arg(&socket);
    std::thread::spawn(move || server.wait());
    Lines::start(shim)
}

/// Echoes the lines of one client.
pub(crate) fn serve(socket: &Path) -> Result<()> {
    let listener = UnixListener::bind(socket)?;
    println!("ready");
    let (client, _) = listener.accept()?;
    pass_lines(client.try_clone()?, client)
}

/// Passes lines from stdin to the socket and back to stdout.
pub(crate) fn shim(socket: &Path) -> Result<()> {
    let stream = UnixStream::connect(socket)?;
    let replies = stream.try_clone()?;
    std::thread::spawn(move || pass_lines(replies, std::io::stdout()));
    pass_lines(std::io::stdin(), &stream)?;
    Ok(stream.shutdown(std::net::Shutdown::Both)?)
}

fn pass_lines(from: impl Read, mut to: impl Write) -> Result<()> {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while from.read_until(b'\n', &mut line)? > 0 {
        to.write_all(&line)?;
        to.flush()?;
        line.clear();
    }
    Ok(())
}
