//! The first document of a popup, which may have been asked for before anybody could say as whom.

use tabmux_driver::Emulation;

use super::*;

/// What is played before the browser says which document the popup shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Nothing,
    /// The browser tells of the request for it: so it was made as it should.
    Request,
    /// It asks something, and whoever answers goes on with that document.
    Dialog,
}

/// Once, where a server may answer another, and never where it was asked for as it should.
#[tokio::test(start_paused = true)]
async fn a_popups_document_is_loaded_again_only_where_it_was_asked_for_as_somebody_else() {
    let named = Emulation { user_agent: Some("Bot/9".into()), ..Emulation::default() };
    let small = Emulation { viewport: Some((300, 200)), ..Emulation::default() };
    for (emulation, before, again) in [
        (&named, Before::Nothing, true),
        (&named, Before::Request, false),
        (&named, Before::Dialog, false),
        (&small, Before::Nothing, false),
    ] {
        let (browser, played) = Played::start().await;
        let spec = ContextSpec { emulation: emulation.clone(), ..ContextSpec::default() };
        let context = browser.open_context(&spec).await.expect("a context opens");
        context.open_page().await.expect("a page opens");
        played.withholds("Page.getFrameTree");
        played.opens("P9", Some("T1")).await;
        played.is_asked("Target.attachToTarget", "P9", 1).await;
        let (method, params) = match before {
            Before::Nothing => ("Page.unheardOf", json!({})),
            Before::Request => {
                let request =
                    json!({"url": "http://a.test/", "method": "GET", "headers": {}, "initialPriority": "High", "referrerPolicy": ""});
                let params = json!({"requestId": "first", "loaderId": "first", "documentURL": "http://a.test/", "request": request,
                    "timestamp": 1, "wallTime": 1, "initiator": {"type": "other"}, "type": "Document", "frameId": "P9"});
                ("Network.requestWillBeSent", params)
            }
            Before::Dialog => {
                let asks = json!({"url": "http://a.test/", "frameId": "P9", "message": "?", "type": "alert", "hasBrowserHandler": false});
                ("Page.javascriptDialogOpening", asks)
            }
        };
        played.say(&json!({"method": method, "params": params, "sessionId": "of P9"})).await;
        let joined = tokio::time::timeout(PATIENCE, context.popups().recv()).await.expect("it joins").expect("a popup");
        assert_eq!(joined.page.handle().0, "P9");
        played.relents().await;
        let reloaded = tokio::time::timeout(PATIENCE / 2, played.hears("Page.reload")).await.is_ok();
        assert_eq!(reloaded, again, "{emulation:?} {before:?}");
    }
}
