//! Each context its own world on real Chromium: two with opposite settings side by side, and neither learns of the other.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::find::Want;
use tabmux_cdp::protocol::input::DispatchKeyEvent;
use tabmux_driver::{
    Browser, Chooser, Context, ContextSpec, Credentials, Download, DownloadState, DriverError, Emulation, Geolocation, Isolation,
    Navigation, Page, PageEvent, Permission, Proxy, Selector,
};

use crate::display::Display;
use crate::support;

pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work).await.expect("a browser answers in time")
}

async fn context(browser: &CdpBrowser, spec: ContextSpec) -> Arc<dyn Context> {
    soon(browser.open_context(&spec)).await.expect("a context opens")
}

pub(crate) async fn page_at(context: &Arc<dyn Context>, url: &str) -> Arc<dyn Page> {
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(url))).await.expect("it goes there");
    page
}

pub(crate) async fn run(page: &Arc<dyn Page>, script: &str) -> Value {
    soon(page.evaluate(script)).await.unwrap_or_else(|error| panic!("{script}: {error}"))
}

fn login(username: &str, password: &str) -> Option<Credentials> {
    Some(Credentials { username: username.into(), password: password.into(), origin: None })
}

const PLACE: &str = "new Promise((done) => navigator.geolocation.getCurrentPosition((at) => done([at.coords.latitude, at.coords.longitude]), \
                     (error) => done(error.message)))";

const ASKED: &str = "navigator.permissions.query({ name: 'notifications' }).then((status) => status.state)";

#[tokio::test]
async fn two_contexts_side_by_side_see_opposite_places_languages_and_permissions() {
    let browser = support::chromium().await;
    let site = support::serve(|request| {
        let language = request.lines().find_map(|line| line.strip_prefix("Accept-Language: ")).unwrap_or_default();
        support::page(&format!("<body data-language='{language}'>"))
    })
    .await;
    let (one, other) = (context(&browser, ContextSpec::default()).await, context(&browser, ContextSpec::default()).await);
    let place = |latitude, longitude| Some(Geolocation { latitude, longitude, accuracy: 1.0 });
    let tokyo = Emulation {
        viewport: Some((400, 800)),
        device_scale_factor: Some(2.0),
        mobile: Some(true),
        user_agent: Some("Tokyo/1".into()),
        locale: Some("ja-JP".into()),
        timezone: Some("Asia/Tokyo".into()),
        color_scheme: Some("dark".into()),
        reduced_motion: Some("reduce".into()),
        geolocation: place(35.0, 139.0),
        permissions: [("notifications".to_owned(), Permission::Grant)].into(),
        ..Emulation::default()
    };
    let york = Emulation {
        viewport: Some((900, 500)),
        user_agent: Some("York/1".into()),
        locale: Some("de-DE".into()),
        timezone: Some("America/New_York".into()),
        color_scheme: Some("light".into()),
        geolocation: place(40.0, -74.0),
        permissions: [("notifications".to_owned(), Permission::Deny)].into(),
        ..Emulation::default()
    };
    // One page was there before, one comes after, one is a popup: all see the same.
    let mut popups = one.popups();
    let first = page_at(&one, &site).await;
    soon(one.emulate(&tokyo)).await.expect("it is taken");
    soon(other.emulate(&york)).await.expect("it is taken");
    soon(first.navigate(Navigation::Reload)).await.expect("it reloads");
    let second = page_at(&one, &site).await;
    drop(soon(first.evaluate("window.open('/popup'); 1")).await);
    let popup = soon(popups.recv()).await.expect("it joins").page;
    soon(popup.navigate(Navigation::To(&site))).await.expect("it goes");
    let foreign = page_at(&other, &site).await;
    let script = "[innerWidth, innerHeight, devicePixelRatio, navigator.maxTouchPoints, navigator.userAgent, navigator.language, \
                  document.body.dataset.language, (1234.5).toLocaleString(), Intl.DateTimeFormat().resolvedOptions().timeZone, \
                  matchMedia('(prefers-color-scheme: dark)').matches, matchMedia('(prefers-reduced-motion: reduce)').matches]";
    let seen = json!([400, 800, 2, 5, "Tokyo/1", "ja-JP", "ja-JP", "1,234.5", "Asia/Tokyo", true, true]);
    for page in [&first, &second, &popup] {
        let mut here = run(page, script).await;
        // A mobile viewport without a meta tag is laid out 980 wide.
        here[0] = run(page, "screen.width").await;
        here[1] = run(page, "screen.height").await;
        assert_eq!(here, seen);
        assert_eq!(run(page, PLACE).await, json!([35, 139]));
        assert_eq!(run(page, ASKED).await, json!("granted"));
    }
    let there = run(&foreign, script).await;
    assert_eq!(there, json!([900, 500, 1, 0, "York/1", "de-DE", "de-DE", "1.234,5", "America/New_York", false, false]));
    assert_eq!(run(&foreign, PLACE).await, json!([40, -74]));
    assert_eq!(run(&foreign, ASKED).await, json!("denied"));
    // The page that had the time zone of its process first goes; the others keep it.
    soon(first.close()).await.expect("it closes");
    soon(async { while run(&second, "Intl.DateTimeFormat().resolvedOptions().timeZone").await != json!("Asia/Tokyo") {} }).await;
    soon(one.emulate(&Emulation::default())).await.expect("it is taken back");
    assert_eq!(run(&second, ASKED).await, json!("prompt"));
    assert_ne!(
        run(&second, "[navigator.userAgent, Intl.DateTimeFormat().resolvedOptions().timeZone]").await,
        json!(["Tokyo/1", "Asia/Tokyo"])
    );
    assert_eq!(run(&foreign, ASKED).await, json!("denied"));
}

