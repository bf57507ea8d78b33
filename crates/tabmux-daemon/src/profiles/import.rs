//! The profile of a person's own browser, while that is closed: what is needed is copied, a headless browser is started on the
//! copy and asked, and the copy goes again. The person's files are only read. A running browser holds what is not on disk yet, so
//! its profile is refused. Passwords, history and extensions are deliberately absent.

mod cookie_file;

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tabmux_cdp::attach::usual_profiles;
use tabmux_cdp::find::Os;
use tabmux_cdp::launch::{Mode, Profile, holder};
use tabmux_core::{Code, Fault};
use tabmux_driver::{Browser, ContextSpec, Cookie, Isolation};

use self::cookie_file::Counted;
use super::person::{OwnBrowser, unless};
use super::{Profiles, Taken, check_name, disk, exists};
use crate::settings::Settings;
use crate::sources::state_of_origins;

/// Which profile is meant.
#[derive(Clone, Debug, Default)]
pub struct Import {
    /// `chrome`, `chromium`, `edge` or `brave`.
    pub browser: Option<String>,
    /// A user data directory, or one profile in it.
    pub dir: Option<PathBuf>,
    /// Also where there is a profile of that name, which then holds what was read instead.
    pub replace: bool,
}

/// A profile in a user data directory.
#[derive(Debug, PartialEq, Eq)]
struct Found {
    data: PathBuf,
    profile: PathBuf,
}

/// What holds logins, below a profile.
const NEEDED: [&str; 6] = ["Cookies", "Cookies-journal", "Network/Cookies", "Network/Cookies-journal", "Local Storage", "IndexedDB"];

/// A browser that does not continue where it left off begins by forgetting the cookies that end with it, which are on its disk all the
/// same. There are no tabs on the copy to go on with.
const CONTINUES: &str = "{\"session\":{\"restore_on_startup\":1}}";

/// More origins than anybody keeps things at; each takes a moment to read.
const MAX_ORIGINS: usize = 1000;

/// Reads a person's profile into one of ours, unless it is given up before.
pub async fn import(settings: &Settings, name: &str, import: &Import, given_up: impl Future<Output = ()>) -> Result<Value, Fault> {
    check_name(name)?;
    let profiles = Profiles::of_state(&settings.paths.state_dir);
    let is_there = profiles.find(name)?.is_some();
    if is_there && !import.replace {
        return Err(exists(name, "or replace what it holds with --replace"));
    }
    let found = find(settings, import)?;
    if let Some(holder) = holder(&found.data) {
        let message = format!("{} is in use by {holder}.", found.data.display());
        let hint = "Close that browser and import again, or work in it while it runs: `tabmux up --attach auto`.";
        return Err(Fault::new(Code::Capacity, message, hint));
    }
    let place = disk::private(&profiles.dir)?;
    let copy = place.path().join("data");
    copy_needed(&found.profile, &copy.join("Default"))?;
    let mut origins = origins_on_disk(&copy.join("Default"));
    let own = OwnBrowser::start(settings, place.path(), Mode::Headless, Profile::Named(copy)).await?;
    let read = async {
        let spec = ContextSpec { isolation: Isolation::Tab, ..ContextSpec::default() };
        let context = own.browser().open_context(&spec).await?;
        // Chromium makes no hidden tabs before it has made one that is not.
        let page = context.open_page().await?;
        let unreadable = || Fault::new(Code::Unsupported, "What this browser keeps cannot be read.", "Use another browser.");
        let source = context.source().ok_or_else(unreadable)?;
        let cookies = source.cookies().await?;
        origins.extend(cookies.iter().filter_map(origin_of_cookie));
        let origins: Vec<String> = origins.into_iter().take(MAX_ORIGINS).collect();
        let state = state_of_origins(&*source, cookies, origins).await;
        drop(page);
        Ok::<_, Fault>(state)
    };
    let read = unless(given_up, read).await;
    own.end().await;
    let (state, mut losses) = read?;
    losses.extend(missing_cookies(cookie_file::count(&found.profile, crate::clock::unix_ms()), state.cookies.len()));
    let source = format!("import:{}", found.profile.display());
    let taken = Taken::From(&source);
    let profile = if import.replace { profiles.save(name, &state, taken) } else { profiles.create(name, &state, Some(taken)) }?;
    place.close().map_err(|error| {
        Fault::new(
            Code::Internal,
            format!("The copy of the profile could not be removed: {error}."),
            "Remove .new-* below <state>/profiles.",
        )
    })?;
    Ok(json!({"profile": profile, "losses": losses}))
}

