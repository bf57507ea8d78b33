//! What is in a password field is not told, however the page shows it to the person.

use tabmux_driver::{Reading, Sight, Verb};

use crate::act::{Stage, click, named, set, soon};

const SECRET: &str = "hunter2";

/// `p` is the field; `t` shows what is in it. Something is called by what is in the field.
const FORM: &str = "<form><label>Word <input id=p type=password></label><button id=t type=button>Show</button></form> \
    <div role=group aria-labelledby=p>Group</div><p>Read <input id=other></p>";

/// Everything that a reader can be told of the page, and what `verbs` came to.
async fn told(stage: &Stage, verbs: Vec<Verb>) -> String {
    let mut told = soon(stage.page.snapshot(&Sight::default())).await.expect("a page can be seen").text;
    for verb in verbs {
        told += &format!("\n{:?}", stage.act(verb).await);
        told += &format!("\n{}", soon(stage.page.changes(1000)).await.expect("a page can be compared").text);
    }
    told += &format!("\n{}", soon(stage.page.snapshot(&Sight::default())).await.expect("a page can be seen").text);
    told += &format!("\n{:?}", soon(stage.page.elements()).await.expect("elements can be listed"));
    told += &format!("\n{:?}", soon(stage.page.read(&Reading::default())).await.expect("a page can be read"));
    told
}

fn type_into(selector: &str) -> Verb {
    Verb::Type { selector: Some(named(selector)), text: SECRET.into() }
}

#[tokio::test]
async fn a_password_that_the_page_shows_is_told_to_nobody() {
    let stage = Stage::at("room.html").await;
    let another = "const n = document.createElement('input'); n.id = 'p'; n.value = p.value; p.value = ''; p.replaceWith(n);";
    for (how, script, verbs) in [
        ("as a field for text", "t.onclick = () => { p.type = 'text' }", vec![set("#p", SECRET), click("#t")]),
        ("and takes another", "t.onclick = () => { p.type = 'text' }", vec![set("#p", "before"), click("#t"), set("#p", SECRET)]),
        ("and is typed into", "p.type = 'text'; p.autocomplete = 'section-a new-password'", vec![type_into("#p")]),
        (
            "in another field",
            &format!("t.onmousedown = (e) => e.preventDefault(); t.onclick = () => {{ {another} }}"),
            vec![type_into("#p"), click("#t")],
        ),
        ("in another field at once", &format!("p.oninput = () => {{ {another} }}"), vec![set("#p", SECRET)]),
        ("beside it", "t.onclick = () => { other.value = p.value; p.value = '' }", vec![set("#p", SECRET), click("#t")]),
    ] {
        stage.furnish(FORM, script).await;
        let told = told(&stage, verbs).await;
        assert!(!told.contains(SECRET) && told.contains("Ok("), "{how}: {told}");
        assert!(told.contains("password filled shown"), "that it is there is said. {how}: {told}");
    }
}

/// Nobody looked while it was a password field.
#[tokio::test]
async fn a_field_that_shows_its_password_between_two_looks_is_known_as_one() {
    let stage = Stage::at("room.html").await;
    stage.furnish("<p id=place></p>", "").await;
    told(&stage, vec![]).await;
    stage.run(&format!("place.innerHTML = `{FORM}`; p.value = '{SECRET}'; p.type = 'text'; 0")).await;
    let told = told(&stage, vec![]).await;
    assert!(!told.contains(SECRET) && told.contains("textbox \"Word\" password filled shown"), "{told}");
}

/// Words that are no secret are not kept from anybody because there is one.
#[tokio::test]
async fn other_fields_say_what_is_in_them() {
    let stage = Stage::at("room.html").await;
    stage.furnish("<input id=p type=password value=on><input id=code autocomplete=one-time-code><input type=checkbox checked>", "").await;
    let told = told(&stage, vec![set("#p", "yes"), set("#code", "123456"), set("#p", SECRET), set("#code", "yes")]).await;
    assert!(told.contains("= \"123456\"") && told.contains("= \"yes\"") && !told.contains("shown"), "{told}");
    assert!(!told.contains(SECRET), "{told}");
}
