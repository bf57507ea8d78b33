//! Copies on real Chromium: logins that only a real browser has, documents that wait, sources that end, and what is never left
//! behind.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::find::Want;
use tabmux_cdp::protocol::target::{CreateTarget, GetBrowserContexts, GetTargets, TargetInfo};
use tabmux_driver::{
    Arrival, Beginning, Browser, Context, ContextSpec, Cookie, Copied, Navigation, OriginStorage, Page, PageSeed, Result, SameSite, Source,
    StorageArea, StorageItem, StorageState,
};
use tokio::sync::Semaphore;

use crate::support;

const KEEP: &str = include_str!("databases/keep.js");
const TELL: &str = include_str!("databases/tell.js");

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("a browser answers in time")
}

async fn run(page: &Arc<dyn Page>, script: &str) -> Value {
    soon(page.evaluate(script)).await.expect("the script runs")
}

async fn go(page: &Arc<dyn Page>, url: &str) {
    soon(page.navigate(Navigation::To(url))).await.expect("the page goes there");
}

async fn open(browser: &CdpBrowser, source: Option<Beginning>) -> Arc<dyn Context> {
    soon(browser.open_context(&ContextSpec { source, ..ContextSpec::default() })).await.expect("a context opens")
}

async fn page_at(context: &Arc<dyn Context>, url: &str) -> Arc<dyn Page> {
    let page = soon(context.open_page()).await.expect("a page opens");
    go(&page, url).await;
    page
}

/// A context that keeps a token at each of these sites, and its page at the last.
async fn keeping(browser: &CdpBrowser, sites: &[&str]) -> (Arc<dyn Context>, Arc<dyn Page>) {
    let context = open(browser, None).await;
    let page = soon(context.open_page()).await.expect("a page opens");
    for site in sites {
        go(&page, site).await;
        run(&page, "localStorage.token = 'kept'").await;
    }
    (context, page)
}

async fn copied(context: &Arc<dyn Context>) -> tabmux_driver::Copied {
    soon(context.copied().wait_for(|copied| copied.pending == 0)).await.expect("it lives").clone()
}

async fn targets(browser: &CdpBrowser) -> Vec<TargetInfo> {
    browser.connection().call(None, &GetTargets::default()).await.expect("the browser lists its targets").target_infos
}

type Asked = Arc<Mutex<Vec<String>>>;

/// A site that shows which cookies came with a request and tells what its documents found; who asked for what is noted.
async fn site(asked: &Asked) -> String {
    let asked = Arc::clone(asked);
    support::serve(move |request| {
        let path = request.split(' ').nth(1).unwrap_or_default().to_owned();
        // A full browser asks for that in its own time.
        if path != "/favicon.ico" {
            asked.lock().expect("nothing panics under this lock").push(path.clone());
        }
        let cookies = request.lines().find_map(|line| line.strip_prefix("Cookie: ")).unwrap_or_default().trim();
        let (path, to) = path.split_once("?to=").unwrap_or((&path, ""));
        match path {
            "/login" => {
                let set = [
                    "__Host-sid=1; Secure; HttpOnly; Path=/; SameSite=Strict",
                    "__Host-chips=2; Secure; HttpOnly; Path=/; SameSite=None; Partitioned",
                    "__Secure-dev=3; Secure; Path=/; Priority=High",
                    "theme=\"dark blue\"; Max-Age=100000; SameSite=Lax",
                    "plain=4; HttpOnly",
                ];
                let head = set.map(|cookie| format!("\r\nSet-Cookie: {cookie}")).join("");
                support::response(&format!("200 OK\r\nContent-Type: text/html{head}"), "in")
            }
            "/frame" => support::page(&format!("<iframe src=\"{to}\"></iframe>")),
            "/redirect" => support::response(&format!("302 Found\r\nLocation: {to}"), ""),
            _ => support::page(&format!("<script>document.title = '{cookies}'; new Image().src = '/found/' + localStorage.token</script>")),
        }
    })
    .await
}

/// A source of one origin that gives nothing until it is let; without one it does not even give cookies.
#[derive(Debug)]
struct Gated {
    origin: String,
    gate: Arc<Semaphore>,
}

