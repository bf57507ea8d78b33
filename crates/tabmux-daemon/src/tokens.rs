//! Who may speak over HTTP: the main token, which the operator's programs read from a 0600 file, and named
//! tokens, each an identity of its own. Of named tokens only the hash is kept, so that a lost file gives
//! nothing away. Rights are deliberately absent: a token says who, the hub says what.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use subtle::{ConditionallySelectable, ConstantTimeEq};
use tabmux_core::{Code, Fault, GrantKey};
use tabmux_wire::names;

const MAIN_FILE: &str = "token";
const NAMED_FILE: &str = "tokens.json";
const PREFIX: &str = "tmx_";
/// More named tokens than anybody hands out; each costs one comparison per request.
const MAX_NAMED: usize = 1000;
/// Larger than `MAX_NAMED` entries ever are.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// All tokens of one daemon.
#[derive(Debug)]
pub struct Tokens {
    state_dir: PathBuf,
    main: [u8; 32],
    /// Held over the rewriting of the file, so that file and memory agree; small and rare.
    named: Mutex<Vec<Named>>,
}

/// Whose token it was.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TokenHolder {
    Main,
    Named(String),
    /// A capability instead of a token: it is for what its grant says, and the hub knows it.
    Grant(GrantKey),
}

/// A named token as `tabmux token ls` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TokenInfo {
    pub name: String,
    /// ISO-8601.
    pub created_at: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    #[serde(with = "hex_digest")]
    sha256: [u8; 32],
    created_at: String,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamedFile {
    tokens: Vec<Named>,
}

impl Tokens {
    /// Reads the tokens of `state_dir`, and makes the main one on the first start. Blocks on the disk.
    pub fn open(state_dir: &Path) -> Result<Self, Fault> {
        let path = state_dir.join(MAIN_FILE);
        let text = match read_private(&path)? {
            Some(text) => text,
            None => make_main(state_dir, &path)?,
        };
        let main = text.trim_end();
        if !looks_like_a_token(main) {
            let message = format!("The file {} holds no token of the form {PREFIX} and 64 hex digits.", path.display());
            return Err(Fault::new(Code::BadArgument, message, "Remove the file; the next start makes a new token."));
        }
        let path = state_dir.join(NAMED_FILE);
        let file: NamedFile = match read_private(&path)? {
            Some(text) => serde_json::from_str(&text).map_err(|error| {
                let message = format!("The file {} is not readable: {error}.", path.display());
                Fault::new(Code::BadArgument, message, "Put it right or remove it; then make the named tokens anew with tabmux token new.")
            })?,
            None => NamedFile::default(),
        };
        Ok(Self { state_dir: state_dir.to_path_buf(), main: digest(main), named: Mutex::new(file.tokens) })
    }

    /// Makes a named token and gives it back, this once. Blocks on the disk.
    pub fn new_token(&self, name: &str) -> Result<String, Fault> {
        check_name(name)?;
        let mut named = self.named();
        if named.iter().any(|token| token.name == name) {
            let message = format!("A token with the name '{name}' already exists.");
            return Err(Fault::new(Code::BadArgument, message, format!("Choose another name, or first run tabmux token revoke {name}.")));
        }
        if named.len() >= MAX_NAMED {
            let message = format!("There are already {MAX_NAMED} named tokens.");
            return Err(Fault::new(Code::Capacity, message, "Revoke one that is no longer used; tabmux token ls shows them."));
        }
        let secret = random_token()?;
        let mut tokens = named.clone();
        tokens.push(Named { name: name.to_owned(), sha256: digest(&secret), created_at: jiff::Timestamp::now().to_string() });
        self.store(&mut named, tokens)?;
        Ok(secret)
    }

    pub fn list(&self) -> Vec<TokenInfo> {
        self.named().iter().map(|token| TokenInfo { name: token.name.clone(), created_at: token.created_at.clone() }).collect()
    }

    /// Ends a named token: from now on it is refused. Blocks on the disk.
    pub fn revoke(&self, name: &str) -> Result<(), Fault> {
        let mut named = self.named();
        let tokens: Vec<Named> = named.iter().filter(|token| token.name != name).cloned().collect();
        if tokens.len() == named.len() {
            let message = format!("There is no token with the name '{name}'.");
            return Err(Fault::new(Code::BadArgument, message, "tabmux token ls shows the names there are."));
        }
        self.store(&mut named, tokens)
    }

    /// Whose token this is. Takes the same time whichever token matches, or none.
    pub fn check(&self, presented: &str) -> Option<TokenHolder> {
        const NOBODY: u32 = u32::MAX;
        let presented = digest(presented);
        let named = self.named();
        let mut holder = NOBODY;
        for (place, known) in (0u32..).zip(std::iter::once(&self.main).chain(named.iter().map(|token| &token.sha256))) {
            holder.conditional_assign(&place, presented.ct_eq(known));
        }
        match holder {
            NOBODY => None,
            0 => Some(TokenHolder::Main),
            place => named.get(place as usize - 1).map(|token| TokenHolder::Named(token.name.clone())),
        }
    }

