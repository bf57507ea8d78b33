//! What is read of real pages: how it is written, what it costs, and that nothing is missing in it.

mod agrees;
mod changes;
mod clickable;
mod closed;
mod costs;
mod hostile;
mod reading;
mod refs;
mod words;

use std::sync::Arc;
use std::time::Duration;

use tabmux_cdp::{CdpBrowser, Tap};

use tabmux_cdp::find::Want;
use tabmux_driver::{
    Action, Awaited, Browser, Context, ContextSpec, DriverError, Navigation, Page, Rows, Scope, Selector, Sight, Snapshot, Which,
};

use crate::act::click;
use crate::support;

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("a browser answers in time")
}

/// A browser with one page, which shows what it is given.
struct Stage {
    browser: Arc<CdpBrowser>,
    _context: Arc<dyn Context>,
    page: Arc<dyn Page>,
}

impl Stage {
    async fn new(want: Want) -> Self {
        let browser = support::chromium_for(want).await;
        let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
        let page = soon(context.open_page()).await.expect("a page opens");
        Self { browser, _context: context, page }
    }

    async fn showing(body: &str) -> Self {
        let stage = Self::new(Want::Plain).await;
        stage.show(body).await;
        stage
    }

    async fn show(&self, body: &str) {
        let body = body.to_owned();
        let site = support::site(move |_| body.clone()).await;
        soon(self.page.navigate(Navigation::To(&format!("{site}/?title=Shown")))).await.expect("it goes there");
    }

    async fn see(&self, sight: &Sight) -> Snapshot {
        soon(self.page.snapshot(sight)).await.expect("a page can be seen")
    }

    async fn lines(&self) -> String {
        self.see(&Sight::default()).await.text
    }

    async fn run(&self, script: &str) -> serde_json::Value {
        soon(self.page.evaluate(script)).await.expect("it runs")
    }
}

const FORM: &str = r##"<h1>Create account</h1><form>
    <label>Full name <input name=name required></label>
    <label for=mail>Email</label><input id=mail type=email placeholder="you@example.com">
    <label>Password <input type=password value=hunter2></label>
    <label>Country <select><option>Germany<option>France<option selected>Spain</select></label>
    <fieldset><legend>Plan</legend><label><input type=radio name=plan checked> Free</label> <label><input type=radio name=plan> Pro</label></fieldset>
    <label><input type=checkbox> I agree to the <a href="/terms">terms</a></label>
    <button>Sign up</button> <button type=button disabled>Cancel</button></form>
    <p>Have an account? <a href="/in">Sign in</a>.</p>"##;

#[tokio::test]
async fn a_form_is_read_as_a_person_would_read_it() {
    let stage = Stage::showing(FORM).await;
    let expected = r##"# "Create account"
e1 textbox "Full name" required
e2 textbox "Email"
e3 textbox "Password" password filled
e4 combobox "Country" = "Spain" of "Germany", "France", "Spain"
group "Plan": e5 radio "Free" checked e6 radio "Pro"
e7 checkbox "I agree to the terms" e8 link "terms" e9 button "Sign up" e10 button "Cancel" disabled
"Have an account?" e11 link "Sign in" ".""##;
    assert_eq!(stage.lines().await, expected);
    let interactive = Sight { which: Which::Interactive, ..Sight::default() };
    assert!(!stage.see(&interactive).await.text.contains("Have an account"));
}

/// Words beside a control are not its name, and words of what has no name are what it is called by.
#[tokio::test]
async fn words_are_told_as_whose_they_are() {
    let body = "<p><input type=checkbox> I agree</p><p><button></button> Delete all</p><p><label><input type=checkbox> Named</label></p>
        <div onclick='1'>Open settings</div>";
    let stage = Stage::showing(body).await;
    assert_eq!(
        stage.lines().await,
        "e1 checkbox \"\" \"I agree\"\ne2 button \"\" \"Delete all\"\ne3 checkbox \"Named\"\ne4 clickable \"Open settings\""
    );
    let interactive = Sight { which: Which::Interactive, ..Sight::default() };
    assert!(stage.see(&interactive).await.text.ends_with("e4 clickable \"Open settings\""));
}