#[async_trait]
impl Source for Gated {
    async fn cookies(&self) -> Result<Vec<Cookie>> {
        if self.origin.is_empty() {
            self.gate.acquire().await.expect("it stays open").forget();
        }
        Ok(Vec::new())
    }

    async fn origins(&self) -> Result<Vec<String>> {
        Ok(vec![self.origin.clone()])
    }

    async fn kept(&self, origin: &str) -> Result<OriginStorage> {
        self.gate.acquire().await.expect("it stays open").forget();
        let local_storage = vec![StorageItem { name: "token".into(), value: "here".into() }];
        Ok(OriginStorage { origin: origin.into(), local_storage, ..OriginStorage::default() })
    }
}

/// The same cookies to the last attribute, and the server sees them with the first request.
#[tokio::test]
async fn cookies_are_copied_to_the_last_attribute() {
    let browser = support::chromium().await;
    let other = site(&Asked::default()).await;
    let here = other.replace("127.0.0.1", "localhost");
    let one = open(&browser, None).await;
    let page = page_at(&one, &format!("{here}/login")).await;
    go(&page, &format!("{other}/frame?to={here}/login")).await;
    let sorted = |mut cookies: Vec<Cookie>| {
        cookies.sort_by_key(|cookie| format!("{} {} {:?}", cookie.name, cookie.domain, cookie.partition_key));
        cookies
    };
    let before = sorted(soon(one.cookies()).await.expect("cookies are listed"));
    let partitions = before.iter().filter_map(|cookie| Some((cookie.partition_key.clone()?, cookie.cross_site_ancestor?)));
    assert_eq!(partitions.collect::<Vec<_>>(), [("http://127.0.0.1".to_owned(), true), ("http://localhost".to_owned(), false)]);
    assert!(before.iter().any(|cookie| cookie.priority.as_deref() == Some("High")));

    let twin = open(&browser, one.source().map(Beginning::from)).await;
    assert_eq!(sorted(soon(twin.cookies()).await.expect("cookies are listed")), before);
    let seen = page_at(&twin, &format!("{here}/seen")).await;
    let title = run(&seen, "document.title").await;
    for name in ["__Host-sid=1", "__Host-chips=2", "__Secure-dev=3", "theme=\"dark blue\"", "plain=4"] {
        assert!(title.as_str().is_some_and(|title| title.contains(name)), "{name} in {title}");
    }
    assert_eq!(sorted(soon(one.cookies()).await.expect("cookies are listed")), before, "the source is as it was");
}

/// Chromium says yes to a cookie that it drops, and to more of one site than it keeps.
#[tokio::test]
async fn cookies_that_the_browser_drops_are_named() {
    let browser = support::chromium().await;
    let cookie = |name: String, same_site| Cookie {
        name,
        value: "1".into(),
        domain: "a.test".into(),
        path: "/".into(),
        same_site,
        ..Cookie::default()
    };
    let dropped = cookie("dropped".into(), Some(SameSite::None));
    let mut cookies: Vec<_> = (0..300).map(|number| cookie(format!("c{number}"), None)).collect();
    cookies.push(dropped.clone());
    let twin = open(&browser, Some(Beginning::with(StorageState { cookies, origins: Vec::new() }))).await;
    let (copied, there) = (copied(&twin).await, twin.cookies().await.expect("it tells").len());
    assert_eq!((copied.cookies, copied.lost), (there, 301 - there));
    assert!(there < 300, "a site may have so many: {there}");
    assert_eq!(twin.set_cookies(&[dropped]).await, Ok(vec![0]), "it is not there");
}

/// Neither a state that is saved nor one that is handed on can hold half a character.
#[tokio::test]
async fn half_a_character_in_storage_is_copied_as_one_that_stands_for_it_and_named() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let one = open(&browser, None).await;
    let page = page_at(&one, &site).await;
    run(&page, "localStorage.whole = 'day \u{1f600}'; localStorage.half = 'day \u{1f600}'.slice(0, 5); 0").await;
    let twin = open(&browser, one.source().map(Beginning::from)).await;
    let copied = copied(&twin).await;
    let lost = format!("{site}: localStorage \"half\": half a character in it became U+FFFD");
    assert_eq!((copied.origins, copied.losses), (1, vec![lost]));
    let copy = page_at(&twin, &site).await;
    let items = soon(copy.storage(StorageArea::Local)).await.expect("it has storage");
    let item = |name: &str, value: &str| StorageItem { name: name.into(), value: value.into() };
    assert_eq!(items, [item("half", "day \u{fffd}"), item("whole", "day \u{1f600}")]);
}

