//! What is promised of copies: they begin with everything, the source stays as it is, and each goes its own way.

use super::*;
use crate::{Arrival, Beginning, Planted, ReadOnce, StorageArea, StorageItem};

/// A context that is logged in at the site by a cookie that scripts do not see and by what its origin keeps.
async fn logged_in(browser: &Arc<dyn Browser>, site: &str) -> (Arc<dyn Context>, Arc<dyn Page>) {
    let (one, host) = (context(browser).await, site.trim_start_matches("http://").split(':').next().expect("a site has a host"));
    let cookie = |name: &str, http_only| Cookie {
        name: name.into(),
        value: format!("{name} of one"),
        domain: host.into(),
        path: "/".into(),
        http_only,
        ..Cookie::default()
    };
    assert_eq!(soon(one.set_cookies(&[cookie("sid", true), cookie("theme", false)])).await, Ok(vec![]), "good cookies are taken");
    let first = page(&one).await;
    go(&first, Navigation::To(&format!("{site}/in?title=In"))).await;
    keep(&first, StorageArea::Local, "secret of one").await;
    (one, first)
}

async fn keep(page: &Arc<dyn Page>, area: StorageArea, value: &str) {
    soon(page.set_storage(area, &[("token".into(), Some(value.into()))])).await.expect("a page keeps things");
}

async fn kept(page: &Arc<dyn Page>, area: StorageArea) -> Vec<String> {
    let items = soon(page.storage(area)).await.expect("a page keeps things");
    items.into_iter().map(|StorageItem { name, value }| format!("{name}={value}")).collect()
}

async fn cookies(context: &Arc<dyn Context>) -> Vec<Cookie> {
    let mut cookies = soon(context.cookies()).await.expect("cookies are listed");
    cookies.sort_by(|one, other| one.name.cmp(&other.name));
    cookies
}

async fn copy(browser: &Arc<dyn Browser>, beginning: Beginning) -> Arc<dyn Context> {
    soon(browser.open_context(&ContextSpec { source: Some(beginning), ..ContextSpec::default() })).await.expect("a copy opens")
}

fn source(context: &Arc<dyn Context>) -> Beginning {
    context.source().expect("a living context can be copied").into()
}

pub async fn a_copy_is_logged_in_and_goes_its_own_way(browser: Arc<dyn Browser>, site: &str) {
    let (one, first) = logged_in(&browser, site).await;
    let before = cookies(&one).await;
    let (twin, other) = (copy(&browser, source(&one)).await, copy(&browser, source(&one)).await);
    for copied in [&twin, &other] {
        assert_eq!(cookies(copied).await, before);
        let page = page(copied).await;
        go(&page, Navigation::To(&format!("{site}/"))).await;
        assert_eq!(kept(&page, StorageArea::Local).await, ["token=secret of one"]);
        let told = soon(copied.copied().wait_for(|copied| copied.pending == 0)).await.expect("it lives").clone();
        assert_eq!((told.cookies, told.origins, told.lost), (2, 1, 0), "{told:?}");
    }
    let lone = page(&context(&browser).await).await;
    go(&lone, Navigation::To(&format!("{site}/"))).await;
    assert_eq!((kept(&lone, StorageArea::Local).await.len(), run(&lone, "document.cookie").await), (0, json!("")));

    soon(twin.clear_cookies()).await.expect("a logout");
    let out = page(&twin).await;
    go(&out, Navigation::To(&format!("{site}/"))).await;
    soon(out.clear_storage(StorageArea::Local)).await.expect("a logout");
    assert_eq!((cookies(&one).await, cookies(&other).await), (before.clone(), before));
    assert_eq!(kept(&first, StorageArea::Local).await, ["token=secret of one"]);
    let still = page(&other).await;
    go(&still, Navigation::To(&format!("{site}/"))).await;
    assert_eq!(kept(&still, StorageArea::Local).await, ["token=secret of one"]);
}

