//! What becomes of pages when the browser answers late, or not as hoped. The browser is played, so that it does so when told.

mod again;
mod beside;
mod downloads;
mod early;
mod paused;
mod stuck;
mod waiting;

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tabmux_driver::{Browser, BrowserInfo, Context, ContextSpec, DriverError, Isolation, Place, Strangers, WindowBounds, WindowId};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::sync::watch;

use crate::CdpBrowser;
use crate::transport::{Start, Transport};

/// Longer than anything takes that is answered; time passes only while everybody waits.
const PATIENCE: Duration = Duration::from_secs(3600);

/// A browser that makes pages `T1`, `T2`… in windows 1, 2… and does all it is asked, unless it is told otherwise.
#[derive(Clone)]
struct Played(Arc<Stage>);

struct Stage {
    inner: Mutex<Inner>,
    /// How many commands came so far.
    heard: watch::Sender<usize>,
    write: tokio::sync::Mutex<WriteHalf<DuplexStream>>,
}

#[derive(Default)]
struct Inner {
    commands: Vec<Value>,
    withholds: HashSet<&'static str>,
    withheld: Vec<Value>,
    refuses: HashSet<&'static str>,
    /// Pages that answer nothing.
    stuck: HashSet<&'static str>,
    pages: usize,
    /// What it says of its targets when asked.
    targets: Vec<Value>,
}

impl Played {
    async fn start() -> (Arc<CdpBrowser>, Self) {
        let (transport, played) = Self::wired();
        let browser = CdpBrowser::connect(transport, 1, Self::info()).await.expect("it answers");
        (browser, played)
    }

    fn info() -> BrowserInfo {
        BrowserInfo { id: "played".into(), ..BrowserInfo::default() }
    }

    /// Nobody is connected yet.
    fn wired() -> (Transport, Self) {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (read, write) = tokio::io::split(theirs);
        let stage = Stage { inner: Mutex::default(), heard: watch::Sender::new(0), write: tokio::sync::Mutex::new(write) };
        let played = Self(Arc::new(stage));
        tokio::spawn(played.clone().play(read));
        let (read, write) = tokio::io::split(ours);
        (Transport::over(read, write, Start::Fresh), played)
    }

    async fn play(self, read: ReadHalf<DuplexStream>) {
        let mut read = BufReader::new(read);
        let mut frame = Vec::new();
        while read.read_until(0, &mut frame).await.is_ok_and(|length| length > 0) {
            let command: Value = serde_json::from_slice(&frame[..frame.len() - 1]).expect("a command");
            frame.clear();
            let method = command["method"].as_str().expect("a method").to_owned();
            let withheld = {
                let mut inner = self.0.inner.lock().unwrap();
                inner.commands.push(command.clone());
                let of_stuck =
                    command["sessionId"].as_str().and_then(|of| of.strip_prefix("of ")).is_some_and(|of| inner.stuck.contains(of));
                let withheld = of_stuck || inner.withholds.contains(method.as_str());
                if withheld {
                    inner.withheld.push(command.clone());
                }
                withheld
            };
            if !withheld {
                self.answer(&command).await;
            }
            self.0.heard.send_modify(|heard| *heard += 1);
        }
    }