/// Nobody has a window or a viewport that is larger than the screen, and pages ask.
#[tokio::test]
async fn windows_and_viewports_fit_on_the_screen() {
    const SCREEN: &str = "[screen.width, screen.height, screen.width >= Math.max(outerWidth, innerWidth) && screen.height >= Math.max(outerHeight, innerHeight)]";
    for want in [Want::Plain, Want::Full] {
        for (theirs, screen) in [(None, json!([1280, 720, true])), (Some("--window-size=1600,900"), json!([1600, 900, true]))] {
            let browser = support::chromium_with(want, |launch| {
                launch.window = Some((1280, 720));
                launch.args.extend(theirs.map(str::to_owned));
            })
            .await;
            let context = context(&browser, ContextSpec::default()).await;
            let page = page_at(&context, &support::site(|_| "hello".into()).await).await;
            assert_eq!(run(&page, SCREEN).await, screen, "{want:?}, {theirs:?}");
            for (viewport, screen) in [((2000, 1500), json!([2000, 1500, true])), ((390, 844), json!([1920, 1080, true]))] {
                soon(context.emulate(&Emulation { viewport: Some(viewport), ..Emulation::default() })).await.expect("it is taken");
                assert_eq!(run(&page, SCREEN).await, screen, "{want:?}, {theirs:?}, {viewport:?}");
            }
            let mobile = Emulation { viewport: Some((390, 844)), mobile: Some(true), ..Emulation::default() };
            soon(context.emulate(&mobile)).await.expect("it is taken");
            assert_eq!(run(&page, "[screen.width, screen.height]").await, json!([390, 844]), "{want:?}, {theirs:?}");
        }
    }
}

#[tokio::test]
async fn what_the_browser_does_not_take_is_named_and_nothing_changes() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let one = context(&browser, ContextSpec::default()).await;
    let page = page_at(&one, &site).await;
    let wrong = [
        Emulation { timezone: Some("Mars/Olympus".into()), ..Emulation::default() },
        Emulation { locale: Some("no such language".into()), ..Emulation::default() },
        Emulation { permissions: [("fly".to_owned(), Permission::Grant)].into(), ..Emulation::default() },
    ];
    for wanted in wrong {
        let refused = soon(one.emulate(&Emulation { user_agent: Some("Half/1".into()), ..wanted.clone() })).await;
        assert!(matches!(refused, Err(DriverError::EmulationRefused(_))), "{wanted:?}: {refused:?}");
        assert_eq!(one.emulation(), Emulation::default());
        assert_ne!(run(&page, "navigator.userAgent").await, json!("Half/1"));
    }
    let tabs = context(&browser, ContextSpec { isolation: Isolation::Tab, ..ContextSpec::default() }).await;
    let shared =
        soon(tabs.emulate(&Emulation { permissions: [("camera".to_owned(), Permission::Grant)].into(), ..Emulation::default() })).await;
    assert!(matches!(shared, Err(DriverError::Unsupported(_))), "{shared:?}");
}

