//! The daemon's life: take the lock, bind the socket, serve, drain, clean up. The lock, held for life, is what
//! makes it the only one; the socket is bound under another name and renamed into place, so that whoever can
//! connect is served (FACTS §3). The start dance of clients is the binary's.

use std::fs::File;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tabmux_core::{Code, Fault};
use tabmux_mcp::{Catalog, Fixtures, ToolListing};
use tabmux_tools::Effect;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::backend::HubBackend;
use crate::http::{Behind, Bounds, HttpDoor, HttpSessionsTable, ListenError};
use crate::hub::{Doorway, Hub};
use crate::rundir;
use crate::settings::{Listen, OnConflict, Paths, Settings};
use crate::socket::Door;
use crate::tokens::Tokens;

/// How long a former daemon may take to end before its successor gives up; longer than its drain.
const FORMER_DAEMON: Duration = Duration::from_secs(15);

/// How long a daemon with another socket may take to end that keeps its state in the same place.
const SAME_STATE: Duration = Duration::from_secs(2);

/// How often the daemon sees whether its socket is still where it put it.
const SOCKET_WATCH: Duration = Duration::from_secs(2);

/// How long a stop may take in all (CONTRACT.md), short of what writing the journal's last lines takes.
const STOP_WITHIN: Duration = Duration::from_millis(4800);

/// How long connections may take to say goodbye at least, however long the calls took.
const GOODBYE: Duration = Duration::from_millis(300);

/// The daemon serves.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    pub listen: Option<SocketAddr>,
}

/// Why it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// It was told to.
    Stopped,
    /// Nothing was left to serve.
    Empty,
    /// A newer daemon takes its place; sessions and browsers are left to it.
    Replaced,
}

/// Runs the daemon until it ends. `ready` is called once it can be connected to.
pub async fn run(settings: Settings, ready: impl FnOnce(Ready) + Send) -> Result<Exit, Fault> {
    let locks = own_the_place(&settings.paths, FORMER_DAEMON)?;
    let socket = BoundSocket::bind(&settings.paths.socket)?;
    let paths = settings.paths.clone();
    let tokens = Arc::new(Tokens::open(&paths.state_dir)?);
    let hub = Hub::new(settings).map_err(|error| {
        Fault::new(Code::Internal, error.to_string(), "See whether the state directory can be written, or set TABMUX_STATE_DIR.")
    })?;
    let catalog = catalog();
    let door = Arc::new(Door::new(Arc::clone(&hub), Arc::clone(&tokens), catalog.clone()));
    let http = open_http(&door, tokens, catalog).await;
    match write_pid(&paths.pid_file) {
        // The lock says that we live; the file is for people. A full disk is no reason to serve nobody.
        Err(fault) if fault.code == Code::NoSpace => tracing::warn!(%fault, "no pid file"),
        written => written?,
    }
    watch_signals(&hub)?;
    tokio::spawn(Arc::clone(&hub).give_way());
    let keeping_time = tokio::spawn(Arc::clone(&hub).keep_time());
    let browsers = Arc::clone(&hub);
    browsers.browsers.begin_to_take_over();
    tokio::spawn(async move { browsers.browsers.attach_ahead().await });
    let connections = TaskTracker::new();
    let accepting = tokio::spawn(accept(socket, Arc::clone(&door), connections.clone()));
    tracing::info!(pid = std::process::id(), socket = %paths.socket.display(), "daemon ready");
    ready(Ready { listen: door.listen.get().copied() });

    hub.stopping.cancelled().await;
    let exit = match hub.farewell() {
        "empty" => Exit::Empty,
        "upgrade" => Exit::Replaced,
        _ => Exit::Stopped,
    };
    tracing::info!(?exit, "daemon stops");
    let ends = tokio::time::Instant::now() + STOP_WITHIN;
    // The accept loop unlinks the socket first: who comes now waits for the next daemon.
    drop(accepting.await);
    keeping_time.abort();
    match exit {
        Exit::Replaced => hub.finish_calls().await,
        Exit::Stopped | Exit::Empty => hub.drain().await,
    }
    door.closing.cancel();
    connections.close();
    let ends = ends.max(tokio::time::Instant::now() + GOODBYE);
    let http_closed = async {
        if let Some(http) = &http {
            http.closed().await;
        }
    };
    let goodbyes = async {
        if tokio::time::timeout_at(ends, async { tokio::join!(connections.wait(), http_closed) }).await.is_err() {
            tracing::warn!("some connections did not end in time");
        }
    };
    let browsers = async {
        if exit != Exit::Replaced {
            hub.browsers.end().await;
        }
    };
    tokio::join!(goodbyes, browsers);
    // What ended is not kept on disk: where its tabs were is its owner's affair (S3.29).
    let tidied = hub.look(|registry| hub.store.snapshot(registry, hub.clock.now()));
    hub.settled(tidied).await;
    hub.store.close().await;
    remove_own_pid(&paths.pid_file);
    drop(locks);
    Ok(exit)
}

