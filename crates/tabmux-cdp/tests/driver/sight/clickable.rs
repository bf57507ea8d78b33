//! Nothing that can be clicked is missing. What counts: what the pointer is a hand over, what has `onclick`, and what a script
//! listens for clicks on. The first two have a ref, or are in something that has one. Of the third a script cannot be asked from
//! outside, and often it is a whole page that listens for all that is in it: what such an element says is told, and `text=` means it.

use serde_json::{Value, json};
use tabmux_cdp::protocol::page::{AddScriptToEvaluateOnNewDocument, Enable};
use tabmux_cdp::protocol::target::AttachToTarget;

use super::agrees::documentation;
use super::*;
use crate::fixtures;

/// Marks what scripts listen for clicks on.
const MARKS: &str = "const add = EventTarget.prototype.addEventListener; EventTarget.prototype.addEventListener = function (kind, ...rest) { \
    if (/^(click|mousedown|pointerdown|mouseup)$/.test(kind) && this instanceof Element) this.setAttribute('data-heard', ''); \
    return add.call(this, kind, ...rest); };";

/// In our own world: what can be clicked and has no ref, nor is in, or around, something that has; and what is listened on.
const LOOKS: &str = "(() => {
  const told = new Set(REFS.map((ref) => tabmux.call('find', { by: 'ref', ref }, 1, 1).value.element).filter(Boolean));
  const within = (element) => { for (let at = element; at; at = at.parentElement ?? at.getRootNode().host) if (told.has(at)) return true; return false; };
  const around = (element) => [...element.querySelectorAll('*')].some((one) => told.has(one));
  const shown = (element) => { const { width, height } = element.getBoundingClientRect(); return width > 1 && height > 1 &&
    element.checkVisibility({ visibilityProperty: true, opacityProperty: true }) && !element.closest('[aria-hidden=true], [inert], option, datalist'); };
  const hand = (element) => getComputedStyle(element).cursor === 'pointer';
  const all = [...document.querySelectorAll('body *')].filter(shown);
  const clickable = all.filter((element) => element.hasAttribute('onclick') || (hand(element) && !hand(element.parentElement)));
  const missing = clickable.filter((element) => !within(element) && !around(element)).map((element) => element.outerHTML.slice(0, 200));
  const heard = all.filter((element) => element.hasAttribute('data-heard') && !element.querySelector('[data-heard]') && !within(element));
  return { clickable: clickable.length, missing, heard: heard.map((element) => element.innerText ?? '') };
})()";

async fn check(stage: &Stage, what: &str) -> u64 {
    let text = stage.see(&Sight { rows: Rows::All, budget: 10_000_000, ..Sight::default() }).await.text;
    let refs: Vec<u32> = text.split(|c: char| !c.is_ascii_alphanumeric()).filter_map(|word| word.strip_prefix('e')?.parse().ok()).collect();
    let looks = LOOKS.replace("REFS", &json!(refs).to_string());
    let seen = soon(support::in_our_world(&stage.browser, &stage.page, &looks)).await;
    assert_eq!(seen["missing"], json!([]), "{what}:\n{text}");
    let plain = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
    let told = plain(&text);
    for words in seen["heard"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        let first: String = plain(words.lines().find(|line| !line.trim().is_empty()).unwrap_or_default()).chars().take(40).collect();
        assert!(told.contains(&first), "{what}: {first:?} is listened on and not told:\n{text}");
    }
    seen["clickable"].as_u64().unwrap_or_else(|| panic!("{what}: {seen}"))
}

async fn marking() -> Stage {
    let stage = Stage::new(Want::Plain).await;
    let connection = stage.browser.connection();
    let attach = AttachToTarget { target_id: stage.page.handle().0.clone(), flatten: Some(true) };
    let session = connection.call(None, &attach).await.expect("our own page").session_id;
    connection.call(Some(&session), &Enable::default()).await.expect("it listens");
    let script = AddScriptToEvaluateOnNewDocument { source: MARKS.into(), ..AddScriptToEvaluateOnNewDocument::default() };
    connection.call(Some(&session), &script).await.expect("it takes a script");
    stage
}

#[tokio::test]
async fn what_has_no_words_can_be_clicked_all_the_same() {
    let stage = Stage::showing(
        "<style>.hand { cursor: pointer } i { display: inline-block; width: 20px; height: 20px }</style>\
         <p>Text <i class=hand title=Remove></i><p><i class=hand></i>\
         <div class=hand style='width:40px'><svg width=20 height=20><path d='M0 0h20v20H0z'/></svg></div>\
         <img width=20 height=20 class=hand alt=Close src='data:,'><img width=20 height=20 onclick='1' alt='' src='data:,'>\
         <div class=hand>Card <img width=20 height=20 alt=Photo src='data:,'></div><h2 onclick='1'>Fold</h2>\
         <div role=separator tabindex=0 aria-label=Divide></div><hr><i></i><a class=hand style='width:0;height:0;display:block'></a>\
         <button><i class=hand></i>Send</button>",
    )
    .await;
    let expected = "\"Text\" e1 clickable \"Remove\"\ne2 clickable\ne3 clickable\ne4 image \"Close\"\ne5 clickable\n\
                    e6 clickable \"Card\" image \"Photo\"\ne7 ## \"Fold\"\ne8 separator \"Divide\"\ne9 button \"Send\"";
    assert_eq!(stage.lines().await, expected);
}

#[tokio::test]
async fn nothing_that_can_be_clicked_is_missing_on_pages_for_acting() {
    let (stage, site) = (marking().await, fixtures::site().await);
    for page in ["todo", "drag", "frames", "shadow", "canvas", "endless", "modal", "slow", "spa", "form", "wrong"] {
        soon(stage.page.navigate(Navigation::To(&format!("{site}/{page}.html")))).await.expect("it goes there");
        check(&stage, page).await;
    }
}

#[tokio::test]
async fn nothing_that_can_be_clicked_is_missing_on_documentation_pages() {
    let stage = marking().await;
    let mut all = 0;
    for path in documentation() {
        soon(stage.page.navigate(Navigation::To(&format!("file://{}", path.display())))).await.expect("it opens");
        all += check(&stage, &path.display().to_string()).await;
    }
    assert!(all >= 500, "{all}");
}
