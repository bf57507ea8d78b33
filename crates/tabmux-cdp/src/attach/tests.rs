//! Reading addresses, and finding browsers by the files they leave. Real browsers are in `tests/driver/attach.rs`.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use super::*;
use crate::find::Os;

fn http(host: &str, port: u16) -> Endpoint {
    Endpoint::Http { address: Address { host: host.into(), port }, base: String::new() }
}

#[test]
fn every_way_to_name_a_browser_is_read() {
    for (text, expected) in [
        ("auto", Endpoint::Auto),
        ("9222", http("127.0.0.1", 9222)),
        ("localhost:9222", http("localhost", 9222)),
        ("[::1]:9222", http("::1", 9222)),
        ("http://127.0.0.1:9222", http("127.0.0.1", 9222)),
        ("http://127.0.0.1:9222/", http("127.0.0.1", 9222)),
        ("http://127.0.0.1:9222/json/version", http("127.0.0.1", 9222)),
        ("ws://127.0.0.1:9222", http("127.0.0.1", 9222)),
        ("http://grid/browser/", Endpoint::Http { address: Address { host: "grid".into(), port: 80 }, base: "/browser".into() }),
    ] {
        assert_eq!(text.parse(), Ok(expected), "{text}");
    }
    for url in ["ws://127.0.0.1:1/devtools/browser/1-2", "ws://grid:4444/session/1/se/cdp?token=x"] {
        assert!(matches!(url.parse(), Ok(Endpoint::WebSocket { url: kept, .. }) if kept == url), "{url}");
    }
}

#[test]
fn what_is_no_address_of_a_browser_is_refused_with_a_way_out() {
    for text in
        ["", "chrome", "localhost", "70000", "ftp://host:1/", "http://:9222", "http://u:p@host:1", "http://host:1/?token=x", "host:0"]
    {
        assert!(matches!(text.parse::<Endpoint>(), Err(AttachError::Unreadable { .. })), "{text}");
    }
    for text in ["wss://host/devtools/browser/1", "https://host:9222"] {
        assert!(matches!(text.parse::<Endpoint>(), Err(AttachError::Tls { .. })), "{text}");
    }
    assert!(matches!("ws://h:1/devtools/page/1".parse::<Endpoint>(), Err(AttachError::OfPage { .. })));
}

#[test]
fn secrets_of_an_address_are_not_shown() {
    assert_eq!(endpoint::shown("ws://user:word@host:1/path?token=secret#x"), "ws://host:1/path");
    assert_eq!(endpoint::shown("ws://host:1/a@b"), "ws://host:1/a@b");
}

#[test]
fn a_browser_has_the_same_id_each_time_and_another_one_another() {
    assert_eq!(endpoint::id_of("ws://127.0.0.1:1/devtools/browser/ab-12"), "ab-12");
    let grid = endpoint::id_of("ws://grid/session/1/se/cdp");
    assert_eq!((grid.len(), &grid), (16, &endpoint::id_of("ws://grid/session/1/se/cdp")));
    assert_ne!(grid, endpoint::id_of("ws://grid/session/2/se/cdp"));
}

/// Answers `/json/version` as `answer` says, for as long as the test runs.
fn listener(answer: impl Fn(u16) -> String + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            if stream.read(&mut request).is_ok_and(|read| read > 0) {
                stream.write_all(answer(port).as_bytes()).ok();
            }
        }
    });
    port
}

fn browser(port: u16, id: &str) -> String {
    let body = format!("{{\"webSocketDebuggerUrl\":\"ws://127.0.0.1:{port}/devtools/browser/{id}\"}}");
    format!("HTTP/1.1 200 OK\r\nContent-Length:{}\r\n\r\n{body}", body.len())
}

const NOT_FOUND: &str = "HTTP/1.1 404 Not Found\r\nContent-Length:0\r\n\r\n";

fn profile(home: &Path, name: &str, port: u16, id: &str) {
    let dir = home.join(".config").join(name);
    std::fs::create_dir_all(&dir).unwrap();
    std::fs::write(dir.join("DevToolsActivePort"), format!("{port}\n/devtools/browser/{id}")).unwrap();
}

/// Without the port that may be in use on the machine of the test.
fn profiles_of(home: &Path) -> Profiles {
    Profiles { else_at: None, ..usual_profiles(Os::Linux, Some(home), None) }
}

