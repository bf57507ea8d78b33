//! Pages that make a liar of a driver which only sends input: whatever they do between the look and the press, the press and the
//! release, the value and the look at it, what is said of it is an error or the truth.

use serde_json::{Value, json};
use tabmux_driver::{Bring, Chord, Click, DriverError, Verb};

use crate::act::{Stage, click, named, set};

/// How it must end.
enum Ends {
    /// As an error with these words.
    With(&'static str),
    /// As done, with these words said of it.
    Done(&'static str),
}
use Ends::{Done, With};

struct Case {
    /// What is on the page, and how that behaves.
    html: &'static str,
    script: &'static str,
    verb: Verb,
    ends: Ends,
    /// An expression over the page afterwards, and its value.
    proof: (&'static str, Value),
}

async fn all_tell_the_truth(cases: Vec<Case>) {
    let stage = Stage::at("room.html").await;
    for Case { html, script, verb, ends, proof } in cases {
        stage.furnish(html, script).await;
        let what = format!("{html} {script}");
        match ends {
            With(words) => match stage.refused(verb).await {
                DriverError::NotActionable(why) | DriverError::Unconfirmed(why) => assert!(why.contains(words), "{what}: {why}"),
                other => panic!("{what}: {other:?}"),
            },
            Done(words) => {
                let acted = stage.act(verb).await.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert!(acted.outcome.clone().unwrap_or_default().contains(words), "{what}: {acted:?}");
            }
        }
        assert_eq!(stage.run(proof.0).await, proof.1, "{what}: {}", proof.0);
    }
}

fn twice(selector: &str) -> Verb {
    let Verb::Click(one) = click(selector) else { unreachable!("a click") };
    Verb::Click(Click { count: 2, ..one })
}

fn typing(selector: &str, text: &str) -> Verb {
    Verb::Type { selector: Some(named(selector)), text: text.into() }
}

fn choosing(selector: &str, option: &str) -> Verb {
    Verb::Select { selector: named(selector), options: vec![option.into()] }
}

const CLICKED: &str = "saw('click', 'b').length";

#[tokio::test]
async fn a_click_is_told_as_it_was_whatever_happens_under_it() {
    let button = "<button id=b>Go</button>";
    let case = |html, script, ends, clicks: usize| Case { html, script, verb: click("#b"), ends, proof: (CLICKED, json!(clicks)) };
    all_tell_the_truth(vec![
        // A cover comes with the press.
        case(button, "b.onmousedown = () => room.insertAdjacentHTML('beforeend', '<div role=dialog aria-label=Cover style=\"position:fixed;inset:0\"></div>')",
            With("was covered by dialog \"Cover\""), 0),
        // Another one, alike, takes its place with the press.
        case(button, "b.onmousedown = () => { const other = b.cloneNode(true); other.id = 'other'; b.replaceWith(other); }",
            With("was replaced when it was pressed"), 0),
        // What was pressed in it is drawn anew.
        case("<button id=b><span>Go</span></button>", "b.onmousedown = () => { b.innerHTML = '<span>Go</span>'; }",
            With("was drawn anew while it was pressed"), 0),
        case(button, "b.onmousedown = () => { b.disabled = true; }", With("was disabled when it was pressed"), 0),
        case("<fieldset disabled><button id=b>Go</button></fieldset>", "", With("is disabled"), 0),
        case("<div inert><button id=b>Go</button></div>", "", With("is inert"), 0),
        case("<p style=pointer-events:none><button id=b>Go</button></p>", "", With("takes no clicks"), 0),
        case(button, "b.onmousedown = () => b.remove()", Done("It went away when it was pressed, so no click followed."), 0),
        // Far down in a box, behind a header that stays where it is.
        case("<div style='height:100px;overflow:auto'><div style='height:900px'></div><button id=b>Go</button><div style='height:900px'></div></div>",
            "", Done(""), 1),
        case("<header style='position:fixed;inset:0 0 auto;height:300px;background:#fff'>Head</header><div style='height:2000px'></div><button id=b>Go</button><div style='height:3000px'></div>",
            "scrollTo(0, 1900)", Done(""), 1),
        case("<div style='zoom:2.5;margin:40px'><button id=b style='transform:rotate(30deg) scale(.7)'>Go</button></div>", "", Done(""), 1),
        // The press on the way out: in a frame that goes under the pointer.
        case("<iframe id=f srcdoc='<button id=b style=width:200px;height:100px>Go</button>'></iframe>", "f.onmouseover = () => f.remove()",
            With(""), 0),
    ])
    .await;
    // A page that keeps its clicks to itself has them all the same.
    let hides = "window.hidden = 0; addEventListener('click', (event) => { window.hidden++; event.stopImmediatePropagation(); }, true)";
    let proof = ("window.hidden", json!(1));
    all_tell_the_truth(vec![Case { html: button, script: hides, verb: click("#b"), ends: Done(""), proof }]).await;
}

#[tokio::test]
async fn two_clicks_are_two_or_an_error() {
    let other = "const other = document.createElement('button'); other.id = 'other'; other.textContent = 'Pay'; \
                 other.style = 'position:fixed;inset:0'; room.append(other);";
    let case = |script: &'static str, ends, proof| Case { html: "<button id=b>Go</button>", script, verb: twice("#b"), ends, proof };
    let covers: &'static str = Box::leak(format!("b.onclick = () => {{ {other} }}").into_boxed_str());
    all_tell_the_truth(vec![
        case("", Done(""), ("saw('dblclick', 'b').length", json!(1))),
        case(
            covers,
            With("got 1 of 2 clicks: button \"Pay\""),
            ("[saw('click', 'b').length, saw('mousedown', 'other').length]", json!([1, 0])),
        ),
        case("b.onclick = () => b.remove()", With("got 1 of 2 clicks"), ("seen.filter(([kind]) => kind === 'dblclick').length", json!(0))),
    ])
    .await;
}

/// Where a finger comes down on one thing and is lifted from another, the other is spared.
#[tokio::test]
async fn a_finger_that_slips_clicks_nothing_else() {
    let tap = Verb::Tap { selector: named("#b"), bring: Bring::IntoView };
    let script = "b.ontouchstart = () => { b.style.marginTop = '300px'; trap.style.display = 'block'; }";
    let html = "<button id=b style='width:200px;height:60px'>Go</button><button id=trap \
                style='display:none;position:absolute;left:0;top:0;width:220px;height:90px'>Trap</button>";
    all_tell_the_truth(vec![Case {
        html,
        script,
        verb: tap,
        ends: Done(""),
        proof: ("[saw('click', 'b').length, saw('click', 'trap').length]", json!([1, 0])),
    }])
    .await;
}

#[tokio::test]
async fn a_value_is_told_as_the_page_has_it() {
    let case = |html, script, value: &str, ends, kept: Value| Case {
        html,
        script,
        verb: set("#f", value),
        ends,
        proof: ("document.getElementById('f')?.value ?? document.getElementById('f')?.textContent ?? null", kept),
    };
    let input = "<input id=f>";
    all_tell_the_truth(vec![
        // As frameworks do that hold the value themselves.
        case(
            "<input id=f value=old>",
            "f.oninput = () => { f.value = 'old'; }",
            "new",
            With("did not keep the value: it is \"old\" now"),
            json!("old"),
        ),
        // Drawn anew with each letter: with the value, and without.
        case(
            input,
            "f.oninput = () => { const other = f.cloneNode(); other.value = f.value; f.replaceWith(other); }",
            "new",
            Done("It is \"new\" now."),
            json!("new"),
        ),
        case(
            input,
            "f.oninput = () => { room.innerHTML = '<input id=f>'; }",
            "new",
            With("did not keep the value: it is \"\" now"),
            json!(""),
        ),
        case(input, "f.oninput = () => f.remove()", "new", With("went away"), json!(null)),
        // A sign or a point that is lost makes another number of it; a mask does not.
        case(input, "f.oninput = () => { f.value = f.value.replace('-', ''); }", "-5", With("it is \"5\" now"), json!("5")),
        case(input, "f.oninput = () => { f.value = f.value.replace('.', ''); }", "1.5", With("it is \"15\" now"), json!("15")),
        case(
            input,
            "f.oninput = () => { f.value = f.value.replace(/(\\d)(?=(\\d{3})+$)/g, '$1,'); }",
            "1234567",
            Done("The page made it \"1,234,567\"."),
            json!("1,234,567"),
        ),
        case(
            "<input id=f type=password>",
            "f.oninput = () => { f.value = f.value.toUpperCase(); }",
            "hunter",
            With("it is 6 characters now"),
            json!("HUNTER"),
        ),
        case("<input id=f maxlength=3>", "", "abcdef", With("It takes 3 characters"), json!("abc")),
        case("<input id=f type=number>", "", "12abc", With("did not keep the value"), json!("12")),
        case("<input id=f type=date>", "", "2026-02-30", With("takes a value such as 2026-12-31"), json!("")),
        case("<input id=f type=email>", "", "a@b.test", Done("It is"), json!("a@b.test")),
        case("<fieldset disabled><input id=f></fieldset>", "", "x", With("is disabled"), json!("")),
        // The keys that a date is set by are the page's to keep.
        case(
            "<input id=f type=date value=2026-01-01>",
            "f.onkeydown = (event) => event.preventDefault()",
            "2026-05-05",
            With("keeps the keys from it"),
            json!("2026-01-01"),
        ),
        case(
            "<input id=f type=range value=5 max=10>",
            "f.onkeydown = (event) => event.preventDefault()",
            "8",
            With("keeps the keys from it"),
            json!("5"),
        ),
        case(
            "<input id=f type=checkbox value=v>",
            "f.onclick = (event) => event.preventDefault()",
            "true",
            With("the page set it back"),
            json!("v"),
        ),
        case(
            "<div id=f contenteditable>old</div>",
            "f.oninput = () => { f.textContent = 'old'; }",
            "new",
            With("did not keep the value"),
            json!("old"),
        ),
        case(
            "<select id=f><option>a<option>b</select>",
            "f.onchange = () => { f.value = 'a'; }",
            "b",
            With("did not keep the choice"),
            json!("a"),
        ),
        // Another field takes the focus away in the last moment.
        case(
            "<input id=f><input id=thief>",
            "f.onfocus = () => queueMicrotask(() => thief.focus())",
            "new",
            With("lost the focus"),
            json!(""),
        ),
    ])
    .await;
}

#[tokio::test]
async fn keys_are_told_where_they_went() {
    let case = |html, script, verb, ends, proof| Case { html, script, verb, ends, proof };
    let press = |key: &str| Verb::Press { selector: Some(named("#f")), chord: Chord::parse(key).expect("a key") };
    let thief = "<input id=f><input id=thief>";
    let steal = "f.onfocus = () => queueMicrotask(() => thief.focus())";
    let untouched = ("[f.value, thief.value, saw('keydown', 'thief').length]", json!(["", "", 0]));
    let digits = "for (const one of room.children) one.oninput = () => one.nextElementSibling?.focus()";
    all_tell_the_truth(vec![
        case(thief, steal, typing("#f", "abc"), With("lost the focus before the keys came: textbox"), untouched.clone()),
        case(thief, steal, typing("#f", "\u{4e16}"), With("lost the focus before the keys came"), untouched.clone()),
        case(thief, steal, press("a"), With("lost the focus before the keys came"), untouched),
        case(
            "<input id=f maxlength=3>",
            "",
            typing("#f", "abcdef"),
            With("did not take all of the text: it is \"abc\" now. It takes 3"),
            ("f.value", json!("abc")),
        ),
        case(
            "<input id=f type=number>",
            "",
            typing("#f", "1x2"),
            Done("It is \"12\" now, which is not all of the text."),
            ("f.value", json!("12")),
        ),
        case(
            "<input id=f maxlength=1><input maxlength=1><input maxlength=1>",
            digits,
            typing("#f", "123"),
            Done("It is \"1\" now, which is not all"),
            ("[...room.children].map((one) => one.value)", json!(["1", "2", "3"])),
        ),
        case(
            "<input id=f>",
            "f.onkeydown = (event) => event.preventDefault()",
            typing("#f", "abc"),
            With("did not take the text"),
            ("f.value", json!("")),
        ),
        case(
            "<form onsubmit='f.value = \"\"; return false'><input id=f></form>",
            "",
            typing("#f", "abc\n"),
            Done("It is \"\" now."),
            ("saw('submit', 'form').length", json!(1)),
        ),
        case("<input id=f disabled>", "", press("a"), With("is disabled"), ("f.value", json!(""))),
    ])
    .await;
}

#[tokio::test]
async fn a_choice_that_a_list_did_not_take_is_no_success() {
    let list = "<div id=f role=listbox tabindex=0 aria-label=Size><div role=option id=s>Small</div><div role=option id=l>Large</div></div>";
    let combo = "<div id=f role=combobox tabindex=0 aria-label=Size aria-expanded=false>None<div role=listbox hidden><div role=option id=l>Large</div></div></div>";
    let opens = "f.onclick = (event) => { const list = f.querySelector('[role=listbox]'); list.hidden = !list.hidden; }";
    all_tell_the_truth(vec![
        Case {
            html: list,
            script: "",
            verb: choosing("#f", "Large"),
            ends: With("does not show that"),
            proof: ("saw('click', 'l').length", json!(1)),
        },
        Case {
            html: list,
            script: "l.onclick = () => l.setAttribute('aria-selected', 'true')",
            verb: choosing("#f", "Large"),
            ends: Done("Chosen: \"Large\""),
            proof: ("saw('click', 'l').length", json!(1)),
        },
        Case {
            html: combo,
            script: opens,
            verb: choosing("#f", "Large"),
            ends: With("does not show that"),
            proof: ("f.innerText.trim()", json!("None")),
        },
    ])
    .await;
}

#[tokio::test]
async fn a_drag_that_the_page_did_not_want_says_so() {
    let drag = || Verb::Drag { from: named("#b"), to: named("#goal") };
    let html = "<div id=b draggable=true style='width:80px;height:40px'>Card</div><div id=goal style='width:200px;height:80px;margin-top:60px'>Goal</div>";
    let taken = "goal.ondragover = (event) => event.preventDefault(); goal.ondrop = () => { goal.textContent = 'Got'; };";
    let refuses: &'static str = Box::leak(format!("{taken} b.ondragstart = (event) => event.preventDefault()").into_boxed_str());
    let covered =
        "<div id=b style='width:80px;height:40px'>Card</div><div id=goal style='width:200px;height:80px;margin-top:60px'>Goal</div>";
    all_tell_the_truth(vec![
        Case { html, script: refuses, verb: drag(), ends: Done("does not let the browser drag it"), proof: ("goal.textContent", json!("Goal")) },
        Case { html, script: "", verb: drag(), ends: With("did not take what was dropped on it"), proof: ("goal.textContent", json!("Goal")) },
        Case { html: covered, script: "addEventListener('mousemove', ({ buttons }) => { if (buttons) goal.style.marginTop = '500px'; }, { once: false })", verb: drag(), ends: Done("Onto"), proof: ("1", json!(1)) },
        Case { html: covered, script: "addEventListener('mousemove', ({ buttons, clientY }) => { if (buttons && clientY > 120) goal.style.marginTop = '500px'; })", verb: drag(),
            ends: Done("was not under the pointer any more"), proof: ("saw('pointerup', 'goal').length", json!(0)) },
    ])
    .await;
}
