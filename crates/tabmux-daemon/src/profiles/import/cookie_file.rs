//! How many cookies a browser has on its disk, counted in its file (SQLite's, as its documentation describes the format): what the
//! browser that is started on a copy does not give is missing, and must be said. No value is looked at, nothing is written.

use std::fs;
use std::path::Path;

/// More than any browser keeps.
const MAX_BYTES: u64 = 256 << 20;

/// Chromium counts microseconds since 1601.
const BEFORE_UNIX_MS: i64 = 11_644_473_600_000;

/// Cookies that are not over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counted {
    pub(super) all: usize,
    /// Of these, encrypted with a key that the desktop's keyring has.
    pub(super) in_keyring: usize,
}

struct File {
    bytes: Vec<u8>,
    page: usize,
    /// Of each page, without what is reserved.
    usable: usize,
}

/// One row of a table.
struct Row<'a> {
    columns: Vec<(u64, &'a [u8])>,
}

/// What is in the file of a profile; none where it is not in a form that is known.
pub(super) fn count(profile: &Path, now_ms: i64) -> Option<Counted> {
    let file = ["Network/Cookies", "Cookies"].iter().map(|file| profile.join(file)).find(|path| path.is_file());
    let Some(path) = file else { return Some(Counted::default()) };
    if path.metadata().ok()?.len() > MAX_BYTES {
        return None;
    }
    File::of(fs::read(path).ok()?)?.count(now_ms)
}

impl File {
    fn of(bytes: Vec<u8>) -> Option<Self> {
        bytes.starts_with(b"SQLite format 3\0").then_some(())?;
        let page = match usize::from(u16::from_be_bytes([*bytes.get(16)?, *bytes.get(17)?])) {
            1 => 65_536,
            size => size,
        };
        let usable = page.checked_sub(usize::from(*bytes.get(20)?)).filter(|usable| *usable >= 480)?;
        Some(Self { bytes, page, usable })
    }

    fn count(&self, now_ms: i64) -> Option<Counted> {
        let mut found = None;
        self.rows(1, |row| {
            if row.text(0) == Some(b"table") && row.text(1) == Some(b"cookies") {
                found = row.number(3).zip(row.text(4).map(|sql| String::from_utf8_lossy(sql).into_owned()));
            }
        })?;
        let (root, sql) = found?;
        let column = |name: &str| columns(&sql).position(|column| column == name);
        let (value, has_end, end) = (column("encrypted_value")?, column("has_expires")?, column("expires_utc")?);
        let now = (now_ms + BEFORE_UNIX_MS).saturating_mul(1000);
        let mut counted = Counted::default();
        self.rows(usize::try_from(root).ok()?, |row| {
            if row.number(has_end) == Some(1) && row.number(end).is_some_and(|end| end < now) {
                return;
            }
            counted.all += 1;
            counted.in_keyring += usize::from(row.text(value).is_some_and(|value| value.starts_with(b"v11")));
        })?;
        Some(counted)
    }

