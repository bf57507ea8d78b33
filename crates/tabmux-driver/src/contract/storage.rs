//! What is promised of what pages keep.

use super::*;
use crate::{Beginning, OriginStorage, StorageArea, StorageItem, StorageState};

fn item(name: &str, value: &str) -> StorageItem {
    StorageItem { name: name.into(), value: value.into() }
}

fn pair(name: &str, value: Option<&str>) -> (String, Option<String>) {
    (name.to_owned(), value.map(str::to_owned))
}

pub async fn storage_is_kept_per_origin_and_context(browser: Arc<dyn Browser>, site: &str) {
    let (one, other) = (context(&browser).await, context(&browser).await);
    let (first, beside, foreign) = (page(&one).await, page(&one).await, page(&other).await);
    for page in [&first, &beside, &foreign] {
        go(page, Navigation::To(&format!("{site}/"))).await;
    }
    for area in [StorageArea::Local, StorageArea::Session] {
        let set = [pair("a", Some("1")), pair("b", Some("\"two\"\n")), pair("c", Some("3"))];
        soon(first.set_storage(area, &set)).await.expect("a page keeps things");
        soon(first.set_storage(area, &[pair("c", None), pair("a", Some("one"))])).await.expect("and changes them");
        assert_eq!(soon(first.storage(area)).await, Ok(vec![item("a", "one"), item("b", "\"two\"\n")]));
        assert_eq!(soon(foreign.storage(area)).await, Ok(vec![]), "another context keeps its own");
        let shared = soon(beside.storage(area)).await.expect("a page keeps things").len();
        assert_eq!(shared, if area == StorageArea::Local { 2 } else { 0 });
        soon(first.clear_storage(area)).await.expect("storage is forgotten");
        assert_eq!(soon(first.storage(area)).await, Ok(vec![]));
    }
    go(&first, Navigation::To("data:text/html,hi")).await;
    assert!(matches!(soon(first.storage(StorageArea::Local)).await, Err(DriverError::StorageRefused(_))));
    assert!(matches!(soon(first.clear_storage(StorageArea::Local)).await, Err(DriverError::StorageRefused(_))));
}

pub async fn a_context_begins_with_the_state_it_is_given(browser: Arc<dyn Browser>, site: &str) {
    let host = site.trim_start_matches("http://").split(':').next().expect("a site has a host").to_owned();
    let cookie = Cookie { name: "sid".into(), value: "s3".into(), domain: host, path: "/".into(), ..Cookie::default() };
    let kept = |origin: &str, value: &str| OriginStorage {
        origin: origin.into(),
        local_storage: vec![item("token", value)],
        ..OriginStorage::default()
    };
    let origins = vec![kept(site, "here"), kept("https://elsewhere.test", "there")];
    let bad = Cookie { name: "bad".into(), domain: String::new(), ..cookie.clone() };
    let state = StorageState { cookies: vec![bad, cookie], origins };
    let spec = ContextSpec { source: Some(Beginning::with(state)), ..ContextSpec::default() };
    let given = soon(browser.open_context(&spec)).await.expect("a context opens");
    let mut popups = given.popups();
    let page = page(&given).await;
    go(&page, Navigation::To(&format!("{site}/"))).await;
    assert_eq!(run(&page, "document.cookie").await, json!("sid=s3"), "a bad cookie loses only itself");
    assert_eq!(soon(page.storage(StorageArea::Local)).await, Ok(vec![item("token", "here")]));
    assert!(popups.try_recv().is_err(), "what it was made with is no page of it");
    let mut copied = given.copied();
    let told = soon(copied.wait_for(|copied| copied.pending == 0)).await.expect("the context lives").clone();
    assert_eq!((told.cookies, told.origins, told.lost), (1, 2, 1));
    assert!(told.losses[0].contains("bad") && !told.losses[0].contains("s3"), "said by name, never by value: {told:?}");
}
