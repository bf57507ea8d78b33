//! Documents that may run no scripts, as mail in a page mostly is: they fire no timers, ours neither. They are waited for, looked at
//! and acted in like others, and nothing of ours is in the page's log.

use std::time::Duration;

use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_driver::{Awaited, DriverError, Navigation, Verb};

use crate::act::{Stage, click, named, soon};
use crate::support;

const MAIL: &str = "<p>Mail</p><button id=in>In</button><input id=word><select id=list><option>One<option>Two</select>\
                    <input type=range id=range max=9 value=1><input type=date id=day><input type=checkbox id=box><p id=end>End</p>";

const OUTER: &str = "<p>Outer</p><button id=b>B</button>";

/// The mail in a page, and the page: in frames that differ in what they may and where they are from, and alone.
async fn mailboxes() -> (String, [&'static str; 4]) {
    let site = support::serve(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        let host = request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default();
        let other = host.replace("127.0.0.1", "localhost");
        let srcdoc = MAIL.replace('\'', "&#39;");
        match path {
            "/mail" => support::page(MAIL),
            "/alone" => {
                support::response("200 OK\r\nContent-Type: text/html\r\nContent-Security-Policy: sandbox", &format!("{OUTER}{MAIL}"))
            }
            "/near" => support::page(&format!("{OUTER}<iframe sandbox=allow-same-origin srcdoc='{srcdoc}'></iframe>")),
            "/nowhere" => support::page(&format!("{OUTER}<iframe sandbox srcdoc='{srcdoc}'></iframe>")),
            _ => support::page(&format!("{OUTER}<iframe sandbox src='http://{other}/mail'></iframe>")),
        }
    })
    .await;
    (site, ["/near", "/nowhere", "/far", "/alone"])
}

/// Before, no answer ever came: that is waited for no longer than this.
async fn promptly<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(15), work).await.expect("it is answered")
}

#[tokio::test]
async fn a_document_that_may_run_no_scripts_is_waited_for_and_acted_in() {
    let (site, paths) = mailboxes().await;
    for want in [Want::Plain, Want::Full] {
        let stage = Stage::of(support::chromium_for(want).await, "room.html").await;
        for path in paths {
            let place = format!("{want:?}, {path}");
            soon(stage.page.navigate(Navigation::To(&format!("{site}{path}")))).await.expect("it goes there");
            let (text, gone) = (Some("mail".to_owned()), Some("nothing".to_owned()));
            promptly(stage.page.wait_for(&Awaited { text, ..Awaited::default() })).await.expect("it is there");
            promptly(stage.page.wait_for(&Awaited { gone, ..Awaited::default() })).await.expect("it is gone");
            let nope = promptly(stage.refused(click("#nope"))).await;
            assert!(matches!(nope, DriverError::ElementNotFound { .. }), "{place}: {nope}");
            for selector in ["#b", "#in", "#box"] {
                promptly(stage.click(selector)).await;
            }
            for (selector, value) in [("#word", "set"), ("#list", "Two"), ("#range", "5"), ("#day", "2026-11-18"), ("#box", "off")] {
                promptly(stage.set(selector, value)).await;
            }
            let typed = promptly(stage.act(Verb::Type { selector: Some(named("#word")), text: " typed".into() })).await;
            assert_eq!(typed.expect("it is typed").outcome.as_deref(), Some("It is \"set typed\" now."), "{place}");
            promptly(stage.act(Verb::Hover { selector: named("#in") })).await.expect("it is hovered");
            promptly(stage.act(Verb::Scroll { selector: Some(named("#end")), by: None })).await.expect("it is in view");
            let (mut log, _) = stage.page.take_log();
            log.retain(|entry| !entry.text.contains("favicon"));
            assert!(log.is_empty(), "{place}: {log:?}");
        }
    }
}

/// Also what comes later is heard of, and how the frame is called is true.
#[tokio::test]
async fn what_changes_in_a_document_that_may_run_no_scripts_is_told() {
    let (site, _) = mailboxes().await;
    let stage = Stage::at("room.html").await;
    let other = site.replace("127.0.0.1", "localhost");
    for (path, called) in [("/nowhere", "about:srcdoc"), ("/far", other.as_str())] {
        soon(stage.page.navigate(Navigation::To(&format!("{site}{path}")))).await.expect("it goes there");
        let late = Awaited { text: Some("mail".into()), ..Awaited::default() };
        promptly(stage.page.wait_for(&late)).await.expect("it is there");
        soon(stage.page.snapshot(&tabmux_driver::Sight::default())).await.expect("it can be seen");
        promptly(stage.set("#word", "hello")).await;
        let said = promptly(stage.page.changes(500)).await.expect("it can be compared").text;
        assert!(said.starts_with(&format!("in a frame of {called}:\n ~ ")) && said.contains("\"hello\""), "{path}: {said}");
    }
    soon(stage.page.navigate(Navigation::To(&format!("{site}/near")))).await.expect("it goes there");
    let late = Awaited { text: Some("Late".into()), ..Awaited::default() };
    let early = tokio::time::timeout(Duration::from_millis(300), stage.page.wait_for(&late)).await;
    assert!(early.is_err(), "it is not there yet");
    let come = "frames[0].document.body.append('Late'); 0";
    let (seen, _) = promptly(async { tokio::join!(stage.page.wait_for(&late), stage.page.evaluate(come)) }).await;
    assert_eq!((seen, stage.run("frames.length").await), (Ok(()), json!(1)));
}
