use super::*;

/// An empty machine below a temporary root.
fn machine(os: Os) -> (tempfile::TempDir, Places) {
    let root = tempfile::tempdir().unwrap();
    let path = vec![root.path().join("usr/bin"), root.path().join("usr/local/bin")];
    let places = Places { given: None, path, home: Some(root.path().join("home/ada")), root: root.path().to_owned(), os };
    (root, places)
}

fn put(places: &Places, path: &str, text: &str) -> PathBuf {
    let path = places.root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    fs::canonicalize(path).unwrap()
}

const ELF: &str = "\u{7f}ELF";
const SCRIPT: &str = "#!/bin/sh\nexec something\n";

#[test]
fn plain_headless_prefers_the_shell_and_windows_the_full_browser() {
    let (_root, places) = machine(Os::Linux);
    let full = put(&places, "usr/lib/chromium/chromium", ELF);
    assert_eq!(places.find(Want::Plain).unwrap(), Binary { path: full.clone(), kind: Kind::Chromium });
    let shell = put(&places, "usr/lib/chromium/chromium-headless-shell", ELF);
    assert_eq!(places.find(Want::Plain).unwrap(), Binary { path: shell, kind: Kind::HeadlessShell });
    assert_eq!(places.find(Want::Full).unwrap(), Binary { path: full, kind: Kind::Chromium });
}

#[test]
fn a_shell_on_the_path_is_preferred_to_a_full_browser_in_its_place() {
    let (_root, places) = machine(Os::Linux);
    put(&places, "opt/google/chrome/chrome", ELF);
    let shell = put(&places, "usr/local/bin/chrome-headless-shell", ELF);
    assert_eq!(places.find(Want::Plain).unwrap(), Binary { path: shell, kind: Kind::HeadlessShell });
    assert_eq!(places.find(Want::Full).unwrap().kind, Kind::Chrome);
}

#[test]
fn a_wrapper_resolves_to_the_binary_it_starts() {
    let (_root, mut places) = machine(Os::Linux);
    let wrapper = put(&places, "usr/bin/chromium-headless-shell", SCRIPT);
    let real = put(&places, "usr/lib/chromium/chromium-headless-shell", ELF);
    places.given = Some(wrapper);
    assert_eq!(places.find(Want::Plain).unwrap(), Binary { path: real, kind: Kind::HeadlessShell });

    let chrome = put(&places, "opt/google/chrome/chrome", ELF);
    let wrapper = put(&places, "opt/google/chrome/google-chrome", SCRIPT);
    std::os::unix::fs::symlink(&wrapper, places.root.join("usr/bin/google-chrome")).unwrap();
    places.given = Some(places.root.join("usr/bin/google-chrome"));
    assert_eq!(places.find(Want::Full).unwrap(), Binary { path: chrome, kind: Kind::Chrome });

    let unknown = put(&places, "usr/local/bin/my-chromium", SCRIPT);
    places.given = Some("my-chromium".into());
    assert_eq!(places.find(Want::Full).unwrap(), Binary { path: unknown, kind: Kind::Chromium });
}

#[test]
fn a_snap_keeps_the_name_by_which_it_knows_what_to_start() {
    let (_root, mut places) = machine(Os::Linux);
    let snap = put(&places, "usr/bin/snap", ELF);
    fs::create_dir_all(places.root.join("snap/bin")).unwrap();
    let link = places.root.join("snap/bin/chromium");
    std::os::unix::fs::symlink(snap, &link).unwrap();
    places.path.push(places.root.join("snap/bin"));
    assert_eq!(places.find(Want::Full).unwrap(), Binary { path: link, kind: Kind::Chromium });
}

#[test]
fn a_given_path_that_cannot_be_used_says_why() {
    let (directory, mut places) = machine(Os::Linux);
    put(&places, "usr/lib/chromium/chromium", ELF);
    let mut why = |given: PathBuf, want| {
        places.given = Some(given.clone());
        match places.find(want).unwrap_err() {
            LaunchError::Unusable { path, why } if path == given => why,
            other => panic!("{other:?}"),
        }
    };
    let root = directory.path();
    assert_eq!(why(root.join("missing"), Want::Plain), "it does not exist");
    assert_eq!(why(root.join("usr"), Want::Plain), "it is not a file");
    fs::write(root.join("text"), "").unwrap();
    assert_eq!(why(root.join("text"), Want::Plain), "it is not executable");
    fs::write(root.join("headless_shell"), ELF).unwrap();
    fs::set_permissions(root.join("headless_shell"), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(why(root.join("headless_shell"), Want::Full).contains("no windows"));
}

#[test]
fn without_a_browser_the_answer_says_what_to_install_on_this_system() {
    for (release, command) in [
        ("ID=debian\n", "sudo apt install chromium chromium-headless-shell"),
        ("NAME=x\nID=ubuntu\nID_LIKE=debian\n", "sudo apt install ./google-chrome-stable"),
        ("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", "sudo apt install ./google-chrome-stable"),
        ("ID=fedora\n", "sudo dnf install chromium chromium-headless"),
        ("ID=manjaro\nID_LIKE=arch\n", "sudo pacman -S chromium"),
        ("ID=\"alpine\"\n", "sudo apk add chromium"),
        ("ID=plan9\n", "install Chromium with this system's package manager"),
    ] {
        let (_root, places) = machine(Os::Linux);
        fs::create_dir_all(places.root.join("etc")).unwrap();
        fs::write(places.root.join("etc/os-release"), release).unwrap();
        let error = places.find(Want::Plain).unwrap_err();
        assert!(matches!(&error, LaunchError::NotFound { install } if install.contains(command)), "{release}: {error}");
    }
}

#[test]
fn on_macos_the_applications_of_the_system_and_of_the_user_are_found() {
    let (_root, places) = machine(Os::Mac);
    assert!(places.find(Want::Plain).unwrap_err().to_string().contains("brew install"));
    let edge = put(&places, "home/ada/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge", ELF);
    assert_eq!(places.find(Want::Full).unwrap(), Binary { path: edge, kind: Kind::Edge });
    let chrome = put(&places, "Applications/Google Chrome.app/Contents/MacOS/Google Chrome", ELF);
    assert_eq!(places.find(Want::Plain).unwrap(), Binary { path: chrome, kind: Kind::Chrome });
}