#[tokio::test]
async fn shadow_trees_slots_frames_canvases_and_what_is_hidden_are_told_as_they_are() {
    let stage = Stage::showing(
        "<my-card><b slot=title>Title</b>rest</my-card><iframe srcdoc='<button>In frame</button>'></iframe><canvas width=40 height=20></canvas> \
         <div style='display:none'>gone</div><div style='visibility:hidden'>gone <i style='visibility:visible'>here</i></div> \
         <div aria-hidden=true><p>gone</div><details><summary>More</summary>gone</details><div style='display:contents'>flat</div> \
         <style>.off > div { display: none }</style><section class=off><div><div><label><input type=checkbox>gone</label><ul><li><b>gone</b></ul></div></div></section> \
         <div onclick='1'>Press</div><div style='cursor:pointer'><span>Card</span></div> \
         <script>customElements.define('my-card', class extends HTMLElement { constructor() { super(); \
         this.attachShadow({ mode: 'open' }).innerHTML = '<button>Shadow</button> <slot name=title></slot> <slot></slot>'; } })</script>",
    )
    .await;
    let text = stage.lines().await;
    let expected = "e1 button \"Shadow\" \"Title rest\"\ne2 iframe: e3 button \"In frame\"\n\
                    e4 canvas 40x20, drawn: only a screenshot shows it\n\"here\"\ne5 disclosure \"More\" collapsed\n\"flat\"\n\
                    e6 clickable \"Press\"\ne7 clickable \"Card\"";
    assert_eq!(text, expected);
    assert!(!text.contains("gone"));
}

#[tokio::test]
async fn a_table_is_told_row_by_row_and_one_for_layout_by_what_it_holds() {
    let stage = Stage::showing(
        "<table><tr><th>Name<th>Price<tr><td>Tea<td><tr><td><a href=1>Jam</a><td>3</table><table><tr><td><h2>Layout</h2><p>Words</table>",
    )
    .await;
    let expected = "table:\n | \"Name\" | \"Price\"\n | \"Tea\" |\n | e1 link \"Jam\" | \"3\"\ntable:\n ## \"Layout\"\n \"Words\"";
    assert_eq!(stage.lines().await, expected);
}

/// In full Chromium the frame of another site is in another process.
#[tokio::test]
async fn frames_of_other_sites_cost_one_message_each_and_their_refs_work() {
    let site = support::site(|path| match path {
        "/" => {
            "<h1>Outer</h1><iframe name=near src=/near></iframe><script>const far = document.createElement('iframe'); far.title = 'Far'; \
                far.src = location.origin.replace('127.0.0.1', 'localhost') + '/far'; document.body.append(far);</script>"
                .into()
        }
        path => format!("<button>{path}</button>"),
    })
    .await;
    for want in [Want::Plain, Want::Full] {
        let stage = Stage::new(want).await;
        soon(stage.page.navigate(Navigation::To(&site))).await.expect("it goes there");
        // The load of a page does not wait for what another process says; each question gives it time.
        let text = soon(async {
            loop {
                let text = stage.lines().await;
                if text.contains("/far") {
                    return text;
                }
            }
        })
        .await;
        assert_eq!(text, "# \"Outer\"\ne1 iframe: e2 button \"/near\"\ne3 iframe \"Far\"\nin e3:\n e4 button \"/far\"", "{want:?}");
        let tap = stage.browser.connection().tap(100);
        stage.lines().await;
        assert_eq!(answered(&tap, 0), ["Runtime.callFunctionOn"; 2], "{want:?}");
        for selector in ["e4", "role=button[name=/far]"] {
            let inside = stage.see(&Sight { scope: part(selector), ..Sight::default() }).await;
            assert_eq!(inside.text, "e4 button \"/far\"", "{want:?}, {selector}");
        }
    }
}

