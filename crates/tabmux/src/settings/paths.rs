//! Where the daemon of this command line lives (C6): runtime directory, state directory, and the files in them.
//! Nothing is made here; `prepare` makes and checks.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tabmux_daemon::rundir;
use tabmux_daemon::settings::Paths;
use tabmux_wire::names;

use super::{Environment, Flags};
use crate::failure::{Failure, Outcome};

/// Every path of one daemon, and what its starters lock.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    pub(crate) paths: Paths,
    /// Held by whoever is starting a daemon.
    pub(crate) start_lock: PathBuf,
    /// Held by `tabmux up` for its life.
    pub(crate) up_lock: PathBuf,
    /// Outermost first: with `-L`, the common directory and the private one in it.
    private_dirs: Vec<PathBuf>,
}

pub(super) fn resolve(flags: &Flags, env: &Environment) -> Outcome<Places> {
    let runtime_root = env
        .path("TABMUX_RUNTIME_DIR")
        .or_else(|| env.path("XDG_RUNTIME_DIR").map(|dir| dir.join("tabmux")))
        .unwrap_or_else(|| env.temp_dir.join(format!("tabmux-{}", env.uid)));
    let state_root = env
        .path("TABMUX_STATE_DIR")
        .or_else(|| env.path("XDG_STATE_HOME").map(|dir| dir.join("tabmux")))
        .or_else(|| env.path("HOME").map(|home| home.join(".local/state/tabmux")));
    let Some(state_root) = state_root else {
        let message = "There is no place for state: HOME, XDG_STATE_HOME and TABMUX_STATE_DIR are all unset.";
        return Err(Failure::configuration(message, "Set TABMUX_STATE_DIR to a directory of your own."));
    };
    let (runtime_dir, state_dir) = match &flags.instance {
        None => (runtime_root.clone(), state_root.clone()),
        Some(name) if is_plain_name(name) => (runtime_root.join(name), state_root.join(name)),
        Some(name) => {
            let hint = format!("It takes {}, and does not begin with a dot.", names::RULE);
            return Err(Failure::usage(format!("-L {name:?} is not a name for a daemon."), hint));
        }
    };
    let flag_or = |flag: &Option<PathBuf>, default: PathBuf| flag.as_ref().map_or(default, |path| env.cwd.join(path));
    let socket = flag_or(&flags.socket, runtime_dir.join("tabmux.sock"));
    let mut private_dirs = vec![runtime_root, runtime_dir.clone(), state_root, state_dir.clone()];
    private_dirs.dedup();
    Ok(Places {
        start_lock: socket.with_extension("start.lock"),
        up_lock: socket.with_extension("up.lock"),
        private_dirs,
        paths: Paths {
            pid_file: flag_or(&flags.pid_file, runtime_dir.join("tabmux.pid")),
            log_file: flag_or(&flags.log_file, state_dir.join("daemon.log")),
            lock: socket.with_extension("lock"),
            socket,
            runtime_dir,
            state_dir,
        },
    })
}

/// A name that is also a good file name.
pub(crate) fn is_plain_name(name: &str) -> bool {
    names::is_plain(name) && !name.starts_with('.')
}

impl Places {
    /// Makes what is missing and refuses what cannot be trusted.
    pub(crate) fn prepare(&self) -> Outcome {
        for dir in &self.private_dirs {
            rundir::prepare_private(dir)?;
        }
        if let Some(dir) = self.paths.log_file.parent()
            && !dir.exists()
        {
            rundir::prepare_private(dir)?;
        }
        self.check_socket_dir()
    }

    /// Refuses to talk into a directory that somebody else could have filled. What is not there needs no trust.
    pub(crate) fn check(&self) -> Outcome {
        for dir in self.private_dirs.iter().filter(|dir| dir.symlink_metadata().is_ok()) {
            rundir::check_private(dir)?;
        }
        self.check_socket_dir()
    }

