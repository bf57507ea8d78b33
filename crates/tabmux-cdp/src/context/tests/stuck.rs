//! Pages that come up by themselves and answer nothing, because they ask something or are busy.

use tabmux_driver::{Dialog, HOUSEKEEPING, Handle, PageRecord, Popup};
use tokio::time::Instant;

use super::*;

impl Played {
    /// A page comes up that answers nothing until it relents.
    async fn opens_stuck(&self, target: &'static str, opener: &str) {
        self.0.inner.lock().unwrap().stuck.insert(target);
        self.opens(target, Some(opener)).await;
        self.is_asked("Target.attachToTarget", target, 1).await;
    }

    /// Waits until a page was told something.
    async fn tells(&self, method: &str, target: &str) {
        let mut heard = self.0.heard.subscribe();
        let session = format!("of {target}");
        let told = |_: &usize| {
            let inner = self.0.inner.lock().unwrap();
            inner.commands.iter().any(|command| command["method"] == method && command["sessionId"] == *session)
        };
        tokio::time::timeout(PATIENCE, heard.wait_for(told)).await.unwrap_or_else(|_| panic!("{method} to {target}")).expect("it plays on");
    }
}

async fn joins(context: &dyn Context) -> Popup {
    tokio::time::timeout(PATIENCE, context.popups().recv()).await.expect("it joins").expect("a popup")
}

/// S4.23: nobody waits for it, it is never closed, and it is made ready as soon as it goes on.
#[tokio::test(start_paused = true)]
async fn a_page_that_is_busy_when_it_comes_up_joins_and_holds_up_nobody() {
    for isolation in [Isolation::Context, Isolation::Tab, Isolation::Window] {
        let (browser, played) = Played::start().await;
        let context = context(&browser, isolation).await;
        context.open_page().await.expect("a page opens");
        let before = Instant::now();
        played.opens_stuck("P9", "T1").await;
        context.open_page().await.expect("another page opens");
        assert_eq!(before.elapsed(), Duration::ZERO, "who opens a page does not wait");
        let joined = joins(&*context).await;
        assert_eq!((joined.page.handle().0.as_str(), joined.page.url().as_str()), ("P9", "http://a.test/"), "{isolation:?}");
        assert!(before.elapsed() < Duration::from_secs(1), "{:?}", before.elapsed());
        let closed = tokio::time::timeout(HOUSEKEEPING * 2, played.is_asked("Target.closeTarget", "P9", 1)).await;
        assert!(closed.is_err(), "{isolation:?}");
        played.relents().await;
        played.tells("Emulation.setFocusEmulationEnabled", "P9").await;
    }
}

/// S4.23: what it asks is known from the beginning, and is answered by who has the session.
#[tokio::test(start_paused = true)]
async fn a_page_that_opens_a_dialog_while_it_comes_up_joins_with_it() {
    let (browser, played) = Played::start().await;
    let context = context(&browser, Isolation::Context).await;
    context.open_page().await.expect("a page opens");
    let before = Instant::now();
    played.opens_stuck("P9", "T1").await;
    let asks = json!({"url": "http://a.test/", "frameId": "P9", "message": "Delete?", "type": "confirm", "hasBrowserHandler": false});
    played.say(&json!({"method": "Page.javascriptDialogOpening", "params": asks, "sessionId": "of P9"})).await;
    let joined = joins(&*context).await;
    assert_eq!(joined.page.dialog(), Some(Dialog { kind: "confirm".into(), text: "Delete?".into() }));
    assert_eq!((before.elapsed(), played.asked("Target.closeTarget", "P9")), (Duration::ZERO, 0));
}

/// The former daemon died before it wrote down how to go on with it.
#[tokio::test(start_paused = true)]
async fn a_page_that_is_busy_when_the_next_daemon_finds_it_is_a_page_still() {
    let (browser, played) = Played::start().await;
    let context = context(&browser, Isolation::Context).await;
    let mut found = info("P9", None);
    found["browserContextId"] = json!("C1");
    {
        let mut inner = played.0.inner.lock().unwrap();
        inner.targets = vec![found];
        inner.stuck.insert("P9");
    }
    let record = PageRecord { handle: Handle("P9".into()), url: "http://a.test/".into(), memento: None };
    let spec = ContextSpec::default();
    let adopted = browser.adopt_context(context.handle(), &spec, &[record]).await.expect("the context is there");
    assert_eq!(
        adopted.pages.iter().map(|(handle, page)| (handle.0.as_str(), page.url())).collect::<Vec<_>>(),
        [("P9", "http://a.test/".into())]
    );
    assert_eq!(played.asked("Target.closeTarget", "P9"), 0);
}

/// The former daemon died while it freed the page from a script that spins, and no script may run till that is done.
#[tokio::test(start_paused = true)]
async fn a_page_that_a_former_daemon_had_may_run_scripts() {
    let (browser, played) = Played::start().await;
    let context = context(&browser, Isolation::Context).await;
    let mut found = info("P9", None);
    found["browserContextId"] = json!("C1");
    played.0.inner.lock().unwrap().targets = vec![found];
    let memento = Some(r#"{"session":"of P9"}"#.into());
    let record = PageRecord { handle: Handle("P9".into()), url: "http://a.test/".into(), memento };
    let adopted = browser.adopt_context(context.handle(), &ContextSpec::default(), &[record]).await.expect("the context is there");
    assert_eq!((adopted.pages.len(), played.asked("Target.attachToTarget", "P9")), (1, 0));
    played.tells("Emulation.setScriptExecutionDisabled", "P9").await;
}
