//! Frames that leave their site, that are out of sight, and that stand in one another: what is in them is seen and acted upon.

use std::fmt::Write as _;

use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_driver::Verb;

use crate::act::{Stage, click, named, soon};
use crate::support;

/// In full Chromium a frame of another site is in another process.
const KINDS: [Want; 2] = [Want::Plain, Want::Full];

/// Where a document that shows this is found.
fn shown(site: &str, html: &str) -> String {
    html.bytes().fold(format!("{site}/shown.html#"), |mut all, byte| {
        write!(all, "%{byte:02x}").expect("writing to a string cannot fail");
        all
    })
}

/// The page's own site, and another.
fn sites(stage: &Stage) -> (String, String) {
    (stage.site.clone(), stage.site.replace("127.0.0.1", "localhost"))
}

const BUTTON: &str = "<button id=in>Inner</button>";

/// `said` is what is clicked first in a frame.
const LISTEN: &str = "window.said = new Promise((done) => onmessage = ({ data }) => done(data));";

#[tokio::test]
async fn a_frame_that_left_for_another_site_or_for_nowhere_keeps_nobody_from_acting() {
    let stage = Stage::at("room.html").await;
    let (own, other) = sites(&stage);
    for away in [shown(&other, ""), "http://localhost:1/".to_owned()] {
        let near = shown(&own, &format!("<a id=go href='{away}'>Go</a>"));
        stage.furnish(&format!("<iframe id=frame src='{near}'></iframe><button id=b>B</button>"), "").await;
        stage.click("#go").await;
        // It has left once the page may not look into it any more.
        soon(async { while stage.run("frame.contentDocument === null").await != json!(true) {} }).await;
        stage.click("#b").await;
        stage.act(Verb::Hover { selector: named("#b") }).await.expect("it is hovered");
        assert_eq!(stage.saw("click", "b").await, json!([[true, ""]]), "{away}");
    }
}

#[tokio::test]
async fn a_frame_of_another_site_that_is_out_of_sight_is_brought_into_view() {
    for want in KINDS {
        let stage = Stage::of(support::chromium_for(want).await, "room.html").await;
        let (own, other) = sites(&stage);
        let far = format!("<iframe src='{}'></iframe>", shown(&other, BUTTON));
        let sandboxed = format!("<iframe sandbox=allow-scripts src='{}'></iframe>", shown(&own, BUTTON));
        let inside = format!("<iframe src='{}'></iframe>", shown(&own, &format!("<p style='height: 900px'></p>{far}")));
        let tall = "<p style='height: 2000px'></p>";
        let footer = "<footer style='position: fixed; left: 0; right: 0; bottom: 0; height: 250px; background: red'></footer>";
        for (place, html, script) in [
            ("below", format!("{tall}{far}"), ""),
            ("above", format!("{far}{tall}{tall}"), "scrollTo(0, 3000)"),
            ("in a box", format!("<div style='height: 200px; overflow: auto'>{tall}{far}</div>"), ""),
            ("sandboxed", format!("{tall}{sandboxed}"), ""),
            ("in a frame of its own", format!("{tall}{inside}"), ""),
            ("under something that stays", format!("{tall}{far}{tall}{footer}"), ""),
        ] {
            stage.furnish(&html, &format!("{LISTEN} {script}")).await;
            stage.act(click("#in")).await.unwrap_or_else(|error| panic!("{place}, {want:?}: {error}"));
            assert_eq!(stage.run("said").await, json!(["in", true]), "{place}, {want:?}");
        }
    }
}

#[tokio::test]
async fn what_is_waited_for_may_come_with_a_frame_of_another_site() {
    let stage = Stage::at("room.html").await;
    let (_, other) = sites(&stage);
    let later = format!("setTimeout(() => room.innerHTML = `<iframe src='{}'></iframe>`, 300);", shown(&other, BUTTON));
    stage.furnish("<p>Nothing yet</p>", &format!("{LISTEN} {later}")).await;
    stage.click("#in").await;
    assert_eq!(stage.run("said").await, json!(["in", true]));
}