    /// `--socket` may name a place like /tmp, where the sticky bit keeps others from replacing the socket.
    fn check_socket_dir(&self) -> Outcome {
        let dir = self.paths.socket.parent().unwrap_or(Path::new("/"));
        let Ok(meta) = std::fs::metadata(dir) else { return Ok(()) };
        let (others_write, sticky) = (meta.mode() & 0o022 != 0, meta.mode() & 0o1000 != 0);
        if others_write && !sticky {
            return Err(rundir::DirError::TooOpen { path: dir.into(), mode: meta.mode() & 0o7777 }.into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Exit;

    fn env(variables: &[(&str, &str)]) -> Environment {
        let variables = variables.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Environment { variables, cwd: "/work".into(), temp_dir: "/tmp".into(), uid: 7 }
    }

    fn paths(flags: &Flags, variables: &[(&str, &str)]) -> Paths {
        resolve(flags, &env(variables)).unwrap().paths
    }

    #[test]
    fn the_runtime_directory_follows_its_variable_then_xdg_then_the_temporary_directory() {
        let home = ("HOME", "/h");
        let socket = |variables: &[(&str, &str)]| paths(&Flags::default(), variables).socket;
        assert_eq!(socket(&[home, ("TABMUX_RUNTIME_DIR", "/r"), ("XDG_RUNTIME_DIR", "/x")]), Path::new("/r/tabmux.sock"));
        assert_eq!(socket(&[home, ("TABMUX_RUNTIME_DIR", "r")]), Path::new("/work/r/tabmux.sock"));
        assert_eq!(socket(&[home, ("XDG_RUNTIME_DIR", "/x")]), Path::new("/x/tabmux/tabmux.sock"));
        assert_eq!(socket(&[home]), Path::new("/tmp/tabmux-7/tabmux.sock"));
    }

    #[test]
    fn the_state_directory_follows_its_variable_then_xdg_then_home_and_without_any_says_which_to_set() {
        let state = |variables: &[(&str, &str)]| paths(&Flags::default(), variables).state_dir;
        assert_eq!(state(&[("TABMUX_STATE_DIR", "/s"), ("XDG_STATE_HOME", "/x")]), Path::new("/s"));
        assert_eq!(state(&[("XDG_STATE_HOME", "/x")]), Path::new("/x/tabmux"));
        assert_eq!(state(&[("HOME", "/h")]), Path::new("/h/.local/state/tabmux"));
        let failure = resolve(&Flags::default(), &env(&[("HOME", "")])).unwrap_err();
        assert_eq!(failure.exit, Exit::BadConfiguration);
        assert!(failure.fault.hint.contains("TABMUX_STATE_DIR"));
    }

    #[test]
    fn a_private_daemon_has_its_own_directories_and_a_bad_name_is_refused() {
        let named = |name: &str| Flags { instance: Some(name.into()), ..Flags::default() };
        let paths = paths(&named("ci"), &[("HOME", "/h"), ("TABMUX_RUNTIME_DIR", "/r")]);
        assert_eq!(paths.socket, Path::new("/r/ci/tabmux.sock"));
        assert_eq!(paths.log_file, Path::new("/h/.local/state/tabmux/ci/daemon.log"));
        for name in ["", "..", "a/b", ".hidden", "a b"] {
            assert_eq!(resolve(&named(name), &env(&[("HOME", "/h")])).unwrap_err().exit, Exit::WrongUsage, "{name:?}");
        }
    }

    /// S1.2, S1.4, S1.5
    #[test]
    fn flags_reproduce_the_first_documents_paths() {
        let flags = Flags {
            socket: Some("/tmp/browser-agent-daemon.sock".into()),
            pid_file: Some("/tmp/browser-agent-daemon.pid".into()),
            log_file: Some("/h/.browser-agent/daemon.log".into()),
            ..Flags::default()
        };
        let places = resolve(&flags, &env(&[("HOME", "/h")])).unwrap();
        assert_eq!(places.paths.socket, Path::new("/tmp/browser-agent-daemon.sock"));
        assert_eq!(places.paths.pid_file, Path::new("/tmp/browser-agent-daemon.pid"));
        assert_eq!(places.paths.log_file, Path::new("/h/.browser-agent/daemon.log"));
        assert_eq!(places.paths.lock, Path::new("/tmp/browser-agent-daemon.lock"));
        assert_eq!(places.start_lock, Path::new("/tmp/browser-agent-daemon.start.lock"));
    }

    #[test]
    fn a_socket_in_a_directory_anybody_may_rewrite_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let home = tempfile::Builder::new().permissions(PermissionsExt::from_mode(0o700)).tempdir().unwrap();
        let open = home.path().join("open");
        std::fs::create_dir(&open).unwrap();
        let flags = Flags { socket: Some(open.join("s.sock")), ..Flags::default() };
        let root = home.path().to_str().unwrap();
        let places = resolve(&flags, &env(&[("TABMUX_RUNTIME_DIR", root), ("TABMUX_STATE_DIR", root)])).unwrap();
        for (mode, trusted) in [(0o777, false), (0o1777, true), (0o755, true)] {
            std::fs::set_permissions(&open, PermissionsExt::from_mode(mode)).unwrap();
            let checked = places.check();
            assert_eq!(checked.is_ok(), trusted, "{mode:o} {checked:?}");
        }
    }
}
