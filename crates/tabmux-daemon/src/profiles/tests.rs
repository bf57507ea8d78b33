//! What is kept, how, and what is said when it cannot be.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use tabmux_core::Code;
use tabmux_driver::{Cookie, OriginStorage, StorageItem, StorageState};

use super::*;

fn state(value: &str) -> StorageState {
    let cookie = Cookie { name: "sid".into(), value: value.into(), domain: "a.test".into(), path: "/".into(), ..Cookie::default() };
    let kept = vec![StorageItem { name: "k".into(), value: value.into() }];
    StorageState {
        cookies: vec![cookie],
        origins: vec![OriginStorage { origin: "https://a.test".into(), local_storage: kept, ..OriginStorage::default() }],
    }
}

fn house() -> (tempfile::TempDir, Profiles) {
    let dir = tempfile::tempdir().unwrap();
    let profiles = Profiles::of_state(dir.path());
    (dir, profiles)
}

fn mode(path: &Path) -> u32 {
    path.metadata().unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_kept_reads_back_and_is_its_owners_alone() {
    let (dir, profiles) = house();
    let made = profiles.create("work", &state("1"), Some(Taken::From("session:web"))).unwrap();
    assert_eq!((made.cookies, made.origins, made.from.as_deref()), (1, 1, Some("session:web")));
    assert_eq!(profiles.read("work").unwrap(), state("1"));
    assert_eq!(profiles.read(&made.uuid).unwrap(), state("1"), "by its uuid too");
    assert_eq!(profiles.list().unwrap(), Listed { profiles: vec![made.clone()], damaged: vec![] });
    let home = dir.path().join("profiles/work");
    assert_eq!((mode(&home), mode(home.parent().unwrap())), (0o700, 0o700));
    let mut files: Vec<_> = std::fs::read_dir(&home).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files, [home.join("profile.json"), home.join("state.json")], "and nothing half written");
    assert!(files.iter().all(|file| mode(file) == 0o600));
    let later = profiles.save("work", &state("2"), Taken::AtLogin).unwrap();
    assert_eq!((&later.uuid, &later.created_at), (&made.uuid, &made.created_at), "it is the same profile");
    assert!(later.last_login_at.is_some() && later.last_login_at == later.saved_at);
    assert_eq!(profiles.read("work").unwrap(), state("2"));
    assert_eq!(profiles.remove("work").unwrap(), Removed { name: "work".into(), uuid: Some(later.uuid) });
    assert_eq!((profiles.list().unwrap(), std::fs::read_dir(home.parent().unwrap()).unwrap().count()), (Listed::default(), 0));
}

#[test]
fn a_taken_name_is_refused_and_its_profile_stays() {
    let (_dir, profiles) = house();
    profiles.create("work", &state("1"), None).unwrap();
    let fault = profiles.create("work", &state("2"), None).unwrap_err();
    assert_eq!((fault.code, fault.message.as_str()), (Code::BadArgument, "A profile named 'work' already exists."));
    assert_eq!(profiles.read("work").unwrap(), state("1"));
    assert_eq!(profiles.list().unwrap().profiles.len(), 1);
}