/// A page that does not answer has not nothing: it is said.
#[tokio::test]
async fn what_a_busy_page_keeps_for_itself_is_not_taken_for_nothing() {
    let browser = support::chromium().await;
    let page = page_at(&open(&browser, None).await, &site(&Asked::default()).await).await;
    run(&page, "sessionStorage.step = 'one'").await;
    assert_eq!(page.seed().await.expect("it answers").session_storage.len(), 1);
    run(&page, "setTimeout(() => { for (;;); }, 0), 1").await;
    assert!(page.seed().await.is_err());
}

/// Everything in the databases, but for a counter that asking moves on.
async fn tell(page: &Arc<dyn Page>) -> Value {
    let mut told = run(page, TELL).await;
    assert!(told.as_object_mut().and_then(|told| told.remove("number")).is_some());
    told
}

/// Read in the page that is open, and where none is, in a tab that nobody sees.
#[tokio::test]
async fn databases_and_storage_are_copied_from_pages_and_from_closed_ones() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let site = support::site(|_| "hello".into()).await;
        let one = open(&browser, None).await;
        let page = page_at(&one, &site).await;
        run(&page, KEEP).await;
        soon(page.set_storage(StorageArea::Local, &[("length".into(), Some("odd name".into()))])).await.expect("it is kept");
        let told = tell(&page).await;
        for url in [site.clone(), "about:blank".to_owned()] {
            go(&page, &url).await;
            let twin = open(&browser, one.source().map(Beginning::from)).await;
            let copy = page_at(&twin, &site).await;
            assert_eq!(tell(&copy).await, told, "{want:?} {url}");
            let items = soon(copy.storage(StorageArea::Local)).await.expect("it has storage");
            assert_eq!(items, [StorageItem { name: "length".into(), value: "odd name".into() }]);
            let copied = copied(&twin).await;
            assert_eq!((copied.origins, copied.losses), (1, vec![format!("{site}: kept/loose: CryptoKey")]));
            assert_eq!(soon(one.open_page()).await.map(|page| page.url()), Ok("about:blank".into()));
        }
        go(&page, &site).await;
        assert_eq!(tell(&page).await, told, "the source is as it was");
    }
}

/// What a frame of another site keeps in a page, it keeps there and nowhere else: read in the frame that is shown, and where none is,
/// in a tab that nobody sees. A frame whose origin also has pages keeps two things.
#[tokio::test]
async fn what_frames_of_other_sites_keep_is_copied_for_the_page_they_are_in() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let told =
            support::site(|_| "<script>onmessage = async ({ data, source }) => source.postMessage(await eval(data), '*')</script>".into())
                .await;
        let frame = told.replace("127.0.0.1", "localhost");
        let inner = frame.clone();
        let top = support::site(move |_| {
            let ask = "const ask = (what) => new Promise((done) => { onmessage = ({ data }) => done(data); there.contentWindow.postMessage(what, '*'); });";
            format!("<script>{ask}</script><iframe id=there src=\"{inner}\"></iframe>")
        })
        .await;
        let one = open(&browser, None).await;
        let page = page_at(&one, &frame).await;
        run(&page, "localStorage.token = 'of its own page'").await;
        go(&page, &top).await;
        let keep = KEEP.replace('`', "\\`").replace("${", "\\${");
        run(&page, &format!("ask(`localStorage.token = 'in the frame'; {keep}`)")).await;
        let databases = "ask(`indexedDB.databases().then((all) => all.map(({ name }) => name))`)";
        let kept = run(&page, databases).await;
        assert_ne!(kept, json!([]));
        soon(one.footprint().wait_for(|known| known.frames == [(top.clone(), frame.clone())])).await.expect("it lives");
        for url in [top.clone(), "about:blank".to_owned()] {
            go(&page, &url).await;
            let twin = open(&browser, one.source().map(Beginning::from)).await;
            let copy = page_at(&twin, &top).await;
            assert_eq!(run(&copy, "ask('localStorage.token')").await, json!("in the frame"), "{want:?} {url}");
            assert_eq!(run(&copy, databases).await, kept, "{want:?} {url}");
            go(&copy, &frame).await;
            assert_eq!(run(&copy, "localStorage.token").await, json!("of its own page"), "{want:?} {url}");
            let losses = copied(&twin).await.losses;
            assert_eq!(losses, [format!("{top}: in a frame of {frame}: kept/loose: CryptoKey")], "{want:?} {url}");
            // And so does a copy of the copy.
            let again = open(&browser, twin.source().map(Beginning::from)).await;
            let copy = page_at(&again, &top).await;
            assert_eq!(run(&copy, "ask('localStorage.token')").await, json!("in the frame"), "{want:?} {url}");
        }
    }
}

