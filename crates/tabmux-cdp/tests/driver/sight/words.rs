//! Elements that are named by their words, and acts that nobody waits for any more.

use tabmux_cdp::protocol::input::DispatchMouseEvent;
use tabmux_cdp::protocol::target::AttachToTarget;
use tabmux_driver::{Action, Bring, Button, Click, Modifiers, Selector, Verb};

use super::*;

pub(super) fn click(selector: &str) -> Action {
    let selector = Selector::parse(selector).expect("a selector");
    Action::new(Verb::Click(Click { selector, bring: Bring::IntoView, button: Button::Left, count: 1, modifiers: Modifiers::default() }))
}

#[tokio::test]
async fn words_mean_what_can_be_acted_upon_before_what_is_only_read() {
    let stage = Stage::showing(
        "<script>const hit = [];</script><h2 onpointerdown='hit.push(1)'>Save</h2><p>Save your work, then go on.</p> \
         <button onclick='hit.push(2)'>Save all</button><button onclick='hit.push(3)'><span>Save</span></button> \
         <p>Terms</p><a href='#' onclick='hit.push(4)'>Terms and conditions</a> \
         <label><input type=checkbox onclick='hit.push(5)'> I agree</label><div>I agree to nothing</div> \
         <section>Only <i onclick='hit.push(6)'>read</i> here</section>",
    )
    .await;
    for words in ["text=Save", "text=save all", "text=Terms", "text=I agree", "text=read", "text=\"Save\""] {
        let acted = soon(stage.page.act(&click(words))).await.expect("it is clicked");
        assert_eq!(acted.matched, 1, "{words}");
    }
    assert_eq!(stage.run("hit").await, serde_json::json!([3, 2, 4, 5, 6, 3]));
}

/// What still waits in the page for an element that comes later must not keep anybody's clicks from theirs.
#[tokio::test]
async fn an_act_that_was_given_up_leaves_nothing_behind() {
    let stage = Stage::showing(
        "<body style='margin:0'><button id=other style='width:200px;height:100px' onclick='hits++'>Other</button><script>let hits = 0;</script>",
    )
    .await;
    stage.lines().await;
    let (action, waits) = (click("#later"), stage.page.clone());
    let begun = tokio::spawn(async move { waits.act(&action).await });
    // A call behind it is answered after it reached the page.
    stage.lines().await;
    begun.abort();
    assert!(begun.await.is_err_and(|error| error.is_cancelled()));
    stage.run("document.body.insertAdjacentHTML('beforeend', '<p><button id=later>Later</button></p>'); 0").await;
    // As long as an element needs to be at rest, and longer.
    stage
        .run("new Promise((done) => { let frames = 30; const next = () => (--frames ? requestAnimationFrame(next) : done(0)); next(); })")
        .await;
    let attach = AttachToTarget { target_id: stage.page.handle().0.clone(), flatten: Some(true) };
    let session = soon(stage.browser.connection().call(None, &attach)).await.expect("our own page").session_id;
    for kind in ["mousePressed", "mouseReleased"] {
        let event = DispatchMouseEvent {
            kind: kind.into(),
            x: 50.0,
            y: 50.0,
            button: Some("left".into()),
            click_count: Some(1),
            ..DispatchMouseEvent::default()
        };
        soon(stage.browser.connection().call(Some(&session), &event)).await.expect("it is sent");
    }
    assert_eq!(stage.run("hits").await, 1, "a person's click arrives");
}

async fn listed(stage: &Stage) -> Vec<(String, String)> {
    let (elements, left) = soon(stage.page.elements()).await.expect("elements can be listed");
    assert_eq!(left, 0);
    elements.into_iter().map(|element| (element.css_selector, element.text)).collect()
}

/// S0.29
#[tokio::test]
async fn all_words_that_are_seen_are_listed_with_their_elements_and_none_that_are_not() {
    let stage = Stage::showing(
        "<pre>pretext</pre><code>c</code><p title=tip>hello <script>var hidden=1</script><i style='display:none'>no</i>world</p>\
         <div><b>bold</b></div><style>i{}</style><noscript>off</noscript><select><option>One<option selected>Two</select>\
         <svg><title>t</title><text y=20>drawn</text></svg><section style='visibility:hidden'>unseen</section>",
    )
    .await;
    let expected = [
        ("body > pre", "pretext"),
        ("body > code", "c"),
        ("body > p", "hello world"),
        ("body > div > b", "bold"),
        ("body > select", "Two"),
        ("body > svg > text", "drawn"),
    ];
    assert_eq!(listed(&stage).await, expected.map(|(selector, text)| (selector.to_owned(), text.to_owned())));
}

/// S0.29
#[tokio::test]
async fn the_words_of_a_document_that_is_no_page_are_listed() {
    let site = support::serve(|request| {
        let kind = if request.starts_with("GET /json") { "application/json" } else { "text/plain" };
        support::response(&format!("200 OK\r\nContent-Type: {kind}"), "{\"a\":1}")
    })
    .await;
    let stage = Stage::new(Want::Plain).await;
    for path in ["json", "text"] {
        soon(stage.page.navigate(Navigation::To(&format!("{site}/{path}")))).await.expect("it goes there");
        assert_eq!(listed(&stage).await, [("body > pre".to_owned(), "{\"a\":1}".to_owned())], "{path}");
    }
}
