//! The daemon's log file: readable by its owner alone, and bounded. A full one is moved aside and one former log is kept.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tabmux_daemon::settings::Secrets;
use tracing_subscriber::EnvFilter;

use crate::failure::{Failure, Outcome};

const MAX_BYTES: u64 = 10 * 1024 * 1024;

/// A file that begins anew when it is full.
#[derive(Debug)]
struct BoundedFile {
    path: PathBuf,
    file: File,
    bytes: u64,
    max_bytes: u64,
}

/// What is written to the log, without secrets. A line comes in one piece.
#[derive(Debug)]
struct Discreet<W> {
    file: W,
    secrets: Secrets,
}

/// What carries MCP traces every message whole, arguments and answers, and these are nobody's but the caller's.
const NOT_WHOLE: &str = "rmcp=warn";

/// From here on everything that is traced, and every panic, goes to the log.
pub(super) fn begin(path: &Path, filter: &str, secrets: Secrets) -> Outcome {
    let io = |error| Failure::io(&format!("The log {} cannot be written", path.display()), &error);
    let file = BoundedFile::open(path, MAX_BYTES).map_err(io)?;
    let filter = EnvFilter::try_new(format!("{filter},{NOT_WHOLE}"))
        .map_err(|error| Failure::configuration(format!("log = {filter:?}: {error}."), "Use info or debug."))?;
    let subscriber = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(false)
        .log_internal_errors(false)
        .with_writer(Mutex::new(Discreet { file, secrets }));
    // Only tests begin twice, and then the first log serves.
    subscriber.try_init().ok();
    std::panic::set_hook(Box::new(|panic| tracing::error!("{panic}")));
    Ok(())
}

impl BoundedFile {
    fn open(path: &Path, max_bytes: u64) -> io::Result<Self> {
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(path)?;
        let bytes = file.metadata()?.len();
        Ok(Self { path: path.into(), file, bytes, max_bytes })
    }

    fn turn_over(&mut self) -> io::Result<()> {
        let mut former = self.path.clone().into_os_string();
        former.push(".1");
        std::fs::rename(&self.path, former)?;
        *self = Self::open(&self.path, self.max_bytes)?;
        Ok(())
    }
}

impl Write for BoundedFile {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.bytes >= self.max_bytes {
            self.turn_over()?;
        }
        let written = self.file.write(text)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl<W: Write> Write for Discreet<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match self.secrets.hide(&String::from_utf8_lossy(line)) {
            Cow::Borrowed(_) => self.file.write_all(line)?,
            Cow::Owned(hidden) => self.file.write_all(hidden.as_bytes())?,
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_full_log_is_moved_aside_and_its_owner_alone_reads_it() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("daemon.log");
        let mut log = BoundedFile::open(&path, 10).unwrap();
        for line in ["0123456789\n", "second\n"] {
            log.write_all(line.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "second\n");
        assert_eq!(std::fs::read_to_string(home.path().join("daemon.log.1")).unwrap(), "0123456789\n");
        assert_eq!(std::fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        drop(log);
        assert_eq!(BoundedFile::open(&path, 10).unwrap().bytes, 7);
    }
}