/// No event tells of a title, so it comes with whatever the page answers, and from the browser for who asks for it alone.
#[tokio::test]
async fn the_title_is_the_pages_own_whoever_changed_it() {
    let browser = support::chromium().await;
    let site = support::site(|_| "<a href='/next?title=Next'>on</a>".into()).await;
    let context = soon(browser.open_context(&ContextSpec::default())).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(&format!("{site}/?title=First")))).await.expect("it goes");
    assert_eq!(page.title(), "First");
    for script in ["document.title = 'By a script'", "history.pushState(0, '', '/pushed'), document.title = 'Pushed'"] {
        let title = soon(page.evaluate(script)).await.expect("it runs");
        soon(page.refresh_title()).await;
        assert_eq!(page.title(), title, "{script}");
    }
    soon(page.evaluate("document.title = 'Seen'")).await.expect("it runs");
    soon(page.snapshot(&Sight::default())).await.expect("it is seen");
    assert_eq!(page.title(), "Seen");
    let click = Action { verb: click("a"), patience: Duration::from_secs(20) };
    soon(page.act(&click)).await.expect("it is clicked");
    soon(page.changes(500)).await.expect("it can be looked at");
    assert_eq!((page.url(), page.title()), (format!("{site}/next?title=Next"), "Next".into()));
    let mut popups = context.popups();
    soon(page.evaluate("void open('/popup?title=Popup')")).await.expect("it runs");
    let popup = soon(popups.recv()).await.expect("a popup joins").page;
    soon(popup.wait_for(&Awaited { text: Some("on".into()), ..Awaited::default() })).await.expect("it loads");
    soon(popup.refresh_title()).await;
    assert_eq!(popup.title(), "Popup");
    // An element of that name stands in the title's place for scripts.
    soon(page.evaluate("document.body.innerHTML = '<img name=title>'; 0")).await.expect("it runs");
    soon(page.snapshot(&Sight::default())).await.expect("it is seen");
    assert_eq!(page.title(), "Next");
}

/// Also the first one of a document. Only the first one of all makes the worlds that the script runs in, which a page has not
/// before it is looked at: that is one round trip more.
#[tokio::test]
async fn a_snapshot_is_one_round_trip() {
    let stage = Stage::showing(FORM).await;
    let tap = stage.browser.connection().tap(100);
    stage.lines().await;
    let (once, call) = (["Runtime.addBinding", "Page.addScriptToEvaluateOnNewDocument"], "Runtime.callFunctionOn");
    assert_eq!(answered(&tap, 0), [once[0], once[1], call]);
    for _ in 0..2 {
        stage.show(FORM).await;
        let before = tap.sent().len();
        stage.lines().await;
        stage.lines().await;
        assert_eq!(answered(&tap, before), [call; 2]);
    }
}

/// What was sent since then, but for what nobody waits for: that an answer is not needed any more.
fn answered(tap: &Tap, before: usize) -> Vec<&'static str> {
    tap.sent()[before..].iter().map(|sent| sent.method).filter(|method| *method != "Runtime.releaseObject").collect()
}

fn rows(count: usize) -> String {
    let row = |at: usize| {
        format!(
            "<li><a href='/item/{at}'>Item number {at}</a> <span>{at}.99 EUR</span> <input type=checkbox aria-label='Select item {at}'> \
             <button>Add to cart</button> <button aria-label='Remove item {at}'>x</button></li>"
        )
    };
    format!("<h1>Things</h1><ul>{}</ul>", (0..count).map(row).collect::<String>())
}