    fn named(&self) -> MutexGuard<'_, Vec<Named>> {
        // A panic while the list was held cannot leave it half changed: it is replaced whole, after the file.
        self.named.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn store(&self, named: &mut Vec<Named>, tokens: Vec<Named>) -> Result<(), Fault> {
        let path = self.state_dir.join(NAMED_FILE);
        let file = NamedFile { tokens };
        let text = serde_json::to_string_pretty(&file).map_err(|error| unusable(&path, "be written", &error.into()))?;
        put_private(&self.state_dir, &text)
            .and_then(|temporary| temporary.persist(&path).map_err(|error| error.error))
            .and_then(|_| File::open(&self.state_dir)?.sync_all())
            .map_err(|error| unusable(&path, "be written", &error))?;
        *named = file.tokens;
        Ok(())
    }
}

fn check_name(name: &str) -> Result<(), Fault> {
    if names::is_plain(name) {
        return Ok(());
    }
    let message = format!("'{}' cannot be the name of a token.", name.chars().take(64).collect::<String>());
    Err(Fault::new(Code::BadArgument, message, format!("Use {}.", names::RULE)))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn looks_like_a_token(text: &str) -> bool {
    text.strip_prefix(PREFIX).is_some_and(|hex| hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

pub(crate) fn random_token() -> Result<String, Fault> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| {
        Fault::new(Code::Internal, format!("The system gives no random numbers: {error}."), "Try again; without them no token can be made.")
    })?;
    Ok(format!("{PREFIX}{}", hex_digest::to_hex(&bytes)))
}

/// Makes the main token, unless another process was faster: then that one counts.
fn make_main(state_dir: &Path, path: &Path) -> Result<String, Fault> {
    let token = random_token()?;
    let stored = put_private(state_dir, &format!("{token}\n")).and_then(|temporary| match temporary.persist_noclobber(path) {
        Ok(_) => File::open(state_dir)?.sync_all(),
        Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.error),
    });
    stored.map_err(|error| unusable(path, "be made", &error))?;
    read_private(path)?.ok_or_else(|| unusable(path, "be read", &io::ErrorKind::NotFound.into()))
}

/// A synced file of the owner's alone, beside the one it is to become.
fn put_private(state_dir: &Path, text: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut file = tempfile::Builder::new().prefix(".token-").permissions(Permissions::from_mode(0o600)).tempfile_in(state_dir)?;
    file.write_all(text.as_bytes())?;
    file.as_file().sync_all()?;
    Ok(file)
}

/// Reads a file of secrets; refuses one that others could have read or put there. `None` = there is none.
fn read_private(path: &Path) -> Result<Option<String>, Fault> {
    let no_link = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let file = match OpenOptions::new().read(true).custom_flags(no_link.bits().cast_signed()).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(path, "be opened", &error)),
    };
    let about = file.metadata().map_err(|error| unusable(path, "be read", &error))?;
    if !about.is_file() || about.uid() != rustix::process::geteuid().as_raw() || about.mode() & 0o077 != 0 {
        let message = format!(
            "The token file {} is not the user's alone: owner {}, mode {:04o}.",
            path.display(),
            about.uid(),
            about.mode() & 0o7777
        );
        let hint = "Others may know what is in it: remove it, and the next start makes a new one with mode 0600.";
        return Err(Fault::new(Code::PolicyDenied, message, hint));
    }
    let mut text = String::new();
    file.take(MAX_FILE_BYTES).read_to_string(&mut text).map_err(|error| unusable(path, "be read", &error))?;
    Ok(Some(text))
}

fn unusable(path: &Path, verb: &str, error: &io::Error) -> Fault {
    let code = if error.kind() == io::ErrorKind::StorageFull { Code::NoSpace } else { Code::Internal };
    let message = format!("The token file {} cannot {verb}: {error}.", path.display());
    Fault::new(code, message, "See that the state directory is yours, is no symbolic link and has room, or move it with TABMUX_STATE_DIR.")
}

/// Digests as hex in the file.
mod hex_digest {
    use serde::{Deserialize, Deserializer, Serializer, de};

    pub(super) fn to_hex(bytes: &[u8; 32]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    pub(super) fn serialize<S: Serializer>(bytes: &[u8; 32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&to_hex(bytes))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[u8; 32], D::Error> {
        let text = String::deserialize(deserializer)?;
        let wrong = || de::Error::custom("a SHA-256 is 64 hex digits");
        if text.len() != 64 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(wrong());
        }
        let mut bytes = [0; 32];
        for (byte, at) in bytes.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| wrong())?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests;
