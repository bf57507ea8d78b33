//! Acting on real pages: everything is proven by what the page itself saw.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tabmux_cdp::CdpBrowser;
use tabmux_driver::{
    Acted, Action, Bring, Browser, Button, Chord, Click, ContextSpec, DriverError, Modifiers, Navigation, Page, Result, Selector, Verb,
};

use crate::fixtures;
use crate::support;

/// Long enough for a browser that is ten times slower; it only matters when something hangs.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.expect("a browser answers in time")
}

/// A page of a browser of its own.
pub(crate) struct Stage {
    pub(crate) page: Arc<dyn Page>,
    pub(crate) browser: Arc<CdpBrowser>,
    pub(crate) site: String,
}

impl Stage {
    pub(crate) async fn at(path: &str) -> Self {
        Self::of(support::chromium().await, path).await
    }

    pub(crate) async fn of(browser: Arc<CdpBrowser>, path: &str) -> Self {
        let site = fixtures::site().await;
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let page = soon(context.open_page()).await.expect("a page opens");
        let stage = Self { page, browser, site };
        stage.go(path).await;
        stage
    }

    pub(crate) async fn go(&self, path: &str) {
        soon(self.page.navigate(Navigation::To(&format!("{}/{path}", self.site)))).await.expect("the page goes there");
    }

