//! Pictures of real pages: of tabs in the background of one visible window, of elements, of very long pages and dense screens.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tabmux_cdp::CdpBrowser;
use tabmux_driver::{Area, Browser, ContextSpec, DriverError, Image, ImageFormat, Navigation, Page, Selector, Shot};

use crate::display::Display;
use crate::support;

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("a browser answers in time")
}

fn png(area: Area, max_side: Option<u32>) -> Shot {
    Shot { area, format: ImageFormat::Png, max_side }
}

/// What the middle of a picture looks like, and its size in dots, read by a page.
pub(crate) async fn looked_at(page: &Arc<dyn Page>, image: &Image) -> Value {
    let script = format!(
        "(async () => {{ const bytes = await (await fetch('data:image/png;base64,{}')).blob(); const map = await createImageBitmap(bytes); \
         const canvas = new OffscreenCanvas(map.width, map.height); const pen = canvas.getContext('2d'); pen.drawImage(map, 0, 0); \
         const dot = pen.getImageData(map.width / 2, map.height / 2, 1, 1).data; return [[...dot].slice(0, 3), map.width, map.height] }})()",
        image.base64
    );
    soon(page.evaluate(&script)).await.expect("a picture can be read")
}

async fn pages(browser: &Arc<CdpBrowser>, count: usize) -> Vec<Arc<dyn Page>> {
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let mut pages = Vec::new();
    for _ in 0..count {
        pages.push(soon(context.open_page()).await.expect("a page opens"));
    }
    pages
}

/// Each tab of one window shows its own colour, in two round trips, and none is brought to the front for it.
#[tokio::test]
async fn tabs_in_the_background_are_pictured_as_they_are() {
    let display = Display::new();
    for display in [Some(&display), None] {
        let browser = support::full_chromium(display).await;
        let tap = browser.connection().tap(10_000);
        let site = support::site(|path| format!("<body style='margin:0;background:{}'>", path.trim_start_matches('/'))).await;
        let tabs = pages(&browser, 4).await;
        let colours =
            [("red", json!([255, 0, 0])), ("lime", json!([0, 255, 0])), ("blue", json!([0, 0, 255])), ("black", json!([0, 0, 0]))];
        for (tab, (colour, _)) in tabs.iter().zip(&colours) {
            soon(tab.navigate(Navigation::To(&format!("{site}/{colour}")))).await.expect("it goes there");
        }
        for round in 0..2 {
            for (tab, (colour, dot)) in tabs.iter().zip(&colours) {
                let before = tap.sent().len();
                let image = soon(tab.screenshot(&png(Area::Viewport, None))).await.expect("it is pictured");
                // Requests that pages make meanwhile are let through by commands of their own.
                let spent = tap.sent().into_iter().skip(before).filter(|sent| !sent.method.starts_with("Fetch."));
                assert_eq!(spent.map(|sent| sent.method).collect::<Vec<_>>(), ["Runtime.evaluate", "Page.captureScreenshot"]);
                assert_eq!(&looked_at(&tabs[0], &image).await[0], dot, "{colour} {round}, on a display: {}", display.is_some());
            }
        }
        assert_eq!(tap.dropped(), 0);
        for sent in tap.sent() {
            assert!(!sent.method.contains("bringToFront") && !sent.method.contains("activateTarget"), "{sent:?}");
        }
    }
}

/// A page that is alone in its context is drawn as it is, and costs less for it; when a popup covers it, it is drawn all the same.
#[tokio::test]
async fn a_page_that_a_popup_covers_goes_on_being_drawn() {
    let browser = support::full_chromium(None).await;
    let tap = browser.connection().tap(10_000);
    let asked = || tap.sent().iter().filter(|sent| sent.method == "Page.startScreencast").count();
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    let drawn =
        "new Promise(done => { let frames = 0; const next = () => ++frames > 20 ? done(frames) : requestAnimationFrame(next); next() })";
    assert_eq!(soon(page.evaluate(drawn)).await.expect("it is drawn"), json!(21));
    assert_eq!(asked(), 0);
    soon(page.evaluate("!!open('about:blank')")).await.expect("a popup opens");
    soon(context.popups().recv()).await.expect("and joins");
    assert_eq!(soon(page.evaluate(drawn)).await.expect("it is drawn behind the popup"), json!(21));
    assert_eq!(asked(), 2);
}

