//! Windows of a shared profile on real Chromium, headless and on a display: what a driver does and knows. The person is
//! played over the same wire, in windows nobody here was told of.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use serde_json::json;
use tabmux_cdp::CdpBrowser;
use tabmux_cdp::protocol::{browser, input, runtime, target};
use tabmux_driver::{
    Browser, Context, ContextSpec, DriverError, Ground, Handle, Isolation, Navigation, Page, PageRecord, Place, Spot, Strangers,
    WindowBounds, WindowId,
};

use crate::display::Display;
use crate::support;

const PATIENCE: Duration = Duration::from_secs(20);
const NEW: Place = Place::New(WindowBounds { left: 20, top: 20, width: 1800, height: 1200 });

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("a browser answers in time")
}

/// A full browser, seen or unseen.
struct Stage {
    browser: Arc<CdpBrowser>,
    _display: Option<Display>,
}

impl Stage {
    async fn new(display: Option<Display>) -> Self {
        let browser = support::full_chromium(display.as_ref()).await;
        Self { browser, _display: display }
    }

    async fn context(&self) -> Arc<dyn Context> {
        let spec = ContextSpec { isolation: Isolation::Window, ..ContextSpec::default() };
        soon(self.browser.open_context(&spec)).await.expect("a context opens")
    }

    /// A context with a page in a window that it was told to be its own.
    async fn settled(&self) -> (Arc<dyn Context>, Arc<dyn Page>, WindowId) {
        let context = self.context().await;
        let (page, spot) = open(&context, NEW).await;
        assert_eq!(spot.ground, Ground::New);
        windows(&context).own(&BTreeSet::from([spot.window]));
        (context, page, spot.window)
    }

    /// Asks the browser itself.
    async fn window_of(&self, page: &Handle) -> browser::GetWindowForTargetReply {
        let asked = browser::GetWindowForTarget { target_id: Some(page.0.clone()) };
        soon(self.browser.connection().call(None, &asked)).await.expect("the page is in a window")
    }

    /// The person opens a window.
    async fn persons_window(&self, url: &str) -> (Handle, WindowId) {
        let create = target::CreateTarget { url: url.into(), new_window: Some(true), ..target::CreateTarget::default() };
        let id = soon(self.browser.connection().call(None, &create)).await.expect("a window opens").target_id;
        let window = self.window_of(&Handle(id.clone())).await.window_id;
        (Handle(id), WindowId(window))
    }

    /// A window goes a moment after its last page.
    async fn window_closes(&self, window: WindowId) {
        let bounds = browser::GetWindowBounds { window_id: window.0 };
        until(async || self.browser.connection().call(None, &bounds).await.is_err()).await;
    }

    async fn targets(&self) -> Vec<target::TargetInfo> {
        soon(self.browser.connection().call(None, &target::GetTargets::default())).await.expect("they are listed").target_infos
    }

    /// Has the usher do something.
    async fn usher_does(&self, expression: String) -> runtime::EvaluateReply {
        let helper = self.targets().await.into_iter().find(|info| info.url.ends_with("/tabmux-windows.html")).expect("the helper is there");
        let attach = target::AttachToTarget { target_id: helper.target_id, flatten: Some(true) };
        let session = soon(self.browser.connection().call(None, &attach)).await.expect("it can be attached").session_id;
        let evaluate =
            runtime::Evaluate { expression, await_promise: Some(true), return_by_value: Some(true), ..runtime::Evaluate::default() };
        soon(self.browser.connection().call(Some(&session), &evaluate)).await.expect("it runs")
    }

    /// The person drags a tab into another window, with the helper's hands.
    async fn drag(&self, page: &Handle, window: WindowId) {
        let reply = self.usher_does(format!("tabmux.bring({:?}, {}).then(JSON.stringify)", page.0, window.0)).await;
        assert_eq!(reply.result.value, Some(json!(json!({ "target": page.0 }).to_string())), "{reply:?}");
    }
}

fn windows(context: &Arc<dyn Context>) -> &dyn tabmux_driver::Windowed {
    context.windows().expect("it is isolated by window")
}

