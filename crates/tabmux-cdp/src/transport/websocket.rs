//! A browser's debugging WebSocket, for browsers that somebody else started. TLS is deliberately absent.

use std::future::ready;
use std::io;
use std::time::Duration;

use bytes::Bytes;
use futures::{SinkExt, StreamExt};
use tokio_tungstenite::connect_async_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error, Message};

use super::Transport;
use crate::{CdpError, Result};

/// A longer frame ends the connection, since none can be left out here; so it is as long as one page can make a machine with little memory bear.
const MAX_FRAME: usize = 1 << 30;

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Handshake {
    /// With this HTTP status instead.
    Answered(u16),
    Late,
    Failed(String),
}

impl Transport {
    /// Waits up to `limit`: a person's everyday browser asks them first, and answers only then.
    pub async fn websocket(url: &str, limit: Duration) -> Result<Self> {
        Self::handshake(url, limit).await.map_err(|error| {
            let why = match error {
                Handshake::Answered(status) => format!("HTTP status {status}"),
                Handshake::Late => format!("no answer within {limit:?}"),
                Handshake::Failed(why) => why,
            };
            CdpError::Disconnected(format!("no connection to {url}: {why}"))
        })
    }

    pub(crate) async fn handshake(url: &str, limit: Duration) -> std::result::Result<Self, Handshake> {
        let config = WebSocketConfig::default().max_message_size(Some(MAX_FRAME)).max_frame_size(Some(MAX_FRAME));
        let connecting = tokio::time::timeout(limit, Box::pin(connect_async_with_config(url, Some(config), true)));
        let (socket, _) = connecting.await.map_err(|_| Handshake::Late)?.map_err(|error| match error {
            Error::Http(answer) => Handshake::Answered(answer.status().as_u16()),
            other => Handshake::Failed(other.to_string()),
        })?;
        let (sink, stream) = socket.split();
        let outgoing = sink.with(|frame: String| ready(Ok::<_, Error>(Message::text(frame)))).sink_map_err(io::Error::other);
        let incoming = stream.filter_map(|message| ready(frame(message)));
        Ok(Self { incoming: incoming.boxed(), outgoing: Box::pin(outgoing) })
    }
}

/// The CDP frame in a message; pings and pongs have none and are answered by the library.
fn frame(message: std::result::Result<Message, Error>) -> Option<io::Result<Bytes>> {
    match message {
        Ok(Message::Text(text)) => Some(Ok(text.into())),
        Ok(Message::Binary(bytes)) => Some(Ok(bytes)),
        Ok(Message::Close(Some(close))) => Some(Err(io::Error::other(format!("it was closed with {close}")))),
        Ok(_) => None,
        Err(error) => Some(Err(io::Error::other(error))),
    }
}
