//! Lines on their way to one side. Writing may stop anywhere and go on later, so that the shim can always read
//! from both sides while it writes to both.

use std::collections::VecDeque;

use super::ledger::Outgoing;

/// Beyond these the shim reads no more from the other side until something was written.
const ROOM_LINES: usize = 64;
const ROOM_BYTES: usize = 8 * 1024 * 1024;
/// One write. The standard output's own buffer keeps the size of the largest one.
const CHUNK_BYTES: usize = 64 * 1024;

#[derive(Debug, Default)]
pub(super) struct Outbox {
    lines: VecDeque<Outgoing>,
    /// Bytes of the first line that are already written.
    done: usize,
    bytes: usize,
}

impl Outbox {
    pub(super) fn push(&mut self, outgoing: Outgoing) {
        self.bytes += outgoing.line.len();
        self.lines.push_back(outgoing);
    }

    /// A line that is no request.
    pub(super) fn push_line(&mut self, line: Vec<u8>) {
        self.push(Outgoing { key: None, line });
    }

    pub(super) fn has_room(&self) -> bool {
        self.lines.len() < ROOM_LINES && self.bytes < ROOM_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }

    /// What to write next.
    pub(super) fn chunk(&self) -> &[u8] {
        let rest = self.lines.front().map_or(&[][..], |outgoing| &outgoing.line[self.done..]);
        &rest[..rest.len().min(CHUNK_BYTES)]
    }

    /// Notes what was written; gives the line that is through.
    pub(super) fn wrote(&mut self, bytes: usize) -> Option<Outgoing> {
        self.done += bytes;
        if self.lines.front().is_none_or(|outgoing| self.done < outgoing.line.len()) {
            return None;
        }
        self.done = 0;
        let through = self.lines.pop_front()?;
        self.bytes -= through.line.len();
        Some(through)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_out_in_pieces_and_are_through_one_by_one() {
        let mut outbox = Outbox::default();
        outbox.push_line(b"abc\n".to_vec());
        outbox.push_line(b"d\n".to_vec());
        assert_eq!(outbox.chunk(), b"abc\n");
        assert_eq!(outbox.wrote(3), None);
        assert_eq!(outbox.chunk(), b"\n");
        assert_eq!(outbox.wrote(1).unwrap().line, b"abc\n");
        assert_eq!(outbox.chunk(), b"d\n");
        assert!(outbox.wrote(2).is_some() && outbox.is_empty() && outbox.chunk().is_empty());
    }

    #[test]
    fn room_ends_at_the_bounds_and_comes_back() {
        let mut outbox = Outbox::default();
        for _ in 0..ROOM_LINES {
            assert!(outbox.has_room());
            outbox.push_line(b"x\n".to_vec());
        }
        assert!(!outbox.has_room());
        outbox.wrote(2);
        assert!(outbox.has_room());
        outbox.push_line(vec![b'x'; ROOM_BYTES]);
        assert!(!outbox.has_room());
    }
}