/// S3.3
pub async fn copies_that_open_at_once_share_one_reading(browser: Arc<dyn Browser>, site: &str) {
    let (one, _first) = logged_in(&browser, site).await;
    let once = Beginning::with(ReadOnce::of(one.source().expect("a living context can be copied")));
    let (a, b, c) =
        soon(async { tokio::join!(copy(&browser, once.clone()), copy(&browser, once.clone()), copy(&browser, once.clone())) }).await;
    for copied in [a, b, c] {
        let page = page(&copied).await;
        go(&page, Navigation::To(&format!("{site}/"))).await;
        assert_eq!(kept(&page, StorageArea::Local).await, ["token=secret of one"]);
    }
}

/// The second is filled from the first, which is being filled itself.
pub async fn a_copy_of_a_copy_is_one_of_the_first(browser: Arc<dyn Browser>, site: &str) {
    let (one, _first) = logged_in(&browser, site).await;
    let twin = copy(&browser, source(&one)).await;
    let again = copy(&browser, source(&twin)).await;
    assert_eq!(cookies(&again).await, cookies(&one).await);
    let page = page_at(&again, site).await;
    assert_eq!(kept(&page, StorageArea::Local).await, ["token=secret of one"]);
}

pub async fn a_context_that_is_closed_is_no_source_any_more(browser: Arc<dyn Browser>, site: &str) {
    let (one, _first) = logged_in(&browser, site).await;
    let beginning = source(&one);
    soon(one.close()).await.expect("a context closes");
    let refused = soon(browser.open_context(&ContextSpec { source: Some(beginning), ..ContextSpec::default() })).await;
    assert!(matches!(refused.map(drop), Err(DriverError::BrowserGone(_))));
    assert_eq!(soon(browser.keep_only(&[])).await, Ok(0), "nothing is left of what failed");
}

pub async fn a_page_is_opened_as_another_was(browser: Arc<dyn Browser>, site: &str) {
    let (one, first) = logged_in(&browser, site).await;
    keep(&first, StorageArea::Session, "of this page").await;
    let seed = soon(first.seed()).await.expect("a page has a seed");
    let copied = copy(&browser, source(&one)).await;
    let Planted { page: twin, arrival } = soon(copied.open_seeded(&seed)).await.expect("a page opens");
    assert_eq!(arrival, Arrival::There);
    assert_eq!((twin.url(), twin.title()), (first.url(), "In".to_owned()));
    assert_eq!(kept(&twin, StorageArea::Session).await, ["token=of this page"]);
    keep(&twin, StorageArea::Session, "of the twin").await;
    go(&twin, Navigation::Reload).await;
    assert_eq!(kept(&twin, StorageArea::Session).await, ["token=of the twin"], "it is seeded once");
    assert_eq!(kept(&first, StorageArea::Session).await, ["token=of this page"]);
    assert!(kept(&page_at(&copied, site).await, StorageArea::Session).await.is_empty(), "it was the other page's");
}

async fn page_at(context: &Arc<dyn Context>, site: &str) -> Arc<dyn Page> {
    let page = page(context).await;
    go(&page, Navigation::To(&format!("{site}/"))).await;
    page
}

pub async fn a_context_knows_where_it_has_been(browser: Arc<dyn Browser>, site: &str) {
    let one = context(&browser).await;
    page_at(&one, site).await;
    assert_eq!(one.footprint().borrow().origins, [site]);
    let handle = one.handle().clone();
    let origins = vec!["https://elsewhere.test".into()];
    let footprint = crate::Footprint { origins, pending: vec!["https://late.test".into()], ..Default::default() };
    // To a living one nothing has to be told.
    let spec = ContextSpec { footprint, ..ContextSpec::default() };
    let found = soon(browser.adopt_context(&handle, &spec, &[])).await.expect("it lives").context;
    assert_eq!(found.footprint().borrow().origins, [site]);
    let copied = copy(&browser, source(&one)).await;
    soon(copied.copied().wait_for(|copied| copied.pending == 0)).await.expect("it lives");
    assert_eq!(copied.footprint().borrow().origins, [site], "what came with it is known too");
}
