//! The Unix socket door. The first line says who speaks: a versioned hello (then MCP for a shim, or the command
//! line's requests), Seed 1's frames, or Seed 3's methods. Peers are checked before they are read, lines are
//! bounded, and a peer that says nothing is let go.

mod control;
mod frame;
mod hello;
mod replies;
mod seed1;
mod seed3;
#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tabmux_core::{Code, Fault, Identity};
use tabmux_mcp::Catalog;
use tabmux_wire::MAX_FRAME_BYTES;
use tabmux_wire::control::WireFault;
use tabmux_wire::lines::{Line, LineReader};
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use self::frame::Frame;
use crate::hub::Hub;
use crate::tokens::Tokens;

/// Connections served at once.
const MAX_CONNECTIONS: usize = 1024;

/// How long a new peer may take to say who it is.
const FIRST_LINE: Duration = Duration::from_secs(10);

/// What every connection needs.
#[derive(Debug)]
pub(crate) struct Door {
    pub(crate) hub: Arc<Hub>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) catalog: Catalog,
    /// Where the HTTP door is, once it is open.
    pub(crate) listen: OnceLock<std::net::SocketAddr>,
    /// Why it is not, where it should be.
    pub(crate) listen_error: OnceLock<String>,
    /// Everything has drained: say goodbye and close.
    pub(crate) closing: CancellationToken,
    places: Semaphore,
}

type Reader = LineReader<BufReader<OwnedReadHalf>>;

impl Door {
    pub(crate) fn new(hub: Arc<Hub>, tokens: Arc<Tokens>, catalog: Catalog) -> Self {
        let (listen, listen_error, closing) = (OnceLock::new(), OnceLock::new(), CancellationToken::new());
        Self { hub, tokens, catalog, listen, listen_error, closing, places: Semaphore::new(MAX_CONNECTIONS) }
    }

    /// Serves one connection until it ends.
    pub(crate) async fn serve(self: Arc<Self>, stream: UnixStream) {
        if let Err(fault) = check_peer(&stream) {
            tracing::warn!(%fault, "a peer was refused");
            return;
        }
        let (read, mut write) = stream.into_split();
        let Ok(_place) = self.places.try_acquire() else {
            let message = format!("All {MAX_CONNECTIONS} connections are in use.");
            refuse(&mut write, &Fault::new(Code::Capacity, message, "End a client, then connect again.")).await;
            return;
        };
        let mut reader = LineReader::new(BufReader::with_capacity(4096, read), MAX_FRAME_BYTES);
        let first = tokio::select! {
            first = tokio::time::timeout(FIRST_LINE, reader.next()) => first,
            // The daemon ends before this peer said anything: it connects again, to the next one.
            () = self.hub.stopping.cancelled() => return,
        };
        match first {
            Ok(Ok(Line::Whole(line))) => self.welcome(&line, reader, write).await,
            Ok(Ok(Line::TooLong { bytes, .. })) => refuse(&mut write, &too_long(bytes)).await,
            Ok(Ok(Line::End) | Err(_)) => {}
            Err(_) => {
                let message = "Nothing came for 10 seconds.";
                refuse(&mut write, &Fault::new(Code::Timeout, message, "Send a hello, a REGISTER or a method as the first line.")).await;
            }
        }
    }

    async fn welcome(self: &Arc<Self>, line: &[u8], reader: Reader, mut write: OwnedWriteHalf) {
        let first = match Frame::parse(line) {
            Ok(first) => first,
            Err(fault) => return refuse(&mut write, &fault).await,
        };
        if first.body.get("tabmux").is_some() {
            self.hello(first.body, reader, write).await;
        } else if first.body.get("type").is_some() {
            self.seed1(first, reader, write).await;
        } else if first.body.get("method").is_some() {
            self.seed3(first, reader, write).await;
        } else {
            let hint = r#"Begin with {"tabmux":1,"hello":{…}}, {"type":"REGISTER","id":…} or {"id":…,"method":…}."#;
            refuse(&mut write, &Fault::new(Code::BadArgument, "The first line is none that this door knows.", hint)).await;
        }
    }
}

/// Only processes of our own user may come in (root is everybody's).
fn check_peer(stream: &UnixStream) -> Result<(), Fault> {
    let own = rustix::process::geteuid().as_raw();
    let peer =
        stream.peer_cred().map_err(|error| Fault::new(Code::Unauthorized, format!("The peer cannot be identified: {error}."), ""))?;
    if peer.uid() == own || peer.uid() == 0 {
        return Ok(());
    }
    let message = format!("The peer runs as user {}, this daemon as {own}.", peer.uid());
    Err(Fault::new(Code::Unauthorized, message, "Start a daemon of your own."))
}

/// One last line to a peer that cannot be served.
async fn refuse(write: &mut OwnedWriteHalf, fault: &Fault) {
    let line = format!("{}\n", json!({"tabmux": tabmux_wire::VERSION, "type": "ERROR", "error": WireFault::from(fault)}));
    // The peer may be gone already; there is nobody else to tell.
    drop(tokio::time::timeout(Duration::from_secs(1), write.write_all(line.as_bytes())).await);
}

pub(crate) fn too_long(bytes: u64) -> Fault {
    let message = format!("The line has {bytes} bytes; at most {MAX_FRAME_BYTES} are taken.");
    Fault::new(Code::FrameTooLarge, message, "Send less at once, or pass the name of a file.")
}

/// The identity a secret stands for. Only the hash is kept, here and in the journal.
pub(crate) fn identity_of_secret(secret: &str) -> Identity {
    use sha2::Digest;
    let digest = sha2::Sha256::digest(secret.as_bytes());
    let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    Identity::Secret(hex.into())
}

/// An identity nobody else has and nobody can take again: of a connection that brings no secret.
fn identity_of_connection() -> Identity {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).expect("the kernel gives random bytes once it has booted");
    let hex: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
    Identity::Secret(format!("connection-{hex}").into())
}

/// A text field of a frame; absent and null are the same.
fn text_of<'a>(frame: &'a Value, key: &str) -> Result<Option<&'a str>, Fault> {
    match frame.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(other) => {
            let message = format!("'{key}' is {other}, not a text.");
            Err(Fault::new(Code::BadArgument, message.chars().take(200).collect::<String>(), format!("Send '{key}' as a JSON string.")))
        }
    }
}

/// A missing version means 1 (C10).
fn check_version(frame: &Value) -> Result<(), Fault> {
    match frame.get("version") {
        None | Some(Value::Null) => Ok(()),
        Some(version) if version.as_u64() == Some(1) => Ok(()),
        Some(version) => {
            let shown: String = version.to_string().chars().take(100).collect();
            let message = format!("Version {shown} of this protocol is unknown.");
            Err(Fault::new(Code::ProtocolVersion, message, "Send version 1, or none."))
        }
    }
}