    pub(crate) async fn run(&self, script: &str) -> Value {
        soon(self.page.evaluate(script)).await.unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    pub(crate) async fn act(&self, verb: Verb) -> Result<Acted> {
        soon(self.page.act(&Action { verb, patience: Duration::from_secs(20) })).await
    }

    /// With no patience for what is not ready at once.
    pub(crate) async fn refused(&self, verb: Verb) -> DriverError {
        soon(self.page.act(&Action { verb, patience: Duration::from_millis(300) })).await.expect_err("it cannot be done")
    }

    pub(crate) async fn click(&self, selector: &str) -> Acted {
        self.act(click(selector)).await.unwrap_or_else(|error| panic!("click {selector}: {error}"))
    }

    pub(crate) async fn set(&self, selector: &str, value: &str) -> Acted {
        self.act(set(selector, value)).await.unwrap_or_else(|error| panic!("set {selector}: {error}"))
    }

    /// An empty page with this in it; `script` gives it its ways.
    pub(crate) async fn furnish(&self, html: &str, script: &str) {
        self.go("room.html").await;
        self.run(&format!("room.innerHTML = {}; {{ {script} }} 0", json!(html))).await;
    }

    /// What the page saw of a kind at an element: `[isTrusted, value]` each.
    pub(crate) async fn saw(&self, kind: &str, id: &str) -> Value {
        self.run(&format!("saw('{kind}', '{id}').map(([, , trusted, value]) => [trusted, value])")).await
    }
}

pub(crate) fn named(text: &str) -> Selector {
    Selector::parse(text).expect("a selector")
}

pub(crate) fn click(selector: &str) -> Verb {
    Verb::Click(Click {
        selector: named(selector),
        bring: Bring::IntoView,
        button: Button::Left,
        count: 1,
        modifiers: Modifiers::default(),
    })
}

pub(crate) fn set(selector: &str, value: &str) -> Verb {
    Verb::SetValue { selector: named(selector), value: value.to_owned() }
}

fn press(key: &str) -> Verb {
    Verb::Press { selector: None, chord: Chord::parse(key).expect("a key") }
}

#[tokio::test]
async fn a_todo_list_is_worked_through_with_keys_clicks_and_double_clicks() {
    let stage = Stage::at("todo.html").await;
    for task in ["Milk", "Bread ü", "Tea"] {
        let typed = stage.act(Verb::Type { selector: Some(named("#new")), text: task.into() }).await.expect("it is typed");
        assert_eq!(typed.outcome, Some(format!("It is {task:?} now.")));
        stage.act(press("Enter")).await.expect("it is pressed");
    }
    assert_eq!(stage.run("[...document.querySelectorAll('label')].map((one) => one.textContent)").await, json!(["Milk", "Bread ü", "Tea"]));
    stage.click("role=checkbox[name=\"Done: Milk\"]").await;
    assert_eq!(stage.saw("change", "toggle1").await, json!([[true, true]]));
    stage.act(Verb::Hover { selector: named("text=Tea") }).await.expect("it is hovered");
    stage.click("~Delete: Tea").await;
    let Verb::Click(one) = click("#label2") else { unreachable!("a click") };
    stage.act(Verb::Click(Click { count: 2, ..one })).await.expect("it is clicked twice");
    stage.act(press("Control+A")).await.expect("it is pressed");
    stage.act(Verb::Type { selector: None, text: "Cake".into() }).await.expect("it is typed");
    stage.act(press("Enter")).await.expect("it is pressed");
    assert_eq!(stage.run("[list.innerText.replace(/[×\\s]+/g, ' ').trim(), left.textContent]").await, json!(["Milk Cake", "1"]));
    assert_eq!(stage.run("seen.filter(([, , trusted]) => !trusted)").await, json!([]), "all of it was trusted");
}

/// Such a page never says that it was drawn, which is waited for elsewhere.
#[tokio::test]
async fn keys_on_a_page_that_has_nothing_to_draw_are_pressed_at_once() {
    let stage = Stage::at("room.html").await;
    for blank in ["about:blank".to_owned(), format!("{}/shown.html", stage.site)] {
        soon(stage.page.navigate(Navigation::To(&blank))).await.expect("the page goes there");
        stage.run("window.keys = 0; addEventListener('keydown', () => keys++); 0").await;
        let mut least = Duration::MAX;
        for _ in 0..3 {
            let began = std::time::Instant::now();
            stage.act(press("a")).await.expect("it is pressed");
            least = least.min(began.elapsed());
        }
        assert_eq!(stage.run("keys").await, json!(3), "{blank}");
        assert!(least < Duration::from_secs(1), "{blank}: {least:?}");
    }
}

/// S0.27
#[tokio::test]
async fn an_element_is_found_by_every_kind_of_selector_and_its_ref_stays() {
    let stage = Stage::at("spa.html").await;
    let by = ["#about", "//a[text()='About']", "(//a)[2]", "~About", "text=about", "text=\"About\"", "role=link[name=\"About\"]"];
    let mut refs = Vec::new();
    for selector in by {
        refs.push(stage.click(selector).await.target);
    }
    assert!(refs.iter().all(|one| one == &refs[0]) && refs[0].ends_with("link \"About\""), "{refs:?}");
    let number = refs[0].split(' ').next().expect("a ref");
    stage.click(number).await;
    stage.click(&format!("@{number}")).await;
    assert_eq!(stage.run("[document.title, saw('click', 'about').length]").await, json!(["About", 9]));
    let several = stage.click("css=a").await;
    assert_eq!((several.matched, several.target.ends_with("link \"Home\"")), (3, true), "{several:?}");
}

#[tokio::test]
async fn a_ref_of_something_gone_is_stale_and_never_another_element() {
    let stage = Stage::at("spa.html").await;
    let target = stage.click("#about").await.target;
    let number = target.split(' ').next().expect("a ref").to_owned();
    stage.run("about.replaceWith(about.cloneNode(true))").await;
    assert_eq!(stage.refused(click(&number)).await, DriverError::StaleRef(number.clone()));
    stage.go("spa.html").await;
    let again = stage.click("#about").await.target;
    assert!(!again.starts_with(&format!("{number} ")), "{again}");
    assert_eq!(stage.refused(click(&number)).await, DriverError::StaleRef(number));
}

#[tokio::test]
async fn a_selector_without_a_match_names_the_nearest_elements() {
    let stage = Stage::at("modal.html?native").await;
    let DriverError::ElementNotFound { selector, near } = stage.refused(click("role=button[name=\"Yess\"]")).await else {
        panic!("not found")
    };
    assert_eq!(selector, "role=button[name=\"Yess\"]");
    assert!(near.iter().any(|one| one.contains("button \"Yes\"")), "{near:?}");
    assert!(matches!(stage.refused(click("a[[")).await, DriverError::BadSelector { .. }));
    assert!(matches!(stage.refused(click("//a[")).await, DriverError::BadSelector { .. }));
}

#[tokio::test]
async fn what_covers_an_element_is_named_and_gets_nothing() {
    let stage = Stage::at("modal.html").await;
    let DriverError::NotActionable(why) = stage.refused(click("#save")).await else { panic!("covered") };
    assert!(why.contains("button \"Save\" is covered by dialog \"Cookies\" (e"), "{why}");
    assert_eq!(stage.run("seen.filter(([kind]) => kind.includes('down') || kind === 'click')").await, json!([]));
    stage.click("#accept").await;
    stage.click("#save").await;
    assert_eq!(stage.saw("click", "save").await, json!([[true, ""]]));
    stage.go("modal.html?native").await;
    let DriverError::NotActionable(why) = stage.refused(click("#behind")).await else { panic!("inert") };
    assert!(why.contains("Behind"), "{why}");
    stage.click("role=button[name=Yes]").await;
    stage.click("#behind").await;
}

#[tokio::test]
async fn what_comes_late_and_moves_is_waited_for() {
    let stage = Stage::at("slow.html").await;
    stage.click("#start").await;
    stage.click("#late").await;
    assert_eq!(stage.run("[saw('click', 'start').length, saw('click', 'late').length]").await, json!([1, 1]));
}

#[tokio::test]
async fn what_a_script_moves_is_waited_for_until_it_rests() {
    let stage = Stage::at("slow.html").await;
    stage
        .run(
            "room.innerHTML = '<button id=slides style=\"position: relative\">Slides</button>'; window.rests = false; let step = 0; \
             const slides = document.getElementById('slides'); slides.onclick = () => { window.clicked = window.rests; }; \
             const slide = () => { slides.style.left = `${step * 5}px`; if (++step < 40) requestAnimationFrame(slide); else window.rests = true; }; \
             slide(); 0",
        )
        .await;
    stage.click("#slides").await;
    assert_eq!(stage.run("[window.clicked, saw('click', 'slides').length]").await, json!([true, 1]));
}

#[tokio::test]
async fn what_is_drawn_anew_under_the_pointer_is_found_again() {
    let stage = Stage::at("slow.html").await;
    stage
        .run(
            "room.innerHTML = '<button id=anew>Anew</button>'; window.clicks = []; const anew = document.getElementById('anew'); \
             anew.onclick = () => clicks.push('old'); anew.onmouseover = () => { const other = anew.cloneNode(true); \
             other.onclick = () => clicks.push('new'); anew.replaceWith(other); }; 0",
        )
        .await;
    stage.click("#anew").await;
    assert_eq!(stage.run("clicks").await, json!(["new"]));
}

/// Each of these would be told as a success by a driver that only sends input.
#[tokio::test]
async fn a_click_that_did_not_arrive_is_never_a_success() {
    let stage = Stage::at("wrong.html").await;
    let DriverError::NotActionable(why) = stage.refused(click("#flees")).await else { panic!("another was hit") };
    assert!(why.contains("was not where it had been") && why.contains("Trap"), "{why}");
    assert_eq!(
        stage.run("seen.filter(([kind, id]) => id === 'trap' && kind !== 'mouseover')").await,
        json!([]),
        "it was kept from the other"
    );
    stage.click("#shy").await;
    assert_eq!(stage.run("saw('click', 'shy').length").await, json!(1), "what was missed is aimed at again");
    let DriverError::NotActionable(why) = stage.refused(click("#slips")).await else { panic!("it moved between press and release") };
    assert!(why.contains("moved away before it was released"), "{why}");
    stage.click("#vanishes").await;
    assert_eq!(stage.run("pressed").await, json!(1), "it acted when it was pressed");
    let DriverError::NotActionable(why) = stage.refused(click("#ghost")).await else { panic!("it takes no pointer") };
    assert!(why.contains("takes no clicks"), "{why}");
    stage.go("wrong.html?moving").await;
    match soon(stage.page.act(&Action { verb: click("#ever"), patience: Duration::from_millis(300) })).await {
        Err(DriverError::NotActionable(why)) => assert!(why.contains("moves") || why.contains("was not where"), "{why}"),
        // A machine too busy to draw it let it rest.
        told => assert_eq!((told.is_ok(), stage.run("saw('click', 'ever').length").await), (true, json!(1))),
    }
}

#[tokio::test]
async fn what_is_disabled_hidden_or_out_of_sight_says_so() {
    let stage = Stage::at("slow.html").await;
    stage.run("start.disabled = true; start.id = 'off'").await;
    let why = async |verb| match stage.refused(verb).await {
        DriverError::NotActionable(why) => why,
        other => panic!("{other:?}"),
    };
    assert!(why(click("#off")).await.ends_with("is disabled"));
    stage
        .run("room.innerHTML = '<button id=none style=display:none>N</button><div style=height:5000px></div><button id=far>F</button>'")
        .await;
    assert!(why(click("#none")).await.ends_with("cannot be seen"));
    let Verb::Click(far) = click("#far") else { unreachable!("a click") };
    assert!(why(Verb::Click(Click { bring: Bring::Nowhere, ..far })).await.contains("outside of the part"));
    stage.click("#far").await;
    assert_eq!(stage.saw("click", "far").await, json!([[true, ""]]));
}

#[tokio::test]
async fn other_buttons_modifiers_and_fingers_arrive_as_such() {
    let stage = Stage::at("canvas.html").await;
    stage.run("board.addEventListener('click', (event) => dots.push([event.ctrlKey, event.shiftKey]))").await;
    let Verb::Click(one) = click("#board") else { unreachable!("a click") };
    let held = Modifiers { control: true, shift: true, ..Modifiers::default() };
    stage.act(Verb::Click(Click { modifiers: held, ..one.clone() })).await.expect("it is clicked");
    assert_eq!(stage.run("dots").await, json!([[150, 100], [true, true]]));
    stage.act(Verb::Click(Click { button: Button::Right, ..one.clone() })).await.expect("it is clicked");
    stage.act(Verb::Click(Click { button: Button::Middle, ..one })).await.expect("it is clicked");
    stage.act(Verb::Tap { selector: named("#board"), bring: Bring::IntoView }).await.expect("it is tapped");
    // The right button is one beside the main one, too.
    for (kind, times) in [("contextmenu", 1), ("auxclick", 2), ("touchstart", 1)] {
        assert_eq!(stage.saw(kind, "board").await, json!(vec![json!([true, null]); times]), "{kind}");
    }
    stage.act(Verb::Press { selector: Some(named("#board")), chord: Chord::parse("ArrowLeft").expect("a key") }).await.expect("pressed");
    assert_eq!(stage.run("dots.at(-1)").await, json!("ArrowLeft"));
}

#[tokio::test]
async fn a_click_that_leaves_the_page_is_a_success() {
    let stage = Stage::at("spa.html").await;
    stage.click("#away").await;
    let awaited = tabmux_driver::Awaited { text: Some("Press away".into()), ..tabmux_driver::Awaited::default() };
    soon(stage.page.wait_for(&awaited)).await.expect("the page went there");
}

#[tokio::test]
async fn a_list_is_scrolled_by_the_wheel_and_a_box_within_it() {
    let stage = Stage::at("endless.html").await;
    let scroll = |selector: Option<&str>, by| Verb::Scroll { selector: selector.map(named), by };
    let acted = stage.act(scroll(None, Some((0.0, 500.0)))).await.expect("it scrolls");
    assert!(acted.outcome.as_deref().is_some_and(|told| told.starts_with("Scrolled down 500 px;")), "{acted:?}");
    assert_eq!(stage.run("seen.filter(([kind]) => kind === 'wheel').map(([, , trusted]) => trusted)").await, json!([true]));
    stage.act(scroll(None, Some((0.0, 5000.0)))).await.expect("it scrolls");
    assert_eq!(stage.run("list.children.length > 30").await, json!(true), "more came");
    stage.act(scroll(Some("#bottom"), None)).await.expect("it comes into view");
    assert_eq!(stage.run("box.scrollTop > 0").await, json!(true));
    let acted = stage.act(scroll(Some("#box"), Some((0.0, 9000.0)))).await.expect("it is at its end");
    assert!(acted.outcome.as_deref().is_some_and(|told| told.starts_with("Nothing moved")), "{acted:?}");
}

#[tokio::test]
async fn things_are_dragged_by_the_browser_and_by_the_page() {
    let stage = Stage::at("drag.html").await;
    let drag = |from: &str, to: &str| Verb::Drag { from: named(from), to: named(to) };
    stage.act(drag("#card", "#basket")).await.expect("it is dropped");
    assert_eq!(stage.run("basket.textContent").await, json!("Got the card"));
    assert_eq!((stage.saw("dragstart", "card").await, stage.saw("drop", "basket").await), (json!([[true, null]]), json!([[true, null]])));
    let before = stage.run("seen.length").await;
    assert!(matches!(stage.refused(drag("#card", "#nowhere")).await, DriverError::ElementNotFound { .. }));
    assert_eq!(stage.run("seen.length").await, before, "nothing was touched for it");
    assert!(matches!(stage.refused(drag("#card", "#wall")).await, DriverError::NotActionable(_)));
    stage.act(drag("#knob", "#goal")).await.expect("it is moved");
    assert_eq!(stage.run("goal.textContent").await, json!("Reached, true"));
}

/// Nobody outside hears what happens in a frame, so who clicks the frame itself clicks what is in its middle.
#[tokio::test]
async fn a_frame_is_clicked_where_it_is() {
    let stage = Stage::at("room.html").await;
    let framed = "new Promise((done) => {
        const frame = Object.assign(document.createElement('iframe'), { id: 'framed', onload: done });
        frame.srcdoc = '<body style=height:100vh onclick=\"document.title += 1\">';
        document.body.prepend(frame);
    }).then(() => 1)";
    stage.run(framed).await;
    let clicked = stage.act(click("#framed")).await.expect("it is clicked");
    assert!(clicked.outcome.is_some_and(|words| words.starts_with("What is there in e") && words.ends_with('.')));
    assert_eq!(stage.run("framed.contentDocument.title").await, json!("1"));
}

