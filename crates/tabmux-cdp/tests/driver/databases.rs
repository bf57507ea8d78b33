//! IndexedDB that a context begins with is what was read elsewhere: every kind of value, keys, indexes and counters.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tabmux_driver::{Beginning, Browser, ContextSpec, DATABASES, Navigation, OriginStorage, Page, StorageState};

use crate::support;

async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(60), work).await.expect("a browser answers in time")
}

async fn at(browser: &dyn Browser, site: &str, state: Option<StorageState>) -> Arc<dyn Page> {
    let spec = ContextSpec { source: state.map(Beginning::with), ..ContextSpec::default() };
    let context = soon(browser.open_context(&spec)).await.expect("a context opens");
    let page = soon(context.open_page()).await.expect("a page opens");
    soon(page.navigate(Navigation::To(site))).await.expect("the page goes there");
    page
}

async fn run(page: &Arc<dyn Page>, script: &str) -> Value {
    soon(page.evaluate(script)).await.expect("the script runs")
}

const KEEP: &str = include_str!("databases/keep.js");
const TELL: &str = include_str!("databases/tell.js");

#[tokio::test]
async fn databases_come_with_the_state_as_they_were() {
    let browser = support::chromium().await;
    let site = support::site(|_| "hello".into()).await;
    let source = at(&*browser, &site, None).await;
    run(&source, KEEP).await;
    let dumped = run(&source, &format!("{DATABASES}.dump()")).await;
    assert_eq!(dumped["left"], json!(["kept/loose: CryptoKey"]), "what cannot be copied is named");
    let databases = dumped["databases"].as_array().expect("a list").clone();

    let origin = OriginStorage { origin: site.trim_end_matches('/').to_owned(), indexed_db: databases, ..OriginStorage::default() };
    let copy = at(&*browser, &site, Some(StorageState { origins: vec![origin], ..StorageState::default() })).await;
    let told = run(&source, TELL).await;
    assert!(told["values"].as_object().is_some_and(|values| values.len() > 20), "{told}");
    assert_eq!(run(&copy, TELL).await, told);
    assert_eq!(run(&at(&*browser, &site, None).await, "indexedDB.databases()").await, json!([]), "nobody else has them");
}
