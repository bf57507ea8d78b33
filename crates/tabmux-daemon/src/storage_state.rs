//! Playwright's storage state, read and written. A file is read and checked by the client that names it, since daemon and client
//! share no directory, and checked again here, where it comes over the wire. Databases are checked where they are loaded, by the
//! browser.

use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_driver::{Cookie, OriginStorage, StorageItem, StorageState};

/// The largest that fits into a hello, with room for the rest of it.
const MAX_BYTES: usize = tabmux_wire::MAX_FRAME_BYTES / 2;

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

/// The file's text as it goes into a hello, or what is wrong with it.
pub fn checked(text: &str) -> Result<Value, String> {
    if text.len() > MAX_BYTES {
        return Err(format!("it has {} bytes, and at most {MAX_BYTES} are taken", text.len()));
    }
    read(text).map(|state| json!(state))
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
        let state = parse(&checked(&file.to_string()).unwrap()).unwrap();
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
        assert_eq!(checked("{}"), Ok(json!({"cookies": [], "origins": []})));
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
            (r#"{"cookies": [{"name": "a", "value": "1"}]}"#, "cookies[0]: missing field `domain`"),
            (
                r#"{"cookies": [{"name": "a", "value": 1, "domain": "a"}]}"#,
                "cookies[0].value: invalid type: integer `1`, expected a string",
            ),
            (
                r#"{"cookies": [{"name": "a", "value": "1", "domain": "a", "sameSite": "lax"}]}"#,
                "cookies[0].sameSite: unknown variant `lax`, expected one of `Strict`, `Lax`, `None`",
            ),
            (r#"{"origins": [{"origin": "a.test"}]}"#, "origins[0].origin: \"a.test\" is no http or https origin"),
            (r#"{"origins": [{"origin": "file:///"}]}"#, "origins[0].origin: \"file:///\" is no http or https origin"),
        ] {
            assert_eq!(checked(text).unwrap_err(), wrong);
        }
        let huge = format!(r#"{{"x": "{}"}}"#, "x".repeat(MAX_BYTES));
        assert!(checked(&huge).unwrap_err().starts_with("it has 20971"), "{:?}", checked(&huge));
    }
}