/// The very first thing in a browser: full Chromium makes no tab that nobody sees before it has made a page.
#[tokio::test]
async fn the_first_session_of_a_browser_can_be_a_copy() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let site = site(&Asked::default()).await;
        let gate = Arc::new(Semaphore::new(1));
        let twin = open(&browser, Some(Beginning::with(Gated { origin: site.clone(), gate }))).await;
        let page = page_at(&twin, &site).await;
        assert_eq!(run(&page, "localStorage.token").await, json!("here"), "{want:?}");
        assert_eq!((copied(&twin).await.origins, copied(&twin).await.losses), (1, Vec::new()), "{want:?}");
    }
}

/// The first document of an origin waits for what the origin keeps: asked for directly, by a redirect, in a frame.
#[tokio::test]
async fn a_document_waits_for_what_its_origin_keeps() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        for way in ["", "/redirect?to=", "/frame?to="] {
            let asked = Asked::default();
            let (elsewhere, pending) = (site(&Asked::default()).await, site(&asked).await);
            let gate = Arc::new(Semaphore::new(0));
            let twin = open(&browser, Some(Beginning::with(Gated { origin: pending.clone(), gate: Arc::clone(&gate) }))).await;
            let page = soon(twin.open_page()).await.expect("a page opens");
            let (there, going) = (format!("{pending}/seen"), Arc::clone(&page));
            let url = if way.is_empty() { there.clone() } else { format!("{elsewhere}{way}{there}") };
            let going = tokio::spawn(async move { going.navigate(Navigation::To(&url)).await });
            let connection = browser.connection();
            soon(async {
                while page.requests().0.iter().all(|request| request.url != there) {
                    // Each question gives it time.
                    connection.call(None, &GetTargets::default()).await.expect("it lives");
                }
            })
            .await;
            assert!(asked.lock().unwrap().is_empty(), "{want:?} {way}: nobody was asked yet");
            gate.add_permits(1);
            soon(going).await.expect("no panic").expect("the page goes there");
            let asked = asked.lock().unwrap().clone();
            assert_eq!(asked, ["/seen", "/found/here"], "{want:?} {way}");
            assert_eq!(copied(&twin).await.origins, 1);
        }
    }
}

/// The first document of a page that a page opens may be asked for before anybody can hold it. Then it is there twice, the second
/// time with everything; held, it is there once.
#[tokio::test]
async fn a_page_that_a_page_opens_too_early_finds_everything_in_the_end() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let asked = Asked::default();
        let (elsewhere, pending) = (site(&Asked::default()).await, site(&asked).await);
        let gate = Arc::new(Semaphore::new(0));
        let twin = open(&browser, Some(Beginning::with(Gated { origin: pending.clone(), gate: Arc::clone(&gate) }))).await;
        let mut popups = twin.popups();
        let page = page_at(&twin, &elsewhere).await;
        run(&page, &format!("open(\"{pending}/seen\"); 1")).await;
        // One whose document is held is not announced before that is let go.
        soon(async { while !targets(&browser).await.iter().any(|target| target.opener_id.is_some()) {} }).await;
        gate.add_permits(1);
        let opened = soon(popups.recv()).await.expect("a page opens").page;
        soon(async {
            while !asked.lock().unwrap().iter().any(|path| path == "/found/here") {
                browser.connection().call(None, &GetTargets::default()).await.expect("it lives");
            }
        })
        .await;
        assert_eq!((copied(&twin).await.origins, copied(&twin).await.lost), (1, 0), "{want:?}");
        drop((page, opened));
    }
}