/// A site that wants `ann:right` and counts how often it was asked.
async fn guarded_site() -> (String, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&asked);
    let site = support::serve(move |request| {
        // A browser asks for an icon when it likes.
        if request.contains("/open") || request.contains("/favicon.ico") {
            return support::page("open");
        }
        // A full browser asks for an icon by itself.
        if request.contains(" /page ") {
            counted.fetch_add(1, Ordering::SeqCst);
        }
        if request.contains("Authorization: Basic YW5uOnJpZ2h0") {
            return support::page("welcome");
        }
        support::response("401 Unauthorized\r\nContent-Type: text/html\r\nWWW-Authenticate: Basic realm=\"r\"", "who are you")
    })
    .await;
    (site, asked)
}

/// Right, wrong and no credentials side by side; also in a full browser, which would open a window of its own.
#[tokio::test]
async fn credentials_are_the_contexts_own_and_wrong_ones_do_not_loop() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let (site, asked) = guarded_site().await;
        let cases = [(login("ann", "right"), "welcome", 2), (login("ann", "wrong"), "who are you", 2), (None, "who are you", 1)];
        for (credentials, text, times) in cases {
            let one = context(&browser, ContextSpec::default()).await;
            let page = page_at(&one, &format!("{site}/open")).await;
            soon(one.emulate(&Emulation { credentials, ..Emulation::default() })).await.expect("it is taken");
            let before = asked.load(Ordering::SeqCst);
            soon(page.navigate(Navigation::To(&format!("{site}/page")))).await.expect("the server's page is the answer");
            assert_eq!(run(&page, "document.body.innerText").await, json!(text), "{want:?}");
            assert_eq!(asked.load(Ordering::SeqCst) - before, times, "{want:?} {text}");
            let status = if text == "welcome" { 200 } else { 401 };
            assert_eq!(run(&page, "fetch('/data').then((answer) => answer.status)").await, json!(status), "{want:?}");
        }
        let elsewhere = Credentials { origin: Some("https://elsewhere.test".into()), ..login("ann", "right").expect("some") };
        let one = context(&browser, ContextSpec::default()).await;
        soon(one.emulate(&Emulation { credentials: Some(elsewhere), ..Emulation::default() })).await.expect("it is taken");
        let page = page_at(&one, &site).await;
        assert_eq!(run(&page, "document.body.innerText").await, json!("who are you"), "meant for another origin");
    }
}

/// Nothing of a page's requests passes through here while there are no credentials.
#[tokio::test]
async fn without_credentials_no_request_is_looked_at() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let tap = browser.connection().tap(1000);
    let one = context(&browser, ContextSpec::default()).await;
    let page = page_at(&one, &site).await;
    soon(one.emulate(&Emulation { credentials: login("a", "b"), ..Emulation::default() })).await.expect("it is taken");
    soon(one.emulate(&Emulation::default())).await.expect("it is taken back");
    soon(page.navigate(Navigation::Reload)).await.expect("it reloads");
    let fetched: Vec<_> = tap.sent().into_iter().map(|sent| sent.method).filter(|method| method.starts_with("Fetch.")).collect();
    assert_eq!(fetched, ["Fetch.enable"; 2], "no request is paused, so none is told to go on");
}

/// Chromium forgets a request that it was about to pause when nobody may pause requests any more: then nobody lets it go.
#[tokio::test]
async fn a_page_that_goes_elsewhere_when_its_requests_need_not_wait_any_more_arrives() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let one = context(&browser, ContextSpec::default()).await;
    let page = page_at(&one, &site).await;
    let (with, without) = (Emulation { credentials: login("a", "b"), ..Emulation::default() }, Emulation::default());
    for round in 0..80 {
        soon(one.emulate(&with)).await.expect("it is taken");
        let url = format!("{site}/{round}");
        let take_back = async {
            // At every moment of its way.
            for _ in 0..150 * round {
                tokio::task::yield_now().await;
            }
            one.emulate(&without).await
        };
        let (arrived, taken_back) = soon(async { tokio::join!(page.navigate(Navigation::To(&url)), take_back) }).await;
        arrived.expect("it goes there");
        taken_back.expect("it is taken back");
    }
}

