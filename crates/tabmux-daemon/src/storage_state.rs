//! Playwright's storage state, read and written. A file is read and checked by the client that names it, since daemon and client
//! share no directory, and checked again here, where it comes over the wire; one that is too large for that, the daemon reads itself.
//! Databases are checked where they are loaded, by the browser.

use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::{Cookie, OriginStorage, StorageItem, StorageState};

use crate::profiles::disk;

/// The largest that fits into a frame, with room for the rest of it.
const MAX_SENT_BYTES: usize = tabmux_wire::MAX_FRAME_BYTES / 2;

/// The file's shape. Members it does not name are other tools' own.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct File {
    #[serde(default)]
    cookies: Vec<Cookie>,
    #[serde(default)]
    origins: Vec<FileOrigin>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileOrigin {
    origin: String,
    #[serde(default)]
    local_storage: Vec<StorageItem>,
    #[serde(default, rename = "indexedDB")]
    indexed_db: Vec<Value>,
}

/// What a file holds, as it goes over the wire where it fits, or what is wrong with it.
pub fn checked_file(path: &Path) -> Result<Value, String> {
    read_file(path).map(|state| json!(state))
}

/// Whether a text fits into a frame, quoted as it is there. What does not is named by its path.
pub fn can_be_sent(text: &str) -> bool {
    json!(text).to_string().len() <= MAX_SENT_BYTES
}

/// What a file says, or what is wrong with it.
pub(crate) fn read_file(path: &Path) -> Result<StorageState, String> {
    read(&disk::read_named(path).map_err(|error| error.to_string())?)
}

/// What a text says, or what is wrong with it.
pub(crate) fn read(text: &str) -> Result<StorageState, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("it is no JSON: {error}"))?;
    parse(&value)
}

/// As Playwright writes it: a cookie that ends with its session says so.
pub(crate) fn written(state: &StorageState) -> String {
    let mut value = json!(state);
    let cookies = value["cookies"].as_array_mut();
    for cookie in cookies.into_iter().flatten().filter_map(Value::as_object_mut) {
        cookie.entry("expires").or_insert_with(|| (-1).into());
    }
    value.to_string()
}

pub(crate) fn parse(value: &Value) -> Result<StorageState, String> {
    if !value.is_object() {
        return Err("it is no object with cookies and origins".to_owned());
    }
    // Members may be other tools' own, but a file without any of these is something else, and its session would begin with nothing.
    if value.get("cookies").is_none() && value.get("origins").is_none() {
        return Err("it has neither `cookies` nor `origins`".to_owned());
    }
    let file: File = serde_path_to_error::deserialize(value).map_err(|error| format!("{}: {}", error.path(), error.inner()))?;
    let origins = file.origins.into_iter().enumerate().map(|(at, kept)| {
        let origin = origin(&kept.origin).ok_or_else(|| format!("origins[{at}].origin: {:?} is no http or https origin", kept.origin))?;
        Ok(OriginStorage { origin, local_storage: kept.local_storage, indexed_db: kept.indexed_db, ..OriginStorage::default() })
    });
    Ok(StorageState { cookies: file.cookies, origins: origins.collect::<Result<_, String>>()? })
}

fn origin(text: &str) -> Option<String> {
    let url = url::Url::parse(text).ok().filter(|url| ["http", "https"].contains(&url.scheme()))?;
    Some(url.origin().ascii_serialization())
}

#[cfg(test)]
mod tests {
    use tabmux_driver::SameSite;

    use super::*;

    /// As `context.storageState()` writes it.
    #[test]
    fn what_playwright_writes_is_read() {
        let file = json!({
            "cookies": [
                {"name": "sid", "value": "1", "domain": ".a.test", "path": "/x", "expires": -1, "httpOnly": true, "secure": true, "sameSite": "None"},
                {"name": "p", "value": "2", "domain": "b.test", "path": "/", "expires": 1_800_000_000.5, "httpOnly": false, "secure": false,
                 "sameSite": "Lax", "partitionKey": "https://top.test", "_crHasCrossSiteAncestor": false},
            ],
            "origins": [{"origin": "https://A.test:443/", "localStorage": [{"name": "k", "value": "v"}], "indexedDB": [{"name": "db"}]}],
        });
        let state = read(&file.to_string()).unwrap();
        let sid = Cookie {
            name: "sid".into(),
            value: "1".into(),
            domain: ".a.test".into(),
            path: "/x".into(),
            http_only: true,
            secure: true,
            same_site: Some(SameSite::None),
            ..Cookie::default()
        };
        assert_eq!(state.cookies[0], sid);
        assert_eq!(
            (state.cookies[1].expires, state.cookies[1].partition_key.as_deref()),
            (Some(1_800_000_000.5), Some("https://top.test"))
        );
        let kept = vec![StorageItem { name: "k".into(), value: "v".into() }];
        assert_eq!(
            state.origins,
            [OriginStorage {
                origin: "https://a.test".into(),
                local_storage: kept,
                indexed_db: vec![json!({"name": "db"})],
                ..OriginStorage::default()
            }]
        );
        for half in [r#"{"cookies": []}"#, r#"{"origins": [], "mine": 1}"#] {
            assert_eq!(read(half), Ok(StorageState::default()), "{half}");
        }
    }

