//! The audit log: what was shared with whom, and every use of it. One JSON object per line, readable by its owner alone, and
//! bounded: a full file is moved aside and one former is kept. Ids and outcomes only; what was on a page, or given to one, is never here.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value};

const FILE: &str = "audit.jsonl";
const MAX_BYTES: u64 = 4 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct Audit {
    path: PathBuf,
    /// Opened with the first line; small lines and few, so that writing them waits for nobody.
    file: Mutex<Option<Open>>,
}

#[derive(Debug)]
struct Open {
    file: File,
    bytes: u64,
}

impl Audit {
    pub(crate) fn at(state_dir: &Path) -> Self {
        Self { path: state_dir.join(FILE), file: Mutex::default() }
    }

    /// Adds a line; the time comes first in it. One that cannot be written is said in the log.
    pub(crate) fn note(&self, event: &str, members: Map<String, Value>) {
        let mut line = Map::new();
        line.insert("time".into(), crate::clock::iso(crate::clock::unix_ms()).into());
        line.insert("event".into(), event.into());
        line.extend(members);
        let line = format!("{}\n", Value::Object(line));
        let mut open = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if let Err(error) = self.append(&mut open, line.as_bytes()) {
            *open = None;
            tracing::warn!(%error, path = %self.path.display(), "the audit log could not be written");
        }
    }

    fn append(&self, open: &mut Option<Open>, line: &[u8]) -> io::Result<()> {
        if open.as_ref().is_some_and(|open| open.bytes >= MAX_BYTES) {
            *open = None;
            std::fs::rename(&self.path, self.path.with_extension("jsonl.1"))?;
        }
        let open = match open {
            Some(open) => open,
            None => open.insert(self.open()?),
        };
        open.file.write_all(line)?;
        open.bytes += line.len() as u64;
        Ok(())
    }

    fn open(&self) -> io::Result<Open> {
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(no_link).open(&self.path)?;
        let bytes = file.metadata()?.len();
        Ok(Open { file, bytes })
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn lines_are_its_owners_alone_and_a_full_file_is_moved_aside() {
        let home = tempfile::tempdir().unwrap();
        let audit = Audit::at(home.path());
        let members = || Map::from_iter([("grant".to_owned(), Value::from("g_1"))]);
        audit.note("used", members());
        let path = home.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((&line["event"], &line["grant"], text.lines().count()), (&"used".into(), &"g_1".into(), 1));
        assert!(text.starts_with("{\"time\":\"20"), "{text}");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        audit.file.lock().unwrap().as_mut().unwrap().bytes = MAX_BYTES;
        audit.note("used", members());
        let lines = |name: &str| std::fs::read_to_string(home.path().join(name)).unwrap().lines().count();
        assert_eq!((lines(FILE), lines("audit.jsonl.1")), (1, 1));
    }
}
