//! Files that tools write because their caller asked for one. Reading files is deliberately absent, and so are relative
//! names: daemon and agent do not share a directory.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use tabmux_core::{Code, Fault};

use crate::arguments::wrong;
use crate::visible;

const ANOTHER: &str = "Give another file.";

/// Where a file is to be written. Its name's ending says what it holds, so that nothing else is ever overwritten.
#[derive(Debug)]
pub(crate) struct Target {
    path: PathBuf,
    pub(crate) ending: &'static str,
}

impl Target {
    /// Reads the argument `file`. Nothing is made yet.
    pub(crate) fn parse(file: &str, endings: &[&'static str]) -> Result<Self, Fault> {
        let path = PathBuf::from(file);
        let told = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
        match endings.iter().find(|ending| **ending == told) {
            Some(ending) if path.is_absolute() => Ok(Self { path, ending }),
            Some(_) => Err(wrong("file", &file.into(), "an absolute path: tabmux does not run in your directory")),
            None => Err(wrong("file", &file.into(), &format!("an absolute path that ends in .{}", endings.join(" or .")))),
        }
    }

    /// The path, safe to read.
    pub(crate) fn shown(&self) -> String {
        visible::line(&self.path.to_string_lossy())
    }

    /// Writes the file and says how many bytes it has. On a thread of its own: a disk may be slow.
    pub(crate) async fn write_base64(&self, base64: String) -> Result<u64, Fault> {
        let path = self.path.clone();
        let writing = tokio::task::spawn_blocking(move || {
            let bytes = STANDARD.decode(base64).map_err(|_| broken("The browser gave no base64."))?;
            write(&path, &bytes).map_err(|error| refusal(&path, &error))?;
            Ok(bytes.len() as u64)
        });
        writing.await.unwrap_or_else(|_| Err(broken("The file could not be written.")))
    }
}

/// A new file, or one of our own that is a plain file: never through a link, into a device or into somebody else's.
/// What was there is cut only when all of that is known.
fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // Without NONBLOCK a pipe would wait for a reader.
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
    let found = file.metadata()?;
    if !found.is_file() || found.uid() != rustix::process::geteuid().as_raw() {
        return Err(Errno::PERM.into());
    }
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.set_len(0)?;
    file.write_all(bytes)
}

fn refusal(path: &Path, error: &io::Error) -> Fault {
    let (code, why, hint) = match Errno::from_io_error(error) {
        Some(Errno::LOOP) => (Code::PolicyDenied, "It is a symbolic link.", ANOTHER),
        Some(Errno::ISDIR) => (Code::PolicyDenied, "It is a directory.", "Give a file in it."),
        Some(Errno::PERM | Errno::NXIO) => (Code::PolicyDenied, "What is there is no plain file of this user.", ANOTHER),
        Some(Errno::ACCESS | Errno::ROFS | Errno::TXTBSY) => (Code::PolicyDenied, "The system does not allow it.", ANOTHER),
        Some(Errno::NOENT | Errno::NOTDIR) => {
            (Code::BadArgument, "There is no such directory.", "Make the directory, or give another file.")
        }
        Some(Errno::NAMETOOLONG | Errno::INVAL) => (Code::BadArgument, "That is no file name here.", ANOTHER),
        Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => {
            (Code::NoSpace, "The disk is full.", "Make room, or give a file on another disk.")
        }
        _ => (Code::Internal, "The system failed.", ANOTHER),
    };
    Fault::new(code, format!("{} cannot be written ({error}). {why}", visible::line(&path.to_string_lossy())), hint)
}

fn broken(what: &str) -> Fault {
    Fault::new(Code::Internal, what, "Try again; the daemon's log says more.")
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn written(path: &Path, text: &str) -> Result<u64, Fault> {
        Target::parse(path.to_str().unwrap(), &["png"])?.write_base64(STANDARD.encode(text)).await
    }

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o7777
    }

    #[tokio::test]
    async fn a_new_file_and_an_older_one_of_ours_are_written_for_us_alone() {
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("a.png");
        assert_eq!(written(&file, "longer than the next").await, Ok(20));
        assert_eq!(mode(&file), 0o600);
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert_eq!(written(&file, "short").await, Ok(5));
        assert_eq!((std::fs::read_to_string(&file).unwrap().as_str(), mode(&file)), ("short", 0o600));
    }

    #[tokio::test]
    async fn what_is_no_plain_file_of_ours_is_left_alone() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        std::fs::write(at("kept"), "kept").unwrap();
        std::os::unix::fs::symlink(at("kept"), at("link.png")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("dangling.png")).unwrap();
        std::fs::create_dir(at("directory.png")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe.png"), rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        for name in ["link.png", "dangling.png", "directory.png", "pipe.png"] {
            assert_eq!(written(&at(name), "x").await.unwrap_err().code, Code::PolicyDenied, "{name}");
        }
        assert_eq!(std::fs::read_to_string(at("kept")).unwrap(), "kept");
        assert!(!at("nowhere").exists());
    }

    /// A pipe that somebody reads can be opened; it is still no file.
    #[tokio::test]
    async fn a_pipe_with_a_reader_is_refused_too() {
        let home = tempfile::tempdir().unwrap();
        let pipe = home.path().join("pipe.png");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let reader = rustix::fs::open(&pipe, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
        assert_eq!(written(&pipe, "x").await.unwrap_err().code, Code::PolicyDenied);
        drop(reader);
    }

    #[tokio::test]
    async fn a_file_of_another_user_is_refused_even_to_root() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("not root: a file cannot be given away here");
            return;
        }
        let home = tempfile::tempdir().unwrap();
        let file = home.path().join("theirs.png");
        std::fs::write(&file, "theirs").unwrap();
        std::os::unix::fs::chown(&file, Some(12_345), None).unwrap();
        assert_eq!(written(&file, "ours").await.unwrap_err().code, Code::PolicyDenied);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "theirs");
    }

    #[tokio::test]
    async fn a_missing_directory_is_said() {
        let home = tempfile::tempdir().unwrap();
        let fault = written(&home.path().join("no/a.png"), "x").await.unwrap_err();
        assert_eq!(fault.code, Code::BadArgument);
        assert!(fault.message.ends_with("There is no such directory."), "{fault}");
    }

    #[test]
    fn only_absolute_names_with_the_right_ending_are_taken() {
        assert_eq!(Target::parse("/tmp/A.JPG", &["png", "jpg"]).unwrap().ending, "jpg");
        insta::assert_snapshot!(Target::parse("a.png", &["png"]).unwrap_err(), @r#"[bad_argument] Argument file is "a.png". It must be an absolute path: tabmux does not run in your directory."#);
        insta::assert_snapshot!(Target::parse("/etc/passwd", &["png", "jpg"]).unwrap_err(), @r#"[bad_argument] Argument file is "/etc/passwd". It must be an absolute path that ends in .png or .jpg."#);
        assert!(Target::parse("/tmp/.png", &["png"]).is_err() && Target::parse("", &["png"]).is_err());
    }
}