/// Checks the directories and takes the locks that make this process the only daemon here (S1.9, S1.12).
fn own_the_place(paths: &Paths, wait: Duration) -> Result<(File, Option<File>), Fault> {
    let untrusted = |error: rundir::DirError| Fault::new(Code::PolicyDenied, error.to_string(), error.hint());
    rundir::prepare_private(&paths.runtime_dir).map_err(untrusted)?;
    rundir::prepare_private(&paths.state_dir).map_err(untrusted)?;
    let place = rundir::take_lock(&paths.lock, wait).map_err(|error| {
        let pid = std::fs::read_to_string(&paths.pid_file).unwrap_or_default();
        let message = format!("{error} The daemon that runs there has pid {}.", pid.trim());
        Fault::new(Code::Capacity, message, "Use it, or end it with `tabmux stop`.")
    })?;
    Ok((place, own_the_state(paths)?))
}

/// Two daemons may have different sockets and the same state directory, where each would take the other's sessions for its own leavings.
fn own_the_state(paths: &Paths) -> Result<Option<File>, Fault> {
    let (lock, about) = (paths.state_dir.join("daemon.lock"), paths.state_dir.join("daemon.socket"));
    let state = match rundir::take_lock(&lock, SAME_STATE) {
        Ok(state) => state,
        Err(rundir::LockError::Held { .. }) => {
            let socket = std::fs::read_to_string(&about).unwrap_or_default();
            let message = format!("Another daemon keeps its state in {}; it listens at {}.", paths.state_dir.display(), socket.trim());
            let hint =
                "Use that one (--socket, or its TABMUX_RUNTIME_DIR), or give this one a state of its own (TABMUX_STATE_DIR, -L NAME).";
            return Err(Fault::new(Code::Capacity, message, hint));
        }
        // A full disk is no reason to serve nobody.
        Err(error) => {
            tracing::warn!(%error, "the state directory is not locked");
            return Ok(None);
        }
    };
    if let Err(error) = std::fs::write(&about, paths.socket.display().to_string()) {
        tracing::warn!(%error, "where this daemon listens is not written down for others");
    }
    Ok(Some(state))
}

/// A socket that is where clients look for it.
struct BoundSocket {
    listener: UnixListener,
    path: PathBuf,
    inode: (u64, u64),
}

impl BoundSocket {
    /// Binds a temporary name, closes it to others, and renames it into place; whatever stood there is replaced.
    fn bind(path: &Path) -> Result<Self, Fault> {
        let failed = |what: &str, error: std::io::Error| {
            let message = format!("The socket {} cannot be {what}: {error}.", path.display());
            Fault::new(Code::PolicyDenied, message, "See whether its directory can be written, or set TABMUX_RUNTIME_DIR.")
        };
        let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
        // Left by a killed daemon that had this pid.
        drop(std::fs::remove_file(&temporary));
        let address = rundir::socket_address(&temporary).map_err(|error| failed("named", error))?;
        let listener = UnixListener::bind(address.path()).map_err(|error| failed("bound", error))?;
        std::fs::set_permissions(&temporary, PermissionsExt::from_mode(0o600)).map_err(|error| failed("closed to others", error))?;
        let inode = inode(&temporary).ok_or_else(|| failed("found", std::io::ErrorKind::NotFound.into()))?;
        std::fs::rename(&temporary, path).map_err(|error| failed("put in place", error))?;
        Ok(Self { listener, path: path.to_owned(), inode })
    }

    fn is_in_place(&self) -> bool {
        inode(&self.path) == Some(self.inode)
    }
}

impl Drop for BoundSocket {
    fn drop(&mut self) {
        if self.is_in_place() {
            // Gone already is as good.
            drop(std::fs::remove_file(&self.path));
        }
    }
}

fn inode(path: &Path) -> Option<(u64, u64)> {
    std::fs::symlink_metadata(path).ok().map(|meta| (meta.dev(), meta.ino()))
}

/// Takes connections in until the daemon stops.
async fn accept(mut socket: BoundSocket, door: Arc<Door>, connections: TaskTracker) {
    let mut watch = tokio::time::interval(SOCKET_WATCH);
    loop {
        tokio::select! {
            () = door.hub.stopping.cancelled() => return,
            accepted = socket.listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(Arc::clone(&door).serve(stream));
                }
                Err(error) => {
                    // No descriptors left, or the peer is gone again: others must not starve meanwhile.
                    tracing::warn!(%error, "a connection could not be taken in");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
            },
            _ = watch.tick() => {
                if !socket.is_in_place() {
                    tracing::warn!(path = %socket.path.display(), "the socket was removed or replaced; putting it back");
                    match BoundSocket::bind(&socket.path) {
                        Ok(again) => socket = again,
                        Err(fault) => tracing::warn!(%fault, "the socket could not be put back"),
                    }
                }
            }
        }
    }
}

