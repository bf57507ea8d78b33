//! Fields of every kind, in frames and shadow roots too: what they keep, and what the page saw of it.

use serde_json::json;
use tabmux_driver::{Chord, DriverError, Verb};

use crate::act::{Stage, click, named, set};

#[tokio::test]
async fn every_kind_of_field_takes_its_value_and_the_page_sees_trusted_events() {
    let stage = Stage::at("form.html").await;
    let fields = [
        ("#name", "Ann Öst", json!("Ann Öst")),
        ("~Secret", "hunter2", json!("hunter2")),
        ("#number", "-1.5", json!("-1.5")),
        ("#about", "new\nwords", json!("new\nwords")),
        ("#day", "2026-01-31", json!("2026-01-31")),
        ("#time", "23:59", json!("23:59")),
        ("#month", "2026-12", json!("2026-12")),
        ("#week", "2026-W07", json!("2026-W07")),
        ("#moment", "2026-01-31T08:05", json!("2026-01-31T08:05")),
        ("#volume", "7", json!("7")),
        ("#colour", "#FF8800", json!("#ff8800")),
        ("#fruit", "Quince", json!("q")),
    ];
    for (selector, value, kept) in fields {
        let acted = stage.set(selector, value).await;
        let id = if selector == "~Secret" { "secret" } else { &selector[1..] };
        assert_eq!(stage.run(&format!("document.getElementById('{id}').value")).await, kept, "{selector}: {acted:?}");
        let inputs = stage.saw("input", id).await;
        assert_eq!(inputs.as_array().and_then(|all| all.last()), Some(&json!([true, kept])), "{selector}: {inputs}");
        assert!(!acted.outcome.unwrap_or_default().contains("hunter2"), "a password is not repeated");
    }
    assert_eq!(stage.saw("change", "colour").await, json!([[true, "#ff8800"]]));
    assert_eq!(stage.run("[colour.type, seen.filter(([, , trusted]) => !trusted)]").await, json!(["color", []]));
    stage.set("#rich", "Twice told").await;
    assert_eq!(stage.run("rich.innerText").await, json!("Twice told"));
    stage.set("#name", "").await;
    assert_eq!(stage.run("document.getElementById('name').value").await, json!(""));
}

#[tokio::test]
async fn boxes_switches_and_radios_are_set_and_stay_when_they_are_so_already() {
    let stage = Stage::at("form.html").await;
    for (selector, id) in [("#agree", "agree"), ("#styled", "styled"), ("#blue", "blue")] {
        stage.set(selector, "true").await;
        stage.set(selector, "true").await;
        assert_eq!(stage.run(&format!("{id}.checked")).await, json!(true), "{selector}");
        assert_eq!(stage.run(&format!("saw('change', '{id}').length")).await, json!(1), "once is enough");
    }
    stage.set("#agree", "false").await;
    assert_eq!(stage.run("agree.checked").await, json!(false));
    stage.set("role=switch[name=Wireless]", "on").await;
    assert_eq!(stage.run("document.getElementById('switch').getAttribute('aria-checked')").await, json!("true"));
    assert!(matches!(stage.refused(set("#blue", "false")).await, DriverError::NotActionable(_)));
    assert!(matches!(stage.refused(set("#agree", "perhaps")).await, DriverError::NotActionable(_)));
}

#[tokio::test]
async fn lists_of_every_make_are_chosen_from() {
    let stage = Stage::at("form.html").await;
    let choose = |selector: &str, options: &[&str]| Verb::Select {
        selector: named(selector),
        options: options.iter().map(|option| (*option).to_owned()).collect(),
    };
    for (label, value) in [("Apple", "a"), ("q", "q"), ("none", "")] {
        stage.act(choose("#fruit", &[label])).await.unwrap_or_else(|error| panic!("{label}: {error}"));
        assert_eq!(stage.run("fruit.value").await, json!(value));
        assert_eq!(stage.run("seen.findLast(([kind]) => kind === 'change')").await, json!(["change", "fruit", true, value]));
    }
    stage.act(choose("#tags", &["two", "four"])).await.expect("two are chosen");
    assert_eq!(stage.run("[...tags.selectedOptions].map((one) => one.text)").await, json!(["two", "four"]));
    let acted = stage.set("#tags", "two").await;
    assert_eq!(
        (stage.run("[...tags.selectedOptions].map((one) => one.text)").await, acted.outcome.as_deref()),
        (json!(["two"]), Some("Chosen: \"two\"."))
    );
    let acted = stage.act(choose("~Size", &["Large"])).await.expect("it is chosen");
    assert_eq!((stage.run("combo.textContent").await, acted.outcome.as_deref()), (json!("Large"), Some("Chosen: \"Large\".")));
    assert_eq!(stage.saw("click", "large").await[0][0], json!(true));
    stage.set("#combo", "Small").await;
    assert_eq!(stage.run("combo.textContent").await, json!("Small"));
    for (selector, option, words) in
        [("#fruit", "Kiwi", "has no option \"Kiwi\""), ("#fruit", "Pear", "is disabled"), ("#combo", "Huge", "has no option")]
    {
        let DriverError::NotActionable(why) = stage.refused(choose(selector, &[option])).await else { panic!("{option}") };
        assert!(why.contains(words), "{why}");
    }
    assert!(matches!(stage.refused(click("#fruit")).await, DriverError::NativeList(_)));
}