    async fn answer(&self, command: &Value) {
        let method = command["method"].as_str().expect("a method");
        let target = &command["params"]["targetId"];
        let (refused, result) = {
            let mut inner = self.0.inner.lock().unwrap();
            let result = match method {
                "Target.createTarget" => {
                    inner.pages += 1;
                    json!({"targetId": format!("T{}", inner.pages)})
                }
                "Target.attachToTarget" => json!({"sessionId": format!("of {}", target.as_str().unwrap())}),
                "Target.getTargets" => json!({"targetInfos": inner.targets}),
                "Target.getTargetInfo" => {
                    // A session asks for its own.
                    let own = || command["sessionId"].as_str()?.strip_prefix("of ");
                    let target = target.as_str().or_else(own).unwrap_or_default();
                    let known = inner.targets.iter().find(|known| known["targetId"] == target).cloned();
                    json!({"targetInfo": known.unwrap_or_else(|| info(target, None))})
                }
                "Target.createBrowserContext" => json!({"browserContextId": "C1"}),
                "Target.getBrowserContexts" => json!({"browserContextIds": []}),
                "Browser.getWindowForTarget" => {
                    let window: i64 = target.as_str().unwrap().trim_start_matches(|letter: char| letter.is_alphabetic()).parse().unwrap();
                    json!({"windowId": window, "bounds": {}})
                }
                "Target.closeTarget" => json!({"success": true}),
                // As the usher's page says that it is there.
                "Runtime.evaluate" => json!({"result": {"type": "string", "value": "object"}}),
                "Page.addScriptToEvaluateOnNewDocument" => json!({"identifier": "1"}),
                "Page.getFrameTree" => {
                    let frame = json!({"id": "x", "loaderId": "first", "url": "http://a.test/", "securityOrigin": "http://a.test",
                        "domainAndRegistry": "a.test", "mimeType": "text/html", "secureContextType": "InsecureScheme",
                        "crossOriginIsolatedContextType": "NotIsolated", "gatedAPIFeatures": []});
                    json!({"frameTree": {"frame": frame}})
                }
                "Page.getNavigationHistory" => {
                    let entry = json!({"id": 1, "url": "http://a.test/", "userTypedURL": "", "title": "", "transitionType": "link"});
                    json!({"currentIndex": 0, "entries": [entry]})
                }
                _ => json!({}),
            };
            (inner.refuses.contains(method), result)
        };
        let mut reply = json!({"id": command["id"]});
        if refused {
            reply["error"] = json!({"code": -32000, "message": "No"});
        } else {
            reply["result"] = result;
        }
        if let Some(session) = command.get("sessionId") {
            reply["sessionId"] = session.clone();
        }
        self.say(&reply).await;
    }

    async fn say(&self, message: &Value) {
        let mut write = self.0.write.lock().await;
        write.write_all(format!("{message}\0").as_bytes()).await.expect("somebody reads");
    }

    /// A page comes up that nobody here asked for.
    async fn opens(&self, target: &str, opener: Option<&str>) {
        self.say(&json!({"method": "Target.targetCreated", "params": {"targetInfo": info(target, opener)}})).await;
    }

    fn withholds(&self, method: &'static str) {
        self.0.inner.lock().unwrap().withholds.insert(method);
    }

    fn refuses(&self, method: &'static str) {
        self.0.inner.lock().unwrap().refuses.insert(method);
    }

    /// Answers what it withheld, and from now on at once.
    async fn relents(&self) {
        let withheld = {
            let mut inner = self.0.inner.lock().unwrap();
            inner.withholds.clear();
            inner.stuck.clear();
            std::mem::take(&mut inner.withheld)
        };
        for command in withheld {
            self.answer(&command).await;
        }
    }

    /// How often it was asked for this, of this target.
    fn asked(&self, method: &str, target: &str) -> usize {
        let inner = self.0.inner.lock().unwrap();
        let of = |command: &&Value| command["params"]["targetId"] == target || command["params"]["sessionId"] == format!("of {target}");
        inner.commands.iter().filter(|command| command["method"] == method).filter(of).count()
    }

    /// Waits until it is asked for this so often.
    async fn is_asked(&self, method: &str, target: &str, times: usize) {
        let mut heard = self.0.heard.subscribe();
        let asked = heard.wait_for(|_| self.asked(method, target) >= times);
        tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{method} of {target}")).expect("it plays on");
    }

    /// Waits until a command of this kind came, whatever it is about.
    async fn hears(&self, method: &str) {
        self.hears_times(method, 1).await;
    }