/// Opens the HTTP door. A taken port does not stop the daemon: its socket still serves (C2).
async fn open_http(door: &Arc<Door>, tokens: Arc<Tokens>, catalog: Catalog) -> Option<HttpDoor> {
    let hub = &door.hub;
    let fixtures = if hub.settings.conformance_fixtures { Fixtures::Conformance } else { Fixtures::None };
    let backend = Arc::new(HubBackend::new(Arc::clone(hub)));
    let mcp =
        tabmux_mcp::HttpDoor::new(Arc::new(Doorway(Arc::clone(hub))), catalog, fixtures, Arc::clone(&backend) as _, door.closing.clone());
    let sessions = Arc::new(HttpSessionsTable::new(backend.remembered(), Arc::clone(&backend) as _));
    let mcp: crate::http::McpService = Arc::new(move |request| {
        let mcp = mcp.clone();
        Box::pin(async move { mcp.handle(request).await })
    });
    let behind = Behind { backend, tokens, sessions, mcp };
    match start_http(&hub.settings, behind, &door.closing).await {
        Ok(http) => {
            for error in http.iter().flat_map(|http| &http.missing) {
                tracing::warn!(%error, "one of listen.also is not served");
            }
            if let Some(http) = &http {
                door.listen.get_or_init(|| http.addr);
            }
            http
        }
        Err(error) => {
            tracing::warn!(%error, "no HTTP door");
            door.listen_error.get_or_init(|| error.fault().message);
            None
        }
    }
}

/// With a port of the system's choice (`-L`), the former daemon's is taken again: HTTP clients keep their address.
async fn start_http(settings: &Settings, behind: Behind, closing: &CancellationToken) -> Result<Option<HttpDoor>, ListenError> {
    let memory = settings.paths.state_dir.join("http-port");
    let former = std::fs::read_to_string(&memory).ok().and_then(|text| text.trim().parse::<u16>().ok());
    if let (Some(addr), Some(port)) = (settings.listen.addr.filter(|addr| addr.port() == 0), former) {
        let again = Listen { addr: Some(SocketAddr::new(addr.ip(), port)), on_conflict: OnConflict::Refuse, ..settings.listen.clone() };
        if let Ok(http) = HttpDoor::start(&again, behind.clone(), Bounds::default(), closing.clone()).await {
            return Ok(http);
        }
    }
    let http = HttpDoor::start(&settings.listen, behind, Bounds::default(), closing.clone()).await?;
    if let Some(Err(error)) = http.as_ref().map(|http| std::fs::write(&memory, format!("{}\n", http.addr.port()))) {
        tracing::warn!(%error, "the HTTP port could not be written down; after a crash it may be another");
    }
    Ok(http)
}

/// The tool table as the MCP door lists it.
pub(crate) fn catalog() -> Catalog {
    let listing = |tool: &tabmux_tools::Tool| ToolListing {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        schema: tabmux_tools::listing(tool)["inputSchema"].take(),
        read_only: tool.effect == Effect::Read,
        level: tool.level,
    };
    Catalog::new(tabmux_tools::TABLE.iter().map(listing).collect())
}

/// Written whole or not at all (S1.4).
fn write_pid(path: &Path) -> Result<(), Fault> {
    let temporary = path.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&temporary, format!("{}\n", std::process::id()))
        .and_then(|()| std::fs::set_permissions(&temporary, PermissionsExt::from_mode(0o600)))
        .and_then(|()| std::fs::rename(&temporary, path))
        .map_err(|error| {
            drop(std::fs::remove_file(&temporary));
            let code = if error.kind() == std::io::ErrorKind::StorageFull { Code::NoSpace } else { Code::PolicyDenied };
            Fault::new(
                code,
                format!("The pid file {} cannot be written: {error}.", path.display()),
                "Free some space, or set TABMUX_RUNTIME_DIR.",
            )
        })
}

fn remove_own_pid(path: &Path) {
    let own = std::fs::read_to_string(path).is_ok_and(|text| text.trim() == std::process::id().to_string());
    if own {
        // Gone already is as good.
        drop(std::fs::remove_file(path));
    }
}

/// SIGTERM and SIGINT stop gracefully; SIGHUP is a terminal's, not ours.
fn watch_signals(hub: &Arc<Hub>) -> Result<(), Fault> {
    let failed = |error: std::io::Error| Fault::new(Code::Internal, format!("Signals cannot be watched: {error}."), "Please report it.");
    let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
    let hub = Arc::clone(hub);
    let stopping: CancellationToken = hub.stopping.clone();
    tokio::spawn(async move {
        loop {
            tokio::select! {
                _ = terminate.recv() => return hub.say_farewell("stop"),
                _ = interrupt.recv() => return hub.say_farewell("stop"),
                _ = hangup.recv() => tracing::info!("hang-up ignored"),
                () = stopping.cancelled() => return,
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests;
