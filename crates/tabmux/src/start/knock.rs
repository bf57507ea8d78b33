//! One attempt to connect, and what its failure means. A refused connection is the only sign that nobody is
//! there; a full backlog or a slow daemon never is.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_peercred};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use tabmux_core::Code;
use tabmux_daemon::rundir;

use crate::failure::Failure;

#[derive(Debug)]
pub(super) enum Refusal {
    /// Nobody listens; whatever file is there is a leftover.
    NoDaemon,
    /// The daemon lives but took nobody in until the deadline.
    Busy,
    /// This process may not use Unix sockets.
    Blocked(io::Error),
    /// Somebody else listens there.
    Foreign {
        uid: u32,
    },
    Other(io::Error),
}

pub(super) fn knock(socket: &Path, deadline: Instant) -> Result<UnixStream, Refusal> {
    let address = rundir::socket_address(socket).map_err(Refusal::from)?;
    let unix = SocketAddrUnix::new(address.path()).map_err(Refusal::from)?;
    let fd = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    // A full backlog makes connect wait, for as long as the socket may send.
    let patience = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
    set_socket_timeout(&fd, Timeout::Send, Some(patience))?;
    rustix::io::retry_on_intr(|| connect(&fd, &unix))?;
    set_socket_timeout(&fd, Timeout::Send, None)?;
    let (peer, me) = (socket_peercred(&fd)?.uid, rustix::process::geteuid());
    if peer != me {
        return Err(Refusal::Foreign { uid: peer.as_raw() });
    }
    Ok(UnixStream::from(fd))
}

impl From<Errno> for Refusal {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::CONNREFUSED | Errno::NOTDIR => Self::NoDaemon,
            Errno::AGAIN => Self::Busy,
            Errno::PERM | Errno::ACCESS | Errno::AFNOSUPPORT | Errno::PROTONOSUPPORT => Self::Blocked(errno.into()),
            other => Self::Other(other.into()),
        }
    }
}

impl From<io::Error> for Refusal {
    fn from(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(raw) => Errno::from_raw_os_error(raw).into(),
            None => Self::Other(error),
        }
    }
}

impl Refusal {
    pub(super) fn failure(&self, socket: &Path) -> Failure {
        let at = socket.display();
        match self {
            // Nothing of tabmux is at fault, and who asked for a session has none here.
            Self::NoDaemon => Failure::unavailable(
                Code::SessionNotFound,
                format!("No tabmux daemon is running at {at}."),
                "Start one with `tabmux up`, or let `tabmux mcp` or `tabmux new` start it.",
            ),
            Self::Busy => Failure::unavailable(
                Code::Timeout,
                format!("The daemon at {at} is running but took no new connection in time."),
                "Try again; if it stays so, end it with `tabmux stop`.",
            ),
            Self::Blocked(error) => Failure::unavailable(
                Code::PolicyDenied,
                format!("This process may not use the Unix socket {at}: {error}."),
                "A sandbox seems to block it: allow Unix sockets there (in Claude Code: sandbox.network.allowAllUnixSockets), \
                 or run `tabmux up` outside and use its HTTP address with a token.",
            ),
            Self::Foreign { uid } => Failure::unavailable(
                Code::PolicyDenied,
                format!("The socket {at} belongs to a process of user {uid}, not to yours, so nothing was sent to it."),
                "Remove the socket, or set TABMUX_RUNTIME_DIR to a directory of your own.",
            ),
            Self::Other(error) => Failure::io(&format!("The socket {at} cannot be reached"), error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;
    use std::os::unix::net::UnixListener;

    fn soon() -> Instant {
        Instant::now() + Duration::from_millis(50)
    }

    #[test]
    fn nobody_a_leftover_socket_and_a_plain_file_all_mean_no_daemon() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s");
        assert!(matches!(knock(&path, soon()), Err(Refusal::NoDaemon)));
        drop(UnixListener::bind(&path).unwrap());
        assert!(path.exists());
        assert!(matches!(knock(&path, soon()), Err(Refusal::NoDaemon)));
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "squatter").unwrap();
        assert!(matches!(knock(&path, soon()), Err(Refusal::NoDaemon)));
    }

    /// A script that makes the session it does not find does right.
    #[test]
    fn that_no_daemon_runs_is_no_fault_of_tabmux_itself() {
        let failure = Refusal::NoDaemon.failure(Path::new("/run/t.sock"));
        assert_eq!((failure.exit, failure.fault.code), (Exit::Unavailable, Code::SessionNotFound));
    }

    #[test]
    fn a_full_backlog_is_a_busy_daemon_and_never_an_absent_one() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("s");
        let _listener = UnixListener::bind(&path).unwrap();
        let mut waiting = Vec::new();
        let refusal = loop {
            match knock(&path, soon()) {
                Ok(stream) => waiting.push(stream),
                Err(refusal) => break refusal,
            }
        };
        assert!(matches!(refusal, Refusal::Busy), "{refusal:?}");
        assert_eq!(refusal.failure(&path).fault.code, Code::Timeout);
    }

    /// S1.30
    #[test]
    fn a_sandbox_that_blocks_unix_sockets_is_said_in_words_with_the_way_out() {
        for errno in [Errno::PERM, Errno::ACCESS, Errno::AFNOSUPPORT] {
            let failure = Refusal::from(errno).failure(Path::new("/run/t.sock"));
            assert_eq!(failure.exit, Exit::Unavailable);
            assert!(failure.fault.message.contains("/run/t.sock"));
            assert!(failure.fault.hint.contains("sandbox") && failure.fault.hint.contains("HTTP"));
        }
    }
}