#[test]
fn names_cannot_lead_elsewhere_or_be_mistaken() {
    let (dir, profiles) = house();
    let uuid = "11111111-1111-4111-8111-111111111111";
    for name in ["", ".", "..", ".hidden", "-x", "a/b", "../x", "a b", "é", "state.json", "sess_00000001", uuid, &"x".repeat(65)] {
        assert_eq!(profiles.create(name, &state("1"), None).unwrap_err().code, Code::BadArgument, "{name}");
        assert_eq!(profiles.save(name, &state("1"), Taken::AtLogin).unwrap_err().code, Code::BadArgument, "{name}");
        assert_eq!(profiles.remove(name).unwrap_err().code, Code::BadArgument, "{name}");
        assert_eq!(profiles.find(name).unwrap(), None, "{name}");
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn what_is_wrong_with_a_profile_is_said_exactly() {
    let (dir, profiles) = house();
    let fault = profiles.read("work").unwrap_err();
    assert_eq!(
        fault.to_string(),
        "[bad_argument] There is no profile 'work'. There are no profiles yet: `tabmux profile new`, `login` or `import` makes one."
    );
    profiles.create("work", &state("1"), None).unwrap();
    assert_eq!(profiles.get("home").unwrap_err().hint, "Profiles: work.");
    let file = dir.path().join("profiles/work/state.json");
    for (text, wrong) in [
        ("nonsense", "it is no JSON: expected ident at line 1 column 2"),
        (r#"{"cookies": [{"name": "a"}]}"#, "cookies[0]: missing field `value`"),
        (r#"{"origins": [{"origin": "a.test"}]}"#, "origins[0].origin: \"a.test\" is no http or https origin"),
    ] {
        std::fs::write(&file, text).unwrap();
        let fault = profiles.read("work").unwrap_err();
        assert_eq!((fault.code, fault.message), (Code::BadArgument, format!("The file {} cannot be used: {wrong}.", file.display())));
    }
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &file).unwrap();
    assert!(profiles.read("work").unwrap_err().message.contains("cannot be read: "), "a link is not followed");
}

/// The others are listed, found and used as if it were not there; it is named, and can be removed.
#[test]
fn a_damaged_profile_is_listed_as_that_and_is_in_nobodys_way() {
    let (dir, profiles) = house();
    let whole = profiles.create("whole", &state("1"), None).unwrap();
    profiles.create("work", &state("1"), None).unwrap();
    std::fs::write(dir.path().join("profiles/work/profile.json"), "{}").unwrap();
    let listed = profiles.list().unwrap();
    assert_eq!(listed.profiles, std::slice::from_ref(&whole));
    assert!(listed.damaged[0].name == "work" && listed.damaged[0].why.contains("profile.json cannot be read: missing field"));
    assert_eq!(profiles.read(&whole.uuid).unwrap(), state("1"), "by its uuid too");
    let fault = profiles.read("work").unwrap_err();
    assert_eq!(fault.hint, "Put it right, or remove the profile with `tabmux profile rm work`.");
    assert_eq!(profiles.remove("work").unwrap(), Removed { name: "work".into(), uuid: None });
    assert_eq!(profiles.list().unwrap(), Listed { profiles: vec![whole], damaged: vec![] });
}

/// No profile can be made in its place, so its name must be found to be removed.
#[test]
fn a_profile_without_its_record_is_damaged_too() {
    let (dir, profiles) = house();
    std::fs::create_dir_all(dir.path().join("profiles/work")).unwrap();
    std::fs::write(dir.path().join("profiles/file"), "").unwrap();
    assert_eq!(profiles.create_empty("work").unwrap_err().message, "A profile named 'work' already exists.");
    let listed = profiles.list().unwrap();
    assert_eq!((listed.profiles, listed.damaged.len(), listed.damaged[0].name.as_str()), (vec![], 1, "work"));
    assert!(listed.damaged[0].why.ends_with("profiles/work/profile.json is missing."), "{:?}", listed.damaged);
    assert_eq!(profiles.find("work").unwrap_err().hint, "Put it right, or remove the profile with `tabmux profile rm work`.");
    assert_eq!((profiles.find("file").unwrap(), profiles.find("other").unwrap()), (None, None));
    assert_eq!(profiles.remove("work").unwrap(), Removed { name: "work".into(), uuid: None });
    profiles.create_empty("work").unwrap();
}

/// Before anything is read of anybody's browser.
#[tokio::test]
async fn an_import_replaces_a_profile_only_where_it_is_told_to() {
    let dir = tempfile::tempdir().unwrap();
    let settings = crate::testing::settings(dir.path());
    let profiles = Profiles::of_state(&settings.paths.state_dir);
    profiles.create("work", &state("1"), None).unwrap();
    let refused = async |replace| {
        let wanted = Import { replace, dir: Some(dir.path().join("nobodys")), ..Import::default() };
        import(&settings, "work", &wanted, std::future::pending()).await.unwrap_err()
    };
    let fault = refused(false).await;
    assert_eq!(fault.message, "A profile named 'work' already exists.");
    assert_eq!(fault.hint, "Choose another name, or replace what it holds with --replace.");
    assert!(refused(true).await.message.contains("nobodys is no profile of Chrome"));
    assert_eq!(profiles.read("work").unwrap(), state("1"));
}

#[test]
fn what_died_in_the_making_or_removing_is_no_profile_and_is_swept() {
    let (dir, profiles) = house();
    profiles.create("work", &state("1"), None).unwrap();
    let home = dir.path().join("profiles");
    let making = disk::private(&home).unwrap();
    let left = disk::private(&home).unwrap();
    std::fs::write(left.path().join("Cookies"), "secret").unwrap();
    let left = left.abandon();
    std::fs::create_dir(home.join(".gone-x")).unwrap();
    std::fs::create_dir(home.join("empty")).unwrap();
    let names: Vec<String> = profiles.list().unwrap().profiles.into_iter().map(|profile| profile.name).collect();
    assert_eq!(names, ["work"]);
    assert!(!home.join(".gone-x").exists());
    assert!(making.path().exists(), "somebody is making it just now");
    assert!(!left.exists(), "whoever made it is dead");
    let left = disk::private(&home).unwrap().abandon();
    let next = disk::private(&home).unwrap();
    assert!(!left.exists() && making.path().exists() && next.path().exists(), "whoever makes the next one sweeps too");
}

#[tokio::test]
async fn a_daemon_begins_by_sweeping_what_a_killed_import_left() {
    let mut left = None;
    let _house = crate::testing::House::with(|settings| {
        left = Some(disk::private(&settings.paths.state_dir.join("profiles")).unwrap().abandon());
    });
    assert!(!left.unwrap().exists());
}

#[test]
fn an_export_is_a_file_that_playwright_reads() {
    let (dir, profiles) = house();
    profiles.create("work", &state("1"), None).unwrap();
    let file = dir.path().join("out.json");
    profiles.export("work", &file).unwrap();
    assert_eq!(mode(&file), 0o600);
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(
        written,
        json!({
            "cookies": [{"name": "sid", "value": "1", "domain": "a.test", "path": "/", "expires": -1, "httpOnly": false, "secure": false}],
            "origins": [{"origin": "https://a.test", "localStorage": [{"name": "k", "value": "1"}]}],
        })
    );
}