/// A value that the page takes back, cuts or refuses is never told as set.
#[tokio::test]
async fn a_value_that_did_not_stick_is_an_error() {
    let stage = Stage::at("form.html").await;
    for (selector, value, words) in [
        ("#reset", "abc", "did not keep the value"),
        ("#short", "abcdef", "It takes 3 characters"),
        ("#locked", "x", "is read-only"),
        ("#number", "many", "did not keep the value"),
        ("#day", "31.1.2026", "takes a value such as 2026-12-31"),
        ("#volume", "11", "takes 0 to 10"),
        ("#colour", "orange", "takes a colour such as"),
        ("#file", "/etc/passwd", "upload_file"),
        ("#send", "x", "takes no value"),
    ] {
        let DriverError::NotActionable(why) = stage.refused(set(selector, value)).await else { panic!("{selector}") };
        assert!(why.contains(words), "{selector}: {why}");
    }
    for ms in [0, 20, 50] {
        stage
            .run(&format!(
                "document.getElementById('name').oninput = ({{ target }}) => setTimeout(() => {{ target.value = ''; }}, {ms}); 0"
            ))
            .await;
        let DriverError::NotActionable(why) = stage.refused(set("#name", "abc")).await else { panic!("taken back after {ms} ms") };
        assert!(why.contains("did not keep the value: it is \"\" now"), "{ms}: {why}");
    }
    let acted = stage.set("#mask", "1234").await;
    assert_eq!(acted.outcome.as_deref(), Some("The page made it \"12-34\"."));
}

#[tokio::test]
async fn keys_need_a_focus_and_do_what_they_do() {
    let stage = Stage::at("form.html").await;
    let typed = |text: &str, into: Option<&str>| Verb::Type { selector: into.map(named), text: text.into() };
    let press = |key: &str| Verb::Press { selector: None, chord: Chord::parse(key).expect("a key") };
    assert_eq!(stage.refused(typed("x", None)).await, DriverError::NothingFocused);
    assert!(matches!(stage.refused(typed("x", Some("#locked"))).await, DriverError::NotActionable(_)));
    stage.act(typed("Ann \u{4e16}!", Some("#name"))).await.expect("it is typed");
    stage.act(press("Tab")).await.expect("it is pressed");
    stage.act(typed("secret", None)).await.expect("it is typed where the focus went");
    assert_eq!(stage.run("[document.getElementById('name').value, secret.value]").await, json!(["Ann \u{4e16}!", "secret"]));
    assert_eq!(stage.saw("keydown", "name").await.as_array().map(Vec::len), Some(6), "five keys and the tab; one sign has no key");
    stage.act(press("Enter")).await.expect("it is pressed");
    assert_eq!(stage.run("document.title").await, json!("Sent Ann \u{4e16}!"));
}

#[tokio::test]
async fn frames_of_the_same_and_of_another_origin_are_acted_in() {
    let stage = Stage::at("frames.html").await;
    let inside = "const heard = (frame) => [frame.contentWindow.saw('click', 'press').length, frame.contentWindow.word.value];";
    stage.click("text=\"Press same\"").await;
    stage.set("~Word same", "near").await;
    assert_eq!(stage.run(&format!("{inside} heard(same)")).await, json!([1, "near"]));
    let pressed = stage.click("text=\"Press other\"").await;
    assert!(pressed.target.ends_with("button \"Press other\""), "{pressed:?}");
    stage.set("~Word other", "far").await;
    stage.act(Verb::Type { selector: None, text: " away".into() }).await.expect("the focus is there");
    // What that frame saw, it says itself: the page around it may not look.
    stage.click("role=link[name=Leave]").await;
    stage.click("text=\"Press left\"").await;
}

#[tokio::test]
async fn shadow_roots_are_looked_into() {
    let stage = Stage::at("shadow.html").await;
    stage.click("#inopen").await;
    stage.click("text=Deep").await;
    stage.set("~Open field", "found").await;
    assert_eq!(stage.run("document.getElementById('open').shadowRoot.getElementById('field').value").await, json!("found"));
    assert_eq!(stage.run("[saw('click', 'inopen').length, saw('click', 'deep').length]").await, json!([1, 1]));
    let target = stage.click("text=\"Behind doors\"").await.target;
    stage.click("#inclosed").await;
    stage.click(target.split(' ').next().expect("a ref")).await;
    assert_eq!(stage.run("closedSaw").await, json!([true, true, true]));
    stage.run("document.getElementById('closed').style.pointerEvents = 'none'").await;
    assert!(matches!(stage.refused(click("#inclosed")).await, DriverError::NotActionable(_)));
}