/// Each context has its own way to the network, and its own password for it.
#[tokio::test]
async fn a_proxy_is_the_contexts_own() {
    let browser = support::chromium().await;
    let proxy = support::serve(|request| {
        if request.contains("Proxy-Authorization: Basic YW5uOnJpZ2h0") {
            return support::page("through the proxy");
        }
        support::response("407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=\"p\"", "no way")
    })
    .await;
    let with =
        |bypass, credentials| ContextSpec { proxy: Some(Proxy { server: proxy.clone(), bypass, credentials }), ..ContextSpec::default() };
    let spec = |credentials| with(Some("bypassed.test".into()), credentials);
    let allowed = context(&browser, spec(login("ann", "right"))).await;
    let page = page_at(&allowed, "http://site.test/").await;
    assert_eq!(run(&page, "document.body.innerText").await, json!("through the proxy"));
    let around = soon(page.navigate(Navigation::To("http://bypassed.test/"))).await.expect_err("nobody is there");
    assert!(matches!(around, DriverError::NavigationFailed(_)), "{around:?}");
    let refused = soon(context(&browser, spec(login("ann", "wrong"))).await.open_page()).await.expect("a page opens");
    // The proxy's own page, or the browser's that says so; never the site, and never a question without end.
    drop(soon(refused.navigate(Navigation::To("http://site.test/"))).await);
    assert_ne!(soon(refused.evaluate("document.body?.innerText")).await.ok(), Some(json!("through the proxy")));
    // Where nothing was said of hosts that are reached without it, this machine is none.
    let all = context(&browser, with(None, login("ann", "right"))).await;
    for own in ["http://127.0.0.1:8999/", "http://localhost:8999/"] {
        assert_eq!(run(&page_at(&all, own).await, "document.body.innerText").await, json!("through the proxy"), "{own}");
    }
    let direct = soon(context(&browser, ContextSpec::default()).await.open_page()).await.expect("a page opens");
    assert!(soon(direct.navigate(Navigation::To("http://site.test/"))).await.is_err());
    let shared = ContextSpec { isolation: Isolation::Tab, ..spec(None) };
    assert!(matches!(soon(browser.open_context(&shared)).await.map(|_| ()), Err(DriverError::Unsupported(_))));
}

#[tokio::test]
async fn a_file_chooser_opens_no_window_and_takes_files() {
    let home = tempfile::tempdir().expect("a directory");
    let file = |name: &str| {
        let path = home.path().join(name);
        std::fs::write(&path, name).expect("it can be written");
        path
    };
    let files: [PathBuf; 2] = [file("a.txt"), file("b.txt")];
    let browser = support::chromium().await;
    let site = support::site(|_| "<input type=file id=one><input type=file id=many multiple><p id=text>text</p>".into()).await;
    let page = page_at(&context(&browser, ContextSpec::default()).await, &site).await;
    run(&page, "window.changed = []; onchange = (event) => changed.push(event.target.id); 1").await;
    let mut events = page.events();
    run(&page, "document.querySelector('#one').click()").await;
    assert_eq!(soon(events.recv()).await, Some(PageEvent::ChooserOpened(Chooser::One)));
    assert!(matches!(soon(page.upload(&files, None)).await, Err(DriverError::FilesRefused(_))), "it takes one");
    soon(page.upload(&files[..1], None)).await.expect("it takes a file");
    assert_eq!(run(&page, "document.querySelector('#one').files[0].text()").await, json!("a.txt"));
    assert_eq!(soon(page.upload(&files[..1], None)).await, Err(DriverError::NoChooser), "it was answered");
    run(&page, "document.querySelector('#many').click()").await;
    assert_eq!(soon(events.recv()).await, Some(PageEvent::ChooserOpened(Chooser::Many)));
    soon(page.navigate(Navigation::Reload)).await.expect("it reloads");
    assert_eq!(soon(page.upload(&files, None)).await, Err(DriverError::NoChooser), "it went with its document");
    soon(page.upload(&files, Some(&Selector::parse("#many").expect("a selector")))).await.expect("an input takes files");
    assert_eq!(run(&page, "[...document.querySelector('#many').files].map((file) => file.name)").await, json!(["a.txt", "b.txt"]));
    for (selector, files) in [("#text", &files[..1]), ("#one", &files[..])] {
        let refused = soon(page.upload(files, Some(&Selector::parse(selector).expect("a selector")))).await;
        assert!(matches!(refused, Err(DriverError::FilesRefused(_))), "{selector}: {refused:?}");
    }
}

