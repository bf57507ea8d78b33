//! Getting a port, and saying who has it when it is taken. The holder is named and never touched (C2).

use std::fmt;
use std::fs;
use std::io;
use std::net::SocketAddr;

use tabmux_core::{Code, Fault};
use tokio::net::TcpListener;

use crate::settings::OnConflict;

/// How many ports after a taken one are tried.
const NEXT_PORTS: u16 = 100;

/// Why a port is not served.
#[derive(Debug, thiserror::Error)]
pub enum ListenError {
    #[error("The port {addr} is taken by {holder}.")]
    Taken { addr: SocketAddr, holder: Holder },
    #[error("The address {addr} is not a loopback address.")]
    NotLoopback { addr: SocketAddr },
    #[error("The port {addr} cannot be opened: {source}.")]
    Io { addr: SocketAddr, source: io::Error },
}

/// Who listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Holder {
    Process {
        pid: u32,
        name: String,
    },
    /// Its process cannot be seen from here.
    OfUser(u32),
    Unknown,
}

impl ListenError {
    /// Why `addr` could not be bound. Looks for the holder of a taken port, which takes a moment.
    pub fn of_bind(addr: SocketAddr, source: io::Error) -> Self {
        match source.kind() {
            io::ErrorKind::AddrInUse => Self::Taken { addr, holder: find_holder(addr.port()) },
            _ => Self::Io { addr, source },
        }
    }

    /// The same with a way out, for `status`, `doctor` and the log.
    pub fn fault(&self) -> Fault {
        let hint = match self {
            Self::Taken { .. } => {
                "End that process yourself, choose another port with TABMUX_LISTEN, or set listen.on_conflict = \"next\"; the Unix socket is served all the same."
            }
            Self::NotLoopback { .. } => "Set listen.addr to 127.0.0.1 or [::1]; tabmux serves nobody outside this machine.",
            Self::Io { .. } => "Choose another port with TABMUX_LISTEN; the Unix socket is served all the same.",
        };
        Fault::new(Code::BadArgument, self.to_string(), hint)
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, name } => write!(f, "process {pid} ({name})"),
            Self::OfUser(uid) => write!(f, "a process of user {uid}"),
            Self::Unknown => f.write_str("another process"),
        }
    }
}

/// Opens `addr`, or with `Next` the first free port after it.
pub(super) async fn bind(addr: SocketAddr, on_conflict: OnConflict) -> Result<TcpListener, ListenError> {
    if !addr.ip().is_loopback() {
        return Err(ListenError::NotLoopback { addr });
    }
    let taken = match TcpListener::bind(addr).await {
        Ok(listener) => return Ok(listener),
        Err(error) => why(addr, error).await,
    };
    if matches!(taken, ListenError::Io { .. }) {
        return Err(taken);
    }
    let nexts = match on_conflict {
        OnConflict::Refuse => 0,
        OnConflict::Next => NEXT_PORTS,
    };
    for port in (1..=nexts).filter_map(|step| addr.port().checked_add(step)) {
        if let Ok(listener) = TcpListener::bind(SocketAddr::new(addr.ip(), port)).await {
            return Ok(listener);
        }
    }
    Err(taken)
}

/// Off the runtime's threads: a thousand processes are a thousand directories to read.
async fn why(addr: SocketAddr, error: io::Error) -> ListenError {
    let found = tokio::task::spawn_blocking(move || ListenError::of_bind(addr, error)).await;
    found.unwrap_or(ListenError::Taken { addr, holder: Holder::Unknown })
}

/// Linux: the kernel's socket table gives the inode, and the process that has it open is the holder.
fn find_holder(port: u16) -> Holder {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|table| fs::read_to_string(table).unwrap_or_default());
    let Some((uid, inode)) = tables.iter().flat_map(|table| table.lines()).find_map(|line| listening(line, port)) else {
        return Holder::Unknown;
    };
    match process_with(&format!("socket:[{inode}]")) {
        Some((pid, name)) => Holder::Process { pid, name },
        None => Holder::OfUser(uid),
    }
}

/// User and inode of a line that listens on `port`: `sl local_address rem_address st … uid timeout inode` (proc_net_tcp in the kernel's documentation).
fn listening(line: &str, port: u16) -> Option<(u32, u64)> {
    const LISTEN: &str = "0A";
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (_, hex_port) = fields.get(1)?.rsplit_once(':')?;
    let here = u16::from_str_radix(hex_port, 16) == Ok(port) && *fields.get(3)? == LISTEN;
    if here { Some((fields.get(7)?.parse().ok()?, fields.get(9)?.parse().ok()?)) } else { None }
}

fn process_with(socket: &str) -> Option<(u32, String)> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        let Ok(files) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
        files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == socket))
    };
    let pid = pids.find(has_it)?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    Some((pid, name.trim_end().to_owned()))
}
