//! Nothing an agent writes becomes a command of the protocol: words stay words.

use std::time::Duration;

use serde_json::Value;
use tabmux_driver::{
    Action, Area, Awaited, Browser, ContextSpec, Cookie, DialogAnswer, ImageFormat, Navigation, Selector, Shot, StorageArea, UrlPattern,
    Verb,
};

use crate::support;

/// Method names, a target's id in the place of a word, and words that try to break out of their frame.
const WORDS: [&str; 5] = [
    "Browser.close",
    "Target.closeTarget",
    "\",\"method\":\"Browser.close\",\"x\":\"",
    "\0{\"id\":1,\"method\":\"Browser.close\"}\0",
    "'}}]); Target.disposeBrowserContext",
];

#[tokio::test]
async fn no_word_of_an_agent_becomes_a_command() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let context = browser.open_context(&ContextSpec::default()).await.expect("a context opens");
    let (page, other) = (context.open_page().await.expect("a page opens"), context.open_page().await.expect("a page opens"));
    page.navigate(Navigation::To(&format!("{site}/"))).await.expect("it goes there");
    let tap = browser.connection().tap(1000);
    let soon = Duration::from_millis(300);
    for word in WORDS.iter().map(|word| (*word).to_owned()).chain([other.handle().0.clone()]) {
        let awaited = Awaited {
            text: Some(word.clone()),
            selector: None,
            url: Some(UrlPattern(word.clone())),
            gone: Some(word.clone()),
            ..Awaited::default()
        };
        let cookie = Cookie { name: word.clone(), value: word.clone(), domain: word.clone(), path: word.clone(), ..Cookie::default() };
        let selector = Selector::parse(&word).expect("it reads as CSS");
        let shot = Shot { area: Area::Element(selector.clone()), format: ImageFormat::Png, max_side: None };
        let act = |verb| Action { verb, patience: Duration::ZERO };
        let set = act(Verb::SetValue { selector: selector.clone(), value: word.clone() });
        let typed = act(Verb::Type { selector: Some(selector), text: word.clone() });
        let item = [(word.clone(), Some(word.clone()))];
        // What comes of each is of no matter here.
        let _ = tokio::time::timeout(soon, page.evaluate(&word)).await;
        let _ = tokio::time::timeout(soon, page.wait_for(&awaited)).await;
        let _ = tokio::time::timeout(soon, page.screenshot(&shot)).await;
        let _ = tokio::time::timeout(soon, page.act(&set)).await;
        let _ = tokio::time::timeout(soon, page.act(&typed)).await;
        let _ = tokio::time::timeout(soon, page.set_storage(StorageArea::Local, &item)).await;
        let _ = tokio::time::timeout(soon, context.set_cookies(&[cookie])).await;
        let _ = tokio::time::timeout(soon, page.answer_dialog(DialogAnswer::Accept { prompt: Some(word.clone()) })).await;
        let _ = tokio::time::timeout(soon, page.navigate(Navigation::To(&word))).await;
    }
    assert_eq!(tap.dropped(), 0);
    for sent in tap.sent() {
        let domain = sent.method.split('.').next().unwrap_or_default();
        assert!(!["Browser", "Target"].contains(&domain), "{sent:?}");
        if let Ok(Value::Object(frame)) = serde_json::from_str::<Value>(&sent.frame) {
            assert_eq!(frame["method"], sent.method, "{sent:?}");
        }
        assert_eq!(sent.frame.matches("\0").count(), 0, "{sent:?}");
    }
    for page in [page, other] {
        page.navigate(Navigation::To(&format!("{site}/"))).await.expect("the page and its browser live");
    }
}

/// What is too long for the pipe is left out and told of. It neither ends the browser for everybody nor keeps the page waiting.
#[tokio::test]
async fn a_page_that_says_more_than_can_be_carried_takes_nobody_with_it() {
    let browser = support::full_chromium(None).await;
    let site = support::site(|_| "hello".into()).await;
    let open = async || {
        let page = browser.open_context(&ContextSpec::default()).await.expect("a context opens").open_page().await.expect("a page opens");
        page.navigate(Navigation::To(&format!("{site}/"))).await.expect("it goes there");
        page
    };
    let (loud, quiet) = (open().await, open().await);
    loud.evaluate("console.log('x'.repeat(110e6)), console.log('short')").await.expect("it is said");
    let (log, lost) = loud.take_log();
    let said: Vec<_> = log.iter().map(|entry| entry.text.as_str()).collect();
    assert_eq!((said, lost), (vec!["(something was logged that cannot be read)", "short"], 0));
    // A request that is too long to be told of goes on: here its server hangs up on it.
    let sent = "fetch('/x', { method: 'POST', body: new Uint8Array(60e6) }).then(answer => answer.status, error => error.name)";
    let answer = loud.evaluate(sent).await.expect("the request ends");
    assert!(answer == serde_json::json!(200) || answer == serde_json::json!("TypeError"), "{answer}");
    assert_eq!(quiet.evaluate("document.body.innerText").await, Ok(serde_json::json!("hello")));
}