#[tokio::test]
async fn repeated_rows_are_folded_and_unfolded_by_their_refs_in_full_or_by_finding_them() {
    let stage = Stage::showing(&rows(200)).await;
    let text = stage.lines().await;
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 6, "{text}");
    assert_eq!(lines[4], "… 196 more rows like this, e13–e796");
    assert!(lines[5].starts_with("- e797 link \"Item number 199\""), "{text}");
    let unfolded = stage.see(&Sight { scope: Scope::Span(13, 796), rows: Rows::All, ..Sight::default() }).await;
    assert_eq!(unfolded.text.lines().next().map(|line| line.starts_with("- e13 link \"Item number 3\"")), Some(true));
    let full = stage.see(&Sight { rows: Rows::All, budget: 1_000_000, ..Sight::default() }).await;
    assert_eq!((full.text.lines().count(), full.left), (201, 0));
    let found = stage.see(&Sight { find: Some("/number 15[67]\"/".into()), ..Sight::default() }).await;
    assert_eq!(found.text.lines().count(), 2, "{}", found.text);
    let bad = soon(stage.page.snapshot(&Sight { find: Some("/(/".into()), ..Sight::default() })).await;
    assert_eq!(bad, Err(DriverError::BadPattern("/(/".into())));
}

#[tokio::test]
async fn a_budget_cuts_between_lines_and_the_cursor_goes_on_until_all_was_said() {
    let stage = Stage::showing(&rows(200)).await;
    let full = stage.see(&Sight { rows: Rows::All, budget: 1_000_000, ..Sight::default() }).await;
    let mut sight = Sight { rows: Rows::All, budget: 2000, ..Sight::default() };
    let (mut whole, mut pieces) = (Vec::new(), 0);
    loop {
        let piece = stage.see(&sight).await;
        assert!(costs::tokens(&piece.text) <= 2000, "{}", costs::tokens(&piece.text));
        whole.push(piece.text);
        pieces += 1;
        sight.cursor = piece.cursor;
        if sight.cursor.is_none() {
            break;
        }
    }
    assert!(pieces > 3);
    assert_eq!(whole.join("\n"), full.text);
    let stale = soon(stage.page.snapshot(&Sight { cursor: Some("1:5".into()), ..Sight::default() })).await;
    assert_eq!(stale, Err(DriverError::StaleCursor));
}

fn part(selector: &str) -> Scope {
    Scope::Part(Selector::parse(selector).expect("a selector"))
}

/// S0.27
#[tokio::test]
async fn a_part_of_the_page_is_seen_by_any_selector_and_by_depth() {
    let stage = Stage::showing(
        "<main><h1>A</h1><ul><li>one<ul><li>two<ul><li>three</ul></ul></ul></main><nav aria-label=Ways><a href=1>B</a></nav>",
    )
    .await;
    for selector in ["nav", "//nav", "~Ways", "role=navigation", "css=nav"] {
        let seen = stage.see(&Sight { scope: part(selector), ..Sight::default() }).await;
        assert_eq!(seen.text, "navigation \"Ways\": e1 link \"B\"", "{selector}");
    }
    for selector in ["e1", "text=B"] {
        assert_eq!(stage.see(&Sight { scope: part(selector), ..Sight::default() }).await.text, "e1 link \"B\"", "{selector}");
    }
    let shallow = Sight { depth: Some(2), ..Sight::default() };
    assert_eq!(stage.see(&shallow).await.text, "main:\n # \"A\"\n - \"one\"\n  … 2 more lines below\nnavigation \"Ways\": e1 link \"B\"");
    let refused =
        async |selector| soon(stage.page.snapshot(&Sight { scope: part(selector), ..Sight::default() })).await.expect_err("there is none");
    assert_eq!(refused("e99").await, DriverError::StaleRef("e99".into()));
    for selector in ["#nowhere", "//aside", "text=Nowhere"] {
        assert!(matches!(refused(selector).await, DriverError::ElementNotFound { selector: named, .. } if named == selector));
    }
    for selector in ["a[", "//["] {
        assert!(matches!(refused(selector).await, DriverError::BadSelector { selector: named, .. } if named == selector));
    }
}
