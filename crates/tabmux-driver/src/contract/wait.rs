//! What waiting for a page promises.

use super::*;
use std::collections::BTreeSet;

use crate::{Awaited, Condition, UrlPattern};

fn text(text: &str) -> Awaited {
    Awaited { text: Some(text.to_owned()), ..Awaited::default() }
}

fn gone(text: &str) -> Awaited {
    Awaited { gone: Some(text.to_owned()), ..Awaited::default() }
}

fn url(pattern: &str) -> Awaited {
    Awaited { url: Some(UrlPattern(pattern.to_owned())), ..Awaited::default() }
}

pub async fn waiting_ends_when_the_page_shows_it(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    go(&page, Navigation::To(&format!("{site}/here"))).await;
    let there = Awaited { text: Some("PAGE at".into()), gone: Some("elsewhere".into()), ..url("*/here") };
    assert_eq!(soon(page.wait_for(&there)).await, Ok(()), "what is so already needs no waiting");
    let late = text("late news");
    let (waited, ()) = soon(async {
        tokio::join!(page.wait_for(&late), async {
            run(&page, "document.body.append(\"no \")").await;
            run(&page, "document.body.append(\"Late news\")").await;
        })
    })
    .await;
    assert_eq!(waited, Ok(()));
}

pub async fn waiting_goes_on_in_the_next_document(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    go(&page, Navigation::To(&format!("{site}/one"))).await;
    for awaited in [text("/two"), gone("/one"), url("/two"), Awaited { url: Some(UrlPattern("/two".into())), ..text("/two") }] {
        go(&page, Navigation::To(&format!("{site}/one"))).await;
        let (waited, ()) = soon(async {
            tokio::join!(page.wait_for(&awaited), async {
                go(&page, Navigation::To(&format!("{site}/between-one-and-the-next"))).await;
                go(&page, Navigation::To(&format!("{site}/two"))).await;
            })
        })
        .await;
        assert_eq!(waited, Ok(()), "{awaited:?}");
    }
}

pub async fn waiting_ends_with_its_page_and_is_given_up_without_a_trace(browser: Arc<dyn Browser>, _site: &str) {
    let page = page(&context(&browser).await).await;
    let never = text("never");
    let given_up = tokio::time::timeout(Duration::from_millis(20), page.wait_for(&never)).await;
    assert!(given_up.is_err(), "what never comes came: {given_up:?}");
    assert_eq!(run(&page, "1").await, json!(1));
    let (waited, closed) = soon(async { tokio::join!(page.wait_for(&never), page.close()) }).await;
    assert_eq!((waited, closed), (Err(DriverError::PageGone), Ok(())));
}

pub async fn waiting_ends_when_a_script_holds_or_the_network_is_quiet(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    go(&page, Navigation::To(&format!("{site}/one"))).await;
    let holds = |script: &str| Awaited { function: Some(script.to_owned()), ..Awaited::default() };
    assert_eq!(soon(page.wait_for(&Awaited { network_idle: true, ..text("page at") })).await, Ok(()));
    assert_eq!(soon(page.wait_for(&holds("location.href"))).await, Ok(()), "what holds already needs no waiting");
    let later = holds("document.cookie");
    let (waited, ()) = soon(async {
        tokio::join!(page.wait_for(&later), async {
            go(&page, Navigation::To(&format!("{site}/two"))).await;
            run(&page, "document.cookie = \"seen=yes\"").await;
            run(&page, "document.body.append(\"seen\")").await;
        })
    })
    .await;
    assert_eq!(waited, Ok(()), "in a later document too");
    let never = holds("0");
    let given_up = tokio::time::timeout(Duration::from_millis(200), page.wait_for(&never)).await;
    assert!(given_up.is_err(), "0 does not hold: {given_up:?}");
    assert_eq!((page.last_given("0").as_deref(), page.last_given("1")), (Some("0"), None));
    let error = soon(page.wait_for(&holds("throw(\"no milk\")"))).await.expect_err("a script that fails never holds");
    assert!(matches!(error, DriverError::ScriptFailed(_)), "{error:?}");
}

pub async fn waiting_tells_what_does_not_hold_yet(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    go(&page, Navigation::To(&format!("{site}/here"))).await;
    let here = || Awaited { text: Some("page at".into()), ..url("/here") };
    let never = || Some("never".to_owned());
    for (awaited, lacking) in [
        (Awaited { url: Some(UrlPattern("/elsewhere".into())), ..here() }, Condition::Url),
        (Awaited { text: never(), ..here() }, Condition::Text),
        (Awaited { selector: Some("#never".into()), ..here() }, Condition::Selector),
        (Awaited { gone: Some("page at".into()), ..here() }, Condition::Gone),
        (Awaited { function: Some("0".into()), network_idle: true, ..here() }, Condition::Function),
    ] {
        let told = async {
            while awaited.lacks.now() != BTreeSet::from([lacking]) {
                tokio::task::yield_now().await;
            }
        };
        soon(async {
            tokio::select! {
                waited = page.wait_for(&awaited) => panic!("it never holds, and yet: {waited:?}"),
                () = told => {}
            }
        })
        .await;
    }
}
