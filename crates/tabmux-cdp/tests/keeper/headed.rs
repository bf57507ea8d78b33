//! A visible browser, on a display of the test's own.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::keeper::launch;
use tabmux_cdp::launch::Mode;

use crate::support::{Family, Stage, Wire, full};

struct Display {
    server: Child,
    name: String,
}

impl Display {
    fn new() -> Self {
        let mut command = Command::new("Xvfb");
        command.args(["-displayfd", "1", "-screen", "0", "1280x800x24", "-nolisten", "tcp"]);
        let mut server = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the package xvfb");
        let mut number = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut number).unwrap();
        Self { server, name: format!(":{}", number.trim()) }
    }
}

impl Drop for Display {
    fn drop(&mut self) {
        self.server.kill().unwrap();
        self.server.wait().unwrap();
    }
}

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
    family.gone_within(Duration::from_secs(1));
    assert!(stage.leftovers().is_empty(), "{:?}", stage.leftovers());
}