/// A copy whose daemon died before everything had arrived is filled on by the next one, and what cannot be brought any more is said.
#[tokio::test]
async fn a_copy_that_is_found_again_is_filled_on() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let pending = site(&Asked::default()).await;
        let gated = |permits| Beginning::with(Gated { origin: pending.clone(), gate: Arc::new(Semaphore::new(permits)) });
        let twin = open(&browser, Some(gated(0))).await;
        let (handle, footprint) = (twin.handle().clone(), twin.footprint().borrow().clone());
        assert_eq!(footprint.pending, std::slice::from_ref(&pending));
        drop(twin);

        let found = |source| {
            let spec = ContextSpec { footprint: footprint.clone(), source, ..ContextSpec::default() };
            let (browser, handle) = (&browser, &handle);
            async move { soon(browser.adopt_context(handle, &spec, &[])).await.expect("it lives").context }
        };
        let lost = copied(&found(None).await).await;
        assert_eq!(lost.losses, [format!("{pending}: the daemon ended before it was copied")]);
        let twin = found(Some(gated(9))).await;
        let page = page_at(&twin, &format!("{pending}/seen")).await;
        assert_eq!(run(&page, "localStorage.token").await, json!("here"), "{want:?}");
        assert_eq!(copied(&twin).await, Copied { origins: 1, ..Copied::default() }, "{want:?}");
    }
}

/// A site that does not answer any more holds nobody up, nor does one that never ends. The page can be used, and what it is short of
/// is said.
#[tokio::test]
async fn a_page_whose_site_is_silent_is_opened_all_the_same() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let (elsewhere, context) = (site(&Asked::default()).await, open(&browser, None).await);
        // It takes connections, and nobody reads them.
        let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("loopback is there");
        let silent = format!("http://{}/", silent.local_addr().expect("it has an address"));
        let image = format!("<img src=\"{silent}\">");
        let endless = support::site(move |_| image.clone()).await;
        let seed = |url: &str| PageSeed { url: url.to_owned(), ..PageSeed::default() };
        let (silent, endless) = (seed(&silent), seed(&endless));
        let (unanswered, loading) = soon(futures::future::join(context.open_seeded(&silent), context.open_seeded(&endless))).await;
        let (unanswered, loading) = (unanswered.expect("a page opens"), loading.expect("a page opens"));
        assert_eq!((unanswered.arrival, loading.arrival), (Arrival::Unanswered, Arrival::Loading), "{want:?}");
        assert_eq!(run(&loading.page, "location.origin").await, json!(endless.url));
        assert_eq!(run(&unanswered.page, "location.href").await, json!("about:blank"));
        go(&unanswered.page, &elsewhere).await;
    }
}

/// A source that ends in the middle: what was read is there, the rest is said, and the copy is usable.
#[tokio::test]
async fn what_a_source_takes_along_is_said() {
    let browser = support::chromium().await;
    let (first, second) = (site(&Asked::default()).await, site(&Asked::default()).await);
    let (one, _page) = keeping(&browser, &[&first, &second]).await;
    let live = one.source().expect("it can be copied");
    let ending = Ending { live, context: Arc::clone(&one), closes_at: first.clone(), others_read: Semaphore::new(0) };
    let twin = open(&browser, Some(Beginning::with(ending))).await;
    let told = copied(&twin).await;
    assert_eq!((told.origins, told.lost), (1, 1), "{told:?}");
    assert!(told.losses[0].starts_with(&first) && told.losses[0].contains("closed"), "{told:?}");
    let copy = page_at(&twin, &second).await;
    assert_eq!(run(&copy, "localStorage.token").await, json!("kept"));
    go(&copy, &first).await;
    assert_eq!(run(&copy, "localStorage.token ?? null").await, json!(null));
}

/// Closes its context when it is asked for this origin, after all others.
#[derive(Debug)]
struct Ending {
    live: Arc<dyn Source>,
    context: Arc<dyn Context>,
    closes_at: String,
    others_read: Semaphore,
}