/// Presses Ctrl and a letter as a keyboard would.
async fn press(browser: &CdpBrowser, page: &Arc<dyn Page>, letter: char) {
    let attach = tabmux_cdp::protocol::target::AttachToTarget { target_id: page.handle().0.clone(), flatten: Some(true) };
    let session = soon(browser.connection().call(None, &attach)).await.expect("it attaches").session_id;
    for kind in ["rawKeyDown", "keyUp"] {
        let key = DispatchKeyEvent {
            kind: kind.into(),
            modifiers: Some(2),
            key: Some(letter.to_string()),
            code: Some(format!("Key{}", letter.to_ascii_uppercase())),
            windows_virtual_key_code: Some(i64::from(u32::from(letter.to_ascii_uppercase()))),
            ..DispatchKeyEvent::default()
        };
        soon(browser.connection().call(Some(&session), &key)).await.expect("the key is pressed");
    }
}

/// In a full browser the clipboard is one for all contexts, and in a headed one the person's own.
#[tokio::test]
async fn what_is_copied_is_pasted_in_the_same_context_only() {
    for want in [Want::Plain, Want::Full] {
        let browser = support::chromium_for(want).await;
        let body = "<input id=from value='by hand'><input id=to><iframe id=frame></iframe>";
        let site = support::site(move |_| body.into()).await;
        // Another origin of the same server.
        let sister = site.replace("127.0.0.1", "localhost");
        let (one, other) = (context(&browser, ContextSpec::default()).await, context(&browser, ContextSpec::default()).await);
        let (writer, stranger, foreign) = (page_at(&one, &site).await, page_at(&one, &sister).await, page_at(&other, &site).await);
        const READ: &str = "navigator.clipboard.readText().catch((error) => error.name)";
        run(&writer, "navigator.clipboard.writeText('secret')").await;
        assert_eq!(run(&writer, READ).await, json!("secret"));
        assert_eq!(run(&stranger, READ).await, json!("NotAllowedError"), "another site needs permission");
        let granted = Emulation { permissions: [("clipboard-read".to_owned(), Permission::Grant)].into(), ..Emulation::default() };
        for context in [&one, &other] {
            soon(context.emulate(&granted)).await.expect("it is taken");
        }
        assert_eq!(run(&stranger, READ).await, json!("secret"));
        assert_eq!(run(&foreign, READ).await, json!(""), "{want:?}: another context has its own, even with permission");
        let fresh = "(() => { const frame = document.createElement('iframe'); document.body.append(frame); \
                     return frame.contentWindow.navigator.clipboard.readText().catch((error) => error.name); })()";
        assert_ne!(run(&foreign, fresh).await, json!("secret"), "nor by a frame of its own");
        // A site's own copy button, in both of the old ways.
        assert_eq!(run(&writer, "document.querySelector('#from').select(); document.execCommand('copy')").await, json!(true));
        assert_eq!(run(&writer, READ).await, json!("by hand"));
        let listening = "document.addEventListener('copy', (event) => { event.clipboardData.setData('text/plain', 'given'); \
                         event.preventDefault(); }, { once: true }); document.execCommand('copy')";
        assert_eq!(run(&writer, listening).await, json!(true));
        assert_eq!(
            run(&writer, "navigator.clipboard.read().then((items) => items[0].getType('text/plain')).then((blob) => blob.text())").await,
            json!("given")
        );
        // Keys.
        run(&writer, "document.querySelector('#from').focus(); document.querySelector('#from').select()").await;
        press(&browser, &writer, 'c').await;
        soon(async { while run(&writer, READ).await != json!("by hand") {} }).await;
        for (page, text) in [(&stranger, "by hand"), (&foreign, "")] {
            run(page, "document.querySelector('#to').focus(); window.pasted = null; addEventListener('paste', (event) => { pasted = event.clipboardData.getData('text/plain'); })").await;
            press(&browser, page, 'v').await;
            soon(async { while run(page, "pasted").await.is_null() {} }).await;
            assert_eq!(run(page, "[pasted, document.querySelector('#to').value]").await, json!([text, text]), "{want:?}");
        }
        assert_eq!(run(&foreign, "document.querySelector('#to').focus(); document.execCommand('paste')").await, json!(false));
        // Nothing of it is in the page's reach.
        let traces = "[Object.getOwnPropertyNames(window).filter((name) => /^c[0-9A-F]{32}/.test(name)).length, \
                      String(Clipboard.prototype.readText).includes('native code'), String(document.execCommand).includes('native code')]";
        assert_eq!(run(&writer, traces).await, json!([0, true, true]));
    }
}

