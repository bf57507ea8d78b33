//! Requests that wait for our word.

use super::early::{ORIGIN, Slow};
use super::*;
use tabmux_driver::Beginning;

impl Played {
    /// Which requests were let go so far.
    fn let_go(&self) -> Vec<String> {
        let inner = self.0.inner.lock().unwrap();
        let let_go = inner.commands.iter().filter(|command| command["method"] == "Fetch.continueRequest");
        let_go.map(|command| command["params"]["requestId"].as_str().expect("an id").to_owned()).collect()
    }
}

/// All but documents of an origin that something is on its way to; these go on when it has come. What cannot be told apart waits for nobody.
#[tokio::test(start_paused = true)]
async fn every_request_is_let_go_and_a_document_when_its_origin_has_everything() {
    let (browser, played) = Played::start().await;
    let slow = Slow::default();
    let spec = ContextSpec { source: Some(Beginning::with(slow.clone())), ..ContextSpec::default() };
    let context = browser.open_context(&spec).await.expect("a context opens");
    context.open_page().await.expect("a page opens");
    let here = format!("{ORIGIN}/page");
    for params in [
        json!({"requestId": "held", "request": {"url": here}, "frameId": "T1", "resourceType": "Document"}),
        json!({"requestId": "script", "request": {"url": here}, "frameId": "T1", "resourceType": "Script"}),
        json!({"requestId": "elsewhere", "request": {"url": "http://b.test/"}, "frameId": "T1", "resourceType": "Document"}),
        json!({"requestId": "too long", "error": "its event was cut"}),
        json!({"requestId": "placeless", "request": {}, "resourceType": "Document"}),
    ] {
        played.say(&json!({"method": "Fetch.requestPaused", "params": params, "sessionId": "of T1"})).await;
    }
    // What was let go by then was sent before this is answered.
    context.open_page().await.expect("another page opens");
    assert_eq!(played.let_go(), ["script", "elsewhere", "too long", "placeless"]);
    slow.0.add_permits(1);
    let mut heard = played.0.heard.subscribe();
    let let_go = heard.wait_for(|_| played.let_go().contains(&"held".to_owned()));
    tokio::time::timeout(PATIENCE, let_go).await.expect("it is let go").expect("it plays on");
}

/// It was asked in time, and takes the rule when it wakes: nobody may have to ask again for that.
#[tokio::test(start_paused = true)]
async fn a_port_stays_shut_to_pages_of_a_browser_that_is_late_to_say_so_and_it_is_asked_again() {
    let (browser, played) = Played::start().await;
    played.withholds("Fetch.enable");
    let late = browser.shut_door("ws://127.0.0.1:9222/devtools/browser/1").await;
    assert!(matches!(late, Err(DriverError::Late(_))), "{late:?}");
    played.relents().await;
    let params = json!({"requestId": "refused", "request": {"url": "http://localhost:9222/json/list"}});
    played.say(&json!({"method": "Fetch.requestPaused", "params": params})).await;
    played.hears("Fetch.failRequest").await;
    browser.shut_door("ws://127.0.0.1:9222/devtools/browser/1").await.expect("it is awake");
    played.hears_times("Fetch.enable", 2).await;
    assert!(played.let_go().is_empty());
}
