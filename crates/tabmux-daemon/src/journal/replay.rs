//! What the bytes on disk mean: pure, so that every crash can be tried by cutting bytes.

use serde_json::Value;

use super::line;

/// The meaning of a snapshot and a journal.
#[derive(Debug, PartialEq)]
pub(super) struct Meaning {
    pub(super) snapshot: Option<Value>,
    pub(super) records: Vec<Value>,
    /// Number of the last record, also one that only the snapshot covers.
    pub(super) last_seq: u64,
    /// How much of the journal is good.
    pub(super) good_bytes: usize,
    pub(super) rest: Rest,
}

/// What stands behind the good part.
#[derive(Debug, PartialEq)]
pub(super) enum Rest {
    Nothing,
    /// Only a last line that was being written when the daemon or the machine died.
    Torn(String),
    /// More lines follow the bad one: nothing of ours writes so, hence it is kept for a person to look at.
    Damaged(String),
    /// The snapshot itself cannot be read; without it the records mean nothing.
    SnapshotDamaged(String),
}

/// Reads as far as everything is right. Records the snapshot covers are skipped: a crash between the new
/// snapshot and the new journal leaves them behind.
pub(super) fn replay(snapshot: Option<&[u8]>, journal: &[u8]) -> Meaning {
    let mut meaning = Meaning { snapshot: None, records: Vec::new(), last_seq: 0, good_bytes: 0, rest: Rest::Nothing };
    if let Some(bytes) = snapshot {
        match line::read(bytes.strip_suffix(b"\n").unwrap_or(bytes)) {
            Ok(line) => (meaning.snapshot, meaning.last_seq) = (Some(line.rec), line.seq),
            Err(why) => {
                meaning.rest = Rest::SnapshotDamaged(format!("the snapshot {why}"));
                return meaning;
            }
        }
    }
    let covered = meaning.last_seq;
    let mut previous = None;
    while meaning.good_bytes < journal.len() {
        let from_here = &journal[meaning.good_bytes..];
        let newline = from_here.iter().position(|byte| *byte == b'\n');
        let read = newline.ok_or_else(|| "has no end".to_owned()).and_then(|end| numbered(&from_here[..end], previous, covered));
        match (read, newline) {
            (Ok(line), Some(end)) => {
                previous = Some(line.seq);
                meaning.good_bytes += end + 1;
                if line.seq > covered {
                    meaning.last_seq = line.seq;
                    meaning.records.push(line.rec);
                }
            }
            (Err(why), newline) => {
                let why = format!("the line at byte {} {why}", meaning.good_bytes);
                let is_last = newline.is_none_or(|end| end + 1 == from_here.len());
                meaning.rest = if is_last { Rest::Torn(why) } else { Rest::Damaged(why) };
                break;
            }
            (Ok(_), None) => unreachable!("a line without a newline was not read"),
        }
    }
    meaning
}

/// A good line with the number it must have: one more than the one before it, or, as the first, none that leaves a gap behind the snapshot.
fn numbered(bytes: &[u8], previous: Option<u64>, covered: u64) -> Result<line::Line, String> {
    let line = line::read(bytes)?;
    let fits = match previous {
        Some(previous) => line.seq == previous + 1,
        None => (1..=covered + 1).contains(&line.seq),
    };
    if fits { Ok(line) } else { Err(format!("has number {} after {}", line.seq, previous.unwrap_or(covered))) }
}
