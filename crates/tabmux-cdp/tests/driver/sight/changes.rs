//! What is said of a page after something was done to it.

use super::*;

async fn changes(stage: &Stage) -> tabmux_driver::Changes {
    soon(stage.page.changes(500)).await.expect("a page can be compared")
}

#[tokio::test]
async fn what_was_added_removed_and_changed_is_said_and_nothing_else() {
    let stage = Stage::showing("<h1>List</h1><ul><li>one<li>two</ul><label>Name <input></label>").await;
    assert_eq!(changes(&stage).await.text, "", "nobody looked before");
    assert_eq!(changes(&stage).await, tabmux_driver::Changes::default());
    stage
        .run(
            "document.querySelector('li').remove(); document.querySelector('input').value = 'Ann'; \
        document.body.insertAdjacentHTML('beforeend', '<div role=alert>Saved</div>'); console.error('no milk'); 0",
        )
        .await;
    let said = changes(&stage).await;
    assert_eq!(said.text, "~ e1 textbox \"Name\" = \"Ann\"\n+ alert: \"Saved\"\n- - \"one\"");
    assert_eq!((said.errors, said.moved, said.unsettled), (vec!["no milk".to_owned()], false, false));
    assert_eq!(changes(&stage).await, tabmux_driver::Changes::default());
}

#[tokio::test]
async fn errors_of_a_document_that_was_left_before_the_act_are_not_told_with_it() {
    let stage = Stage::showing("<script>console.error('long ago')</script>").await;
    stage.show("<script>console.error('here')</script><button onclick=\"console.error('clicked')\">Go</button>").await;
    soon(stage.page.act(&super::words::click("button"))).await.expect("it is clicked");
    assert_eq!(changes(&stage).await.errors, ["here", "clicked"]);
    assert!(stage.page.take_log().0.iter().any(|entry| entry.text == "long ago"), "it stays in the log");
}

/// Nobody has to look first.
#[tokio::test]
async fn what_the_very_first_act_changed_is_said() {
    let stage = Stage::showing("<button onclick=\"o.textContent = 'Card declined'\">Pay</button><p id=o>x</p>").await;
    soon(stage.page.act(&super::words::click("button"))).await.expect("it is clicked");
    assert_eq!(changes(&stage).await.text, "~ e1 button \"Pay\" focused\n+ \"Card declined\"\n- \"x\"");
}

#[tokio::test]
async fn what_a_page_does_in_its_next_frames_is_waited_for() {
    let stage = Stage::showing("<p>before</p>").await;
    stage.lines().await;
    stage.run("requestAnimationFrame(() => { document.body.append('first'); requestAnimationFrame(() => document.body.append(' second')); }); 0").await;
    assert_eq!(changes(&stage).await.text, "+ \"first second\"");
}

/// Who counts frames misses timers, and who waits for a while waits for nothing most of the time.
#[tokio::test]
async fn what_a_page_does_by_its_next_timers_is_waited_for() {
    let stage = Stage::showing("<p>before</p>").await;
    stage.lines().await;
    let append = |what: &str| format!("document.body.insertAdjacentHTML('beforeend', '<p>{what}</p>')");
    let timer = |ms: u32, what: String| format!("setTimeout(() => {{ {what} }}, {ms})");
    let cases = [
        ("at once", timer(0, append("at once"))),
        ("after 10", timer(10, append("after 10"))),
        ("after 50", timer(50, append("after 50"))),
        ("in turn", timer(15, timer(15, timer(15, append("in turn"))))),
        ("beside a clock", format!("setInterval(() => 0, 5); {}", timer(40, append("beside a clock")))),
        (
            "in a message",
            format!(
                "const {{ port1, port2 }} = new MessageChannel(); port1.onmessage = () => {{ {} }}; port2.postMessage(0)",
                append("in a message")
            ),
        ),
    ];
    for (what, script) in cases {
        stage.run(&format!("{{ {script} }} 0")).await;
        assert_eq!(changes(&stage).await.text, format!("+ {what:?}"));
    }
}

#[tokio::test]
async fn a_page_that_goes_elsewhere_is_waited_for_and_its_beginning_told() {
    let site = support::site(|path| format!("<h1>{path}</h1><a href=/next>Next</a>")).await;
    let stage = Stage::new(Want::Plain).await;
    soon(stage.page.navigate(Navigation::To(&format!("{site}/first")))).await.expect("it goes there");
    stage.lines().await;
    stage.run("document.querySelector('a').click(); 0").await;
    let said = changes(&stage).await;
    assert!(said.moved && said.text.starts_with("# \"/next\"\n") && !said.unsettled, "{said:?}");
    stage.run("history.pushState(0, '', '/pushed'); document.querySelector('h1').textContent = 'Pushed'; 0").await;
    let said = changes(&stage).await;
    assert!(said.moved && said.text == "+ # \"Pushed\"\n- # \"/next\"", "{said:?}");
    assert!(stage.page.url().ends_with("/pushed"));
}

#[tokio::test]
async fn a_great_change_is_bounded() {
    let stage = Stage::showing("<p>before</p>").await;
    stage.lines().await;
    stage.run("for (let n = 0; n < 1000; n++) document.body.insertAdjacentHTML('beforeend', `<p>New paragraph ${n}</p>`); 0").await;
    let said = changes(&stage).await;
    assert!(costs::tokens(&said.text) < 600 && said.text.ends_with("more changes; snapshot shows the page"), "{}", said.text);
}