fn find(settings: &Settings, import: &Import) -> Result<Found, Fault> {
    let browsers = [("chrome", "google-chrome"), ("chromium", "chromium"), ("edge", "edge"), ("brave", "brave")];
    if let Some(dir) = &import.dir {
        return in_directory(dir).ok_or_else(|| {
            let message = format!("{} is no profile of Chrome, Chromium, Edge or Brave.", dir.display());
            Fault::new(Code::BadArgument, message, "Name the directory that chrome://version calls Profile Path.")
        });
    }
    let wanted = |dir: &Path| {
        let text = dir.to_string_lossy().to_lowercase().replace(' ', "-");
        import.browser.as_deref().is_none_or(|name| browsers.iter().any(|(word, part)| *word == name && text.contains(part)))
    };
    let os = if cfg!(target_os = "macos") { Os::Mac } else { Os::Linux };
    let home = settings.attach.home.as_deref();
    let dirs = usual_profiles(os, home, settings.attach.config_home.as_deref()).dirs;
    let mut found: Vec<Found> = dirs.iter().filter(|dir| wanted(dir)).filter_map(|dir| in_directory(dir)).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let which = import.browser.as_deref().unwrap_or("Chrome, Chromium, Edge or Brave");
            let message = format!("No profile of {which} was found.");
            Err(Fault::new(Code::BadArgument, message, "Name its directory with --profile-dir; chrome://version shows it as Profile Path."))
        }
        _ => {
            let all: Vec<String> = found.iter().map(|found| found.profile.display().to_string()).collect();
            let message = format!("There are several profiles: {}.", all.join(", "));
            Err(Fault::new(Code::BadArgument, message, "Choose one with --browser or --profile-dir."))
        }
    }
}

/// A directory that is a profile, or has the usual one in it.
fn in_directory(dir: &Path) -> Option<Found> {
    let is_profile = |dir: &Path| ["Preferences", "Cookies", "Network/Cookies", "Local Storage"].iter().any(|file| dir.join(file).exists());
    let inside = dir.join("Default");
    if is_profile(&inside) {
        return Some(Found { data: dir.to_owned(), profile: inside });
    }
    is_profile(dir).then(|| Found { data: dir.parent().unwrap_or(dir).to_owned(), profile: dir.to_owned() })
}

fn copy_needed(from: &Path, to: &Path) -> Result<(), Fault> {
    let copied = NEEDED.iter().try_for_each(|part| copy_all(&from.join(part), &to.join(part)));
    let copied = copied.and_then(|()| fs::create_dir_all(to)).and_then(|()| fs::write(to.join("Preferences"), CONTINUES));
    copied.map_err(|error| {
        let code = if error.kind() == io::ErrorKind::StorageFull { Code::NoSpace } else { Code::BadArgument };
        Fault::new(
            code,
            format!("The profile {} cannot be copied: {error}.", from.display()),
            "See that it is yours and that the disk has room.",
        )
    })
}

/// Links are left out: what is behind them is not the profile's.
fn copy_all(from: &Path, to: &Path) -> io::Result<()> {
    let Ok(about) = from.symlink_metadata() else { return Ok(()) };
    if about.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy_all(&entry.path(), &to.join(entry.file_name()))?;
        }
    } else if about.is_file() {
        if let Some(parent) = to.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::copy(from, to)?;
    }
    Ok(())
}

/// How many cookies the person's browser has on its disk that the copy did not give, and why.
fn missing_cookies(on_disk: Option<Counted>, read: usize) -> Option<String> {
    let Some(on_disk) = on_disk else { return Some("cookies: how many are missing is not known, their file has another form".to_owned()) };
    let missing = on_disk.all.checked_sub(read).filter(|missing| *missing > 0)?;
    let why = match on_disk.in_keyring {
        0 => "the browser here does not take them".to_owned(),
        number => format!("{number} are encrypted with a key of the desktop's keyring; `tabmux up --attach auto` has them"),
    };
    Some(format!("{missing} of {} cookies: {why}", on_disk.all))
}

