//! The secret that makes a shim the same caller again: after a daemon crash, and with `--session NAME` also after
//! its own restart. A named one is kept in the state directory, readable by its owner alone.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use tabmux_core::Code;
use tabmux_daemon::rundir;

use crate::failure::{Failure, Outcome};
use crate::settings::paths::is_plain_name;

/// 256 bits in hex.
const KEY_CHARS: usize = 64;

pub(super) fn fresh() -> Outcome<String> {
    let mut bits = [0_u8; KEY_CHARS / 2];
    getrandom::fill(&mut bits).map_err(|error| {
        Failure::unavailable(Code::Internal, format!("No random numbers: {error}."), "Check that getrandom(2) is allowed.")
    })?;
    Ok(bits.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The key of the session NAME; the first who asks makes it, and everybody after gets the same.
pub(super) fn named(state_dir: &Path, name: &str) -> Outcome<String> {
    if !is_plain_name(name) {
        let hint = format!("It takes {}, and does not begin with a dot.", tabmux_wire::names::RULE);
        return Err(Failure::usage(format!("--session {name:?} is not a name for a session."), hint));
    }
    let dir = state_dir.join("sessions");
    rundir::prepare_private(&dir)?;
    let path = dir.join(format!("{name}.key"));
    let io = |error: io::Error| Failure::io(&format!("The key file {} cannot be used", path.display()), &error);
    if !path.exists() {
        create(&dir, &path).map_err(io)?;
    }
    read(&path).map_err(io)?.ok_or_else(|| {
        let message = format!("The key file {} is damaged, or others can read it.", path.display());
        Failure::unavailable(Code::PolicyDenied, message, "Remove it; the session then starts afresh.")
    })
}

/// Written whole under another name and then linked: of several who make it at once, one wins and nobody reads a part.
fn create(dir: &Path, path: &Path) -> io::Result<()> {
    let key = fresh().map_err(|failure| io::Error::other(failure.fault.message))?;
    let draft: PathBuf = dir.join(format!(".{}.draft", &fresh().map_err(|failure| io::Error::other(failure.fault.message))?[..16]));
    let linked = write_draft(&draft, &key).and_then(|()| std::fs::hard_link(&draft, path));
    std::fs::remove_file(&draft).ok();
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn write_draft(draft: &Path, key: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft)?;
    writeln!(file, "{key}")?;
    file.sync_all()
}

fn read(path: &Path) -> io::Result<Option<String>> {
    let file = File::open(path)?;
    let meta = file.metadata()?;
    let mine = meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o077 == 0;
    let mut text = String::new();
    file.take(1024).read_to_string(&mut text)?;
    let key = text.trim();
    let whole = key.len() == KEY_CHARS && key.bytes().all(|byte| byte.is_ascii_hexdigit());
    Ok((mine && whole).then(|| key.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn twenty_who_ask_at_once_get_one_key_that_only_its_owner_can_read() {
        let state = tempfile::tempdir().unwrap();
        let keys: std::collections::HashSet<String> = std::thread::scope(|scope| {
            let asking: Vec<_> = (0..20).map(|_| scope.spawn(|| named(state.path(), "work").unwrap())).collect();
            asking.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(keys.len(), 1);
        let dir = state.path().join("sessions");
        assert_eq!(std::fs::metadata(dir.join("work.key")).unwrap().mode() & 0o777, 0o600);
        assert_eq!(std::fs::read_dir(dir).unwrap().count(), 1, "no draft is left");
        assert!(!keys.contains(&named(state.path(), "other").unwrap()));
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_damaged_is_refused() {
        let state = tempfile::tempdir().unwrap();
        named(state.path(), "work").unwrap();
        let path = state.path().join("sessions/work.key");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).unwrap();
        assert!(named(state.path(), "work").unwrap_err().fault.message.contains("work.key"));
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o600)).unwrap();
        std::fs::write(&path, "short\n").unwrap();
        assert!(named(state.path(), "work").is_err());
    }

    #[test]
    fn a_name_cannot_leave_the_directory() {
        let state = tempfile::tempdir().unwrap();
        for name in ["../x", "a/b", "", ".", ".."] {
            assert!(named(state.path(), name).is_err(), "{name:?}");
        }
    }
}