#[tokio::test]
async fn an_element_is_pictured_where_it_is_even_in_a_box_that_scrolls() {
    let browser = support::chromium().await;
    let html = "<body style='margin:0'><div style='height:100px;overflow:auto'><div style='height:2000px'></div>\
                <div id=deep style='width:50px;height:40px;background:lime'></div></div>\
                <div style='height:3000px'></div><div id=far style='width:60px;height:30px;background:blue'></div>\
                <div id=gone style='display:none'>x</div>";
    let site = support::site(|_| html.to_owned()).await;
    let page = pages(&browser, 1).await.remove(0);
    soon(page.navigate(Navigation::To(&format!("{site}/")))).await.expect("it goes there");
    for (selector, expected) in [("#far", json!([[0, 0, 255], 60, 30])), ("#deep", json!([[0, 255, 0], 50, 40]))] {
        let image =
            soon(page.screenshot(&png(Area::Element(Selector::parse(selector).expect("a selector")), None))).await.expect("it is pictured");
        assert_eq!(looked_at(&page, &image).await, expected, "{selector}");
        assert_eq!(json!([image.width, image.height]), json!([expected[1], expected[2]]));
    }
    let refused = async |selector: &str| {
        soon(page.screenshot(&png(Area::Element(Selector::parse(selector).expect("a selector")), None))).await.expect_err("nothing to see")
    };
    assert!(matches!(refused("#gone").await, DriverError::NotActionable(_)));
    assert_eq!(refused("#none").await, DriverError::ElementNotFound { selector: "#none".into(), near: Vec::new() });
    assert!(matches!(refused("##").await, DriverError::BadSelector { .. }));
}

#[tokio::test]
async fn a_document_that_was_emptied_is_pictured_as_far_as_it_is_in_view() {
    let browser = support::chromium().await;
    let site = support::site(|_| "<body style='margin:0'><div style='height:3000px'></div>".into()).await;
    let page = pages(&browser, 1).await.remove(0);
    soon(page.navigate(Navigation::To(&format!("{site}/")))).await.expect("it goes there");
    soon(page.evaluate("document.documentElement.remove(), 1")).await.expect("it goes");
    let [view, whole] = [Area::Viewport, Area::FullPage].map(|area| png(area, None));
    let view = soon(page.screenshot(&view)).await.expect("the view is pictured");
    let whole = soon(page.screenshot(&whole)).await.expect("the whole is pictured");
    assert_eq!((whole.width, whole.height), (view.width, view.height));
}

/// A long page is whole as long as it can be read, and then its beginning.
#[tokio::test]
async fn a_long_page_stays_readable() {
    let browser = support::chromium().await;
    let site = support::site(|path| format!("<body style='margin:0'><div style='height:{}px'></div>", path.trim_start_matches('/'))).await;
    let page = pages(&browser, 1).await.remove(0);
    for (height, max_side, size, shown) in [(2000, 1000, 1000, 2000), (20_000, 1000, 1000, 2000)] {
        soon(page.navigate(Navigation::To(&format!("{site}/{height}")))).await.expect("it goes there");
        let image = soon(page.screenshot(&png(Area::FullPage, Some(max_side)))).await.expect("it is pictured");
        assert_eq!((image.height, image.shown.1, image.whole.1), (size, shown, height));
        assert_eq!(looked_at(&page, &image).await[2], json!(size));
    }
    soon(page.navigate(Navigation::To(&format!("{site}/10000")))).await.expect("it goes there");
    let image = soon(page.screenshot(&png(Area::FullPage, None))).await.expect("it is pictured");
    assert_eq!((image.height, image.shown), (10_000, image.whole));
}

/// Chromium never answers for a document that goes while it is drawn.
#[tokio::test]
async fn a_page_that_goes_on_and_on_is_pictured() {
    let browser = support::chromium().await;
    let site = support::site(|_| "<script>setTimeout(() => location = '/' + Math.random(), 50)</script>on".into()).await;
    let page = pages(&browser, 1).await.remove(0);
    // It may be elsewhere before it is there.
    let _ = tokio::time::timeout(Duration::from_secs(20), page.navigate(Navigation::To(&site))).await;
    for round in 0..12 {
        for format in [ImageFormat::Png, ImageFormat::Jpeg { quality: 60 }] {
            let image = soon(page.screenshot(&Shot { area: Area::Viewport, format, max_side: None })).await;
            assert!(image.is_ok(), "{round} {format:?}: {image:?}");
        }
    }
}