    #[test]
    fn same_site_is_read_as_others_write_it() {
        for (text, read_as) in [
            (json!("lax"), Some(SameSite::Lax)),
            (json!("STRICT"), Some(SameSite::Strict)),
            (json!("no_restriction"), Some(SameSite::None)),
            (json!("unspecified"), None),
            (json!(""), None),
            (json!(null), None),
        ] {
            let file = json!({"cookies": [{"name": "a", "value": "1", "domain": "a.test", "sameSite": text}]});
            assert_eq!(parse(&file).unwrap().cookies[0].same_site, read_as, "{text}");
        }
    }

    /// The keys are those of `context.storageState()`, and nothing is lost on the way back.
    #[test]
    fn what_is_written_is_playwrights_and_reads_back() {
        let file = json!({
            "cookies": [
                {"name": "sid", "value": "1", "domain": ".a.test", "path": "/x", "expires": -1, "httpOnly": true, "secure": true, "sameSite": "None"},
                {"name": "p", "value": "2", "domain": "b.test", "path": "/", "expires": 1_800_000_000.5, "httpOnly": false, "secure": false,
                 "sameSite": "Lax", "partitionKey": "https://top.test"},
            ],
            "origins": [{"origin": "https://a.test", "localStorage": [{"name": "k", "value": "v"}], "indexedDB": [{"name": "db"}]}],
        });
        let state = read(&file.to_string()).unwrap();
        assert_eq!(serde_json::from_str::<Value>(&written(&state)).unwrap(), file);
        assert_eq!(read(&written(&state)).unwrap(), state);
        assert_eq!(serde_json::from_str::<Value>(&written(&StorageState::default())).unwrap(), json!({"cookies": [], "origins": []}));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said_exactly() {
        for (text, wrong) in [
            ("nonsense", "it is no JSON: expected ident at line 1 column 2"),
            ("[]", "it is no object with cookies and origins"),
            ("{}", "it has neither `cookies` nor `origins`"),
            (r#"{"cookie": []}"#, "it has neither `cookies` nor `origins`"),
            (r#"{"cookies": [{"name": "a", "value": "1"}]}"#, "cookies[0]: missing field `domain`"),
            (
                r#"{"cookies": [{"name": "a", "value": 1, "domain": "a"}]}"#,
                "cookies[0].value: invalid type: integer `1`, expected a string",
            ),
            (
                r#"{"cookies": [{"name": "a", "value": "1", "domain": "a", "sameSite": "sideways"}]}"#,
                "cookies[0].sameSite: unknown variant `sideways`, expected one of `Strict`, `Lax`, `None`",
            ),
            (r#"{"origins": [{"origin": "a.test"}]}"#, "origins[0].origin: \"a.test\" is no http or https origin"),
            (r#"{"origins": [{"origin": "file:///"}]}"#, "origins[0].origin: \"file:///\" is no http or https origin"),
        ] {
            assert_eq!(read(text).unwrap_err(), wrong);
        }
    }

    /// A pipe that nobody writes to would be waited for, and a device has no end.
    #[test]
    fn only_ordinary_files_are_read_through_links_too() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        std::os::unix::fs::symlink("/dev/zero", at("zeros")).unwrap();
        std::fs::write(at("state.json"), r#"{"cookies": []}"#).unwrap();
        std::os::unix::fs::symlink(at("state.json"), at("link.json")).unwrap();
        let (ordinary, system) = ("it is no ordinary file", "it is a file of the system, and only ordinary ones are read");
        for (file, wrong) in [
            (at("pipe"), ordinary),
            (at(""), ordinary),
            (at("zeros"), system),
            ("/proc/self/pagemap".into(), system),
            ("/sys/kernel/notes".into(), system),
            ("/dev/zero".into(), system),
        ] {
            assert_eq!(checked_file(&file).unwrap_err(), wrong, "{}", file.display());
        }
        assert!(checked_file(&at("link.json")).is_ok());
    }

    #[test]
    fn what_fits_into_no_frame_is_known() {
        assert!(can_be_sent(&"x".repeat(2_097_150)) && !can_be_sent(&"x".repeat(2_097_151)));
        assert!(!can_be_sent(&"\"".repeat(1_048_576)), "it is measured as it is sent");
    }
}
