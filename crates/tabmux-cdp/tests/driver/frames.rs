//! Frames that leave their site, that are out of sight, and that stand in one another: what is in them is seen and acted upon.

use std::fmt::Write as _;

use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_driver::{Area, DriverError, ImageFormat, Shot, Verb};

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

/// Fields that say what is in them when they are asked.
fn fields(site: &str, name: &str) -> String {
    let tell = "onmessage = () => top.postMessage([fi.value, list.value, range.value, day.value], '*')";
    let fields =
        "<input id=fi><select id=list><option>One<option>Two</select><input type=range id=range max=9 value=1><input type=date id=day>";
    shown(site, &format!("<p>{name}</p>{fields}<img src='data:,' onerror=\"{tell}\">"))
}

/// What is in the fields of each frame, in the order of the page.
const TOLD: &str = "(async () => {
    const all = [];
    for (const frame of document.querySelectorAll('iframe')) {
        all.push(await new Promise((done) => { onmessage = ({ data }) => done(data); frame.contentWindow.postMessage(0, '*'); }));
    }
    return all;
})()";

const LOADED: &str = "window.loaded = Promise.all([...document.querySelectorAll('iframe')].map((frame) => new Promise((done) => frame.onload = () => done(0))));";

#[tokio::test]
async fn of_several_frames_of_other_sites_that_match_one_is_acted_in_and_all_are_counted() {
    let filled = json!(["typed", "Two", "5", "2026-11-18"]);
    let empty = json!(["", "One", "1", ""]);
    for want in KINDS {
        let stage = Stage::of(support::chromium_for(want).await, "room.html").await;
        let (_, other) = sites(&stage);
        let frames = ["A", "B", "C"].map(|name| format!("<iframe src='{}'></iframe>", fields(&other, name)));
        let hidden = format!("<iframe style='visibility: hidden' src='{}'></iframe>", fields(&other, "hidden"));
        // Many, since one could be the first by chance.
        for round in 0..4 {
            let (before, first, matched) = if round % 2 == 0 { ("", 0, 3) } else { (hidden.as_str(), 1, 3) };
            stage.furnish(before, "").await;
            // The last comes first: where a frame stands counts.
            let put = |frame: &String| format!("place.insertAdjacentHTML('afterend', {});", json!(frame));
            let puts: String = frames.iter().rev().map(put).collect();
            let place = "const place = document.createElement('i'); room.append(place);";
            stage.run(&format!("{place} {puts} {LOADED} loaded")).await;
            let typed = stage.act(Verb::Type { selector: Some(named("#fi")), text: "typed".into() }).await.expect("it is typed");
            assert_eq!((typed.matched, typed.outcome.as_deref()), (matched, Some("It is \"typed\" now.")), "{want:?}, {round}");
            for (selector, value) in [("#list", "Two"), ("#range", "5"), ("#day", "2026-11-18")] {
                assert_eq!(stage.set(selector, value).await.matched, matched, "{want:?}, {round}: {selector}");
            }
            let told = stage.run(TOLD).await;
            let all: Vec<_> = told.as_array().into_iter().flatten().enumerate().map(|(at, told)| (at == first, told)).collect();
            assert!(
                all.iter().all(|(acted, told)| **told == if *acted { filled.clone() } else { empty.clone() }),
                "{want:?}, {round}: {told}"
            );
            // The reply names that very element.
            stage.set(typed.target.split(' ').next().expect("a ref"), "again").await;
            assert_eq!(stage.run(TOLD).await[first][0], json!("again"), "{want:?}, {round}");
        }
    }
}

/// It is no reason to wait for ever for an element that is elsewhere, or nowhere.
#[tokio::test]
async fn a_frame_that_never_answers_keeps_nobody_from_acting_in_another() {
    let stage = Stage::of(support::chromium_for(Want::Full).await, "room.html").await;
    let [spins, works] = ["spins", "works"].map(|name| stage.site.replace("127.0.0.1", &format!("{name}.localhost")));
    let spin = "<img src='data:,' onerror=\"onmessage = () => { top.postMessage('spins', '*'); setTimeout(() => { for (;;); }); }\">";
    let frames = [shown(&spins, spin), shown(&works, BUTTON)].map(|at| format!("<iframe src='{at}'></iframe>")).concat();
    stage.furnish(&frames, LOADED).await;
    stage.run("loaded").await;
    stage.act(click("#in")).await.expect("both are there");
    stage.run(&format!("{LISTEN} frames[0].postMessage(0, '*'); said")).await;
    let nope = stage.refused(click("#nope")).await;
    assert!(matches!(nope, DriverError::ElementNotFound { .. }), "{nope}");
    stage.run(&format!("{LISTEN} 0")).await;
    stage.act(click("#in")).await.expect("the other one works");
    assert_eq!(stage.run("said").await, json!(["in", true]));
}

#[tokio::test]
async fn who_wants_a_picture_of_what_is_in_a_frame_of_another_site_hears_what_can_be_pictured() {
    let stage = Stage::at("room.html").await;
    let (_, other) = sites(&stage);
    stage.furnish(&format!("<iframe src='{}'></iframe>", shown(&other, BUTTON)), LOADED).await;
    stage.run("loaded").await;
    let shot = |selector: &str| Shot { area: Area::Element(named(selector)), format: ImageFormat::Png, max_side: None };
    let refused = soon(stage.page.screenshot(&shot("#in"))).await.expect_err("it cannot be pictured").to_string();
    assert!(refused.contains("selector \"iframe\""), "{refused}");
    soon(stage.page.screenshot(&shot("iframe"))).await.expect("it is pictured");
}
