//! The profiles tabmux keeps: logins with a name, each a directory of its owner's alone with `state.json` (Playwright's storage
//! state) and `profile.json` (what is known of it). Daemon and command line both use them, so nothing is remembered here: what
//! is on disk counts, and every change is one rename. A browser is asked in `import` and `login` only.

pub(crate) mod disk;
mod import;
mod login;
mod person;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use tabmux_core::{Code, Fault, SessionId, Uuid};
use tabmux_driver::StorageState;
use tabmux_wire::names;

use crate::storage_state;
pub use import::{Import, import};
pub use login::login;

/// How many names an answer lists.
const NAMES_SHOWN: usize = 20;

/// All profiles of one state directory. Every method blocks on the disk.
#[derive(Clone, Debug)]
pub struct Profiles {
    dir: PathBuf,
}

/// What is known of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Profile {
    pub name: String,
    /// What Seed 3 calls it by.
    pub uuid: String,
    /// ISO-8601, as the others.
    pub created_at: String,
    /// What its state was taken from last: `session:web`, `file`, …
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved_at: Option<String>,
    /// When a person last logged in with `tabmux profile login`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_login_at: Option<String>,
    #[serde(default)]
    pub cookies: usize,
    #[serde(default)]
    pub origins: usize,
}

/// All profiles there are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Listed {
    pub profiles: Vec<Profile>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub damaged: Vec<Damaged>,
}

/// A profile whose record cannot be read. Its logins may be whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damaged {
    pub name: String,
    pub why: String,
}

/// What a profile that is gone was called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Removed {
    pub name: String,
    /// None where its record could not be read.
    pub uuid: Option<String>,
}

/// What a profile's state is taken from, for its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken<'a> {
    From(&'a str),
    /// A person logged in.
    AtLogin,
}

impl Profiles {
    pub fn of_state(state_dir: &Path) -> Self {
        Self { dir: state_dir.join("profiles") }
    }

    /// Removes what a process left that died while it made or removed a profile, private copies of a person's files included.
    pub(crate) fn sweep(&self) {
        disk::sweep(&self.dir);
    }

    /// All of them by name. One whose record cannot be read is listed as that, because its logins would be forgotten otherwise.
    pub fn list(&self) -> Result<Listed, Fault> {
        self.sweep();
        let mut listed = Listed::default();
        for name in self.names()? {
            match self.about(&name) {
                Ok(profile) => listed.profiles.extend(profile),
                Err(fault) => listed.damaged.push(Damaged { name, why: fault.message }),
            }
        }
        Ok(listed)
    }

    /// The profile of this name or uuid.
    pub fn find(&self, text: &str) -> Result<Option<Profile>, Fault> {
        if let Ok(uuid) = text.parse::<Uuid>() {
            return Ok(self.list()?.profiles.into_iter().find(|profile| profile.uuid.parse() == Ok(uuid)));
        }
        if check_name(text).is_err() { Ok(None) } else { self.about(text) }
    }

    /// The profile of this name or uuid, or what there is instead.
    pub fn get(&self, text: &str) -> Result<Profile, Fault> {
        self.find(text)?.ok_or_else(|| {
            let shown: String = text.chars().take(64).flat_map(char::escape_debug).collect();
            Fault::new(Code::BadArgument, format!("There is no profile '{shown}'."), self.advice())
        })
    }

    /// Makes a profile; one of that name must not be there yet.
    pub(crate) fn create(&self, name: &str, state: &StorageState, taken: Option<Taken<'_>>) -> Result<Profile, Fault> {
        check_name(name)?;
        let now = now();
        let blank = Profile {
            name: name.to_owned(),
            uuid: random_uuid().to_string(),
            created_at: now,
            from: None,
            saved_at: None,
            last_login_at: None,
            cookies: 0,
            origins: 0,
        };
        let profile = blank.holding(state, taken);
        let files = [("state.json", storage_state::written(state)), ("profile.json", json(&profile))];
        if disk::make(&self.dir, name, &files)? {
            return Ok(profile);
        }
        Err(exists(name, &format!("use `tabmux profile save {name} -t SESSION`, or remove it with `tabmux profile rm {name}`")))
    }

    /// Makes a profile that holds nothing yet.
    pub fn create_empty(&self, name: &str) -> Result<Profile, Fault> {
        self.create(name, &StorageState::default(), None)
    }

    /// Makes a profile of a storage state as `storage_state::checked_file` gives it.
    pub fn create_of(&self, name: &str, state: &serde_json::Value, taken: Taken<'_>) -> Result<Profile, Fault> {
        let unusable = |why| Fault::new(Code::BadArgument, format!("The storage state cannot be used: {why}."), "Correct the file.");
        self.create(name, &storage_state::parse(state).map_err(unusable)?, Some(taken))
    }

    /// Makes a profile that holds what another one does.
    pub fn copy(&self, from: &str, name: &str) -> Result<Profile, Fault> {
        let source = self.get(from)?;
        self.create(name, &self.read(&source.name)?, Some(Taken::From(&format!("profile:{}", source.name))))
    }

    /// Replaces what a profile holds, or makes it.
    pub(crate) fn save(&self, name: &str, state: &StorageState, taken: Taken<'_>) -> Result<Profile, Fault> {
        check_name(name)?;
        let Some(known) = self.about(name)? else { return self.create(name, state, Some(taken)) };
        let profile = known.holding(state, Some(taken));
        // The record second: one that is behind says less than there is, never more.
        disk::replace(&self.dir.join(name), "state.json", &storage_state::written(state))?;
        disk::replace(&self.dir.join(name), "profile.json", &json(&profile))?;
        Ok(profile)
    }