/// A port on which nobody listens any more.
fn dead_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[test]
fn auto_finds_the_one_that_lives_among_what_killed_ones_left() {
    let home = tempfile::tempdir().unwrap();
    let profiles = profiles_of(home.path());
    assert_eq!(locate(&Endpoint::Auto, &profiles), Err(AttachError::NoneFound));
    let (live, foreign) = (listener(|port| browser(port, "live")), listener(|port| browser(port, "somebody-else")));
    profile(home.path(), "google-chrome", dead_port(), "killed");
    profile(home.path(), "microsoft-edge", foreign, "killed-too");
    assert_eq!(locate(&Endpoint::Auto, &profiles), Err(AttachError::NoneFound));
    profile(home.path(), "BraveSoftware/Brave-Browser", live, "live");
    let url = format!("ws://127.0.0.1:{live}/devtools/browser/live");
    assert_eq!(locate(&Endpoint::Auto, &profiles), Ok(Located { url: url.clone(), consent: Consent::NotNeeded }));
    let shy = listener(|_| NOT_FOUND.to_owned());
    profile(home.path(), "chromium", shy, "shy");
    let Err(several @ AttachError::Several(_)) = locate(&Endpoint::Auto, &profiles) else { panic!("two listen") };
    let text = several.to_string();
    assert!(text.contains(&url) && text.contains(&format!("{shy}/devtools/browser/shy")) && text.contains("Brave-Browser"), "{text}");
}

#[test]
fn auto_falls_back_on_the_port_that_everybody_uses() {
    let home = tempfile::tempdir().unwrap();
    let port = listener(|port| browser(port, "by-hand"));
    let profiles = Profiles { else_at: Some(Address { host: "127.0.0.1".into(), port }), ..profiles_of(home.path()) };
    assert!(matches!(locate(&Endpoint::Auto, &profiles), Ok(Located { url, .. }) if url.ends_with("/by-hand")));
}

#[test]
fn a_browser_that_withholds_its_address_is_found_by_its_profile_and_will_ask() {
    let home = tempfile::tempdir().unwrap();
    let shy = listener(|_| NOT_FOUND.to_owned());
    let endpoint = http("localhost", shy);
    let error = locate(&endpoint, &profiles_of(home.path())).expect_err("no profile names it");
    assert!(matches!(error, AttachError::Withheld { .. }), "{error:?}");
    profile(home.path(), "google-chrome", shy, "every-day");
    let found = locate(&endpoint, &profiles_of(home.path())).unwrap();
    assert_eq!(found, Located { url: format!("ws://127.0.0.1:{shy}/devtools/browser/every-day"), consent: Consent::Asked });
}

/// One that is taken for gone would lose its sessions their pages.
#[test]
fn a_browser_that_does_not_answer_in_time_is_late_and_not_gone() {
    let silent = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let address = Address { host: "127.0.0.1".into(), port: silent.local_addr().unwrap().port() };
    let error = version::ask(&address, "", Duration::from_millis(20)).err().expect("it says nothing");
    assert!(matches!(error, AttachError::Late { .. }), "{error:?}");
}

#[test]
fn nothing_and_no_browser_at_an_address_are_told_apart() {
    let profiles = Profiles::default();
    let nothing = locate(&http("127.0.0.1", dead_port()), &profiles).expect_err("nobody listens");
    assert!(matches!(nothing, AttachError::NotListening { .. }) && nothing.hint().contains("chrome://inspect"), "{nothing:?}");
    let answers = ["HTTP/1.1 200 OK\r\nContent-Length:2\r\n\r\n{}", "HTTP/1.1 401 No\r\nContent-Length:0\r\n\r\n"];
    for answer in answers {
        let port = listener(move |_| answer.to_owned());
        let error = locate(&http("127.0.0.1", port), &profiles).expect_err("no browser");
        assert!(matches!(error, AttachError::NotABrowser { .. }), "{error:?}");
    }
}

#[test]
fn a_browser_named_by_its_hosts_name_is_asked_again_by_its_number() {
    let home = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let answering = std::thread::spawn(move || {
        let mut asked = Vec::new();
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            let Ok(read @ 1..) = stream.read(&mut request) else { continue };
            asked.push(String::from_utf8_lossy(&request[..read]).into_owned());
            let by_number = asked.last().unwrap().contains("Host: 127.0.0.1");
            let refusal = "HTTP/1.1 500 Internal Server Error\r\nContent-Length:0\r\n\r\n".to_owned();
            stream.write_all(if by_number { browser(port, "named") } else { refusal }.as_bytes()).unwrap();
            if by_number {
                return asked.len();
            }
        }
        0
    });
    let found = locate(&http("localhost", port), &profiles_of(home.path())).unwrap();
    assert!(found.url.ends_with("/named"), "{found:?}");
    assert_eq!(answering.join().unwrap(), 2);
}

#[test]
fn the_places_of_both_systems_are_looked_at() {
    let linux = usual_profiles(Os::Linux, Some(Path::new("/home/me")), Some(Path::new("/conf")));
    for dir in ["/conf/google-chrome", "/conf/BraveSoftware/Brave-Browser", "/home/me/snap/chromium/common/chromium"] {
        assert!(linux.dirs.contains(&dir.into()), "{dir}");
    }
    let mac = usual_profiles(Os::Mac, Some(Path::new("/Users/me")), None);
    assert!(mac.dirs.contains(&"/Users/me/Library/Application Support/Microsoft Edge".into()));
}
