//! Bounded line reading, the one way any peer's bytes come in (S1.13). A line over the limit is dropped as it
//! arrives, so its sender can take no more memory than the limit, and is reported with enough of its head and tail to answer it.

use tokio::io::{AsyncBufRead, AsyncBufReadExt};

/// How much of an over-long line's head and tail is kept, to find the request id in it.
const EDGE_BYTES: usize = 512;

/// One read from a peer.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A whole line, without its newline.
    Whole(Vec<u8>),
    /// A line over the limit was skipped.
    TooLong { bytes: u64, head: Vec<u8>, tail: Vec<u8> },
    /// The peer closed its end; what came after the last newline is not a message.
    End,
}

/// Reads lines up to `limit` bytes. Cancel-safe: a read that is dropped goes on where it was.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    limit: usize,
    line: Vec<u8>,
    /// Bytes of the present line, also those already dropped.
    seen: u64,
    tail: Vec<u8>,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    pub fn new(source: R, limit: usize) -> Self {
        Self { source, limit, line: Vec::new(), seen: 0, tail: Vec::new() }
    }

    pub async fn next(&mut self) -> std::io::Result<Line> {
        loop {
            let available = self.source.fill_buf().await?;
            if available.is_empty() {
                return Ok(Line::End);
            }
            let newline = available.iter().position(|byte| *byte == b'\n');
            let chunk = &available[..newline.unwrap_or(available.len())];
            let used = chunk.len() + usize::from(newline.is_some());
            let before = self.seen;
            self.seen += chunk.len() as u64;
            if self.seen <= self.limit as u64 {
                self.line.extend_from_slice(chunk);
            } else {
                if before <= self.limit as u64 {
                    self.line.extend_from_slice(&chunk[..chunk.len().min(EDGE_BYTES)]);
                    self.line.truncate(EDGE_BYTES);
                    self.line.shrink_to_fit();
                }
                let keep_from = chunk.len().saturating_sub(EDGE_BYTES);
                self.tail.extend_from_slice(&chunk[keep_from..]);
                let drop = self.tail.len().saturating_sub(EDGE_BYTES);
                self.tail.drain(..drop);
            }
            self.source.consume(used);
            if newline.is_some() {
                return Ok(self.finish());
            }
        }
    }

    fn finish(&mut self) -> Line {
        let line = std::mem::take(&mut self.line);
        let tail = std::mem::take(&mut self.tail);
        let bytes = std::mem::take(&mut self.seen);
        if bytes <= self.limit as u64 { Line::Whole(line) } else { Line::TooLong { bytes, head: line, tail } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    async fn lines_of(input: &[u8], limit: usize, buffer: usize) -> Vec<Line> {
        let mut reader = LineReader::new(BufReader::with_capacity(buffer, input), limit);
        let mut lines = Vec::new();
        loop {
            match reader.next().await.unwrap() {
                Line::End => return lines,
                line => lines.push(line),
            }
        }
    }

    #[tokio::test]
    async fn lines_come_whole_whatever_the_chunks() {
        for buffer in [1, 2, 3, 64] {
            let lines = lines_of(b"one\n\ntwo\npart", 8, buffer).await;
            let expected = [&b"one"[..], b"", b"two"].map(|text| Line::Whole(text.to_vec()));
            assert_eq!(lines, expected, "buffer {buffer}");
        }
    }

    #[tokio::test]
    async fn a_line_over_the_limit_is_skipped_with_its_edges_and_the_next_one_works() {
        let mut input = b"{\"id\":7,".to_vec();
        input.extend(std::iter::repeat_n(b'x', 100_000));
        input.extend(b",\"id\":8}\nok\n");
        let lines = lines_of(&input, 1000, 64).await;
        let Line::TooLong { bytes, head, tail } = &lines[0] else { panic!("{lines:?}") };
        assert_eq!(*bytes, 100_016);
        assert!(head.starts_with(b"{\"id\":7,") && tail.ends_with(b",\"id\":8}"));
        assert!(head.len() <= EDGE_BYTES && tail.len() <= EDGE_BYTES);
        assert_eq!(lines[1], Line::Whole(b"ok".to_vec()));
    }

    #[tokio::test]
    async fn a_line_of_exactly_the_limit_passes() {
        assert_eq!(lines_of(b"12345678\n", 8, 64).await, [Line::Whole(b"12345678".to_vec())]);
        assert!(matches!(lines_of(b"123456789\n", 8, 64).await[0], Line::TooLong { bytes: 9, .. }));
    }
}
