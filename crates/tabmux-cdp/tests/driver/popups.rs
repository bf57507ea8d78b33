//! What pages that pages opened show first: the browser asks for it before anybody can say as whom.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::json;
use tabmux_cdp::find::Want;
use tabmux_driver::{Browser, ContextSpec, Credentials, Emulation, Navigation, Page};

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
