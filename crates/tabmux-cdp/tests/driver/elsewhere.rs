//! Frames in other processes, and workers: what is the page's own is theirs too. Only full Chromium has such frames.

use std::sync::Arc;

use serde_json::{Value, json};
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::find::Want;
use tabmux_driver::{
    Action, Awaited, Browser, Chooser, Chord, Context, ContextSpec, DriverError, Emulation, Navigation, Page, PageEvent, PageRecord,
    Permission, Throttle, Verb,
};

use crate::act::{click, named};
use crate::support;
use crate::worlds::{page_at, run, soon};

/// What its first script saw, and does what it is told; `chooser` opens one.
const FRAME: &str =
    "<input id=from value='of the frame'><input id=to><input type=file id=file><button id=choose onclick='file.click()'>Choose</button>
<script>
const seen = () => [navigator.userAgent, navigator.language, Intl.DateTimeFormat().resolvedOptions().timeZone, navigator.maxTouchPoints,
  matchMedia('(prefers-color-scheme: dark)').matches, navigator.onLine];
const first = seen();
onmessage = async ({ data }) => {
  let answer;
  try { answer = await eval(data); } catch (error) { answer = String(error); }
  parent.postMessage(answer ?? null, '*');
};
</script>";

struct Stage {
    browser: Arc<CdpBrowser>,
    context: Arc<dyn Context>,
    page: Arc<dyn Page>,
    site: String,
}

fn host(request: &str) -> &str {
    request.lines().find_map(|line| line.strip_prefix("Host: ")).unwrap_or_default()
}

/// One site, which is another one under another name.
async fn site() -> String {
    support::serve(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path.split('?').next().unwrap_or_default() {
            "/frame" => support::page(FRAME),
            "/nothing" => support::response("204 No Content", ""),
            // One of the page's own site in one that is not.
            "/within" => {
                support::page(&format!("<iframe src='http://{}/frame'></iframe>", host(request).replace("localhost", "127.0.0.1")))
            }
            "/worker.js" => support::response("200 OK\r\nContent-Type: text/javascript", WORKER),
            _ => {
                let other = host(request).replace("127.0.0.1", "localhost");
                support::page(&format!("<input id=own><iframe id=frame width=600 height=300 src='http://{other}/frame'></iframe>"))
            }
        }
    })
    .await
}

const WORKER: &str =
    "onmessage = () => fetch('/data').then((answer) => postMessage(answer.status), (error) => postMessage(String(error)));";

/// What the frame says to this.
async fn ask(page: &Arc<dyn Page>, script: &str) -> Value {
    run(
        page,
        &format!(
            "new Promise((done) => {{ onmessage = ({{ data }}) => done(data); frame.contentWindow.postMessage({}, '*'); }})",
            json!(script)
        ),
    )
    .await
}

/// Where this is, or where the last key was pressed.
async fn press(page: &Arc<dyn Page>, selector: Option<&str>, key: &str) {
    let verb = Verb::Press { selector: selector.map(named), chord: Chord::parse(key).expect("a key") };
    soon(page.act(&Action { verb, patience: std::time::Duration::from_secs(20) })).await.unwrap_or_else(|error| panic!("{key}: {error}"));
}

impl Stage {
    async fn new() -> Self {
        Self::of(support::chromium_for(Want::Full).await).await
    }

    async fn of(browser: Arc<CdpBrowser>) -> Self {
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let site = site().await;
        let page = page_at(&context, &site).await;
        Self { browser, context, page, site }
    }

    async fn emulate(&self, wanted: &Emulation) {
        soon(self.context.emulate(wanted)).await.expect("it is taken");
    }
}

