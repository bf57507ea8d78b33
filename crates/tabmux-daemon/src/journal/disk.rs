//! The journal's files: opening them with what replay found wrong put aside, and the four things the writer
//! does to them. The trait is there so that tests can let a disk be full.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::replay::{Rest, replay};
use super::writer::Position;
use super::{Dropped, Replayed};

pub(super) const JOURNAL: &str = "journal.jsonl";
pub(super) const SNAPSHOT: &str = "journal.snapshot";
const OWNER_ONLY: u32 = 0o600;

/// What the writer needs of a disk.
pub(super) trait Disk: Send + 'static {
    /// Appends some of `bytes`, like `write(2)`.
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize>;
    fn sync(&mut self) -> io::Result<()>;
    fn cut_to(&mut self, length: u64) -> io::Result<()>;
    /// Replaces the snapshot, whole or not at all.
    fn put_snapshot(&mut self, bytes: &[u8]) -> io::Result<()>;
}

#[derive(Debug)]
pub(super) struct FileDisk {
    dir: PathBuf,
    journal: File,
}

impl Disk for FileDisk {
    fn append(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.journal.write(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.journal.sync_data()
    }

    fn cut_to(&mut self, length: u64) -> io::Result<()> {
        self.journal.set_len(length)
    }

    fn put_snapshot(&mut self, bytes: &[u8]) -> io::Result<()> {
        put_whole(&self.dir, SNAPSHOT, bytes)
    }
}

/// Opens the files of `dir`, which is made when missing.
pub(super) fn open(dir: &Path) -> io::Result<(FileDisk, Position, Replayed)> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let snapshot = read_if_there(&dir.join(SNAPSHOT))?;
    let path = dir.join(JOURNAL);
    let bytes = read_if_there(&path)?.unwrap_or_default();
    let meaning = replay(snapshot.as_deref(), &bytes);
    let bad = &bytes[meaning.good_bytes..];
    let dropped = |why: String, kept_as| Some(Dropped { bytes: bad.len() as u64, why, kept_as });
    let torn = match meaning.rest {
        Rest::Nothing => None,
        Rest::Torn(why) => dropped(why, None),
        Rest::Damaged(why) => dropped(why, Some(keep_aside(dir, bad)?)),
        Rest::SnapshotDamaged(why) => {
            let whole = [snapshot.unwrap_or_default(), bytes.clone()].concat();
            let kept_as = keep_aside(dir, &whole)?;
            fs::remove_file(dir.join(SNAPSHOT))?;
            Some(Dropped { bytes: whole.len() as u64, why, kept_as: Some(kept_as) })
        }
    };
    let journal = OpenOptions::new().append(true).create(true).mode(OWNER_ONLY).open(&path)?;
    journal.set_permissions(Permissions::from_mode(OWNER_ONLY))?;
    if torn.is_some() {
        journal.set_len(meaning.good_bytes as u64)?;
        journal.sync_all()?;
    }
    sync_dir(dir)?;
    let position = Position { last_seq: meaning.last_seq, length: meaning.good_bytes as u64, since_snapshot: meaning.records.len() as u64 };
    let replayed = Replayed { snapshot: meaning.snapshot, records: meaning.records, torn };
    Ok((FileDisk { dir: dir.to_path_buf(), journal }, position, replayed))
}

fn read_if_there(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Keeps bytes that cannot be read as `journal.damaged-N`, the first N that is free.
fn keep_aside(dir: &Path, bytes: &[u8]) -> io::Result<PathBuf> {
    let name = (1u32..).map(|n| format!("journal.damaged-{n}")).find(|name| !dir.join(name).exists());
    let name = name.expect("four billion damaged journals do not exist");
    put_whole(dir, &name, bytes)?;
    Ok(dir.join(name))
}

/// Writes a file that is either whole or not there: temporary name, sync, rename, sync of the directory.
fn put_whole(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let mut file = tempfile::Builder::new().prefix(".journal-").permissions(Permissions::from_mode(OWNER_ONLY)).tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    file.persist(dir.join(name)).map_err(|error| error.error)?;
    sync_dir(dir)
}

fn sync_dir(dir: &Path) -> io::Result<()> {
    File::open(dir)?.sync_all()
}