async fn open(context: &Arc<dyn Context>, place: Place) -> (Arc<dyn Page>, Spot) {
    soon(windows(context).open_page_at(place)).await.expect("a page opens")
}

async fn go(page: &Arc<dyn Page>, url: &str) {
    soon(page.navigate(Navigation::To(url))).await.expect("it goes");
}

/// Waits until the browser says so; each question gives it time.
async fn until(what: impl AsyncFn() -> bool) {
    soon(async {
        while !what().await {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

/// Every test runs unseen and on a display.
macro_rules! seen_and_unseen {
    ($($(#[doc = $doc:literal])* #[tokio::test] async fn $name:ident($stage:ident: Stage) $body:block)+) => {
        $($(#[doc = $doc])* async fn $name($stage: Stage) $body)+
        mod headless {
            $(#[tokio::test] async fn $name() { super::$name(super::Stage::new(None).await).await; })+
        }
        mod visible {
            $(#[tokio::test] async fn $name() { super::$name(super::Stage::new(Some(super::Display::new())).await).await; })+
        }
    };
}

seen_and_unseen! {
    /// S4.5, S4.9
    #[tokio::test]
    async fn thirty_pages_at_once_in_three_windows_land_right(stage: Stage) {
        let contexts = [stage.settled().await, stage.settled().await, stage.settled().await];
        let _person = stage.persons_window("about:blank").await;
        let opening = (0..30).map(|number| {
            let (context, _, window) = &contexts[number % 3];
            async move { (open(context, Place::In(*window)).await, *window) }
        });
        for ((page, spot), expected) in join_all(opening).await {
            assert_eq!(spot, Spot { window: expected, ground: Ground::Old });
            assert_eq!(stage.window_of(page.handle()).await.window_id, expected.0);
            assert_eq!((page.url().as_str(), soon(page.evaluate("location.href")).await), ("about:blank", Ok(json!("about:blank"))));
        }
        for (context, ..) in &contexts {
            assert!(context.popups().try_recv().is_err(), "what was made here was not taken for a popup");
        }
    }

    /// S4.7, S4.10
    #[tokio::test]
    async fn a_new_window_has_the_bounds_it_was_given(stage: Stage) {
        let (context, page, _) = stage.settled().await;
        let bounds = |page: Arc<dyn Page>| {
            let stage = &stage;
            async move {
                let bounds = stage.window_of(page.handle()).await.bounds;
                (bounds.left, bounds.top, bounds.width, bounds.height, bounds.window_state)
            }
        };
        let normal = || Some("normal".to_owned());
        assert_eq!(bounds(page).await, (Some(20), Some(20), Some(1800), Some(1200), normal()));
        let (page, _) = open(&context, Place::New(WindowBounds { left: 40, top: 30, width: 640, height: 480 })).await;
        assert_eq!(bounds(page).await, (Some(40), Some(30), Some(640), Some(480), normal()));
    }

    /// S4.8
    #[tokio::test]
    async fn the_blank_window_of_a_fresh_browser_is_used_and_no_later_one(stage: Stage) {
        let (first, window) = stage.persons_window("about:blank").await;
        let (context, page, own) = stage.settled().await;
        assert_eq!((page.handle(), own), (&first, window));
        assert_eq!(stage.window_of(&first).await.bounds.width, Some(1800));
        let (_, later) = stage.persons_window("about:blank").await;
        let (_, spot) = open(&context, NEW).await;
        assert!(spot.window != later && spot.window != own);
    }

    /// S4.8, S4.6
    #[tokio::test]
    async fn a_window_somebody_uses_is_not_taken_for_a_fresh_one(stage: Stage) {
        let site = support::site(|_| "the person's".into()).await;
        let (_, person) = stage.persons_window(&site).await;
        assert_ne!(stage.settled().await.2, person);
    }

    /// S4.16: asked all at once, kept, and asked again after a navigation.
    #[tokio::test]
    async fn the_window_of_a_page_is_asked_for_once_and_again_after_it_went_elsewhere(stage: Stage) {
        let site = support::site(|_| "hello".into()).await;
        let (context, first, window) = stage.settled().await;
        let pages = [first, open(&context, Place::In(window)).await.0, open(&context, Place::In(window)).await.0];
        for page in &pages {
            go(page, &site).await;
        }
        let handles: Vec<Handle> = pages.iter().map(|page| page.handle().clone()).collect();
        let everywhere: Vec<_> = handles.iter().map(|handle| (handle.clone(), window)).collect();
        let tap = stage.browser.connection().tap(10_000);
        let asked = |page: &Handle| {
            tap.sent().iter().filter(|sent| sent.method == "Browser.getWindowForTarget" && sent.frame.contains(&page.0)).count()
        };
        let all_asked = || handles.iter().map(asked).sum::<usize>();
        let ask = async || soon(windows(&context).windows_of(&handles)).await;
        // What the browser has to say of the navigations comes in its own time.
        until(async || {
            ask().await;
            let before = all_asked();
            ask().await;
            all_asked() == before
        })
        .await;
        assert_eq!(ask().await, everywhere);
        let before = asked(&handles[1]);
        go(&pages[1], &format!("{site}/elsewhere")).await;
        until(async || ask().await == everywhere && asked(&handles[1]) > before).await;
        let (_, elsewhere) = stage.persons_window("about:blank").await;
        stage.drag(&handles[2], elsewhere).await;
        until(async || {
            let before = all_asked();
            let mut asking = Box::pin(windows(&context).windows_of(&handles));
            // Once the drag is heard: all of it is under way before anything is answered.
            if futures::poll!(&mut asking).is_ready() || all_asked() - before != 3 {
                return false;
            }
            assert_eq!(soon(asking).await[2], (handles[2].clone(), elsewhere));
            true
        })
        .await;
    }

    /// S4.12
    #[tokio::test]
    async fn a_page_that_closes_while_pages_are_listed_is_left_out(stage: Stage) {
        let (context, first, window) = stage.settled().await;
        let (second, _) = open(&context, Place::In(window)).await;
        let handles = [first.handle().clone(), second.handle().clone()];
        let (listed, closed) = soon(async { tokio::join!(windows(&context).windows_of(&handles), second.close()) }).await;
        assert_eq!(closed, Ok(()));
        assert_eq!(listed[0], (handles[0].clone(), window));
        until(async || windows(&context).windows_of(&handles).await == [(handles[0].clone(), window)]).await;
    }

    /// S4.19
    #[tokio::test]
    async fn a_dragged_page_is_found_where_it_is_and_lives_on_when_it_is_let_go(stage: Stage) {
        let site = support::site(|_| "hello".into()).await;
        let (person, elsewhere) = stage.persons_window(&site).await;
        let (context, kept, window) = stage.settled().await;
        let (dragged, _) = open(&context, Place::In(window)).await;
        let mut events = dragged.events();
        let handles = [kept.handle().clone(), dragged.handle().clone()];
        soon(windows(&context).windows_of(&handles)).await;
        stage.drag(dragged.handle(), elsewhere).await;
        let found = [(handles[0].clone(), window), (handles[1].clone(), elsewhere)];
        until(async || windows(&context).windows_of(&handles).await == found).await;
        soon(windows(&context).let_go(dragged.handle())).await.expect("it is let go");
        assert_eq!(soon(dragged.evaluate("1")).await, Err(DriverError::PageGone));
        assert_eq!(soon(events.recv()).await, None);
        // One of the person's that is dragged in is nobody's but theirs.
        stage.drag(&person, window).await;
        assert_eq!(stage.window_of(&person).await.window_id, window.0);
        assert!(context.popups().try_recv().is_err());
        soon(context.close()).await.expect("it closes");
        let left: BTreeSet<_> = stage.targets().await.into_iter().map(|info| info.target_id).collect();
        assert!(left.contains(&dragged.handle().0) && left.contains(&person.0), "{left:?}");
    }

    /// S4.17
    #[tokio::test]
    async fn a_window_that_is_gone_says_so_and_opens_nothing(stage: Stage) {
        let (context, page, window) = stage.settled().await;
        let (other, _) = open(&context, NEW).await;
        soon(page.close()).await.expect("it closes");
        let pages = async || stage.targets().await.iter().filter(|info| info.kind == "page").count();
        until(async || pages().await == 1).await;
        stage.window_closes(window).await;
        assert_eq!(soon(windows(&context).open_page_at(Place::In(window))).await.map(|_| ()), Err(DriverError::WindowGone));
        assert_eq!(pages().await, 1);
        assert_eq!(soon(other.evaluate("1")).await, Ok(json!(1)));
    }

    /// It is found a moment longer than it takes tabs, and Chrome has several names for that.
    #[tokio::test]
    async fn a_window_that_is_about_to_close_is_gone_and_one_that_takes_no_tab_is_full(stage: Stage) {
        let (context, page, window) = stage.settled().await;
        // So that the usher is there.
        open(&context, Place::In(window)).await;
        let refuse = "chrome.tabs.create = async () => { throw new Error('You cannot create new tabs while in locked fullscreen mode') }";
        stage.usher_does(format!("{refuse}, 0")).await;
        let refused = async || soon(windows(&context).open_page_at(Place::In(window))).await.map(|_| ());
        assert_eq!(refused().await, Err(DriverError::WindowFull), "its pages are still there");
        stage.usher_does("chrome.tabs.query = async () => [], 0".into()).await;
        assert_eq!(refused().await, Err(DriverError::WindowGone));
        let another = soon(context.open_page()).await.expect("a page opens");
        assert_ne!(stage.window_of(another.handle()).await.window_id, window.0);
        assert_eq!(soon(page.evaluate("1")).await, Ok(json!(1)));
    }

    /// S4.23: also where Chrome opens a new window, and where it does not say who opened the page.
    #[tokio::test]
    async fn whatever_way_a_page_opens_another_one_it_joins(stage: Stage) {
        let site = support::site(|_| "<a id=plain href=/child style='position:fixed;left:0;top:0;font-size:80px'>link</a>".into()).await;
        let (context, page, window) = stage.settled().await;
        let (other, beside, _) = stage.settled().await;
        let (mut popups, mut elsewhere) = (context.popups(), other.popups());
        go(&page, &site).await;
        go(&beside, &site).await;
        let mut joined = async |how: &str| -> Spot {
            let popup = tokio::time::timeout(PATIENCE, popups.recv()).await.unwrap_or_else(|_| panic!("{how} joins")).expect("a popup").page;
            assert_eq!(soon(popup.evaluate("1")).await, Ok(json!(1)), "{how}");
            soon(windows(&context).spot(popup.handle())).await.expect("it is somewhere")
        };
        soon(page.evaluate("window.open('/child', '_blank', 'width=300,height=200'); 1")).await.expect("it runs");
        let spot = joined("a popup").await;
        assert_eq!((spot.ground, spot.window == window), (Ground::New, false), "a window of its own");
        let full = soon(windows(&context).open_page_at(Place::In(spot.window))).await.map(|_| ());
        assert_eq!(full, Err(DriverError::WindowFull), "and no place for tabs");
        for (how, button, modifiers, in_new_window) in
            [("ctrl-click", "left", 2, false), ("middle-click", "middle", 0, false), ("shift-click", "left", 8, true)]
        {
            click(&stage, &page, button, modifiers).await;
            let spot = joined(how).await;
            assert_eq!((spot.window != window, spot.ground == Ground::New), (in_new_window, in_new_window), "{how}");
        }
        assert!(elsewhere.try_recv().is_err(), "nobody else hears of them");
    }

    /// S4.15
    #[tokio::test]
    async fn a_page_in_a_wrong_window_is_brought_into_the_right_one_as_it_is(stage: Stage) {
        let (_, foreign) = stage.persons_window("data:text/html,the person's").await;
        let (context, page, window) = stage.settled().await;
        let (lost, _) = open(&context, Place::In(window)).await;
        soon(lost.evaluate("globalThis.kept = 7")).await.expect("it runs");
        stage.drag(lost.handle(), foreign).await;
        assert_eq!(soon(windows(&context).spot(lost.handle())).await, Ok(Spot { window: foreign, ground: Ground::Old }));
        let spot = soon(windows(&context).bring(lost.handle(), Place::In(window))).await;
        assert_eq!(spot, Ok(Spot { window, ground: Ground::Old }));
        assert_eq!(stage.window_of(lost.handle()).await.window_id, window.0);
        let spot = soon(windows(&context).bring(lost.handle(), NEW)).await.expect("it is brought");
        assert!(spot.ground == Ground::New && spot.window != window && spot.window != foreign);
        assert_eq!(soon(lost.evaluate("globalThis.kept")).await, Ok(json!(7)), "the very page");
        soon(page.close()).await.expect("it closes");
        // Brought while its last page is still closing, the page would keep the window open.
        stage.window_closes(window).await;
        assert_eq!(soon(windows(&context).bring(lost.handle(), Place::In(window))).await, Err(DriverError::WindowGone));
    }

    /// S4.6: nothing a session does takes the person's focus, and none of the person's pages is looked into.
    #[tokio::test]
    async fn nothing_is_focused_and_no_foreign_target_is_attached(stage: Stage) {
        let site = support::site(|_| "hello".into()).await;
        let (person, persons) = stage.persons_window(&site).await;
        let tap = stage.browser.connection().tap(10_000);
        let (context, page, window) = stage.settled().await;
        let mut popups = context.popups();
        let (second, _) = open(&context, Place::In(window)).await;
        go(&page, &site).await;
        for script in ["window.open('/x'); 1", "window.open('/y', 'n', 'width=300,height=200'); 1"] {
            soon(page.evaluate(script)).await.expect("it runs");
        }
        let popups = [soon(popups.recv()).await.expect("it joins").page, soon(popups.recv()).await.expect("it joins").page];
        soon(windows(&context).bring(second.handle(), NEW)).await.expect("it is brought");
        for popup in &popups {
            soon(windows(&context).spot(popup.handle())).await.expect("it is somewhere");
        }
        soon(context.close()).await.expect("it closes");
        let sent = tap.sent();
        assert!(tap.dropped() == 0 && sent.len() > 20, "{sent:?}");
        let own: BTreeSet<&str> = [&page, &second, &popups[0], &popups[1]].map(|page| page.handle().0.as_str()).into();
        let helper = stage.targets().await.into_iter().find(|info| info.url.ends_with("/tabmux-windows.html")).expect("it is there");
        for sent in &sent {
            assert!(!["Page.bringToFront", "Target.activateTarget"].contains(&sent.method), "{sent:?}");
            assert!(sent.method != "Target.createTarget" || sent.frame.contains("\"background\":true"), "{sent:?}");
            assert!(!sent.frame.contains("active: true") && !sent.frame.contains("focused: true"), "{sent:?}");
            if sent.method == "Target.attachToTarget" {
                assert!(own.iter().chain([&helper.target_id.as_str()]).any(|id| sent.frame.contains(id)), "{sent:?}");
            }
            assert!(!sent.frame.contains(&format!("\"windowId\":{}", persons.0)), "{sent:?}");
            assert!(sent.method == "Browser.getWindowForTarget" || !sent.frame.contains(&person.0), "{sent:?}");
        }
    }

    /// S4.18, S4.13: without scoping the person's pages can be used, and are not closed with who used them.
    #[tokio::test]
    async fn pages_of_the_person_can_be_taken_in_and_are_left_as_they_are(stage: Stage) {
        let site = support::site(|_| "the person's".into()).await;
        let (person, _) = stage.persons_window(&site).await;
        let (context, _own, _) = stage.settled().await;
        let (other, ..) = stage.settled().await;
        let taken = soon(windows(&context).take_strangers(Strangers::default())).await.expect("they are taken");
        let [page] = &taken[..] else { panic!("the person has one page: {taken:?}") };
        assert_eq!(page.handle(), &person);
        assert_eq!(soon(page.evaluate("document.body.innerText")).await, Ok(json!("the person's")));
        let again = soon(windows(&other).take_strangers(Strangers { all_kinds: true, devtools: true })).await.expect("there are none");
        assert!(again.is_empty(), "each page is one's, and the helper nobody's: {again:?}");
        soon(context.close()).await.expect("it closes");
        assert!(stage.targets().await.iter().any(|info| info.target_id == person.0));
        let spared = soon(windows(&other).take_strangers(Strangers::default())).await;
        assert_eq!(spared.map(|pages| pages.len()), Ok(1), "free again");
    }

    /// A window session is found again by its pages; what is not of any session stays, also when contexts are tidied up.
    #[tokio::test]
    async fn a_context_is_found_again_and_tidying_up_closes_no_window_of_the_person(stage: Stage) {
        let site = support::site(|_| "hello".into()).await;
        let (person, _) = stage.persons_window(&site).await;
        let (context, page, window) = stage.settled().await;
        let records = [PageRecord { handle: page.handle().clone(), url: page.url(), memento: page.memento() }];
        soon(stage.browser.keep_only(&[])).await.expect("it is tidied up");
        let found = soon(stage.browser.adopt_context(context.handle(), &ContextSpec::default(), &records)).await.expect("it lives");
        assert_eq!((found.pages.len(), found.context.handle()), (1, context.handle()));
        assert_eq!(soon(windows(&found.context).windows_of(&[page.handle().clone()])).await, [(page.handle().clone(), window)]);
        assert!(stage.targets().await.iter().any(|info| info.target_id == person.0));
        let foreign = Handle("windows-another-0000000000000000".into());
        assert!(matches!(soon(stage.browser.adopt_context(&foreign, &ContextSpec::default(), &[])).await.map(|_| ()), Err(DriverError::BrowserGone(_))));
    }
}

/// A real click on the top left corner of the page. What comes before a page is first drawn Chromium drops, so the page is
/// asked whether it heard it.
async fn click(stage: &Stage, page: &Arc<dyn Page>, button: &str, modifiers: i64) {
    let listen = "window.heard = 0; addEventListener('mousedown', () => { window.heard += 1 }, { once: true }); 1";
    soon(page.evaluate(listen)).await.expect("it runs");
    until(async || {
        press(stage, page, button, modifiers).await;
        page.evaluate("window.heard").await == Ok(json!(1))
    })
    .await;
}

async fn press(stage: &Stage, page: &Arc<dyn Page>, button: &str, modifiers: i64) {
    let connection = stage.browser.connection();
    let attach = target::AttachToTarget { target_id: page.handle().0.clone(), flatten: Some(true) };
    let session = soon(connection.call(None, &attach)).await.expect("it can be attached").session_id;
    for kind in ["mousePressed", "mouseReleased"] {
        let event = input::DispatchMouseEvent {
            kind: kind.into(),
            x: 30.0,
            y: 40.0,
            button: Some(button.into()),
            click_count: Some(1),
            modifiers: Some(modifiers),
            ..input::DispatchMouseEvent::default()
        };
        soon(connection.call(Some(&session), &event)).await.expect("the click arrives");
    }
}

/// S4.1: a browser that takes no extension from us has each page of a session in a window, and nobody's focus is taken.
#[tokio::test]
async fn without_the_usher_every_page_gets_a_window() {
    let stage = Stage { browser: support::everyday_chromium().await, _display: None };
    let (context, _, window) = stage.settled().await;
    let refused = soon(windows(&context).open_page_at(Place::In(window))).await.map(|_| ());
    assert_eq!(refused, Err(DriverError::WindowFull));
    let page = soon(context.open_page()).await.expect("a page opens");
    assert_ne!(stage.window_of(page.handle()).await.window_id, window.0);
    assert!(stage.targets().await.iter().all(|info| !info.url.starts_with("chrome-extension:")), "there is no usher");
}
