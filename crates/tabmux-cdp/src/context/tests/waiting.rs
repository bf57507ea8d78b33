//! Pages of headless-shell wait until they are prepared.

use crate::find::{Binary, Kind};
use crate::launch::{Launch, Mode};

use super::*;

/// Connects as to a headless-shell that we started; the browser says these things before it lets pages wait.
async fn shell(says: &[Value]) -> (Arc<CdpBrowser>, Played) {
    let (transport, played) = Played::wired();
    played.withholds("Target.setAutoAttach");
    let launch = Launch::new(Binary { path: "/shell".into(), kind: Kind::HeadlessShell }, Mode::Headless);
    let (orders, _) = tokio::sync::mpsc::channel(1);
    let connecting = tokio::spawn(CdpBrowser::connect_to(transport, 1, Played::info(), Some((launch, orders))));
    played.hears("Target.setAutoAttach").await;
    for message in says {
        played.say(message).await;
    }
    played.relents().await;
    (connecting.await.expect("it goes on").expect("it answers"), played)
}

/// The browser attached us to a page.
fn attached(target: &str, opener: Option<&str>, waits: bool) -> Value {
    let params = json!({"sessionId": format!("of {target}"), "targetInfo": info(target, opener), "waitingForDebugger": waits});
    json!({"method": "Target.attachedToTarget", "params": params})
}

/// What was said about the session of a target, in order.
fn told(played: &Played, target: &str) -> Vec<String> {
    let session = json!(format!("of {target}"));
    let inner = played.0.inner.lock().unwrap();
    let about = |command: &&Value| command["sessionId"] == session || command["params"]["sessionId"] == session;
    inner.commands.iter().filter(about).map(|command| command["method"].as_str().unwrap().to_owned()).collect()
}

const LET_IN: [&str; 2] = ["Runtime.runIfWaitingForDebugger", "Target.detachFromTarget"];

/// What a former daemon left. Its pages are found by their records, with the sessions they have.
#[tokio::test(start_paused = true)]
async fn pages_that_are_there_when_pages_begin_to_wait_are_let_go() {
    let (browser, played) = shell(&[attached("T7", None, false), attached("T8", None, true)]).await;
    played.is_asked("Target.detachFromTarget", "T8", 1).await;
    assert_eq!((told(&played, "T7"), told(&played, "T8")), (vec![LET_IN[1].to_owned()], LET_IN.map(str::to_owned).to_vec()));
    drop(browser);
}

#[tokio::test(start_paused = true)]
async fn a_page_of_ours_is_prepared_by_who_made_it_and_keeps_the_session_it_was_given() {
    let (browser, played) = shell(&[]).await;
    let context = context(&browser, Isolation::Context).await;
    played.withholds("Target.attachToTarget");
    let opening = tokio::spawn(async move { context.open_page().await.map(|page| (context, page)) });
    played.hears("Target.attachToTarget").await;
    played.say(&attached("T1", None, false)).await;
    played.relents().await;
    let (_context, page) = opening.await.unwrap().expect("a page opens");
    assert!(page.evaluate("1").await.is_ok());
    assert!(!told(&played, "T1").contains(&LET_IN[1].to_owned()));
}

/// All that it is to hear comes before the word to begin.
#[tokio::test(start_paused = true)]
async fn what_a_page_opens_is_prepared_before_it_begins() {
    let (browser, played) = shell(&[]).await;
    let context = context(&browser, Isolation::Context).await;
    let mut popups = context.popups();
    context.open_page().await.expect("a page opens");
    played.opens("P9", Some("T1")).await;
    played.say(&attached("P9", Some("T1"), true)).await;
    let popup = tokio::time::timeout(PATIENCE, popups.recv()).await.expect("it joins").expect("a popup");
    assert_eq!(popup.page.handle().0, "P9");
    let told = told(&played, "P9");
    let at = |method: &str| told.iter().position(|told| told == method).unwrap_or_else(|| panic!("{method} is not in {told:?}"));
    for method in ["Page.enable", "Runtime.enable", "Network.enable", "Target.setAutoAttach", "Emulation.setFocusEmulationEnabled"] {
        assert!(at(method) < at(LET_IN[0]), "{method}: {told:?}");
    }
    assert_eq!(played.asked("Target.attachToTarget", "P9"), 0, "it has a session already");
}