    /// Every row of the table that begins at this page.
    fn rows(&self, root: usize, mut each: impl FnMut(&Row<'_>)) -> Option<()> {
        let (mut pages, mut left) = (vec![root], self.bytes.len() / self.page);
        while let Some(number) = pages.pop() {
            // A page that is come by twice is no SQLite's.
            left = left.checked_sub(1)?;
            let page = self.page(number)?;
            let head = if number == 1 { 100 } else { 0 };
            let cells = usize::from(u16::from_be_bytes(array(page, head + 3)?));
            let cell = |list: usize, cell: usize| array(page, list + 2 * cell).map(|at| usize::from(u16::from_be_bytes(at)));
            match page.get(head)? {
                0x0d => {
                    for number in 0..cells {
                        each(&Row::read(&self.payload(page, cell(head + 8, number)?)?)?);
                    }
                }
                0x05 => {
                    pages.push(below(page, head + 8)?);
                    for number in 0..cells {
                        pages.push(below(page, cell(head + 12, number)?)?);
                    }
                }
                _ => return None,
            }
        }
        Some(())
    }

    /// What a cell of a leaf holds, with what did not fit into its page.
    fn payload(&self, page: &[u8], at: usize) -> Option<Vec<u8>> {
        let mut cell = page.get(at..)?;
        let length = usize::try_from(number(&mut cell)?).ok().filter(|length| *length <= self.bytes.len())?;
        number(&mut cell)?;
        if length <= self.usable - 35 {
            return cell.get(..length).map(<[u8]>::to_vec);
        }
        let least = (self.usable - 12) * 32 / 255 - 23;
        let fitting = least + (length - least) % (self.usable - 4);
        let local = if fitting <= self.usable - 35 { fitting } else { least };
        let mut payload = cell.get(..local)?.to_vec();
        let mut next = below(cell, local)?;
        while payload.len() < length {
            let page = self.page(next)?;
            let part = (length - payload.len()).min(self.usable - 4);
            payload.extend_from_slice(page.get(4..4 + part)?);
            next = below(page, 0)?;
        }
        Some(payload)
    }

    fn page(&self, number: usize) -> Option<&[u8]> {
        let from = number.checked_sub(1)?.checked_mul(self.page)?;
        self.bytes.get(from..from + self.page)
    }
}

impl<'a> Row<'a> {
    fn read(payload: &'a [u8]) -> Option<Self> {
        let mut head = payload;
        let length = usize::try_from(number(&mut head)?).ok()?;
        let mut head = payload.get(payload.len() - head.len()..length)?;
        let mut body = payload.get(length..)?;
        let mut columns = Vec::new();
        while !head.is_empty() {
            let kind = number(&mut head)?;
            let size = match kind {
                0 | 8 | 9 => 0,
                1..=4 => kind,
                5 => 6,
                6 | 7 => 8,
                _ => kind.checked_sub(12)? / 2,
            };
            let (column, rest) = body.split_at_checked(usize::try_from(size).ok()?)?;
            columns.push((kind, column));
            body = rest;
        }
        Some(Self { columns })
    }

    fn number(&self, column: usize) -> Option<i64> {
        let (kind, bytes) = self.columns.get(column)?;
        match kind {
            8 => Some(0),
            9 => Some(1),
            1..=6 => {
                let negative = bytes.first().is_some_and(|first| first & 0x80 != 0);
                Some(bytes.iter().fold(if negative { -1 } else { 0 }, |number, byte| (number << 8) | i64::from(*byte)))
            }
            _ => None,
        }
    }

    fn text(&self, column: usize) -> Option<&'a [u8]> {
        self.columns.get(column).filter(|(kind, _)| *kind >= 12).map(|(_, bytes)| *bytes)
    }
}

/// The names of a table's columns, as it was made.
fn columns(sql: &str) -> impl Iterator<Item = &str> {
    let inside = sql.split_once('(').map_or("", |(_, inside)| inside);
    inside.split(',').filter_map(|column| column.split_whitespace().next())
}

/// The number of a page.
fn below(bytes: &[u8], at: usize) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(array(bytes, at)?)).ok()
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// SQLite's numbers: seven bits in each byte, eight in the ninth.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for at in 0..9 {
        let byte = *bytes.get(at)?;
        let last = at == 8 || byte & 0x80 == 0;
        number = if at == 8 { (number << 8) | u64::from(byte) } else { (number << 7) | u64::from(byte & 0x7f) };
        if last {
            *bytes = &bytes[at + 1..];
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seven_bits_in_each_byte() {
        for (bytes, value) in [(&[5][..], 5), (&[0x81, 0x00], 128), (&[0xff; 9], u64::MAX)] {
            let mut rest = bytes;
            assert_eq!((number(&mut rest), rest.len()), (Some(value), 0));
        }
        assert_eq!(number(&mut &[0x81][..]), None);
    }

    /// What cannot be counted is not guessed, and holds nobody up.
    #[test]
    fn a_file_that_is_none_of_sqlites_is_not_counted() {
        let profile = tempfile::tempdir().unwrap();
        assert_eq!(count(profile.path(), 0), Some(Counted::default()));
        let mut page = vec![0; 512];
        page[..16].copy_from_slice(b"SQLite format 3\0");
        page[16..18].copy_from_slice(&512_u16.to_be_bytes());
        // An interior page whose only child is itself.
        page[100] = 0x05;
        page[108..112].copy_from_slice(&1_u32.to_be_bytes());
        for bytes in [b"no database".to_vec(), page[..100].to_vec(), page] {
            fs::write(profile.path().join("Cookies"), bytes).unwrap();
            assert_eq!(count(profile.path(), 0), None);
        }
    }
}