#[tokio::test]
async fn what_is_hovered_is_known_in_pages_without_a_doctype_too() {
    let stage = Stage::at("room.html").await;
    let old = "data:text/html,<button id=a onmouseover='this.title = event.isTrusted'>A</button>";
    soon(stage.page.navigate(Navigation::To(old))).await.expect("the page goes there");
    assert_eq!(stage.run("document.compatMode").await, json!("BackCompat"));
    stage.act(Verb::Hover { selector: named("#a") }).await.expect("it is hovered");
    assert_eq!(stage.run("a.title").await, json!("true"));
}

#[tokio::test]
async fn what_has_no_extent_of_its_own_is_clicked_where_it_is_drawn() {
    let stage = Stage::at("room.html").await;
    stage
        .furnish(
            "<a id=placed href=#placed><span style='position: absolute; left: 40px; top: 90px'>Placed</span></a> \
             <a id=floats href=#floats><b style='float: right'>Floats</b></a> \
             <div id=shut onclick=1 style='height: 0; overflow: hidden'><p>Shut</p></div>",
            "",
        )
        .await;
    for id in ["placed", "floats"] {
        stage.click(&format!("#{id}")).await;
        assert_eq!(stage.run("location.hash").await, json!(format!("#{id}")));
    }
    assert!(matches!(stage.refused(click("#shut")).await, DriverError::NotActionable(_)), "what is in it is cut off");
}

