//! How frames reach a browser: a stream of them in, a sink of them out. What stands in a frame is not known here.

mod pipe;
mod websocket;

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use futures::Sink;
use futures::stream::BoxStream;

pub(crate) use websocket::Handshake;

pub(crate) type Incoming = BoxStream<'static, io::Result<Bytes>>;
pub(crate) type Outgoing = Pin<Box<dyn Sink<String, Error = io::Error> + Send>>;

/// Both directions to one browser, not yet in use.
pub struct Transport {
    pub(crate) incoming: Incoming,
    pub(crate) outgoing: Outgoing,
}

/// Whether somebody spoke over this pipe before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    Fresh,
    /// The former owner may have ended in the middle of a frame, in either direction.
    TakeOver,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}
