//! What pages that pages opened show, ask for and ask first.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_driver::{Action, Browser, ContextSpec, Credentials, DriverError, Emulation, Navigation, Page, Selector, Verb};

use crate::support::{self, page, response, serve};

const PATIENCE: Duration = Duration::from_secs(20);

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("a browser answers in time")
}

const LINKS: &str = "<a id=blank target=_blank href=/who>x</a> <a id=opener target=_blank rel=opener href=/who>x</a> \
    <form target=_blank method=post action=/form><button id=form>x</button></form>";

/// `/who` asks for a login and says who came, by which name and in which language; `/form` counts its answers.
async fn site(sent: Arc<AtomicUsize>) -> String {
    serve(move |request| {
        let header = |name: &str| {
            let line = request.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}: ")));
            line.map_or("", |line| &line[name.len() + 2..])
        };
        match request.split(' ').nth(1).unwrap_or_default() {
            "/who" if header("authorization").is_empty() => response("401 Unauthorized\r\nWWW-Authenticate: Basic realm=x", "who are you?"),
            "/who" => page(&format!("{} {} {}", header("user-agent"), header("accept-language"), header("authorization"))),
            "/form" => {
                sent.fetch_add(1, Ordering::SeqCst);
                page("thanks")
            }
            _ => page(LINKS),
        }
    })
    .await
}

/// Its text, as soon as that is what it should be or nothing more is to come.
async fn shows(popup: &Arc<dyn Page>, text: &str) {
    soon(async {
        // Each question gives it time.
        while popup.evaluate("document.body?.innerText").await != Ok(json!(text)) {}
    })
    .await;
}

/// An answer to a form would be sent twice, so that one stays as it came.
#[tokio::test]
async fn the_first_document_of_a_popup_is_the_one_for_what_its_session_emulates() {
    let credentials = Some(Credentials { username: "ann".into(), password: "pw".into(), origin: None });
    let emulation = Emulation { user_agent: Some("Bot/9".into()), locale: Some("fr-FR".into()), credentials, ..Emulation::default() };
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let sent = Arc::new(AtomicUsize::new(0));
        let site = site(Arc::clone(&sent)).await;
        let spec = ContextSpec { emulation: emulation.clone(), ..ContextSpec::default() };
        let context = soon(browser.open_context(&spec)).await.expect("a context opens");
        let mut popups = context.popups();
        let opener = soon(context.open_page()).await.expect("a page opens");
        soon(opener.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
        let click = |id: &str| format!("document.querySelector('#{id}').click()");
        soon(opener.evaluate(&click("form"))).await.expect("it runs");
        let form = soon(popups.recv()).await.expect("it joins").page;
        shows(&form, "thanks").await;
        for way in [click("blank"), click("opener"), "!!open('/who')".into()] {
            soon(opener.evaluate(&way)).await.expect("it runs");
            let popup = soon(popups.recv()).await.expect("it joins").page;
            shows(&popup, "Bot/9 fr-FR Basic YW5uOnB3").await;
        }
        assert_eq!(sent.load(Ordering::SeqCst), 1, "{want:?}");
        shows(&form, "thanks").await;
    }
}