/// The worst that could be: one session pastes what another one copied.
#[tokio::test]
async fn what_is_copied_in_a_frame_of_another_process_is_the_contexts_own() {
    let stage = Stage::new().await;
    let other = soon(stage.browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let foreign = page_at(&other, &stage.site).await;
    let page = &stage.page;
    press(page, Some("#from"), "Control+A").await;
    press(page, None, "Control+C").await;
    press(page, Some("#own"), "Control+V").await;
    soon(async { while run(page, "own.value").await == json!("") {} }).await;
    assert_eq!(run(page, "own.value").await, json!("of the frame"));
    for selector in ["#own", "#to"] {
        press(&foreign, Some(selector), "Control+V").await;
    }
    // Its own way is the same, so what came last is there when this is.
    run(&foreign, "own.value = 'foreign'; own.select(); document.execCommand('copy'); own.value = ''").await;
    press(&foreign, Some("#to"), "Control+V").await;
    soon(async { while ask(&foreign, "to.value").await == json!("") {} }).await;
    assert_eq!(ask(&foreign, "to.value").await, json!("foreign"), "nothing else came before");
    press(page, Some("#to"), "Control+V").await;
    soon(async { while ask(page, "to.value").await == json!("") {} }).await;
    assert_eq!(ask(page, "to.value").await, json!("of the frame"));
    // By scripts, with all permissions.
    let granted = Emulation { permissions: [("clipboard-read".to_owned(), Permission::Grant)].into(), ..Emulation::default() };
    stage.emulate(&granted).await;
    soon(other.emulate(&granted)).await.expect("it is taken");
    for (page, text) in [(page, "of the frame"), (&foreign, "foreign")] {
        assert_eq!(ask(page, "navigator.clipboard.readText()").await, json!(text));
    }
}

/// What is emulated here, and what a frame says that it sees then.
fn tokyo() -> (Emulation, Value) {
    let emulation = Emulation {
        user_agent: Some("Tokyo/1".into()),
        locale: Some("ja-JP".into()),
        timezone: Some("Asia/Tokyo".into()),
        touch: Some(true),
        color_scheme: Some("dark".into()),
        offline: Some(true),
        ..Emulation::default()
    };
    (emulation, json!(["Tokyo/1", "ja-JP", "Asia/Tokyo", 5, true, false]))
}

fn online((emulation, mut seen): (Emulation, Value)) -> (Emulation, Value) {
    seen[5] = json!(true);
    (Emulation { offline: None, ..emulation }, seen)
}

#[tokio::test]
async fn frames_of_another_process_see_what_the_page_sees() {
    let stage = Stage::new().await;
    let page = &stage.page;
    let plain = ask(page, "first").await;
    let (wanted, seen) = tokyo();
    stage.emulate(&wanted).await;
    assert_eq!(ask(page, "seen()").await, seen, "a frame that was there");
    assert_eq!(ask(page, "fetch('/data').then(() => 'online', () => 'offline')").await, json!("offline"));
    let (online, seen) = online((wanted, seen));
    stage.emulate(&online).await;
    assert_eq!(ask(page, "fetch('/data').then(() => 'online', () => 'offline')").await, json!("online"));
    // One that comes later sees it from its first line on.
    for _ in 0..5 {
        soon(page.navigate(Navigation::Reload)).await.expect("it reloads");
        assert_eq!(ask(page, "first").await, seen, "a frame that came later");
    }
    let slow = Emulation { network: Some(Throttle { latency_ms: 500.0, download_kbps: None, upload_kbps: None }), ..Emulation::default() };
    stage.emulate(&slow).await;
    let took = "(async () => { const began = performance.now(); await fetch('/data'); return performance.now() - began; })()";
    assert!(ask(page, took).await.as_f64() >= Some(500.0));
    stage.emulate(&Emulation::default()).await;
    // That it is light again around it, the frame hears when the page is drawn.
    soon(async { while ask(page, "seen()").await != plain {} }).await;
    // Much of it is one for all frames in a process: who was told first may go.
    let second = "new Promise((done) => { window.second = frame.cloneNode(); second.id = 'second'; second.onload = done; document.body.append(second); })";
    run(page, second).await;
    stage.emulate(&online).await;
    run(page, "frame.remove(); second.id = 'frame'").await;
    soon(async { while ask(page, "seen()").await != seen {} }).await;
}

#[tokio::test]
async fn a_file_chooser_of_a_frame_of_another_process_takes_files() {
    let stage = Stage::new().await;
    let page = &stage.page;
    let home = tempfile::tempdir().expect("a directory");
    let file = home.path().join("a.txt");
    std::fs::write(&file, "a").expect("it can be written");
    let files = [file];
    let mut events = page.events();
    let choose = Action { verb: click("#choose"), patience: std::time::Duration::from_secs(20) };
    soon(page.act(&choose)).await.expect("it is clicked");
    assert_eq!(soon(events.recv()).await, Some(PageEvent::ChooserOpened(Chooser::One)));
    assert_eq!(soon(page.upload(&files, None)).await, Ok(None));
    assert_eq!(ask(page, "file.files[0].text()").await, json!("a"));
    // With its frame it goes.
    soon(page.act(&choose)).await.expect("it is clicked");
    assert_eq!(soon(events.recv()).await, Some(PageEvent::ChooserOpened(Chooser::One)));
    run(page, "frame.remove()").await;
    soon(async { while soon(page.upload(&files, None)).await != Err(DriverError::NoChooser) {} }).await;
}

#[tokio::test]
async fn what_a_frame_of_another_process_logs_and_asks_for_is_the_pages() {
    let stage = Stage::new().await;
    let page = &stage.page;
    ask(page, "console.error('said within'); fetch('/data?asked').then((answer) => answer.text())").await;
    let asked = |suffix: &str| page.requests().0.into_iter().rev().find(|request| request.url.ends_with(suffix));
    soon(async {
        while asked("?asked").is_none_or(|request| request.status != Some(200)) {
            run(page, "0").await;
        }
    })
    .await;
    assert_eq!(asked("/frame").and_then(|request| request.status), Some(200));
    let (log, _) = page.take_log();
    assert!(log.iter().any(|entry| entry.level == "error" && entry.text == "said within"), "{log:?}");
    soon(page.wait_for(&Awaited { network_idle: true, ..Awaited::default() })).await.expect("everything has come");
    // Of what it waits for when it goes, nobody hears any more.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let at = silent.local_addr().expect("a bound socket has an address");
    ask(page, &format!("fetch('http://{at}/never', {{ mode: 'no-cors' }}); 1")).await;
    soon(async {
        while asked("/never").is_none() {
            run(page, "0").await;
        }
    })
    .await;
    run(page, "frame.remove()").await;
    soon(page.wait_for(&Awaited { network_idle: true, ..Awaited::default() })).await.expect("nobody waits for it any more");
}

/// The next daemon finds the frames again, and they have everything at once.
#[tokio::test]
async fn frames_of_another_process_are_the_next_daemons_too() {
    let (browser, home) = support::full_chromium_and_home().await;
    let stage = Stage::of(browser).await;
    let (wanted, seen) = online(tokyo());
    stage.emulate(&wanted).await;
    let page = &stage.page;
    assert_eq!(ask(page, "seen()").await, seen);
    // Frames and workers that come when nobody is there wait for the next daemon.
    let coming = "window.made = 0; window.came = 0; window.coming = setInterval(() => { made += 2; \
                  const more = frame.cloneNode(); more.removeAttribute('id'); more.onload = () => { came++; more.remove(); }; document.body.append(more); \
                  new Worker(URL.createObjectURL(new Blob(['postMessage(1)']))).onmessage = () => came++; }, 20); 1";
    run(page, coming).await;
    soon(async { while run(page, "made > 0").await != json!(true) {} }).await;
    let (handle, records) = (stage.context.handle().clone(), [PageRecord::of(&**page)]);
    drop(stage.context);
    let next = support::next_daemon(&home, stage.browser).await;
    let spec = ContextSpec { emulation: wanted.clone(), ..ContextSpec::default() };
    let adopted = soon(next.adopt_context(&handle, &spec, &records)).await.expect("it lives");
    let page = &adopted.pages.first().expect("its page lives").1;
    soon(async { while run(page, "made > 5").await != json!(true) {} }).await;
    run(page, "clearInterval(coming)").await;
    soon(async { while run(page, "came === made").await != json!(true) {} }).await;
    soon(async { while ask(page, "seen()").await != seen {} }).await;
    soon(adopted.context.emulate(&Emulation { user_agent: Some("Next/1".into()), ..Emulation::default() })).await.expect("it is taken");
    assert_eq!(ask(page, "[navigator.userAgent, navigator.onLine]").await, json!(["Next/1", true]));
    press(page, Some("#from"), "Control+A").await;
    press(page, None, "Control+C").await;
    press(page, Some("#own"), "Control+V").await;
    soon(async { while run(page, "own.value").await != json!("of the frame") {} }).await;
}

/// They wait for our word when they begin, and none is forgotten: not those that go at once, lead nowhere, or are within others.
#[tokio::test]
async fn no_frame_or_worker_waits_for_ever() {
    let stage = Stage::new().await;
    let page = &stage.page;
    let many = "(async () => {
        const add = (src, go) => new Promise((done) => {
            const more = frame.cloneNode(); more.removeAttribute('id'); more.src = src;
            more.onload = () => { more.remove(); done(); };
            document.body.append(more);
            if (go) setTimeout(() => { more.remove(); done(); }, Math.random() * 30);
        });
        const work = (go) => new Promise((done) => {
            const one = new Worker('/worker.js'); one.onmessage = () => { one.terminate(); done(); }; one.postMessage(1);
            if (go) setTimeout(() => { one.terminate(); done(); }, Math.random() * 30);
        });
        const other = frame.src.replace('/frame', '');
        const within = other + '/within';
        for (let round = 0; round < 5; round++) {
            const all = [];
            for (let one = 0; one < 6; one++) all.push(add(frame.src, true), add(frame.src), add(within), work(true), work());
            all.push(add('http://localhost:1/'), add('http://127.0.0.1:1/'), add('about:blank'), add('data:text/html,hello'), add(other + '/nothing', true));
            await Promise.all(all);
        }
        return 'all';
    })()";
    assert_eq!(run(page, many).await, json!("all"));
    assert_eq!(ask(page, "1").await, json!(1));
}