    async fn hears_times(&self, method: &str, times: usize) {
        let mut heard = self.0.heard.subscribe();
        let came = |_: &usize| self.0.inner.lock().unwrap().commands.iter().filter(|command| command["method"] == method).count() >= times;
        tokio::time::timeout(PATIENCE, heard.wait_for(came)).await.unwrap_or_else(|_| panic!("{method}")).expect("it plays on");
    }
}

fn info(target: &str, opener: Option<&str>) -> Value {
    let mut info =
        json!({"targetId": target, "type": "page", "title": "", "url": "http://a.test/", "attached": false, "canAccessOpener": false});
    if let Some(opener) = opener {
        info["openerId"] = json!(opener);
    }
    info
}

async fn context(browser: &CdpBrowser, isolation: Isolation) -> Arc<dyn Context> {
    browser.open_context(&ContextSpec { isolation, ..ContextSpec::default() }).await.expect("a context opens")
}

/// Whoever polls it goes no further than until this happens.
async fn given_up_once<T: std::fmt::Debug>(work: impl Future<Output = T>, happened: impl Future<Output = ()>) {
    tokio::select! {
        done = work => panic!("it was to be given up, and yet: {done:?}"),
        () = happened => {}
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_cannot_be_attached_to_is_closed_again() {
    for isolation in [Isolation::Context, Isolation::Tab, Isolation::Window] {
        let (browser, played) = Played::start().await;
        let context = context(&browser, isolation).await;
        played.refuses("Target.attachToTarget");
        assert!(context.open_page().await.is_err());
        played.is_asked("Target.closeTarget", "T1", 1).await;
    }
}

/// A former daemon asked for it and died: it comes up now, and where it is may be known only a little later.
#[tokio::test(start_paused = true)]
async fn a_hidden_tab_of_a_former_daemon_is_closed_and_nobodys() {
    for url in ["http://a.test/#tabmux-hidden", ""] {
        let (browser, played) = Played::start().await;
        let context = context(&browser, Isolation::Context).await;
        let mut popups = context.popups();
        let at = |url: &str| {
            let mut hidden = info("H1", None);
            (hidden["url"], hidden["browserContextId"]) = (json!(url), json!("C1"));
            hidden
        };
        played.0.inner.lock().unwrap().targets = vec![at("about:blank#tabmux-hidden")];
        played.say(&json!({"method": "Target.targetCreated", "params": {"targetInfo": at(url)}})).await;
        played.is_asked("Target.closeTarget", "H1", 1).await;
        assert_eq!((played.asked("Target.attachToTarget", "H1"), popups.try_recv().is_err()), (0, true), "{url:?}");
    }
}

/// However far it came: asked for, made, or being attached to.
#[tokio::test(start_paused = true)]
async fn a_page_whose_opening_is_given_up_is_closed_and_nobodys() {
    for stuck in ["Target.createTarget", "Target.attachToTarget", "Page.enable"] {
        let (browser, played) = Played::start().await;
        let context = context(&browser, Isolation::Tab).await;
        let mut popups = context.popups();
        played.withholds(stuck);
        given_up_once(context.open_page(), played.hears(stuck)).await;
        played.opens("T1", None).await;
        played.relents().await;
        played.is_asked("Target.closeTarget", "T1", 1).await;
        let next = context.open_page().await.expect("the next one opens");
        assert_eq!((next.handle().0.as_str(), popups.try_recv().is_err()), ("T2", true), "{stuck}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_page_that_is_made_too_late_is_closed_when_it_comes() {
    let (browser, played) = Played::start().await;
    let context = context(&browser, Isolation::Tab).await;
    played.withholds("Target.createTarget");
    assert!(matches!(context.open_page().await.map(|_| ()), Err(DriverError::Late(_))));
    played.relents().await;
    played.is_asked("Target.closeTarget", "T1", 1).await;
}

/// S3.24: who is told that it is closed need not look.
#[tokio::test(start_paused = true)]
async fn a_context_whose_pages_did_not_close_is_not_closed_until_they_do() {
    let (browser, played) = Played::start().await;
    let context = context(&browser, Isolation::Tab).await;
    for _ in 0..2 {
        context.open_page().await.expect("a page opens");
    }
    played.withholds("Target.closeTarget");
    for times in 1..=2 {
        assert!(matches!(context.close().await, Err(DriverError::Late(_))));
        assert_eq!((played.asked("Target.closeTarget", "T1"), played.asked("Target.closeTarget", "T2")), (times, times));
    }
    // Also when nobody waits to the end.
    given_up_once(context.close(), played.is_asked("Target.closeTarget", "T2", 3)).await;
    played.relents().await;
    assert_eq!(context.close().await, Ok(()));
    assert_eq!((played.asked("Target.closeTarget", "T1"), played.asked("Target.closeTarget", "T2")), (4, 4));
    assert_eq!(context.close().await, Ok(()));
    assert_eq!(played.asked("Target.closeTarget", "T1"), 4, "closed is closed");
}

/// S4.23: what a page opens in its last moment is nobody's, so it goes with it.
#[tokio::test(start_paused = true)]
async fn a_page_that_opens_while_its_openers_context_closes_is_closed_too() {
    let (browser, played) = Played::start().await;
    let context = context(&browser, Isolation::Tab).await;
    context.open_page().await.expect("a page opens");
    played.withholds("Target.attachToTarget");
    played.opens("P1", Some("T1")).await;
    played.is_asked("Target.attachToTarget", "P1", 1).await;
    context.close().await.expect("it closes");
    played.relents().await;
    played.is_asked("Target.closeTarget", "P1", 1).await;
    played.opens("P2", Some("T1")).await;
    played.is_asked("Target.closeTarget", "P2", 1).await;
    played.opens("P3", Some("another's")).await;
    played.opens("P4", Some("T1")).await;
    played.is_asked("Target.closeTarget", "P4", 1).await;
    assert_eq!(played.asked("Target.closeTarget", "P3"), 0);
}

/// S4.23: where it came up says more than who wished for such a page.
#[tokio::test(start_paused = true)]
async fn a_page_that_does_not_say_who_opened_it_belongs_to_whose_window_it_is_in() {
    let (browser, played) = Played::start().await;
    let wish = json!({"frameId": "x", "reason": "anchorClick", "url": "http://a.test/", "disposition": "newTab"});
    let mut wishing = Vec::new();
    for number in 1..=5 {
        let one = context(&browser, Isolation::Window).await;
        one.open_page().await.expect("a page opens");
        let session = format!("of T{number}");
        played.say(&json!({"method": "Page.frameRequestedNavigation", "params": wish, "sessionId": session})).await;
        wishing.push((one.popups(), one));
    }
    let owner = context(&browser, Isolation::Window).await;
    owner.windows().expect("windows").own(&[WindowId(9)].into());
    let mut popups = owner.popups();
    played.opens("P9", None).await;
    let joined = tokio::time::timeout(PATIENCE, popups.recv()).await.expect("it joins").expect("a popup");
    assert_eq!(joined.page.handle().0, "P9");
    assert!(wishing.iter_mut().all(|(popups, _)| popups.try_recv().is_err()));
}

/// S4.19: a person may drag it into that window while we wait for something else.
#[tokio::test(start_paused = true)]
async fn where_a_page_came_up_is_asked_before_anything_is_waited_for() {
    let (browser, played) = Played::start().await;
    let owner = context(&browser, Isolation::Window).await;
    owner.open_page().await.expect("a page opens");
    played.withholds("Target.createTarget");
    let opening = tokio::spawn({
        let owner = Arc::clone(&owner);
        async move { owner.open_page().await.map(drop) }
    });
    played.hears("Target.createTarget").await;
    played.opens("P9", None).await;
    played.is_asked("Browser.getWindowForTarget", "P9", 1).await;
    assert_eq!(played.0.inner.lock().unwrap().withheld.len(), 1, "a page of ours is still being made");
    opening.abort();
}

/// A person's settings, files and developer tools, in the window of a session. They are not closed either.
#[tokio::test(start_paused = true)]
async fn a_page_at_an_address_where_no_session_may_go_joins_none() {
    let (browser, played) = Played::start().await;
    let context = context(&browser, Isolation::Context).await;
    let mut popups = context.popups();
    let at = |target: &str, url: &str| {
        let mut info = info(target, None);
        (info["url"], info["browserContextId"]) = (json!(url), json!("C1"));
        info
    };
    // Where the fourth is, is known only to who asks.
    played.0.inner.lock().unwrap().targets.push(at("P4", "file:///etc/passwd"));
    for (target, url) in
        [("P1", "file:///etc/passwd"), ("P2", "chrome://settings/"), ("P3", "devtools://devtools/x"), ("P4", ""), ("P5", "http://a.test/")]
    {
        played.say(&json!({"method": "Target.targetCreated", "params": {"targetInfo": at(target, url)}})).await;
    }
    let joined = tokio::time::timeout(PATIENCE, popups.recv()).await.expect("one joins").expect("a popup");
    assert_eq!(joined.page.handle().0, "P5");
    for target in ["P1", "P2", "P3", "P4"] {
        assert_eq!((played.asked("Target.attachToTarget", target), played.asked("Target.closeTarget", target)), (0, 0), "{target}");
    }
}

/// S4.18, S4.6: a page of the person's is theirs, whatever we were about to do with it.
#[tokio::test(start_paused = true)]
async fn a_persons_page_is_let_go_of_when_the_context_closes_before_it_was_taken_in() {
    let (browser, played) = Played::start().await;
    let context = context(&browser, Isolation::Window).await;
    let windows = context.windows().expect("windows");
    windows.open_page_at(Place::New(WindowBounds::default())).await.expect("a page opens");
    played.0.inner.lock().unwrap().targets = vec![info("P7", None)];
    played.withholds("Page.enable");
    let taking = windows.take_strangers(Strangers::default());
    let closing = async {
        played.is_asked("Target.attachToTarget", "P7", 1).await;
        context.close().await.expect("it closes");
        played.relents().await;
    };
    let (taken, ()) = tokio::join!(taking, closing);
    assert!(taken.is_err());
    played.is_asked("Target.detachFromTarget", "P7", 1).await;
    assert_eq!((played.asked("Target.closeTarget", "P7"), played.asked("Target.closeTarget", "T1")), (0, 1));
    // What it opens later is the person's as well.
    played.opens("P8", Some("P7")).await;
    played.opens("P9", Some("T1")).await;
    played.is_asked("Target.closeTarget", "P9", 1).await;
    assert_eq!(played.asked("Target.closeTarget", "P8"), 0);
}

/// The window usher is ours: a browser that is not is left without it. Chromium 148 takes extensions over its pipe only, so
/// the one that people start is played.
#[tokio::test(start_paused = true)]
async fn the_usher_leaves_a_browser_that_is_let_go() {
    let (browser, played) = Played::start().await;
    browser.keep_window_usher_in("/nowhere".into());
    let mut usher = info("U1", None);
    usher["url"] = json!("chrome-extension://ours/tabmux-windows.html");
    played.0.inner.lock().unwrap().targets = vec![usher];
    let context = context(&browser, Isolation::Window).await;
    context.open_page().await.expect("a window opens");
    played.is_asked("Target.attachToTarget", "U1", 1).await;
    let uninstalled = || -> Vec<Value> {
        let inner = played.0.inner.lock().unwrap();
        inner
            .commands
            .iter()
            .filter(|command| command["method"] == "Extensions.uninstall")
            .map(|command| command["params"]["id"].clone())
            .collect()
    };
    assert_eq!(uninstalled(), Vec::<Value>::new(), "it is needed");
    browser.end().await.expect("it is let go");
    assert_eq!(uninstalled(), ["ours"]);
}
