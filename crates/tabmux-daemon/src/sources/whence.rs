//! Which source a text means: a session of the caller's, a profile, a file, or a storage state itself.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use tabmux_core::{Caller, Code, Fault, Identity, Millis, Registry, SessionId};

use crate::hub::Hub;
use crate::profiles::Profiles;
use crate::settings::Paths;

/// How many sessions an answer lists.
const NAMES_SHOWN: usize = 20;
const PROFILE: &str = "profile:";
const SESSION: &str = "session:";
const FILE: &str = "file:";

/// Where a session's logins come from.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Whence {
    Session {
        id: SessionId,
        name: String,
    },
    Profile(String),
    File(PathBuf),
    /// A storage state, as its client read it.
    Given(Given),
    /// Something that only a former daemon could read.
    Past(String),
}

/// A storage state's text; it is a secret.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct Given(Arc<str>);

impl Given {
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Given {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Given").finish_non_exhaustive()
    }
}

/// What sessions show, and the journal keeps.
impl fmt::Display for Whence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Session { name, .. } => write!(f, "{SESSION}{name}"),
            Self::Profile(name) => write!(f, "{PROFILE}{name}"),
            Self::File(path) => write!(f, "{FILE}{}", path.display()),
            Self::Given(_) => f.write_str("file"),
            Self::Past(what) => f.write_str(what),
        }
    }
}

impl Whence {
    /// What a former daemon wrote down.
    pub(crate) fn remembered(text: &str, session: Option<SessionId>) -> Self {
        match (text.strip_prefix(PROFILE), text.strip_prefix(FILE), text.strip_prefix(SESSION).zip(session)) {
            (Some(name), ..) => Self::Profile(name.to_owned()),
            (_, Some(path), _) => Self::File(path.into()),
            (.., Some((name, id))) => Self::Session { id, name: name.to_owned() },
            (None, None, None) => Self::Past(text.to_owned()),
        }
    }

    /// The session it is, if it is one.
    pub(crate) fn session(&self) -> Option<SessionId> {
        match self {
            Self::Session { id, .. } => Some(*id),
            Self::Profile(_) | Self::File(_) | Self::Given(_) | Self::Past(_) => None,
        }
    }

    /// Whether another daemon could read it too.
    pub(crate) fn lasts(&self) -> bool {
        !matches!(self, Self::Given(_) | Self::Past(_))
    }
}

/// Whether a source is written as a file, which the command line reads itself.
pub fn is_file(text: &str) -> bool {
    text.contains('/') || text.ends_with(".json")
}

impl Hub {
    pub(crate) fn profiles(&self) -> Profiles {
        Profiles::of_state(&self.settings.paths.state_dir)
    }

    /// What a caller means by `from`. A session wins over a profile of the same name.
    pub(crate) fn whence(&self, registry: &mut Registry, caller: Caller<'_>, text: &str, now: Millis) -> Result<Whence, Fault> {
        if text.trim_start().starts_with('{') {
            return Ok(Whence::Given(Given(text.into())));
        }
        if let Some(name) = text.strip_prefix(PROFILE) {
            return self.profiles().get(name).map(|profile| Whence::Profile(profile.name));
        }
        if is_file(text) {
            return file(text, &self.settings.paths).map(Whence::File);
        }
        let named = text.strip_prefix(SESSION);
        let refused = match registry.resolve(caller, Some(named.unwrap_or(text)), now) {
            Ok(id) => {
                let name = registry.session(id).map(tabmux_core::Session::handle).unwrap_or_default();
                return Ok(Whence::Session { id, name });
            }
            Err(refused) => refused,
        };
        match self.profiles().find(text)?.filter(|_| named.is_none()) {
            Some(profile) => Ok(Whence::Profile(profile.name)),
            None if refused.code == Code::SessionNotFound && named.is_none() => Err(nowhere(registry, caller, text, &self.profiles())),
            None => Err(refused),
        }
    }
}

/// The daemon runs elsewhere than its callers, and its own files are nobody's.
fn file(text: &str, paths: &Paths) -> Result<PathBuf, Fault> {
    let path = PathBuf::from(text);
    if !path.is_absolute() {
        let message = format!("{} is no absolute path.", path.display());
        return Err(Fault::new(Code::BadArgument, message, "Name the file from the root, as /home/me/state.json."));
    }
    let real = path.canonicalize().unwrap_or_else(|_| path.clone());
    if [&paths.state_dir, &paths.runtime_dir].into_iter().any(|own| real.starts_with(own) || path.starts_with(own)) {
        let message = format!("{} is a file of tabmux itself.", path.display());
        return Err(Fault::new(Code::PolicyDenied, message, "Name a profile as profile:NAME."));
    }
    Ok(path)
}

fn nowhere(registry: &Registry, caller: Caller<'_>, text: &str, profiles: &Profiles) -> Fault {
    let shown: String = text.chars().take(128).flat_map(char::escape_default).collect();
    let own: Vec<String> = match registry.identity(caller.client) {
        Some(Identity::Operator) => registry.list_all().iter().map(|listed| listed.session.handle()).collect(),
        _ => registry.list(caller).iter().map(|listed| listed.session.handle()).collect(),
    };
    let sessions = match own.len() {
        0 => "No sessions".to_owned(),
        number => format!("Sessions: {}{}", own[..number.min(NAMES_SHOWN)].join(", "), if number > NAMES_SHOWN { ", …" } else { "" }),
    };
    let message = format!("There is no session and no profile '{shown}' to copy from.");
    Fault::new(Code::SessionNotFound, message, format!("{sessions}. {}", profiles.advice()))
}
