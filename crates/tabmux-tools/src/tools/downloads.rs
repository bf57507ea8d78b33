//! Lists what the session's pages downloaded, and waits for what is on its way. Fetching an address without a page is
//! deliberately absent: that is `navigate` to it.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tabmux_core::{Code, Fault};
use tabmux_driver::{Download, DownloadState};

use crate::arguments::{of_page, own_schema};
use crate::reply::{counted, sized};
use crate::{Arguments, Common, Effect, Group, Level, PageTool, Pages, Reply, Run, Tool, ToolResult, visible};

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

struct List;

#[async_trait]
impl PageTool for List {
    async fn run(&self, cx: &dyn Pages, _common: &Common, args: Arguments) -> ToolResult {
        let Downloads { wait } = of_page(&args)?;
        let mut list = cx.context().await?.downloads();
        if wait.unwrap_or_default() {
            // With none at all, for the first one.
            let whole = |list: &Vec<Download>| !list.is_empty() && list.iter().all(|file| file.state != DownloadState::InProgress);
            let gone = |_| Fault::new(Code::BrowserCrashed, "The browser is gone.", "Call navigate to start afresh.");
            list.wait_for(whole).await.map_err(gone)?;
        }
        let list = list.borrow().clone();
        let listed: Vec<_> = list.iter().map(shown).collect();
        Ok(Reply::text(told(&list)).structured(json!({ "downloads": listed })))
    }
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
