//! What every driver keeps apart for each context: downloads, what its pages see, what is copied, files.

use std::path::PathBuf;

use serde_json::json;

use super::*;
use crate::{Download, DownloadState, Emulation};

/// A directory that goes away with the test.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Self {
        let number = getrandom::u64().expect("the kernel gives random bytes");
        let path = std::env::temp_dir().join(format!("tabmux-contract-{number:016x}"));
        let own = path.join("own");
        std::fs::create_dir_all(&own).expect("a temporary directory can be made");
        Self(own)
    }

    fn spec(&self) -> ContextSpec {
        ContextSpec { downloads: Some(self.0.clone()), ..ContextSpec::default() }
    }

    fn files(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("it is there").flatten();
        let mut names: Vec<_> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        names
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let all = self.0.parent().expect("it was made in one");
        drop(std::fs::remove_dir_all(all));
    }
}

pub async fn downloads_go_to_their_contexts_own_directory(browser: Arc<dyn Browser>, site: &str) {
    let (here, there) = (Scratch::new(), Scratch::new());
    let one = soon(browser.open_context(&here.spec())).await.expect("a context opens");
    let other = soon(browser.open_context(&there.spec())).await.expect("a context opens");
    let page = page(&one).await;
    let mut list = one.downloads();
    for count in 1..=2 {
        let error = soon(page.navigate(Navigation::To(&format!("{site}/download")))).await.expect_err("there is no page");
        assert_eq!(error, DriverError::BecameDownload(format!("{site}/download")));
        assert_eq!(list.borrow().len(), count, "what is announced is in the list");
        let whole = |list: &Vec<Download>| list.iter().filter(|download| download.state == DownloadState::Completed).count() == count;
        soon(list.wait_for(whole)).await.expect("the context lives");
    }
    let told = list.borrow().clone();
    assert_eq!(told.iter().map(|download| download.name.as_str()).collect::<Vec<_>>(), ["a.bin", "a (1).bin"]);
    assert_eq!(here.files(), ["a (1).bin", "a.bin"]);
    for download in &told {
        assert_eq!(download.path.as_deref(), Some(&*here.0.join(&download.name)));
        assert_eq!(download.url, format!("{site}/download"));
    }
    assert_eq!((there.files(), other.downloads().borrow().len()), (vec![], 0));
}

pub async fn two_contexts_can_see_opposite_worlds(browser: Arc<dyn Browser>, site: &str) {
    const ZONE: &str = "Intl.DateTimeFormat().resolvedOptions().timeZone";
    let (one, other) = (context(&browser).await, context(&browser).await);
    let first = page(&one).await;
    for (context, zone) in [(&one, "Asia/Tokyo"), (&other, "America/New_York")] {
        let wanted = Emulation { timezone: Some(zone.into()), ..Emulation::default() };
        soon(context.emulate(&wanted)).await.expect("a time zone is taken");
        assert_eq!(context.emulation(), wanted);
    }
    let (later, foreign) = (page(&one).await, page(&other).await);
    for (page, zone) in [(&first, "Asia/Tokyo"), (&later, "Asia/Tokyo"), (&foreign, "America/New_York")] {
        go(page, Navigation::To(&format!("{site}/"))).await;
        assert_eq!(run(page, ZONE).await, json!(zone));
    }
    let refused = soon(one.emulate(&Emulation { timezone: Some("No Such".into()), ..Emulation::default() })).await;
    assert!(matches!(&refused, Err(DriverError::EmulationRefused(what)) if what.contains("No Such")), "{refused:?}");
    assert_eq!(one.emulation().timezone.as_deref(), Some("Asia/Tokyo"), "what was refused changes nothing");
    soon(one.emulate(&Emulation::default())).await.expect("the browser's own is taken");
    assert_ne!(run(&first, ZONE).await, json!("Asia/Tokyo"));
    assert_eq!(run(&foreign, ZONE).await, json!("America/New_York"));
}

pub async fn what_is_copied_stays_in_its_context(browser: Arc<dyn Browser>, site: &str) {
    let (one, other) = (context(&browser).await, context(&browser).await);
    let (writer, sibling, foreign) = (page(&one).await, page(&one).await, page(&other).await);
    for page in [&writer, &sibling, &foreign] {
        go(page, Navigation::To(&format!("{site}/"))).await;
    }
    run(&writer, "navigator.clipboard.writeText(\"secret of one\")").await;
    assert_eq!(run(&sibling, "navigator.clipboard.readText()").await, json!("secret of one"));
    assert_ne!(soon(foreign.evaluate("navigator.clipboard.readText()")).await.ok(), Some(json!("secret of one")));
    run(&foreign, "navigator.clipboard.writeText(\"secret of other\")").await;
    assert_eq!(run(&writer, "navigator.clipboard.readText()").await, json!("secret of one"));
}

pub async fn files_need_a_chooser_or_an_input(browser: Arc<dyn Browser>, site: &str) {
    let page = page(&context(&browser).await).await;
    go(&page, Navigation::To(&format!("{site}/"))).await;
    let file = [std::env::current_exe().expect("a test has a file")];
    assert_eq!(soon(page.upload(&file, None)).await, Err(DriverError::NoChooser));
    let refused = soon(page.upload(&file, Some(&selector("#nowhere")))).await;
    assert!(matches!(refused, Err(DriverError::ElementNotFound { .. })), "{refused:?}");
}
