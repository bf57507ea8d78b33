//! Lists what the session's pages downloaded, and waits for what is on its way. Fetching an address without a page is
//! deliberately absent: that is `navigate` to it.

use std::time::Duration;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_driver::{Download, DownloadState};
use tokio::sync::watch;

use crate::arguments::{of_page, own_schema};
use crate::reply::{counted, sized};
use crate::{Arguments, Common, Effect, Group, Late, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

pub(crate) const TOOL: Tool = Tool {
    name: "downloads",
    group: Group::State,
    level: Level::Full,
    description: "List the session's downloads; they go with it.",
    effect: Effect::Read,
    own_schema: own_schema::<Downloads>,
    run: Run::Page(&List),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Downloads {
    /// Until all are whole
    wait: Option<bool>,
}

/// How much of an address one line shows; programs get all of it.
const MAX_URL_BYTES: usize = 200;

/// How long the first download is waited for, and how long before the end of the call at the latest it is said that none came.
const FIRST: Duration = Duration::from_secs(10);
const LAST_WORD: Duration = Duration::from_millis(100);

/// A click on a link may have asked for one more, which no browser announces before it begins.
const ANOTHER: Duration = Duration::from_millis(300);

struct List;

#[async_trait]
impl PageTool for List {
    async fn run(&self, cx: &dyn Pages, common: &Common, args: Arguments) -> ToolResult {
        let Downloads { wait } = of_page(&args)?;
        let wait = wait.unwrap_or_default();
        let mut list = cx.context().await?.downloads();
        if wait {
            let patience = common.timeout.map_or(FIRST, |given| FIRST.min(given.saturating_sub(LAST_WORD)));
            all_whole(&mut list, patience).await.map_err(gone)?;
        }
        let list = list.borrow().clone();
        if list.is_empty() && wait {
            return Ok(Reply::text("No download has begun.").structured(json!({ "downloads": [] })));
        }
        let listed: Vec<_> = list.iter().map(shown).collect();
        Ok(Reply::text(told(&list)).structured(json!({ "downloads": listed })))
    }

    fn late(&self, _args: &Arguments) -> Option<Late> {
        let hint = "Call downloads to see how far they are, or wait with a longer timeout (ms, at most 600000).";
        Some(Late::new("The downloads were not whole".to_owned(), hint))
    }
}

/// Comes when none is on its way any more, or when there is none at all and none begins.
async fn all_whole(list: &mut watch::Receiver<Vec<Download>>, patience: Duration) -> Result<(), watch::error::RecvError> {
    match tokio::time::timeout(patience, list.wait_for(|list| !list.is_empty())).await {
        Err(_none) => return Ok(()),
        Ok(begun) => drop(begun?),
    }
    loop {
        let count = list.wait_for(|list| list.iter().all(|file| file.state != DownloadState::InProgress)).await?.len();
        match tokio::time::timeout(ANOTHER, list.wait_for(|list| list.len() > count)).await {
            Err(_none) => return Ok(()),
            Ok(another) => drop(another?),
        }
    }
}

fn gone(_: watch::error::RecvError) -> Fault {
    Fault::new(Code::BrowserCrashed, "The browser is gone.", "Call navigate to start afresh.")
}

fn told(list: &[Download]) -> String {
    if list.is_empty() {
        return "No downloads.".to_owned();
    }
    let lines: Vec<_> = list.iter().map(line).collect();
    format!("{}\n{}", counted(list.len(), "download"), lines.join("\n"))
}

fn line(file: &Download) -> String {
    let state = match (file.state, &file.path) {
        (DownloadState::Completed, Some(path)) => path.to_string_lossy().into_owned(),
        (DownloadState::Completed, None) => "whole".to_owned(),
        (DownloadState::InProgress, _) => "in progress".to_owned(),
        (DownloadState::Canceled, _) => "failed".to_owned(),
    };
    visible::line(&format!("{} ({}) {state} from {}", file.name, sized(file.bytes), visible::short(&file.url, MAX_URL_BYTES)))
}

fn shown(file: &Download) -> Value {
    json!({
        "name": visible::line(&file.name),
        "url": visible::line(&file.url),
        "bytes": file.bytes,
        "state": file.state,
        "path": file.path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestPages, text};
    use tabmux_driver::ContextSpec;

    #[tokio::test]
    async fn files_are_listed_with_where_they_are() {
        let home = tempfile::tempdir().unwrap();
        let pages = TestPages::with(&ContextSpec { downloads: Some(home.path().to_owned()), ..ContextSpec::default() }).await;
        assert_eq!(text(&pages.call("downloads", json!({})).await.unwrap()), "No downloads.");
        let fault = pages.call("navigate", json!({ "url": "http://a.test/download" })).await.unwrap_err();
        assert_eq!((fault.code, fault.hint.as_str()), (Code::NavigationFailed, "Call downloads with wait: true, which gives its path."));
        let reply = pages.call("downloads", json!({ "wait": true })).await.unwrap();
        let said = text(&reply).replace(&*home.path().to_string_lossy(), "DIR");
        assert_eq!(said, "1 download\na.bin (22 B) DIR/a.bin from http://a.test/download");
        let listed = &reply.structured.unwrap()["downloads"][0];
        assert_eq!((&listed["state"], &listed["bytes"], &listed["name"]), (&json!("completed"), &json!(22), &json!("a.bin")));
        assert_eq!(std::fs::read_to_string(listed["path"].as_str().unwrap()).unwrap(), "http://a.test/download");
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_includes_one_that_a_click_has_just_asked_for() {
        let pages = TestPages::new().await;
        let download = async || drop(pages.call("navigate", json!({ "url": "http://a.test/download" })).await);
        download().await;
        let coming = async {
            tokio::time::sleep(ANOTHER / 2).await;
            download().await;
        };
        let (reply, ()) = tokio::join!(pages.call("downloads", json!({ "wait": true })), coming);
        assert!(text(&reply.unwrap()).starts_with("2 downloads"));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_for_none_says_in_time_that_none_began() {
        let pages = TestPages::new().await;
        for (args, most) in [(json!({ "wait": true }), FIRST), (json!({ "wait": true, "timeout": 2000 }), Duration::from_secs(2))] {
            let began = tokio::time::Instant::now();
            assert_eq!(text(&pages.call("downloads", args).await.unwrap()), "No download has begun.");
            assert!(began.elapsed() <= most);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_with_no_download_at_all_waits_for_the_first() {
        let pages = TestPages::new().await;
        let waiting = pages.call("downloads", json!({ "wait": true }));
        let coming = async {
            tokio::time::sleep(std::time::Duration::from_secs(5)).await;
            drop(pages.call("navigate", json!({ "url": "http://a.test/download" })).await);
        };
        let (reply, ()) = tokio::join!(waiting, coming);
        assert!(text(&reply.unwrap()).starts_with("1 download\na.bin (22 B) whole"));
    }
}
