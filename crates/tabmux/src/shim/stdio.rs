//! The client's two pipes, read and written without a thread in between: tokio's own standard streams hand
//! every read and write to a blocking thread, which costs more than everything else a shim does. Terminals and
//! files still go that way.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream as StdStream;

use rustix::fs::{FileType, OFlags, fcntl_getfl, fcntl_setfl, fstat};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

/// Both streams, and how they were before. Whoever shares them finds them so again.
pub(super) struct Stdio {
    pub(super) input: Box<dyn AsyncRead + Unpin>,
    pub(super) output: Box<dyn AsyncWrite + Unpin>,
    _before: [Option<Flags>; 2],
}

/// Puts the flags of a stream back when it goes.
struct Flags {
    fd: OwnedFd,
    flags: OFlags,
}

impl Drop for Flags {
    fn drop(&mut self) {
        // The stream may be closed on the other side, which is no reason to complain.
        fcntl_setfl(&self.fd, self.flags).ok();
    }
}

impl Stdio {
    /// Needs a tokio runtime around it.
    pub(super) fn take() -> Self {
        let before = [Flags::of(&std::io::stdin()), Flags::of(&std::io::stdout())];
        let input = stream(&std::io::stdin()).map(Stream::reader);
        let output = stream(&std::io::stdout()).map(Stream::writer);
        Self {
            input: input.unwrap_or_else(|| Box::new(tokio::io::stdin())),
            output: output.unwrap_or_else(|| Box::new(tokio::io::stdout())),
            _before: before,
        }
    }
}

impl Flags {
    fn of(stream: &impl AsFd) -> Option<Self> {
        let fd = stream.as_fd().try_clone_to_owned().ok()?;
        let flags = fcntl_getfl(&fd).ok()?;
        Some(Self { fd, flags })
    }
}

enum Stream {
    In(pipe::Receiver),
    Out(pipe::Sender),
    /// What Node gives its children.
    Both(UnixStream),
}

impl Stream {
    fn reader(self) -> Box<dyn AsyncRead + Unpin> {
        match self {
            Self::In(pipe) => Box::new(pipe),
            Self::Both(socket) => Box::new(socket),
            Self::Out(_) => Box::new(tokio::io::stdin()),
        }
    }

    fn writer(self) -> Box<dyn AsyncWrite + Unpin> {
        match self {
            Self::Out(pipe) => Box::new(pipe),
            Self::Both(socket) => Box::new(socket),
            Self::In(_) => Box::new(tokio::io::stdout()),
        }
    }
}

/// A stream that can say when it is ready; `None` for what cannot.
fn stream(stdio: &impl AsFd) -> Option<Stream> {
    let fd = stdio.as_fd().try_clone_to_owned().ok()?;
    match FileType::from_raw_mode(fstat(&fd).ok()?.st_mode) {
        FileType::Fifo => match pipe::Receiver::from_owned_fd(fd) {
            Ok(pipe) => Some(Stream::In(pipe)),
            Err(_) => pipe::Sender::from_owned_fd(stdio.as_fd().try_clone_to_owned().ok()?).ok().map(Stream::Out),
        },
        FileType::Socket => {
            let socket = StdStream::from(fd);
            socket.set_nonblocking(true).ok()?;
            UnixStream::from_std(socket).ok().map(Stream::Both)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn pipes_and_sockets_are_read_without_a_thread_and_left_as_they_were() {
        let (read, mut write) = std::io::pipe().unwrap();
        let before = Flags::of(&read).unwrap();
        let was = before.flags;
        let mut reader = stream(&read).unwrap().reader();
        std::io::Write::write_all(&mut write, b"hello\n").unwrap();
        let mut text = [0; 6];
        reader.read_exact(&mut text).await.unwrap();
        assert_eq!(&text, b"hello\n");
        assert!(fcntl_getfl(&read).unwrap().contains(OFlags::NONBLOCK));
        drop((reader, before));
        assert_eq!(fcntl_getfl(&read).unwrap(), was);

        let (ours, theirs) = StdStream::pair().unwrap();
        stream(&ours).unwrap().writer().write_all(b"x").await.unwrap();
        std::io::Read::read_exact(&mut &theirs, &mut text[..1]).unwrap();
        assert_eq!(text[0], b'x');
    }

    #[test]
    fn a_file_goes_through_a_thread() {
        assert!(stream(&tempfile::tempfile().unwrap()).is_none());
    }
}