/// A full Chromium asks before anybody can say as whom, so there it is asked for twice.
#[tokio::test]
async fn in_headless_shell_a_popup_asks_for_its_first_document_once_and_as_emulated() {
    let browser = support::chromium().await;
    let (heard, asked) = std::sync::mpsc::channel();
    let heard = std::sync::Mutex::new(heard);
    let site = serve(move |request| {
        if request.starts_with("GET /popup") {
            let agent = request.lines().find_map(|line| line.strip_prefix("User-Agent: ")).unwrap_or_default().to_owned();
            heard.lock().unwrap().send(agent).unwrap();
        }
        page("hello")
    })
    .await;
    let emulation = Emulation { user_agent: Some("Bot/9".into()), viewport: Some((700, 500)), ..Emulation::default() };
    let spec = ContextSpec { emulation, ..ContextSpec::default() };
    let context = soon(browser.open_context(&spec)).await.expect("a context opens");
    let mut popups = context.popups();
    let opener = soon(context.open_page()).await.expect("a page opens");
    soon(opener.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
    let elsewhere = site.replace("127.0.0.1", "localhost");
    let ways =
        [format!("!!open('{site}/popup')"), format!("!!open('{elsewhere}/popup')"), format!("!!open('{site}/popup', '', 'noopener')")];
    for way in &ways {
        soon(opener.evaluate(way)).await.expect("it runs");
        let popup = soon(popups.recv()).await.expect("it joins").page;
        assert_eq!(soon(popup.evaluate("[navigator.userAgent, innerWidth]")).await, Ok(json!(["Bot/9", 700])), "{way}");
        assert_eq!(popup.requests().0.len(), 1, "what it asked for first is known: {way}");
    }
    assert_eq!(asked.try_iter().collect::<Vec<_>>(), ["Bot/9"; 3]);
}

/// Headless-shell itself answers a dialog that nobody listens to, and the page goes on as if a person had refused.
#[tokio::test]
async fn what_a_popup_asks_while_it_loads_is_never_answered_by_the_browser() {
    let browser = support::chromium().await;
    let site = support::site(|path| if path == "/asks" { "<script>said = confirm('sure?')</script>".into() } else { "hello".into() }).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let mut popups = context.popups();
    let opener = soon(context.open_page()).await.expect("a page opens");
    soon(opener.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
    for round in 0..10 {
        let features = if round % 2 == 0 { "" } else { "noopener" };
        // A popup in the opener's process keeps that from answering while it asks, so nobody waits for the script.
        let opens = format!("setTimeout(() => open('/asks', '', '{features}'))");
        soon(opener.evaluate(&opens)).await.expect("it runs");
        let popup = soon(popups.recv()).await.expect("it joins").page;
        let asks = popup.dialog().map(|dialog| (dialog.kind, dialog.text));
        assert_eq!(asks, Some(("confirm".into(), "sure?".into())), "{round}");
        soon(popup.answer_dialog(tabmux_driver::DialogAnswer::Accept { prompt: None })).await.expect("it is answered");
        assert_eq!(soon(popup.evaluate("said")).await, Ok(json!(true)), "{round}");
        soon(popup.close()).await.expect("it closes");
    }
}

/// Whatever a page opens, it is told of when it shows something, and at once where it will never show anything else.
#[tokio::test]
async fn popups_join_with_what_they_show() {
    let browser = support::chromium().await;
    let site = support::site(|path| format!("at {path}")).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let mut popups = context.popups();
    let opener = soon(context.open_page()).await.expect("a page opens");
    soon(opener.navigate(Navigation::To(&format!("{site}/")))).await.expect("the page goes there");
    for (way, text) in [
        ("open('/one')", "at /one"),
        ("open()", ""),
        ("open('about:blank')", ""),
        ("open('about:blank', '', 'noopener')", ""),
        ("open().document.write('written')", "written"),
        ("open(URL.createObjectURL(new Blob(['blob'], { type: 'text/html' })))", "blob"),
        ("open('/small', '', 'width=300,height=200')", "at /small"),
    ] {
        soon(opener.evaluate(&format!("void {way}"))).await.expect("it runs");
        let popup = soon(popups.recv()).await.expect("it joins").page;
        assert_eq!(soon(popup.evaluate("document.body.innerText")).await, Ok(json!(text)), "{way}");
    }
}

/// Its document ends, as one does that gives way to another; but there is no other, and the tab is gone.
#[tokio::test]
async fn an_act_in_a_page_that_closes_itself_is_told_that_the_tab_is_gone() {
    let browser = support::chromium().await;
    let site = serve(|_| page("hello")).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let mut popups = context.popups();
    let opener = soon(context.open_page()).await.expect("a page opens");
    soon(opener.navigate(Navigation::To(&site))).await.expect("it goes there");
    for _ in 0..5 {
        soon(opener.evaluate("open('/popup'), 1")).await.expect("it opens one");
        let popup = soon(popups.recv()).await.expect("it joins").page;
        soon(popup.evaluate("setTimeout(() => close(), 300), 1")).await.expect("it runs");
        let verb = Verb::Hover { selector: Selector::parse("#never").expect("a selector") };
        let acted = soon(popup.act(&Action { verb, patience: PATIENCE })).await;
        assert_eq!(acted, Err(DriverError::PageGone));
    }
}