#[tokio::test]
async fn elements_of_frames_of_any_site_are_listed_with_what_means_them() {
    for want in KINDS {
        let stage = Stage::of(support::chromium_for(want).await, "room.html").await;
        let (own, other) = sites(&stage);
        let inside =
            |site: &str, words: &str| shown(site, &format!("<button id=b>{words}</button><button id={words}>Only {words}</button>"));
        let frames = [inside(&own, "near"), inside(&other, "far")].map(|at| format!("<iframe src='{at}'></iframe>")).concat();
        let hidden = format!("<iframe style='visibility: hidden' src='{}'></iframe>", inside(&other, "hidden"));
        stage.furnish(&format!("<button id=b>Page</button>{frames}{hidden}"), "").await;
        let mut listed = Vec::new();
        // Of frames that load nobody says when they are there.
        soon(async {
            while listed.len() < 5 {
                listed = stage.page.elements().await.expect("elements can be listed").0;
                listed.retain(|element| element.tag == "button");
            }
        })
        .await;
        let texts: Vec<_> = listed.iter().map(|element| element.text.as_str()).collect();
        assert_eq!(texts, ["Page", "near", "Only near", "far", "Only far"], "{want:?}");
        let frames: Vec<_> = listed.iter().map(|element| element.frame.as_deref()).collect();
        assert_eq!(frames, [None, Some(&*own), Some(&*own), Some(&*other), Some(&*other)], "{want:?}");
        for (element, css) in listed.iter().zip([Some("#b"), None, Some("#near"), None, Some("#far")]) {
            css.into_iter().for_each(|css| assert_eq!(element.css_selector, css));
            let clicked = stage.click(&element.css_selector).await;
            assert!(clicked.target.contains(&format!("{:?}", element.text)), "{want:?}: {element:?}, {clicked:?}");
        }
    }
}

/// A frame of the page's own site within one of another lives with the page, and what is around it does not.
#[tokio::test]
async fn a_frame_of_the_pages_own_site_within_one_of_another_is_seen_and_acted_in() {
    for want in KINDS {
        let stage = Stage::of(support::chromium_for(want).await, "room.html").await;
        let (own, other) = sites(&stage);
        let back = shown(&own, &format!("<p>Back</p>{BUTTON}"));
        let far = shown(&other, &format!("<p>Far</p><iframe src='{back}'></iframe>"));
        for round in 0..3 {
            stage.furnish(&format!("<iframe src='{far}'></iframe>"), LISTEN).await;
            stage.act(click("#in")).await.unwrap_or_else(|error| panic!("{want:?}, {round}: {error}"));
            let text = soon(stage.page.snapshot(&tabmux_driver::Sight::default())).await.expect("it can be seen").text;
            assert!(
                text.contains("\"Far\"") && text.contains("\"Back\"") && text.contains("button \"Inner\""),
                "{want:?}, {round}: {text}"
            );
        }
    }
}

/// The browser finds such a frame by the picture it drew last: a move that went astray shows it, and a press could not be taken back.
#[tokio::test]
async fn a_click_into_a_frame_of_another_process_is_tried_with_a_move_first() {
    let stage = Stage::of(support::chromium_for(Want::Full).await, "room.html").await;
    let (_, other) = sites(&stage);
    stage.furnish(&format!("<iframe src='{}'></iframe><button id=b>B</button>", shown(&other, BUTTON)), "").await;
    let tap = stage.browser.connection().tap(1000);
    for (selector, is_tried) in [("#in", true), ("#b", false)] {
        let before = tap.sent().len();
        stage.click(selector).await;
        let sent = tap.sent().split_off(before);
        let at = |part: &str| sent.iter().position(|sent| sent.frame.contains(part));
        let (moved, tried, pressed) = (at("\"mouseMoved\""), at("\"under\""), at("\"mousePressed\""));
        assert_eq!(tried.is_some(), is_tried, "{selector}: {sent:?}");
        assert!(moved < pressed && tried.is_none_or(|tried| moved < Some(tried) && Some(tried) < pressed), "{selector}: {sent:?}");
    }
}
