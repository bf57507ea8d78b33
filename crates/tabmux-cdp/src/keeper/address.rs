//! Sockets in directories whose path is longer than a socket's address can be.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// `sun_path` holds 108 bytes, the last one a NUL (unix(7)).
const MAX_SOCKET_PATH_BYTES: usize = 107;

/// A path that fits into a socket address. Keep it alive until `bind` or `connect` has returned.
#[derive(Debug)]
pub struct SocketAddress {
    path: PathBuf,
    /// The directory a long path goes through.
    _directory: Option<OwnedFd>,
}

/// The address to bind or connect for `path`. A path that is too long goes through an open handle of its directory.
pub fn socket_address(path: &Path) -> io::Result<SocketAddress> {
    if path.as_os_str().as_bytes().len() <= MAX_SOCKET_PATH_BYTES {
        return Ok(SocketAddress { path: path.into(), _directory: None });
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the socket path has no file name"));
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(parent, flags, rustix::fs::Mode::empty())?;
    let short = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
    if short.as_os_str().as_bytes().len() > MAX_SOCKET_PATH_BYTES {
        let message = format!("the socket's file name is longer than a socket address can be; {MAX_SOCKET_PATH_BYTES} bytes are possible");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    if !Path::new("/proc/self/fd").exists() {
        let message = format!(
            "the socket path has more than {MAX_SOCKET_PATH_BYTES} bytes and this system has no /proc; set TABMUX_RUNTIME_DIR to a shorter one"
        );
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    Ok(SocketAddress { path: short, _directory: Some(directory) })
}

impl SocketAddress {
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::{UnixListener, UnixStream};

    use super::*;

    #[test]
    fn a_socket_in_a_directory_of_200_characters_can_be_bound_and_reached() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("d".repeat(100)).join("e".repeat(100));
        std::fs::create_dir_all(&dir).unwrap();
        let path = dir.join("tabmux.sock");
        let listener = UnixListener::bind(socket_address(&path).unwrap().path()).unwrap();
        assert!(path.exists());
        let mut client = UnixStream::connect(socket_address(&path).unwrap().path()).unwrap();
        client.write_all(b"x").unwrap();
        let mut byte = [0];
        listener.accept().unwrap().0.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"x");
    }
}
