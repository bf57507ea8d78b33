//! The socket door over real Unix sockets: what each kind of peer writes and reads.

mod control;
mod hello;
mod hostile;
mod seed1;
mod seed3;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

use super::Door;
use crate::testing::House;
use crate::tokens::Tokens;

/// A door with a hub behind it.
struct Street {
    house: House,
    door: Arc<Door>,
}

/// The far end of one connection.
struct Peer {
    lines: Lines<BufReader<OwnedReadHalf>>,
    write: OwnedWriteHalf,
}

impl Street {
    fn new() -> Self {
        Self::of(House::new())
    }

    fn of(house: House) -> Self {
        let tokens = Arc::new(Tokens::open(&house.hub.settings.paths.state_dir).unwrap());
        let door = Arc::new(Door::new(Arc::clone(&house.hub), tokens, crate::lifecycle::catalog()));
        Self { house, door }
    }

    fn connect(&self) -> Peer {
        let (ours, theirs) = UnixStream::pair().unwrap();
        tokio::spawn(Arc::clone(&self.door).serve(theirs));
        Peer::of(ours)
    }

    /// A connection that has said hello and was welcomed.
    async fn greeted(&self, hello: Value) -> Peer {
        let mut peer = self.connect();
        let welcome = peer.ask(json!({"tabmux": 1, "hello": hello})).await;
        assert!(welcome.get("welcome").is_some(), "{welcome}");
        peer
    }

    async fn cli(&self) -> Peer {
        self.greeted(json!({"role": "cli", "program": "test", "pid": 1})).await
    }
}

impl Peer {
    fn of(stream: UnixStream) -> Self {
        let (read, write) = stream.into_split();
        Self { lines: BufReader::new(read).lines(), write }
    }

    async fn send(&mut self, frame: Value) {
        self.send_bytes(format!("{frame}\n").as_bytes()).await;
    }

    async fn send_bytes(&mut self, bytes: &[u8]) {
        self.write.write_all(bytes).await.unwrap();
    }

    async fn next(&mut self) -> Option<Value> {
        self.next_line().await.map(|line| serde_json::from_str(&line).unwrap())
    }

    async fn next_line(&mut self) -> Option<String> {
        let line = tokio::time::timeout(Duration::from_secs(60), self.lines.next_line()).await.expect("an answer in time");
        line.ok().flatten()
    }

    async fn read(&mut self) -> Value {
        self.next().await.expect("a line, not the end")
    }

    async fn ask(&mut self, frame: Value) -> Value {
        self.send(frame).await;
        self.read().await
    }
}

/// The code of an error frame, whatever its shape.
fn code(frame: &Value) -> &str {
    let error = frame.get("error").or_else(|| frame.pointer("/payload/error"));
    error.and_then(|error| error["code"].as_str()).unwrap_or_else(|| panic!("no error in {frame}"))
}
