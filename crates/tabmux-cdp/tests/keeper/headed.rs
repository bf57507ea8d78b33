//! A visible browser, on a display of the test's own.

use std::time::Duration;

use serde_json::json;
use tabmux_cdp::keeper::launch;
use tabmux_cdp::launch::Mode;

use crate::display::Display;
use crate::support::{Family, Stage, Wire, full, promptly};

#[tokio::test]
async fn a_visible_browser_opens_windows_of_the_size_asked_for_and_leaves_nothing() {
    let display = Display::new();
    let mut stage = Stage::new(Some(Duration::from_secs(60)));
    let keeper = std::mem::replace(&mut stage.home.exe, "/usr/bin/env".into());
    stage.home.words = vec![format!("DISPLAY={}", display.name).into(), keeper.into()];
    let mut visible = full();
    visible.mode = Mode::Headed;
    visible.window = Some((800, 600));
    let (pipe, claim) = launch(&stage.home, &visible).await.unwrap().into_parts();
    let mut wire = Wire::new(pipe);
    let target = wire.result(1, "Target.createTarget", &json!({"url": "about:blank", "newWindow": true})).await;
    let window = wire.result(2, "Browser.getWindowForTarget", &json!({"targetId": target["targetId"]})).await;
    assert_eq!((&window["bounds"]["width"], &window["bounds"]["height"]), (&json!(800), &json!(600)));
    let family = Family::of(claim.about.keeper_pid);
    claim.end().await.unwrap();
    family.gone_within(promptly());
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}