fn whole(count: usize) -> impl Fn(&Vec<Download>) -> bool {
    move |list| list.len() == count && list.iter().all(|file| file.state == DownloadState::Completed)
}

/// Downloads of sessions that share a profile are told apart by the page they come from, whichever frame or popup asks.
#[tokio::test]
async fn downloads_of_a_shared_profile_go_to_the_owner_of_the_page() {
    let browser = support::chromium().await;
    let site = support::site(|_| "<iframe id=frame></iframe>".into()).await;
    let home = tempfile::tempdir().expect("a directory");
    let tabs = async |name: &str| {
        let directory = home.path().join(name);
        std::fs::create_dir(&directory).expect("it is new");
        context(&browser, ContextSpec { isolation: Isolation::Tab, downloads: Some(directory), ..ContextSpec::default() }).await
    };
    let (one, other) = (tabs("one").await, tabs("other").await);
    let (first, second) = (page_at(&one, &site).await, page_at(&other, &site).await);
    run(&first, "document.querySelector('#frame').src = '/download'; 1").await;
    soon(one.downloads().wait_for(whole(1))).await.expect("it is whole");
    run(&second, "location = '/download'; 1").await;
    soon(other.downloads().wait_for(whole(1))).await.expect("it is whole");
    for (context, name) in [(&one, "one"), (&other, "other")] {
        assert_eq!(context.downloads().borrow()[0].path, Some(home.path().join(name).join("a.bin")));
        assert!(home.path().join(name).join("a.bin").is_file());
    }
}

/// A name is only a suggestion; what a script makes up and what a popup downloads is found too.
#[tokio::test]
async fn whatever_way_a_page_downloads_the_file_gets_a_safe_name_in_the_contexts_directory() {
    let browser = support::chromium().await;
    let site = support::serve(|request| {
        if request.contains("/evil") {
            return support::response("200 OK\r\nContent-Disposition: attachment; filename=\"../../.bashrc\"", "evil");
        }
        support::page("hello")
    })
    .await;
    let home = tempfile::tempdir().expect("a directory");
    let one = context(&browser, ContextSpec { downloads: Some(home.path().to_owned()), ..ContextSpec::default() }).await;
    let page = page_at(&one, &site).await;
    let made = "(() => { const link = document.createElement('a'); link.href = URL.createObjectURL(new Blob(['made'])); \
                link.download = 'made.txt'; link.click(); })()";
    run(&page, made).await;
    soon(one.downloads().wait_for(whole(1))).await.expect("it is whole");
    run(&page, "window.open('/evil'); 1").await;
    soon(one.downloads().wait_for(whole(2))).await.expect("it is whole");
    let list = one.downloads().borrow().clone();
    let names: Vec<_> = list.iter().map(|file| (file.name.as_str(), file.bytes)).collect();
    assert_eq!(names[0], ("made.txt", 4));
    assert!(names[1].1 == 4 && !names[1].0.starts_with('.') && !names[1].0.contains('/'), "{names:?}");
    for file in &list {
        assert_eq!(file.path.as_ref().and_then(|path| path.parent()), Some(home.path()));
    }
}

/// A print dialog waits for a person, and nothing is told of it: neither that it is there nor how to answer it.
#[tokio::test]
async fn a_page_that_prints_waits_for_nobody_in_a_visible_browser_either() {
    let display = Display::new();
    for browser in [support::full_chromium(Some(&display)).await, support::chromium().await] {
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let page = page_at(
            &context,
            &support::site(|_| "<script>const seen = []; onbeforeprint = onafterprint = ({ type }) => seen.push(type)</script>".into())
                .await,
        )
        .await;
        for script in ["print(), seen.splice(0)", "document.execCommand('print'), seen.splice(0)"] {
            assert_eq!(run(&page, script).await, json!(["beforeprint", "afterprint"]), "{script}");
        }
        assert_eq!(run(&page, "String(print)").await, json!("function () { [native code] }"));
    }
}
