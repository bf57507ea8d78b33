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

use super::{Start, Transport};
use crate::{CdpError, Result, wire};

/// One pipe's worth.
const CHUNK: usize = 64 << 10;
/// A longer frame is left out. Nothing we ask for is longer, but for a page that is printed to a book.
const MAX_FRAME: usize = 100 << 20;
/// From here on a frame takes its memory with it, so that one large reply does not stay for good.
const LARGE: usize = 1 << 20;
/// How much of either end of a frame says whose it is, and what it is about.
const ENDS: usize = 1 << 10;

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
    /// Of a frame that is too long, what has come of it.
    too_long: Option<TooLong>,
}

/// Read to its end and not kept: only its ends are, which say whose it is. One page that says too much must not cost all others the browser.
struct TooLong {
    beginning: Bytes,
    end: BytesMut,
    bytes: usize,
}

#[derive(PartialEq, Eq)]
enum First {
    Whole,
    MayBeTorn,
}

impl NulFrames {
    fn new(start: Start) -> Self {
        Self { searched: 0, too_long: None, first: if start == Start::TakeOver { First::MayBeTorn } else { First::Whole } }
    }

    /// The rest of a torn frame is never valid JSON (a test of `wire` tries), so a whole first frame is not lost.
    fn is_torn(&mut self, frame: &[u8]) -> bool {
        mem::replace(&mut self.first, First::Whole) == First::MayBeTorn && serde_json::from_slice::<IgnoredAny>(frame).is_err()
    }
}

impl TooLong {
    fn of(begun: &[u8]) -> Self {
        let mut this = Self { beginning: Bytes::copy_from_slice(&begun[..ENDS]), end: BytesMut::new(), bytes: 0 };
        this.pass(begun);
        this
    }

    fn pass(&mut self, more: &[u8]) {
        self.bytes += more.len();
        self.end.extend_from_slice(&more[more.len().saturating_sub(ENDS)..]);
        self.end.advance(self.end.len().saturating_sub(ENDS));
    }

    fn stand_in(self) -> Option<Bytes> {
        tracing::warn!(bytes = self.bytes, beginning = %self.beginning[..64].escape_ascii(), "a message of the browser is too long and is left out");
        wire::in_place_of(&[&self.beginning, &self.end[..]].concat(), self.bytes).map(Bytes::from)
    }
}

impl Decoder for NulFrames {
    type Item = Bytes;
    type Error = io::Error;

    fn decode(&mut self, buffer: &mut BytesMut) -> io::Result<Option<Bytes>> {
        if let Some(mut passing) = self.too_long.take() {
            let Some(at) = memchr::memchr(0, buffer) else {
                passing.pass(buffer);
                buffer.clear();
                self.too_long = Some(passing);
                return Ok(None);
            };
            passing.pass(&buffer[..at]);
            buffer.advance(at + 1);
            if let Some(frame) = passing.stand_in() {
                return Ok(Some(frame));
            }
        }
        while let Some(at) = memchr::memchr(0, &buffer[self.searched..]) {
            let frame = buffer.split_to(self.searched + at).freeze();
            buffer.advance(1);
            self.searched = 0;
            if frame.len() >= LARGE {
                let rest = mem::replace(buffer, BytesMut::with_capacity(CHUNK));
                buffer.extend_from_slice(&rest);
            }
            if !frame.is_empty() && !self.is_torn(&frame) {
                return Ok(Some(frame));
            }
        }
        self.searched = buffer.len();
        if buffer.len() > MAX_FRAME {
            self.searched = 0;
            self.too_long = Some(TooLong::of(&mem::replace(buffer, BytesMut::with_capacity(CHUNK))));
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
        // As much as before, so that the next ones are not read by the byte.
        assert!(&buffer[..] == b"rest" && (CHUNK..2 * CHUNK).contains(&buffer.capacity()));
    }

    #[test]
    fn a_frame_that_is_too_long_is_told_of_and_the_next_ones_are_whole() {
        let long = |beginning: &str, end: &str| [beginning.as_bytes(), &vec![b'x'; MAX_FRAME], end.as_bytes()].concat();
        let said = |frame: Vec<u8>| {
            let (middle, end) = (frame.len() / 2, frame.len() - 5);
            let found = frames(Start::Fresh, &[&frame[..middle], &frame[middle..end], &frame[end..], b"\0{\"id\":9,\"result\":{}}\0"]);
            assert_eq!(found.last().unwrap(), &b"{\"id\":9,\"result\":{}}"[..]);
            found[..found.len() - 1].iter().map(|frame| String::from_utf8_lossy(frame).into_owned()).collect::<Vec<_>>()
        };
        let event = said(long(r#"{"method":"Runtime.consoleAPICalled","params":{"type":"log","args":[""#, r#""]},"sessionId":"A1"}"#));
        assert_eq!(event, [r#"{"method":"Runtime.consoleAPICalled","params":{},"sessionId":"A1"}"#]);
        let reply = said(long(r#"{"id":7,"result":{"value":""#, r#""},"sessionId":"A1"}"#));
        assert_eq!(reply.len(), 1);
        assert!(reply[0].starts_with(r#"{"id":7,"error":"#) && reply[0].contains("100 MB"), "{reply:?}");
        assert_eq!(said(long("no message at all", "")).len(), 0);
    }
}
