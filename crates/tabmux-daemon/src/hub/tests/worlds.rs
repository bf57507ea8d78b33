//! Each session's own world: its downloads, what its pages see, and what of it outlives browser and daemon.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;
use tabmux_core::Code;
use tabmux_driver::{ContextSpec, Emulation, Proxy};

use crate::testing::{House, Mood, eventually};

#[tokio::test]
async fn a_download_is_news_is_listed_and_goes_with_its_session() {
    let house = House::new();
    let (agent, other) = (house.agent("a"), house.agent("b"));
    for agent in [&agent, &other] {
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
    }
    assert_eq!(agent.code("navigate", json!({"url": "http://a.test/download"})).await, Code::NavigationFailed);
    let session = house.hub.handle(house.hub.look(|registry| registry.list_all()[0].session.id)).unwrap();
    eventually("the file is news", || session.waiting().1 == 1).await;
    let listed = agent.ok("downloads", json!({})).await;
    let file = listed.structured.unwrap()["downloads"][0]["path"].as_str().unwrap().to_owned();
    assert!(listed.text.starts_with(&format!("Downloaded a.bin: {file}\n1 download\n")), "{}", listed.text);
    assert!(!agent.ok("downloads", json!({})).await.text.contains("Downloaded"), "said once");
    assert!(other.ok("downloads", json!({})).await.text.starts_with("No downloads."));
    let directory = std::path::Path::new(&file).parent().unwrap();
    assert_eq!(directory.metadata().unwrap().permissions().mode() & 0o777, 0o700);
    agent.ok("close_session", json!({})).await;
    assert!(!directory.exists());
}

#[tokio::test]
async fn the_next_daemon_removes_downloads_of_sessions_it_does_not_know() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    house.on_disk().await;
    let all = house.dir.path().join("state/downloads");
    let known = std::fs::read_dir(&all).unwrap().next().unwrap().unwrap().path();
    for stray in ["sess_ffffffff", ".arriving"] {
        std::fs::create_dir(all.join(stray)).unwrap();
    }
    let ids: Vec<_> = house.hub.look(|registry| registry.records().map(|session| session.id).collect());
    crate::session::sweep_downloads(&house.dir.path().join("state"), ids.into_iter());
    assert!(known.exists() && all.join(".arriving").exists() && !all.join("sess_ffffffff").exists());
    crate::session::sweep_downloads(&house.dir.path().join("state"), std::iter::empty());
    assert!(!known.exists() && !all.join(".arriving").exists());
}

const SET: &str = r#"{"timezone": "Asia/Tokyo", "httpCredentials": {"username": "ann", "password": "hunter2"}}"#;

#[tokio::test]
async fn what_is_emulated_outlives_the_browser() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    agent.ok("emulate", json!({"set": serde_json::from_str::<serde_json::Value>(SET).unwrap()})).await;
    assert_eq!(agent.code("evaluate", json!({"script": "endBrowser()"})).await, Code::BrowserCrashed);
    assert_eq!(agent.code("evaluate", json!({"script": "1"})).await, Code::BrowserCrashed, "said once");
    let said = agent.ok("emulate", json!({"set": {"locale": "de-DE"}})).await.text;
    assert!(said.starts_with("Emulated now: locale, timezone, httpCredentials."), "{said}");
}

/// What was asked for reaches the next daemon; secrets do not, which is said, and are on no disk.
#[tokio::test]
async fn settings_outlive_the_daemon_and_secrets_are_never_written() {
    let (house, browser) = House::stubborn();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s", "proxy": "http://ann:hunter2@proxy.test:3128"})).await;
    agent.ok("emulate", json!({"set": serde_json::from_str::<serde_json::Value>(SET).unwrap()})).await;
    house.on_disk().await;
    for entry in std::fs::read_dir(house.dir.path().join("state")).unwrap().flatten().filter(|entry| entry.path().is_file()) {
        let written = String::from_utf8_lossy(&std::fs::read(entry.path()).unwrap()).into_owned();
        assert!(!written.contains("hunter2"), "{}: {written}", entry.path().display());
    }
    browser.adopts(&[Mood::Fail]);
    let next = house.killed_and_started_beside(&browser).await;
    let back = next.agent("a");
    assert_eq!(back.code("evaluate", json!({"sessionId": "s", "script": "1"})).await, Code::BrowserCrashed);
    let said = back.ok("navigate", json!({"sessionId": "s", "url": "http://a.test/"})).await.text;
    assert!(said.starts_with("httpCredentials and the proxy's password were lost"), "{said}");
    let spec = ContextSpec {
        proxy: Some(Proxy { server: "http://proxy.test:3128".into(), bypass: None, credentials: None }),
        emulation: Emulation { timezone: Some("Asia/Tokyo".into()), ..Emulation::default() },
        ..ContextSpec::default()
    };
    assert_eq!(browser.specs()[1..], [spec]);
}

#[tokio::test]
async fn a_page_that_asks_for_files_is_news() {
    let house = House::new();
    let agent = house.agent("a");
    agent.ok("start_browser", json!({"sessionId": "s"})).await;
    let page = house.session().page(tabmux_core::TabId(1)).unwrap();
    page.evaluate("openChooser()").await.unwrap();
    eventually("it is news", || house.session().waiting().1 == 1).await;
    let said = agent.ok("evaluate", json!({"script": "1"})).await.text;
    assert!(said.starts_with("Tab t1 asks for a file; upload_file gives it."), "{said}");
}

/// The daemon's own files are no page's.
#[tokio::test]
async fn files_of_the_daemon_itself_are_not_given_to_pages() {
    let house = House::new();
    let (agent, other) = (house.agent("a"), house.agent("b"));
    for agent in [&agent, &other] {
        agent.ok("start_browser", json!({"sessionId": "s"})).await;
        drop(agent.call("navigate", json!({"url": "http://a.test/download"})).await);
    }
    let file = async |agent: &crate::testing::Agent| {
        agent.ok("downloads", json!({"wait": true})).await.structured.unwrap()["downloads"][0]["path"].clone()
    };
    let (own, foreign) = (file(&agent).await, file(&other).await);
    let token = house.dir.path().join("state/token");
    std::fs::write(&token, "secret").unwrap();
    for path in [foreign, json!(token)] {
        assert_eq!(agent.code("upload_file", json!({"paths": [path]})).await, Code::PolicyDenied, "{path}");
    }
    let fault = agent.fault("upload_file", json!({"paths": [own]})).await;
    assert_eq!(fault.message, "No file chooser is open.", "its own download may be given");
}
