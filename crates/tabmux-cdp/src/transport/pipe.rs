//! `--remote-debugging-pipe`: frames of JSON, each followed by a NUL, over two one-way pipes.

use std::io;
use std::mem;
use std::os::fd::OwnedFd;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use futures::StreamExt;
use serde::de::IgnoredAny;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::unix::pipe::{Receiver, Sender};
use tokio_util::codec::{Decoder, Encoder, FramedRead, FramedWrite};

use super::{MAX_FRAME, Start, Transport};
use crate::{CdpError, Result};

/// One pipe's worth.
const CHUNK: usize = 64 << 10;
/// From here on a frame takes its memory with it, so that one large reply does not stay for good.
const LARGE: usize = 1 << 20;

impl Transport {
    /// The browser's two pipes, as a parent or a keeper holds them: what it writes, and what it reads.
    pub fn pipe(from_browser: OwnedFd, to_browser: OwnedFd, start: Start) -> Result<Self> {
        let unusable = |error: io::Error| CdpError::Disconnected(format!("the browser's pipe cannot be used: {error}"));
        let read = Receiver::from_owned_fd(from_browser).map_err(unusable)?;
        let write = Sender::from_owned_fd(to_browser).map_err(unusable)?;
        Ok(Self::over(read, write, start))
    }

    pub(crate) fn over(read: impl AsyncRead + Send + 'static, write: impl AsyncWrite + Send + 'static, start: Start) -> Self {
        let mut outgoing = FramedWrite::new(write, NulFrames::new(start));
        if start == Start::TakeOver {
            // Ends what the former owner left half written; the browser answers that with an error to nobody.
            outgoing.write_buffer_mut().put_u8(0);
        }
        let incoming = FramedRead::with_capacity(read, NulFrames::new(start), CHUNK);
        Self { incoming: incoming.boxed(), outgoing: Box::pin(outgoing) }
    }
}

struct NulFrames {
    /// How much of what has come was searched for a NUL already.
    searched: usize,
    first: First,
}

#[derive(PartialEq, Eq)]
enum First {
    Whole,
    MayBeTorn,
}

impl NulFrames {
    fn new(start: Start) -> Self {
        Self { searched: 0, first: if start == Start::TakeOver { First::MayBeTorn } else { First::Whole } }
    }

    /// The rest of a torn frame is never valid JSON (a test of `wire` tries), so a whole first frame is not lost.
    fn is_torn(&mut self, frame: &[u8]) -> bool {
        mem::replace(&mut self.first, First::Whole) == First::MayBeTorn && serde_json::from_slice::<IgnoredAny>(frame).is_err()
    }
}

impl Decoder for NulFrames {
    type Item = Bytes;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        while let Some(at) = memchr::memchr(0, &buffer[self.searched..]) {
            let frame = buffer.split_to(self.searched + at).freeze();
            buffer.advance(1);
            self.searched = 0;
            if frame.len() >= LARGE {
                *buffer = BytesMut::from(&buffer[..]);
            }
            if !frame.is_empty() && !self.is_torn(&frame) {
                return Ok(Some(frame));
            }
        }
        self.searched = buffer.len();
        if buffer.len() > MAX_FRAME {
            return Err(io::Error::new(io::ErrorKind::InvalidData, format!("a message is longer than {} MB", MAX_FRAME >> 20)));
        }
        Ok(None)
    }

    /// What comes after the last NUL is no frame.
    fn decode_eof(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        self.decode(buffer)
    }
}

impl Encoder<String> for NulFrames {
    type Error = io::Error;

    fn encode(&mut self, frame: String, buffer: &mut BytesMut) -> io::Result<()> {
        if buffer.is_empty() {
            // Lets go of what a large frame needed.
            *buffer = BytesMut::new();
        }
        buffer.reserve(frame.len() + 1);
        buffer.put_slice(frame.as_bytes());
        buffer.put_u8(0);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(start: Start, chunks: &[&[u8]]) -> Vec<Bytes> {
        let (mut codec, mut buffer, mut found) = (NulFrames::new(start), BytesMut::new(), Vec::new());
        for chunk in chunks {
            buffer.extend_from_slice(chunk);
            while let Some(frame) = codec.decode(&mut buffer).unwrap() {
                found.push(frame);
            }
        }
        found
    }

    #[test]
    fn frames_end_at_nuls_however_they_arrive() {
        assert_eq!(frames(Start::Fresh, &[b"{\"a\":1", b"}", b"\0\0{}\0{\"b\"", b":2}\0{"]), [&b"{\"a\":1}"[..], b"{}", b"{\"b\":2}"]);
    }

    #[test]
    fn a_take_over_drops_a_torn_first_frame_and_keeps_a_whole_one() {
        assert_eq!(frames(Start::TakeOver, &[b"\"b\":1}}\0{}\0"]), [&b"{}"[..]]);
        assert_eq!(frames(Start::TakeOver, &[b"{\"b\":1}\0[\0"]), [&b"{\"b\":1}"[..], b"["]);
    }

    #[test]
    fn a_large_frame_takes_its_memory_with_it() {
        let (mut codec, mut buffer) = (NulFrames::new(Start::Fresh), BytesMut::new());
        buffer.extend_from_slice(&vec![b'x'; LARGE]);
        buffer.extend_from_slice(b"\0rest");
        assert_eq!(codec.decode(&mut buffer).unwrap().map(|frame| frame.len()), Some(LARGE));
        buffer.reserve(1);
        assert!(&buffer[..] == b"rest" && buffer.capacity() < CHUNK);
    }

    #[test]
    fn an_endless_frame_is_an_error() {
        let mut buffer = BytesMut::zeroed(MAX_FRAME + 1);
        buffer.fill(b'x');
        assert!(NulFrames::new(Start::Fresh).decode(&mut buffer).unwrap_err().to_string().contains("256 MB"));
    }
}