#[tokio::test]
async fn areas_of_an_image_map_are_clicked_in_their_shapes() {
    let stage = Stage::at("room.html").await;
    // Of the third, an L, the middle is not in it; of the last there is nothing left.
    stage
        .furnish(
            "<p style='height: 2000px'></p><img usemap=#m style='padding: 20px; width: 200px; height: 200px' alt=Map \
             src=\"data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'/>\"><map name=m> \
             <area id=rect href=#rect alt=Rect coords=0,0,50,50><area id=circle href=#circle alt=Circle shape=circle coords=150,50,40> \
             <area id=poly href=#poly alt=Poly shape=poly coords=0,100,10,100,10,190,90,190,90,200,0,200> \
             <area id=hidden href=#hidden alt=Hidden coords=10,10,20,20></map>",
            "",
        )
        .await;
    for id in ["rect", "circle", "poly"] {
        stage.click(&format!("#{id}")).await;
        assert_eq!((stage.run("location.hash").await, stage.saw("click", id).await), (json!(format!("#{id}")), json!([[true, null]])));
    }
    let DriverError::NotActionable(why) = stage.refused(click("#hidden")).await else { panic!("it is covered") };
    assert!(why.contains("is covered by link \"Rect\""), "{why}");
}

/// Counts are exact, so that nobody makes a tool slower without noticing. A round trip is a wait for an answer before the next
/// message can be sent; the messages of one gesture are sent at once.
#[tokio::test]
async fn a_click_takes_two_round_trips_a_value_three_and_what_changed_one() {
    let stage = Stage::at("form.html").await;
    stage.click("#name").await;
    let tap = stage.browser.connection().tap(1000);
    let sent = |before: usize| tap.sent()[before..].iter().map(|sent| sent.method).collect::<Vec<_>>();
    stage.click("#about").await;
    let (call, mouse) = ("Runtime.callFunctionOn", "Input.dispatchMouseEvent");
    let clicked = sent(0);
    // A report that lags behind is asked for, which is one message more.
    assert!(clicked[..4] == [call, mouse, mouse, mouse] && clicked.len() <= 5, "{clicked:?}");
    let before = tap.sent().len();
    stage.set("#name", "Ann").await;
    assert_eq!(sent(before), [call, "Input.insertText", call]);
    // What an agent is told with it, of a page that rests.
    let before = tap.sent().len();
    stage.page.changes(500).await.expect("it is told");
    assert_eq!(sent(before), [call]);
}