#[async_trait]
impl Source for Ending {
    async fn cookies(&self) -> Result<Vec<Cookie>> {
        self.live.cookies().await
    }

    async fn origins(&self) -> Result<Vec<String>> {
        self.live.origins().await
    }

    async fn kept(&self, origin: &str) -> Result<OriginStorage> {
        if origin != self.closes_at {
            let kept = self.live.kept(origin).await;
            self.others_read.add_permits(1);
            return kept;
        }
        self.others_read.acquire().await.expect("it stays open").forget();
        self.context.close().await?;
        self.live.kept(origin).await
    }
}

/// Nothing of the copying is ever a page, takes the focus, touches what is not ours, or stays.
#[tokio::test]
async fn hidden_tabs_are_nobodys_pages_and_leave_nothing_behind() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let site = site(&Asked::default()).await;
        let foreign = page_at(&open(&browser, None).await, &site).await;
        let (one, page) = keeping(&browser, &[&site]).await;
        go(&page, "about:blank").await;
        let before = targets(&browser).await.len();

        let tap = browser.connection().tap(10_000);
        let mut opened = one.popups();
        let twin = open(&browser, one.source().map(Beginning::from)).await;
        let mut opened_too = twin.popups();
        assert_eq!(copied(&twin).await.origins, 1);
        let sent = tap.sent();
        assert_eq!(tap.dropped(), 0);
        let made = |sent: &tabmux_cdp::Sent| sent.method == "Target.createTarget" && !sent.frame.contains("\"hidden\":true");
        assert!(!sent.iter().any(made), "{want:?}: every tab was hidden");
        for banned in ["Page.bringToFront", "Target.activateTarget"] {
            assert!(sent.iter().all(|sent| sent.method != banned), "{want:?}: {banned}");
        }
        let theirs = foreign.handle().0.as_str();
        assert!(sent.iter().all(|sent| !sent.frame.contains(theirs)), "{want:?}: somebody else's page was named");
        assert!(opened.try_recv().is_err() && opened_too.try_recv().is_err(), "{want:?}: no page came of it");

        // With the copying.
        soon(async { while targets(&browser).await.len() != before {} }).await;
        soon(twin.close()).await.expect("it closes");
        soon(one.close()).await.expect("it closes");
        assert!(targets(&browser).await.iter().all(|info| !info.url.contains("tabmux")), "{want:?}");
    }
}

/// Closed while it is being filled, and left over by a daemon that was killed: both go.
#[tokio::test]
async fn a_copy_that_is_closed_in_the_middle_takes_its_tabs_along() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let (first, second) = (site(&Asked::default()).await, site(&Asked::default()).await);
        let (one, _page) = keeping(&browser, &[&first, &second]).await;
        for _ in 0..5 {
            let twin = open(&browser, one.source().map(Beginning::from)).await;
            soon(twin.close()).await.expect("it closes");
        }
        let former = CreateTarget { url: "about:blank#tabmux-hidden".into(), hidden: Some(true), ..CreateTarget::default() };
        browser.connection().call(None, &former).await.expect("as a former daemon left it");
        assert_eq!(soon(browser.keep_only(&[one.handle().clone()])).await, Ok(1));
        soon(async { while targets(&browser).await.iter().any(|info| info.url.contains("tabmux")) {} }).await;
        assert_eq!(
            targets(&browser)
                .await
                .iter()
                .filter(|info| info.kind == "page" && info.browser_context_id.as_ref() == Some(&one.handle().0))
                .count(),
            1
        );
    }
}

#[tokio::test]
async fn an_opening_that_is_given_up_leaves_no_context() {
    let browser = support::chromium().await;
    let gate = Arc::new(Semaphore::new(0));
    let spec =
        ContextSpec { source: Some(Beginning::with(Gated { origin: String::new(), gate: Arc::clone(&gate) })), ..ContextSpec::default() };
    let contexts = async || browser.connection().call(None, &GetBrowserContexts::default()).await.expect("it lives").browser_context_ids;
    let made = async { while contexts().await.is_empty() {} };
    tokio::select! {
        opened = browser.open_context(&spec) => panic!("its source gave nothing: {opened:?}"),
        () = soon(made) => {}
    }
    soon(async { while !contexts().await.is_empty() {} }).await;
}