/// The origins whose names are on disk: databases have a directory each, and Local Storage writes `META:ORIGIN` into its log. What its
/// older, compressed tables list is not looked for; such an origin is found by its cookies, if it has any.
fn origins_on_disk(profile: &Path) -> BTreeSet<String> {
    let mut origins = BTreeSet::new();
    let names = |dir: &str| fs::read_dir(profile.join(dir)).into_iter().flatten().flatten().map(|entry| entry.path());
    for path in names("IndexedDB") {
        origins.extend(path.file_name().and_then(|name| origin_of_database(&name.to_string_lossy())));
    }
    for path in names("Local Storage/leveldb") {
        let bytes = fs::read(path).unwrap_or_default();
        for at in memchr::memmem::find_iter(&bytes, b"META:http") {
            let rest = &bytes[at + 5..];
            let end = rest.iter().position(|byte| !(byte.is_ascii_alphanumeric() || b":/.-[]_".contains(byte))).unwrap_or(rest.len());
            let text = String::from_utf8_lossy(&rest[..end]);
            origins.extend(url::Url::parse(&text).ok().filter(|url| url.has_host()).map(|url| url.origin().ascii_serialization()));
        }
    }
    origins
}

/// `https_example.com_0.indexeddb.leveldb`; 0 is the scheme's own port.
fn origin_of_database(name: &str) -> Option<String> {
    let name = name.strip_suffix(".indexeddb.leveldb")?;
    let (scheme, rest) = name.split_once('_')?;
    let (host, port) = rest.rsplit_once('_')?;
    let port = if port == "0" { String::new() } else { format!(":{}", port.parse::<u16>().ok()?) };
    let url = url::Url::parse(&format!("{scheme}://{host}{port}")).ok()?;
    ["http", "https"].contains(&url.scheme()).then(|| url.origin().ascii_serialization())
}

fn origin_of_cookie(cookie: &Cookie) -> Option<String> {
    let host = cookie.domain.trim_start_matches('.');
    let url = url::Url::parse(&format!("https://{host}")).ok()?;
    // Of another site in a page: what it keeps there is kept per page's site, and is not copied.
    cookie.partition_key.is_none().then(|| url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_read_from_the_names_of_databases_and_the_log_of_local_storage() {
        for (name, origin) in [
            ("https_example.com_0.indexeddb.leveldb", Some("https://example.com")),
            ("http_127.0.0.1_8080.indexeddb.leveldb", Some("http://127.0.0.1:8080")),
            ("https_a_b.test_0.indexeddb.leveldb", Some("https://a_b.test")),
            ("chrome-extension_abc_0.indexeddb.leveldb", None),
            ("https_example.com_0.indexeddb.blob", None),
            ("nonsense", None),
        ] {
            assert_eq!(origin_of_database(name).as_deref(), origin, "{name}");
        }
        let profile = tempfile::tempdir().unwrap();
        let log = profile.path().join("Local Storage/leveldb");
        fs::create_dir_all(&log).unwrap();
        fs::write(log.join("000003.log"), b"\x01\x00META:https://a.test\x0c\x08\x91\x00META:http://127.0.0.1:81\x00META:chrome://x")
            .unwrap();
        fs::create_dir_all(profile.path().join("IndexedDB/https_b.test_0.indexeddb.leveldb")).unwrap();
        let origins: Vec<String> = origins_on_disk(profile.path()).into_iter().collect();
        assert_eq!(origins, ["http://127.0.0.1:81", "https://a.test", "https://b.test"]);
    }

    #[test]
    fn a_directory_is_a_profile_or_has_one() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(in_directory(data.path()), None);
        for name in ["Default", "Profile 1"] {
            fs::create_dir_all(data.path().join(name).join("Network")).unwrap();
            fs::write(data.path().join(name).join("Network/Cookies"), "").unwrap();
        }
        let found = |name: &str| Some(Found { data: data.path().to_owned(), profile: data.path().join(name) });
        assert_eq!(in_directory(data.path()), found("Default"));
        assert_eq!(in_directory(&data.path().join("Profile 1")), found("Profile 1"));
    }

    #[test]
    fn what_is_needed_is_copied_and_links_are_left_out() {
        let (from, to) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        fs::create_dir_all(from.path().join("IndexedDB/x")).unwrap();
        fs::write(from.path().join("IndexedDB/x/1"), "one").unwrap();
        fs::write(from.path().join("Login Data"), "passwords").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", from.path().join("Cookies")).unwrap();
        copy_needed(from.path(), &to.path().join("Default")).unwrap();
        assert_eq!(fs::read_to_string(to.path().join("Default/IndexedDB/x/1")).unwrap(), "one");
        assert_eq!(fs::read_dir(to.path().join("Default")).unwrap().count(), 2, "and what says how to begin");
    }
}