    /// What the profile of this name or uuid holds.
    pub(crate) fn read(&self, text: &str) -> Result<StorageState, Fault> {
        let path = self.dir.join(&self.get(text)?.name).join("state.json");
        let broken = |why: String| {
            let message = format!("The file {} cannot be used: {why}.", path.display());
            Fault::new(Code::BadArgument, message, "Put it right, or save the profile again with `tabmux profile save`.")
        };
        let text = disk::read(&path)?.ok_or_else(|| broken("it is not there".to_owned()))?;
        storage_state::read(&text).map_err(broken)
    }

    /// Removes the profile of this name or uuid with everything in it, also one that is damaged.
    pub fn remove(&self, text: &str) -> Result<Removed, Fault> {
        let removed = match self.get(text) {
            Ok(profile) => Removed { name: profile.name, uuid: Some(profile.uuid) },
            Err(_) if self.names()?.iter().any(|name| name == text) => Removed { name: text.to_owned(), uuid: None },
            Err(fault) => return Err(fault),
        };
        disk::remove(&self.dir, &removed.name)?;
        Ok(removed)
    }

    /// What a profile holds, in Playwright's format.
    pub fn text(&self, text: &str) -> Result<String, Fault> {
        self.read(text).map(|state| storage_state::written(&state))
    }

    /// Writes that to a file of the user's.
    pub fn export(&self, text: &str, file: &Path) -> Result<Profile, Fault> {
        let state = self.text(text)?;
        let (directory, name) = match (file.parent(), file.file_name().and_then(|name| name.to_str())) {
            (Some(directory), Some(name)) => (directory, name),
            _ => return Err(Fault::new(Code::BadArgument, format!("{} is no file.", file.display()), "Name a file to write to.")),
        };
        disk::replace(directory, name, &state)?;
        self.get(text)
    }

    /// What to write instead of a name that is none.
    pub(crate) fn advice(&self) -> String {
        let names = self.names().unwrap_or_default();
        match names.len() {
            0 => "There are no profiles yet: `tabmux profile new`, `login` or `import` makes one.".to_owned(),
            number => {
                let more = if number > NAMES_SHOWN { ", …" } else { "" };
                let shown: Vec<&str> = names.iter().take(NAMES_SHOWN).map(String::as_str).collect();
                format!("Profiles: {}{more}.", shown.join(", "))
            }
        }
    }

    fn names(&self) -> Result<Vec<String>, Fault> {
        let mut names = disk::directories(&self.dir)?;
        // Also those without a record: no other profile can have their name.
        names.retain(|name| check_name(name).is_ok());
        names.sort();
        Ok(names)
    }

    fn about(&self, name: &str) -> Result<Option<Profile>, Fault> {
        let path = self.dir.join(name).join("profile.json");
        let damaged = |why: String| {
            let message = format!("The file {} {why}.", path.display());
            Fault::new(Code::BadArgument, message, format!("Put it right, or remove the profile with `tabmux profile rm {name}`."))
        };
        let Some(text) = disk::read(&path)? else {
            return if disk::is_directory(&self.dir.join(name)) { Err(damaged("is missing".to_owned())) } else { Ok(None) };
        };
        let read = serde_json::from_str::<Profile>(&text).map_err(|error| damaged(format!("cannot be read: {error}")));
        // The directory's name is what it goes by, also after somebody renamed it.
        read.map(|profile| Some(Profile { name: name.to_owned(), ..profile }))
    }
}

impl Profile {
    fn holding(mut self, state: &StorageState, taken: Option<Taken<'_>>) -> Self {
        (self.cookies, self.origins) = (state.cookies.len(), state.origins.len());
        let Some(taken) = taken else { return self };
        self.saved_at = Some(now());
        match taken {
            Taken::From(source) => self.from = Some(source.to_owned()),
            Taken::AtLogin => {
                self.last_login_at.clone_from(&self.saved_at);
                self.from = Some("login".to_owned());
            }
        }
        self
    }
}

/// What a profile may be called: the one rule for names, and nothing that reads as a file, a session or a uuid.
pub fn check_name(name: &str) -> Result<(), Fault> {
    let is_id = name.parse::<SessionId>().is_ok() || name.parse::<Uuid>().is_ok();
    if names::is_plain(name) && !name.starts_with(['.', '-']) && !name.ends_with(".json") && !is_id {
        return Ok(());
    }
    let shown: String = name.chars().take(64).flat_map(char::escape_debug).collect();
    let message = format!("'{shown}' cannot be the name of a profile.");
    let hint = format!("Use {}, without a dot or dash at the beginning or .json at the end, and no session's id or uuid.", names::RULE);
    Err(Fault::new(Code::BadArgument, message, hint))
}

fn exists(name: &str, otherwise: &str) -> Fault {
    let message = format!("A profile named '{name}' already exists.");
    Fault::new(Code::BadArgument, message, format!("Choose another name, {otherwise}."))
}

fn random_uuid() -> Uuid {
    let mut random = [0u8; 16];
    getrandom::fill(&mut random).expect("the kernel gives random bytes once it has booted");
    Uuid::from_random(u128::from_le_bytes(random))
}

fn now() -> String {
    crate::clock::iso(crate::clock::unix_ms())
}

fn json(profile: &Profile) -> String {
    serde_json::to_string_pretty(profile).expect("texts and numbers are JSON")
}
