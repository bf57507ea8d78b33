//! One line of the journal, `{"seq":n,"crc":"xxxxxxxx","rec":{…}}`: numbers without a gap, and a CRC-32 over
//! the record's bytes as they stand in the line. The snapshot is one such line too; its `seq` is the last record it covers.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

#[derive(Debug, PartialEq)]
pub(super) struct Line {
    pub(super) seq: u64,
    pub(super) rec: Value,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written<'a> {
    seq: u64,
    crc: &'a str,
    #[serde(borrow)]
    rec: &'a RawValue,
}

/// Appends the line of an already serialised record, newline included, to `out`.
pub(super) fn write(out: &mut Vec<u8>, seq: u64, rec: &str) {
    let crc = crc32fast::hash(rec.as_bytes());
    out.extend_from_slice(format!("{{\"seq\":{seq},\"crc\":\"{crc:08x}\",\"rec\":").as_bytes());
    out.extend_from_slice(rec.as_bytes());
    out.extend_from_slice(b"}\n");
}

/// Reads a line without its newline, or says why it is none.
pub(super) fn read(bytes: &[u8]) -> Result<Line, String> {
    let written: Written<'_> = serde_json::from_slice(bytes).map_err(|error| format!("is no journal line ({error})"))?;
    let crc = format!("{:08x}", crc32fast::hash(written.rec.get().as_bytes()));
    if crc != written.crc {
        return Err(format!("has checksum {crc} where {} is written", written.crc));
    }
    let rec = serde_json::from_str(written.rec.get()).map_err(|error| format!("holds no readable record ({error})"))?;
    Ok(Line { seq: written.seq, rec })
}
