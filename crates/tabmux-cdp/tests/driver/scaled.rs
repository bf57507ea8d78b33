//! Acting on pages whose pixels are larger or smaller than those of the screen: laid out for a desk on a small screen, and
//! pinched. The page itself tells what it got.

use serde::Serialize;
use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_cdp::protocol::target::AttachToTarget;
use tabmux_cdp::protocol::{Command, Empty};
use tabmux_driver::{Area, Bring, Browser, ContextSpec, Emulation, ImageFormat, Shot, Verb};

use crate::act::{Stage, named, soon};
use crate::{fixtures, support};

/// As two fingers do it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Pinch {
    page_scale_factor: f64,
}

impl Command for Pinch {
    const METHOD: &'static str = "Emulation.setPageScaleFactor";
    type Reply = Empty;
}

const HTML: &str = "<style>#room > * { position: absolute; width: 90px; height: 40px; margin: 0 } #wide { width: 2000px; height: 2000px }</style>\
    <div id=wide></div><button id=near style='left:10px;top:10px'>Near</button><button id=far style='left:500px;top:400px'>Far</button>\
    <button id=low style='left:600px;top:1700px'>Low</button><div id=card draggable=true style='left:300px;top:200px'>Card</div>\
    <div id=basket style='left:500px;top:250px'>Basket</div><div id=blue style='left:450px;top:500px;background:blue'></div>\
    <iframe id=framed style='left:400px;top:300px;width:150px' srcdoc='<body style=\"margin:0\"><button id=inner>Inner</button>'></iframe>";

const WAYS: &str = "document.querySelectorAll('button').forEach((one) => { one.onclick = () => one.textContent = 'Got'; one.onmouseover = () => one.title = 'Over'; });\
    basket.ondragover = (event) => event.preventDefault(); basket.ondrop = () => basket.textContent = 'Dropped';";

async fn stage(want: Want, emulation: Emulation) -> Stage {
    let browser = support::chromium_for(want).await;
    let spec = ContextSpec { emulation, ..ContextSpec::default() };
    let context = soon(browser.open_context(&spec)).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    let stage = Stage { page, browser, site: fixtures::site().await };
    stage.furnish(HTML, WAYS).await;
    stage
}

/// Everything that aims, on a page that is drawn at this scale.
async fn everything_arrives(stage: &Stage, scale: f64) {
    let drawn = stage.run("visualViewport.scale").await.as_f64().expect("a number");
    assert!((drawn - scale).abs() < 0.01, "{drawn} for {scale}");
    for selector in ["#far", "#low", "#near"] {
        stage.act(Verb::Hover { selector: named(selector) }).await.unwrap_or_else(|error| panic!("hover {selector} at {scale}: {error}"));
        let title = stage.run(&format!("document.querySelector('{selector}').title")).await;
        assert_eq!(title, json!("Over"), "{selector} at {scale}");
        stage.click(selector).await;
    }
    stage
        .act(Verb::Tap { selector: named("#far"), bring: Bring::IntoView })
        .await
        .unwrap_or_else(|error| panic!("tap at {scale}: {error}"));
    stage.click("#inner").await;
    assert_eq!(stage.run("[near, far, low].map((one) => one.textContent)").await, json!(["Got", "Got", "Got"]));
    let drag = Verb::Drag { from: named("#card"), to: named("#basket") };
    stage.act(drag).await.unwrap_or_else(|error| panic!("drag at {scale}: {error}"));
    assert_eq!(stage.run("basket.textContent").await, json!("Dropped"), "at {scale}");
    let shot = Shot { area: Area::Element(named("#blue")), format: ImageFormat::Png, max_side: None };
    let image = soon(stage.page.screenshot(&shot)).await.expect("it is pictured");
    let looked = crate::shot::looked_at(&stage.page, &image).await;
    assert_eq!(looked, json!([[0, 0, 255], 90, 40]), "at {scale}");
}

#[tokio::test]
async fn a_page_made_for_a_desk_is_acted_upon_on_a_small_screen() {
    for want in [Want::Plain, Want::Full] {
        let phone = Emulation { viewport: Some((400, 600)), mobile: Some(true), ..Emulation::default() };
        let stage = stage(want, phone).await;
        everything_arrives(&stage, stage.run("400 / innerWidth").await.as_f64().expect("a number")).await;
        let shot = Shot { area: Area::Viewport, format: ImageFormat::Png, max_side: None };
        let image = soon(stage.page.screenshot(&shot)).await.expect("it is pictured");
        let looked = crate::shot::looked_at(&stage.page, &image).await;
        assert_eq!((&looked[1], &looked[2]), (&json!(400), &json!(600)), "{want:?}: as many dots as the screen has");
    }
}

#[tokio::test]
async fn a_pinched_page_is_acted_upon_where_it_shows() {
    for want in [Want::Plain, Want::Full] {
        let stage = stage(want, Emulation { viewport: Some((800, 600)), ..Emulation::default() }).await;
        let (connection, target_id) = (stage.browser.connection(), stage.page.handle().0.clone());
        let attach = AttachToTarget { target_id, flatten: Some(true) };
        let session = soon(connection.call(None, &attach)).await.expect("our own page").session_id;
        soon(connection.call(Some(&session), &Pinch { page_scale_factor: 2.0 })).await.expect("it is pinched");
        let unseen = stage.refused(Verb::Tap { selector: named("#far"), bring: Bring::Nowhere }).await.to_string();
        assert!(unseen.contains("is outside of the part of the page that is shown"), "{unseen}");
        everything_arrives(&stage, 2.0).await;
    }
}