/// Also in headless-shell: workers have a session of their own there too.
#[tokio::test]
async fn a_worker_is_offline_with_its_page_and_what_it_asks_for_is_the_pages() {
    for want in [Want::Plain, Want::Full] {
        let stage = Stage::of(support::chromium_for(want).await).await;
        let page = &stage.page;
        let answer = |script: &str| {
            format!("new Promise((done) => {{ {script}.onmessage = ({{ data }}) => done(data); {script}.postMessage(1); }})")
        };
        run(page, "window.worker = new Worker('/worker.js'); 1").await;
        assert_eq!(run(page, &answer("worker")).await, json!(200));
        let asked = || page.requests().0.into_iter().any(|request| request.url.ends_with("/data") && request.status == Some(200));
        soon(async {
            while !asked() {
                run(page, "0").await;
            }
        })
        .await;
        let later = "new Promise((done) => new Worker(URL.createObjectURL(new Blob([`fetch('${location.origin}/data') \
                     .then(() => postMessage('online'), () => postMessage('offline'))`]))).onmessage = ({ data }) => done(data))";
        for (offline, there, new) in [
            (true, json!("TypeError: Failed to fetch"), "offline"),
            (false, json!(200), "online"),
            (true, json!("TypeError: Failed to fetch"), "offline"),
        ] {
            stage.emulate(&Emulation { offline: Some(offline), ..Emulation::default() }).await;
            assert_eq!(run(page, &answer("worker")).await, there, "{want:?}, {offline}");
            assert_eq!(run(page, later).await, json!(new), "{want:?}, {offline}");
        }
        soon(page.wait_for(&Awaited { network_idle: true, ..Awaited::default() })).await.expect("it becomes quiet");
    }
}
